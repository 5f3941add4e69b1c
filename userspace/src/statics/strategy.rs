//! Whether node IPs are static bindings, or rows that the mirror keeps.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Target, Treatment, wanted::WantedBindings};
use crate::rows::Rows;

/// How followers know node IPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Northbound `Static_MAC_Binding` rows, which never age.
    Static,
    /// Southbound `MAC_Binding` rows, which the agent refreshes.
    Dynamic,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        })
    }
}

/// How many static rows there may be before OVN 25.03, unless something else is configured: at 10,000
/// one loop of northd takes four seconds, and a hundred at 50,000.
pub const BOUND: usize = 5_000;

/// The setting `node_bindings`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategySetting {
    /// Static, unless that would slow northd down.
    #[default]
    Auto,
    /// Always static.
    Static,
    /// Always dynamic.
    Dynamic,
}

/// Why a strategy is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Why {
    /// It is configured.
    #[error("it is configured")]
    Configured,
    /// northd's time grows only in step with static rows.
    #[error("OVN {version} handles any number of static rows")]
    NewOvn {
        /// `northd_internal_version`.
        version: String,
    },
    /// There are few rows.
    #[error("{rows} static rows are within the bound of {bound}")]
    FewRows {
        /// How many are wanted.
        rows: usize,
        /// How many there may be.
        bound: usize,
    },
    /// northd's time would grow with the square of the rows.
    #[error(
        "{rows} static rows are beyond the bound of {bound}, and {} slows down with the square of their number (OVN 25.03 does not)",
        version_text(version.as_deref())
    )]
    ManyRows {
        /// How many are wanted.
        rows: usize,
        /// How many there may be.
        bound: usize,
        /// `northd_internal_version`, where it is known.
        version: Option<String>,
    },
}

fn version_text(version: Option<&str>) -> String {
    version.map_or_else(
        || "OVN of an unknown version perhaps".to_owned(),
        |version| format!("OVN {version}"),
    )
}

/// `NB_Global.options:northd_internal_version`, such as `25.03.0-20.41.0-76.8`: of the northd that was
/// last active.
#[must_use]
pub fn northd_version(rows: &Rows) -> Option<&Arc<str>> {
    let mut roots = rows.nb_global.values();
    roots.find_map(|root| root.options.get("northd_internal_version"))
}

/// How many static rows are wanted. Routers that are held count as well: they are followers again once
/// the switch has their ports, and the strategy should not change with each of its restarts.
#[must_use]
pub fn rows_wanted(targets: &[Target], wanted: &WantedBindings) -> usize {
    let followers = targets
        .iter()
        .filter(|target| matches!(target.treatment, Treatment::Follower | Treatment::Held));
    let bridges = followers.filter_map(|target| wanted.bridges.get(target.bridge.as_ref()?));
    bridges.map(super::BridgeBindings::rows).sum()
}

/// Which strategy to follow, and why.
///
/// A version that is absent (northd has not run yet, or is older than the option) or that cannot be read
/// counts as old: rows that the mirror keeps are right with every version, while many static rows make
/// an old northd useless. `current` is the strategy in force: back from dynamic it goes only where the
/// rows are a fifth below the bound, so that one node more or less does not rewrite everything.
#[must_use]
pub fn strategy(
    setting: StrategySetting,
    version: Option<&str>,
    rows: usize,
    bound: usize,
    current: Option<Strategy>,
) -> (Strategy, Why) {
    match setting {
        StrategySetting::Static => return (Strategy::Static, Why::Configured),
        StrategySetting::Dynamic => return (Strategy::Dynamic, Why::Configured),
        StrategySetting::Auto => {}
    }
    if let Some(version) = version.filter(|version| is_linear(version)) {
        let version = version.to_owned();
        return (Strategy::Static, Why::NewOvn { version });
    }
    let bound = match current {
        Some(Strategy::Dynamic) => bound - bound / 5,
        _ => bound,
    };
    if rows <= bound {
        (Strategy::Static, Why::FewRows { rows, bound })
    } else {
        let version = version.map(str::to_owned);
        let why = Why::ManyRows {
            rows,
            bound,
            version,
        };
        (Strategy::Dynamic, why)
    }
}

/// Whether northd gives a static row the same identity in both databases, so that its time grows only
/// in step with their number: from OVN 25.03 on.
fn is_linear(version: &str) -> bool {
    let mut parts = version.trim().split(['.', '-']);
    let mut number = || parts.next()?.parse::<u32>().ok();
    let year_and_month = number().zip(number());
    year_and_month.is_some_and(|version| version >= (25, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(version: Option<&str>, rows: usize, current: Option<Strategy>) -> Strategy {
        strategy(StrategySetting::Auto, version, rows, 5_000, current).0
    }

    #[test]
    fn what_is_configured_is_in_force_whatever_the_version() {
        for version in [
            None,
            Some("23.03.1-20.27.4-70.6"),
            Some("25.03.0-20.41.0-76.8"),
        ] {
            for (setting, wanted) in [
                (StrategySetting::Static, Strategy::Static),
                (StrategySetting::Dynamic, Strategy::Dynamic),
            ] {
                let (strategy, why) = strategy(setting, version, 1_000_000, 5_000, None);
                assert_eq!((strategy, why), (wanted, Why::Configured));
            }
        }
    }

    #[test]
    fn many_rows_are_static_only_where_northd_is_known_to_be_linear() {
        for version in ["25.03.0-20.41.0-76.8", "25.09.1", "26.03.0-21.0.0-80.0"] {
            assert_eq!(auto(Some(version), 250_000, None), Strategy::Static);
        }
        for version in [
            "23.03.1-20.27.4-70.6",
            "24.09.2-20.37.0-77.6",
            "25",
            "main",
            "",
            "v25.3",
        ] {
            assert_eq!(
                auto(Some(version), 5_001, None),
                Strategy::Dynamic,
                "{version}"
            );
            assert_eq!(
                auto(Some(version), 5_000, None),
                Strategy::Static,
                "{version}"
            );
        }
        assert_eq!(auto(None, 5_001, None), Strategy::Dynamic);
        assert_eq!(auto(None, 10, None), Strategy::Static);
    }

    #[test]
    fn a_count_around_the_bound_does_not_change_the_strategy_back_and_forth() {
        let old = Some("23.03.1-20.27.4-70.6");
        let mut current = None;
        let mut seen = Vec::new();
        for rows in [4_900, 5_100, 4_900, 5_100, 4_001, 4_000, 5_000, 5_001] {
            current = Some(auto(old, rows, current));
            seen.extend(current);
        }
        use Strategy::{Dynamic, Static};
        let wanted = [
            Static, Dynamic, Dynamic, Dynamic, Dynamic, Static, Static, Dynamic,
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn the_reason_is_a_sentence() {
        let say = |version| {
            strategy(StrategySetting::Auto, version, 9_000, 5_000, None)
                .1
                .to_string()
        };
        assert_eq!(
            say(Some("25.03.0-20.41.0-76.8")),
            "OVN 25.03.0-20.41.0-76.8 handles any number of static rows"
        );
        assert_eq!(
            say(None),
            "9000 static rows are beyond the bound of 5000, and OVN of an unknown version perhaps \
             slows down with the square of their number (OVN 25.03 does not)"
        );
    }
}

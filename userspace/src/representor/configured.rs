//! Representors that were named.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

/// `NAME` or `BRIDGE=NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRepresentor {
    /// The bridge; `None` = the default network's.
    pub bridge: Option<Arc<str>>,
    /// The interface.
    pub name: Arc<str>,
}

/// A text that names no representor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an interface nor <bridge>=<interface>")]
pub struct ParseHostRepresentorError(pub String);

impl FromStr for HostRepresentor {
    type Err = ParseHostRepresentorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (bridge, name) = match text.split_once('=') {
            Some((bridge, name)) => (Some(bridge), name),
            None => (None, text),
        };
        let is_name = |text: &str| {
            !text.is_empty() && !text.contains(|it: char| it.is_whitespace() || "/=,".contains(it))
        };
        if !is_name(name) || !bridge.is_none_or(is_name) {
            return Err(ParseHostRepresentorError(text.to_owned()));
        }
        Ok(Self {
            bridge: bridge.map(Arc::from),
            name: name.into(),
        })
    }
}

impl fmt::Display for HostRepresentor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bridge {
            Some(bridge) => write!(f, "{bridge}={}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// All that were named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    default: Option<Arc<str>>,
    by_bridge: BTreeMap<Arc<str>, Arc<str>>,
}

impl Configured {
    /// The representor that was named for a bridge, as it was named.
    #[must_use]
    pub fn of(&self, bridge: &str, is_default: bool) -> Option<&Arc<str>> {
        let named = self.by_bridge.get(bridge);
        named.or_else(|| self.default.as_ref().filter(|_| is_default))
    }

    /// The bridges that were named.
    pub fn bridges(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_bridge.keys()
    }

    /// Every interface that was named.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.default.iter().chain(self.by_bridge.values())
    }
}

impl FromIterator<HostRepresentor> for Configured {
    /// Of several for one bridge the last one counts.
    fn from_iter<T: IntoIterator<Item = HostRepresentor>>(named: T) -> Self {
        let mut configured = Self::default();
        for HostRepresentor { bridge, name } in named {
            match bridge {
                Some(bridge) => drop(configured.by_bridge.insert(bridge, name)),
                None => configured.default = Some(name),
            }
        }
        configured
    }
}

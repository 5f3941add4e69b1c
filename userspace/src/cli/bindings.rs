//! `neighsteer bindings`: what the source of a bridge has learnt, and which follower lacks what.

mod elsewhere;
mod table;
#[cfg(test)]
mod tests;
mod watch;

pub use elsewhere::OtherSources;
pub use watch::{BridgeRecord, Event, Followers, Group, NeighbourRecord, Record, Watch};

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::IpAddr,
};

use serde::Serialize;

use crate::{
    ids::Mac,
    mirror::{
        BindingRow, Compared, GroupMembers, Now, Origin, RowState, ServerClock, Settings, compare,
    },
};

/// The flags of `neighsteer bindings`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer bindings
      exit code 1 where a follower lacks a binding
  neighsteer bindings --output json
  neighsteer bindings --watch
      one line a change, until Ctrl-C; such as
      2026-01-31T09:30:00.250Z breth0 172.18.0.1 02:42:ac:12:00:01 learnt; of 3 followers 3 right
  neighsteer bindings --watch --output json | jq --unbuffered 'select(.event == \"moved\")'")]
pub struct BindingsArgs {
    /// Only this bridge [default: every bridge that gateway routers share]
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// An address that the agent was told not to mirror; any number of times
    #[arg(long, value_name = "IP")]
    pub node_address: Vec<IpAddr>,
    /// List followers that lack nothing, too
    #[arg(long, conflicts_with = "watch")]
    pub all: bool,
    /// Go on: print how each bridge stands, then a line whenever a neighbour is learnt, moves to
    /// another MAC or goes, or the followers' rows about it change (with JSON: a record a line).
    /// Changes are gathered for 100 ms; what changes by age alone is told with the next one
    #[arg(long)]
    pub watch: bool,
}

/// How many rows stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Right and fresh.
    pub right: usize,
    /// Right, but due for a refresh.
    pub stale: usize,
    /// Not there.
    pub missing: usize,
    /// Not there, and not to be put there: the source's row is about to expire.
    pub expiring: usize,
    /// With another MAC than the source's or the node's, or one that cannot be read.
    pub wrong: usize,
    /// Left by a former router with the same port.
    pub other_datapath: usize,
}

impl Tally {
    fn count(&mut self, state: RowState) {
        *match state {
            RowState::Right => &mut self.right,
            RowState::Stale => &mut self.stale,
            RowState::Missing => &mut self.missing,
            RowState::Expiring => &mut self.expiring,
            RowState::Wrong => &mut self.wrong,
            RowState::OtherDatapath => &mut self.other_datapath,
        } += 1;
    }

    /// Whether nothing is to be written.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.stale == 0 && self.missing == 0 && self.wrong == 0 && self.other_datapath == 0
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |sum, it| Self {
            right: sum.right + it.right,
            stale: sum.stale + it.stale,
            missing: sum.missing + it.missing,
            expiring: sum.expiring + it.expiring,
            wrong: sum.wrong + it.wrong,
            other_datapath: sum.other_datapath + it.other_datapath,
        })
    }
}

/// A binding of the source, or one of a node's that is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceBinding {
    /// The neighbour.
    pub ip: IpAddr,
    /// Its MAC; `None` where the row has none that can be read.
    pub mac: Option<Mac>,
    /// Since when the source's row was not refreshed, ms; `None` where it has no timestamp, or nothing
    /// that it says counts.
    pub age_ms: Option<i64>,
    /// Whether it is a node's address, of which the source's row is not mirrored.
    pub node: bool,
    /// From what it is known: a node's that is pinned is on every follower all the same.
    pub origin: Origin,
    /// The bridge whose source learned it, where that is another one: the router came from there and
    /// has kept its rows. See [`report`].
    pub learned_on: Option<String>,
    /// How the followers' rows stand to it.
    pub followers: Tally,
}

/// A follower's row that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The neighbour.
    pub ip: IpAddr,
    /// How the row stands to the source's.
    pub state: RowState,
    /// The MAC that it has.
    pub mac: Option<Mac>,
    /// Since when it was not refreshed, ms.
    pub age_ms: Option<i64>,
}

/// A follower's row that its bridge's source has not learned by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// The neighbour.
    pub ip: IpAddr,
    /// The bridge whose source has learned it.
    pub bridge: String,
}

/// A follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FollowerBindings {
    /// Its external port.
    pub port: String,
    /// How its rows stand to the source's.
    pub rows: Tally,
    /// Its rows about neighbours that the source does not know (any more) and that are no pinned
    /// nodes. They age by themselves.
    pub own: usize,
    /// Those that are not as they should be.
    pub differences: Vec<Difference>,
    /// Those that were learned on another bridge. See [`report`].
    pub learned_elsewhere: Vec<Elsewhere>,
}

/// One bridge's bindings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BindingsReport {
    /// The bridge.
    pub bridge: String,
    /// The source's external port; `None` where the group has no source with a datapath.
    pub source: Option<String>,
    /// The source's bindings and the pinned nodes', by address.
    pub bindings: Vec<SourceBinding>,
    /// The followers.
    pub followers: Vec<FollowerBindings>,
    /// All followers' rows together.
    pub total: Tally,
    /// How many rows, the source's and the followers', were learned on another bridge.
    pub learned_elsewhere: usize,
}

/// Compares the rows of a bridge's routers. Rows of other ports are left out.
///
/// A row is learned elsewhere where another bridge's source has the same address at the same MAC no
/// less recently, while its own source has not learned it by itself: it lacks the address, or its own
/// row is the older one (of two within 5 s the later one, since a copy is stamped when it is written).
#[must_use]
pub fn report(
    bridge: &str,
    members: &GroupMembers,
    rows: &[&BindingRow],
    others: &OtherSources<'_>,
    settings: &Settings,
    now: Now,
) -> BindingsReport {
    let clock = ServerClock::from_rows(rows, members, settings, now);
    let mut bindings = source_bindings(members, rows, others, now);
    bindings.extend(node_bindings(members));
    let mut total = Tally::default();
    let mut followers: BTreeMap<&str, FollowerBindings> = members
        .followers
        .iter()
        .map(|member| {
            let follower = FollowerBindings {
                port: member.port.to_string(),
                rows: Tally::default(),
                own: 0,
                differences: Vec::new(),
                learned_elsewhere: Vec::new(),
            };
            (&*member.port, follower)
        })
        .collect();
    for row in rows {
        if let Some(follower) = followers.get_mut(&*row.port) {
            let own = bindings.get(&row.ip);
            follower.own += usize::from(own.is_none());
            if own.is_none_or(|binding| binding.learned_on.is_some())
                && let Some(bridge) = others.learned(row)
            {
                follower.learned_elsewhere.push(Elsewhere {
                    ip: row.ip,
                    bridge: bridge.to_owned(),
                });
            }
        }
    }
    for compared in compare(rows, members, settings, &clock, now) {
        total.count(compared.state);
        if let Some(binding) = bindings.get_mut(&compared.ip) {
            binding.followers.count(compared.state);
        }
        if let Some(follower) = followers.get_mut(&*compared.follower.port) {
            follower.rows.count(compared.state);
            follower.differences.extend(difference(&compared, now));
        }
    }
    for follower in followers.values_mut() {
        follower.learned_elsewhere.sort_by_key(|it| it.ip);
    }
    let of_source = bindings.values().filter(|it| it.learned_on.is_some());
    let of_followers = followers.values().map(|it| it.learned_elsewhere.len());
    BindingsReport {
        bridge: bridge.to_owned(),
        source: members.source.as_ref().map(|it| it.port.to_string()),
        learned_elsewhere: of_source.count() + of_followers.sum::<usize>(),
        bindings: bindings.into_values().collect(),
        followers: followers.into_values().collect(),
        total,
    }
}

/// The source's rows, the newest where several spell the same address.
fn source_bindings(
    members: &GroupMembers,
    rows: &[&BindingRow],
    others: &OtherSources<'_>,
    now: Now,
) -> BTreeMap<IpAddr, SourceBinding> {
    let Some(source) = &members.source else {
        return BTreeMap::new();
    };
    let mut rows: Vec<_> = rows.iter().filter(|row| row.port == source.port).collect();
    rows.sort_by_key(|row| (row.mac.is_some(), row.timestamp));
    rows.into_iter()
        .map(|row| {
            let binding = SourceBinding {
                ip: row.ip,
                mac: row.mac,
                age_ms: age(row, now),
                node: members.node_ips.contains(&row.ip),
                origin: Origin::Source,
                learned_on: others.copied(row).map(str::to_owned),
                followers: Tally::default(),
            };
            (row.ip, binding)
        })
        .collect()
}

/// What is pinned, whatever the source's rows say about it.
fn node_bindings(members: &GroupMembers) -> impl Iterator<Item = (IpAddr, SourceBinding)> {
    members.pinned.iter().map(|(ip, mac)| {
        let binding = SourceBinding {
            ip: *ip,
            mac: Some(*mac),
            age_ms: None,
            node: true,
            origin: Origin::Node,
            learned_on: None,
            followers: Tally::default(),
        };
        (*ip, binding)
    })
}

fn difference(compared: &Compared<'_>, now: Now) -> Option<Difference> {
    let state = compared.state;
    (!matches!(state, RowState::Right | RowState::Expiring)).then(|| Difference {
        ip: compared.ip,
        state,
        mac: compared.row.and_then(|row| row.mac),
        age_ms: compared.row.and_then(|row| age(row, now)),
    })
}

fn age(row: &BindingRow, now: Now) -> Option<i64> {
    (row.timestamp > 0).then(|| now.wall_ms.saturating_sub(row.timestamp))
}

/// Prints the reports as tables, or as one JSON document. Returns whether every follower has what it
/// should have.
///
/// # Errors
/// Where the output cannot be written.
pub fn print(
    reports: &[BindingsReport],
    args: &BindingsArgs,
    json: bool,
    out: &mut (dyn Write + Send),
) -> io::Result<bool> {
    if json {
        serde_json::to_writer_pretty(&mut *out, reports).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        for (position, report) in reports.iter().enumerate() {
            if position > 0 {
                writeln!(out)?;
            }
            table::print(report, args.all, out)?;
        }
    }
    Ok(reports.iter().all(|report| report.total.is_settled()))
}

//! The report for people.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::IpAddr,
};

use comfy_table::{CellAlignment, Table, presets};

use super::{BindingsReport, Difference, FollowerBindings, SourceBinding, Tally};
use crate::mirror::{Origin, RowState};

/// So many addresses are named per follower and kind.
const NAMED: usize = 3;

pub(super) fn print(
    report: &BindingsReport,
    all: bool,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let is_pinned = |binding: &&SourceBinding| binding.origin == Origin::Node;
    let pinned = report.bindings.iter().filter(is_pinned).count();
    if report.source.is_none() && pinned == 0 {
        return writeln!(
            out,
            "bridge {}: the source has no datapath yet, nothing is mirrored",
            report.bridge
        );
    }
    writeln!(
        out,
        "bridge {}: {}, followers: {}, their rows: {}{}",
        report.bridge,
        known(
            report.source.as_deref(),
            report.bindings.len() - pinned,
            pinned
        ),
        report.followers.len(),
        sum(report.total),
        match report.learned_elsewhere {
            0 => String::new(),
            1 => "; 1 row was learned on another bridge".to_owned(),
            rows => format!("; {rows} rows were learned on another bridge"),
        }
    )?;
    if !report.bindings.is_empty() {
        writeln!(out, "\n{}", bindings(report).trim_fmt())?;
    }
    let listed =
        |it: &&FollowerBindings| all || !it.rows.is_settled() || !it.learned_elsewhere.is_empty();
    let followers: Vec<_> = report.followers.iter().filter(listed).collect();
    if !followers.is_empty() {
        writeln!(
            out,
            "\n{}",
            table(
                &[
                    "follower", "right", "stale", "missing", "wrong", "own", "what"
                ],
                followers.into_iter().map(|follower| {
                    let [right, stale, missing, wrong] = counts(follower.rows);
                    vec![
                        follower.port.clone(),
                        right,
                        stale,
                        missing,
                        wrong,
                        follower.own.to_string(),
                        what(follower),
                    ]
                }),
                1..6,
            )
            .trim_fmt()
        )?;
    }
    Ok(())
}

fn bindings(report: &BindingsReport) -> Table {
    table(
        &[
            "neighbour",
            "mac",
            "age",
            "right",
            "stale",
            "missing",
            "wrong",
            "",
        ],
        report.bindings.iter().map(|binding| {
            let [right, stale, missing, wrong] = counts(binding.followers);
            vec![
                binding.ip.to_string(),
                binding
                    .mac
                    .map_or_else(|| "unreadable".to_owned(), |mac| mac.to_string()),
                age(binding.age_ms),
                right,
                stale,
                missing,
                wrong,
                note(binding),
            ]
        }),
        2..7,
    )
}

fn table(
    header: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    numbers: std::ops::Range<usize>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for number in numbers {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn counts(tally: Tally) -> [String; 4] {
    [
        tally.right,
        tally.stale,
        tally.missing,
        tally.wrong + tally.other_datapath,
    ]
    .map(|count| count.to_string())
}

/// How many bindings are known, and from whom.
pub(super) fn known(source: Option<&str>, learnt: usize, pinned: usize) -> String {
    let learnt = source.map(|source| format!("bindings of {source}: {learnt}"));
    let pinned = (pinned > 0).then(|| match learnt {
        Some(_) => format!("of nodes: {pinned}"),
        None => format!("bindings of nodes: {pinned}"),
    });
    let parts: Vec<String> = learnt.into_iter().chain(pinned).collect();
    parts.join(", ")
}

/// What the rows are, all right or not, the kinds that do not occur left out.
pub(super) fn sum(tally: Tally) -> String {
    let parts = [
        (tally.right, "right"),
        (tally.stale, "stale"),
        (tally.missing, "missing"),
        (tally.wrong, "wrong"),
        (tally.other_datapath, "of former routers"),
        (tally.expiring, "expiring with the source's"),
    ];
    let parts: Vec<String> = (parts.iter().enumerate())
        .filter(|(position, (count, _))| *position == 0 || *count > 0)
        .map(|(_, (count, what))| format!("{count} {what}"))
        .collect();
    parts.join(", ")
}

fn note(binding: &SourceBinding) -> String {
    let node = match (binding.origin, binding.node) {
        (Origin::Node, _) => Some("node, pinned".to_owned()),
        (Origin::Source, true) => Some("node".to_owned()),
        (Origin::Source, false) => None,
    };
    let learned = binding.learned_on.as_ref();
    let learned = learned.map(|bridge| format!("learned on {bridge}"));
    let notes: Vec<String> = node.into_iter().chain(learned).collect();
    notes.join(", ")
}

fn what(follower: &FollowerBindings) -> String {
    let differences = &follower.differences;
    let states = [
        (RowState::Missing, "missing"),
        (RowState::Wrong, "wrong"),
        (RowState::OtherDatapath, "of a former router"),
        (RowState::Stale, "stale"),
    ];
    let mut parts: Vec<String> = states
        .iter()
        .filter_map(|(state, name)| {
            let of_state = differences.iter().filter(|it| it.state == *state);
            named(name, of_state.map(name_row))
        })
        .collect();
    let mut by_bridge: BTreeMap<&str, Vec<IpAddr>> = BTreeMap::new();
    for row in &follower.learned_elsewhere {
        by_bridge.entry(&row.bridge).or_default().push(row.ip);
    }
    for (bridge, ips) in by_bridge {
        let ips = ips.iter().map(ToString::to_string);
        parts.extend(named(&format!("learned on {bridge}"), ips));
    }
    parts.join("; ")
}

/// A kind, and the first few rows of it.
fn named(kind: &str, rows: impl Iterator<Item = String>) -> Option<String> {
    let mut rows = rows.peekable();
    rows.peek()?;
    let named: Vec<String> = rows.by_ref().take(NAMED).collect();
    let more = match rows.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{kind}: {}{more}", named.join(", ")))
}

fn name_row(difference: &Difference) -> String {
    match (difference.state, difference.mac) {
        (RowState::Wrong, Some(mac)) => format!("{} is {mac}", difference.ip),
        (RowState::Wrong, None) => format!("{} is unreadable", difference.ip),
        (RowState::Stale, _) => format!("{} ({})", difference.ip, age(difference.age_ms)),
        _ => difference.ip.to_string(),
    }
}

/// Seconds, or what else there is to say.
fn age(age_ms: Option<i64>) -> String {
    match age_ms {
        None => "-".to_owned(),
        Some(ms) if ms < 0 => "future".to_owned(),
        Some(ms) => format!("{} s", ms / 1_000),
    }
}

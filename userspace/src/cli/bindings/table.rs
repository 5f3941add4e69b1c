//! The report for people.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use super::{BindingsReport, Difference, FollowerBindings, Tally};
use crate::mirror::RowState;

/// So many addresses are named per follower and kind.
const NAMED: usize = 3;

pub(super) fn print(
    report: &BindingsReport,
    all: bool,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let Some(source) = &report.source else {
        return writeln!(
            out,
            "bridge {}: the source has no datapath yet, nothing is mirrored",
            report.bridge
        );
    };
    writeln!(
        out,
        "bridge {}: bindings of {source}: {}, followers: {}, their rows: {}",
        report.bridge,
        report.bindings.len(),
        report.followers.len(),
        sum(report.total)
    )?;
    if !report.bindings.is_empty() {
        writeln!(out, "\n{}", bindings(report).trim_fmt())?;
    }
    let listed = |it: &&FollowerBindings| all || !it.rows.is_settled();
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
                        what(&follower.differences),
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
                if binding.node { "node" } else { "" }.to_owned(),
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

fn sum(tally: Tally) -> String {
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

fn what(differences: &[Difference]) -> String {
    let states = [
        (RowState::Missing, "missing"),
        (RowState::Wrong, "wrong"),
        (RowState::OtherDatapath, "of a former router"),
        (RowState::Stale, "stale"),
    ];
    let parts: Vec<String> = states
        .iter()
        .filter_map(|(state, name)| {
            let of_state = || differences.iter().filter(|it| it.state == *state);
            let count = of_state().count();
            let named: Vec<String> = of_state().take(NAMED).map(name_row).collect();
            (count > 0).then(|| {
                let more = count.saturating_sub(NAMED);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("{name}: {}{more}", named.join(", "))
            })
        })
        .collect();
    parts.join("; ")
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

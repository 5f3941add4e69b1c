//! What is said of one frame.

use std::{
    io::{self, Write},
    sync::Arc,
};

use neighsteer_common::Verdict;
use serde::Serialize;

use crate::{
    audit::{Disagreement, LOOKUP_LIMIT, Sight, Step, Translation, Visit},
    openflow::Cookie,
    plan::{COOKIE, SteeringMark},
};

/// One frame, as `--output json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    /// The bridge.
    pub(super) bridge: Arc<str>,
    /// The port that the frame comes in by.
    pub(super) in_port: Arc<str>,
    /// The mark that the datapath gives it there; `None` = it gives none.
    pub(super) mark: Option<SteeringMark>,
    /// The frame, in hex.
    pub(super) frame: String,
    /// What the classifier says.
    pub(super) classifier: Classified,
    /// Where the flows say otherwise.
    pub(super) disagreements: Vec<Disagreement>,
    /// What Open vSwitch does.
    pub(super) translation: Translation,
    /// Who is behind the patch ports that it goes out by.
    pub(super) seen_by: Vec<Sight>,
}

/// What the classifier says of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Classified {
    kind: &'static str,
    decision: &'static str,
    notes: Vec<&'static str>,
}

impl From<Verdict> for Classified {
    fn from(verdict: Verdict) -> Self {
        Self {
            kind: verdict.kind.name(),
            decision: verdict.decision.name(),
            notes: verdict.notes.names().collect(),
        }
    }
}

impl Report {
    pub(super) fn print(&self, all: bool, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let bytes = self.frame.len() / 2;
        let (bridge, port) = (&self.bridge, &self.in_port);
        let mark = self.mark.map(|mark| format!(", marked {mark}"));
        let mark = mark.unwrap_or_default();
        writeln!(
            out,
            "frame       {bytes} bytes into {bridge} by {port}{mark}"
        )?;
        let Classified {
            kind,
            decision,
            notes,
        } = &self.classifier;
        let notes = match notes.as_slice() {
            [] => String::new(),
            notes => format!(" ({})", notes.join(", ")),
        };
        writeln!(out, "classifier  {kind}: {decision}{notes}")?;
        let first = self.translation.visits.first();
        match first.and_then(|visit| visit.steps.first()) {
            Some(step) => writeln!(out, "flow table  {}", brief(step))?,
            None => writeln!(out, "flow table  no lookup was made")?,
        }
        for disagreement in &self.disagreements {
            writeln!(out, "DISAGREE    {disagreement}")?;
        }
        let translation = &self.translation;
        let limit = if translation.over_limit {
            ": over the limit"
        } else {
            ""
        };
        writeln!(
            out,
            "lookups     {} of {LOOKUP_LIMIT}{limit}",
            translation.lookups
        )?;
        for failure in &translation.failures {
            writeln!(out, "failed      {failure}")?;
        }
        for actions in &translation.datapath_actions {
            writeln!(out, "datapath    {actions}")?;
        }
        self.print_sights(out)?;
        writeln!(out, "flows")?;
        let visits = translation.visits.iter();
        for visit in visits.filter(|visit| all || visit.depth == 0) {
            print_visit(visit, out)?;
        }
        Ok(())
    }

    fn print_sights(&self, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let routers = self.seen_by.iter().filter(|it| it.router.is_some());
        writeln!(out, "seen by     gateway routers: {}", routers.count())?;
        for sight in &self.seen_by {
            let who = match &sight.router {
                Some(router) if sight.is_source => format!("{router}, the source"),
                Some(router) => router.to_string(),
                None => "no router of the group".to_owned(),
            };
            let learns = if sight.learns { ", learns" } else { "" };
            let cut_off = if sight.cut_off { ", cut off" } else { "" };
            let (port, lookups) = (&sight.port, sight.lookups);
            writeln!(
                out,
                "  {who}: by {port}, {lookups} lookups{learns}{cut_off}"
            )?;
        }
        Ok(())
    }
}

/// Priority and owner of the flow that decides.
fn brief(step: &Step) -> String {
    match step.priority {
        Some(priority) => format!(
            "priority {priority}, cookie {}: {}",
            cookie(step.cookie),
            actions(step)
        ),
        None => format!("no flow matches: {}", actions(step)),
    }
}

fn print_visit(visit: &Visit, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let indent = "  ".repeat(visit.depth + 1);
    let by = visit.in_port.as_deref();
    let by = by.map_or_else(String::new, |port| format!(" by {port}"));
    writeln!(out, "{indent}{}{by}", visit.bridge)?;
    for step in &visit.steps {
        let matched = match step.matched.as_str() {
            "" => "any",
            matched => matched,
        };
        let priority = step
            .priority
            .map_or_else(|| "-".to_owned(), |priority| priority.to_string());
        writeln!(
            out,
            "{indent}  table {}, priority {priority}, cookie {}, {matched}: {}",
            step.table,
            cookie(step.cookie),
            actions(step)
        )?;
    }
    Ok(())
}

fn cookie(cookie: Cookie) -> String {
    let ours = if cookie == COOKIE { " (ours)" } else { "" };
    format!("{cookie}{ours}")
}

fn actions(step: &Step) -> String {
    match step.actions.as_slice() {
        [] => "-".to_owned(),
        actions => actions.join(", "),
    }
}

//! The output of `ofproto/trace`: which flows a frame takes, bridge by bridge.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::PortNames;
use crate::openflow::Cookie;

/// So many lookups in flow tables one translation may make, all bridges together (`MAX_RESUBMITS` in
/// Open vSwitch); a frame that goes through conntrack is translated anew behind it.
pub const LOOKUP_LIMIT: usize = 4_096;

/// How a frame is translated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Translation {
    /// Lookups of the translation that has the most of them.
    pub lookups: usize,
    /// Whether a translation ran into the limit, so that the rest of its actions was lost.
    pub over_limit: bool,
    /// What else went wrong, in the words of Open vSwitch.
    pub failures: Vec<String>,
    /// The bridges that the frame went through, each as often as it did.
    pub visits: Vec<Visit>,
    /// What the datapath is told to do, one text a translation.
    pub datapath_actions: Vec<String>,
}

/// One way of a frame through the tables of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Visit {
    /// The bridge.
    pub bridge: String,
    /// 0 for the bridge that was asked, one more behind each patch port.
    pub depth: usize,
    /// The port that it came in by, as the flow of the first lookup names it.
    pub in_port: Option<String>,
    /// The flows that it took, in order.
    pub steps: Vec<Step>,
    /// How often it was handed to ovn-controller, which learns bindings so.
    pub to_controller: usize,
    /// Whether the limit was reached here.
    pub cut_off: bool,
}

/// One lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The table.
    pub table: u8,
    /// The flow's priority; `None` where no flow matched.
    pub priority: Option<u16>,
    /// The flow's cookie; 0 where it has none.
    #[serde(serialize_with = "hex")]
    pub cookie: Cookie,
    /// The flow's match, as it was printed.
    #[serde(rename = "match")]
    pub matched: String,
    /// Its actions, as far as they were carried out.
    pub actions: Vec<String>,
}

/// A bridge on the way to the current line.
struct Open {
    visit: usize,
    /// The column of the first lookup, the padding of its number aside: lines further left are of
    /// the bridge before.
    content: Option<usize>,
    /// The lookups, each with the column that its actions are in.
    steps: Vec<Option<usize>>,
}

impl Translation {
    /// Reads the output. Lines that are not understood are passed over: they are not lookups.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut translation = Self::default();
        let mut open: Vec<Open> = Vec::new();
        let mut lookups = 0;
        for line in text.lines() {
            let trimmed = line.trim_start();
            let column = line.len() - trimmed.len();
            if let Some(actions) = trimmed.strip_prefix("Datapath actions: ") {
                translation.datapath_actions.push(actions.to_owned());
                translation.lookups = translation.lookups.max(lookups);
                lookups = 0;
                open.clear();
                continue;
            }
            if let Some(failure) = trimmed.strip_prefix("Translation failed") {
                let failure = failure.trim_start();
                translation.failures.push(failure.to_owned());
                continue;
            }
            // Lines outside of bridges: the flow, the megaflow, rules.
            if column == 0 && (trimmed.is_empty() || trimmed.starts_with("Flow: ")) {
                continue;
            }
            while let Some(Open { content, .. }) = open.last()
                && content.is_some_and(|content| column < content)
            {
                open.pop();
            }
            if let Some(bridge) = heading(trimmed) {
                open.push(Open {
                    visit: translation.visits.len(),
                    content: None,
                    steps: Vec::new(),
                });
                translation.visits.push(Visit {
                    bridge: bridge.to_owned(),
                    depth: open.len() - 1,
                    ..Visit::default()
                });
            } else if let Some(current) = open.last_mut()
                && let Some(visit) = translation.visits.get_mut(current.visit)
            {
                lookups += usize::from(current.line(visit, column, trimmed));
            }
        }
        translation.lookups = translation.lookups.max(lookups);
        translation.over_limit = text.contains("resubmit actions <<<<")
            || translation
                .failures
                .iter()
                .any(|it| it.contains("resubmits"));
        translation
    }
}

/// The numbers that the datapath has for ports (`dpif/show`), which its actions are printed with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatapathPorts(BTreeMap<String, String>);

impl DatapathPorts {
    /// Reads the output of `dpif/show`: `name ofport/number: (type)`, a line a port. Patch ports have
    /// no number.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let ports = text.lines().filter_map(|line| {
            let (name, rest) = line.trim().rsplit_once(": (")?.0.rsplit_once(' ')?;
            let (_, number) = rest.split_once('/')?;
            number.parse::<u32>().ok()?;
            Some((number.to_owned(), name.to_owned()))
        });
        Self(ports.collect())
    }

    /// Actions with names for numbers.
    fn name(&self, actions: &str) -> String {
        let mut depth = 0_usize;
        let parts = actions.split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && c == ','
        });
        let named = parts.map(|part| self.0.get(part).map_or(part, String::as_str));
        named.collect::<Vec<_>>().join(",")
    }
}

impl Translation {
    /// Puts names in the place of port numbers. `ofproto/trace --names` does it too, and takes
    /// seconds for it on a node with hundreds of ports.
    #[must_use]
    pub fn with_names(mut self, names: &PortNames, datapath: &DatapathPorts) -> Self {
        for visit in &mut self.visits {
            let named = |port: &str| names.printed(&visit.bridge, port);
            if let Some(port) = &mut visit.in_port
                && let Some(name) = named(port)
            {
                *port = name.to_string();
            }
            for step in &mut visit.steps {
                let fields = step.matched.split(',').map(|field| {
                    let name = field.strip_prefix("in_port=").and_then(named);
                    name.map_or_else(|| field.to_owned(), |name| format!("in_port={name}"))
                });
                step.matched = fields.collect::<Vec<_>>().join(",");
                for action in &mut step.actions {
                    if let Some(name) = action.strip_prefix("output:").and_then(named) {
                        *action = format!("output:{name}");
                    }
                }
            }
        }
        for actions in &mut self.datapath_actions {
            *actions = datapath.name(actions);
        }
        self
    }
}

impl Open {
    /// Reads a line of a bridge; whether it is a lookup.
    fn line(&mut self, visit: &mut Visit, column: usize, text: &str) -> bool {
        if let Some(step) = lookup(text) {
            // Numbers are padded to two digits.
            let content = column.saturating_sub(usize::from(step.table < 10));
            if self.content.is_none() {
                self.content = Some(content);
                visit.in_port = in_port(&step.matched);
            }
            visit.steps.push(step);
            self.steps.push(None);
            return true;
        }
        if text.starts_with(">>>>") && text.contains("resubmit actions") {
            visit.cut_off = true;
        }
        let is_detail = text.starts_with("->") || text.starts_with(">>") || text.starts_with("--");
        let (Some(last), false) = (self.steps.last_mut(), is_detail) else {
            return false;
        };
        // The first action behind a lookup says which column that one's actions are in.
        last.get_or_insert(column);
        let owner = self.steps.iter().rposition(|it| *it == Some(column));
        if let Some(step) = owner.and_then(|index| visit.steps.get_mut(index)) {
            step.actions.push(text.to_owned());
        }
        visit.to_controller += usize::from(text.starts_with("controller("));
        false
    }
}

fn hex<S: Serializer>(cookie: &Cookie, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cookie)
}

fn heading(text: &str) -> Option<&str> {
    text.strip_prefix("bridge(\"")?.strip_suffix("\")")
}

/// `36. reg0=0x1,metadata=0x2, priority 100, cookie 0xab`, or `0. No match.`
fn lookup(text: &str) -> Option<Step> {
    let (table, rest) = text.split_once(". ")?;
    let mut step = Step {
        table: table.parse().ok()?,
        ..Step::default()
    };
    for part in rest.split(", ") {
        if let Some(value) = part.strip_prefix("priority ") {
            step.priority = value.parse().ok();
        } else if let Some(value) = part.strip_prefix("cookie 0x") {
            step.cookie = Cookie(u64::from_str_radix(value, 16).unwrap_or_default());
        } else if !part.starts_with("No match") {
            part.clone_into(&mut step.matched);
        }
    }
    Some(step)
}

fn in_port(matched: &str) -> Option<String> {
    let port = matched
        .split(',')
        .find_map(|it| it.strip_prefix("in_port="))?;
    Some(port.trim_matches('"').to_owned())
}

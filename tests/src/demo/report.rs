//! The demo's figures: as data, as text, and what must be true of them.

use std::fmt::{self, Display};

use serde::Serialize;

use super::agent::Latency;
use super::measure::FRAMES;
use crate::lab::Versions;

/// How many lookups Open vSwitch makes for one frame before it gives up.
const LIMIT: usize = 4096;

/// What Open vSwitch does with one inbound frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Translation {
    /// Lookups in flow tables.
    pub lookups: usize,
    /// Whether the limit of 4,096 was hit.
    pub over_limit: bool,
    /// Gateway routers that learn the binding from the frame itself.
    pub routers_that_learn: usize,
}

/// One packet to a host that nobody had resolved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FirstPing {
    /// From the request to the answer, ms; `None` when there was no answer.
    pub round_trip_ms: Option<f64>,
    /// From the source's row seen to the followers' rows committed, ms, to 1 ms.
    pub mirror_ms: Option<u64>,
}

/// The figures of one set of flows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mode {
    /// A unicast ARP reply.
    pub arp_reply: Translation,
    /// A unicast Neighbor Advertisement.
    pub advertisement: Translation,
    /// CPU time of ovs-vswitchd for 1,000 ARP replies of as many new neighbours.
    pub vswitchd_cpu_seconds_per_1000_frames: f64,
    /// New neighbours, of the 50 that sent a frame, that any gateway router knows afterwards.
    pub neighbours_known: usize,
    /// Gateway routers that hold a new neighbour's binding afterwards.
    pub routers_with_binding: usize,
    /// Replies to one broadcast request for the node's address.
    pub replies_to_who_has: usize,
    /// The last UDN's pod, IPv4.
    pub ping_ipv4: FirstPing,
    /// The last UDN's pod, IPv6.
    pub ping_ipv6: FirstPing,
}

/// All figures of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Primary UDNs besides the default network.
    pub udns: u16,
    /// What it ran on.
    pub versions: Versions,
    /// Today's flows.
    pub legacy: Mode,
    /// Steered flows, with the agent's mirror.
    pub steered: Mode,
    /// The mirror's latency over the whole run.
    pub mirror_latency: Option<Latency>,
    /// The agent's resident memory at the end.
    pub agent_resident_bytes: u64,
}

impl Report {
    /// What the demo promises and this run did not show.
    #[must_use]
    pub fn broken_promises(&self) -> Vec<String> {
        let steered = &self.steered;
        let mut broken = Vec::new();
        let mut promise = |kept: bool, text: String| {
            if !kept {
                broken.push(text);
            }
        };
        for (kind, steered, legacy) in [
            ("ARP reply", steered.arp_reply, self.legacy.arp_reply),
            ("NA", steered.advertisement, self.legacy.advertisement),
        ] {
            promise(
                !steered.over_limit && steered.lookups < legacy.lookups,
                format!(
                    "steered, a unicast {kind} takes {} lookups (legacy {})",
                    steered.lookups, legacy.lookups
                ),
            );
            promise(
                steered.routers_that_learn == 1,
                format!(
                    "steered, {} routers learn from a unicast {kind}, not the default one alone",
                    steered.routers_that_learn
                ),
            );
        }
        let routers = usize::from(self.udns) + 1;
        promise(
            steered.routers_with_binding == routers,
            format!(
                "mirrored, {} of {routers} routers hold a new neighbour's binding",
                steered.routers_with_binding
            ),
        );
        promise(
            steered.replies_to_who_has > 0,
            "steered, nobody answers for the node's address".to_owned(),
        );
        for (family, ping) in [("IPv4", steered.ping_ipv4), ("IPv6", steered.ping_ipv6)] {
            promise(
                ping.round_trip_ms.is_some(),
                format!("steered and mirrored, the first {family} ping is not answered"),
            );
        }
        broken
    }

    /// The table's lines: what, legacy, steered.
    fn lines(&self) -> Vec<[String; 3]> {
        let both = |what: &str, of: &dyn Fn(&Mode) -> String| {
            [what.to_owned(), of(&self.legacy), of(&self.steered)]
        };
        let limit = |translation: Translation| match translation.over_limit {
            true => format!("more than {} (limit hit)", thousands(LIMIT)),
            false => thousands(translation.lookups),
        };
        let routers = usize::from(self.udns) + 1;
        vec![
            both("OVS lookups, unicast ARP reply", &|mode| {
                limit(mode.arp_reply)
            }),
            both("OVS lookups, unicast NA", &|mode| limit(mode.advertisement)),
            both("gateway routers that learn from the ARP reply", &|mode| {
                format!("{} of {routers}", mode.arp_reply.routers_that_learn)
            }),
            both("gateway routers that learn from the NA", &|mode| {
                format!("{} of {routers}", mode.advertisement.routers_that_learn)
            }),
            both("new neighbours known after a frame of each", &|mode| {
                format!("{} of {FRAMES}", mode.neighbours_known)
            }),
            both("gateway routers with a new neighbour's binding", &|mode| {
                format!("{} of {routers}", mode.routers_with_binding)
            }),
            both(
                "ovs-vswitchd CPU per 1,000 ARP frames, new neighbours",
                &|mode| format!("{:.1} s", mode.vswitchd_cpu_seconds_per_1000_frames),
            ),
            both("replies to one who-has of the node's address", &|mode| {
                mode.replies_to_who_has.to_string()
            }),
            both("first IPv4 ping of the last UDN's pod", &|mode| {
                ping(mode.ping_ipv4)
            }),
            both("first IPv6 ping of the last UDN's pod", &|mode| {
                ping(mode.ping_ipv6)
            }),
            both(
                "mirror, IPv4: source row seen to followers' rows committed",
                &|mode| mirror(mode.ping_ipv4),
            ),
            both(
                "mirror, IPv6: source row seen to followers' rows committed",
                &|mode| mirror(mode.ping_ipv6),
            ),
        ]
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!("one node, {} UDNs and the default network", self.udns);
        let mut lines = vec![[title, "legacy".to_owned(), "steered".to_owned()]];
        lines.extend(self.lines());
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let (first, second, third) = (width(0), width(1), width(2));
        for (number, [what, legacy, steered]) in lines.iter().enumerate() {
            writeln!(
                formatter,
                "{what:<first$}   {legacy:>second$}   {steered:>third$}"
            )?;
            if number == 0 {
                writeln!(formatter, "{}", "─".repeat(first + second + third + 6))?;
            }
        }
        if let Some(latency) = self.mirror_latency {
            writeln!(
                formatter,
                "mirror over the run, the burst of {FRAMES} new neighbours included: {} bindings \
                 to {} followers, median {} ms, longest {} ms",
                latency.count, self.udns, latency.p50, latency.max
            )?;
        }
        let mebibytes = self.agent_resident_bytes / (1 << 20);
        writeln!(formatter, "agent's resident memory: {mebibytes} MiB")?;
        let Versions { ovn, open_vswitch } = &self.versions;
        writeln!(
            formatter,
            "versions: OVN {ovn}, Open vSwitch {open_vswitch}"
        )
    }
}

fn ping(ping: FirstPing) -> String {
    match ping.round_trip_ms {
        None => "lost".to_owned(),
        Some(time) => format!("{time:.1} ms"),
    }
}

fn mirror(ping: FirstPing) -> String {
    match ping.mirror_ms {
        None => "–".to_owned(),
        Some(time) => format!("{time} ms"),
    }
}

fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(learn: usize, lookups: usize, ping: Option<f64>) -> Mode {
        let translation = Translation {
            lookups,
            over_limit: lookups > LIMIT,
            routers_that_learn: learn,
        };
        let ping = FirstPing {
            round_trip_ms: ping,
            mirror_ms: None,
        };
        Mode {
            arp_reply: translation,
            advertisement: translation,
            vswitchd_cpu_seconds_per_1000_frames: 1.0,
            neighbours_known: 50,
            routers_with_binding: 101,
            replies_to_who_has: 2,
            ping_ipv4: ping,
            ping_ipv6: ping,
        }
    }

    fn report(steered: Mode) -> Report {
        Report {
            udns: 100,
            versions: Versions {
                ovn: "23.03.1".to_owned(),
                open_vswitch: "3.1.0".to_owned(),
            },
            legacy: mode(81, 4097, None),
            steered,
            mirror_latency: None,
            agent_resident_bytes: 1 << 24,
        }
    }

    #[test]
    fn a_run_that_shows_everything_breaks_no_promise() {
        assert_eq!(
            report(mode(1, 51, Some(14.0))).broken_promises(),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_lost_ping_breaks_a_promise_for_each_family() {
        let broken = report(mode(1, 51, None)).broken_promises();
        assert_eq!(broken.len(), 2, "{broken:?}");
    }

    #[test]
    fn fan_out_while_steered_breaks_promises() {
        let broken = report(mode(81, 4097, Some(1.0))).broken_promises();
        assert_eq!(broken.len(), 4, "{broken:?}");
    }

    #[test]
    fn the_table_says_where_the_limit_was_hit() {
        let text = report(mode(1, 51, Some(14.0))).to_string();
        assert!(text.contains("more than 4,096 (limit hit)"), "{text}");
    }
}

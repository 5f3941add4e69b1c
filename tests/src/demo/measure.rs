//! One measurement each.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use neighsteer::ids::Mac;

use crate::frames::{self, who_has};
use crate::lab::{
    BRIDGE_MAC, Daemon, GATEWAY_IPV4, GATEWAY_MAC, Lab, NODE_IPV4, NODE_IPV6, Network, Result,
    wait_until,
};

use super::report::Translation;

/// Frames sent to measure what new neighbours cost: enough for a tick of CPU time each way.
pub(super) const FRAMES: u8 = 50;
/// Slow enough for ovn-controller to write what today's flows make of a frame, at 100 UDNs.
const PACE: Duration = Duration::from_millis(100);
/// The daemons are idle when they use less than 30 ms in this time.
const IDLE_WINDOW: Duration = Duration::from_millis(600);
const IDLE_USE: Duration = Duration::from_millis(30);
const SETTLED: Duration = Duration::from_secs(300);
const PING: Duration = Duration::from_secs(5);

/// Addresses that nobody on the node has resolved before this run.
pub(crate) struct Addresses {
    run: u8,
    pub(crate) host_ipv4: Ipv4Addr,
    pub(crate) host_ipv6: Ipv6Addr,
}

impl Addresses {
    pub(crate) fn of_run(run: u8) -> Self {
        Self {
            run,
            host_ipv4: Ipv4Addr::new(172, 18, 100, run),
            host_ipv6: Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 100, u16::from(run)),
        }
    }

    fn neighbour(&self, number: u8) -> (Mac, Ipv4Addr) {
        (
            Mac([0x02, 0xaa, 0, 0, self.run, number]),
            Ipv4Addr::new(172, 18, 100 + self.run, number),
        )
    }
}

fn translation(lab: &Lab, frame: &[u8]) -> Result<Translation> {
    let trace = lab.trace(&lab.uplink(), frame)?;
    Ok(Translation {
        lookups: trace.lookups,
        over_limit: trace.over_limit,
        routers_that_learn: trace.learned,
    })
}

/// A unicast ARP reply of a host that is not known yet.
pub(crate) fn arp_reply(lab: &Lab, addresses: &Addresses) -> Result<Translation> {
    let from = addresses.host_ipv4;
    translation(
        lab,
        &frames::arp_reply(GATEWAY_MAC, from, BRIDGE_MAC, NODE_IPV4),
    )
}

/// A unicast Neighbor Advertisement of a host that is not known yet.
pub(crate) fn advertisement(lab: &Lab, addresses: &Addresses) -> Result<Translation> {
    let target = addresses.host_ipv6;
    translation(
        lab,
        &frames::neighbor_advertisement(GATEWAY_MAC, target, BRIDGE_MAC, NODE_IPV6),
    )
}

/// How often a broadcast request for the node's address is answered.
pub(crate) fn replies_to_who_has(lab: &Lab) -> Result<usize> {
    let capture = lab.capture_outside()?;
    let question = who_has(GATEWAY_MAC, GATEWAY_IPV4, NODE_IPV4);
    lab.send_from_outside(&[question], Duration::ZERO)?;
    let is_answer = |frame: &[u8]| {
        // ARP (EtherType at 12), operation reply (at 20), sender address (at 28).
        frame.get(12..14) == Some(&[8, 6])
            && frame.get(20..22) == Some(&[0, 2])
            && frame.get(28..32) == Some(&NODE_IPV4.octets())
    };
    wait_until(
        PING,
        "an answer to a request for the node's address",
        || match capture.count(is_answer) {
            0 => Err("none"),
            _ => Ok(()),
        },
    )?;
    capture.count_when_quiet(Duration::from_millis(500), is_answer)
}

/// What the frames of new neighbours led to.
pub(crate) struct Neighbours {
    pub(crate) cpu_seconds_per_1000: f64,
    /// Neighbours that any router knows, of [`FRAMES`].
    pub(crate) known: usize,
    /// Routers that hold a neighbour's binding, for the neighbour that most know.
    pub(crate) routers: usize,
}

/// Sends unicast ARP replies of as many new neighbours, and waits until OVN has done with them.
///
/// Not all of them need to be learned: ovn-controller has a queue of limited length for bindings
/// that it was asked to write, and drops the rest.
pub(crate) fn new_neighbours(
    lab: &Lab,
    addresses: &Addresses,
    mirrored: bool,
) -> Result<Neighbours> {
    let neighbours: Vec<_> = (1..=FRAMES)
        .map(|number| addresses.neighbour(number))
        .collect();
    let replies: Vec<_> = neighbours
        .iter()
        .map(|(mac, ip)| frames::arp_reply(*mac, *ip, BRIDGE_MAC, NODE_IPV4))
        .collect();
    let routers_by_neighbour = || -> Result<BTreeMap<String, usize>> {
        let mut routers = BTreeMap::new();
        for binding in lab.all_mac_bindings()? {
            *routers.entry(binding.ip).or_default() += 1;
        }
        routers.retain(|ip, _| neighbours.iter().any(|(_, known)| known.to_string() == *ip));
        Ok(routers)
    };
    wait_until_idle(lab)?;
    let before = lab.cpu(Daemon::Vswitchd)?;
    lab.send_from_outside(&replies, PACE)?;
    // Bindings take a while to be seen anywhere; only then does idle mean done.
    let enough = if mirrored { lab.networks().count() } else { 1 };
    wait_until(SETTLED, "a new neighbour's bindings", || {
        let routers = routers_by_neighbour().map_err(|error| error.to_string())?;
        let most = routers.values().copied().max().unwrap_or_default();
        if most >= enough {
            Ok(())
        } else {
            Err(format!("on {most} of {enough} routers"))
        }
    })?;
    wait_until_idle(lab)?;
    let used = lab.cpu(Daemon::Vswitchd)?.saturating_sub(before);
    let routers = routers_by_neighbour()?;
    Ok(Neighbours {
        cpu_seconds_per_1000: used.as_secs_f64() * 1000.0 / f64::from(FRAMES),
        known: routers.len(),
        routers: routers.into_values().max().unwrap_or_default(),
    })
}

/// Waits until no daemon has anything to do.
fn wait_until_idle(lab: &Lab) -> Result<()> {
    let used =
        || -> Result<Duration> { Ok(lab.cpu(Daemon::Vswitchd)? + lab.cpu(Daemon::Controller)?) };
    let mut window = (Instant::now(), used()?);
    wait_until(SETTLED, "the daemons to be idle", || {
        let (since, at) = window;
        let now = used().map_err(|error| error.to_string())?;
        if now.saturating_sub(at) > IDLE_USE {
            window = (Instant::now(), now);
            return Err(format!(
                "{:?} used in {:?}",
                now.saturating_sub(at),
                since.elapsed()
            ));
        }
        if since.elapsed() < IDLE_WINDOW {
            return Err("idle, but not for long".to_owned());
        }
        Ok(())
    })
}

/// The first packet from a network's pod to a host that nobody has resolved.
pub(crate) fn first_ping(lab: &Lab, network: Network, host: IpAddr) -> Result<Option<Duration>> {
    wait_until_idle(lab)?;
    lab.add_external_host(host)?;
    lab.ping(network, host, PING)
}

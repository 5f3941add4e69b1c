//! What a user feels: the first ping of a UDN's pod to a host that nobody has resolved, with rows
//! written in chunks and all in one transaction.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use anyhow::ensure;
use neighsteer_tests::{
    lab::{GATEWAY_IPV4, GATEWAY_IPV6, Lab, Network},
    report::Times,
};
use serde::Serialize;

use crate::node;

/// An agent that writes whatever there is in one transaction.
const AT_ONCE: [&str; 2] = ["--mirror-first-rows=100000", "--mirror-rows=100000"];
/// From so many followers on, chunks are to be worth it.
const MANY: usize = 200;
/// Hosts in a row by one agent, before the other one has its turn.
const BLOCK: u16 = 5;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is measured.
#[derive(clap::Args)]
#[group(skip)]
#[command(next_help_heading = "First ping")]
pub(crate) struct Args {
    /// Fresh hosts of either family that are pinged with each agent
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(3..=100))]
    hosts: u16,
}

#[derive(Serialize)]
pub(crate) struct Report {
    followers: usize,
    chunked: Run,
    at_once: Run,
}

#[derive(Serialize)]
struct Run {
    ipv4: Times,
    ipv6: Times,
    /// Both families, of pods of the first follower that is served, one in the middle and the last.
    first: Times,
    middle: Times,
    last: Times,
    pings: usize,
    lost: usize,
}

impl Report {
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for (what, run) in self.runs() {
            if run.lost > 0 {
                missed.push(format!("{} first pings lost, {what}", run.lost));
            }
        }
        // With fewer followers there is but one chunk.
        let many = self.followers >= MANY;
        if many && self.chunked.ipv4.median_ms > self.at_once.ipv4.median_ms {
            missed.push("chunks, which answer no sooner than one transaction".to_owned());
        }
        missed
    }

    fn runs(&self) -> [(&'static str, &Run); 2] {
        [
            ("in chunks", &self.chunked),
            ("one transaction", &self.at_once),
        ]
    }

    pub(crate) fn print(&self) {
        println!(
            "first ping of a pod to an unresolved host at {} followers; median (p90) in ms",
            self.followers
        );
        println!(
            "  {:<16}{:>12}{:>12}{:>16}{:>16}{:>16}{:>10}",
            "", "IPv4", "IPv6", "first follower", "middle", "last", "lost"
        );
        for (what, run) in self.runs() {
            let times = |times: &Times| format!("{:.0} ({:.0})", times.median_ms, times.p90_ms);
            println!(
                "  {what:<16}{:>12}{:>12}{:>16}{:>16}{:>16}{:>10}",
                times(&run.ipv4),
                times(&run.ipv6),
                times(&run.first),
                times(&run.middle),
                times(&run.last),
                format!("{} of {}", run.lost, run.pings)
            );
        }
        println!(
            "  targets: none lost; from {MANY} followers on, IPv4's median in chunks at most that of one transaction"
        );
    }
}

/// The followers whose pods ask: the first, the middle and the last in the order in which the agent
/// serves them, which is that of their names.
pub(crate) fn pods(followers: u16) -> Vec<u16> {
    let mut order: Vec<u16> = (1..=followers).collect();
    order.sort_by_key(|id| Network(*id).gateway_router());
    let middle = order.get(order.len() / 2);
    let pods = [order.first(), middle, order.last()];
    pods.into_iter().flatten().copied().collect()
}

#[derive(Default)]
struct Samples {
    families: [Vec<Duration>; 2],
    places: [Vec<Duration>; 3],
    pings: usize,
}

impl Samples {
    fn note(&mut self, family: usize, place: usize, time: Option<Duration>) {
        self.pings += 1;
        let lists = [self.families.get_mut(family), self.places.get_mut(place)];
        for list in lists.into_iter().flatten() {
            list.extend(time);
        }
    }

    fn run(self) -> Run {
        let answered: usize = self.families.iter().map(Vec::len).sum();
        let [ipv4, ipv6] = self.families.map(Times::of);
        let [first, middle, last] = self.places.map(Times::of);
        Run {
            ipv4,
            ipv6,
            first,
            middle,
            last,
            pings: self.pings,
            lost: self.pings - answered,
        }
    }
}

/// Lets two agents take turns on a lab with [`pods`].
///
/// # Errors
/// When lab or agent do not do their part.
pub(crate) fn measure(lab: &Lab, args: &Args) -> anyhow::Result<Report> {
    let followers = lab.udns().count();
    let pods = pods(u16::try_from(followers)?);
    let mut samples = [Samples::default(), Samples::default()];
    for block in 0..args.hosts.div_ceil(BLOCK) {
        let ways: [(usize, &[&str]); 2] = [(0, &[]), (1, &AT_ONCE)];
        for (way, flags) in ways {
            eprintln!("first pings, block {block}: {flags:?}");
            let Some(samples) = samples.get_mut(way) else {
                continue;
            };
            lab.clear_mac_bindings()?;
            let agent = node::agent(lab, flags)?;
            for pod in &pods {
                // It resolves its own gateway, which is not what is measured.
                for gateway in [GATEWAY_IPV4.into(), GATEWAY_IPV6.into()] {
                    lab.ping(Network(*pod), gateway, PATIENCE)?;
                }
            }
            let hosts = block * BLOCK..args.hosts.min((block + 1) * BLOCK);
            for host in hosts {
                let number = u8::try_from(host)?;
                let place = usize::from(host) % pods.len();
                let Some(pod) = pods.get(place) else { continue };
                let low = u16::from(number) + 100 * u16::try_from(way)?;
                let addresses: [IpAddr; 2] = [
                    Ipv4Addr::new(172, 18, 100, u8::try_from(low)?).into(),
                    Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 100, low).into(),
                ];
                for (family, address) in addresses.into_iter().enumerate() {
                    let rows = node::mirror(lab)?.rows;
                    lab.add_external_host(address)?;
                    let time = lab.ping(Network(*pod), address, PATIENCE)?;
                    samples.note(family, place, time);
                    if time.is_some() {
                        node::settled(lab, |mirror| mirror.rows > rows + followers)?;
                    }
                    lab.remove_external_host(address)?;
                    // ovn-controller and the switch have done all that there is, before the next host.
                    lab.sync()?;
                }
            }
            drop(agent);
        }
    }
    let [chunked, at_once] = samples;
    ensure!(chunked.pings == at_once.pings, "not as many pings of both");
    Ok(Report {
        followers,
        chunked: chunked.run(),
        at_once: at_once.run(),
    })
}

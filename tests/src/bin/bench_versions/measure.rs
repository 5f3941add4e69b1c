//! One lab, and what is measured in it.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use neighsteer::ids::Mac;
use neighsteer_tests::{
    demo::wait_until_steered,
    frames::{arp_announcement, arp_reply, unsolicited_advertisement},
    lab::{
        AgentProcess, BRIDGE, BRIDGE_MAC, FlowSet, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, Lab,
        NODE_IPV4, Network, OvnVersion, Versions, wait_until,
    },
    report::Times,
};
use serde::Serialize;
use serde_json::Value;

use crate::{load, rows};

const PING: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) versions: Versions,
    /// Until OVN had installed everything, s.
    pub(crate) up_s: f64,
    /// Without the lost ones.
    pub(crate) ping_ipv4: Times,
    pub(crate) ping_ipv6: Times,
    pub(crate) pings: usize,
    pub(crate) lost: usize,
    pub(crate) mac_change_ipv4: Times,
    pub(crate) mac_change_ipv6: Times,
    pub(crate) put_back: Times,
    pub(crate) herd: Times,
    pub(crate) agent_resident_bytes: u64,
}

/// Brings a lab up with the agent, and measures in it under load.
///
/// # Errors
/// When the lab or the agent does not do its part.
pub(crate) fn measure(
    version: OvnVersion,
    udns: u16,
    rounds: u8,
    neighbours: u8,
) -> anyhow::Result<Report> {
    eprintln!("OVN {version}: bringing up {udns} UDNs");
    let start = Instant::now();
    let lab = Lab::builder()
        .udns(udns)
        .pods([udns])
        .flows(FlowSet::Base)
        .version(version)
        .start()?;
    let up_s = start.elapsed().as_secs_f64();
    let mut agent = lab.agent([
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
        "--datapath=none",
    ])?;
    wait_until_steered(&lab, &mut agent)?;
    eprintln!("OVN {version}: {neighbours} neighbours appear");
    let routers = usize::from(udns) + 1;
    for number in 1..=neighbours {
        let (mac, ip) = load::neighbour(number);
        let frame = arp_reply(mac, ip, BRIDGE_MAC, NODE_IPV4);
        rows::say_until(&lab, &[frame], ip.into(), mac, routers)?;
    }
    let bench = Bench {
        lab: &lab,
        pod: Network(udns),
        rounds,
        routers,
    };
    let (stop, stopped) = channel();
    thread::scope(|scope| {
        let load = scope.spawn({
            let lab = &lab;
            move || load::run(lab, neighbours, &stopped)
        });
        let report = bench.run(up_s, &agent);
        drop(stop);
        let load = load.join().map_err(|_| anyhow!("the load has panicked"))?;
        load.context("the load has failed")?;
        report
    })
}

struct Bench<'a> {
    lab: &'a Lab,
    pod: Network,
    rounds: u8,
    routers: usize,
}

impl Bench<'_> {
    fn run(&self, up_s: f64, agent: &AgentProcess) -> anyhow::Result<Report> {
        let version = self.lab.state().ovn;
        eprintln!("OVN {version}: first pings");
        let mut ipv4 = Vec::new();
        let mut ipv6 = Vec::new();
        for round in 1..=self.rounds {
            ipv4.push(self.first_ping(Ipv4Addr::new(172, 18, 100, round).into())?);
            let host = Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 100, u16::from(round));
            ipv6.push(self.first_ping(host.into())?);
        }
        let pings = ipv4.len() + ipv6.len();
        let (ipv4, ipv6): (Vec<_>, Vec<_>) = (
            ipv4.into_iter().flatten().collect(),
            ipv6.into_iter().flatten().collect(),
        );

        eprintln!("OVN {version}: the gateway changes its MAC");
        for gateway in [GATEWAY_IPV4.into(), GATEWAY_IPV6.into()] {
            self.lab.ping(self.pod, gateway, PING)?;
            rows::wait(self.lab, gateway, GATEWAY_MAC, self.routers)?;
        }
        let mut mac_changes = [Vec::new(), Vec::new()];
        for round in 1..=self.rounds {
            let mac = Mac([0x02, 0xee, 0, 0, 0, round]);
            let families: [(IpAddr, Vec<u8>); 2] = [
                (GATEWAY_IPV4.into(), arp_announcement(mac, GATEWAY_IPV4)),
                (
                    GATEWAY_IPV6.into(),
                    unsolicited_advertisement(mac, GATEWAY_IPV6),
                ),
            ];
            for (times, (gateway, frame)) in mac_changes.iter_mut().zip(families) {
                times.push(self.announced(gateway, mac, frame)?);
            }
        }

        eprintln!("OVN {version}: all followers lose their rows");
        let mut put_back = Vec::new();
        let mut herd = Vec::new();
        for round in 1..=self.rounds {
            let (before, after, ip) = (
                Mac([0x02, 0xcc, 0, 0, 0, round]),
                Mac([0x02, 0xcc, 0, 0, 1, round]),
                Ipv4Addr::new(172, 18, 100, round),
            );
            // It is known since its ping.
            self.announced(ip.into(), before, arp_announcement(before, ip))?;
            let before_this = self.put_back()?;
            rows::delete_followers(self.lab, ip.into())?;
            put_back.push(rows::wait(self.lab, ip.into(), before, self.routers)?);
            self.wait_until_put_back(before_this + self.routers - 1)?;
            // Put back a moment ago, they wait for the cooldown to be over or for the source.
            rows::delete_followers(self.lab, ip.into())?;
            herd.push(self.announced(ip.into(), after, arp_announcement(after, ip))?);
        }
        let [mac_change_ipv4, mac_change_ipv6] = mac_changes;
        Ok(Report {
            versions: self.lab.versions()?,
            up_s,
            pings,
            lost: pings - ipv4.len() - ipv6.len(),
            ping_ipv4: Times::of(ipv4),
            ping_ipv6: Times::of(ipv6),
            mac_change_ipv4: Times::of(mac_change_ipv4),
            mac_change_ipv6: Times::of(mac_change_ipv6),
            put_back: Times::of(put_back),
            herd: Times::of(herd),
            agent_resident_bytes: agent.resident_bytes()?,
        })
    }

    fn first_ping(&self, host: IpAddr) -> anyhow::Result<Option<Duration>> {
        self.lab.add_external_host(host)?;
        Ok(self.lab.ping(self.pod, host, PING)?)
    }

    /// The rows that the agent has put back.
    fn put_back(&self) -> anyhow::Result<usize> {
        let state = self.lab.state_directory().display().to_string();
        let arguments = ["status", "--output", "json", "--state-dir", &state];
        let output = self.lab.neighsteer(&arguments)?.output()?;
        let status: Value = serde_json::from_slice(&output.stdout)?;
        let rows = status["mirror"][BRIDGE]["counters"]["writes"]["put_back"].as_u64();
        Ok(usize::try_from(rows.context("no writes in the status")?)?)
    }

    /// Waits until the agent knows that its rows are there.
    fn wait_until_put_back(&self, rows: usize) -> anyhow::Result<()> {
        let what = format!("{rows} rows put back");
        wait_until(PATIENCE, what, || match self.put_back() {
            Ok(seen) if seen >= rows => Ok(()),
            Ok(seen) => Err(format!("{seen}")),
            Err(error) => Err(format!("{error:#}")),
        })?;
        Ok(())
    }

    /// From a neighbour's announcement to the last router's row.
    fn announced(&self, address: IpAddr, mac: Mac, frame: Vec<u8>) -> anyhow::Result<Duration> {
        rows::say_until(self.lab, &[frame], address, mac, self.routers)
    }
}

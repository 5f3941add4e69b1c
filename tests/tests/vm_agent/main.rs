//! The real agent on a node whose bridges are the kernel's, in the virtual machines of
//! `cargo xtask vm run`.

mod marks;

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use neighsteer::datapath::{DEFAULT_BPFFS, bpffs};
use neighsteer_tests::{
    frames::{Mac, Ndp, arp_reply},
    lab::{
        AgentProcess, BRIDGE, BRIDGE_MAC, EXTERNAL_INTERFACE, FlowSet, GATEWAY_IPV6, GATEWAY_MAC,
        Lab, NODE_IPV4, NODE_IPV6, wait_until,
    },
    packet_socket::PacketSocket,
    vm,
};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);
const COOKIE: &str = "cookie=0x6e65696768737472";
const NEIGHBOUR_MAC: Mac = Mac([0x02, 0xaa, 0, 0, 0, 0x77]);
/// Between two frames of a stream: 1,000 a second, less where sleeping takes longer.
const PACE: Duration = Duration::from_millis(1);
/// What a stream goes on with after something has happened.
const MORE: u64 = 500;

fn start() -> Option<Lab> {
    if vm::is_elsewhere() {
        return None;
    }
    let builder = Lab::builder().udns(3).flows(FlowSet::Base);
    let lab = builder.kernel_datapath().start().unwrap();
    bpffs::ensure(Path::new(DEFAULT_BPFFS)).unwrap();
    fs::create_dir(pins(&lab)[1].as_str()).unwrap();
    Some(lab)
}

/// The flag for pins of the lab's own.
fn pins(lab: &Lab) -> [String; 2] {
    let folder = format!("{DEFAULT_BPFFS}/neighsteer-test-{}", lab.state().id);
    ["--bpffs".to_owned(), folder]
}

fn agent(lab: &Lab) -> AgentProcess {
    agent_with(lab, &[], 6)
}

/// An agent with further flags, once it has so many flows on the bridge.
fn agent_with(lab: &Lab, further: &[&str], flows: u64) -> AgentProcess {
    let flags = [
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
    ];
    let flags = flags.iter().chain(further).map(|flag| (*flag).to_owned());
    let agent = lab.agent(flags.chain(pins(lab))).unwrap();
    wait_until(PATIENCE, "steering flows and a program", || {
        let status = status(lab);
        let bridge = &status["steering"][0];
        let converged = bridge["converged"] == true && bridge["flows"] == flows;
        let attached = status["datapath"][0]["mode"].is_string();
        match converged && attached {
            true => Ok(()),
            false => Err(format!("{status}, {}", agent.log())),
        }
    })
    .unwrap();
    agent
}

fn status(lab: &Lab) -> Value {
    let directory = lab.state_directory().display().to_string();
    let output = lab
        .neighsteer(&["status", "--output", "json", "--state-dir", &directory])
        .unwrap()
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// A host's unicast Router Advertisement, which nothing else on the link sends.
fn advertisement() -> Vec<u8> {
    Ndp::router_advertisement(GATEWAY_MAC)
        .packet(GATEWAY_IPV6, NODE_IPV6)
        .frame(GATEWAY_MAC, BRIDGE_MAC)
        .to_bytes()
}

/// Frames that took our flow of Router Advertisements: `(n_packets, how often the flow is there)`.
fn steered(lab: &Lab) -> (u64, usize) {
    let flows = lab
        .ofctl_on(BRIDGE, &["dump-flows", "--no-names"], &[])
        .unwrap();
    let ours: Vec<u64> = flows
        .lines()
        .filter(|line| line.contains(COOKIE) && line.contains("icmp_type=134"))
        .filter_map(|line| {
            let (_, rest) = line.split_once("n_packets=")?;
            rest.split(',').next()?.parse().ok()
        })
        .collect();
    (ours.iter().sum(), ours.len())
}

/// Frames that the program counted as steered Router Advertisements.
fn counted(lab: &Lab) -> u64 {
    counted_as(lab, |counter| {
        counter["kind"] == "router-advertisement" && counter["decision"] == "steer-ra"
    })
}

fn counted_as(lab: &Lab, is_meant: impl Fn(&Value) -> bool) -> u64 {
    let mut stats = lab.neighsteer(&["stats", "--output", "json"]).unwrap();
    let output = stats.args(pins(lab)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let interfaces = stats.as_array().cloned().unwrap_or_default();
    interfaces
        .iter()
        .filter_map(|interface| interface["counters"].as_array())
        .flatten()
        .filter(|counter| is_meant(counter))
        .filter_map(|counter| counter["packets"].as_u64())
        .sum()
}

/// Runs something in the middle of a stream; returns how many frames that was, and what came of it.
fn in_a_stream<T>(lab: &Lab, middle: impl FnOnce() -> T) -> (u64, T) {
    let stop = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    let after = |frames: u64| {
        wait_until(PATIENCE, "the stream to go on", || {
            match sent.load(Ordering::Relaxed) {
                now if now >= frames => Ok(now),
                now => Err(format!("{now} frames")),
            }
        })
        .unwrap()
    };
    let frame = advertisement();
    let result = thread::scope(|scope| {
        let stream = scope.spawn(|| {
            lab.external_netns().enter(|| {
                let socket = PacketSocket::open(EXTERNAL_INTERFACE).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    socket.send(&frame).unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                    // The stream's rate.
                    thread::sleep(PACE);
                }
            })
        });
        let before = after(MORE);
        let result = middle();
        let now = after(before + MORE);
        after(now + MORE);
        stop.store(true, Ordering::Relaxed);
        stream.join().unwrap().unwrap();
        result
    });
    (sent.into_inner(), result)
}

/// Waits until our one flow of Router Advertisements has taken as many frames, and no more.
fn wait_until_steered(lab: &Lab, frames: u64) {
    wait_until(PATIENCE, "every frame to take the flow", || {
        match steered(lab) {
            (packets, 1) if packets == frames => Ok(()),
            seen => Err(format!("{seen:?}, not {frames}")),
        }
    })
    .unwrap();
}

/// A stream of advertisements would give the host routes.
fn accept_no_routes(lab: &Lab) {
    let accept = format!("/proc/sys/net/ipv6/conf/{BRIDGE}/accept_ra");
    lab.node_netns()
        .enter(|| fs::write(accept, "0"))
        .unwrap()
        .unwrap();
}

#[test]
fn no_frame_of_a_stream_escapes_the_flows_while_agents_die_start_and_detach() {
    let Some(lab) = start() else { return };
    accept_no_routes(&lab);
    let mut first = agent(&lab);
    let (mut sent, ()) = in_a_stream(&lab, || first.kill().unwrap());
    wait_until_steered(&lab, sent);
    assert_eq!(counted(&lab), sent);

    // The next one finds all as it should be, and takes it over.
    let (more, mut second) = in_a_stream(&lab, || agent(&lab));
    sent += more;
    wait_until_steered(&lab, sent);
    assert_eq!(counted(&lab), sent);
    let status = status(&lab);
    assert_eq!(status["steering"][0]["flows_added"], 0, "{status}");

    // Without the program frames are not counted, and steered all the same.
    second.terminate(vm::patience(PATIENCE)).unwrap();
    let mut detach = lab.neighsteer(&["detach", &lab.uplink()]).unwrap();
    detach.args(pins(&lab));
    let (more, output) = in_a_stream(&lab, || detach.output().unwrap());
    assert!(output.status.success(), "{output:?}");
    wait_until_steered(&lab, sent + more);
}

#[test]
fn what_the_source_learns_from_a_steered_reply_its_followers_are_told() {
    let Some(lab) = start() else { return };
    let _agent = agent(&lab);
    let neighbour = Ipv4Addr::new(172, 18, 0, 77);
    let reply = arp_reply(NEIGHBOUR_MAC, neighbour, BRIDGE_MAC, NODE_IPV4);
    lab.send_from_outside(&[reply], Duration::ZERO).unwrap();
    let mut routers: Vec<String> = lab.networks().map(|it| it.external_port()).collect();
    routers.sort();
    wait_until(PATIENCE, "a binding on every router", || {
        let rows = lab.mac_bindings(neighbour.into()).unwrap();
        let known: Vec<_> = rows.iter().map(|row| row.logical_port.clone()).collect();
        let right = rows.iter().all(|row| row.mac == NEIGHBOUR_MAC.to_string());
        match known == routers && right {
            true => Ok(()),
            false => Err(format!("{rows:?}")),
        }
    })
    .unwrap();
}

//! What following a large cluster costs, in a process where nothing else happens: the server is
//! another one.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use neighsteer::sources::{self, NodeFeed, Patience, SourceConfig};
use neighsteer_tests::apiserver::{ApiServer, NODES};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use tokio::time::timeout;

const NODES_THERE: usize = 500;
/// Says to the test's own program that it is the server.
const IS_SERVER: &str = "NEIGHSTEER_TEST_API_SERVER";
const TEST: &str = "five_hundred_nodes_cost_less_than_eight_megabytes";
const DEADLINE: Duration = Duration::from_secs(60);

/// A line of the process's memory, in bytes.
fn memory(line: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|found| found.starts_with(line));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    kib * 1024
}

/// As large as nodes are in clusters that have run for a while: some 25 KiB.
fn node(number: usize, mac: u8) -> Value {
    let images: Vec<Value> = (0..50)
        .map(|image| {
            let name = format!("registry.example/project/component-{image}");
            let digest = format!("{name}@sha256:{image:064x}");
            json!({"names": [digest, format!("{name}:v1.2.3")], "sizeBytes": 123_456_789})
        })
        .collect();
    let managed: Vec<Value> = (0..60)
        .map(|field| json!({"f:metadata": {format!("f:annotation-{field}"): {"f:key": {}, ".": {}}}}))
        .collect();
    let address = format!("10.{}.{}.1", number / 250, number % 250);
    let config = json!({"default": {
        "mode": "shared", "mac-address": format!("02:00:00:{mac:02x}:{:02x}:{:02x}", number / 256, number % 256),
        "ip-addresses": [format!("{address}/8"), format!("fd00::{number:x}/64")],
    }});
    json!({
        "metadata": {
            "name": format!("node-{number:03}.example"), "managedFields": managed,
            "annotations": {
                "k8s.ovn.org/node-chassis-id": format!("{number:08}-0000-4000-8000-000000000000"),
                "k8s.ovn.org/l3-gateway-config": config.to_string(),
                "k8s.ovn.org/host-cidrs": "x".repeat(4000),
            },
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "InternalIP", "address": format!("fd00::{number:x}")},
            ],
            "images": images,
        },
    })
}

/// The server, until its standard input ends. A line on it changes every node.
async fn serve() {
    let server = ApiServer::start().await.unwrap();
    let mut mac = 0;
    let put_all = |mac| {
        for number in 0..NODES_THERE {
            server.put(NODES, node(number, mac));
        }
    };
    put_all(mac);
    println!("\nkubeconfig {}", server.kubeconfig().display());
    std::io::stdout().flush().unwrap();
    loop {
        let line = tokio::task::spawn_blocking(|| {
            let mut byte = [0];
            std::io::stdin().read(&mut byte).unwrap()
        });
        if line.await.unwrap() == 0 {
            return;
        }
        mac += 1;
        put_all(mac);
    }
}

/// This program as the server, and its kubeconfig.
fn server() -> (Child, PathBuf) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(IS_SERVER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let kubeconfig = lines
        .find_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("kubeconfig ").map(PathBuf::from)
        })
        .unwrap();
    // Its other lines are of no interest, but must go somewhere.
    std::thread::spawn(move || lines.for_each(drop));
    (child, kubeconfig)
}

/// Waits until the last node has this MAC's byte.
async fn reaches(feed: &mut NodeFeed, mac: u8) {
    let reached = async {
        loop {
            let inventory = feed.changed().await.unwrap();
            let last = inventory.nodes.last_key_value();
            let gateway = last.map(|(_, node)| node.gateway.as_ref().unwrap());
            if gateway.is_some_and(|gateway| gateway.mac.0[3] == mac) {
                return;
            }
        }
    };
    timeout(DEADLINE, reached).await.unwrap();
}

#[tokio::test]
async fn five_hundred_nodes_cost_less_than_eight_megabytes() {
    if env::var_os(IS_SERVER).is_some() {
        return serve().await;
    }
    println!("{} bytes a node on the wire", node(1, 0).to_string().len());
    let (mut child, kubeconfig) = server();
    let before = memory("RssAnon:");
    let config = SourceConfig::Kubernetes {
        kubeconfig: Some(kubeconfig),
        context: None,
    };
    let mut feed = sources::start_with(config, Patience::default()).unwrap();
    reaches(&mut feed, 0).await;
    let listed = memory("RssAnon:").saturating_sub(before);
    let peak = memory("VmHWM:").saturating_sub(memory("VmRSS:"));
    println!("after the list {listed} bytes, {peak} more for a moment");
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    reaches(&mut feed, 1).await;
    let watched = memory("RssAnon:").saturating_sub(before);
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    println!(
        "{} of processor time",
        usage.user_time() + usage.system_time()
    );
    println!("after a change of every node {watched} bytes");
    assert_eq!(feed.inventory().unwrap().nodes.len(), NODES_THERE);
    let status = feed.status();
    assert_eq!(
        (status.nodes.lists, status.nodes.failures),
        (1, 0),
        "{status:?}"
    );
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(
        listed.max(watched) < 8_000_000,
        "{listed}, then {watched} bytes"
    );
}

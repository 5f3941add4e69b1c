use std::sync::Arc;

use super::{
    bridges::owner,
    report::{Report, Verdict},
    *,
};
use crate::{
    cli::output::Format,
    openflow::{InstalledFlow, parse_dump},
    plan::{Install, plan},
    topology::{BridgeGroup, tests::Node},
};

fn verdicts(report: &Report) -> Vec<(&str, Verdict)> {
    let checks = report.checks.iter();
    checks.map(|it| (&*it.check, it.verdict)).collect()
}

fn of(mode: NodeMode, gates: Result<Gates, crate::plan::GateError>) -> Report {
    let mut report = Report::default();
    let host = HostConfig {
        mode,
        ..HostConfig::default()
    };
    super::mode(&mut report, &host, gates);
    report
}

#[test]
fn a_dpu_is_told_why_there_is_no_ipv6_and_a_host_why_it_may_not_steer() {
    let dpu = of(NodeMode::Dpu, Gates::new(true, true));
    assert_eq!(
        verdicts(&dpu),
        [("gates", Verdict::Ok), ("mode", Verdict::Warning)]
    );
    assert!(dpu.checks[1].found.contains("has no IPv6 address"));
    assert!(!dpu.has_errors());
    let host = of(NodeMode::DpuHost, Gates::new(true, true));
    assert!(host.has_errors());
    assert!(host.checks[0].found.contains("are on the DPU"));
    assert!(!of(NodeMode::DpuHost, Ok(Gates::default())).has_errors());
    assert!(of(NodeMode::Full, Gates::new(false, true)).has_errors());
}

fn group() -> BridgeGroup {
    let node = Node::with_two_followers(|_| (), []);
    node.topology().group("breth0").unwrap().clone()
}

fn installed(cookie: &str) -> Vec<InstalledFlow> {
    let plan = plan(&group(), Gates::new(true, true).unwrap(), Install::Overlay);
    let flows = plan.flows.iter().map(|flow| {
        let text = flow.to_string();
        let (_, rest) = text.split_once(", ").unwrap();
        format!("cookie={cookie}, {rest}\n")
    });
    parse_dump(&flows.collect::<String>()).unwrap()
}

#[test]
fn who_steers_on_a_bridge_is_told_by_its_flows() {
    let ours = format!("{}", crate::plan::COOKIE);
    let asked = |steering| Asked {
        steering,
        is_running: false,
        install: Install::Overlay,
    };
    for (flows, steering, verdict) in [
        (Vec::new(), false, Verdict::Ok),
        (Vec::new(), true, Verdict::Warning),
        (installed(&ours), true, Verdict::Ok),
        (installed(&ours), false, Verdict::Warning),
        (installed("0xdeff105"), true, Verdict::Warning),
        (installed("0xdeff105"), false, Verdict::Ok),
    ] {
        let mut report = Report::default();
        owner(&mut report, "steering", &group(), &flows, asked(steering));
        assert_eq!(verdicts(&report), [("steering", verdict)], "{report:?}");
    }
    let mut report = Report::default();
    let complete = Asked {
        install: Install::Complete,
        ..asked(false)
    };
    owner(
        &mut report,
        "fan-out",
        &group(),
        &installed(&ours),
        complete,
    );
    assert_eq!(verdicts(&report), [("fan-out", Verdict::Ok)], "{report:?}");
}

#[test]
fn kernels_are_told_apart_by_their_release() {
    for (release, found) in [
        ("6.1.0-18-amd64", "6.1.0-18-amd64: clsact instead of TCX"),
        ("6.12.9", "6.12.9: TCX"),
        ("6.6-rc1", "6.6-rc1: TCX"),
        ("", "its release is \"\""),
    ] {
        let mut report = Report::default();
        system::kernel(&mut report, release);
        assert_eq!(report.checks[0].found, found);
    }
}

#[test]
fn a_line_says_verdict_finding_and_what_to_do_and_json_the_same() {
    let mut report = Report::default();
    report.ok("kernel", "6.12.9: TCX");
    report.error("bpffs", "none", "mount it");
    let printed = |format| {
        let mut bytes = Vec::new();
        let mut output = Output {
            format,
            writer: &mut bytes,
        };
        report.print(&mut output).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(
        printed(Format::Text),
        "ok      kernel: 6.12.9: TCX\nerror   bpffs: none; to do: mount it\n"
    );
    let json: serde_json::Value = serde_json::from_str(&printed(Format::Json)).unwrap();
    assert_eq!(
        json,
        serde_json::json!([
            {"check": "kernel", "verdict": "ok", "found": "6.12.9: TCX", "advice": null},
            {"check": "bpffs", "verdict": "error", "found": "none", "advice": "mount it"},
        ])
    );
}

#[tokio::test]
async fn a_node_without_anything_has_a_line_for_each_part_that_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("unix:{}", directory.path().join(name).display());
    let arguments = [
        "neighsteer".to_owned(),
        "doctor".to_owned(),
        "--ovs-db".to_owned(),
        at("db.sock"),
        "--ovn-nb".to_owned(),
        at("nb.sock"),
        "--ovs-rundir".to_owned(),
        directory.path().display().to_string(),
        "--state-dir".to_owned(),
        directory.path().display().to_string(),
        "--bpffs".to_owned(),
        directory.path().display().to_string(),
    ];
    let cli = <crate::cli::Cli as clap::Parser>::try_parse_from(arguments).unwrap();
    let crate::cli::Command::Doctor(args) = cli.command else {
        panic!("another command");
    };
    let mut bytes = Vec::new();
    let mut output = Output {
        format: Format::Json,
        writer: &mut bytes,
    };
    assert_eq!(run(&args, &mut output).await.unwrap(), Finding::Found);
    let checks: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap();
    let of = |check: &str| -> Option<Arc<str>> {
        let line = checks.iter().find(|it| it["check"] == check)?;
        line["verdict"].as_str().map(Arc::from)
    };
    assert_eq!(of("ovs-vswitchd").as_deref(), Some("error"));
    assert_eq!(of("Open_vSwitch").as_deref(), Some("error"));
    assert_eq!(
        of("OVN_Northbound").as_deref(),
        Some("warning"),
        "not asked"
    );
    assert_eq!(of("bpffs").as_deref(), Some("warning"));
    assert_eq!(of("agent").as_deref(), Some("warning"));
}

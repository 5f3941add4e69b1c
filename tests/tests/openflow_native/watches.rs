use std::{io::Write as _, time::Instant};

use neighsteer::{
    ids::OfPort,
    openflow::{
        Flow, FlowEvent, FlowWatch, Match, PortEvent, PortWatch, Protocol, Switch, SwitchError,
        unixctl::UnixCtl,
    },
};

use crate::{BRIDGE, Ovs, PATIENCE, native, soon};

const OURS: &str =
    "cookie=0x6e656967, priority=52, table=0, in_port=1, arp, actions=output:2,NORMAL";

async fn next(watch: &mut FlowWatch) -> FlowEvent {
    soon(watch.next()).await
}

/// The next event that is about this port.
async fn next_of(watch: &mut PortWatch, name: &str) -> PortEvent {
    loop {
        let event = soon(watch.next()).await;
        let (PortEvent::Added(port) | PortEvent::Deleted(port) | PortEvent::Modified(port)) =
            &event;
        if port.name == name {
            return event;
        }
    }
}

#[tokio::test]
async fn a_flow_watch_sees_what_is_there_and_what_others_and_we_do() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=2);
    let native = native(&ovs);
    let ours: Flow = OURS.parse().unwrap();
    native
        .add_flows(BRIDGE, std::slice::from_ref(&ours))
        .await
        .unwrap();

    let (there, mut watch) = native.watch_flows(BRIDGE, &[]).await.unwrap();
    assert_eq!(there, std::slice::from_ref(&ours));

    ovs.ofctl(&["del-flows"], &["arp"]);
    assert_eq!(next(&mut watch).await, FlowEvent::Deleted(ours.clone()));

    native
        .add_flows(BRIDGE, std::slice::from_ref(&ours))
        .await
        .unwrap();
    assert_eq!(next(&mut watch).await, FlowEvent::Added(ours.clone()));

    let other: Flow = OURS.replace(":2,", ":1,").parse().unwrap();
    ovs.ofctl(&["mod-flows"], &["arp,actions=output:1,NORMAL"]);
    assert_eq!(next(&mut watch).await, FlowEvent::Modified(other.clone()));

    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "cookie=0xdeff105,priority=0,actions=NORMAL").unwrap();
    let path = file.path().to_str().unwrap();
    ovs.ofctl(&["--bundle", "replace-flows"], &[path]);
    let events = [next(&mut watch).await, next(&mut watch).await];
    assert!(events.contains(&FlowEvent::Deleted(other)), "{events:?}");
}

#[tokio::test]
async fn a_flow_that_a_manager_replaces_is_back_as_soon_as_the_watch_tells() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=2);
    let native = native(&ovs);
    let ours: Flow = OURS.parse().unwrap();
    native
        .add_flows(BRIDGE, std::slice::from_ref(&ours))
        .await
        .unwrap();
    let arp = Match {
        protocol: Some(Protocol::Arp),
        ..Match::default()
    };
    let (_, mut watch) = native.watch_flows(BRIDGE, &[arp]).await.unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for index in 0..130 {
        writeln!(file, "priority=7,ip,nw_dst=10.1.0.{index},actions=NORMAL").unwrap();
    }
    let path = file.path().to_str().unwrap();
    let mut gaps = Vec::new();
    for _ in 0..20 {
        ovs.ofctl(&["--bundle", "replace-flows"], &[path]);
        assert_eq!(next(&mut watch).await, FlowEvent::Deleted(ours.clone()));
        let told = Instant::now();
        native
            .add_flows(BRIDGE, std::slice::from_ref(&ours))
            .await
            .unwrap();
        gaps.push(told.elapsed());
        assert_eq!(next(&mut watch).await, FlowEvent::Added(ours.clone()));
    }
    gaps.sort();
    println!("from the news to the flow's return, median: {:?}", gaps[10]);
}

#[tokio::test]
async fn a_flow_watch_tells_only_of_what_its_matches_cover() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=2);
    let native = native(&ovs);
    let of = |protocol| Match {
        protocol: Some(protocol),
        ..Match::default()
    };
    let wanted = [of(Protocol::Arp), of(Protocol::Icmp6)];
    let (there, mut watch) = native.watch_flows(BRIDGE, &wanted).await.unwrap();
    assert!(there.is_empty());
    for flow in [
        "priority=1,actions=NORMAL",
        "priority=2,ip,actions=NORMAL",
        "priority=3,icmp6,icmpv6_type=136,actions=NORMAL",
        "priority=4,arp,in_port=1,actions=NORMAL",
    ] {
        ovs.ofctl(&["add-flow"], &[flow]);
    }
    for priority in [3, 4] {
        match next(&mut watch).await {
            FlowEvent::Added(flow) => assert_eq!(flow.priority, priority),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_flow_watch_that_falls_behind_loses_no_deletion() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=2);
    let native = native(&ovs);
    let ours: Flow = OURS.parse().unwrap();
    native
        .add_flows(BRIDGE, std::slice::from_ref(&ours))
        .await
        .unwrap();
    let (_, mut watch) = native.watch_flows(BRIDGE, &[]).await.unwrap();

    let mut file = tempfile::NamedTempFile::new().unwrap();
    for index in 0..20_000 {
        let (high, low) = (index >> 8, index & 0xff);
        writeln!(
            file,
            "priority=7,ip,nw_dst=10.1.{high}.{low},actions=NORMAL"
        )
        .unwrap();
    }
    let path = file.path().to_str().unwrap();
    // Unread: more than the socket and the switch's queue hold.
    ovs.ofctl(&["--bundle", "replace-flows"], &[path]);
    let (mut added, mut deleted, mut paused, mut resumed) = (0, false, false, false);
    while added < 20_000 || !deleted || !resumed {
        match next(&mut watch).await {
            FlowEvent::Added(flow) if flow.priority == 7 => added += 1,
            FlowEvent::Deleted(flow) => deleted |= flow == ours,
            FlowEvent::Paused => paused = true,
            FlowEvent::Resumed => resumed = paused,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_port_watch_sees_ports_come_change_and_go() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=1);
    let native = native(&ovs);
    let (there, mut watch) = native.watch_ports(BRIDGE).await.unwrap();
    assert_eq!(there.len(), 1);

    ovs.add_ports(7..=7);
    let event = next_of(&mut watch, "p7").await;
    let PortEvent::Added(port) = event else {
        panic!("{event:?}")
    };
    assert_eq!(port.ofport, OfPort::from_column(Some(7)).unwrap());

    ovs.mod_port("7", "no-flood");
    let event = next_of(&mut watch, "p7").await;
    assert!(
        matches!(&event, PortEvent::Modified(port) if port.no_flood),
        "{event:?}"
    );

    native
        .set_no_flood(BRIDGE, &[(port.ofport, false)].into())
        .await
        .unwrap();
    let event = next_of(&mut watch, "p7").await;
    assert!(
        matches!(&event, PortEvent::Modified(port) if !port.no_flood),
        "{event:?}"
    );

    ovs.vsctl(&["del-port", BRIDGE, "p7"]);
    let event = next_of(&mut watch, "p7").await;
    assert!(matches!(event, PortEvent::Deleted(_)), "{event:?}");
}

#[tokio::test]
async fn a_port_watch_gets_no_frames() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=2);
    let native = native(&ovs);
    let (_, mut watch) = native.watch_ports(BRIDGE).await.unwrap();
    ovs.ofctl(&["add-flow"], &["priority=1,actions=CONTROLLER"]);
    let control = UnixCtl::of_vswitchd(ovs.rundir()).unwrap();
    let mut control = control.connect().await.unwrap();
    let frame = "eth(src=50:54:00:00:00:09,dst=ff:ff:ff:ff:ff:ff),eth_type(0x1234)";
    for _ in 0..100 {
        control
            .call("netdev-dummy/receive", &["p1", frame])
            .await
            .unwrap();
    }
    ovs.add_ports(9..=9);
    let event = next_of(&mut watch, "p9").await;
    assert!(matches!(event, PortEvent::Added(_)), "{event:?}");
    assert_eq!(watch.ignored(), 0);
}

#[tokio::test]
async fn watches_end_with_the_bridge_and_with_the_daemon() {
    let mut ovs = Ovs::start();
    let native = native(&ovs);
    let (_, mut flows) = native.watch_flows(BRIDGE, &[]).await.unwrap();
    let (_, mut ports) = native.watch_ports(BRIDGE).await.unwrap();
    ovs.vsctl(&["del-br", BRIDGE]);
    ends(async || flows.next().await.map(drop)).await;
    ends(async || ports.next().await.map(drop)).await;

    ovs.add_bridge();
    let (_, mut flows) = native.watch_flows(BRIDGE, &[]).await.unwrap();
    ovs.kill_switch();
    ends(async || flows.next().await.map(drop)).await;
}

/// The last events may still come, then the connection's end does.
async fn ends(mut next: impl AsyncFnMut() -> Result<(), SwitchError>) {
    let error = loop {
        match tokio::time::timeout(PATIENCE, next()).await.unwrap() {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SwitchError::Session { .. }), "{error:?}");
}

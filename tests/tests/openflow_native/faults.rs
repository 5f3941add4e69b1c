use std::{collections::BTreeMap, time::Duration};

use neighsteer::openflow::{Flow, NativeSwitch, SessionError, Switch, SwitchError};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};

use crate::{BRIDGE, Ovs, native};

fn flow() -> Flow {
    "cookie=0x1, priority=1, table=0, arp, actions=NORMAL"
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_missing_socket_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let switch = NativeSwitch::new(directory.path());
    let error = switch.dump_flows(BRIDGE, None).await.unwrap_err();
    assert!(
        matches!(error, SwitchError::SocketMissing { .. }),
        "{error:?}"
    );
    let error = switch.watch_ports(BRIDGE).await.unwrap_err();
    assert!(
        matches!(error, SwitchError::SocketMissing { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_socket_whose_daemon_was_killed_refuses() {
    let mut ovs = Ovs::start();
    let switch = native(&ovs);
    switch.add_flows(BRIDGE, &[flow()]).await.unwrap();
    ovs.kill_switch();
    let error = switch.add_flows(BRIDGE, &[flow()]).await.unwrap_err();
    assert!(matches!(error, SwitchError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_bridge_that_does_not_speak_the_version_says_what_to_do() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=1);
    ovs.vsctl(&["set", "bridge", BRIDGE, "protocols=OpenFlow13"]);
    let switch = native(&ovs);
    switch.add_flows(BRIDGE, &[flow()]).await.unwrap();
    let error = switch.ports(BRIDGE).await.unwrap_err();
    let SwitchError::Session { source, .. } = error else {
        panic!("{error:?}")
    };
    assert!(matches!(source, SessionError::Version { .. }), "{source:?}");
    assert!(source.to_string().contains("protocols"), "{source}");
}

/// A bridge that agrees on 1.3 and then does as it is told.
async fn bridge<F: Future<Output = ()> + Send>(
    behave: impl FnOnce(UnixStream) -> F + Send + 'static,
) -> (tempfile::TempDir, NativeSwitch) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(format!("{BRIDGE}.mgmt"));
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
        behave(stream).await;
    });
    let switch = NativeSwitch::new(directory.path()).with_timeout(Duration::from_millis(300));
    (directory, switch)
}

#[tokio::test]
async fn a_connection_closed_in_the_middle_of_a_bundle_is_an_error() {
    let (_directory, switch) = bridge(async |mut stream: UnixStream| {
        // The HELLO and the opening of the bundle.
        let mut received = [0; 16 + 24];
        stream.read_exact(&mut received).await.unwrap();
    })
    .await;
    let error = switch.add_flows(BRIDGE, &[flow()]).await.unwrap_err();
    let SwitchError::Session { source, .. } = error else {
        panic!("{error:?}")
    };
    assert!(matches!(source, SessionError::Closed { .. }), "{source:?}");
}

#[tokio::test]
async fn a_bridge_that_says_nothing_more_times_out() {
    let (_directory, switch) = bridge(async |mut stream: UnixStream| {
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received).await;
    })
    .await;
    let error = switch.add_flows(BRIDGE, &[flow()]).await.unwrap_err();
    assert!(matches!(error, SwitchError::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn bytes_that_are_no_message_end_the_connection() {
    let (_directory, switch) = bridge(async |mut stream: UnixStream| {
        // An echo request that says it is four bytes long.
        let echo = [4, 2, 0, 4, 0, 0, 0, 9];
        stream.write_all(&echo).await.unwrap();
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received).await;
    })
    .await;
    let error = switch.add_flows(BRIDGE, &[flow()]).await.unwrap_err();
    let SwitchError::Session { source, .. } = error else {
        panic!("{error:?}")
    };
    assert!(
        matches!(source, SessionError::Malformed { .. }),
        "{source:?}"
    );
}

#[tokio::test]
async fn nothing_to_change_asks_nothing_of_the_bridge() {
    let switch = NativeSwitch::new("/nonexistent");
    switch
        .change_flows(BRIDGE, &Default::default())
        .await
        .unwrap();
    switch.set_no_flood(BRIDGE, &BTreeMap::new()).await.unwrap();
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    // One flow of 56 bytes: table 0, no match, no instruction; an answer of a thousand, and more.
    let mut answer = vec![4, 19, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    for _ in 0..1000 {
        let mut flow = [0; 56];
        flow[1] = 56;
        flow[48..52].copy_from_slice(&[0, 1, 0, 4]);
        answer.extend_from_slice(&flow);
    }
    let length = u16::try_from(answer.len()).unwrap();
    answer[2..4].copy_from_slice(&length.to_be_bytes());
    let (_directory, switch) = bridge(async move |mut stream: UnixStream| {
        let mut received = [0; 16 + 56];
        stream.read_exact(&mut received).await.unwrap();
        answer[4..8].copy_from_slice(&received[20..24]);
        while stream.write_all(&answer).await.is_ok() {}
    })
    .await;
    let switch = switch.with_timeout(Duration::from_secs(60));
    let error = switch.dump_flows(BRIDGE, None).await.unwrap_err();
    let SwitchError::Session { source, .. } = error else {
        panic!("{error:?}")
    };
    assert!(matches!(source, SessionError::Endless { .. }), "{source:?}");
}

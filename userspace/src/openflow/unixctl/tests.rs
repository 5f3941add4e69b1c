use tokio::net::UnixListener;

use super::*;

/// A control socket that sends the given pieces once a request has arrived, then closes.
async fn socket_that_sends(
    pieces: &'static [&'static str],
) -> (tempfile::TempDir, UnixCtl, tokio::task::JoinHandle<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ctl");
    let listener = UnixListener::bind(&path).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        for piece in pieces {
            stream.write_all(piece.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    (directory, UnixCtl::new(path), server)
}

#[tokio::test]
async fn a_reply_in_several_pieces_is_put_together() {
    let (_directory, ctl, server) = socket_that_sends(&[
        r#"{"id":0,"res"#,
        r#"ult":"a }\" b\n","err"#,
        r#"or":null}"#,
    ])
    .await;
    let output = ctl.call("fdb/show", &["br-ex"]).await.unwrap();
    assert_eq!(output, "a }\" b\n");
    assert_eq!(
        server.await.unwrap(),
        r#"{"method":"fdb/show","params":["br-ex"],"id":0}"#
    );
}

#[tokio::test]
async fn a_refused_command_says_what_was_asked_and_what_the_daemon_answered() {
    let (_directory, ctl, _server) =
        socket_that_sends(&[r#"{"id":0,"error":"no such bridge\n"}"#]).await;
    let error = ctl.call("fdb/show", &["br-no"]).await.unwrap_err();
    assert_eq!(error.to_string(), "fdb/show br-no failed: no such bridge");
}

#[tokio::test]
async fn a_reply_to_another_request_is_refused() {
    let (_directory, ctl, _server) = socket_that_sends(&[r#"{"id":7,"result":"x"}"#]).await;
    let error = ctl.call("version", &[]).await.unwrap_err();
    assert!(matches!(error, UnixCtlError::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_connection_closed_in_the_middle_is_an_error() {
    let (_directory, ctl, _server) = socket_that_sends(&[r#"{"id":0,"resu"#]).await;
    let error = ctl.call("version", &[]).await.unwrap_err();
    assert!(matches!(error, UnixCtlError::Closed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_silent_daemon_is_given_up_after_the_time_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ctl");
    let _listener = UnixListener::bind(&path).unwrap();
    let ctl = UnixCtl::new(path).with_timeout(Duration::from_millis(20));
    let error = ctl.call("version", &[]).await.unwrap_err();
    assert!(matches!(error, UnixCtlError::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn a_missing_and_a_dead_socket_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ctl");
    let error = UnixCtl::new(&path).connect().await.unwrap_err();
    assert!(
        matches!(error, UnixCtlError::SocketMissing { .. }),
        "{error:?}"
    );
    drop(UnixListener::bind(&path).unwrap());
    let error = UnixCtl::new(&path).connect().await.unwrap_err();
    assert!(
        matches!(error, UnixCtlError::Connection { .. }),
        "{error:?}"
    );
}

#[test]
fn the_socket_of_vswitchd_is_found_by_its_pid_file() {
    let directory = tempfile::tempdir().unwrap();
    let error = UnixCtl::of_vswitchd(directory.path()).unwrap_err();
    assert!(matches!(error, UnixCtlError::PidFile { .. }), "{error:?}");

    let pid_file = directory.path().join("ovs-vswitchd.pid");
    std::fs::write(&pid_file, "4711\n").unwrap();
    let ctl = UnixCtl::of_vswitchd(directory.path()).unwrap();
    assert_eq!(ctl.socket(), directory.path().join("ovs-vswitchd.4711.ctl"));

    std::fs::write(&pid_file, "").unwrap();
    let error = UnixCtl::of_vswitchd(directory.path()).unwrap_err();
    assert!(
        matches!(error, UnixCtlError::PidFileContent { .. }),
        "{error:?}"
    );
}

#[test]
fn a_forwarding_table_reads_as_ports_vlans_and_addresses() {
    let text = " port  VLAN  MAC                Age\n\
                LOCAL     0  02:42:ac:12:00:03  static\n    1     5  02:42:ac:12:00:04    7\n\
                ?     0  02:42:ac:12:00:05    9\n";
    let entries = fdb::parse(text).unwrap();
    let summary: Vec<_> = entries
        .iter()
        .map(|entry| (entry.port, entry.vlan, entry.is_static))
        .collect();
    assert_eq!(
        summary,
        [
            (FdbPort::Local, 0, true),
            (
                FdbPort::Number(crate::ids::OfPort::from_column(Some(1)).unwrap()),
                5,
                false
            ),
            (FdbPort::Other, 0, false),
        ]
    );
    assert!(fdb::parse("port VLAN MAC Age\nLOCAL 0\n").is_err());
}

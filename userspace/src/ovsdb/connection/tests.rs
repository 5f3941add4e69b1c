use tokio::io::DuplexStream;

use super::*;
use crate::ovsdb::wire::frame::FrameError;

const PROBE: Duration = Duration::from_secs(5);

fn pair(limit: usize) -> (Connection, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    (
        Connection::new(Box::new(ours), limit, Some(PROBE), false),
        theirs,
    )
}

/// Everything that was sent so far.
async fn sent(server: &mut DuplexStream, bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    server.read_exact(&mut buffer).await.unwrap();
    String::from_utf8(buffer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn echo_is_answered_with_its_id_and_params() {
    let (mut connection, mut server) = pair(1000);
    let echo = br#"{"id":"echo","method":"echo","params":[1,"a"]}"#;
    // One byte at a time.
    for byte in echo {
        server.write_all(&[*byte]).await.unwrap();
        let _quiet = tokio::time::timeout(Duration::from_millis(1), connection.next()).await;
    }
    let expected = r#"{"error":null,"id":"echo","result":[1,"a"]}"#;
    assert_eq!(sent(&mut server, expected.len()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn other_requests_of_the_server_are_refused() {
    let (mut connection, mut server) = pair(1000);
    server
        .write_all(br#"{"id":5,"method":"steal","params":[]}"#)
        .await
        .unwrap();
    let _quiet = tokio::time::timeout(Duration::from_millis(1), connection.next()).await;
    let expected = r#"{"error":"unknown method","id":5,"result":null}"#;
    assert_eq!(sent(&mut server, expected.len()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn silence_is_probed_once_and_then_ends_the_connection() {
    let (mut connection, mut server) = pair(1000);
    let start = Instant::now();
    let error = connection.next().await.unwrap_err();
    assert!(matches!(error, SessionError::Silent { .. }), "{error:?}");
    assert_eq!(start.elapsed(), PROBE * 2);
    drop(connection);
    let mut all = String::new();
    server.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, r#"{"id":0,"method":"echo","params":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn any_byte_is_a_sign_of_life() {
    let (mut connection, mut server) = pair(1000);
    for byte in br#"{"method":"update3"#.iter() {
        server.write_all(&[*byte]).await.unwrap();
        let quiet = tokio::time::timeout(PROBE * 3 / 2, connection.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answered_probes_go_on_for_ever() {
    let (mut connection, mut server) = pair(1000);
    let serve = async {
        let probe = r#"{"id":0,"method":"echo","params":[]}"#;
        for _ in 0..100 {
            assert_eq!(sent(&mut server, probe.len()).await, probe);
            server
                .write_all(br#"{"id":0,"result":[],"error":null}"#)
                .await
                .unwrap();
        }
    };
    tokio::select! {
        ended = connection.next() => panic!("{ended:?}"),
        () = serve => {}
    }
}

#[tokio::test(start_paused = true)]
async fn end_within_a_message_says_so() {
    let (mut connection, mut server) = pair(1000);
    server.write_all(b"{\"id\":1,").await.unwrap();
    drop(server);
    let error = connection.next().await.unwrap_err();
    assert!(
        matches!(error, SessionError::Closed { partial: 8 }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "the server closed the connection 8 bytes into a message"
    );
}

#[tokio::test(start_paused = true)]
async fn oversized_message_is_cut_off_before_it_is_complete() {
    let (mut connection, mut server) = pair(1000);
    server.write_all(b"{\"params\":\"").await.unwrap();
    server.write_all(&[b'x'; 2000]).await.unwrap();
    let error = connection.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            SessionError::Frame(FrameError::Oversized { limit: 1000 })
        ),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn malformed_message_ends_the_connection() {
    for message in [
        "{]",
        "{\"id\":1,\"result\":tru}",
        "{\"x\":1}",
        "{\"\u{0}\":1}",
    ] {
        let (mut connection, mut server) = pair(1000);
        server.write_all(message.as_bytes()).await.unwrap();
        let error = connection.next().await.unwrap_err();
        assert!(matches!(error, SessionError::Message(_)), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn flood_of_echoes_whose_answers_nobody_reads_is_cut_off() {
    let (ours, mut server) = tokio::io::duplex(1024);
    let mut connection = Connection::new(Box::new(ours), 1 << 20, None, false);
    let params = "x".repeat(1000);
    let echo = format!(r#"{{"id":1,"method":"echo","params":["{params}"]}}"#);
    let flood = async { while server.write_all(echo.as_bytes()).await.is_ok() {} };
    let error = tokio::select! {
        ended = connection.next() => ended.unwrap_err(),
        () = flood => panic!("it was not read"),
    };
    assert!(matches!(error, SessionError::Unread { .. }), "{error:?}");
}

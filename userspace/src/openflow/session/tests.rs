use tokio::net::UnixListener;

use super::*;
use crate::openflow::wire::{FlowStatsRequest, Reply, Request};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Both ends of a connection, agreed on 1.3. The HELLO of this side is read.
async fn connected() -> (tempfile::TempDir, Session, UnixStream) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("br-ex.mgmt");
    let listener = UnixListener::bind(&path).unwrap();
    let bridge = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        send(&mut stream, 1, &Message::Hello(Hello::only(Version::V1_3))).await;
        assert!(matches!(receive(&mut stream).await.1, Message::Hello(_)));
        stream
    };
    let (session, stream) = tokio::join!(Session::connect(&path, Version::V1_3, TIMEOUT), bridge);
    (directory, session.unwrap(), stream)
}

async fn send(stream: &mut UnixStream, xid: u32, message: &Message) {
    let mut bytes = BytesMut::new();
    message.encode(Version::V1_3, xid, &mut bytes).unwrap();
    stream.write_all(&bytes).await.unwrap();
}

async fn receive(stream: &mut UnixStream) -> (u32, Message) {
    let mut bytes = vec![0; Header::LENGTH];
    stream.read_exact(&mut bytes).await.unwrap();
    let length = Header::frame_length(&bytes).unwrap().unwrap();
    bytes.resize(length, 0);
    stream
        .read_exact(&mut bytes[Header::LENGTH..])
        .await
        .unwrap();
    let (header, message) = Message::decode(&bytes).unwrap();
    (header.xid, message)
}

#[tokio::test]
async fn an_echo_request_is_answered_with_its_bytes_and_not_returned() {
    let (_directory, mut session, mut bridge) = connected().await;
    let other_side = async {
        send(&mut bridge, 7, &Message::EchoRequest(b"alive?".to_vec())).await;
        let answer = receive(&mut bridge).await;
        send(&mut bridge, 8, &Message::BarrierReply).await;
        answer
    };
    let (next, answer) = tokio::join!(session.next("a barrier"), other_side);
    assert_eq!(next.unwrap(), (8, Message::BarrierReply));
    assert_eq!(answer, (7, Message::EchoReply(b"alive?".to_vec())));
}

#[tokio::test]
async fn a_wait_that_is_cancelled_in_the_middle_of_a_message_loses_nothing() {
    let (_directory, mut session, mut bridge) = connected().await;
    let mut bytes = BytesMut::new();
    for xid in 5..8 {
        let echo = Message::Other {
            kind: 10,
            body: vec![xid; 20],
        };
        echo.encode(Version::V1_3, xid.into(), &mut bytes).unwrap();
    }
    let mut seen = Vec::new();
    for piece in bytes.chunks(5) {
        bridge.write_all(piece).await.unwrap();
        // Polled once: a wait that does not end at once is dropped.
        for _ in 0..3 {
            tokio::select! {
                biased;
                next = session.next("anything") => seen.push(next.unwrap().0),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    assert_eq!(seen, [5, 6, 7]);
}

#[tokio::test]
async fn an_answer_is_told_from_the_answers_to_earlier_requests() {
    let (_directory, mut session, mut bridge) = connected().await;
    let first = session.send(&Message::BarrierRequest).unwrap();
    let request = Request::Flows(FlowStatsRequest {
        table: 0xff,
        cookie: 0,
        cookie_mask: 0,
        matches: Vec::new(),
    });
    let second = session
        .send(&Message::Request {
            request,
            more: false,
        })
        .unwrap();
    let reply = Message::Reply {
        reply: Reply::Flows(Vec::new()),
        more: false,
    };
    send(&mut bridge, first, &Message::BarrierReply).await;
    send(&mut bridge, second, &reply).await;
    let answer = session
        .answer(second, "flows", Deadline::after(TIMEOUT))
        .await
        .unwrap();
    assert_eq!(answer, reply);
}

#[tokio::test]
async fn a_silent_bridge_is_asked_for_an_echo_and_then_given_up() {
    let (_directory, mut session, mut bridge) = connected().await;
    tokio::time::pause();
    let begun = Instant::now();
    let error = session.next_event("news").await.unwrap_err();
    let SessionError::Timeout { waiting_for, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(waiting_for, "an echo reply");
    assert!(begun.elapsed() >= PROBE_AFTER + TIMEOUT);
    assert!(matches!(
        receive(&mut bridge).await.1,
        Message::EchoRequest(_)
    ));
}

#[tokio::test]
async fn a_bridge_that_hangs_up_while_we_write_is_still_heard() {
    let (_directory, mut session, mut bridge) = connected().await;
    let error = Message::Error(ErrorMessage {
        code: ErrorCode {
            version: Version::V1_3,
            experimenter: None,
            kind: 1,
            code: 5,
        },
        data: Vec::new(),
    });
    send(&mut bridge, 0, &error).await;
    drop(bridge);
    session.send(&Message::BarrierRequest).unwrap();
    assert_eq!(session.next("a barrier").await.unwrap(), (0, error));
    let end = session.next("a barrier").await.unwrap_err();
    assert!(matches!(end, SessionError::Closed { .. }), "{end:?}");
}

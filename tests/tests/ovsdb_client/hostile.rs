//! Servers that do what none should.

use std::time::Duration;

use neighsteer::ovsdb::{
    Backoff, ConnectError, MonitorRequest, Operation, Options, Remote, SessionError, TableRequest,
    TransactError,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::peer::Peer;

const NIL: &str = "00000000-0000-0000-0000-000000000000";
const ROW: &str = "550e8400-e29b-41d4-a716-446655440000";
const TRANSACTION: &str = "11111111-1111-4111-8111-111111111111";

/// A server of which the test writes every byte.
struct Puppet {
    listener: TcpListener,
}

/// One connection of it.
struct Strings {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Puppet {
    async fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Self { listener }
    }

    fn options(&self) -> Options {
        let remote = Remote::Tcp {
            host: "127.0.0.1".to_owned(),
            port: self.listener.local_addr().unwrap().port(),
        };
        let table = TableRequest::new("T", ["a"]);
        Options {
            backoff: Backoff {
                first: Duration::from_millis(1),
                longest: Duration::from_millis(10),
            },
            max_message_bytes: 100_000,
            ..Options::new(vec![remote], "D", MonitorRequest::new().table(table))
        }
    }

    async fn accept(&self) -> Strings {
        let (stream, _) = self.listener.accept().await.unwrap();
        Strings {
            stream,
            input: Vec::new(),
        }
    }

    /// A connection whose client knows one row; returns the params with which it asked for rows.
    async fn serve(&self, reply: String) -> (Strings, serde_json::Value) {
        let mut strings = self.accept().await;
        // Like a server from before `_Server`.
        let request = strings.request("get_schema").await;
        strings.refuse(&request, "unknown database").await;
        let request = strings.request("get_schema").await;
        strings
            .answer(
                &request,
                r#"{"name":"D","version":"1","tables":{"T":{"columns":{"a":{"type":"integer"}}}}}"#,
            )
            .await;
        let request = strings.request("monitor_cond_since").await;
        strings.answer(&request, &reply).await;
        (strings, request["params"].clone())
    }
}

impl Strings {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next request, which must be this one.
    async fn request(&mut self, method: &str) -> serde_json::Value {
        let request = self.next().await;
        let request = request.unwrap_or_else(|| panic!("the client left before {method}"));
        assert_eq!(request["method"], method);
        request
    }

    /// Answers echoes and nothing else, until the client leaves; how many.
    async fn echo(&mut self) -> usize {
        let mut echoes = 0;
        while let Some(request) = self.next().await {
            assert_eq!(request["method"], "echo");
            let id = &request["id"];
            let answer = format!(r#"{{"id":{id},"result":[],"error":null}}"#);
            if self.stream.write_all(answer.as_bytes()).await.is_err() {
                break;
            }
            echoes += 1;
        }
        echoes
    }

    /// The next request; `None` once the client has left.
    async fn next(&mut self) -> Option<serde_json::Value> {
        loop {
            let mut values =
                serde_json::Deserializer::from_slice(&self.input).into_iter::<serde_json::Value>();
            if let Some(Ok(request)) = values.next() {
                let used = values.byte_offset();
                self.input.drain(..used);
                return Some(request);
            }
            // Whoever leaves with an answer unread resets the connection.
            if matches!(self.stream.read_buf(&mut self.input).await, Ok(0) | Err(_)) {
                return None;
            }
        }
    }

    async fn answer(&mut self, request: &serde_json::Value, result: &str) {
        let id = &request["id"];
        self.send(&format!(r#"{{"id":{id},"result":{result},"error":null}}"#))
            .await;
    }

    async fn refuse(&mut self, request: &serde_json::Value, error: &str) {
        let id = &request["id"];
        self.send(&format!(
            r#"{{"id":{id},"result":null,"error":{{"error":"{error}"}}}}"#
        ))
        .await;
    }

    /// Ends the connection by a reset.
    fn reset(self) {
        let stream = self.stream.into_std().unwrap();
        let linger = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    }
}

/// A snapshot of one row.
fn snapshot() -> String {
    format!(r#"[false,"{TRANSACTION}",{{"T":{{"{ROW}":{{"initial":{{"a":1}}}}}}}}]"#)
}

#[tokio::test]
async fn every_bad_message_ends_the_connection_with_its_own_error() {
    let puppet = Puppet::new().await;
    let mut peer = Peer::connect(puppet.options());
    let endless = format!("{{\"x\":\"{}", "y".repeat(200_000));
    let unknown = format!(
        r#"{{"id":null,"method":"update3","params":["monitor","{NIL}",{{"T":{{"{TRANSACTION}":{{"modify":{{"a":1}}}}}}}}]}}"#
    );
    let mistyped = format!(
        r#"{{"id":null,"method":"update3","params":["monitor","{NIL}",{{"T":{{"{ROW}":{{"modify":{{"a":"x"}}}}}}}}]}}"#
    );
    let canceled = r#"{"id":null,"method":"monitor_canceled","params":["monitor"]}"#;
    type Check = fn(&SessionError) -> bool;
    let cases: [(&str, Check); 7] = [
        (&endless, |error| matches!(error, SessionError::Frame(_))),
        ("HTTP/1.1 400 Bad Request", |error| {
            matches!(error, SessionError::Frame(_))
        }),
        ("{\"id\":1]", |error| {
            matches!(error, SessionError::Message(_))
        }),
        (&unknown, |error| matches!(error, SessionError::Apply(_))),
        (&mistyped, |error| {
            matches!(error, SessionError::Update { .. })
        }),
        (canceled, |error| {
            matches!(error, SessionError::MonitorCanceled)
        }),
        ("{\"id\":null,\"meth", |error| {
            matches!(error, SessionError::Closed { partial: 16 })
        }),
    ];
    for (round, (message, expected)) in cases.into_iter().enumerate() {
        let ((mut strings, params), ()) = tokio::join!(
            puppet.serve(snapshot()),
            peer.until(|peer| peer.synced > round)
        );
        // What is known may be wrong, or not: a snapshot is asked for unless it is certain.
        let certain = !matches!(round, 4..=6);
        let last = params[3].as_str().unwrap();
        assert_eq!(
            last == TRANSACTION,
            round > 0 && certain,
            "round {round}: {last}"
        );
        strings.send(message).await;
        strings.stream.shutdown().await.unwrap();
        peer.until(|peer| peer.errors.len() > round).await;
        assert!(expected(&peer.errors[round]), "{:?}", peer.errors[round]);
        assert_eq!(peer.rows.len(), 1);
    }
}

#[tokio::test]
async fn connection_that_is_reset_leaves_the_outcome_open() {
    let puppet = Puppet::new().await;
    let mut peer = Peer::connect(puppet.options());
    let ((mut strings, _), ()) =
        tokio::join!(puppet.serve(snapshot()), peer.until(|peer| peer.synced > 0));
    let client = peer.client.clone();
    let lost = tokio::spawn(async move { client.transact(&[Operation::comment("?")]).await });
    strings.request("transact").await;
    strings.reset();
    let error = lost.await.unwrap().unwrap_err();
    assert!(
        matches!(error, TransactError::ConnectionLost { .. }),
        "{error:?}"
    );
    peer.until(|peer| !peer.errors.is_empty()).await;
    assert!(
        matches!(*peer.errors[0], SessionError::Io(_)),
        "{:?}",
        peer.errors
    );
}

#[tokio::test]
async fn difference_since_the_last_transaction_is_applied_to_what_is_known() {
    let puppet = Puppet::new().await;
    let mut peer = Peer::connect(puppet.options());
    let ((strings, params), ()) = tokio::join!(
        puppet.serve(snapshot()),
        peer.until(|peer| peer.synced == 1)
    );
    assert_eq!(params[3], NIL);
    drop(strings);
    let difference = format!(r#"[true,"{ROW}",{{"T":{{"{ROW}":{{"modify":{{"a":2}}}}}}}}]"#);
    let ((_strings, params), ()) = tokio::join!(
        puppet.serve(difference),
        peer.until(|peer| peer.synced == 2)
    );
    assert_eq!(params[3], TRANSACTION);
    let row = peer.rows.values().next().unwrap();
    assert_eq!(row.integer("a").unwrap(), 2);
}

#[tokio::test]
async fn answer_that_cannot_be_read_is_not_taken_for_a_commit() {
    let puppet = Puppet::new().await;
    let mut peer = Peer::connect(puppet.options());
    let ((mut strings, _), ()) =
        tokio::join!(puppet.serve(snapshot()), peer.until(|peer| peer.synced > 0));
    for (result, open) in [("5", true), ("[{\"count\":\"x\"}]", true), ("[]", false)] {
        let client = peer.client.clone();
        let answer = tokio::spawn(async move {
            let delete = Operation::delete("T");
            client.transact(&[delete.into()]).await
        });
        let request = strings.request("transact").await;
        strings.answer(&request, result).await;
        let error = answer.await.unwrap().unwrap_err();
        assert_eq!(error.changed_nothing(), !open, "{result}: {error:?}");
    }
}

#[tokio::test]
async fn server_that_accepts_and_says_nothing_is_left_for_another() {
    let puppet = Puppet::new().await;
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut options = puppet.options();
    options.remotes.insert(
        0,
        Remote::Tcp {
            host: "127.0.0.1".to_owned(),
            port: silent.local_addr().unwrap().port(),
        },
    );
    options.probe_interval = Some(Duration::from_millis(100));
    let mut peer = Peer::connect(options);
    // Whichever chance picks first, the one that serves is found.
    let (_served, ()) = tokio::join!(puppet.serve(snapshot()), peer.until(|peer| peer.synced > 0));
}

#[tokio::test]
async fn server_that_lives_but_never_sends_its_rows_is_left_for_another() {
    let puppet = Puppet::new().await;
    let chatty = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut options = puppet.options();
    let remotes = vec![Remote::Tcp {
        host: "127.0.0.1".to_owned(),
        port: chatty.local_addr().unwrap().port(),
    }];
    let good = std::mem::replace(&mut options.remotes, remotes);
    options.snapshot_timeout = Duration::from_millis(300);
    let mut peer = Peer::connect(options);
    let (mut stream, _) = chatty.accept().await.unwrap();
    // Asks for echoes all the time: to the probe it is alive.
    let chat = async {
        loop {
            let echo = br#"{"id":"echo","method":"echo","params":[]}"#;
            if stream.write_all(echo).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = chat => {}
        () = peer.until(|peer| !peer.errors.is_empty()) => {}
    }
    assert!(
        matches!(*peer.errors[0], SessionError::NoSnapshot { .. }),
        "{:?}",
        peer.errors
    );
    peer.client.set_remotes(good);
    let (_served, ()) = tokio::join!(puppet.serve(snapshot()), peer.until(|peer| peer.synced > 0));
}

#[tokio::test]
async fn client_without_remotes_says_so() {
    let puppet = Puppet::new().await;
    let mut peer = Peer::connect(Options {
        remotes: Vec::new(),
        ..puppet.options()
    });
    peer.until(|peer| !peer.errors.is_empty()).await;
    assert!(matches!(
        *peer.errors[0],
        SessionError::Connect(ConnectError::NoRemote)
    ));
}

#[tokio::test]
async fn server_that_answers_echoes_and_no_transaction_is_left() {
    let puppet = Puppet::new().await;
    let mut options = puppet.options();
    options.transact_timeout = Duration::from_secs(1);
    // Two go unanswered only on a machine that does nothing else for a second.
    options.probe_interval = Some(Duration::from_millis(500));
    let mut peer = Peer::connect(options);
    let ((mut strings, _), ()) =
        tokio::join!(puppet.serve(snapshot()), peer.until(|peer| peer.synced > 0));
    let client = peer.client.clone();
    let server = async {
        strings.request("transact").await;
        strings.echo().await
    };
    let delete = [Operation::delete("T").into()];
    let (outcome, echoes, ()) = tokio::join!(
        client.transact(&delete),
        server,
        peer.until(|peer| !peer.errors.is_empty())
    );
    let error = outcome.unwrap_err();
    assert!(!error.changed_nothing(), "{error:?}");
    assert!(echoes > 0, "to the probe it is alive");
    assert!(
        matches!(*peer.errors[0], SessionError::Unanswered { .. }),
        "{:?}",
        peer.errors
    );
}

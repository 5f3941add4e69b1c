//! Interfaces that are followed.

use std::{io::Write as _, process::Stdio};

use neighsteer::datapath::netlink::LinkWatch;
use tokio::time::timeout;

use crate::rig::{DEADLINE, Rig};

/// News of a pair take some ten thousand bytes of a socket, which holds twenty times as much by default.
/// No more than it needs: each takes the kernel's lock on interfaces, for which all others wait.
const PAIRS: usize = 100;

#[test]
fn news_that_the_socket_could_not_hold_are_listed_again() {
    let Some(_rig) = Rig::new() else { return };
    // One thread alone: while it is busy here nobody reads the socket.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut watch = LinkWatch::start().await.unwrap();
        assert_eq!(many(&mut watch), 0);
        let lines = |verb: &str| -> String {
            let lines = (0..PAIRS).map(|number| match verb {
                "add" => format!("link add many-{number} type veth peer name more-{number}\n"),
                _ => format!("link del many-{number}\n"),
            });
            lines.collect()
        };
        for (verb, wanted) in [("add", PAIRS), ("del", 0)] {
            batch(&lines(verb));
            let seen = timeout(DEADLINE, async {
                while many(&mut watch) != wanted {
                    watch.changed().await.unwrap();
                }
            });
            let seen = seen.await;
            assert!(seen.is_ok(), "{verb}: {} are known", many(&mut watch));
        }
    });
}

fn many(watch: &mut LinkWatch) -> usize {
    let table = watch.table();
    let many = table.values().filter(|it| it.name.starts_with("many-"));
    many.count()
}

/// Blocks until all of it is done.
fn batch(lines: &str) {
    let mut ip = std::process::Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    ip.stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    assert!(ip.wait().unwrap().success());
}

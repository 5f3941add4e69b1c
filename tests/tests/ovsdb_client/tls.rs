//! TLS: who is trusted, who is not, and what is said of it.

use std::{fs, path::Path, process::Command};

use neighsteer::ovsdb::{
    ConnectError, Operation, Options, Remote, SessionError, TlsError, TlsFiles,
};
use neighsteer_tests::{
    certificates::{Authority, Key, Validity},
    database::DatabaseServer,
};

use crate::{
    peer::{Peer, southbound},
    writer::{self, Writer},
};

const ADDRESS: &str = "DNS:localhost,IP:127.0.0.1";

fn valid(authority: &Authority, file: &str) -> TlsFiles {
    authority
        .issue(file, file, Some(ADDRESS), Key::EcPkcs8, Validity::Valid)
        .unwrap()
}

fn serve(files: &TlsFiles) -> DatabaseServer {
    DatabaseServer::builder(DatabaseServer::SOUTHBOUND)
        .tls(files.clone())
        .start()
        .unwrap()
}

fn options(server: &DatabaseServer, files: &TlsFiles) -> Options {
    Options {
        remotes: vec![server.tcp_remote()],
        tls: Some(files.clone()),
        ..southbound(server)
    }
}

/// The server by its name instead of its address.
fn by_name(server: &DatabaseServer) -> Remote {
    server
        .tcp_remote()
        .to_string()
        .replace("127.0.0.1", "localhost")
        .parse()
        .unwrap()
}

async fn first_error(options: Options) -> (TlsError, String) {
    let mut peer = Peer::connect(options);
    peer.until(|peer| !peer.errors.is_empty()).await;
    assert_eq!(peer.synced, 0);
    peer.driver.abort();
    let _aborted = (&mut peer.driver).await;
    let error = peer.errors.remove(0);
    drop(peer);
    let text = neighsteer::agent::chain(&*error);
    match std::sync::Arc::try_unwrap(error) {
        Ok(SessionError::Connect(ConnectError::Tls { source, .. }) | SessionError::Tls(source)) => {
            (*source, text)
        }
        other => panic!("{other:?}"),
    }
}

/// A certificate for the server, and whether it is good for each way to reach it.
struct Named {
    common_name: &'static str,
    alternatives: Option<&'static str>,
    by_address: bool,
    by_name: bool,
}

#[tokio::test]
async fn every_form_of_key_makes_a_connection() {
    let authority = Authority::new("authority").unwrap();
    for key in [Key::EcPkcs8, Key::EcSec1, Key::RsaPkcs8, Key::RsaPkcs1] {
        let [ours, theirs] = ["client", "server"].map(|file| {
            authority
                .issue(file, file, Some(ADDRESS), key, Validity::Valid)
                .unwrap()
        });
        let server = serve(&theirs);
        let mut peer = Peer::synced(Options {
            dedicated_writer: true,
            ..options(&server, &ours)
        })
        .await;
        let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
        writer.progress().await;
        let written = writer.stop().await;
        writer::check(&mut peer, &written, options(&server, &ours)).await;
        assert_eq!(peer.errors.len(), 0, "{key:?}: {:?}", peer.errors);
    }
}

#[tokio::test]
async fn name_counts_where_the_certificate_has_one_of_its_kind() {
    let authority = Authority::new("authority").unwrap();
    let ours = valid(&authority, "client");
    let named = |common_name, alternatives, by_address, by_name| Named {
        common_name,
        alternatives,
        by_address,
        by_name,
    };
    for named in [
        named("ovnsb", Some(ADDRESS), true, true),
        // The authority's word alone, as Open vSwitch has it.
        named("ovnsb", None, true, true),
        named("ovnsb id:1234", None, true, true),
        named("ovnsb id:1234", Some("DNS:ovnsb id:1234"), true, true),
        named("ovnsb", Some("DNS:ovnsb"), true, false),
        named("x", Some("DNS:central.example,DNS:localhost"), true, true),
        named("x", Some("DNS:central.example"), true, false),
        named("x", Some("IP:10.9.9.9"), false, true),
        named("127.0.0.1", Some("IP:10.9.9.9"), false, true),
        named("127.0.0.1", None, true, false),
        named("10.9.9.9", None, false, false),
        named("central.example", None, false, false),
    ] {
        let theirs = authority
            .issue(
                "server",
                named.common_name,
                named.alternatives,
                Key::EcPkcs8,
                Validity::Valid,
            )
            .unwrap();
        let server = serve(&theirs);
        for (remote, good) in [
            (server.tcp_remote(), named.by_address),
            (by_name(&server), named.by_name),
        ] {
            let what = format!("{} {:?} at {remote}", named.common_name, named.alternatives);
            let options = Options {
                remotes: vec![remote],
                ..options(&server, &ours)
            };
            if good {
                let peer = Peer::synced(options).await;
                assert_eq!(peer.errors.len(), 0, "{what}: {:?}", peer.errors);
            } else {
                let (error, text) = first_error(options).await;
                assert!(
                    matches!(error, TlsError::WrongName { .. }),
                    "{what}: {text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn who_is_not_trusted_is_told_why() {
    let authority = Authority::new("authority").unwrap();
    let stranger = Authority::new("stranger").unwrap();
    let namesake = Authority::new("authority").unwrap();
    let ours = valid(&authority, "client");
    let theirs = valid(&authority, "server");
    let server = serve(&theirs);
    for other in [&stranger, &namesake] {
        // The server's certificate is from somebody else than we expect.
        let (error, text) = first_error(options(
            &server,
            &TlsFiles {
                ca_cert: other.certificate(),
                ..ours.clone()
            },
        ))
        .await;
        assert!(matches!(error, TlsError::UnknownAuthority { .. }), "{text}");
        assert!(text.contains("authority.pem"), "{text}");
        // Ours is from somebody else than the server expects.
        let (error, text) = first_error(options(
            &server,
            &TlsFiles {
                ca_cert: authority.certificate(),
                ..valid(other, "client")
            },
        ))
        .await;
        assert!(is_refused(&error), "{text}");
    }
    for (validity, expected) in [
        (Validity::Expired, "has expired"),
        (Validity::NotYet, "not valid yet"),
    ] {
        let bad = authority
            .issue("bad", "bad", Some(ADDRESS), Key::EcPkcs8, validity)
            .unwrap();
        let (error, text) = first_error(options(&serve(&bad), &ours)).await;
        assert!(
            matches!(error, TlsError::Expired(_) | TlsError::NotYetValid(_)),
            "{text}"
        );
        assert!(text.contains(expected), "{text}");
        let (error, text) = first_error(options(&server, &bad)).await;
        assert!(is_refused(&error), "{text}");
    }
}

/// The server's reason may be lost where it leaves with our first request unread.
fn is_refused(error: &TlsError) -> bool {
    matches!(error, TlsError::Refused { .. } | TlsError::Dropped(_))
}

#[tokio::test]
async fn server_without_tls_and_client_without_files_are_named() {
    let authority = Authority::new("authority").unwrap();
    let ours = valid(&authority, "client");
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let remote: Remote = server
        .tcp_remote()
        .to_string()
        .replace("tcp:", "ssl:")
        .parse()
        .unwrap();
    let plain = Options {
        remotes: vec![remote],
        ..options(&server, &ours)
    };
    let mut peer = Peer::connect(Options {
        tls: None,
        ..plain.clone()
    });
    peer.until(|peer| !peer.errors.is_empty()).await;
    assert!(
        matches!(
            *peer.errors[0],
            SessionError::Connect(ConnectError::NoTlsFiles { .. })
        ),
        "{:?}",
        peer.errors
    );
    let (error, text) = first_error(plain).await;
    assert!(
        matches!(error, TlsError::Handshake(_) | TlsError::Io(_)),
        "{text}"
    );
}

#[tokio::test]
async fn file_that_is_not_what_it_should_be_is_named_and_its_content_is_not() {
    let authority = Authority::new("authority").unwrap();
    let ours = valid(&authority, "client");
    let theirs = valid(&authority, "server");
    let server = serve(&theirs);
    type Change = fn(&mut TlsFiles, &TlsFiles);
    let cases: [(Change, &str); 6] = [
        (
            |files, _| files.private_key = "/nowhere/key.pem".into(),
            "cannot read /nowhere/key.pem",
        ),
        (
            |files, _| files.private_key = files.certificate.clone(),
            "no private key",
        ),
        (
            |files, _| files.certificate = files.private_key.clone(),
            "no certificate",
        ),
        (
            |files, _| files.ca_cert = "/nowhere/ca.pem".into(),
            "cannot read /nowhere/ca.pem",
        ),
        (
            |files, _| files.ca_cert = files.private_key.clone(),
            "no certificate",
        ),
        (
            |files, other| files.private_key = other.private_key.clone(),
            "cannot be used together",
        ),
    ];
    let secret = fs::read_to_string(&ours.private_key).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    for (change, expected) in cases {
        let mut files = ours.clone();
        change(&mut files, &theirs);
        let (error, text) = first_error(options(&server, &files)).await;
        assert!(text.contains(expected), "{text}");
        assert!(!format!("{error:?} {text}").contains(secret));
    }
    // Cut off in the middle.
    let pem = fs::read_to_string(&ours.certificate).unwrap();
    fs::write(&ours.certificate, &pem[..pem.len() / 2]).unwrap();
    let (error, text) = first_error(options(&server, &ours)).await;
    assert!(matches!(error, TlsError::Pem { .. }), "{text}");
}

#[tokio::test]
async fn certificate_that_expired_heals_when_it_is_renewed_on_either_side() {
    let authority = Authority::new("authority").unwrap();
    let issue = |file, validity| {
        authority
            .issue(file, file, Some(ADDRESS), Key::EcPkcs8, validity)
            .unwrap()
    };
    let ours = issue("client", Validity::Expired);
    let theirs = issue("server", Validity::Expired);
    let mut server = serve(&theirs);
    let mut peer = Peer::connect(options(&server, &ours));
    let said = |peer: &Peer, wanted: fn(&TlsError) -> bool| {
        peer.errors.iter().any(|error| match &**error {
            SessionError::Connect(ConnectError::Tls { source, .. }) | SessionError::Tls(source) => {
                wanted(source)
            }
            _ => false,
        })
    };
    peer.until(|peer| said(peer, |error| matches!(error, TlsError::Expired(_))))
        .await;
    issue("server", Validity::Valid);
    // It looks at its files now and then; a restart is quicker.
    server.kill().unwrap();
    server.resurrect().unwrap();
    peer.until(|peer| said(peer, is_refused)).await;
    assert_eq!(peer.synced, 0);
    issue("client", Validity::Valid);
    peer.until(|peer| peer.synced == 1).await;
    peer.client
        .transact(&[Operation::comment("trusted")])
        .await
        .unwrap();
}

#[tokio::test]
async fn certificates_of_ovs_pki_are_good() {
    let directory = tempfile::tempdir().unwrap();
    let pki = |arguments: &[&str]| {
        let output = Command::new("ovs-pki")
            .arg(format!("--dir={}/pki", directory.path().display()))
            .arg(format!("--log={}/log", directory.path().display()))
            .arg("--force")
            .args(arguments)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    pki(&["init"]);
    let files = |name: &str, authority: &str| {
        pki(&["req+sign", name, authority]);
        let path = |file: String| directory.path().join(file);
        TlsFiles {
            private_key: path(format!("{name}-privkey.pem")),
            certificate: path(format!("{name}-cert.pem")),
            ca_cert: Path::new(directory.path()).join("pki/switchca/cacert.pem"),
        }
    };
    let (ours, theirs) = (files("chassis", "switch"), files("ovnsb", "switch"));
    let server = serve(&theirs);
    let mut peer = Peer::synced(options(&server, &ours)).await;
    assert_eq!(peer.errors.len(), 0, "{:?}", peer.errors);
    let datapath = peer.datapath().await;
    peer.bind(datapath, &["a"]).await;
    peer.until(|peer| peer.rows.len() == 1).await;
}

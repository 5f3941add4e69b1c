//! A client that checks what it is told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use neighsteer::ovsdb::{
    Change, Client, Event, Monitor, MonitorRequest, Operation, OperationResult, Options, Row,
    SessionError, TableRequest, Uuid,
};
use neighsteer_tests::database::DatabaseServer;
use tokio::{task::JoinHandle, time::timeout};

/// Far longer than anything here takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A client whose driver runs, with what it has seen so far.
pub(crate) struct Peer {
    pub(crate) client: Client,
    pub(crate) monitor: Monitor,
    pub(crate) driver: JoinHandle<()>,
    /// The rows, by what the events say.
    pub(crate) rows: BTreeMap<Uuid, Row>,
    pub(crate) synced: usize,
    /// Why connections ended or were not made.
    pub(crate) errors: Vec<Arc<SessionError>>,
    pub(crate) conditions: u64,
}

impl Peer {
    pub(crate) fn connect(options: Options) -> Self {
        let (client, monitor, driver) = Client::connect(options);
        Self {
            client,
            monitor,
            driver: tokio::spawn(driver.run()),
            rows: BTreeMap::new(),
            synced: 0,
            errors: Vec::new(),
            conditions: 0,
        }
    }

    /// A client that knows the rows of its first connection.
    pub(crate) async fn synced(options: Options) -> Self {
        let mut peer = Self::connect(options);
        peer.until(|peer| peer.synced > 0).await;
        peer
    }

    /// Takes the next event in, checking that each change starts from what was known.
    pub(crate) async fn take(&mut self) -> Vec<Change> {
        let event = timeout(DEADLINE, self.monitor.next()).await;
        let batch = match event.expect("an event in time").expect("a driver") {
            Event::Synced(batch) => {
                self.synced += 1;
                batch
            }
            Event::Changes(batch) => {
                assert!(self.synced > 0, "changes before the first snapshot");
                batch
            }
            Event::Disconnected { error } => {
                self.errors.push(error);
                return Vec::new();
            }
        };
        self.conditions = batch.conditions;
        for change in &batch.changes {
            assert_eq!(self.rows.get(&change.uuid), change.old.as_ref());
            match &change.new {
                Some(row) => self.rows.insert(change.uuid, row.clone()),
                None => self.rows.remove(&change.uuid),
            };
        }
        batch.changes
    }

    /// Takes events in until something holds.
    pub(crate) async fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        let taken = timeout(DEADLINE, async {
            while !holds(self) {
                self.take().await;
            }
        });
        if taken.await.is_err() {
            panic!(
                "not in time; {} rows, errors {:?}",
                self.rows.len(),
                self.errors
            );
        }
    }

    /// The values of a text column, sorted and strung together.
    pub(crate) fn texts(&self, column: &str) -> String {
        let mut texts: Vec<_> = self
            .rows
            .values()
            .map(|row| row.string(column).unwrap())
            .collect();
        texts.sort_unstable();
        texts.concat()
    }

    /// Inserts a datapath for bindings to refer to.
    pub(crate) async fn datapath(&self) -> Uuid {
        let key = fastrand::i64(1..16_777_215);
        let insert = Operation::insert("Datapath_Binding").set("tunnel_key", key);
        let inserted = timeout(DEADLINE, async {
            loop {
                match self.client.transact(&[insert.clone().into()]).await {
                    Ok(results) => return results,
                    // A cluster may be between two leaders.
                    Err(error) => assert!(error.changed_nothing(), "{error:?}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let results = inserted.await.expect("a commit in time");
        match results[..] {
            [OperationResult::Inserted(uuid)] => uuid,
            _ => panic!("{results:?}"),
        }
    }

    /// Inserts one binding for each port.
    pub(crate) async fn bind(&self, datapath: Uuid, ports: &[&str]) -> Vec<Uuid> {
        let (uuids, inserts): (Vec<_>, Vec<_>) = ports
            .iter()
            .map(|port| binding(datapath, port, "10.0.0.1"))
            .unzip();
        self.client.transact(&inserts).await.unwrap();
        uuids
    }
}

/// The bindings, whole.
pub(crate) fn bindings() -> TableRequest {
    TableRequest::new(
        "MAC_Binding",
        ["logical_port", "ip", "mac", "datapath", "timestamp"],
    )
}

/// Options for the bindings of a server.
pub(crate) fn southbound(server: &DatabaseServer) -> Options {
    Options::new(
        vec![server.remote()],
        "OVN_Southbound",
        MonitorRequest::new().table(bindings()),
    )
}

/// A binding to insert, with the identity that it will have.
pub(crate) fn binding(datapath: Uuid, port: &str, ip: &str) -> (Uuid, Operation) {
    let uuid = Uuid::random();
    let insert = Operation::insert("MAC_Binding")
        .uuid(uuid)
        .set("logical_port", port)
        .set("ip", ip)
        .set("mac", "02:00:00:00:00:01")
        .set("datapath", datapath)
        .set("timestamp", 1_700_000_000_000);
    (uuid, insert.into())
}

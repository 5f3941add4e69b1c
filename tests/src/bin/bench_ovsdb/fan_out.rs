//! From one binding of the source to one for every follower: the agent's mirror on a real server,
//! in turn with one hand-packed transaction of as many rows.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, bail, ensure};
use neighsteer::{
    agent::{
        databases::MAC_BINDING,
        mirroring::{Clock, Done, Mirrors},
    },
    ids::{Mac, OfPort},
    mirror::Settings,
    ovsdb::{Clause, Client, Event, Monitor, MonitorCondition, Operation, Options, Uuid},
    topology::{AgeThreshold, BridgeGroup, GatewayRouter, IngressPort, Topology},
};
use neighsteer_tests::{database::DatabaseServer, raw_database::RawClient};
use tokio::time::timeout;

use crate::{Times, setup};

const SOURCE: &str = "rtoe-GR_node";
/// Far longer than a round takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(serde::Serialize)]
pub(crate) struct Report {
    pub(crate) followers: usize,
    pub(crate) rounds: usize,
    /// A transaction of the same rows, packed by hand before the clock starts. The server tells the
    /// agent of them, as it does when the agent writes them.
    pub(crate) raw: Times,
    /// A transaction of as many rows that nobody monitors.
    pub(crate) raw_unmonitored: Times,
    /// From the event of the source's row to the last answer.
    pub(crate) seen_to_committed: Times,
    /// From the same to the first answer.
    pub(crate) seen_to_first_chunk: Times,
    /// From the source's row being written by another client to the last answer.
    pub(crate) sent_to_committed: Times,
    /// `seen_to_committed` by `raw`, medians.
    pub(crate) ratio: f64,
    /// `seen_to_committed` by `raw_unmonitored`, medians.
    pub(crate) ratio_unmonitored: f64,
    /// Transactions of the mirror a round.
    pub(crate) transactions: f64,
    /// To turn as many inserts into JSON, µs.
    pub(crate) serialise_us: f64,
}

/// The mirror with its connection.
struct Agent {
    mirrors: Mirrors,
    monitor: Monitor,
}

/// What woke it.
enum Woken {
    Event(Event),
    Done(Done),
    Due,
}

/// The moments of one round.
#[derive(Default)]
struct Round {
    seen: Option<Instant>,
    first: Option<Instant>,
    committed: usize,
    transactions: usize,
    /// Rows that came, by the monitor.
    added: usize,
    /// Rows that went.
    deleted: usize,
}

impl Agent {
    /// One turn of the agent's loop.
    async fn turn(&mut self, round: &mut Round) -> anyhow::Result<()> {
        let deadline = self.mirrors.next_deadline();
        let woken = tokio::select! {
            biased;
            event = self.monitor.next() => Woken::Event(event.context("the client has ended")?),
            done = self.mirrors.finished() => Woken::Done(done),
            () = due(deadline) => Woken::Due,
        };
        match woken {
            Woken::Event(Event::Changes(batch)) => {
                for change in &batch.changes {
                    let source = change
                        .new
                        .as_ref()
                        .and_then(|row| row.string("logical_port").ok());
                    if source.as_deref() == Some(SOURCE) {
                        round.seen.get_or_insert_with(Instant::now);
                    }
                    round.added += usize::from(change.old.is_none());
                    round.deleted += usize::from(change.new.is_none());
                }
                self.mirrors.apply(&batch.changes, batch.conditions);
            }
            Woken::Event(other) => bail!("{other:?}"),
            Woken::Done(done) => {
                if let Done::Batch(batch) = &done {
                    let (_, batch, result) = &**batch;
                    if let Err(error) = result {
                        bail!("a batch failed: {error}");
                    }
                    round.first.get_or_insert_with(Instant::now);
                    round.committed += batch.operations.len();
                    round.transactions += 1;
                }
                self.mirrors.settle(done);
            }
            Woken::Due => {}
        }
        self.mirrors.pump();
        Ok(())
    }
}

impl Agent {
    /// Turns until something holds.
    async fn until(
        &mut self,
        round: &mut Round,
        holds: impl Fn(&Round) -> bool,
    ) -> anyhow::Result<()> {
        let turns = timeout(PATIENCE, async {
            while !holds(round) {
                self.turn(round).await?;
            }
            anyhow::Ok(())
        });
        turns.await.context("nothing happens any more")?
    }
}

pub(crate) async fn measure(followers: usize, rounds: usize) -> anyhow::Result<Report> {
    ensure!(rounds > 0, "at least one round is needed");
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND)?;
    let writer = setup::writer(&server).await?;
    let datapaths = setup::datapaths(&writer, followers + 1).await?;
    let topology = topology(&datapaths)?;
    let none = MonitorCondition::AnyOf(Vec::new());
    // As the agent has it.
    let options = Options {
        dedicated_writer: true,
        ..setup::options(server.remote(), none)
    };
    let (client, mut monitor, driver) = Client::connect(options);
    tokio::spawn(driver.run());
    setup::synced(&mut monitor).await?;
    let mut mirrors = Mirrors::new(client, Clock::start(), Settings::default(), BTreeSet::new());
    mirrors.regroup(topology.groups.iter());
    mirrors.synced();
    let mut agent = Agent { mirrors, monitor };
    // The answer to the new condition.
    agent.turn(&mut Round::default()).await?;

    let mut raw_client = RawClient::connect(&server.socket())?;
    let (mut raw, mut unmonitored) = (vec![], vec![]);
    let (mut seen, mut first, mut sent) = (vec![], vec![], vec![]);
    let mut transactions = 0;
    for number in 0..rounds {
        let ip = format!("10.1.{}.{}", number / 250, number % 250);
        for (prefix, times) in [("net", &mut raw), ("raw", &mut unmonitored)] {
            let request = hand_packed(&datapaths, prefix, &ip);
            let start = Instant::now();
            let (_, end) = raw_client.call(&request)?;
            times.push(start.elapsed());
            let end = String::from_utf8_lossy(&end);
            ensure!(!end.contains("violation"), "{end}");
            // The agent must have seen the rows, or their coming and going is no news to it.
            let monitored = if prefix == "net" { followers } else { 0 };
            let mut round = Round::default();
            agent
                .until(&mut round, |round| round.added >= monitored)
                .await?;
            clean(&mut agent, &writer, &ip, monitored).await?;
        }

        let mut round = Round::default();
        let source = setup::insert(
            SOURCE,
            datapaths.first().copied().unwrap_or_default(),
            &ip,
            now(),
        );
        let start = Instant::now();
        let write = writer.clone();
        let written = tokio::spawn(async move { write.transact(&[source]).await });
        agent
            .until(&mut round, |round| round.committed >= followers)
            .await?;
        let end = Instant::now();
        written.await??;
        let at = round.seen.context("the source's row was not seen")?;
        seen.push(end - at);
        first.push(round.first.context("nothing was committed")? - at);
        sent.push(end - start);
        transactions += round.transactions;

        // Answers overtake the rows: those come too.
        agent
            .until(&mut round, |round| round.added > followers)
            .await?;
        clean(&mut agent, &writer, &ip, followers + 1).await?;
    }
    let raw = Times::of(raw);
    let raw_unmonitored = Times::of(unmonitored);
    let seen_to_committed = Times::of(seen);
    Ok(Report {
        followers,
        rounds,
        ratio: seen_to_committed.median_ms / raw.median_ms,
        ratio_unmonitored: seen_to_committed.median_ms / raw_unmonitored.median_ms,
        raw,
        raw_unmonitored,
        seen_to_committed,
        seen_to_first_chunk: Times::of(first),
        sent_to_committed: Times::of(sent),
        transactions: mean(transactions, rounds),
        serialise_us: serialise(&datapaths)?,
    })
}

/// Deletes every row of an address, `monitored` of which the agent hears of.
async fn clean(
    agent: &mut Agent,
    writer: &Client,
    ip: &str,
    monitored: usize,
) -> anyhow::Result<()> {
    // The source's row first: the mirror puts back what goes before it.
    let by_ip = || Operation::delete(MAC_BINDING).filter(Clause::equal("ip", ip));
    let source = by_ip().filter(Clause::equal("logical_port", SOURCE));
    writer.transact(&[source.into()]).await?;
    writer.transact(&[by_ip().into()]).await?;
    let mut round = Round::default();
    agent
        .until(&mut round, |round| round.deleted >= monitored)
        .await
}

/// The time that it takes to write as many inserts as JSON, µs: the best of some.
fn serialise(datapaths: &[Uuid]) -> anyhow::Result<f64> {
    let inserts: Vec<Operation> = datapaths
        .iter()
        .skip(1)
        .map(|datapath| setup::insert("rtoe-GR_net_node", *datapath, "10.0.0.1", now()))
        .collect();
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        let json = serde_json::to_vec(std::hint::black_box(&inserts))?;
        best = best.min(start.elapsed());
        std::hint::black_box(json);
    }
    Ok(best.as_secs_f64() * 1e6)
}

/// One transaction of one row a follower.
fn hand_packed(datapaths: &[Uuid], prefix: &str, ip: &str) -> Vec<u8> {
    let timestamp = now();
    let inserts: Vec<String> = datapaths
        .iter()
        .enumerate()
        .skip(1)
        .map(|(number, datapath)| {
            format!(
                r#"{{"op":"insert","table":"MAC_Binding","row":{{"logical_port":"rtoe-GR_{prefix}{number}_node","datapath":["uuid","{datapath}"],"ip":"{ip}","mac":"02:00:00:00:00:01","timestamp":{timestamp}}}}}"#
            )
        })
        .collect();
    let inserts = inserts.join(",");
    format!(r#"{{"id":1,"method":"transact","params":["OVN_Southbound",{inserts}]}}"#).into_bytes()
}

/// ms since the epoch.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn mean(total: usize, of: usize) -> f64 {
    let float = |number| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(total) / float(of)
}

/// The source on the first datapath, a follower on each of the others.
fn topology(datapaths: &[Uuid]) -> anyhow::Result<Topology> {
    let ofport = OfPort::from_column(Some(1)).context("1 is a port number")?;
    let router = |number: usize, datapath: &Uuid| GatewayRouter {
        name: format!("GR_net{number}_node").into(),
        network: Some(format!("net{number}").into()),
        external_port: if number == 0 {
            SOURCE.into()
        } else {
            format!("rtoe-GR_net{number}_node").into()
        },
        external_mac: None,
        datapath: Some(*datapath),
        patch_port: format!("patch-net{number}").into(),
        ofport,
        mac_binding_age_threshold: AgeThreshold::from_option(Some(&Arc::from("300"))),
    };
    let mut routers = datapaths
        .iter()
        .enumerate()
        .map(|(number, datapath)| router(number, datapath));
    let group = routers.next().map(|source| BridgeGroup {
        bridge: "br-ex".into(),
        bridge_mac: Mac([2, 0, 0, 0, 0, 2]),
        datapath_type: "netdev".into(),
        uplink: IngressPort {
            name: "eth0".into(),
            ofport,
        },
        secondary: Vec::new(),
        source,
        followers: routers.collect(),
        gateway_vlan: None,
        ipv4: true,
        ipv6: true,
        node_addresses: Vec::new(),
    });
    Ok(Topology {
        chassis: Some("node".into()),
        groups: group.into_iter().collect(),
        skipped: Vec::new(),
    })
}

async fn due(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

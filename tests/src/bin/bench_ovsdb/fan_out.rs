//! From one binding of the source to one for every follower: the agent's mirror on a real server,
//! in turn with one hand-packed transaction of as many rows.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use neighsteer::{
    agent::{clock::Clock, databases::MAC_BINDING},
    mirror::Settings,
    ovsdb::{Clause, Client, Operation, Uuid},
};
use neighsteer_tests::{
    database::DatabaseServer,
    mirroring::{Mirroring, Progress, SOURCE, group},
    raw_database::RawClient,
    report::Times,
    southbound::{self, now},
};

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

pub(crate) async fn measure(followers: usize, rounds: usize) -> anyhow::Result<Report> {
    ensure!(rounds > 0, "at least one round is needed");
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND)?;
    let writer = southbound::writer(server.remote()).await?;
    let datapaths = southbound::datapaths(&writer, followers + 1).await?;
    let group = group(&datapaths, "300")?;
    let settings = Settings::default();
    let remotes = vec![server.remote()];
    let mut agent =
        Mirroring::start(None, remotes, &group, Clock::start(), settings, |it| it).await?;
    // The answer to the new condition.
    agent.turn().await?;

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
            let mut round = Progress::default();
            round
                .until(&mut agent, "rows of the raw client", |round| {
                    round.added >= monitored
                })
                .await?;
            clean(&mut agent, &writer, &ip, monitored).await?;
        }

        let mut round = Progress::default();
        let source = southbound::insert(
            SOURCE,
            datapaths.first().copied().unwrap_or_default(),
            &ip,
            now(),
        );
        let start = Instant::now();
        let write = writer.clone();
        let written = tokio::spawn(async move { write.transact(&[source]).await });
        round
            .until(&mut agent, "followers' rows", |round| {
                round.committed >= followers
            })
            .await?;
        let end = Instant::now();
        written.await??;
        let at = round.seen.context("the source's row was not seen")?;
        seen.push(end - at);
        first.push(round.first.context("nothing was committed")? - at);
        sent.push(end - start);
        transactions += round.transactions;

        // Answers overtake the rows: those come too.
        round
            .until(&mut agent, "followers' rows by the monitor", |round| {
                round.added > followers
            })
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
    agent: &mut Mirroring,
    writer: &Client,
    ip: &str,
    monitored: usize,
) -> anyhow::Result<()> {
    // The source's row first: the mirror puts back what goes before it.
    let by_ip = || Operation::delete(MAC_BINDING).filter(Clause::equal("ip", ip));
    let source = by_ip().filter(Clause::equal("logical_port", SOURCE));
    writer.transact(&[source.into()]).await?;
    writer.transact(&[by_ip().into()]).await?;
    Progress::default()
        .until(agent, "deleted rows", |round| round.deleted >= monitored)
        .await
}

/// The time that it takes to write as many inserts as JSON, µs: the best of some.
fn serialise(datapaths: &[Uuid]) -> anyhow::Result<f64> {
    let inserts: Vec<Operation> = datapaths
        .iter()
        .skip(1)
        .map(|datapath| southbound::insert("rtoe-GR_net_node", *datapath, "10.0.0.1", now()))
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

fn mean(total: usize, of: usize) -> f64 {
    let float = |number| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(total) / float(of)
}

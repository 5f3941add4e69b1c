//! How fast bindings get to all followers, beside the same rows in hand-packed transactions of a
//! client that understands nothing, on the same server and in turn.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use neighsteer::{
    agent::{
        clock::Clock,
        databases::{MAC_BINDING, MAC_BINDING_COLUMNS},
    },
    mirror::Settings,
    ovsdb::{Clause, Client, MonitorRequest, Operation, Remote, Snapshot, TableRequest, Uuid},
};
use neighsteer_tests::{
    database::DatabaseServer,
    mirroring::{Mirroring, Progress, SOURCE, follower_port, group},
    raw_database::RawClient,
    report::Times,
    southbound::{self, NEIGHBOUR_MAC, now},
};

/// Rows of a hand-packed transaction: beyond this a server gets slower per row.
const RAW_ROWS: usize = 1_000;
/// For how long rows live, seconds: longer than the bench takes.
const AGE: &str = "3600";

/// Rows a second, and how they compare.
#[derive(serde::Serialize)]
pub(crate) struct Rates {
    /// By hand, of rows that nobody monitors: what the server can do at most.
    pub(crate) unmonitored: f64,
    /// By hand, of the rows that the mirror monitors and reads at the same time, as it must whoever
    /// writes them.
    pub(crate) raw: f64,
    /// By the mirror.
    pub(crate) mirror: f64,
    /// `mirror` by `raw`.
    pub(crate) ratio: f64,
}

#[derive(serde::Serialize)]
pub(crate) struct Report {
    pub(crate) followers: usize,
    /// Bindings of the source at once.
    pub(crate) burst: usize,
    pub(crate) rounds: usize,
    /// Rows that were not there.
    pub(crate) first: Rates,
    /// Rows that get another timestamp.
    pub(crate) refresh: Rates,
    /// Time of a round by hand, first time.
    pub(crate) raw: Times,
    /// From the source's rows seen to the last follower's committed, first time.
    pub(crate) mirror: Times,
}

/// A refresh of one row a follower, addressed by port and address instead of by row.
#[derive(serde::Serialize)]
pub(crate) struct Naive {
    /// Rows in the table.
    pub(crate) table: usize,
    /// Rows a second by `logical_port` and `ip`.
    pub(crate) by_port_and_ip: f64,
    /// Rows a second by `_uuid`.
    pub(crate) by_uuid: f64,
    /// `by_uuid` by `by_port_and_ip`.
    pub(crate) ratio: f64,
}

/// A server, the mirror on it, and others who write.
struct Bench {
    server: DatabaseServer,
    datapaths: Vec<Uuid>,
    agent: Mirroring,
    writer: Client,
    raw: Option<RawClient>,
}

impl Bench {
    async fn start(followers: usize) -> anyhow::Result<Self> {
        let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND)?;
        let writer = southbound::writer(server.remote()).await?;
        let datapaths = southbound::datapaths(&writer, followers + 1).await?;
        let settings = Settings {
            // Every refresh is passed on at once.
            cooldown_ms: Some(0),
            coalesce_ms: 0,
            ..Settings::default()
        };
        let group = group(&datapaths, AGE)?;
        let remotes = vec![server.remote()];
        let mut agent =
            Mirroring::start(None, remotes, &group, Clock::start(), settings, |it| it).await?;
        // The answer to the new condition.
        agent.turn().await?;
        let raw = RawClient::connect(&server.socket())?;
        Ok(Self {
            server,
            datapaths,
            agent,
            writer,
            raw: Some(raw),
        })
    }

    async fn until(
        &mut self,
        progress: &mut Progress,
        what: &str,
        holds: impl Fn(&Progress) -> bool,
    ) -> anyhow::Result<()> {
        progress.until(&mut self.agent, what, holds).await
    }

    /// Sends requests one after the other, while the mirror reads what it is told; how long that took.
    async fn send(&mut self, requests: Vec<Vec<u8>>) -> anyhow::Result<(Duration, Progress)> {
        let mut raw = self.raw.take().context("the raw client is gone")?;
        let mut sending = tokio::task::spawn_blocking(move || {
            let start = Instant::now();
            for request in &requests {
                let (_, end) = raw.call(request)?;
                let end = String::from_utf8_lossy(&end);
                ensure!(!end.contains("\"details\""), "{end}");
            }
            Ok((start.elapsed(), raw))
        });
        let mut progress = Progress::default();
        let (time, raw) = loop {
            tokio::select! {
                sent = &mut sending => break sent??,
                turn = self.agent.turn() => progress.note(&turn?),
            }
        };
        self.raw = Some(raw);
        Ok((time, progress))
    }

    /// Bindings of every follower by hand, on the followers' ports or on those of nobody.
    fn inserts(&self, ips: &[String], monitored: bool) -> Vec<String> {
        let timestamp = now();
        let row = |(number, datapath): (usize, &Uuid), ip: &String| {
            let mut port = follower_port(number);
            if !monitored {
                port.push_str("_of_nobody");
            }
            format!(
                r#"{{"op":"insert","table":"MAC_Binding","row":{{"logical_port":"{port}","datapath":["uuid","{datapath}"],"ip":"{ip}","mac":"{NEIGHBOUR_MAC}","timestamp":{timestamp}}}}}"#
            )
        };
        let followers = || self.datapaths.iter().enumerate().skip(1);
        ips.iter()
            .flat_map(|ip| followers().map(move |follower| row(follower, ip)))
            .collect()
    }

    async fn learn(&self, ips: &[String]) -> anyhow::Result<()> {
        let datapath = *self.datapaths.first().context("no source")?;
        let rows: Vec<Operation> = ips
            .iter()
            .map(|ip| southbound::insert(SOURCE, datapath, ip, now()))
            .collect();
        self.writer.transact(&rows).await?;
        Ok(())
    }

    /// The source's rows get the present time.
    async fn refresh(&self) -> anyhow::Result<()> {
        let update = Operation::update(MAC_BINDING)
            .filter(Clause::equal("logical_port", SOURCE))
            .set("timestamp", now());
        self.writer.transact(&[update.into()]).await?;
        Ok(())
    }

    /// Deletes all rows, `rows` of which the agent knows; the source's first, lest the mirror put
    /// back the others.
    async fn clear(&mut self, rows: usize) -> anyhow::Result<()> {
        let all = || Operation::delete(MAC_BINDING);
        let source = all().filter(Clause::equal("logical_port", SOURCE));
        self.writer.transact(&[source.into()]).await?;
        self.writer.transact(&[all().into()]).await?;
        let mut progress = Progress::default();
        self.until(&mut progress, "deleted rows", |it| it.deleted >= rows)
            .await
    }

    /// The followers' rows as they are.
    async fn rows(&self) -> anyhow::Result<Vec<(Uuid, String, String)>> {
        let table = TableRequest::new(MAC_BINDING, MAC_BINDING_COLUMNS);
        let remotes: [Remote; 1] = [self.server.remote()];
        let patience = Duration::from_secs(60);
        let request = MonitorRequest::new().table(table);
        let snapshot = Snapshot::fetch(&remotes, "OVN_Southbound", request, patience).await?;
        let rows = snapshot.tables.get(MAC_BINDING).context("no such table")?;
        let followers = rows.iter().filter_map(|(uuid, row)| {
            let port = row.string("logical_port").ok()?;
            let ip = row.string("ip").ok()?;
            (&*port != SOURCE).then(|| (*uuid, port.to_string(), ip.to_string()))
        });
        Ok(followers.collect())
    }

    /// The times of one round: by hand unmonitored, by hand, and by the mirror, each for the first
    /// time and for a refresh.
    async fn round(&mut self, ips: &[String]) -> anyhow::Result<[Duration; 6]> {
        let rows = ips.len() * (self.datapaths.len() - 1);
        let mut times = Vec::new();
        for monitored in [false, true] {
            let wanted = if monitored { rows } else { 0 };
            let inserts = transactions(&self.inserts(ips, monitored));
            let (first, mut progress) = self.send(inserts).await?;
            // The agent must have seen the rows, or their coming and going is no news to it.
            self.until(&mut progress, "rows by hand", |it| it.added >= wanted)
                .await?;
            let updates: Vec<String> = self
                .rows()
                .await?
                .iter()
                .map(|(uuid, ..)| update(&format!(r#"["_uuid","==",["uuid","{uuid}"]]"#)))
                .collect();
            let (refresh, mut progress) = self.send(transactions(&updates)).await?;
            self.until(&mut progress, "updates by hand", |it| it.modified >= wanted)
                .await?;
            self.clear(wanted).await?;
            times.extend([first, refresh]);
        }
        self.learn(ips).await?;
        let first = self.mirrored(rows, true).await?;
        self.refresh().await?;
        let refresh = self.mirrored(rows, false).await?;
        self.clear(rows + ips.len()).await?;
        times.extend([first, refresh]);
        times.try_into().ok().context("six times")
    }

    /// From the source's rows seen to the last follower's committed.
    async fn mirrored(&mut self, rows: usize, new: bool) -> anyhow::Result<Duration> {
        let mut progress = Progress::default();
        self.until(&mut progress, "followers' rows", |it| it.committed >= rows)
            .await?;
        let time = progress
            .seen
            .context("the source's rows were not seen")?
            .elapsed();
        // Answers overtake the rows: those come too.
        let there = move |it: &Progress| {
            if new {
                it.added > rows
            } else {
                it.modified > rows
            }
        };
        self.until(&mut progress, "followers' rows by the monitor", there)
            .await?;
        Ok(time)
    }
}

/// An update of the rows that match.
fn update(clauses: &str) -> String {
    let timestamp = now();
    format!(
        r#"{{"op":"update","table":"MAC_Binding","where":[{clauses}],"row":{{"timestamp":{timestamp}}}}}"#
    )
}

/// Operations packed into requests.
fn transactions(operations: &[String]) -> Vec<Vec<u8>> {
    let request = |operations: &[String]| {
        let operations = operations.join(",");
        format!(r#"{{"id":1,"method":"transact","params":["OVN_Southbound",{operations}]}}"#)
            .into_bytes()
    };
    operations.chunks(RAW_ROWS).map(request).collect()
}

/// Bursts of so many bindings, `rounds` times.
pub(crate) async fn measure(
    followers: usize,
    burst: usize,
    rounds: usize,
) -> anyhow::Result<Report> {
    ensure!(
        rounds > 0 && burst > 0,
        "at least one binding, once, is needed"
    );
    let mut bench = Bench::start(followers).await?;
    let mut times: [Vec<Duration>; 6] = Default::default();
    for round in 0..rounds {
        let ips: Vec<String> = (0..burst)
            .map(|ip| format!("10.{}.{}.{ip}", round / 250, round % 250))
            .collect();
        let round = bench.round(&ips).await?;
        for (times, time) in times.iter_mut().zip(round) {
            times.push(time);
        }
    }
    let [
        alone_first,
        alone_refresh,
        raw_first,
        raw_refresh,
        first,
        refresh,
    ] = times;
    let rows = burst * followers;
    Ok(Report {
        followers,
        burst,
        rounds,
        first: rates(rows, [&alone_first, &raw_first, &first]),
        refresh: rates(rows, [&alone_refresh, &raw_refresh, &refresh]),
        raw: Times::of(raw_first),
        mirror: Times::of(first),
    })
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Rows a second over all rounds.
fn rate(rows: usize, times: &[Duration]) -> f64 {
    let all: Duration = times.iter().sum();
    float(rows * times.len()) / all.as_secs_f64()
}

fn rates(rows: usize, times: [&[Duration]; 3]) -> Rates {
    let [unmonitored, raw, mirror] = times.map(|times| rate(rows, times));
    Rates {
        unmonitored,
        raw,
        mirror,
        ratio: mirror / raw,
    }
}

/// The naive way, in a table of `burst` bindings of every follower.
pub(crate) async fn naive(followers: usize, burst: usize) -> anyhow::Result<Naive> {
    let mut bench = Bench::start(followers).await?;
    let ips: Vec<String> = (0..burst).map(|ip| format!("10.1.1.{ip}")).collect();
    let inserts = transactions(&bench.inserts(&ips, true));
    bench.send(inserts).await?;
    let rows = bench.rows().await?;
    let one: Vec<_> = rows
        .iter()
        .filter(|(.., ip)| ips.first() == Some(ip))
        .collect();
    let by_uuid: Vec<String> = one
        .iter()
        .map(|(uuid, ..)| update(&format!(r#"["_uuid","==",["uuid","{uuid}"]]"#)))
        .collect();
    let by_port: Vec<String> = one
        .iter()
        .map(|(_, port, ip)| {
            update(&format!(
                r#"["logical_port","==","{port}"],["ip","==","{ip}"]"#
            ))
        })
        .collect();
    let (by_uuid, _) = bench.send(transactions(&by_uuid)).await?;
    let (by_port, _) = bench.send(transactions(&by_port)).await?;
    let (by_uuid, by_port_and_ip) = (rate(one.len(), &[by_uuid]), rate(one.len(), &[by_port]));
    Ok(Naive {
        table: rows.len(),
        by_port_and_ip,
        by_uuid,
        ratio: by_uuid / by_port_and_ip,
    })
}

//! The agent's static rows on a database of one's own: no OVN, no switch, no agent process.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use neighsteer::{
    agent::{
        clock::Clock,
        state::StateFile,
        static_rows::{Done, StaticRows},
    },
    ovsdb::{
        Backoff, Client, Event, LockState, Monitor, MonitorCondition, Options, Remote, SessionError,
    },
    statics::Settings,
};
use tokio::{task::JoinHandle, time::sleep_until};

use crate::{northbound, southbound::synced};

/// The static rows with their connection, and the loop that an agent's driver is to them.
#[derive(Debug)]
pub struct StaticWriter {
    /// The rows.
    pub rows: StaticRows,
    monitor: Monitor,
    driver: JoinHandle<()>,
}

/// What a turn was about.
#[derive(Debug)]
pub enum Turn {
    /// Monitored rows changed.
    Changes,
    /// The connection stands, and all rows are told.
    Synced,
    /// The connection is lost.
    Disconnected(Arc<SessionError>),
    /// A transaction has ended.
    Written,
    /// The lock came or went.
    Lock(LockState),
    /// Time has passed.
    Due,
}

enum Woken {
    Event(Event),
    Done(Done),
    Due,
}

impl StaticWriter {
    /// Connects, and has no targets yet. Writes while it holds `lock`, and keeps its ports in
    /// `state_directory`. A connection that is silent for half a second is probed.
    ///
    /// # Errors
    /// Where the server does not answer, the lock's name is none, or the state cannot be read.
    pub async fn start(
        lock: &str,
        remotes: Vec<Remote>,
        state_directory: &Path,
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let none = MonitorCondition::AnyOf(Vec::new());
        // As the agent has it, but for the times.
        let options = Options {
            transact_timeout: Duration::from_secs(30),
            leader_only: true,
            dedicated_writer: true,
            probe_interval: Some(Duration::from_millis(500)),
            backoff: Backoff {
                longest: Duration::from_millis(500),
                ..Backoff::default()
            },
            ..northbound::options(remotes, none)
        };
        let (client, mut monitor, driver) = Client::connect(options);
        let driver = tokio::spawn(driver.run());
        synced(&mut monitor).await?;
        let lock = client.lock(lock)?;
        let state = StateFile::open(state_directory)?;
        Ok(Self {
            rows: StaticRows::new(client, Clock::start(), settings, lock, state),
            monitor,
            driver,
        })
    }

    /// One turn of the agent's loop. Cancel-safe.
    ///
    /// # Errors
    /// Where the client has ended.
    pub async fn turn(&mut self) -> anyhow::Result<Turn> {
        let deadline = self.rows.next_deadline();
        let woken = tokio::select! {
            biased;
            event = self.monitor.next() => Woken::Event(event.context("the client has ended")?),
            done = self.rows.finished() => Woken::Done(done),
            () = due(deadline) => Woken::Due,
        };
        let turn = match woken {
            Woken::Event(Event::Changes(batch)) => {
                self.rows.apply(&batch.changes, batch.conditions);
                Turn::Changes
            }
            Woken::Event(Event::Synced(batch)) => {
                self.rows.apply(&batch.changes, batch.conditions);
                self.rows.synced();
                Turn::Synced
            }
            Woken::Event(Event::Disconnected { error }) => {
                self.rows.disconnected();
                Turn::Disconnected(error)
            }
            Woken::Done(done) => {
                let turn = match &done {
                    Done::Batch(_) => Turn::Written,
                    Done::Lock(state) => Turn::Lock(*state),
                };
                self.rows.settle(done);
                turn
            }
            Woken::Due => Turn::Due,
        };
        self.rows.pump();
        Ok(turn)
    }
}

impl Drop for StaticWriter {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn due(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

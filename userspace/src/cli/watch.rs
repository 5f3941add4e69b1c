//! `neighsteer bindings --watch`: follows the databases and prints what changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    io::{self, Write as _},
    os::fd::AsFd as _,
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::Context as _;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::{Instant, sleep_until},
};

use super::{
    LiveBindingsArgs,
    bindings::Watch,
    live,
    nodes::AgentsNodes,
    output::{Finding, Output},
    terminal::on_one_line,
};
use crate::{
    agent::{
        self, ModeError, NodeMode,
        clock::Clock,
        covered::CoveredPorts,
        databases::{Databases, MAC_BINDING},
        host_side::{self, HostSide},
        model::Model,
    },
    mirror::{BindingRow, GroupMembers, Settings},
    ovsdb::{Batch, Event},
    rows::Database,
};

/// For how long changes are gathered: a neighbour that is learnt and mirrored meanwhile is one line.
const GATHER: Duration = Duration::from_millis(100);

/// Watches until somebody ends it or stops reading.
///
/// # Errors
/// Where a database does not answer at the start, or standard output cannot be written.
pub(super) async fn run(
    args: &LiveBindingsArgs,
    output: &mut Output<'_>,
) -> anyhow::Result<Finding> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => Ok(Finding::Clean),
        _ = interrupt.recv() => Ok(Finding::Clean),
        () = reader_left() => Ok(Finding::Clean),
        error = watch(args, output) => error,
    }
}

/// Follows the databases for ever.
async fn watch(args: &LiveBindingsArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let connection = args.connection.parse(live::PATIENCE)?;
    if connection.host.mode == NodeMode::DpuHost {
        return Err(ModeError::NoDatabase.into());
    }
    let (databases, batches) = Databases::connect_to_read(&connection).await?;
    let mut watcher = Watcher {
        databases,
        model: Model::default(),
        host: HostSide::of(&connection.host),
        watch: Watch::new(Settings::default()),
        clock: Clock::start(),
        bridge: args.bindings.bridge.clone(),
        nodes: AgentsNodes::ask(&args.state).await,
        groups: BTreeMap::new(),
        covered: CoveredPorts::of(MAC_BINDING),
        due: None,
        lost: BTreeSet::new(),
    };
    for batch in &batches {
        watcher.model.apply(&batch.changes);
    }
    host_side::rebuild(&mut watcher.model, watcher.host.as_mut());
    watcher.regroup()?;
    if watcher.groups.is_empty() {
        let name = watcher.bridge.as_deref().unwrap_or("a bridge");
        say(&format!("no gateway routers of this node share {name} yet"));
    }
    loop {
        watcher.step(output).await?;
    }
}

struct Watcher {
    databases: Databases,
    model: Model,
    /// What is known of the host, on its DPU.
    host: Option<HostSide>,
    watch: Watch,
    clock: Clock,
    /// The only bridge to watch.
    bridge: Option<String>,
    /// What the agent knew of nodes at the start.
    nodes: AgentsNodes,
    /// The groups that are wanted; the watch has them once the rows of their ports are known.
    groups: BTreeMap<Arc<str>, GroupMembers>,
    covered: CoveredPorts,
    /// When to print.
    due: Option<Instant>,
    /// Databases that are disconnected.
    lost: BTreeSet<&'static str>,
}

impl Watcher {
    async fn step(&mut self, output: &mut Output<'_>) -> anyhow::Result<()> {
        tokio::select! {
            // However many changes come: what is due is printed.
            biased;
            () = due(self.due) => self.print(output)?,
            event = self.databases.next() => {
                let (database, event) = event?;
                self.event(database, event)?;
            }
        }
        // Rows of ports that come under the monitor, or leave it, may arrive in pieces.
        if self.due.is_none() && self.covered.are_known() && self.watch.is_pending() {
            self.due = Some(Instant::now() + GATHER);
        }
        Ok(())
    }

    fn event(&mut self, database: Database, event: Event) -> anyhow::Result<()> {
        let name = database.name();
        match event {
            Event::Disconnected { error } => {
                if self.lost.insert(name) {
                    let error = agent::chain(&*error);
                    say(&format!("lost {name}: {error}; trying again"));
                }
                Ok(())
            }
            Event::Synced(batch) => {
                if self.lost.remove(name) {
                    say(&format!("{name} is back"));
                }
                self.rows_changed(database, &batch, false)
            }
            Event::Changes(batch) => self.rows_changed(database, &batch, true),
        }
    }

    fn rows_changed(
        &mut self,
        database: Database,
        batch: &Batch,
        live: bool,
    ) -> anyhow::Result<()> {
        if database == Database::Southbound {
            self.bindings_changed(batch, live);
        }
        if self.model.apply(&batch.changes)
            && host_side::rebuild(&mut self.model, self.host.as_mut())
        {
            self.regroup()?;
        }
        Ok(())
    }

    fn bindings_changed(&mut self, batch: &Batch, live: bool) {
        let now = self.clock.now();
        for change in &batch.changes {
            if &*change.table != MAC_BINDING {
                continue;
            }
            let row = change.new.as_ref();
            // Rows without an address are nobody's binding; the running agent counts them.
            match row.map(|row| BindingRow::parse(change.uuid, row)) {
                // Nobody's business on a DPU.
                Some(Ok(row)) if self.host.is_some() && row.ip.is_ipv6() => {}
                Some(Ok(row)) => self.watch.upsert(row, live, now),
                Some(Err(_)) | None => self.watch.remove(change.uuid, now),
            }
        }
        if self.covered.reached(batch.conditions) {
            self.watch.set_groups(self.groups.clone(), now);
        }
    }

    /// Takes the groups as they are now, and asks for the rows of their routers.
    fn regroup(&mut self) -> anyhow::Result<()> {
        let groups = self.model.topology().groups.iter();
        let wanted = |bridge: &str| self.bridge.as_ref().is_none_or(|it| it == bridge);
        self.groups = groups
            .filter(|group| wanted(&group.bridge))
            .map(|group| {
                let members = self.nodes.members(group, &BTreeSet::new());
                (Arc::clone(&group.bridge), members)
            })
            .collect();
        let members = self.groups.values();
        let ports = members
            .flat_map(|members| members.source.iter().chain(&members.followers))
            .map(|member| Arc::clone(&member.port));
        let southbound = &self.databases.southbound.client;
        if self.covered.cover(southbound, ports.collect())? {
            let now = self.clock.now();
            self.watch.set_groups(self.groups.clone(), now);
        } else {
            self.due = None;
        }
        Ok(())
    }

    fn print(&mut self, output: &mut Output<'_>) -> io::Result<()> {
        self.due = None;
        for record in self.watch.take(self.clock.now()) {
            if output.is_json() {
                output.json_line(&record)?;
            } else {
                output.line(&record)?;
            }
        }
        output.writer.flush()
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Ready once nobody reads standard output any more: with nothing to print, no write would tell.
async fn reader_left() {
    let (sender, receiver) = oneshot::channel();
    let wait = move || {
        let stdout = io::stdout();
        // Nothing is asked for: a pipe's or socket's end and a terminal's are told in any case, and
        // a file has none.
        let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
        loop {
            match poll(&mut polled, PollTimeout::NONE) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                // Then the next write tells.
                Err(_) => return,
            }
        }
        // Whoever has ended meanwhile does not want to know.
        let _ended = sender.send(());
    };
    // The runtime would wait for a thread of its own; this one ends with the process.
    let thread = thread::Builder::new().name("reader".to_owned()).spawn(wait);
    if thread.is_err() || receiver.await.is_err() {
        pending().await
    }
}

/// One line on standard error.
fn say(text: &str) {
    // There is nowhere left to say that standard error is closed.
    let _ = writeln!(io::stderr(), "{}", on_one_line(text));
}

//! The agent's one loop: news in, desired state out.

mod commands;
mod host;
mod nodes;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Future, pending},
    sync::Arc,
    time::Instant,
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval, sleep_until},
};

use self::host::Host;
use super::{
    AgentError,
    attachments::Attachments,
    clock::Clock,
    config::AgentConfig,
    control::{Call, ControlSocket},
    covered::CoveredDatapaths,
    database_locks::lock_name,
    databases::Databases,
    lock::NodeLock,
    marking::{Marks, refuse_unmarkable, warn_of_drops_in_vain},
    mirroring::Mirrors,
    mode::NodeMode,
    model::Model,
    node_bindings::{News, NodeBindings},
    observing,
    state::StateFile,
    status::DatabaseStatus,
    steering::{Desired, Statuses, Steering},
};
use crate::{
    openflow::NativeSwitch,
    ovsdb::{Batch, Event},
    plan::{NoMark, SteeringMark},
    rows::Database,
    sources::SourceEnded,
    topology::BridgeGroup,
};

/// By bridge: the source's name and the number of followers.
type Sources = BTreeMap<Arc<str>, (Arc<str>, usize)>;

/// Reasons that are logged when a group goes; `status` has them all.
const REASONS: usize = 5;
/// Commands of clients that may wait.
const CALLS: usize = 16;

/// Runs the agent until `shutdown` is ready. Flows, flags, rows and pins stay.
///
/// # Errors
/// Where it cannot start, or a task behind it has ended.
pub async fn run(
    config: AgentConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let node = &config.connection.host;
    node.mode.check(config.gates)?;
    if node.mode == NodeMode::DpuHost {
        return observing::run(config, shutdown).await;
    }
    let lock = NodeLock::acquire(
        &config.state_directory,
        &config.connection.ovs_run_directory,
    )?;
    let state = StateFile::open(&config.state_directory)?;
    let socket = ControlSocket::listen(&config.state_directory)?;
    let recorded = state.static_ports();
    let minds_static_rows = nodes::minds_static_rows(&config, &recorded);
    if minds_static_rows && recorded.is_empty() {
        nodes::remember_orphans(&config.connection, &state).await;
    }
    let mut host = Host::start(node).await?;
    let (databases, batches) = Databases::connect(&config.connection, minds_static_rows).await?;
    let mut model = Model::default();
    model.remember(state.sources());
    for batch in &batches {
        model.apply(&batch.changes);
    }
    host::rebuild(&mut model, host.as_mut());
    model.check_bridges()?;
    let switch = NativeSwitch::new(&config.connection.ovs_run_directory);
    super::managed::refuse_managed(&model, &config, &switch).await?;
    refuse_unmarkable(&model, &config)?;
    warn_of_drops_in_vain(&model, &config);
    let mut attachments = Attachments::new(&config);
    let marks = Marks::of(&config, state.paused());
    attachments.want(model.topology(), |group| {
        marks.of_group(&model, group).ok()?
    });
    attachments.attach_first().await?;

    let wanted = desired_of(&model, &config, state.paused());
    let (desired, desired_receiver) = watch::channel(Arc::new(wanted));
    let (steering_status, steering) = watch::channel(Statuses::new());
    let task = Steering {
        switch,
        ovs_run_directory: config.connection.ovs_run_directory.clone(),
        state: state.clone(),
        check_interval: config.check_interval,
    };
    let steering_task = tokio::spawn(task.run(desired_receiver, steering_status));
    let (call_sender, calls) = mpsc::channel(CALLS);
    let control_task = tokio::spawn(socket.serve(call_sender));

    let clock = Clock::start();
    let mirrors = match config.gates.steering() {
        true => {
            let client = databases.southbound.client.clone();
            let lock = client.lock(lock_name("mirror", &databases.chassis))?;
            let mirrors = Mirrors::new(client, clock.clone(), config.mirror);
            Some(mirrors.ipv4_only(host.is_some()).under(lock))
        }
        false => None,
    };
    let nodes = nodes::node_bindings(&config, &databases, &state, clock, recorded)?;
    let mut driver = Driver {
        config,
        databases,
        model,
        datapaths: CoveredDatapaths::datapaths(),
        host,
        mirrors,
        nodes,
        attachments,
        desired,
        steering,
        statuses: BTreeMap::new(),
        sources: Sources::new(),
        calls,
        state,
        unmarked: BTreeMap::new(),
        silenced: BTreeSet::new(),
        _lock: lock,
    };
    for database in [
        Database::OpenVSwitch,
        Database::Northbound,
        Database::Southbound,
    ] {
        driver.statuses.insert(
            database.name(),
            DatabaseStatus {
                synced: true,
                connected: true,
                ..DatabaseStatus::default()
            },
        );
    }
    if driver.state.paused() {
        commands::note_pause(true);
    }
    driver.cover_datapaths();
    driver.groups_changed();
    let result = driver.drive(shutdown, steering_task).await;
    control_task.abort();
    result
}

struct Driver {
    config: AgentConfig,
    databases: Databases,
    model: Model,
    /// Those of the ports that are known.
    datapaths: CoveredDatapaths,
    /// `None` where the host is on this machine.
    host: Option<Host>,
    /// `None` while the gate is off: then nothing is written to the southbound database.
    mirrors: Option<Mirrors>,
    /// `None` where nodes are none of our business, and never were.
    nodes: Option<NodeBindings>,
    attachments: Attachments,
    desired: watch::Sender<Arc<Desired>>,
    steering: watch::Receiver<Statuses>,
    statuses: BTreeMap<&'static str, DatabaseStatus>,
    /// The groups as they were last logged.
    sources: Sources,
    calls: mpsc::Receiver<Call>,
    state: StateFile,
    /// Bridges that are steered by headers though a mark is wanted, as it was last logged.
    unmarked: BTreeMap<Arc<str>, NoMark>,
    /// Bridges that are left to somebody who steers there: nothing is mirrored for them.
    silenced: BTreeSet<Arc<str>>,
    _lock: NodeLock,
}

/// What woke the loop.
enum Woken {
    Shutdown,
    Event(Database, Event),
    Transaction(super::mirroring::Done),
    Nodes(News),
    Links,
    Due,
    Check,
    Attached(super::attachments::Outcome),
    Steered,
    Call(Call),
}

impl Driver {
    async fn drive(
        &mut self,
        shutdown: impl Future<Output = ()>,
        mut steering_task: JoinHandle<()>,
    ) -> Result<(), AgentError> {
        tokio::pin!(shutdown);
        let mut check = interval(self.config.check_interval);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mirrors_due = self.mirrors.as_ref().and_then(Mirrors::next_deadline);
            let rows_due = (self.nodes.as_ref()).and_then(|nodes| nodes.rows.next_deadline());
            let deadline = mirrors_due.into_iter().chain(rows_due).min();
            let woken = tokio::select! {
                biased;
                () = &mut shutdown => Woken::Shutdown,
                event = self.databases.next() => {
                    let (database, event) = event?;
                    Woken::Event(database, event)
                }
                done = finished(self.mirrors.as_mut()) => Woken::Transaction(done),
                news = news(self.nodes.as_mut()) => Woken::Nodes(news?),
                links = host::links(self.host.as_mut()) => {
                    links?;
                    Woken::Links
                }
                () = due(deadline) => Woken::Due,
                outcome = self.attachments.finished() => Woken::Attached(outcome),
                call = self.calls.recv() => match call {
                    Some(call) => Woken::Call(call),
                    None => return Err(AgentError::TaskEnded("the control socket's")),
                },
                Ok(()) = self.steering.changed() => Woken::Steered,
                _ = check.tick() => Woken::Check,
                ended = &mut steering_task => {
                    tracing::error!(?ended, "steering has ended");
                    return Err(AgentError::TaskEnded("the steering"));
                }
            };
            match woken {
                Woken::Shutdown => {
                    tracing::info!("stopping; flows, flags, rows and pins stay for the next start");
                    return Ok(());
                }
                Woken::Event(database, event) => self.event(database, event),
                Woken::Transaction(done) => {
                    if let Some(mirrors) = &mut self.mirrors {
                        mirrors.settle(done);
                    }
                }
                Woken::Nodes(News::Rows(done)) => {
                    if let Some(nodes) = &mut self.nodes {
                        nodes.rows.settle(done);
                    }
                }
                Woken::Nodes(News::Inventory) => self.nodes_changed(),
                Woken::Links => self.links_changed(),
                Woken::Due => {}
                Woken::Attached(outcome) => self.attachments.note(outcome),
                Woken::Steered => self.steered(),
                Woken::Call(Call { command, answer }) => {
                    // Whoever has given up is not to be surprised by it later.
                    if !answer.is_closed() {
                        drop(answer.send(self.call(command)));
                    }
                }
                Woken::Check => {
                    self.look_at_host_again();
                    self.attachments.check();
                }
            }
            self.pump();
        }
    }

    /// Sends what is due.
    fn pump(&mut self) {
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.pump();
        }
        let mirrors = self.mirrors.as_ref();
        let pinned = |bridge: &str| mirrors.is_some_and(|it| it.has_all_pinned(bridge));
        if self.nodes.as_mut().is_some_and(|it| it.advance(pinned)) {
            self.carry_out();
        }
        if let Some(nodes) = &mut self.nodes {
            nodes.rows.pump();
        }
    }

    fn event(&mut self, database: Database, event: Event) {
        let status = self.statuses.entry(database.name()).or_default();
        match event {
            Event::Synced(batch) => {
                if !status.connected {
                    tracing::info!(
                        database = database.name(),
                        changes = batch.changes.len(),
                        "connected again"
                    );
                }
                (status.connected, status.synced) = (true, true);
                self.rows_changed(database, &batch);
                match (database, &mut self.mirrors, &mut self.nodes) {
                    (Database::Southbound, Some(mirrors), _) => mirrors.synced(),
                    (Database::Northbound, _, Some(nodes)) => nodes.rows.synced(),
                    _ => {}
                }
            }
            Event::Changes(batch) => self.rows_changed(database, &batch),
            Event::Disconnected { error } => {
                let text = super::chain(&*error);
                if status.connected {
                    tracing::warn!(database = database.name(), error = %text, "disconnected; going on with what is known");
                    status.disconnects += 1;
                }
                *status.reconnects.entry(error.cause()).or_default() += 1;
                status.connected = false;
                status.last_error = Some(text);
                match (database, &mut self.mirrors, &mut self.nodes) {
                    (Database::Southbound, Some(mirrors), _) => mirrors.disconnected(),
                    (Database::Northbound, _, Some(nodes)) => nodes.rows.disconnected(),
                    _ => {}
                }
            }
        }
    }

    fn rows_changed(&mut self, database: Database, batch: &Batch) {
        match (database, &mut self.mirrors, &mut self.nodes) {
            (Database::Southbound, Some(mirrors), _) => {
                mirrors.apply(&batch.changes, batch.conditions);
            }
            (Database::Northbound, _, Some(nodes)) => {
                nodes.rows.apply(&batch.changes, batch.conditions);
            }
            (Database::OpenVSwitch, ..) => self.databases.follow_ovn_remote(&batch.changes),
            _ => {}
        }
        if !self.model.apply(&batch.changes) {
            return;
        }
        if database == Database::Southbound {
            self.cover_datapaths();
        }
        if host::rebuild(&mut self.model, self.host.as_mut()) {
            self.groups_changed();
        } else if self.nodes.is_some() {
            // Ports and northd's version count for static rows, whatever the groups.
            self.carry_out();
        }
    }

    /// Asks whose the datapaths of our ports are.
    fn cover_datapaths(&mut self) {
        let bindings = self.model.rows().port_bindings.values();
        let datapaths = bindings.map(|binding| binding.datapath).collect();
        let client = &self.databases.southbound.client;
        if let Err(error) = self.datapaths.cover(client, datapaths) {
            tracing::error!(%error, "datapaths are not followed");
        }
    }

    fn groups_changed(&mut self) {
        let topology = self.model.topology();
        let now: Sources = topology
            .groups
            .iter()
            .map(|group| {
                let source = Arc::clone(&group.source.name);
                (Arc::clone(&group.bridge), (source, group.followers.len()))
            })
            .collect();
        for (bridge, (source, followers)) in &now {
            match self.sources.get(bridge) {
                Some((former, _)) if former != source => {
                    tracing::warn!(%bridge, %former, %source, followers, "group has another source");
                }
                Some((_, former)) if former == followers => {}
                _ => tracing::info!(%bridge, %source, followers, "group"),
            }
        }
        let reasons = || {
            let reasons = topology
                .skipped
                .iter()
                .take(REASONS)
                .map(ToString::to_string);
            reasons.collect::<Vec<_>>().join("; ")
        };
        for (bridge, (former, _)) in &self.sources {
            if !now.contains_key(bridge) {
                tracing::warn!(%bridge, source = %former, skipped = %reasons(), "group is gone: the bridge is not steered");
            }
        }
        self.sources = now;
        for skipped in &topology.skipped {
            tracing::debug!(object = %skipped.object, reason = %skipped.reason, "takes no part");
        }
        self.note_unmarked();
        self.mark();
        self.attachments.check();
        if let Err(error) = self.state.set_sources(self.model.incumbents().clone()) {
            tracing::warn!(error = %super::chain(&error), "sources not kept for the next start");
        }
        self.carry_out();
    }

    /// Says which bridges cannot be steered by mark, once each.
    fn note_unmarked(&mut self) {
        let groups = self.model.topology().groups.iter();
        let reasons = groups.filter_map(|group| {
            let reason = self.mark_for(group).err()?;
            Some((Arc::clone(&group.bridge), reason))
        });
        let now: BTreeMap<_, _> = reasons.collect();
        for (bridge, reason) in &now {
            if self.unmarked.get(bridge) != Some(reason) {
                tracing::warn!(%bridge, %reason, "steering by headers, not by mark");
            }
        }
        for bridge in self.unmarked.keys() {
            if !now.contains_key(bridge) {
                tracing::info!(%bridge, "nothing is in the way of steering by mark any more");
            }
        }
        self.unmarked = now;
    }

    /// The mark by which a group is steered.
    fn mark_for(&self, group: &BridgeGroup) -> Result<Option<SteeringMark>, NoMark> {
        let marks = Marks::of(&self.config, self.state.paused());
        marks.of_group(&self.model, group)
    }

    /// Has frames marked where, and only where, a flow of ours takes the mark off again.
    fn mark(&mut self) {
        let marks = Marks::of(&self.config, self.state.paused());
        let (model, silenced) = (&self.model, &self.silenced);
        let changed = self.attachments.want(model.topology(), |group| {
            let active = !silenced.contains(&group.bridge);
            marks.of_group(model, group).ok()?.filter(|_| active)
        });
        if changed {
            self.attachments.check();
        }
    }

    /// Tells mirrors, static rows, programs and bridges what is wanted of them.
    fn carry_out(&mut self) {
        self.mark();
        let paused = self.state.paused();
        let steering = self.config.gates.steering() && !paused;
        if let Some(nodes) = &mut self.nodes {
            let active = |bridge: &str| !self.silenced.contains(bridge);
            nodes.plan(&self.model, steering, active);
        }
        if let Some(mirrors) = &mut self.mirrors {
            let groups = self.model.topology().groups.iter();
            let active = |bridge: &Arc<str>| !paused && !self.silenced.contains(bridge);
            let groups = groups.filter(|group| active(&group.bridge));
            let members = groups.map(|group| {
                let members = nodes::members(group, &self.config, self.nodes.as_ref());
                (Arc::clone(&group.bridge), members)
            });
            mirrors.regroup(members.collect());
        }
        let wanted = Arc::new(desired_of(&self.model, &self.config, paused));
        self.desired.send_if_modified(|current| {
            let changed = **current != *wanted;
            if changed {
                *current = wanted;
            }
            changed
        });
    }

    /// Leaves the mirror of a bridge to whoever steers there.
    fn steered(&mut self) {
        let statuses = self.steering.borrow_and_update();
        let bridges = statuses.iter().filter(|(_, bridge)| bridge.standing_down);
        let silenced: BTreeSet<_> = bridges.map(|(name, _)| Arc::clone(name)).collect();
        drop(statuses);
        if silenced != self.silenced {
            self.silenced = silenced;
            self.carry_out();
        }
    }
}

fn desired_of(model: &Model, config: &AgentConfig, paused: bool) -> Desired {
    if paused {
        model.unsteered()
    } else {
        model.desired(config.gates, config.install, config.steering_mark)
    }
}

async fn news(nodes: Option<&mut NodeBindings>) -> Result<News, SourceEnded> {
    match nodes {
        Some(nodes) => nodes.next().await,
        None => pending().await,
    }
}

async fn finished(mirrors: Option<&mut Mirrors>) -> super::mirroring::Done {
    match mirrors {
        Some(mirrors) => mirrors.finished().await,
        None => pending().await,
    }
}

async fn due(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => pending().await,
    }
}

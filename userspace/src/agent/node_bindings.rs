//! Node IPs: from what the source of nodes says to static rows, or to bindings that the mirrors keep.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    config::NodeConfig,
    model::Model,
    static_rows::{Done, StaticRows},
};
use crate::{
    ids::Mac,
    ovsdb::LockState,
    sources::{NodeFeed, SourceEnded, SourceStatus},
    statics::{
        self, Mode, OwnNode, Strategy, Target, Treatment, WantedBindings, Warning, Why,
        northd_version, own_node, rows_wanted, strategy, targets_at, wanted_at,
    },
    topology::Topology,
};

/// Warnings about nodes that are logged at once; `status` has them all.
const WARNINGS: usize = 10;

/// Bindings of node IPs that a bridge's mirror keeps.
pub type Pins = Arc<BTreeMap<IpAddr, Mac>>;

/// What node IPs need, and what is done about it.
#[derive(Debug)]
pub struct NodeBindings {
    config: NodeConfig,
    /// `None` where no source is configured: then what was once written is withdrawn.
    feed: Option<NodeFeed>,
    /// The northbound rows.
    pub rows: StaticRows,
    targets: Vec<Target>,
    wanted: Option<WantedBindings>,
    strategy: Option<(Strategy, Why)>,
    /// By bridge: the bindings that mirrors keep under the dynamic strategy.
    pins: BTreeMap<Arc<str>, Pins>,
    /// Pins go on under the static strategy until its rows are written.
    pins_stay: bool,
    /// Static rows stay under the dynamic strategy until the mirrors' are written.
    rows_stay: bool,
    steering: bool,
    ipv4_only: bool,
    /// Without a source: the ports whose rows are withdrawn.
    recorded: BTreeSet<Arc<str>>,
    strangers: Strangers,
}

/// What becomes of rows at ports to which no earlier run has written, where no source is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangers {
    /// They are not looked at.
    Ignored,
    /// They stay, but where they would stop northd: their port is gone, or made anew.
    Guarded,
}

/// What happens to nodes.
#[derive(Debug)]
pub enum News {
    /// Something of them is different: they have to be planned anew.
    Inventory,
    /// What static rows waited for.
    Rows(Done),
}

/// What the agent says of node IPs.
#[derive(Clone, Debug, Serialize)]
pub struct NodeBindingsStatus {
    /// Where nodes are known from.
    pub source: Option<SourceStatus>,
    /// How followers know node IPs; `None` while nodes are not known.
    pub strategy: Option<Strategy>,
    /// Why so.
    pub why: Option<String>,
    /// What is wrong with the objects.
    pub warnings: Vec<String>,
    /// Whether rows of ours stay although the gate is off.
    pub keep_rows: bool,
    /// Whether rows of an earlier run go, since no source is configured.
    pub withdraws: bool,
    /// The lock of the one who writes static rows for this chassis.
    pub lock: LockState,
    /// The northbound rows.
    pub static_rows: statics::Status,
    /// Why no static row is written, where the state file cannot be.
    pub state_error: Option<String>,
    /// Static rows seen since the start that name no port.
    pub bad_rows: u64,
}

/// What is known of nodes on one bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeNodes {
    /// The addresses that the mirror leaves alone.
    pub node_ips: BTreeSet<IpAddr>,
    /// The bindings that the mirror keeps.
    pub pinned: BTreeMap<IpAddr, Mac>,
}

impl NodeBindings {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new(config: NodeConfig, feed: Option<NodeFeed>, rows: StaticRows) -> Self {
        Self {
            config,
            feed,
            rows,
            targets: Vec::new(),
            wanted: None,
            strategy: None,
            pins: BTreeMap::new(),
            pins_stay: false,
            rows_stay: true,
            steering: false,
            ipv4_only: false,
            recorded: BTreeSet::new(),
            strangers: Strangers::Ignored,
        }
    }

    /// Without a source, what an earlier run wrote to these ports is withdrawn.
    pub fn without_source(&mut self, recorded: BTreeSet<Arc<str>>, strangers: Strangers) {
        self.recorded = recorded;
        self.strangers = strangers;
    }

    /// Wants no binding of an IPv6 address, as on a DPU.
    #[must_use]
    pub const fn ipv4_only(mut self, ipv4_only: bool) -> Self {
        self.ipv4_only = ipv4_only;
        self
    }

    /// The address that this node's object has for the host of a DPU.
    #[must_use]
    pub fn dpu_host_address(&self, topology: &Topology) -> Option<Ipv4Addr> {
        let inventory = self.feed.as_ref().and_then(NodeFeed::inventory)?;
        let name = own_node(&inventory, topology, self.config.name.as_deref())?;
        match inventory.nodes.get(name)?.dpu_host?.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }
    }

    /// What happens next to nodes or to their static rows. Cancel-safe.
    ///
    /// # Errors
    /// Where the source's task has ended.
    pub async fn next(&mut self) -> Result<News, SourceEnded> {
        let inventory = async {
            match &mut self.feed {
                Some(feed) => feed.changed().await.map(drop),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = self.rows.finished() => Ok(News::Rows(done)),
            changed = inventory => changed.map(|()| News::Inventory),
        }
    }

    /// Decides anew what static rows and pins should be. Rows of bridges that are not `active` are
    /// somebody else's; without `steering` there are none.
    pub fn plan(&mut self, model: &Model, steering: bool, active: impl Fn(&str) -> bool) {
        self.steering = steering;
        let (rows, topology) = (model.rows(), model.topology());
        let remembered = self.rows.remembered();
        let mut targets = targets_at(model.places(), rows, topology, &remembered);
        for target in &mut targets {
            let bridge = target.bridge.as_deref();
            if self.config.keep_rows || bridge.is_some_and(|bridge| !active(bridge)) {
                target.leave_alone();
            }
        }
        if self.feed.is_none() {
            self.leave_strangers(&mut targets, &remembered);
        }
        self.targets = targets;
        let inventory = self.feed.as_ref().and_then(NodeFeed::inventory);
        let own = OwnNode {
            name: self.config.name.as_deref(),
            masquerade: &self.config.settings.masquerade,
        };
        let wanted = wanted_at(inventory.as_deref(), model.places(), topology, own);
        let wanted = match self.ipv4_only {
            true => wanted.map(WantedBindings::without_ipv6),
            false => wanted,
        };
        self.note_warnings(wanted.as_ref());
        if wanted.is_some() {
            self.wanted = wanted;
        }
        self.choose(northd_version(rows).map(|version| &**version));
        self.draw_pins();
        self.carry_out();
    }

    /// Whoever was never told of nodes has no rows but those that an earlier run recorded.
    fn leave_strangers(&self, targets: &mut Vec<Target>, remembered: &BTreeSet<Arc<str>>) {
        if self.strangers == Strangers::Ignored {
            targets.retain(|target| remembered.contains(&target.port));
            return;
        }
        let is_stranger = |target: &&mut Target| !self.recorded.contains(&target.port);
        for target in targets.iter_mut().filter(is_stranger) {
            let would_stop_northd =
                matches!(target.treatment, Treatment::Gone | Treatment::Recreated);
            if !would_stop_northd {
                target.treatment = Treatment::Paused;
            }
        }
    }

    fn choose(&mut self, version: Option<&str>) {
        let Some(wanted) = &self.wanted else { return };
        let count = rows_wanted(&self.targets, wanted);
        let current = self.strategy.as_ref().map(|(strategy, _)| *strategy);
        let (next, why) = strategy(
            self.config.strategy,
            version,
            count,
            self.config.static_rows,
            current,
        );
        if current != Some(next) {
            tracing::info!(strategy = %next, %why, "how followers know node IPs");
            self.rows_stay = next == Strategy::Dynamic;
            self.pins_stay = next == Strategy::Static && current == Some(Strategy::Dynamic);
        }
        self.strategy = Some((next, why));
    }

    /// An address whose MAC cannot be told keeps the pin that it had.
    fn draw_pins(&mut self) {
        let Some(wanted) = &self.wanted else { return };
        let dynamic = matches!(self.strategy, Some((Strategy::Dynamic, _)));
        if !dynamic && !self.pins_stay {
            self.pins.clear();
            return;
        }
        for (bridge, bindings) in &wanted.bridges {
            let former = self.pins.get(bridge);
            let mut pins: BTreeMap<IpAddr, Mac> = BTreeMap::new();
            for (ip, binding) in &bindings.bindings {
                let mac = match binding {
                    statics::Wanted::Binding(mac) => Some(*mac),
                    statics::Wanted::Keep => former.and_then(|former| former.get(ip)).copied(),
                };
                pins.extend(mac.map(|mac| (*ip, mac)));
            }
            if bindings.keep_unlisted {
                for (ip, mac) in former.into_iter().flat_map(|former| former.iter()) {
                    pins.entry(*ip).or_insert(*mac);
                }
            }
            if former.is_none_or(|former| **former != pins) {
                self.pins.insert(Arc::clone(bridge), Arc::new(pins));
            }
        }
    }

    fn carry_out(&mut self) {
        let mode = self.mode();
        let targets = self.targets.clone();
        if self.feed.is_none() {
            // What stays now is not ours for a later run either.
            let paused = targets
                .iter()
                .filter(|it| it.treatment == Treatment::Paused);
            let ports = paused.map(|it| Arc::clone(&it.port));
            let strangers = ports.filter(|port| !self.recorded.contains(port));
            self.rows.guard(strangers.collect());
        }
        self.rows.plan(targets, self.wanted.as_ref(), mode);
    }

    fn mode(&self) -> Mode {
        if !self.steering || self.feed.is_none() {
            return Mode::Withdraw;
        }
        match &self.strategy {
            Some((Strategy::Static, _)) => Mode::Write,
            Some((Strategy::Dynamic, _)) if !self.rows_stay => Mode::Withdraw,
            _ => Mode::Retain,
        }
    }

    /// The bindings that a bridge's mirror keeps.
    #[must_use]
    pub fn pins(&self, bridge: &str) -> Pins {
        self.pins.get(bridge).cloned().unwrap_or_default()
    }

    /// The addresses of nodes, which a bridge's mirror leaves alone: but for those whose MAC cannot be
    /// told. A follower that has no row for such a one learns it as any neighbour's; one that has a
    /// static row goes by that.
    #[must_use]
    pub fn node_ips(&self, bridge: &str) -> BTreeSet<IpAddr> {
        let bridges = self.wanted.as_ref().map(|wanted| &wanted.bridges);
        let Some(bindings) = bridges.and_then(|bridges| bridges.get(bridge)) else {
            return BTreeSet::new();
        };
        let untold: BTreeSet<IpAddr> = bindings.untold().collect();
        &bindings.node_ips - &untold
    }

    /// What is known of nodes on a bridge.
    #[must_use]
    pub fn of_bridge(&self, bridge: &str) -> BridgeNodes {
        BridgeNodes {
            node_ips: self.node_ips(bridge),
            pinned: (*self.pins(bridge)).clone(),
        }
    }

    /// Goes on with a change of strategy, once the rows of the next one are there: `pinned` says for a
    /// bridge whether every pin is in place. Whether pins have gone.
    pub fn advance(&mut self, pinned: impl Fn(&str) -> bool) -> bool {
        if !self.steering {
            return false;
        }
        match &self.strategy {
            Some((Strategy::Dynamic, _)) if self.rows_stay => {
                let complete = self.targets.iter().all(|target| match target.treatment {
                    Treatment::Follower => target.bridge.as_deref().is_some_and(&pinned),
                    // The mirror does not have it now.
                    Treatment::Held => false,
                    _ => true,
                });
                if complete {
                    self.rows_stay = false;
                    self.carry_out();
                }
                false
            }
            Some((Strategy::Static, _)) if self.pins_stay && self.rows.is_idle() => {
                self.pins_stay = false;
                self.pins.clear();
                true
            }
            _ => false,
        }
    }

    /// Logs what is new among the warnings.
    fn note_warnings(&self, wanted: Option<&WantedBindings>) {
        let Some(wanted) = wanted else { return };
        let former = self.wanted.as_ref().map(|wanted| &wanted.warnings);
        let known = |warning: &&Warning| former.is_some_and(|former| former.contains(*warning));
        let mut new = wanted.warnings.iter().filter(|warning| !known(warning));
        for warning in new.by_ref().take(WARNINGS) {
            tracing::warn!(kind = warning.kind(), %warning, "nodes");
        }
        let further = new.count();
        if further > 0 {
            tracing::warn!(further, "more warnings of nodes: see `neighsteer status`");
        }
    }

    /// What there is to say.
    #[must_use]
    pub fn status(&self) -> NodeBindingsStatus {
        let warnings = self.wanted.iter().flat_map(|wanted| &wanted.warnings);
        NodeBindingsStatus {
            source: self.feed.as_ref().map(NodeFeed::status),
            strategy: self.strategy.as_ref().map(|(strategy, _)| *strategy),
            why: self.strategy.as_ref().map(|(_, why)| why.to_string()),
            keep_rows: self.config.keep_rows,
            withdraws: self.feed.is_none() && !self.recorded.is_empty(),
            warnings: warnings.map(ToString::to_string).collect(),
            lock: self.rows.lock_state(),
            static_rows: self.rows.status(),
            state_error: self.rows.state_error().map(ToOwned::to_owned),
            bad_rows: self.rows.bad_rows(),
        }
    }
}

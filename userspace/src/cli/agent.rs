//! `neighsteer agent`: the daemon, or with `--dry-run` what it would write.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    connection::{BpffsArgs, ConnectionArgs, StateArgs},
    live,
    output::{Finding, Format, Output},
};
use crate::{
    agent::{self, AgentConfig, state::StateFile},
    datapath::Hook,
    mirror::{GroupMembers, Limits, RowWrite, Settings, recompute},
    openflow::{NativeSwitch, Switch as _},
    plan::{self, BridgePlan, Gates, Install},
};

/// The flags of `neighsteer agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer agent
      observe: attach to the uplink of every bridge that gateway routers share, and count
  neighsteer agent --enable-network-segmentation --disable-udn-arp-ndp-flood
      steer unicast ARP and NDP to the source and mirror its bindings to the followers
  neighsteer agent --enable-network-segmentation --disable-udn-arp-ndp-flood --dry-run
      print what that would write, and write nothing")]
pub struct AgentArgs {
    /// Networks have gateway routers of their own on the shared bridge
    #[arg(
        long,
        env = "NEIGHSTEER_ENABLE_NETWORK_SEGMENTATION",
        help_heading = "Feature gates"
    )]
    pub enable_network_segmentation: bool,
    /// Steer ARP and NDP to one gateway router and mirror its bindings; needs the gate above
    #[arg(
        long,
        env = "NEIGHSTEER_DISABLE_UDN_ARP_NDP_FLOOD",
        help_heading = "Feature gates"
    )]
    pub disable_udn_arp_ndp_flood: bool,
    /// Which flows to install: overlay, over those of ovnkube-node; or complete, where nobody else
    /// manages the bridges
    #[arg(
        long,
        env = "NEIGHSTEER_FLOWS",
        value_name = "SET",
        default_value_t,
        help_heading = "Feature gates"
    )]
    pub flows: Install,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where the datapath attaches to the uplink
    #[arg(long, value_enum, value_name = "HOOK", default_value_t = HookArg::Tc, help_heading = "Datapath")]
    pub datapath: HookArg,
    /// Mark frames with this value plus the decision (tc only)
    #[arg(long, value_name = "MARK", value_parser = parse_mark, help_heading = "Datapath")]
    pub tag: Option<u32>,
    /// Compare what is installed with what is wanted every so many seconds, whatever the events say
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub check_interval: u64,
    /// How many seconds a database may take to answer at start
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub startup_timeout: u64,
    /// An address that is never mirrored, such as another node's; any number of times
    #[arg(long, value_name = "IP")]
    pub node_address: Vec<IpAddr>,
    /// How the mirror behaves
    #[command(flatten)]
    pub mirror: MirrorArgs,
    /// Where things are
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Where the state is
    #[command(flatten)]
    pub state: StateArgs,
    /// Where the pins are
    #[command(flatten)]
    pub bpffs: BpffsArgs,
}

/// How bindings are mirrored.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Mirror")]
pub struct MirrorArgs {
    /// Refresh a follower's binding no sooner than this after it was written; never more than three
    /// quarters of the age threshold [default: half of the age threshold]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub mirror_cooldown: Option<u64>,
    /// Compare all bindings every so many seconds, whatever the events say
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub mirror_compare_interval: u64,
    /// Rows of the first transaction after the source has learnt something
    #[arg(long, value_name = "ROWS", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub mirror_first_rows: u32,
    /// Rows of the others; up to twice as many where much waits
    #[arg(long, value_name = "ROWS", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub mirror_rows: u32,
}

impl MirrorArgs {
    fn settings(self) -> Settings {
        let rows = |rows: u32| usize::try_from(rows).unwrap_or(usize::MAX);
        Settings {
            limits: Limits {
                first_rows: rows(self.mirror_first_rows),
                rows: rows(self.mirror_rows),
                most_rows: rows(self.mirror_rows).saturating_mul(2),
                ..Limits::default()
            },
            cooldown_ms: self.mirror_cooldown.map(|seconds| seconds * 1000),
            compare_ms: self.mirror_compare_interval * 1000,
            ..Settings::default()
        }
    }
}

/// Where the datapath attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HookArg {
    /// tc ingress: TCX, or clsact before Linux 6.6
    Tc,
    /// XDP: sees frames before a userspace datapath takes them
    Xdp,
    /// Nowhere
    None,
}

/// Reads a mark, decimal or hex.
fn parse_mark(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| format!("a 32-bit number, decimal or 0x…, is wanted: {error}"))
}

impl AgentArgs {
    fn config(&self) -> anyhow::Result<AgentConfig> {
        anyhow::ensure!(
            self.tag.is_none() || matches!(self.datapath, HookArg::Tc),
            "--tag needs --datapath tc: elsewhere frames have no mark"
        );
        let hook = match self.datapath {
            HookArg::Tc => Some(Hook::Tc),
            HookArg::Xdp => Some(Hook::Xdp),
            HookArg::None => None,
        };
        Ok(AgentConfig {
            connection: self
                .connection
                .parse(Duration::from_secs(self.startup_timeout))?,
            gates: Gates::new(
                self.enable_network_segmentation,
                self.disable_udn_arp_ndp_flood,
            )?,
            install: self.flows,
            state_directory: self.state.state_dir.clone(),
            bpffs: self.bpffs.bpffs.clone(),
            hook,
            tag: self.tag,
            check_interval: Duration::from_secs(self.check_interval),
            mirror: self.mirror.settings(),
            node_addresses: self.node_address.iter().copied().collect(),
        })
    }
}

/// Runs the daemon until SIGTERM or SIGINT.
///
/// # Errors
/// Where it cannot start, or had to give up.
pub async fn run(args: &AgentArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let config = args.config()?;
    if args.dry_run {
        return dry_run(&config, output).await;
    }
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    agent::run(config, shutdown).await?;
    Ok(Finding::Clean)
}

/// What the agent would write.
#[derive(Debug, Serialize)]
struct DryRun {
    paused: bool,
    attach: Vec<String>,
    bridges: Vec<DryRunBridge>,
    bindings: Vec<DryRunBinding>,
}

#[derive(Debug, Serialize)]
struct DryRunBridge {
    bridge: Arc<str>,
    standing_down: bool,
    add_flows: Vec<String>,
    delete_flows: Vec<String>,
    foreign_flows: Vec<String>,
    no_flood: Vec<NoFlood>,
    static_fdb: Option<String>,
}

#[derive(Debug, Serialize)]
struct NoFlood {
    ofport: u16,
    no_flood: bool,
}

#[derive(Debug, Serialize)]
struct DryRunBinding {
    bridge: Arc<str>,
    logical_port: Arc<str>,
    ip: IpAddr,
    change: &'static str,
}

async fn dry_run(config: &AgentConfig, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let state = StateFile::open(&config.state_directory)?;
    let mut model = live::model(&config.connection).await?;
    model.remember(state.sources());
    model.rebuild();
    model.check_uplinks()?;
    let paused = state.paused();
    let switch = NativeSwitch::new(&config.connection.ovs_run_directory);
    agent::managed::refuse_managed(&model, config, &switch).await?;
    let desired = match paused {
        true => model.unsteered(),
        false => model.desired(config.gates, config.install),
    };
    let mut report = DryRun {
        paused,
        attach: Vec::new(),
        bridges: Vec::new(),
        bindings: Vec::new(),
    };
    let mut left_to_others = BTreeSet::new();
    for (bridge, desired) in &desired.bridges {
        let mut wanted = desired.plan.clone();
        let cookie = wanted.flows.is_empty().then_some(plan::COOKIE);
        let installed = switch.dump_flows(bridge, cookie).await?;
        let mut flows = plan::diff(&wanted.flows, &installed);
        let standing_down = !flows.foreign.is_empty();
        if standing_down {
            left_to_others.insert(Arc::clone(bridge));
            wanted = BridgePlan::empty(bridge);
            flows.add.clear();
            flows.delete = plan::diff(&[], &installed).delete;
        }
        let ports = plan::port_changes(&wanted, &switch.ports(bridge).await?);
        let fdb = &wanted.static_fdb;
        report.bridges.push(DryRunBridge {
            bridge: Arc::clone(bridge),
            standing_down,
            add_flows: flows.add.iter().map(ToString::to_string).collect(),
            delete_flows: flows.delete.iter().map(ToString::to_string).collect(),
            foreign_flows: flows.foreign.iter().map(ToString::to_string).collect(),
            no_flood: ports
                .no_flood
                .iter()
                .map(|(ofport, no_flood)| NoFlood {
                    ofport: ofport.get(),
                    no_flood: *no_flood,
                })
                .collect(),
            static_fdb: fdb
                .as_ref()
                .map(|fdb| format!("fdb/add {bridge} {} {} {}", fdb.port, fdb.vlan, fdb.mac)),
        });
    }
    for group in &model.topology().groups {
        if config.hook.is_some() {
            report.attach.push(group.uplink.name.to_string());
        }
        if config.gates.steering() && !paused && !left_to_others.contains(&group.bridge) {
            report
                .bindings
                .extend(planned_bindings(config, &model, group).await?);
        }
    }
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    Ok(Finding::Clean)
}

async fn planned_bindings(
    config: &AgentConfig,
    model: &agent::model::Model,
    group: &crate::topology::BridgeGroup,
) -> anyhow::Result<Vec<DryRunBinding>> {
    let addresses: Arc<BTreeSet<IpAddr>> = Arc::new(config.node_addresses.clone());
    let members = GroupMembers::of(group, addresses);
    let rows = live::binding_rows(&config.connection, model, &members).await?;
    let now = agent::clock::Clock::start().now();
    let operations = recompute(&rows, &members, &config.mirror, now);
    let bindings = operations.into_iter().map(|operation| DryRunBinding {
        bridge: Arc::clone(&group.bridge),
        logical_port: operation.port,
        ip: operation.ip,
        change: match operation.write {
            RowWrite::Insert { .. } => "insert",
            RowWrite::Update { mac: Some(_), .. } => "correct",
            RowWrite::Update { mac: None, .. } => "refresh",
        },
    });
    Ok(bindings.collect())
}

fn print(report: &DryRun, output: &mut Output<'_>) -> anyhow::Result<()> {
    if report.paused {
        output.line("paused by hand: `neighsteer resume` ends that")?;
    }
    for interface in &report.attach {
        output.line(format_args!("attach the datapath to {interface}"))?;
    }
    for bridge in &report.bridges {
        let name = &bridge.bridge;
        if bridge.standing_down {
            output.line(format_args!("{name}: stand down, others steer here"))?;
        }
        let flows = [
            ("delete", &bridge.delete_flows),
            ("add", &bridge.add_flows),
            ("leave to its owner", &bridge.foreign_flows),
        ];
        for (verb, flows) in flows {
            for flow in flows {
                output.line(format_args!("{name}: {verb} flow {flow}"))?;
            }
        }
        for port in &bridge.no_flood {
            let verb = if port.no_flood { "set" } else { "clear" };
            output.line(format_args!(
                "{name}: {verb} no-flood on port {}",
                port.ofport
            ))?;
        }
        if let Some(fdb) = &bridge.static_fdb {
            output.line(format_args!("{name}: {fdb}, unless it is there"))?;
        }
    }
    for binding in &report.bindings {
        output.line(format_args!(
            "{}: {} {} of {}",
            binding.bridge, binding.change, binding.ip, binding.logical_port
        ))?;
    }
    Ok(())
}

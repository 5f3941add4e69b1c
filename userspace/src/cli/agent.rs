//! `neighsteer agent`: the daemon, or with `--dry-run` what it would write.

mod dry_run;

use std::{net::IpAddr, time::Duration};

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    connection::{BpffsArgs, ConnectionArgs, StateArgs},
    gates::GateArgs,
    matching::MatchArgs,
    nodes::NodeArgs,
    output::{Finding, Output},
    validate::ValidateArg,
};
use crate::{
    agent::{self, AgentConfig, NodeConfig},
    datapath::Hook,
    mirror::{Limits, Settings},
    plan::Install,
};

/// The flags of `neighsteer agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer agent
      observe: attach to the uplink of every bridge that gateway routers share, and count
  neighsteer agent --enable-network-segmentation --disable-udn-arp-ndp-flood
      steer unicast ARP and NDP to the source and mirror its bindings to the followers
  neighsteer agent --enable-network-segmentation --disable-udn-arp-ndp-flood --nodes kubernetes
      the same, and every follower knows the other nodes' addresses
  neighsteer agent --enable-network-segmentation --disable-udn-arp-ndp-flood --dry-run
      print what that would write, and write nothing
  neighsteer agent --mode dpu --host-representor pf0hpf --enable-network-segmentation \\
                   --disable-udn-arp-ndp-flood
      on a DPU: the host is behind pf0hpf instead of the bridge's own port")]
pub struct AgentArgs {
    /// What the agent is told
    #[command(flatten)]
    pub settings: AgentSettings,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// All that the agent is told, and `doctor` too.
#[derive(Clone, Debug, clap::Args)]
pub struct AgentSettings {
    /// What is on
    #[command(flatten)]
    pub gates: GateArgs,
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
    /// By what frames are steered
    #[command(flatten)]
    pub matching: MatchArgs,
    /// Where the datapath attaches to the uplink
    #[arg(long, value_enum, value_name = "HOOK", default_value_t = HookArg::Tc, help_heading = "Datapath")]
    pub datapath: HookArg,
    /// Mark frames with this value plus the decision (tc only)
    #[arg(long, value_name = "MARK", value_parser = parse_mark, help_heading = "Datapath")]
    pub tag: Option<u32>,
    /// What becomes of NDP that every receiver must discard (RFC 4861, RFC 6980)
    #[arg(
        long,
        env = "NEIGHSTEER_VALIDATE",
        value_enum,
        value_name = "ACTION",
        default_value_t,
        help_heading = "Datapath"
    )]
    pub validate: ValidateArg,
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
    /// What is known of nodes
    #[command(flatten)]
    pub nodes: NodeArgs,
    /// With the gate off, leave the static bindings of node IPs that are there: they never age
    #[arg(long, help_heading = "Node IPs")]
    pub keep_rows: bool,
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

impl AgentSettings {
    /// The configuration.
    ///
    /// # Errors
    /// Where flags cannot be read, or do not go together.
    pub(super) fn config(&self) -> anyhow::Result<AgentConfig> {
        anyhow::ensure!(
            self.tag.is_none() || matches!(self.datapath, HookArg::Tc),
            "--tag needs --datapath tc: elsewhere frames have no mark"
        );
        let steering_mark = self.matching.mark();
        if let Some(mark) = steering_mark {
            anyhow::ensure!(
                self.tag.is_none(),
                "--tag and --match mark do not go together: both would set a frame's one mark"
            );
            anyhow::ensure!(
                matches!(self.datapath, HookArg::Tc),
                "--match mark needs --datapath tc, which gives frames the mark {mark}"
            );
        }
        let hook = match self.datapath {
            HookArg::Tc => Some(Hook::Tc),
            HookArg::Xdp => Some(Hook::Xdp),
            HookArg::None => None,
        };
        let gates = self.gates.read()?;
        self.connection.host.mode.check(gates)?;
        Ok(AgentConfig {
            connection: self
                .connection
                .parse(Duration::from_secs(self.startup_timeout))?,
            gates,
            install: self.flows,
            state_directory: self.state.state_dir.clone(),
            bpffs: self.bpffs.bpffs.clone(),
            hook,
            tag: self.tag,
            steering_mark,
            validate: self.validate.into(),
            check_interval: Duration::from_secs(self.check_interval),
            mirror: self.mirror.settings(),
            node_addresses: self.node_address.iter().copied().collect(),
            nodes: NodeConfig {
                keep_rows: self.keep_rows && !gates.steering(),
                ..self.nodes.config()
            },
        })
    }
}

/// Runs the daemon until SIGTERM or SIGINT.
///
/// # Errors
/// Where it cannot start, or had to give up.
pub async fn run(args: &AgentArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let config = args.settings.config()?;
    if args.dry_run {
        return dry_run::dry_run(&config, output).await;
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

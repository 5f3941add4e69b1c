//! `neighsteer audit`: whether the bridges are what the design wants them to be.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use anyhow::Context as _;

use super::{
    columns::columns,
    connection::ConnectionArgs,
    live,
    output::{Finding, Output},
};
use crate::{
    audit::{
        self, BridgeAudit, DatapathPorts, LOOKUP_LIMIT, Lookups, Observed, PortNames, TrafficKind,
        Translation, probes, sights,
    },
    openflow::{
        NativeSwitch, Switch as _,
        unixctl::{UnixCtl, UnixCtlSession},
    },
    plan::{Gates, Install, SteeringMark, mark_of, plan},
    rows::Rows,
    topology::{BridgeGroup, Topology},
};

/// Check what is installed against the design, with the gate on
///
/// Looks at flows (whoever owns them), port flags, the forwarding table and addresses of every
/// bridge that gateway routers share, and translates four frames. Nothing is sent and nothing is
/// changed. What is reported: rules of the design that do not hold, flows that still hand neighbour
/// or multicast traffic to several gateway routers, and frames that need more lookups than Open
/// vSwitch makes.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Exit code 1 where something is not as the design wants it.

Examples:
  neighsteer audit
  neighsteer audit --bridge br-ex --output json | jq '.[].findings'")]
pub struct AuditArgs {
    /// Only this bridge [default: every bridge that gateway routers share]
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// Where things are
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// Audits the bridges; [`Finding::Found`] where something is not as the design wants it.
///
/// # Errors
/// Where a database, a bridge or the control socket does not answer, or no group is there.
pub async fn run(args: &AuditArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let connection = args.connection.parse(live::PATIENCE)?;
    let model = live::model(&connection).await?;
    let is_meant = |audit: &BridgeAudit| {
        let named = args.bridge.as_deref();
        named.is_none_or(|name| *audit.bridge == *name)
    };
    let mut left_out = audit::left_out(model.topology(), model.rows());
    left_out.retain(is_meant);
    let groups = match chosen(model.topology(), args.bridge.as_deref()) {
        // That is what there is to say.
        Err(_) if !left_out.is_empty() => Vec::new(),
        chosen => chosen?,
    };
    let switch = NativeSwitch::new(&connection.ovs_run_directory);
    let mut control = UnixCtl::of_vswitchd(&connection.ovs_run_directory)?
        .connect()
        .await?;
    let gates = Gates::new(true, true)?;
    let mut audits = Vec::with_capacity(groups.len());
    for group in groups {
        let observed = observe(group, model.rows(), &switch, &mut control).await?;
        let mark = mark_of(observed.flows.iter().map(|it| &it.flow), group);
        let lookups = measure(group, &observed.names, mark, &mut control).await?;
        // Complete, whoever has installed it: the rules of the design are the same beside a manager,
        // which brings all but the steering flows.
        let mut plan = plan(group, gates, Install::Complete);
        if let Some(mark) = mark {
            plan = plan.by_mark(group, mark);
        }
        audits.push(audit::audit(group, &plan, &observed, lookups));
    }
    audits.extend(left_out);
    if output.is_json() {
        output.json(&audits)?;
    } else {
        print(&audits, output.writer)?;
    }
    let holds = audits.iter().all(|audit| audit.findings.is_empty());
    Ok(if holds {
        Finding::Clean
    } else {
        Finding::Found
    })
}

/// The group of the named bridge, or all of them.
pub(super) fn chosen<'a>(
    topology: &'a Topology,
    bridge: Option<&str>,
) -> anyhow::Result<Vec<&'a BridgeGroup>> {
    let groups: Vec<&BridgeGroup> = match bridge {
        Some(bridge) => topology.group(bridge).into_iter().collect(),
        None => topology.groups.iter().collect(),
    };
    if groups.is_empty() {
        let which = bridge.map_or_else(|| "a bridge".to_owned(), |name| format!("bridge {name}"));
        anyhow::bail!(
            "no gateway routers of this node share {which}; `neighsteer topology` says what was left out"
        );
    }
    Ok(groups)
}

/// Reads one bridge.
pub(super) async fn observe(
    group: &BridgeGroup,
    rows: &Rows,
    switch: &NativeSwitch,
    control: &mut UnixCtlSession,
) -> anyhow::Result<Observed> {
    let bridge = &group.bridge;
    Ok(Observed {
        flows: switch.dump_flows(bridge, None).await?,
        ports: switch.ports(bridge).await?,
        fdb: control.fdb_show(bridge).await?,
        names: PortNames::of(rows, bridge),
    })
}

/// Translates the frames that are measured, as if they came in by the uplink and the datapath had
/// marked those that it would.
async fn measure(
    group: &BridgeGroup,
    names: &PortNames,
    mark: Option<SteeringMark>,
    control: &mut UnixCtlSession,
) -> anyhow::Result<Vec<Lookups>> {
    let mut measured = Vec::new();
    for (kind, frame) in probes(group) {
        let port = group.uplink.ofport.to_string();
        let is_steered = matches!(kind, TrafficKind::UnicastArp | TrafficKind::UnicastNa);
        let mark = mark.filter(|_| is_steered);
        let translation = translate(control, &group.bridge, &port, mark, &frame).await?;
        let translation = translation.with_names(names, &DatapathPorts::default());
        let sights = sights(group, names, &translation);
        measured.push(Lookups {
            frame: kind,
            lookups: translation.lookups,
            over_limit: translation.over_limit,
            routers: sights.iter().filter(|it| it.router.is_some()).count(),
            source: sights.iter().any(|it| it.is_source),
        });
    }
    Ok(measured)
}

/// What Open vSwitch would do with a frame, which has a mark or none. Without `-generate` it does
/// nothing of it.
pub(super) async fn translate(
    control: &mut UnixCtlSession,
    bridge: &str,
    in_port: &str,
    mark: Option<SteeringMark>,
    frame: &[u8],
) -> anyhow::Result<Translation> {
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let mark = mark.map_or_else(String::new, |mark| format!(",pkt_mark={mark}"));
    let in_port = format!("in_port={in_port}{mark}");
    let text = control
        .call("ofproto/trace", &[bridge, &in_port, &hex])
        .await
        .with_context(|| format!("cannot trace the frame on bridge {bridge}"))?;
    Ok(Translation::parse(&text))
}

fn print(audits: &[BridgeAudit], out: &mut (dyn Write + Send)) -> io::Result<()> {
    for (position, audit) in audits.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        let bridge = &audit.bridge;
        match audit.findings.len() {
            0 => writeln!(out, "bridge {bridge}: everything holds")?,
            1 => writeln!(out, "bridge {bridge}: 1 finding")?,
            count => writeln!(out, "bridge {bridge}: {count} findings")?,
        }
        for finding in &audit.findings {
            writeln!(out, "  {finding}")?;
        }
        if audit.lookups.is_empty() {
            continue;
        }
        let rows = audit.lookups.iter().map(|it| {
            let over = if it.over_limit { "over the limit" } else { "" };
            [
                it.frame.to_string(),
                it.lookups.to_string(),
                it.routers.to_string(),
                over.to_owned(),
            ]
        });
        let lookups = format!("lookups of {LOOKUP_LIMIT}");
        let header = ["frame by the uplink", lookups.as_str(), "routers", ""];
        writeln!(out, "\n{}", columns(header, rows, &[1, 2]))?;
    }
    Ok(())
}

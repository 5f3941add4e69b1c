//! `neighsteer trace`: what the classifier says of a frame, and what the flow table does with it.

mod frame;
mod report;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use neighsteer_common::{Bytes, classify};

pub use frame::{FrameArgs, FrameInputError};

use self::report::Report;
use super::{
    audit::{chosen, observe, translate},
    connection::ConnectionArgs,
    live,
    output::{Finding, Output},
};
use crate::{
    audit::{DatapathPorts, Observed, Question, disagreements, is_steered, sights},
    openflow::{
        NativeSwitch, Port,
        unixctl::{UnixCtl, UnixCtlSession},
    },
    plan::mark_of,
    topology::BridgeGroup,
};

/// Show what becomes of a frame: the classifier's decision beside the flows that it takes
///
/// The frame is given as hex, as a capture, or by what a neighbour says. It is translated, never
/// sent, and nothing is changed. The exit code is 1 where the decision and the flows disagree.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer trace --arp-reply --from 172.18.0.1/02:42:ac:12:00:01
  neighsteer trace --na --from fd00::1/02:42:ac:12:00:01 --to ff02::1 --output json
  neighsteer trace --pcap node.pcapng --each --in-port eth0
  echo 0242ac120003 0242ac120001 0806 0001 0800 0604 0002 | neighsteer trace")]
pub struct TraceArgs {
    /// The frame
    #[command(flatten)]
    pub frame: FrameArgs,
    /// The bridge [default: the only one that gateway routers share, else the default network's]
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// The port that the frame comes in by, by name or number [default: the uplink]
    #[arg(long, value_name = "PORT")]
    pub in_port: Option<String>,
    /// Show the flows of further bridges, too
    #[arg(long)]
    pub all: bool,
    /// Where things are
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// Whether a frame is in a VLAN; a priority tag (VLAN 0) is none.
fn is_tagged(frame: &[u8]) -> bool {
    matches!(
        frame.get(12..16),
        Some([0x81, 0x00, high, low] | [0x88, 0xa8, high, low]) if high & 0x0f != 0 || *low != 0
    )
}

/// Traces the frames; [`Finding::Found`] where a decision and the flows disagree.
///
/// # Errors
/// Where there is no frame, no such bridge or port, or something does not answer.
pub async fn run(args: &TraceArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let connection = args.connection.parse(live::PATIENCE)?;
    // Read before anything is asked: a bad frame is the caller's mistake, whatever the node's state.
    let given = args.frame.given()?;
    let model = live::model(&connection).await?;
    let groups = chosen(model.topology(), args.bridge.as_deref())?;
    let group = only(&groups)?;
    let frames = args.frame.frames(given, group)?;
    let switch = NativeSwitch::new(&connection.ovs_run_directory);
    let mut control = UnixCtl::of_vswitchd(&connection.ovs_run_directory)?
        .connect()
        .await?;
    let observed = observe(group, model.rows(), &switch, &mut control).await?;
    let in_port = match &args.in_port {
        None => Port::Number(group.uplink.ofport),
        Some(text) => observed.names.port(text).with_context(|| {
            format!("--in-port {text}: bridge {} has no such port", group.bridge)
        })?,
    };
    let datapath = DatapathPorts::parse(&control.call("dpif/show", &[]).await?);
    let mut agrees = true;
    for (position, frame) in frames.iter().enumerate() {
        let report = trace(group, &observed, in_port, frame, &datapath, &mut control).await?;
        agrees &= report.disagreements.is_empty();
        if output.is_json() {
            serde_json::to_writer(&mut *output.writer, &report)?;
            output.line("")?;
        } else {
            if position > 0 {
                output.line("")?;
            }
            report.print(args.all, output.writer)?;
        }
    }
    Ok(if agrees {
        Finding::Clean
    } else {
        Finding::Found
    })
}

/// The default network's group, where several could be meant.
fn only<'a>(groups: &[&'a BridgeGroup]) -> anyhow::Result<&'a BridgeGroup> {
    if let [group] = groups {
        return Ok(group);
    }
    let default = groups.iter().find(|it| it.source.network.is_none());
    default.copied().with_context(|| {
        let names: Vec<&str> = groups.iter().map(|group| &*group.bridge).collect();
        format!(
            "gateway routers share several bridges: give --bridge, one of {}",
            names.join(", ")
        )
    })
}

async fn trace(
    group: &BridgeGroup,
    observed: &Observed,
    in_port: Port,
    frame: &[u8],
    datapath: &DatapathPorts,
    control: &mut UnixCtlSession,
) -> anyhow::Result<Report> {
    let verdict = classify(&Bytes::from(frame), Some(&group.policy()));
    let port = match in_port {
        Port::Number(number) => number.to_string(),
        Port::Local => "LOCAL".to_owned(),
    };
    // What the datapath on the uplink would do to it.
    let mark = mark_of(observed.flows.iter().map(|it| &it.flow), group)
        .filter(|_| in_port == Port::Number(group.uplink.ofport) && verdict.decision.is_steered());
    let translation = translate(control, &group.bridge, &port, mark, frame).await?;
    let translation = translation.with_names(&observed.names, datapath);
    let sights = sights(group, &observed.names, &translation);
    let question = Question {
        group,
        in_port,
        decision: verdict.decision,
        is_tagged: is_tagged(frame),
        is_steered: is_steered(observed),
    };
    Ok(Report {
        bridge: group.bridge.clone(),
        in_port: observed.names.name(in_port),
        mark,
        frame: frame.iter().map(|byte| format!("{byte:02x}")).collect(),
        classifier: verdict.into(),
        disagreements: disagreements(question, &translation, &sights),
        translation,
        seen_by: sights,
    })
}

//! `neighsteer attach`, `detach` and `stats`: the datapath alone, without OVN.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use comfy_table::{Cell, CellAlignment, Table, presets};
use neighsteer_common::Decision;
use serde::Serialize;

use super::{policy::PolicyArgs, validate::ValidateArg};
use crate::datapath::{
    self, AttachOptions, Attached, Attachment, Checks, Counter, DEFAULT_BPFFS, Direction, Hook,
    State, pins, read,
};

/// The flags of `neighsteer attach`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
In a network namespace of its own, use nsenter and not `ip netns exec`: that gives the command a /sys
of its own, in which the pins end with it.

Examples:
  neighsteer attach ens3
      count ARP and NDP by kind, decide nothing
  neighsteer attach ens3 --bridge-mac 02:42:ac:12:00:03 --vlan 100
      count them by the decision of the steering flows as well
  neighsteer attach ens3 --validate drop
      drop NDP that every receiver must discard
  nsenter --net=/run/netns/blue neighsteer attach eth0")]
pub struct AttachArgs {
    /// The interface, such as the bridge's uplink
    pub interface: String,
    /// Where in the interface's receive path: XDP is for userspace datapaths, which take frames
    /// before tc
    #[arg(long, value_enum, default_value = "tc")]
    pub hook: Hook,
    /// What decisions are made by
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Set skb->mark of ARP and NDP to this number plus the decision's (tc only)
    #[arg(long, value_name = "NUMBER", value_parser = parse_tag)]
    pub tag: Option<u32>,
    /// What becomes of NDP that every receiver must discard (RFC 4861, RFC 6980)
    #[arg(long, value_enum, value_name = "ACTION", default_value_t)]
    pub validate: ValidateArg,
    /// Where bpffs is; it is mounted there if it is not
    #[arg(long, value_name = "PATH", default_value = DEFAULT_BPFFS, env = "NEIGHSTEER_BPFFS")]
    pub bpffs: PathBuf,
    /// Use the clsact qdisc although the kernel has TCX
    #[arg(long, hide = true)]
    pub clsact: bool,
}

/// The flags of `neighsteer detach`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer detach ens3")]
pub struct DetachArgs {
    /// The interface; it may be gone already
    pub interface: String,
    /// Where bpffs is
    #[arg(long, value_name = "PATH", default_value = DEFAULT_BPFFS, env = "NEIGHSTEER_BPFFS")]
    pub bpffs: PathBuf,
}

/// The flags of `neighsteer stats`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Interfaces are looked up in the network namespace that the command runs in.

Examples:
  neighsteer stats
  neighsteer stats ens3 --output json")]
pub struct StatsArgs {
    /// Only this interface [default: every interface that has pins]
    pub interface: Option<String>,
    /// Where bpffs is
    #[arg(long, value_name = "PATH", default_value = DEFAULT_BPFFS, env = "NEIGHSTEER_BPFFS")]
    pub bpffs: PathBuf,
}

/// Decimal, or hexadecimal after `0x`.
fn parse_tag(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let tag = parsed.map_err(|error| error.to_string())?;
    let last = Decision::ALL.iter().map(|decision| *decision as u32).max();
    let most = u32::MAX - last.unwrap_or_default();
    match tag <= most {
        true => Ok(tag),
        false => Err(format!(
            "at most {most:#x}, so that the decision's number fits"
        )),
    }
}

/// Attaches the datapath and says how. Warnings go to the log.
///
/// # Errors
/// Where the attachment fails, or the output cannot be written.
pub fn attach(args: &AttachArgs, json: bool, output: &mut dyn Write) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.tag.is_none() || args.hook == Hook::Tc,
        "--tag needs --hook tc: a frame on XDP has no mark"
    );
    let attached = datapath::attach(&AttachOptions {
        interface: args.interface.clone(),
        hook: args.hook,
        direction: Direction::Ingress,
        policy: args.policy.policy(),
        tag: args.tag,
        steering_mark: None,
        validate: args.validate.into(),
        bpffs: args.bpffs.clone(),
        clsact: args.clsact,
    })?;
    for warning in &attached.warnings {
        tracing::warn!(interface = %attached.interface, "{warning}");
    }
    if json {
        return print_json(&attached, output);
    }
    let Attached {
        interface,
        mode,
        program_id,
        ..
    } = &attached;
    let earlier = match (attached.replaced, attached.counters_kept) {
        (true, true) => ", in the place of an earlier one, whose counters go on",
        (true, false) => ", in the place of an earlier one",
        (false, true) => "; the counters of an earlier one go on",
        (false, false) => "",
    };
    writeln!(
        output,
        "attached to {interface}: {mode}, program {program_id}{earlier}"
    )?;
    Ok(())
}

/// Takes the datapath off an interface.
///
/// # Errors
/// Where that fails, or the output cannot be written.
pub fn detach(args: &DetachArgs, json: bool, output: &mut dyn Write) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Detached<'a> {
        interface: &'a str,
        detached: bool,
    }
    let interface = &args.interface;
    let detached = datapath::detach(interface, &args.bpffs)?;
    if json {
        return print_json(
            &Detached {
                interface,
                detached,
            },
            output,
        );
    }
    let line = if detached {
        format!("detached from {interface}")
    } else {
        format!("nothing was attached to {interface}")
    };
    writeln!(output, "{line}")?;
    Ok(())
}

/// An attachment with what it counted.
#[derive(Serialize)]
struct Stats {
    #[serde(flatten)]
    attachment: Attachment,
    counters: Vec<Counter>,
    checks: Checks,
}

/// Prints the counters: a table, or a JSON array with an object for each interface.
///
/// # Errors
/// Where nothing is attached to the named interface, the counters cannot be read (after those of the
/// other interfaces are printed), or the output cannot be written.
pub fn stats(args: &StatsArgs, json: bool, output: &mut dyn Write) -> anyhow::Result<()> {
    let mut attachments = datapath::attachments(&args.bpffs)?;
    warn_of_other_versions(&args.bpffs)?;
    if let Some(interface) = &args.interface {
        attachments.retain(|attachment| attachment.interface == *interface);
        anyhow::ensure!(
            !attachments.is_empty(),
            "nothing is attached to {interface}"
        );
    }
    let (mut readable, mut failed) = (Vec::new(), None);
    for attachment in attachments {
        match read_stats(attachment, &args.bpffs) {
            Ok(stats) => readable.push(stats),
            Err(error) if failed.is_none() => failed = Some(error),
            Err(error) => tracing::warn!(error = %crate::agent::chain(&error), "not shown either"),
        }
    }
    if json {
        print_json(&readable, output)?;
    } else if readable.is_empty() && failed.is_none() {
        writeln!(output, "nothing is attached")?;
    } else {
        for stats in &readable {
            print_stats(stats, read::now_ns(), output)?;
        }
    }
    output.flush()?;
    Ok(failed.map_or(Ok(()), Err)?)
}

fn read_stats(attachment: Attachment, bpffs: &Path) -> Result<Stats, datapath::ReadError> {
    Ok(Stats {
        counters: datapath::counters(&attachment.interface, bpffs)?,
        checks: datapath::checks(&attachment.interface, bpffs)?,
        attachment,
    })
}

/// What another version attached counts in maps that this one cannot read.
fn warn_of_other_versions(bpffs: &Path) -> anyhow::Result<()> {
    for interface in pins::interfaces_of_every_version(bpffs)? {
        if let Some(directory) = pins::other_version(bpffs, &interface)? {
            tracing::warn!(
                %interface,
                pins = %directory.display(),
                "attached by another version of neighsteer; `neighsteer detach` takes it off"
            );
        }
    }
    Ok(())
}

fn print_stats(stats: &Stats, now_ns: u64, output: &mut dyn Write) -> anyhow::Result<()> {
    let attachment = &stats.attachment;
    match (attachment.state, attachment.mode, &attachment.renamed) {
        (State::Attached, Some(mode), _) => writeln!(output, "{}: {mode}", attachment.interface)?,
        (_, _, Some(renamed)) => writeln!(
            output,
            "{}: attached to this interface under its present name {renamed}; `neighsteer detach {renamed}` takes it off",
            attachment.interface
        )?,
        _ => writeln!(
            output,
            "{}: not attached in this network namespace (any more); `neighsteer detach` removes it wherever it is",
            attachment.interface
        )?,
    }
    if stats.counters.is_empty() {
        writeln!(output, "no ARP or NDP frame yet")?;
    } else {
        print_counters(&stats.counters, now_ns, output)?;
    }
    print_checks(&stats.checks, output)
}

fn print_counters(counters: &[Counter], now_ns: u64, output: &mut dyn Write) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let outwards = |counter: &Counter| counter.direction == Direction::Egress;
    let shows_direction = counters.iter().any(outwards);
    let direction = shows_direction.then_some("DIRECTION");
    let titles = ["KIND", "DECISION", "PACKETS", "BYTES", "LAST SEEN"];
    table.set_header(direction.into_iter().chain(titles));
    for counter in counters {
        let direction = shows_direction.then(|| Cell::new(counter.direction));
        table.add_row(direction.into_iter().chain([
            Cell::new(counter.kind),
            Cell::new(counter.decision),
            Cell::new(counter.packets).set_alignment(CellAlignment::Right),
            Cell::new(counter.bytes).set_alignment(CellAlignment::Right),
            Cell::new(age(now_ns, counter.last_seen_ns)).set_alignment(CellAlignment::Right),
        ]));
    }
    writeln!(output, "{}", table.trim_fmt())?;
    Ok(())
}

fn print_checks(checks: &Checks, output: &mut dyn Write) -> anyhow::Result<()> {
    if checks.failed.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["FAILED CHECK", "SUCH FRAMES ARE", "PACKETS"]);
    for counter in &checks.failed {
        table.add_row([
            Cell::new(counter.check),
            Cell::new(if counter.invalid {
                "invalid"
            } else {
                "suspicious"
            }),
            Cell::new(counter.packets).set_alignment(CellAlignment::Right),
        ]);
    }
    writeln!(output, "{}", table.trim_fmt())?;
    writeln!(output, "dropped: {}", checks.dropped)?;
    Ok(())
}

/// How long ago, in the largest unit of which there are two or more.
fn age(now_ns: u64, then_ns: u64) -> String {
    let seconds = Duration::from_nanos(now_ns.saturating_sub(then_ns)).as_secs();
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86400),
    }
}

fn print_json(value: &impl Serialize, output: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *output, value).context("cannot write the output")?;
    writeln!(output)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use clap::Parser;
    use neighsteer_common::{Check, Kind, NodeAddresses, Policy, Validate};

    use super::*;
    use crate::datapath::{CheckCounter, Mode};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        attach: AttachArgs,
    }

    fn parse(arguments: &[&str]) -> Result<AttachArgs, clap::Error> {
        let arguments = ["attach", "eth0"].iter().chain(arguments);
        Command::try_parse_from(arguments).map(|command| command.attach)
    }

    #[test]
    fn a_policy_is_made_of_a_unicast_mac_and_a_vlan_in_range() {
        let policy = |arguments| parse(arguments).unwrap().policy.policy();
        assert_eq!(policy(&[]), None);
        let bridge_mac = [2, 0, 0, 0, 0, 1];
        assert_eq!(
            policy(&["--bridge-mac", "02:00:00:00:00:01", "--vlan", "5"]),
            Some(Policy {
                bridge_mac,
                gateway_vlan: Some(5),
                node_addresses: NodeAddresses::NONE,
            })
        );
        for refused in [
            &["--bridge-mac", "01:00:00:00:00:01"][..],
            &["--bridge-mac", "00:00:00:00:00:00"],
            &["--bridge-mac", "eth0"],
            &["--bridge-mac", "02:00:00:00:00:01", "--vlan", "0"],
            &["--bridge-mac", "02:00:00:00:00:01", "--vlan", "4095"],
            &["--vlan", "5"],
        ] {
            assert!(parse(refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn own_addresses_are_as_many_as_there_is_room_for() {
        let arguments = parse(&[
            "--bridge-mac=02:00:00:00:00:01",
            "--own-address=fe80::1",
            "--own-address=172.18.0.3",
            "--own-address=fd00::3",
            "--own-address=fd00::3",
            "--own-address=172.18.0.4",
            "--own-address=fd00::4",
            "--own-address=fd00::5",
        ]);
        let policy = arguments.unwrap().policy.policy().unwrap();
        let expected = NodeAddresses::new(
            Ipv4Addr::new(172, 18, 0, 3),
            ["fd00::3", "fd00::4"].map(|address| address.parse().unwrap()),
        );
        assert_eq!(policy.node_addresses, expected);
        assert!(parse(&["--own-address=172.18.0.3"]).is_err(), "whose?");
    }

    #[test]
    fn invalid_frames_are_counted_unless_something_else_is_said() {
        let validate = |arguments: &[&str]| Validate::from(parse(arguments).unwrap().validate);
        assert_eq!(validate(&[]), Validate::Count);
        for wanted in Validate::ALL {
            assert_eq!(validate(&["--validate", wanted.name()]), wanted);
        }
        assert!(parse(&["--validate", "all"]).is_err());
    }

    #[test]
    fn a_tag_is_decimal_or_hexadecimal() {
        assert_eq!(parse(&["--tag", "0x5200"]).unwrap().tag, Some(0x5200));
        assert_eq!(parse(&["--tag", "82"]).unwrap().tag, Some(82));
        assert!(parse(&["--tag", "0x"]).is_err());
    }

    #[test]
    fn a_tag_on_xdp_is_refused_before_anything_is_attached() {
        let arguments = parse(&["--hook", "xdp", "--tag", "1"]).unwrap();
        let error = attach(&arguments, false, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("--hook tc"), "{error}");
    }

    #[test]
    fn the_table_shows_what_was_counted_and_when() {
        let stats = Stats {
            attachment: Attachment {
                interface: "eth0".to_owned(),
                state: State::Attached,
                mode: Some(Mode::Tcx),
                program_id: Some(7),
                renamed: None,
            },
            counters: vec![Counter {
                interface_index: 2,
                direction: Direction::Ingress,
                kind: Kind::ArpReply,
                decision: Decision::SteerArp,
                packets: 12,
                bytes: 720,
                last_seen_ns: 1_000_000_000,
            }],
            checks: Checks {
                failed: vec![CheckCounter {
                    interface_index: 2,
                    direction: Direction::Ingress,
                    check: Check::HopLimit,
                    invalid: true,
                    packets: 5,
                }],
                dropped: 4,
            },
        };
        let mut output = Vec::new();
        print_stats(&stats, 4_500_000_000, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "eth0: tc (TCX)",
                "KIND DECISION PACKETS BYTES LAST SEEN",
                "arp-reply steer-arp 12 720 3 s ago",
                "FAILED CHECK SUCH FRAMES ARE PACKETS",
                "hop-limit-not-255 invalid 5",
                "dropped: 4",
            ]
        );
    }

    #[test]
    fn ages_have_a_readable_unit() {
        for (seconds, text) in [
            (0, "0 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7200, "2 h ago"),
            (172_800, "2 d ago"),
        ] {
            assert_eq!(age(seconds * 1_000_000_000, 0), text);
        }
    }
}

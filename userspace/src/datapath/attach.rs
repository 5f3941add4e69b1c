//! Attaches the programs: pinned, replaced atomically, nothing left behind by a failure.

use std::{fmt, path::PathBuf};

use neighsteer_common::{
    Policy, Validate,
    abi::{self, Direction, Settings},
};
use nix::net::if_::if_nametoindex;
use serde::Serialize;

use super::{
    bpffs,
    error::AttachError,
    filter,
    links::{self, Pinned},
    load,
    netlink::{self, Filter},
    pins::{self, Pins},
    renamed,
};

mod attempt;
mod tc;
mod xdp;

use attempt::Attempt;

/// Where in the interface's receive path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// tc ingress, for Open vSwitch's kernel datapath.
    Tc,
    /// XDP, for userspace datapaths, which take frames before tc.
    Xdp,
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tc => "tc",
            Self::Xdp => "XDP",
        })
    }
}

/// How the kernel runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A TCX link (Linux 6.6 and newer).
    Tcx,
    /// A filter of the clsact qdisc.
    Clsact,
    /// XDP in the driver.
    XdpNative,
    /// XDP in the network stack.
    XdpGeneric,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcx => "tc (TCX)",
            Self::Clsact => "tc (clsact)",
            Self::XdpNative => "XDP (native)",
            Self::XdpGeneric => "XDP (generic)",
        })
    }
}

/// What to attach, and where.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// The interface, in this network namespace.
    pub interface: String,
    /// Where in its receive path.
    pub hook: Hook,
    /// Which way the frames go that the interface receives: at a representor of the host they leave
    /// the node.
    pub direction: Direction,
    /// What decisions are made by; without one, kinds are counted and nothing is decided.
    pub policy: Option<Policy>,
    /// Sets `skb->mark` of ARP and NDP to this number plus the decision's (tc only).
    pub tag: Option<u32>,
    /// Sets `skb->mark` of frames to steer to this number, and of no others (tc only; not with a
    /// tag): what flows steer by.
    pub steering_mark: Option<u32>,
    /// What becomes of frames that every receiver must discard.
    pub validate: Validate,
    /// Where bpffs is, or is to be mounted: [`pins::DEFAULT_BPFFS`].
    pub bpffs: PathBuf,
    /// Takes clsact although the kernel has TCX.
    pub clsact: bool,
}

/// Something that the operator should know of an attachment that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "warning")]
pub enum Warning {
    /// XDP does not see tags that were stripped before it.
    #[error(
        "rx-vlan-offload is on: XDP sees tagged frames without their tag, and judges them as \
         untagged; `ethtool -K {interface} rxvlan off` ends that"
    )]
    RxVlanOffload {
        /// The interface.
        interface: String,
    },
    /// The feature could not be read.
    #[error("whether rx-vlan-offload is on could not be told: {reason}")]
    RxVlanOffloadUnknown {
        /// Why.
        reason: String,
    },
    /// The program that ran at the other hook before could not be taken off.
    #[error(
        "another process holds the link of the program that ran on {interface} before: every frame \
         counts twice until that process ends (`bpftool link` names it)"
    )]
    FormerLinkHeld {
        /// The interface.
        interface: String,
    },
    /// The driver refused the program.
    #[error(
        "native XDP was refused ({reason}): the program runs in the network stack, more slowly"
    )]
    GenericXdp {
        /// Why.
        reason: String,
    },
}

/// An attachment that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Attached {
    /// The interface.
    pub interface: String,
    /// Its index.
    pub interface_index: u32,
    /// How the program runs.
    pub mode: Mode,
    /// The program's ID.
    pub program_id: u32,
    /// Whether it took the place of an earlier one of ours.
    pub replaced: bool,
    /// Whether it goes on counting in the counters of an earlier one.
    pub counters_kept: bool,
    /// What the operator should know.
    pub warnings: Vec<Warning>,
}

/// Attaches the embedded program to an interface.
///
/// An attachment of ours that is there already is replaced atomically: the counters go on, and no
/// frame is missed (between hooks, a few may count twice).
///
/// # Errors
/// Each a line that says what to do. What was not there before is not there after one.
pub fn attach(options: &AttachOptions) -> Result<Attached, AttachError> {
    attach_object(options, load::OBJECT)
}

/// Attaches the program of another object than the embedded one.
///
/// # Errors
/// As [`attach`].
pub fn attach_object(options: &AttachOptions, object: &[u8]) -> Result<Attached, AttachError> {
    let interface = &options.interface;
    let interface_index =
        if_nametoindex(interface.as_str()).map_err(|_| no_interface(interface))?;
    load::check_preconditions()?;
    bpffs::ensure(&options.bpffs)?;
    let pins = Pins::new(&options.bpffs, interface);
    for error in renamed::follow(&options.bpffs)? {
        // Names of others do not keep this one from being attached.
        if error.is_about(pins.directory()) {
            return Err(error.into());
        }
        tracing::warn!(%error, "pins keep a former name");
    }
    let earlier = earlier(options, &pins, interface_index)?;

    let kept: Vec<_> = pins
        .maps()
        .into_iter()
        .filter(|(_, pin)| pin.exists())
        .collect();
    let settings = Settings::new(
        options.direction,
        options.policy.as_ref(),
        options.tag,
        options.validate,
    )
    .with_steering_mark(options.steering_mark);
    let mut ebpf = load::load(object, &settings, &kept)?;
    let mut maps = Vec::new();
    for (name, pin) in pins.maps() {
        let map = ebpf.take_map(name).ok_or(AttachError::Missing { name })?;
        maps.push((map, pin));
    }
    let counters_kept = kept.iter().any(|(name, _)| *name == abi::COUNTERS);
    let mut attempt = Attempt::new(options, interface_index, &pins);
    let replaced = earlier.link.is_some() || earlier.filter.is_some();
    let (mode, program_id) = match options.hook {
        Hook::Tc => attempt.tc(&mut ebpf, &maps, earlier)?,
        Hook::Xdp => attempt.xdp(&mut ebpf, &maps, earlier)?,
    };
    Ok(Attached {
        interface: interface.clone(),
        interface_index,
        mode,
        program_id,
        replaced,
        counters_kept,
        warnings: attempt.keep(),
    })
}

fn no_interface(interface: &str) -> AttachError {
    AttachError::NoInterface {
        interface: interface.to_owned(),
    }
}

/// What an earlier process left attached to this interface.
struct Earlier {
    link: Option<Pinned>,
    filter: Option<Filter>,
}

fn earlier(
    options: &AttachOptions,
    pins: &Pins,
    interface_index: u32,
) -> Result<Earlier, AttachError> {
    let other = pins::other_version(&options.bpffs, &options.interface).map_err(|source| {
        AttachError::PinFile {
            path: options.bpffs.clone(),
            source,
        }
    })?;
    if let Some(directory) = other {
        return Err(AttachError::OtherAbi {
            interface: options.interface.clone(),
            directory,
        });
    }
    let link = match links::open(&pins.link()).map_err(|error| attempt::link_error(pins, error))? {
        Some(link) if link.is_on(&options.interface, interface_index) => Some(link),
        Some(Pinned {
            interface_index: Some(interface_index),
            ..
        }) => {
            return Err(AttachError::AttachedElsewhere {
                path: pins.link(),
                interface_index,
            });
        }
        // The interface of a former link is gone; its pin gives way to the new one.
        Some(_) | None => None,
    };
    let filters =
        netlink::ingress_filters(interface_index).map_err(|source| AttachError::Netlink {
            interface: options.interface.clone(),
            source,
        })?;
    Ok(Earlier {
        link,
        filter: filters.into_iter().find(filter::is_ours),
    })
}

//! What a frame's verdict should be, worked out a second time and in another way.
//!
//! Headers are taken apart by etherparse's slices. Where Open vSwitch departs from the standards
//! that etherparse follows, the rule is spelled out here, from what `ofproto/trace` showed (OVS 3.1)
//! and what the kernel's datapath does; nothing is taken over from the classifier, whose examiner
//! this is.

mod announced;
mod arp;
mod ipv6;
mod link;

use neighsteer_common::{Decision, Kind, Notes, OuterTag, Policy, Verdict};

use self::announced::Announced;

/// Whose reading of a frame is asked for. They differ on few frames, see `docs/parsing.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datapath {
    /// The `openvswitch` module, whose reading the classifier follows.
    Kernel,
    /// ovs-vswitchd's own, which `ofproto/trace` uses.
    Userspace,
}

/// What there is to read of a frame.
struct Reading {
    kind: Kind,
    notes: Notes,
    /// Destination address; empty for a frame without one.
    destination: Vec<u8>,
    /// VLAN ID of the outermost tag.
    vlan_id: Option<u16>,
    /// The address that it announces, and where.
    announced: Option<Announced>,
}

impl Reading {
    const fn nothing(notes: Notes) -> Self {
        Self {
            kind: Kind::NotNeighbour,
            notes,
            destination: Vec::new(),
            vlan_id: None,
            announced: None,
        }
    }
}

/// The verdict that the classifier should give.
#[must_use]
pub fn verdict(frame: &[u8], outer_tag: Option<OuterTag>, policy: Option<&Policy>) -> Verdict {
    let mut reading = read(frame, outer_tag, Datapath::Kernel);
    if let (Some(announced), Some(policy)) = (&reading.announced, policy)
        && announced.is_of_node_elsewhere(reading.vlan_id, policy)
    {
        reading.notes |= Notes::NODE_ADDRESS_ANNOUNCED;
    }
    Verdict {
        kind: reading.kind,
        decision: policy.map_or(Decision::Undecided, |policy| decide(&reading, policy)),
        notes: reading.notes,
    }
}

/// What the flow table does with the frame on one of the two datapaths.
#[must_use]
pub fn decision(
    frame: &[u8],
    outer_tag: Option<OuterTag>,
    policy: &Policy,
    datapath: Datapath,
) -> Decision {
    decide(&read(frame, outer_tag, datapath), policy)
}

fn read(frame: &[u8], outer_tag: Option<OuterTag>, datapath: Datapath) -> Reading {
    let link = match link::read(frame, outer_tag, datapath) {
        Ok(link) => link,
        Err(notes) => return Reading::nothing(notes),
    };
    let mut announced = None;
    let (kind, mut notes) = match link.ethertype {
        0x0806 => {
            let (kind, notes) = arp::read(link.payload, link.source);
            announced = Announced::by_arp(kind, link.payload);
            (kind, notes)
        }
        0x86dd => {
            let (kind, notes, message) = ipv6::read(link.payload, datapath);
            announced = Announced::by_advertisement(kind, message, link.source);
            (kind, notes)
        }
        _ => (Kind::NotNeighbour, link.notes),
    };
    let [first, ..] = link.source;
    if kind != Kind::NotNeighbour && (first & 1 == 1 || link.source == [0; 6]) {
        notes |= Notes::ODD_SENDER;
    }
    Reading {
        kind,
        notes,
        destination: link.destination.to_vec(),
        vlan_id: link.vlan_id,
        announced,
    }
}

/// The four priority-52 flows of OKEP-6691 and the catch-all below them.
fn decide(reading: &Reading, policy: &Policy) -> Decision {
    if reading.kind == Kind::NotNeighbour {
        return Decision::Normal;
    }
    if reading
        .destination
        .first()
        .is_some_and(|byte| byte & 1 == 1)
    {
        return Decision::Flood;
    }
    let matches_vlan = match policy.gateway_vlan {
        None => true,
        Some(wanted) => reading.vlan_id == Some(wanted),
    };
    if reading.destination != policy.bridge_mac || !matches_vlan {
        return Decision::Normal;
    }
    match reading.kind {
        Kind::ArpRequest
        | Kind::ArpReply
        | Kind::ArpProbe
        | Kind::ArpAnnouncement
        | Kind::ArpOther => Decision::SteerArp,
        Kind::NeighborSolicitation => Decision::SteerNs,
        Kind::NeighborAdvertisement => Decision::SteerNa,
        Kind::RouterAdvertisement => Decision::SteerRa,
        // No flow takes these two.
        Kind::RouterSolicitation | Kind::Redirect | Kind::NotNeighbour => Decision::Normal,
    }
}

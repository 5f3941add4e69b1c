//! The Ethernet header: tags and LLC/SNAP, read as Open vSwitch's kernel datapath reads them.

use crate::{Frame, Notes, wire};

/// What stands before a frame's body, addresses aside.
pub(crate) struct Ethernet {
    /// The type behind the tags that are read, and behind LLC/SNAP.
    pub(crate) ethertype: u16,
    /// Where the body begins.
    pub(crate) body: usize,
    /// The VLAN ID of the outermost tag in the frame: 0 for a priority tag, [`NO_VLAN`] without a
    /// tag.
    pub(crate) vlan_in_frame: u16,
}

/// No VLAN ID, which has 12 bits. An `Option` would leave its number unset, and older verifiers
/// refuse a program that saves an unset register.
pub(crate) const NO_VLAN: u16 = 0xffff;

/// The VLAN ID of the outermost tag, wherever it is: 0 for a priority tag, [`NO_VLAN`] without one.
///
/// A tag beside the frame is always the outermost one.
#[inline(always)]
pub(crate) fn outer_vlan<F: Frame>(frame: &F, vlan_in_frame: u16) -> u16 {
    match frame.outer_tag() {
        Some(tag) => tag.tci & wire::VLAN_ID_MASK,
        None => vlan_in_frame,
    }
}

/// The destination address.
#[inline(always)]
pub(crate) fn destination<F: Frame>(frame: &F) -> Option<[u8; 6]> {
    frame.load(0)
}

/// The source address.
#[inline(always)]
pub(crate) fn source<F: Frame>(frame: &F) -> Option<[u8; 6]> {
    frame.load(6)
}

/// Whether an address is multicast or broadcast.
#[inline(always)]
pub(crate) const fn is_group(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 1
}

/// Whether an address can send nothing: multicast, broadcast or all zero.
#[inline(always)]
pub(crate) const fn is_odd_sender(mac: [u8; 6]) -> bool {
    let [a, b, c, d, e, f] = mac;
    is_group(mac) || a | b | c | d | e | f == 0
}

/// Reads tags and the type, or says that the frame is too short for them.
///
/// Addresses are left for later: most frames are neither ARP nor NDP and need none.
#[inline(always)]
pub(crate) fn read<F: Frame>(frame: &F) -> Result<Ethernet, Notes> {
    let ethertype = frame
        .load(wire::ETHERNET_TYPE_OFFSET)
        .ok_or(Notes::TRUNCATED)?;
    let mut ethernet = Ethernet {
        ethertype: u16::from_be_bytes(ethertype),
        body: wire::ETHERNET_HEADER,
        vlan_in_frame: NO_VLAN,
    };
    if wire::is_tag(ethernet.ethertype) {
        read_tags(frame, &mut ethernet)?;
    }
    if ethernet.ethertype < wire::ETHERNET_TYPE_MIN {
        read_snap(frame, &mut ethernet);
    }
    Ok(ethernet)
}

/// Steps over the tags in the frame: as many as make two with the one beside it.
#[inline(always)]
fn read_tags<F: Frame>(frame: &F, ethernet: &mut Ethernet) -> Result<(), Notes> {
    let (tci, inner) = read_tag(frame, wire::ETHERNET_HEADER)?;
    ethernet.vlan_in_frame = tci & wire::VLAN_ID_MASK;
    ethernet.ethertype = inner;
    ethernet.body = wire::ETHERNET_HEADER + wire::VLAN_TAG;
    if wire::is_tag(inner) && frame.outer_tag().is_none() {
        let (_, inner) = read_tag(frame, wire::ETHERNET_HEADER + wire::VLAN_TAG)?;
        ethernet.ethertype = inner;
        ethernet.body = wire::ETHERNET_HEADER + wire::TAGS_READ * wire::VLAN_TAG;
    }
    Ok(())
}

/// The TCI at `offset` and the type behind it.
#[inline(always)]
fn read_tag<F: Frame>(frame: &F, offset: usize) -> Result<(u16, u16), Notes> {
    let [tci0, tci1, type0, type1] = frame.load(offset).ok_or(Notes::TRUNCATED)?;
    Ok((
        u16::from_be_bytes([tci0, tci1]),
        u16::from_be_bytes([type0, type1]),
    ))
}

/// Takes the type out of an LLC/SNAP header with OUI 0, if there is one.
///
/// Any LLC control byte will do, as in the kernel; Open vSwitch's userspace parser wants 3.
#[inline(always)]
fn read_snap<F: Frame>(frame: &F, ethernet: &mut Ethernet) {
    if let Some(
        [
            wire::LLC_SAP_SNAP,
            wire::LLC_SAP_SNAP,
            _,
            0,
            0,
            0,
            type0,
            type1,
        ],
    ) = frame.load(ethernet.body)
    {
        ethernet.ethertype = u16::from_be_bytes([type0, type1]);
        ethernet.body += wire::LLC_SNAP;
    }
}

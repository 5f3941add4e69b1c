//! The Ethernet header: tags and LLC/SNAP, read as Open vSwitch's kernel datapath reads them.

use crate::{Frame, Notes, wire};

/// An Ethernet header that was read in full.
pub(crate) struct Ethernet {
    pub(crate) destination: [u8; 6],
    pub(crate) source: [u8; 6],
    /// The type behind the tags that are read, and behind LLC/SNAP.
    pub(crate) ethertype: u16,
    /// Where the body begins.
    pub(crate) body: usize,
    /// The TCI of the outermost tag that stands in the frame.
    tci_in_frame: Option<u16>,
}

impl Ethernet {
    /// The VLAN ID of the outermost tag, wherever it is: 0 for a priority tag.
    ///
    /// A tag beside the frame is always the outermost one.
    #[inline(always)]
    pub(crate) fn vlan_id<F: Frame>(&self, frame: &F) -> Option<u16> {
        let tci = match frame.outer_tag() {
            Some(tag) => Some(tag.tci),
            None => self.tci_in_frame,
        };
        tci.map(|tci| tci & wire::VLAN_ID_MASK)
    }

    /// Whether the group bit of the destination is set.
    #[inline(always)]
    pub(crate) const fn is_to_group(&self) -> bool {
        is_group(self.destination)
    }
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

/// Reads addresses, tags and the type, or says that the frame is too short for them.
#[inline(always)]
pub(crate) fn read<F: Frame>(frame: &F) -> Result<Ethernet, Notes> {
    let header: [u8; wire::ETHERNET_HEADER] = frame.load(0).ok_or(Notes::TRUNCATED)?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = header;
    let mut ethernet = Ethernet {
        destination: [d0, d1, d2, d3, d4, d5],
        source: [s0, s1, s2, s3, s4, s5],
        ethertype: u16::from_be_bytes([t0, t1]),
        body: wire::ETHERNET_HEADER,
        tci_in_frame: None,
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
    ethernet.tci_in_frame = Some(tci);
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

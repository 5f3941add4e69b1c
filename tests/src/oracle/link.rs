//! Ethernet, VLAN tags, LLC/SNAP.

use etherparse::{Ethernet2HeaderSlice, SingleVlanHeaderSlice};
use neighsteer_common::{Notes, OuterTag};

use super::Datapath;

/// A frame down to what it carries.
pub(super) struct Link<'a> {
    pub(super) destination: [u8; 6],
    pub(super) source: [u8; 6],
    /// VLAN ID of the outermost tag, 0 for a priority tag.
    pub(super) vlan_id: Option<u16>,
    pub(super) ethertype: u16,
    pub(super) payload: &'a [u8],
    /// For a frame that turns out to carry nothing of interest.
    pub(super) notes: Notes,
}

/// Open vSwitch reads two tags, one in the metadata counted in, of these two types only.
const TAGS: usize = 2;
const TPIDS: [u16; 2] = [0x8100, 0x88a8];

pub(super) fn read(
    frame: &[u8],
    outer_tag: Option<OuterTag>,
    datapath: Datapath,
) -> Result<Link<'_>, Notes> {
    let header = Ethernet2HeaderSlice::from_slice(frame).map_err(|_| Notes::TRUNCATED)?;
    let mut ethertype = header.ether_type().0;
    let mut payload = frame.get(14..).unwrap_or_default();
    let mut vlan_ids: Vec<u16> = outer_tag.iter().map(|tag| tag.tci & 0x0fff).collect();
    let mut notes = Notes::default();

    while vlan_ids.len() < TAGS && TPIDS.contains(&ethertype) {
        let Ok(tag) = SingleVlanHeaderSlice::from_slice(payload) else {
            // Tag without a type behind it: the TPID stays the frame's type.
            notes |= Notes::TRUNCATED;
            break;
        };
        vlan_ids.push(tag.vlan_identifier().value());
        ethertype = tag.ether_type().0;
        payload = payload.get(4..).unwrap_or_default();
    }

    // etherparse knows no LLC in Ethernet frames: RFC 1042 by hand. The kernel does not look at the
    // control byte.
    if ethertype < 0x0600 {
        ethertype = match payload.split_first_chunk::<8>() {
            Some(([0xaa, 0xaa, control, 0, 0, 0, high, low], rest))
                if *control == 3 || datapath == Datapath::Kernel =>
            {
                payload = rest;
                u16::from_be_bytes([*high, *low])
            }
            _ => 0,
        };
        // A length again: not a type.
        if ethertype < 0x0600 {
            ethertype = 0;
        }
    }

    Ok(Link {
        destination: header.destination(),
        source: header.source(),
        vlan_id: vlan_ids.first().copied(),
        ethertype,
        payload,
        notes,
    })
}

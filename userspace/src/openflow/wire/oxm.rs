//! Fields of a match (OXM, OpenFlow 1.3 section 7.2.3).

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError, padding, put_zeros, with_length},
    port_number::PortNumber,
};
use crate::ids::Mac;

/// Set in a match on a VLAN: the frame has a tag (`OFPVID_PRESENT`).
pub const VLAN_PRESENT: u16 = 0x1000;

/// `OFPMT_OXM`, the only kind of match.
const MATCH_OXM: u16 = 1;

const IN_PORT: u32 = basic(0, 4);
/// `NXM_NX_PKT_MARK`, of Nicira's second class: OpenFlow has no field of its own.
const PKT_MARK: u32 = 0x0001 << 16 | 33 << 9 | 4;
const ETH_DST: u32 = basic(3, 6);
const ETH_SRC: u32 = basic(4, 6);
const ETH_TYPE: u32 = basic(5, 2);
const VLAN_VID: u32 = basic(6, 2);
const IP_PROTO: u32 = basic(10, 1);
const ARP_OP: u32 = basic(21, 2);
const ARP_SPA: u32 = basic(22, 4);
const ARP_TPA: u32 = basic(23, 4);
const ICMPV6_TYPE: u32 = basic(29, 1);
const ND_TARGET: u32 = basic(31, 16);

/// The header of an exact match on a field of the basic class.
const fn basic(field: u32, length: u32) -> u32 {
    0x8000 << 16 | field << 9 | length
}

/// One field that a frame must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Oxm {
    /// The port by which it came in.
    InPort(PortNumber),
    /// The packet mark of Linux (`skb->mark`).
    PktMark(u32),
    /// The Ethernet destination.
    EthDst(Mac),
    /// The Ethernet source.
    EthSrc(Mac),
    /// The Ethernet type.
    EthType(u16),
    /// The outermost tag's VLAN with [`VLAN_PRESENT`], or 0 for no tag.
    VlanVid(u16),
    /// The IPv4 protocol or IPv6 next header.
    IpProto(u8),
    /// The ARP operation.
    ArpOp(u16),
    /// The ARP sender protocol address.
    ArpSpa(Ipv4Addr),
    /// The ARP target protocol address.
    ArpTpa(Ipv4Addr),
    /// The ICMPv6 type.
    Icmpv6Type(u8),
    /// The target of a Neighbor Solicitation or Advertisement.
    NdTarget(Ipv6Addr),
    /// Another field, or one with a mask.
    Other(RawOxm),
}

/// A field as it is on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawOxm {
    /// Class, field and whether there is a mask: the header without its length byte.
    pub field: u32,
    /// The value, then the mask of the same length if there is one. An experimenter's field begins
    /// with the experimenter's number.
    pub payload: Vec<u8>,
}

impl RawOxm {
    /// The class (`OFPXMC_*`).
    #[must_use]
    pub const fn class(&self) -> u16 {
        (self.field >> 8) as u16
    }

    /// The field's number in its class.
    #[must_use]
    pub const fn number(&self) -> u8 {
        (self.field >> 1 & 0x7f) as u8
    }

    /// Value and mask.
    #[must_use]
    pub fn value_and_mask(&self) -> (&[u8], Option<&[u8]>) {
        if self.field & 1 == 0 {
            return (&self.payload, None);
        }
        match self.payload.split_at_checked(self.payload.len() / 2) {
            Some((value, mask)) => (value, Some(mask)),
            None => (&self.payload, None),
        }
    }
}

impl Oxm {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.u32()?;
        let length = usize::from((header & 0xff) as u8);
        let mut body = reader.inner("a match field", length)?;
        Ok(match header {
            IN_PORT => Self::InPort(PortNumber(body.u32()?)),
            PKT_MARK => Self::PktMark(body.u32()?),
            ETH_DST => Self::EthDst(Mac(body.array()?)),
            ETH_SRC => Self::EthSrc(Mac(body.array()?)),
            ETH_TYPE => Self::EthType(body.u16()?),
            VLAN_VID => Self::VlanVid(body.u16()?),
            IP_PROTO => Self::IpProto(body.u8()?),
            ARP_OP => Self::ArpOp(body.u16()?),
            ARP_SPA => Self::ArpSpa(body.u32()?.into()),
            ARP_TPA => Self::ArpTpa(body.u32()?.into()),
            ICMPV6_TYPE => Self::Icmpv6Type(body.u8()?),
            ND_TARGET => Self::NdTarget(body.array::<16>()?.into()),
            _ => Self::Other(RawOxm {
                field: header >> 8,
                payload: body.rest().to_vec(),
            }),
        })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        match self {
            Self::InPort(port) => {
                to.put_u32(IN_PORT);
                to.put_u32(port.0);
            }
            Self::PktMark(mark) => {
                to.put_u32(PKT_MARK);
                to.put_u32(*mark);
            }
            Self::EthDst(mac) => {
                to.put_u32(ETH_DST);
                to.put_slice(&mac.0);
            }
            Self::EthSrc(mac) => {
                to.put_u32(ETH_SRC);
                to.put_slice(&mac.0);
            }
            Self::EthType(ethertype) => {
                to.put_u32(ETH_TYPE);
                to.put_u16(*ethertype);
            }
            Self::VlanVid(vid) => {
                to.put_u32(VLAN_VID);
                to.put_u16(*vid);
            }
            Self::IpProto(protocol) => {
                to.put_u32(IP_PROTO);
                to.put_u8(*protocol);
            }
            Self::ArpOp(operation) => {
                to.put_u32(ARP_OP);
                to.put_u16(*operation);
            }
            Self::ArpSpa(address) => {
                to.put_u32(ARP_SPA);
                to.put_slice(&address.octets());
            }
            Self::ArpTpa(address) => {
                to.put_u32(ARP_TPA);
                to.put_slice(&address.octets());
            }
            Self::Icmpv6Type(kind) => {
                to.put_u32(ICMPV6_TYPE);
                to.put_u8(*kind);
            }
            Self::NdTarget(address) => {
                to.put_u32(ND_TARGET);
                to.put_slice(&address.octets());
            }
            Self::Other(raw) => {
                let length = raw.payload.len();
                let what = "a match field";
                let byte = u8::try_from(length).map_err(|_| WireError::TooLong { what, length })?;
                to.put_u32(raw.field << 8 | u32::from(byte));
                to.put_slice(&raw.payload);
            }
        }
        Ok(())
    }
}

/// Reads a match (`struct ofp_match`) with its padding.
pub(super) fn decode_match(reader: &mut Reader<'_>) -> Result<Vec<Oxm>, WireError> {
    let kind = reader.u16()?;
    if kind != MATCH_OXM {
        let value = u64::from(kind);
        let what = "the kind of a match";
        return Err(WireError::BadValue { what, value });
    }
    let length = usize::from(reader.u16()?);
    let mut body = reader.body_of("a match", length, 4)?;
    reader.skip(padding(length))?;
    let mut fields = Vec::new();
    while !body.is_empty() {
        fields.push(Oxm::decode(&mut body)?);
    }
    Ok(fields)
}

/// Writes a match with its padding and returns its length without (bytes).
pub(super) fn encode_match(fields: &[Oxm], to: &mut BytesMut) -> Result<usize, WireError> {
    let length = with_length(to, "a match", 2, |to| {
        to.put_u16(MATCH_OXM);
        to.put_u16(0);
        fields.iter().try_for_each(|field| field.encode(to))
    })?;
    put_zeros(to, padding(length));
    Ok(length)
}

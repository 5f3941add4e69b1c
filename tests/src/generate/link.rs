//! Addresses, tags, types.

use neighsteer_common::OuterTag;
use proptest::{collection::vec, prelude::*};

use crate::frames::{
    BRIDGE_MAC, BROADCAST, EthernetFrame, Framing, HOST_MAC, Mac, Tag, ZERO_MAC,
    ethernet::{self, Snap},
    ndp,
};

/// The VLAN ID that policies ask for.
pub(super) const VLAN: u16 = 5;

/// What a frame's payload calls for.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) ethertype: u16,
    pub(super) bytes: Vec<u8>,
}

/// All of a frame but its payload.
#[derive(Clone, Debug)]
pub(super) struct Header {
    destination: Mac,
    source: Mac,
    tags: Vec<Tag>,
    snap: Option<Snap>,
    /// In place of the payload's own type.
    ethertype: Option<u16>,
}

impl Header {
    pub(super) fn around(self, body: Body) -> EthernetFrame {
        let ethertype = self.ethertype.unwrap_or(body.ethertype);
        EthernetFrame {
            destination: self.destination,
            source: self.source,
            tags: self.tags,
            framing: match self.snap {
                Some(snap) => Framing::Snap(Snap { ethertype, ..snap }),
                None => Framing::Type(ethertype),
            },
            payload: body.bytes,
        }
    }
}

pub(super) fn header() -> impl Strategy<Value = Header> {
    let ethertype = prop_oneof![
        14 => Just(None),
        1 => prop::sample::select(vec![
            ethernet::ETHERTYPE_ARP,
            ethernet::ETHERTYPE_RARP,
            ethernet::ETHERTYPE_IPV4,
            ethernet::ETHERTYPE_IPV6,
            ethernet::TPID_OLD_QINQ,
            0x05ff,
            0x0600,
        ]).prop_map(Some),
        1 => any::<u16>().prop_map(Some),
    ];
    (destination(), source(), tags(), snap(), ethertype).prop_map(
        |(destination, source, tags, snap, ethertype)| Header {
            destination,
            source,
            tags,
            snap,
            ethertype,
        },
    )
}

fn destination() -> impl Strategy<Value = Mac> {
    prop_oneof![
        8 => Just(BRIDGE_MAC),
        2 => Just(BROADCAST),
        2 => Just(ethernet::multicast_mac(ndp::ALL_NODES)),
        1 => Just(HOST_MAC),
        1 => any::<[u8; 6]>().prop_map(Mac),
    ]
}

pub(super) fn source() -> impl Strategy<Value = Mac> {
    prop_oneof![
        10 => Just(HOST_MAC),
        1 => Just(BRIDGE_MAC),
        1 => Just(ZERO_MAC),
        1 => Just(BROADCAST),
        1 => any::<[u8; 6]>().prop_map(Mac),
    ]
}

fn vlan_id() -> impl Strategy<Value = u16> {
    prop_oneof![
        4 => Just(VLAN),
        2 => Just(0),
        1 => Just(7),
        1 => 0..=4095u16,
    ]
}

fn tci() -> impl Strategy<Value = u16> {
    // Priority and DEI: 4 bits, mostly zero.
    (vlan_id(), prop_oneof![2 => Just(0), 1 => 0..16u16]).prop_map(|(id, bits)| id | (bits << 12))
}

fn tags() -> impl Strategy<Value = Vec<Tag>> {
    let tpid = prop_oneof![
        8 => Just(ethernet::TPID_C),
        4 => Just(ethernet::TPID_S),
        1 => Just(ethernet::TPID_OLD_QINQ),
    ];
    let tag = (tpid, tci())
        .prop_map(|(tpid, tci)| Tag { tpid, tci })
        .boxed();
    prop_oneof![
        12 => Just(Vec::new()),
        5 => vec(tag.clone(), 1),
        2 => vec(tag.clone(), 2),
        1 => vec(tag, 3..5),
    ]
}

pub(super) fn outer_tag() -> impl Strategy<Value = Option<OuterTag>> {
    let tpid = prop::sample::select(vec![ethernet::TPID_C, ethernet::TPID_S]);
    prop_oneof![
        3 => Just(None),
        1 => (tpid, tci()).prop_map(|(tpid, tci)| Some(OuterTag { tpid, tci })),
    ]
}

fn snap() -> impl Strategy<Value = Option<Snap>> {
    let length = prop_oneof![
        4 => Just(None),
        1 => Just(Some(0)),
        1 => (0..0x0601u16).prop_map(Some),
    ];
    let access_points =
        prop_oneof![6 => Just([0xaa, 0xaa]), 1 => any::<[u8; 2]>(), 1 => Just([0xaa, 0xab])];
    let control = prop_oneof![6 => Just(3u8), 1 => any::<u8>()];
    let organization = prop_oneof![6 => Just([0; 3]), 1 => Just([0, 0, 1]), 1 => any::<[u8; 3]>()];
    let snap = (length, access_points, control, organization).prop_map(
        |(length, access_points, control, organization)| Snap {
            length,
            access_points,
            control,
            organization,
            ethertype: 0,
        },
    );
    prop_oneof![7 => Just(None), 1 => snap.prop_map(Some)]
}

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use super::*;

#[test]
fn an_advertisement_carries_a_valid_checksum_and_its_option() {
    let frame = neighbor_advertisement(HOST_MAC, HOST_IP6, BRIDGE_MAC, NODE_IP6);
    let packet = SlicedPacket::from_ethernet(&frame).unwrap();
    let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else {
        panic!("{packet:?}")
    };
    assert!(icmp.is_checksum_valid(HOST_IP6.octets(), NODE_IP6.octets()));
    assert_eq!((icmp.type_u8(), icmp.code_u8()), (136, 0));
    assert_eq!(
        &frame[frame.len() - 8..],
        [2, 1, 2, 0x42, 0xac, 0x12, 0, 0x63]
    );
}

#[test]
fn a_solicitation_goes_to_the_group_of_its_target() {
    let frame = neighbor_solicitation(HOST_MAC, HOST_IP6, NODE_IP6);
    assert_eq!(&frame[..6], [0x33, 0x33, 0xff, 0, 0, 3]);
    let packet = SlicedPacket::from_ethernet(&frame).unwrap();
    let Some(NetSlice::Ipv6(ip)) = packet.net else {
        panic!("no IPv6")
    };
    assert_eq!(ip.header().destination_addr().to_string(), "ff02::1:ff00:3");
}

#[test]
fn an_arp_reply_reads_back() {
    let frame = arp_reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP);
    let packet = SlicedPacket::from_ethernet(&frame).unwrap();
    let Some(NetSlice::Arp(arp)) = packet.net else {
        panic!("no ARP")
    };
    assert_eq!(arp.operation().0, 2);
    assert_eq!(arp.sender_hw_addr(), HOST_MAC.0);
    assert_eq!(arp.target_protocol_addr(), NODE_IP.octets());
    assert_eq!(frame.len(), 42);
}

#[test]
fn extension_headers_are_chained() {
    let packet = Ndp::solicitation(NODE_IP6, HOST_MAC)
        .packet(HOST_IP6, NODE_IP6)
        .with(Extension::options(ipv6::HOP_BY_HOP, 0))
        .with(Extension::options(ipv6::ROUTING, 1))
        .with(Extension::authentication(4))
        .frame(HOST_MAC, BRIDGE_MAC)
        .to_bytes();
    let sliced = SlicedPacket::from_ethernet(&packet).unwrap();
    assert!(
        matches!(sliced.transport, Some(TransportSlice::Icmpv6(ref icmp)) if icmp.type_u8() == 135)
    );
}

#[test]
fn tags_are_written_outermost_first() {
    let frame = Arp::reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP)
        .frame(BRIDGE_MAC)
        .tagged(Tag::customer(7))
        .tagged(Tag::service(5).with_priority(3))
        .to_bytes();
    assert_eq!(
        &frame[12..22],
        [0x88, 0xa8, 0x60, 5, 0x81, 0, 0, 7, 0x08, 0x06]
    );
}

#[test]
fn a_snap_frame_says_its_length() {
    let frame = Arp::announcement(HOST_MAC, HOST_IP)
        .frame(BROADCAST)
        .in_snap()
        .to_bytes();
    assert_eq!(&frame[12..22], [0, 36, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x06]);
}

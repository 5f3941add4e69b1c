mod properties;

use bytes::BytesMut;

use super::*;
use crate::ids::Mac;

fn encode(message: &Message, version: Version, xid: u32) -> BytesMut {
    let mut bytes = BytesMut::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// What Open vSwitch 3.1 really sends reads as `message`, and `message` is written as the same bytes.
#[track_caller]
fn is(bytes: &str, version: Version, message: &Message) {
    let bytes = hex(bytes);
    let (header, decoded) = Message::decode(&bytes).unwrap();
    assert_eq!(&decoded, message);
    assert_eq!(encode(message, version, header.xid), bytes);
}

fn arp_in_vlan() -> Vec<Oxm> {
    vec![Oxm::EthType(0x0806), Oxm::VlanVid(VLAN_PRESENT | 5)]
}

#[test]
fn a_flow_in_a_bundle_is_written_as_ovs_ofctl_writes_it() {
    is(
        "04040070 00000006 4f4e4600 000008fd 00000000 00000003
         040e0058 00000006 0000000000000000 0000000000000000 00 00 0000 0000 0003
         ffffffff ffffffff ffffffff 0000 0000
         0001 0010 80000a02 0806 80000c02 1005
         0004 0018 00000000 0000 0010 00000002 0000 000000000000",
        Version::V1_3,
        &Message::BundleAdd(BundleAdd {
            bundle: 0,
            flags: BundleControl::ATOMIC | BundleControl::ORDERED,
            flow_mod: FlowMod {
                cookie: 0,
                cookie_mask: 0,
                table: 0,
                command: FlowCommand::Add,
                idle_timeout: 0,
                hard_timeout: 0,
                priority: 3,
                flags: 0,
                matches: arp_in_vlan(),
                instructions: vec![Instruction::Apply(vec![Action::output(PortNumber(2))])],
            },
        }),
    );
}

#[test]
fn a_bundle_is_committed_as_ovs_ofctl_commits_it() {
    is(
        "04040018 0000000a 4f4e4600 000008fc 00000000 0004 0003",
        Version::V1_3,
        &Message::BundleControl(BundleControl {
            bundle: 0,
            step: BundleStep::CommitRequest,
            flags: 3,
        }),
    );
}

#[test]
fn a_flow_monitor_is_asked_for_as_ovs_ofctl_asks() {
    is(
        "04120030 00000006 ffff 0000 00000000 4f4e4600 0000074e
         00000000 003f 0004 ffffffff ff 000000 0001 0004 00000000",
        Version::V1_3,
        &Message::Request {
            request: Request::FlowMonitor(vec![FlowMonitorRequest::all(0, Vec::new())]),
            more: false,
        },
    );
}

#[test]
fn a_deletion_reads_from_a_flow_monitor() {
    is(
        "04130070 00000000 ffff 0000 00000000 4f4e4600 0000074e
         0058 0001 0002 0007 0000 0000 0012 00 00 0000000000000005
         0001 0012 80000004 00000001 80000a02 0806 000000000000
         0004 0028 00000000
         0000 0010 00000002 0000 000000000000 0000 0010 fffffffa 0000 000000000000",
        Version::V1_3,
        &Message::Reply {
            reply: Reply::FlowUpdates(vec![FlowUpdate::Full {
                change: FlowChange::Deleted { reason: 2 },
                flow: MonitoredFlow {
                    table: 0,
                    priority: 7,
                    idle_timeout: 0,
                    hard_timeout: 0,
                    cookie: 5,
                    matches: vec![Oxm::InPort(PortNumber(1)), Oxm::EthType(0x0806)],
                    instructions: vec![Instruction::Apply(vec![
                        Action::output(PortNumber(2)),
                        Action::output(PortNumber::NORMAL),
                    ])],
                },
            }]),
            more: false,
        },
    );
}

#[test]
fn flows_are_asked_for_as_ovs_ofctl_asks() {
    is(
        "04120038 00000002 0001 0000 00000000 ff 000000 ffffffff ffffffff 00000000
         0000000000000000 0000000000000000 0001 0004 00000000",
        Version::V1_3,
        &Message::Request {
            request: Request::Flows(FlowStatsRequest {
                table: 0xff,
                cookie: 0,
                cookie_mask: 0,
                matches: Vec::new(),
            }),
            more: false,
        },
    );
}

#[test]
fn no_flood_is_set_as_ovs_ofctl_sets_it() {
    is(
        "010f0020 00000004 0001 aa55aa55000f 00000010 00000010 00000000 00000000",
        Version::V1_0,
        &Message::PortMod(PortMod {
            number: PortNumber(1),
            hw_addr: Mac([0xaa, 0x55, 0xaa, 0x55, 0, 0x0f]),
            config: PortDescription::NO_FLOOD,
            mask: PortDescription::NO_FLOOD,
        }),
    );
}

#[test]
fn ports_of_open_vswitch_read_with_their_flags() {
    is(
        "0111006c 00000002 000d 0000
         fffe ee1bd8509f40 62723000000000000000000000000000 00000000 00000000
         00000000 00000000 00000000 00000000
         0001 aa55aa55000f 70310000000000000000000000000000 00000010 00000000
         00000000 00000000 00000000 00000000",
        Version::V1_0,
        &Message::Reply {
            reply: Reply::Ports(vec![
                PortDescription {
                    number: PortNumber::LOCAL,
                    hw_addr: Mac([0xee, 0x1b, 0xd8, 0x50, 0x9f, 0x40]),
                    name: "br0".to_owned(),
                    config: 0,
                    state: 0,
                },
                PortDescription {
                    number: PortNumber(1),
                    hw_addr: Mac([0xaa, 0x55, 0xaa, 0x55, 0, 0x0f]),
                    name: "p1".to_owned(),
                    config: PortDescription::NO_FLOOD,
                    state: 0,
                },
            ]),
            more: false,
        },
    );
}

#[test]
fn a_hello_with_a_bitmap_is_written_as_ovs_ofctl_writes_it() {
    is(
        "04000010 00000001 0001 0008 00000010",
        Version::V1_3,
        &Message::Hello(Hello::only(Version::V1_3)),
    );
}

#[test]
fn a_hello_of_a_later_version_offers_ours() {
    let (_, message) = Message::decode(&hex("06000008 00000003")).unwrap();
    let Message::Hello(hello) = message else {
        panic!("{message:?}")
    };
    assert!(hello.offers(Version::V1_0) && hello.offers(Version::V1_3));
}

#[test]
fn a_bitmap_limits_what_a_hello_offers() {
    let (_, message) = Message::decode(&hex("06000010 00000003 0001 0008 00000050")).unwrap();
    let Message::Hello(hello) = message else {
        panic!("{message:?}")
    };
    assert!(!hello.offers(Version::V1_0) && hello.offers(Version::V1_3));
}

#[test]
fn errors_have_the_names_that_ovs_ofctl_prints() {
    for (bytes, name) in [
        (
            "04010010 00000001 0002 0004 00000000",
            "OFPBAC_BAD_OUT_PORT",
        ),
        (
            "04010010 00000001 0002 0009 00000000",
            "OFPBAC_BAD_OUT_GROUP",
        ),
        ("04010010 00000001 0004 0009 00000000", "OFPBMC_BAD_PREREQ"),
        ("04010010 00000001 0005 0003 00000000", "OFPFMFC_OVERLAP"),
        ("01010010 00000001 0003 0001 00000000", "OFPFMFC_OVERLAP"),
        (
            "01010010 00000001 0004 0001 00000000",
            "OFPPMFC_BAD_HW_ADDR",
        ),
        ("04010010 00000001 ffff 0909 4f4e4600", "OFPBFC_MSG_FAILED"),
        ("04010010 00000001 ffff 0004 00002320", "NXBRC_MUST_BE_ZERO"),
        ("04010010 00000001 0063 0007 00000000", "error 99/7"),
        (
            "04010010 00000001 ffff 0007 00000001",
            "error 7 of experimenter 0x1",
        ),
    ] {
        let (_, message) = Message::decode(&hex(bytes)).unwrap();
        let Message::Error(error) = message else {
            panic!("{message:?}")
        };
        assert_eq!(error.code.to_string(), name, "{bytes}");
    }
}

#[test]
fn a_message_longer_than_its_length_field_can_say_is_refused_and_leaves_nothing_behind() {
    let mut bytes = BytesMut::from(&b"before"[..]);
    let actions = vec![Action::output(PortNumber(1)); 5_000];
    let message = Message::FlowMod(FlowMod {
        cookie: 0,
        cookie_mask: 0,
        table: 0,
        command: FlowCommand::Add,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 0,
        flags: 0,
        matches: Vec::new(),
        instructions: vec![Instruction::Apply(actions)],
    });
    let refused = message.encode(Version::V1_3, 1, &mut bytes);
    assert!(
        matches!(refused, Err(WireError::TooLong { .. })),
        "{refused:?}"
    );
    assert_eq!(&bytes[..], b"before");
}

#[test]
fn a_message_of_the_other_version_is_refused() {
    let mut bytes = BytesMut::new();
    let refused = Message::FlowMonitorPaused.encode(Version::V1_0, 1, &mut bytes);
    assert!(matches!(refused, Err(WireError::NotInVersion { .. })));
}

#[test]
fn a_stream_with_a_length_below_eight_is_beyond_repair() {
    assert_eq!(Header::frame_length(&hex("0400")), Ok(None));
    assert_eq!(Header::frame_length(&hex("0400001000000001")), Ok(Some(16)));
    assert!(Header::frame_length(&hex("0400000700000001")).is_err());
}

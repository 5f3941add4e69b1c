use proptest::{collection::vec, prelude::*};

use super::*;

fn oxm() -> impl Strategy<Value = Oxm> {
    prop_oneof![
        any::<u32>().prop_map(|port| Oxm::InPort(PortNumber(port))),
        any::<u32>().prop_map(Oxm::PktMark),
        any::<[u8; 6]>().prop_map(|mac| Oxm::EthDst(Mac(mac))),
        any::<[u8; 6]>().prop_map(|mac| Oxm::EthSrc(Mac(mac))),
        any::<u16>().prop_map(Oxm::EthType),
        any::<u16>().prop_map(Oxm::VlanVid),
        any::<u8>().prop_map(Oxm::IpProto),
        any::<u16>().prop_map(Oxm::ArpOp),
        any::<u32>().prop_map(|address| Oxm::ArpSpa(address.into())),
        any::<u32>().prop_map(|address| Oxm::ArpTpa(address.into())),
        any::<u8>().prop_map(Oxm::Icmpv6Type),
        any::<u128>().prop_map(|address| Oxm::NdTarget(address.into())),
        // Nicira's class, an experimenter's, and the basic one with a mask.
        (
            prop_oneof![Just(0x0100), Just(0x00ff_ff00), Just(0x0080_0001)],
            vec(any::<u8>(), 0..40)
        )
            .prop_map(|(field, payload)| Oxm::Other(RawOxm { field, payload })),
    ]
}

/// A body whose length with four more bytes is a multiple of eight.
fn raw_body() -> impl Strategy<Value = Vec<u8>> {
    (0..4usize).prop_flat_map(|eights| vec(any::<u8>(), eights * 8 + 4))
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        (any::<u32>(), any::<u16>()).prop_map(|(port, max_len)| Action::Output {
            port: PortNumber(port),
            max_len
        }),
        any::<u16>().prop_map(Action::PushVlan),
        Just(Action::PopVlan),
        any::<u32>().prop_map(Action::Group),
        oxm().prop_map(Action::SetField),
        (prop_oneof![Just(0xffff), Just(21)], raw_body())
            .prop_map(|(kind, body)| Action::Other { kind, body }),
    ]
}

fn instruction() -> impl Strategy<Value = Instruction> {
    prop_oneof![
        vec(action(), 0..6).prop_map(Instruction::Apply),
        any::<u8>().prop_map(Instruction::GotoTable),
        (prop_oneof![Just(0xffff), Just(2), Just(3)], raw_body())
            .prop_map(|(kind, body)| Instruction::Other { kind, body }),
    ]
}

fn flow_mod() -> impl Strategy<Value = FlowMod> {
    let command = prop_oneof![
        Just(FlowCommand::Add),
        Just(FlowCommand::Modify),
        Just(FlowCommand::ModifyStrict),
        Just(FlowCommand::Delete),
        Just(FlowCommand::DeleteStrict),
    ];
    let numbers = (any::<[u64; 2]>(), any::<u8>(), any::<[u16; 4]>());
    (numbers, command, vec(oxm(), 0..6), vec(instruction(), 0..3)).prop_map(
        |((cookies, table, rest), command, matches, instructions)| FlowMod {
            cookie: cookies[0],
            cookie_mask: cookies[1],
            table,
            command,
            idle_timeout: rest[0],
            hard_timeout: rest[1],
            priority: rest[2],
            flags: rest[3],
            matches,
            instructions,
        },
    )
}

fn flow_stats() -> impl Strategy<Value = FlowStats> {
    (flow_mod(), any::<[u64; 2]>()).prop_map(|(flow, counters)| FlowStats {
        table: flow.table,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flow.flags,
        cookie: flow.cookie,
        packets: counters[0],
        bytes: counters[1],
        matches: flow.matches,
        instructions: flow.instructions,
    })
}

fn flow_update() -> impl Strategy<Value = FlowUpdate> {
    let change = prop_oneof![
        Just(FlowChange::Added),
        any::<u16>().prop_map(|reason| FlowChange::Deleted { reason }),
        Just(FlowChange::Modified),
    ];
    prop_oneof![
        any::<u32>().prop_map(|xid| FlowUpdate::Abbreviated { xid }),
        (change, flow_mod()).prop_map(|(change, flow)| FlowUpdate::Full {
            change,
            flow: MonitoredFlow {
                table: flow.table,
                priority: flow.priority,
                idle_timeout: flow.idle_timeout,
                hard_timeout: flow.hard_timeout,
                cookie: flow.cookie,
                matches: flow.matches,
                instructions: flow.instructions,
            },
        }),
    ]
}

fn port_number_1_0() -> impl Strategy<Value = PortNumber> {
    any::<u16>().prop_map(PortNumber::from_1_0)
}

fn port() -> impl Strategy<Value = PortDescription> {
    (
        port_number_1_0(),
        any::<[u8; 6]>(),
        "[a-z0-9-]{0,15}",
        any::<[u32; 2]>(),
    )
        .prop_map(|(number, mac, name, [config, state])| PortDescription {
            number,
            hw_addr: Mac(mac),
            name,
            config,
            state,
        })
}

fn error_code(version: Version) -> impl Strategy<Value = ErrorCode> {
    let known = (0..0xffffu16).prop_map(|kind| (None, kind));
    let experimenter = any::<u32>().prop_map(|experimenter| (Some(experimenter), 0xffff));
    let kind = match version {
        Version::V1_0 => known.boxed(),
        Version::V1_3 => prop_oneof![known, experimenter].boxed(),
    };
    (kind, any::<u16>()).prop_map(move |((experimenter, kind), code)| ErrorCode {
        version,
        experimenter,
        kind,
        code,
    })
}

fn of_both_versions(version: Version) -> impl Strategy<Value = Message> {
    let bytes = || vec(any::<u8>(), 0..80);
    prop_oneof![
        (any::<u8>(), any::<Option<u32>>())
            .prop_map(|(version, bitmap)| Message::Hello(Hello { version, bitmap })),
        (error_code(version), bytes())
            .prop_map(|(code, data)| Message::Error(ErrorMessage { code, data })),
        bytes().prop_map(Message::EchoRequest),
        bytes().prop_map(Message::EchoReply),
        Just(Message::BarrierRequest),
        Just(Message::BarrierReply),
        any::<[u16; 2]>().prop_map(|[flags, miss_send_len]| Message::SetConfig {
            flags,
            miss_send_len
        }),
        (any::<bool>(), bytes()).prop_map(|(more, body)| Message::Reply {
            reply: Reply::Other { kind: 4, body },
            more
        }),
        (any::<bool>(), bytes()).prop_map(|(more, body)| Message::Request {
            request: Request::Other { kind: 4, body },
            more
        }),
        bytes().prop_map(|body| Message::Other { kind: 10, body }),
    ]
}

fn message_1_0() -> impl Strategy<Value = Message> {
    let reason = prop_oneof![
        Just(PortStatusReason::Added),
        Just(PortStatusReason::Deleted),
        Just(PortStatusReason::Modified),
    ];
    prop_oneof![
        of_both_versions(Version::V1_0),
        (port_number_1_0(), any::<[u8; 6]>(), any::<[u32; 2]>()).prop_map(
            |(number, mac, [config, mask])| Message::PortMod(PortMod {
                number,
                hw_addr: Mac(mac),
                config,
                mask
            })
        ),
        (reason, port())
            .prop_map(|(reason, port)| Message::PortStatus(PortStatus { reason, port })),
        any::<[u32; 3]>().prop_map(|[packet_in, port_status, flow_removed]| {
            Message::SetAsyncConfig(AsyncConfig {
                packet_in,
                port_status,
                flow_removed,
            })
        }),
        any::<bool>().prop_map(|more| Message::Request {
            request: Request::Ports,
            more
        }),
        (any::<bool>(), vec(port(), 0..20)).prop_map(|(more, ports)| Message::Reply {
            reply: Reply::Ports(ports),
            more
        }),
    ]
}

fn message_1_3() -> impl Strategy<Value = Message> {
    let step = prop_oneof![
        Just(BundleStep::OpenRequest),
        Just(BundleStep::OpenReply),
        Just(BundleStep::CloseRequest),
        Just(BundleStep::CloseReply),
        Just(BundleStep::CommitRequest),
        Just(BundleStep::CommitReply),
        Just(BundleStep::DiscardRequest),
        Just(BundleStep::DiscardReply),
    ];
    let flow_request = (any::<u8>(), any::<[u64; 2]>(), vec(oxm(), 0..6)).prop_map(
        |(table, [cookie, cookie_mask], matches)| FlowStatsRequest {
            table,
            cookie,
            cookie_mask,
            matches,
        },
    );
    let monitor_request = (any::<u32>(), any::<u16>(), any::<u8>(), vec(oxm(), 0..6)).prop_map(
        |(id, flags, table, matches)| FlowMonitorRequest {
            id,
            flags,
            table,
            matches,
        },
    );
    prop_oneof![
        of_both_versions(Version::V1_3),
        flow_mod().prop_map(Message::FlowMod),
        (any::<u32>(), step, any::<u16>()).prop_map(|(bundle, step, flags)| {
            Message::BundleControl(BundleControl {
                bundle,
                step,
                flags,
            })
        }),
        (any::<u32>(), any::<u16>(), flow_mod()).prop_map(|(bundle, flags, flow_mod)| {
            Message::BundleAdd(BundleAdd {
                bundle,
                flags,
                flow_mod,
            })
        }),
        Just(Message::FlowMonitorPaused),
        Just(Message::FlowMonitorResumed),
        (flow_request, any::<bool>()).prop_map(|(request, more)| Message::Request {
            request: Request::Flows(request),
            more
        }),
        (vec(monitor_request, 0..4), any::<bool>()).prop_map(|(requests, more)| {
            Message::Request {
                request: Request::FlowMonitor(requests),
                more,
            }
        }),
        (vec(flow_stats(), 0..4), any::<bool>()).prop_map(|(flows, more)| Message::Reply {
            reply: Reply::Flows(flows),
            more
        }),
        (vec(flow_update(), 0..4), any::<bool>()).prop_map(|(updates, more)| Message::Reply {
            reply: Reply::FlowUpdates(updates),
            more
        }),
    ]
}

fn reads_back(message: &Message, version: Version, xid: u32) -> Result<(), TestCaseError> {
    let bytes = encode(message, version, xid);
    let (header, decoded) = Message::decode(&bytes)?;
    prop_assert_eq!(header.xid, xid);
    prop_assert_eq!(usize::from(header.length), bytes.len());
    prop_assert_eq!(&decoded, message);
    // Not one of its prefixes is taken for a message.
    let shorter = bytes.len() - 1;
    prop_assert!(Message::decode(&bytes[..shorter]).is_err());
    Ok(())
}

proptest! {
    #[test]
    fn every_message_of_1_0_reads_back(message in message_1_0(), xid: u32) {
        reads_back(&message, Version::V1_0, xid)?;
    }

    #[test]
    fn every_message_of_1_3_reads_back(message in message_1_3(), xid: u32) {
        reads_back(&message, Version::V1_3, xid)?;
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(
        version in prop_oneof![Just(1u8), Just(4u8), any::<u8>()],
        kind in 0u8..30,
        body in vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = vec![version, kind];
        bytes.extend(u16::try_from(8 + body.len()).unwrap().to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        let _ = Message::decode(&bytes);
        let _ = Header::frame_length(&bytes);
    }

    #[test]
    fn a_message_with_bytes_changed_is_read_or_refused(
        message in message_1_3(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = encode(&message, Version::V1_3, 1);
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = Message::decode(&bytes);
        // Past the header, lengths inside may contradict the whole.
        bytes[0] = 4;
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let _ = Message::decode(&bytes);
    }

    #[test]
    fn port_numbers_of_1_0_read_back(number: u16) {
        prop_assert_eq!(PortNumber::from_1_0(number).to_1_0(), Some(number));
    }
}

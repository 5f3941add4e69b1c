//! The programs in the kernel give the verdict of the native classifier, notes and all.

use std::{collections::BTreeMap, net::Ipv6Addr};

use neighsteer_common::{
    Bytes, Decision, Kind, NodeAddresses, OuterTag, Policy, Validate, Verdict,
    abi::{CheckCounts, CounterKey, Direction, Settings},
    classify,
};
use neighsteer_tests::{
    corpus,
    frames::{BRIDGE_MAC, NODE_IP, NODE_IP6, hex},
    generate::{self, Case},
    kernel::{self, BENCH, ObservedVeth, Programs, SHIPPED},
    vm,
};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, FileFailurePersistence, TestRunner},
};

/// Where seeds of failures are kept, to be tried first ever after.
const SEEDS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/kernel_verdict.txt"
);

/// `TC_ACT_UNSPEC`: the next program runs.
const NEXT_ON_TC: u32 = u32::MAX;
/// `TC_ACT_SHOT`: the frame is dropped.
const DROPPED_ON_TC: u32 = 2;
/// `XDP_DROP`.
const DROPPED_ON_XDP: u32 = 1;
/// `XDP_PASS`.
const NEXT_ON_XDP: u32 = 2;

const GATEWAY_VLAN: u16 = 5;
/// The kernel gets its policy at load: every case is run under one of these, and under none.
const POLICIES: [Option<Policy>; 5] = [
    None,
    Some(Policy {
        bridge_mac: BRIDGE_MAC.0,
        gateway_vlan: None,
        node_addresses: NodeAddresses::NONE,
    }),
    Some(Policy {
        bridge_mac: BRIDGE_MAC.0,
        gateway_vlan: Some(GATEWAY_VLAN),
        node_addresses: NodeAddresses::NONE,
    }),
    Some(Policy {
        bridge_mac: [0x02, 0x42, 0xac, 0x12, 0, 0x63],
        gateway_vlan: None,
        node_addresses: NodeAddresses::NONE,
    }),
    Some(Policy {
        bridge_mac: BRIDGE_MAC.0,
        gateway_vlan: None,
        node_addresses: NodeAddresses::new(NODE_IP, [NODE_IP6, Ipv6Addr::UNSPECIFIED]),
    }),
];

fn skipped() -> bool {
    match kernel::missing() {
        Some(reason) => {
            println!("SKIPPED: {reason}");
            true
        }
        None => false,
    }
}

fn runner(cases: u32) -> TestRunner {
    let cases = vm::cases(cases);
    TestRunner::new(Config {
        cases,
        max_global_rejects: cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(SEEDS))),
        ..Config::default()
    })
}

fn native(frame: &[u8], outer_tag: Option<OuterTag>, policy: Option<&Policy>) -> Verdict {
    classify(&Bytes { frame, outer_tag }, policy)
}

/// The verdict programs of both hooks, once for each policy.
fn verdict_programs() -> Vec<Programs> {
    POLICIES
        .iter()
        .map(|policy| {
            let mut programs = Programs::open(BENCH, policy.as_ref(), None).unwrap();
            programs.load_tc("tc_verdict").unwrap();
            programs.load_xdp("xdp_verdict").unwrap();
            programs
        })
        .collect()
}

fn in_the_kernel(programs: &Programs, frame: &[u8]) -> [Option<Verdict>; 2] {
    [
        programs.run_tc("tc_verdict", frame).unwrap().verdict(),
        programs.run_xdp("xdp_verdict", frame).unwrap().verdict(),
    ]
}

#[test]
fn generated_frames_get_the_native_verdict_on_tc_and_xdp() {
    if skipped() {
        return;
    }
    let programs = verdict_programs();
    let frames = generate::frame().prop_filter("the kernel runs on no such frame", |frame| {
        kernel::can_run(frame)
    });
    runner(12_000)
        .run(&(frames, 0..POLICIES.len()), |(frame, policy)| {
            let expected = Some(native(&frame, None, POLICIES[policy].as_ref()));
            let [tc, xdp] = in_the_kernel(&programs[policy], &frame);
            prop_assert_eq!(tc, expected, "tc is left, of {}", hex(&frame));
            prop_assert_eq!(xdp, expected, "XDP is left, of {}", hex(&frame));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_corpus_gets_its_verdicts_on_tc_and_xdp() {
    if skipped() {
        return;
    }
    let programs = verdict_programs();
    for entry in corpus::load().unwrap() {
        // TEST_RUN takes no tag beside the frame: it is put back, which comes to the same.
        let frame = entry.case.on_the_wire();
        if !kernel::can_run(&frame) {
            continue;
        }
        let at = POLICIES
            .iter()
            .position(|policy| *policy == Some(entry.case.policy))
            .unwrap_or_else(|| panic!("{} has a policy that is not loaded", entry.name));
        let expected = Some(entry.verdict);
        assert_eq!(
            in_the_kernel(&programs[at], &frame),
            [expected; 2],
            "{}",
            entry.name
        );
    }
}

/// Whether the kernel passes a frame on to tc: to take the outer tag off it wants the type behind it
/// and two bytes more, and drops the frame otherwise.
fn reaches_tc(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x81, 0x00] | [0x88, 0xa8]) => frame.len() >= 20,
        Some(_) => true,
        None => false,
    }
}

#[test]
fn a_tag_that_the_kernel_took_off_counts_as_in_the_native_verdict() {
    if skipped() {
        return;
    }
    let policy = POLICIES[2].unwrap();
    let veth = ObservedVeth::new(&policy).unwrap();
    let mut tagged: u32 = 0;
    let mut check = |name: &str, case: &Case| {
        let frame = case.on_the_wire();
        if !reaches_tc(&frame) {
            return;
        }
        let expected = native(&case.frame, case.outer_tag, Some(&policy));
        let (verdict, length) = veth
            .verdict(&frame)
            .unwrap_or_else(|error| panic!("{error:#}: {name} {case:?}"));
        assert_eq!(verdict, expected, "the kernel is left, of {name} {case:?}");
        assert_eq!(length as usize, frame.len(), "{name} {case:?}");
        tagged += u32::from(case.outer_tag.is_some());
    };
    for entry in corpus::load().unwrap() {
        check(&entry.name, &entry.case);
    }
    let mut runner = TestRunner::default();
    let cases = generate::case();
    for _ in 0..vm::cases(4_000) {
        check("generated", &cases.new_tree(&mut runner).unwrap().current());
    }
    assert!(tagged > vm::cases(500), "{tagged}");
}

#[test]
fn the_shipped_programs_count_what_they_saw_and_pass_every_frame_on() {
    if skipped() {
        return;
    }
    let policy = POLICIES[1];
    let mut programs = Programs::open(SHIPPED, policy.as_ref(), None).unwrap();
    programs.load_tc("tc_ingress").unwrap();
    programs.load_xdp("xdp_ingress").unwrap();
    // (kind, decision) → packets, bytes.
    let mut expected: BTreeMap<(u8, u8), (u64, u64)> = BTreeMap::new();
    for entry in corpus::load().unwrap() {
        let frame = entry.case.on_the_wire();
        if !kernel::can_run(&frame) {
            continue;
        }
        let tc = programs.run_tc("tc_ingress", &frame).unwrap();
        assert_eq!((tc.returned, tc.mark), (NEXT_ON_TC, 0), "{}", entry.name);
        let xdp = programs.run_xdp("xdp_ingress", &frame).unwrap();
        assert_eq!(xdp.returned, NEXT_ON_XDP, "{}", entry.name);
        let verdict = native(&frame, None, policy.as_ref());
        if verdict.kind != Kind::NotNeighbour {
            let key = (verdict.kind as u8, verdict.decision as u8);
            let (packets, bytes) = expected.entry(key).or_default();
            *packets += 2;
            *bytes += 2 * frame.len() as u64;
        }
    }
    let counters = programs.counters().unwrap();
    let counted: BTreeMap<(u8, u8), (u64, u64)> = counters
        .iter()
        .map(|(key, value)| {
            let CounterKey {
                direction,
                reserved,
                ..
            } = *key;
            assert_eq!(
                (direction, reserved),
                (Direction::Ingress as u8, 0),
                "{key:?}"
            );
            assert!(value.last_seen_ns > 0, "{key:?}");
            ((key.kind, key.decision), (value.packets, value.bytes))
        })
        .collect();
    assert_eq!(
        counted.len(),
        counters.len(),
        "one interface has one key for each kind"
    );
    assert_eq!(counted, expected);
}

#[test]
fn the_mark_is_the_tag_and_the_decision_where_it_is_asked_for() {
    if skipped() {
        return;
    }
    const TAG: u32 = 0x5000;
    let policy = POLICIES[1];
    let mut programs = Programs::open(SHIPPED, policy.as_ref(), Some(TAG)).unwrap();
    programs.load_tc("tc_ingress").unwrap();
    for entry in corpus::load().unwrap() {
        let frame = entry.case.on_the_wire();
        if !kernel::can_run(&frame) {
            continue;
        }
        let verdict = native(&frame, None, policy.as_ref());
        let expected = match verdict.kind {
            Kind::NotNeighbour => 0,
            _ => TAG + verdict.decision as u32,
        };
        let tc = programs.run_tc("tc_ingress", &frame).unwrap();
        assert_eq!(tc.mark, expected, "{}", entry.name);
    }
}

#[test]
fn an_object_without_settings_counts_kinds_and_decides_nothing() {
    if skipped() {
        return;
    }
    let mut programs = Programs::open_plain(SHIPPED).unwrap();
    programs.load_tc("tc_ingress").unwrap();
    let mut kinds: BTreeMap<u8, u64> = BTreeMap::new();
    for entry in corpus::load().unwrap() {
        let frame = entry.case.on_the_wire();
        if !kernel::can_run(&frame) {
            continue;
        }
        assert_eq!(programs.run_tc("tc_ingress", &frame).unwrap().mark, 0);
        let kind = native(&frame, None, None).kind;
        if kind != Kind::NotNeighbour {
            *kinds.entry(kind as u8).or_default() += 1;
        }
    }
    let counters = programs.counters().unwrap();
    let undecided = counters
        .iter()
        .all(|(key, _)| key.decision == Decision::Undecided as u8);
    assert!(undecided, "{counters:?}");
    let counted: BTreeMap<u8, u64> = counters
        .iter()
        .map(|(key, value)| (key.kind, value.packets))
        .collect();
    assert_eq!(counted, kinds);
}

#[test]
fn only_invalid_frames_are_dropped_where_that_was_asked_for_and_each_check_is_counted() {
    if skipped() {
        return;
    }
    let policy = POLICIES[4];
    for validate in Validate::ALL {
        let settings = Settings::new(Direction::Ingress, policy.as_ref(), None, validate);
        let mut programs = Programs::open_with(SHIPPED, &settings).unwrap();
        programs.load_tc("tc_ingress").unwrap();
        programs.load_xdp("xdp_ingress").unwrap();
        let mut expected = CheckCounts::default();
        let mut check = |name: &str, frame: &[u8]| {
            if !kernel::can_run(frame) {
                return;
            }
            let verdict = native(frame, None, policy.as_ref());
            let is_dropped = validate == Validate::Drop && verdict.is_invalid();
            let wanted = if is_dropped {
                (DROPPED_ON_TC, DROPPED_ON_XDP)
            } else {
                (NEXT_ON_TC, NEXT_ON_XDP)
            };
            let tc = programs.run_tc("tc_ingress", frame).unwrap().returned;
            let xdp = programs.run_xdp("xdp_ingress", frame).unwrap().returned;
            assert_eq!((tc, xdp), wanted, "{validate}: {name} {}", hex(frame));
            for _ in [tc, xdp] {
                if validate != Validate::Off {
                    expected.count(verdict.notes, is_dropped);
                }
            }
        };
        for entry in corpus::load().unwrap() {
            check(&entry.name, &entry.case.on_the_wire());
        }
        let mut runner = TestRunner::default();
        let frames = generate::frame();
        for _ in 0..vm::cases(3_000) {
            check(
                "generated",
                &frames.new_tree(&mut runner).unwrap().current(),
            );
        }
        assert_eq!(programs.checks().unwrap(), expected, "{validate}");
        assert_eq!(expected.dropped > 0, validate == Validate::Drop);
    }
}

#[test]
fn every_program_takes_the_verifier_a_tenth_at_most_of_what_it_is_willing_to_look_at() {
    if skipped() {
        return;
    }
    /// `BPF_COMPLEXITY_LIMIT_INSNS`.
    const LIMIT: u32 = 1_000_000;
    let validate = Validate::Drop;
    // None, and the one that knows most: with less there are branches that are never taken.
    for policy in [POLICIES[0], POLICIES[4]] {
        let settings = Settings::new(Direction::Ingress, policy.as_ref(), Some(1), validate);
        for (object, tc, xdp) in [
            (SHIPPED, "tc_ingress", "xdp_ingress"),
            (BENCH, "tc_verdict", "xdp_verdict"),
        ] {
            let mut programs = Programs::open_with(object, &settings).unwrap();
            let infos = [
                programs.load_tc(tc).unwrap().info().unwrap(),
                programs.load_xdp(xdp).unwrap().info().unwrap(),
            ];
            for (name, info) in [tc, xdp].into_iter().zip(infos) {
                let verified = info.verified_instruction_count().unwrap();
                assert!(
                    verified < LIMIT / 10,
                    "{name} {validate} {policy:?}: {verified}"
                );
            }
        }
    }
}

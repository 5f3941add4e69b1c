//! The classifier, natively, against the expectation that etherparse gives.

use std::collections::BTreeSet;

use neighsteer_common::{Bytes, Decision, Kind, NodeAddresses, Notes, Verdict, classify};
use neighsteer_tests::{
    corpus,
    generate::{self, Case},
    oracle::{self, Datapath},
};
use proptest::{
    prelude::*,
    test_runner::{Config, FileFailurePersistence, TestRunner},
};

/// Where seeds of failures are kept, to be tried first ever after.
const SEEDS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/classifier.txt"
);

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(SEEDS))),
        ..Config::default()
    })
}

fn native(case: &Case, with_policy: bool) -> Verdict {
    let frame = Bytes {
        frame: &case.frame,
        outer_tag: case.outer_tag,
    };
    classify(&frame, with_policy.then_some(&case.policy))
}

#[test]
fn generated_frames_get_the_verdict_that_etherparse_leads_to() {
    runner(20_000)
        .run(&generate::case(), |case| {
            let expected = oracle::verdict(&case.frame, case.outer_tag, Some(&case.policy));
            prop_assert_eq!(
                native(&case, true),
                expected,
                "left is the classifier, right the expectation"
            );
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn without_a_policy_nothing_is_decided_and_kind_and_notes_stay() {
    runner(2_000)
        .run(&generate::case(), |mut case| {
            // Whose they are is not known either.
            case.policy.node_addresses = NodeAddresses::NONE;
            let expected = Verdict {
                decision: Decision::Undecided,
                ..native(&case, true)
            };
            prop_assert_eq!(native(&case, false), expected);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_tag_beside_the_frame_counts_as_one_in_it() {
    runner(5_000)
        .run(&generate::case(), |case| {
            let in_the_frame = Case {
                frame: case.on_the_wire(),
                outer_tag: None,
                policy: case.policy,
            };
            // A tag without a type behind it cannot be taken off.
            if case.frame.len() >= 14 {
                prop_assert_eq!(native(&case, true), native(&in_the_frame, true));
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_frame_of_the_corpus_gets_its_verdict() {
    for entry in corpus::load().unwrap() {
        assert_eq!(
            native(&entry.case, true),
            entry.verdict,
            "left is the classifier, right the file {}: {}",
            entry.name,
            entry.description
        );
    }
}

#[test]
fn the_expectation_agrees_with_the_corpus() {
    for entry in corpus::load().unwrap() {
        let case = &entry.case;
        let expected = oracle::verdict(&case.frame, case.outer_tag, Some(&case.policy));
        assert_eq!(expected, entry.verdict, "{}", entry.name);
        let userspace = oracle::decision(
            &case.frame,
            case.outer_tag,
            &case.policy,
            Datapath::Userspace,
        );
        let listed = entry
            .userspace
            .map_or(entry.verdict.decision, |(decision, _)| decision);
        assert_eq!(userspace, listed, "{} in userspace", entry.name);
    }
}

#[test]
fn the_corpus_has_every_kind_decision_and_note() {
    let entries = corpus::load().unwrap();
    let kinds: BTreeSet<Kind> = entries.iter().map(|entry| entry.verdict.kind).collect();
    assert_eq!(kinds.len(), Kind::ALL.len(), "{kinds:?}");
    for decision in Decision::ALL {
        let found = entries
            .iter()
            .any(|entry| entry.verdict.decision == decision);
        assert_eq!(found, decision != Decision::Undecided, "{decision}");
    }
    for (note, name) in Notes::ALL {
        let found = entries
            .iter()
            .any(|entry| entry.verdict.notes.contains(note));
        assert!(found, "{name}");
    }
}

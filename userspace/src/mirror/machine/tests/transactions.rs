//! Chunks, order, refusals and lost connections.

use super::*;

#[test]
fn the_first_chunk_is_small() {
    let names: Vec<String> = (0..200).map(|number| format!("f{number:03}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    let first = bench.take().unwrap();
    assert_eq!(first.operations.len(), 50);
    let second = bench.take().unwrap();
    assert_eq!(second.operations.len(), 150);
    bench.commit(&first);
    bench.commit(&second);
    // The next one starts small again.
    bench.learn("src", "192.0.2.2", MAC_A);
    assert_eq!(bench.take().unwrap().operations.len(), 50);
}

#[test]
fn what_is_urgent_goes_before_what_is_not() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(160_000);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pass(100);
    bench.learn("src", "192.0.2.2", MAC_A);
    let reasons: Vec<Reason> = std::iter::from_fn(|| bench.take())
        .flat_map(|batch| batch.operations)
        .map(|operation| operation.reason)
        .collect();
    assert_eq!(reasons, [Reason::NewBinding, Reason::Refresh]);
}

#[test]
fn no_more_transactions_are_under_way_than_allowed() {
    let names: Vec<String> = (0..3_000).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    let taken: Vec<usize> = std::iter::from_fn(|| bench.take())
        .map(|batch| batch.operations.len())
        .collect();
    assert_eq!(taken, [50, 1_000]);
    let deadline = bench.mirror.next_deadline();
    assert!(deadline > Some(bench.now.at), "only an outcome helps now");
}

#[test]
fn a_row_at_fault_costs_only_itself_and_is_tried_again_ever_more_rarely() {
    let mut bench = Bench::synced(members("src", &["a", "b", "c"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    let failure = Failure {
        kind: FailureKind::DuplicateIndex,
        rows: vec![1],
    };
    let at_fault = bench.mirror.failed(batch.id, &failure, bench.now);
    assert_eq!(at_fault.len(), 1);
    assert_eq!(&*at_fault[0].port, "b");
    assert_eq!(bench.settle(), [(Reason::NewBinding, 2)]);
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let wake = bench.mirror.wakes.next().unwrap();
        pauses.push(wake.since(bench.now.at));
        bench.pass(wake.since(bench.now.at));
        let batch = bench.take().unwrap();
        assert_eq!(batch.operations.len(), 1);
        bench.mirror.failed(batch.id, &failure, bench.now);
    }
    assert!(pauses.is_sorted_by(|a, b| a < b), "{pauses:?}");
    assert_eq!(bench.mirror.counters().errors.rows_at_fault, 6);
    // The row turns up after all, with another MAC.
    bench.put("b", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
}

#[test]
fn a_row_at_fault_that_nobody_names_is_found_by_halving() {
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    let unnamed = Failure {
        kind: FailureKind::Constraint,
        rows: Vec::new(),
    };
    let mut transactions = 0;
    while let Some(batch) = bench.take() {
        transactions += 1;
        if batch
            .operations
            .iter()
            .any(|operation| &*operation.port == "f7")
        {
            bench.mirror.failed(batch.id, &unnamed, bench.now);
        } else {
            bench.commit(&batch);
        }
    }
    assert!(transactions <= 13, "{transactions}");
    assert_eq!(bench.mirror.counters().writes.new_binding, 39);
    assert_eq!(bench.mirror.counters().errors.rows_at_fault, 1);
    assert!(bench.mirror.is_idle());
}

#[test]
fn an_unavailable_server_is_left_alone_for_a_while() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    let failure = Failure {
        kind: FailureKind::Unavailable,
        rows: Vec::new(),
    };
    bench.mirror.failed(batch.id, &failure, bench.now);
    assert_eq!(bench.take(), None);
    let deadline = bench.mirror.next_deadline().unwrap();
    assert!(deadline > bench.now.at);
    bench.pass(deadline.since(bench.now.at));
    assert_eq!(bench.settle(), [(Reason::NewBinding, 2)]);
}

#[test]
fn an_update_that_met_no_row_becomes_an_insert() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.learn("src", "192.0.2.1", MAC_B);
    let batch = bench.take().unwrap();
    bench.delete("a", "192.0.2.1");
    bench.mirror.committed(batch.id, &[0], bench.now);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
    assert_eq!(bench.mirror.counters().errors.rows_missed, 1);
}

#[test]
fn after_a_lost_connection_only_what_is_missing_is_written() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    bench.mirror.disconnected();
    assert_eq!(bench.take(), None);
    // One of the two rows had made it.
    bench.put("a", "192.0.2.1", Some(MAC_A), bench.now.wall_ms);
    bench.mirror.synced(bench.now);
    // An outcome that comes too late is nobody's.
    bench.mirror.committed(batch.id, &[], bench.now);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
    bench.assert_mirrored("192.0.2.1", "src", &["a", "b"]);
    assert_eq!(bench.mirror.counters().errors.unknown_outcome, 1);
}

#[test]
fn one_binding_for_five_hundred_followers_is_planned_in_a_moment() {
    let names: Vec<String> = (0..500).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.mirror.status(bench.now).queued.urgent, 500);
    let json = serde_json::to_value(bench.mirror.status(bench.now)).unwrap();
    assert_eq!(json["queued"]["urgent"], 500);
    bench.settle();
    assert_eq!(bench.mirror.status(bench.now).rows, 501);
}

#[test]
fn an_outcome_that_overtakes_its_row_changes_writes_nothing_twice() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    for expected in [Reason::NewBinding, Reason::MacChange] {
        let batch = bench.take().unwrap();
        assert_eq!(batch.operations[0].reason, expected);
        bench.mirror.committed(batch.id, &[], bench.now);
        assert_eq!(bench.take(), None);
        bench.pass(3);
        bench.commit(&batch);
        bench.pass(1_000);
        assert_eq!(bench.settle(), []);
        bench.learn("src", "192.0.2.1", MAC_B);
    }
}

#[test]
fn a_new_binding_does_not_wait_for_all_of_a_flood_that_came_before_it() {
    let names: Vec<String> = (0..10).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    for number in 0..600 {
        let ip = format!("10.0.{}.{}", number / 250, number % 250);
        bench.learn("src", &ip, MAC_A);
    }
    let under_way = [bench.take().unwrap(), bench.take().unwrap()];
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.take(), None);
    for batch in under_way {
        bench.commit(&batch);
    }
    let next = bench.take().unwrap();
    let of = |ip: &str| {
        let ip: IpAddr = ip.parse().unwrap();
        next.operations.iter().filter(|it| it.ip == ip).count()
    };
    assert_eq!(of("192.0.2.1"), 10);
    // What waits longest goes on as well.
    let second_half: IpAddr = "10.0.1.0".parse().unwrap();
    assert!(next.operations.iter().any(|it| it.ip < second_half));
    bench.commit(&next);
    bench.settle();
    assert_eq!(bench.mirror.counters().writes.new_binding, 601 * 10);
}

#[test]
fn a_flood_of_bindings_leaves_room_for_refreshes() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.mirror.settings.limits.rows = 2;
    bench.mirror.settings.limits.most_rows = 2;
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(160_000);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pass(100);
    for number in 0..100 {
        bench.learn("src", &format!("10.0.0.{number}"), MAC_A);
    }
    let mut refreshed = Vec::new();
    for taken in 0..30 {
        let batch = bench.take().unwrap();
        bench.commit(&batch);
        if batch.operations[0].reason == Reason::Refresh {
            refreshed.push(taken);
        }
    }
    assert_eq!(refreshed, [15]);
}

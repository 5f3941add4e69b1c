//! Many nodes on many followers.

use super::*;

#[test]
fn a_changed_map_touches_only_what_changed() {
    let names: Vec<String> = (0..20).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let nodes: Vec<String> = (1..=50).map(|node| format!("192.0.2.{node}")).collect();
    let mut macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, MAC_A)).collect();
    let mut bench = pinned(&followers, &macs);
    let before = bench.mirror.counters().skips;
    macs[7].1 = MAC_B;
    macs.push((NODE_V6, MAC_A));
    bench.pin(&macs);
    assert_eq!(
        bench.settle(),
        [(Reason::MacChange, 20), (Reason::Backfill, 20)]
    );
    // Each of them is looked at again once it is written and seen, and none of the others is.
    let after = bench.mirror.counters().skips;
    let looked = (after.fresh + after.cooldown) - (before.fresh + before.cooldown);
    assert!(looked <= 40, "{looked}");
}

#[test]
fn thousands_of_new_nodes_do_not_keep_a_new_binding_waiting_nor_fill_the_queue() {
    let names: Vec<String> = (0..100).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    let nodes: Vec<String> = (0..2_000)
        .map(|node| format!("10.0.{}.{}", node / 250, node % 250))
        .collect();
    let macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, MAC_A)).collect();
    bench.pin(&macs);
    assert_eq!(bench.mirror.pinned_missing(), 200_000);
    let batch = bench.take().unwrap();
    assert_eq!(batch.operations[0].reason, Reason::Backfill);
    assert!(bench.mirror.status(bench.now).queued.backfill < 5_000);
    assert!(!bench.mirror.is_idle());
    bench.learn("src", "192.0.2.1", MAC_B);
    let batch = bench.take().unwrap();
    assert_eq!(batch.operations.len(), 50);
    assert!(
        batch
            .operations
            .iter()
            .all(|it| it.reason == Reason::NewBinding)
    );
}

#[test]
fn macs_of_all_nodes_at_once_neither_fill_the_queue_nor_keep_a_new_binding_waiting() {
    let names: Vec<String> = (0..100).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    let nodes: Vec<String> = (0..1_000)
        .map(|node| format!("10.0.{}.{}", node / 250, node % 250))
        .collect();
    for mac in [MAC_A, MAC_B] {
        let macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, mac)).collect();
        bench.pin(&macs);
    }
    let queued = bench.mirror.status(bench.now).queued;
    assert!((4_000..20_000).contains(&queued.urgent), "{queued:?}");
    bench.take().unwrap();
    bench.learn("src", "192.0.2.1", MAC_B);
    let next = bench.take().unwrap();
    let new: IpAddr = "192.0.2.1".parse().unwrap();
    let new = next.operations.iter().filter(|it| it.ip == new);
    assert_eq!(new.count(), 100);
    let mut reasons = next.operations.iter().map(|it| it.reason);
    assert!(reasons.any(|reason| reason == Reason::MacChange));
}

#[test]
fn a_large_backfill_of_nodes_does_not_let_learnt_rows_expire() {
    let nodes: Vec<String> = (0..40).map(|node| format!("10.0.0.{node}")).collect();
    let macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, MAC_A)).collect();
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.mirror.settings.limits.rows = 2;
    bench.mirror.settings.limits.most_rows = 2;
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(160_000);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pin(&macs);
    bench.pass(100);
    let reasons: Vec<Reason> = (0..4)
        .map(|_| {
            let batch = bench.take().unwrap();
            bench.commit(&batch);
            batch.operations[0].reason
        })
        .collect();
    assert!(reasons.contains(&Reason::Refresh), "{reasons:?}");
}

#[test]
fn five_hundred_followers_with_many_nodes_are_compared_piece_by_piece() {
    let names: Vec<String> = (0..500).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let nodes: Vec<String> = (0..100).map(|node| format!("10.0.0.{node}")).collect();
    let macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, MAC_A)).collect();
    let group = members("src", &followers).with_pinned(pins(&macs));
    let mut bench = Bench::new(group);
    let mut number = 1_u128;
    for follower in &followers {
        for node in &nodes {
            number += 1;
            let row = BindingRow {
                uuid: uuid(number),
                port: (*follower).into(),
                datapath: datapath(follower),
                ip: node.parse().unwrap(),
                ip_text: node.as_str().into(),
                mac: Some(MAC_A),
                timestamp: bench.now.wall_ms,
            };
            bench.mirror.upsert(&row, bench.now);
        }
    }
    assert_eq!(bench.mirror.pinned_missing(), 0);
    bench.mirror.synced(bench.now);
    let mut calls = 0;
    while !bench.mirror.is_idle() {
        assert_eq!(bench.mirror.next_deadline(), Some(Millis(0)));
        assert_eq!(bench.take(), None);
        calls += 1;
    }
    assert_eq!(calls, 50_000_usize.div_ceil(16_500));
    assert_eq!(bench.mirror.counters().skips.cooldown, 50_000);
    assert!(bench.mirror.next_deadline() > Some(bench.now.at));
}

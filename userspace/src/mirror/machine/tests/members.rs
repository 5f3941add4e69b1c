//! Followers and sources that come and go.

use super::*;

#[test]
fn a_new_follower_gets_all_current_bindings_at_once() {
    let mut bench = Bench::synced(members("src", &["a"]));
    for ip in ["192.0.2.1", "192.0.2.2", "fd00::3"] {
        bench.learn("src", ip, MAC_A);
    }
    bench.settle();
    bench
        .mirror
        .set_group(members("src", &["a", "b"]), [], bench.now);
    assert_eq!(bench.settle(), [(Reason::Backfill, 3)]);
}

#[test]
fn a_new_followers_own_rows_are_known_from_the_driver() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.learn("src", "192.0.2.2", MAC_A);
    bench.put("b", "192.0.2.1", Some(MAC_A), WALL);
    bench.put("b", "192.0.2.2", Some(MAC_B), WALL);
    bench.settle();
    assert_eq!(bench.mirror.counters().bad_rows.other_port, 2);
    let known = bench.rows.clone();
    bench
        .mirror
        .set_group(members("src", &["a", "b"]), known, bench.now);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
}

#[test]
fn a_removed_follower_is_forgotten_and_its_waiting_rows_with_it() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench
        .mirror
        .set_group(members("src", &["a"]), [], bench.now);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
    assert!(bench.row("b", "192.0.2.1").is_none());
    assert_eq!(bench.mirror.lag(bench.now), None);
    assert_eq!(bench.mirror.status(bench.now).followers, 1);
}

#[test]
fn a_new_sources_rows_are_the_truth_and_nobodys_rows_are_deleted() {
    let mut bench = Bench::synced(members("a", &["b", "c"]));
    bench.learn("a", "192.0.2.1", MAC_A);
    bench.settle();
    bench.put("b", "192.0.2.2", Some(MAC_B), bench.now.wall_ms);
    bench.put("b", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    // `a` goes; `b` takes over with what it has.
    let known = bench.rows.clone();
    bench
        .mirror
        .set_group(members("b", &["c"]), known, bench.now);
    bench.delete("a", "192.0.2.1");
    assert_eq!(bench.settle(), [(Reason::Fill, 1), (Reason::Correction, 1)]);
    bench.assert_mirrored("192.0.2.1", "b", &["c"]);
    bench.assert_mirrored("192.0.2.2", "b", &["c"]);
}

#[test]
fn a_binding_lost_with_the_old_source_heals_once_the_new_one_learns_it() {
    let mut bench = Bench::synced(members("a", &["b", "c"]));
    bench.learn("a", "192.0.2.1", MAC_A);
    let known = bench.rows.clone();
    bench
        .mirror
        .set_group(members("b", &["c"]), known, bench.now);
    bench.delete("a", "192.0.2.1");
    assert_eq!(bench.settle(), []);
    bench.learn("b", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
}

#[test]
fn node_addresses_are_left_alone() {
    let mut group = members("src", &["a"]);
    group.node_ips = Arc::new(BTreeSet::from(["192.0.2.1".parse().unwrap()]));
    let mut bench = Bench::synced(group);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.mirror.counters().skips.node_ip, 1);
    bench
        .mirror
        .set_group(members("src", &["a"]), [], bench.now);
    assert_eq!(bench.settle(), [(Reason::Fill, 1)]);
}

#[test]
fn a_row_of_a_former_router_with_the_same_port_is_left_to_be_removed() {
    let mut bench = Bench::synced(members("src", &["a"]));
    let id = bench.put("a", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    let mut row = bench.rows[0].clone();
    row.datapath = uuid(77);
    bench.mirror.upsert(&row, bench.now);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), []);
    bench.rows.remove(0);
    bench.mirror.remove(id, bench.now);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
}

#[test]
fn a_router_made_anew_under_the_same_name_is_a_new_follower() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.rows.retain(|row| &*row.port == "src");
    let mut group = members("src", &["a"]);
    group.followers[0].datapath = uuid(77);
    bench.mirror.set_group(group, bench.rows.clone(), bench.now);
    let batch = bench.take().unwrap();
    let RowWrite::Insert { datapath, .. } = &batch.operations[0].write else {
        panic!("{batch:?}");
    };
    assert_eq!(*datapath, uuid(77));
}

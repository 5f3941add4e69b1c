use super::{Bench, MAC_A, MAC_B, binding, known};
use crate::statics::{Mode, Reason, RowWrite, Treatment};

const FOUR: &str = "172.18.0.4";

#[test]
fn the_rows_of_a_port_that_leaves_or_is_gone_are_deleted_before_any_window_ends() {
    for (treatment, reason) in [
        (Treatment::Leaving, Reason::Leaving),
        (Treatment::Recreated, Reason::Gone),
        (Treatment::Gone, Reason::Gone),
    ] {
        let mut bench = Bench::settled(known([binding(FOUR, MAC_A), binding("fd00::4", MAC_A)]));
        bench
            .server
            .put("rtoe-GR_blue", "169.254.0.4", Some(MAC_A), true);
        bench.exchange();
        bench.treat("rtoe-GR_blue", treatment);
        let batch = bench.take().unwrap();
        assert_eq!(batch.guards, []);
        assert_eq!(batch.operations.len(), 2);
        for operation in &batch.operations {
            assert_eq!(&*operation.port, "rtoe-GR_blue");
            assert_eq!(operation.reason, reason);
            assert!(matches!(operation.write, RowWrite::Delete { .. }));
        }
        bench.server.transact(&batch);
        bench.exchange();
        assert!(bench.server.find("rtoe-GR_blue", "169.254.0.4").is_some());
        assert_eq!(bench.machine.counters().writes.deleted_urgently, 2);
        assert_eq!(bench.machine.counters().urgent_transactions, 1);
    }
}

#[test]
fn an_urgent_deletion_does_not_wait_for_a_transaction_under_way() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.want(Some(known([
        binding(FOUR, MAC_A),
        binding("172.18.0.5", MAC_B),
    ])));
    bench.now = bench.now.after(1_000);
    let waited = bench.take().unwrap();
    bench.treat("rtoe-GR_blue", Treatment::Gone);
    let urgent = bench.take().unwrap();
    assert_eq!(urgent.operations.len(), 1);
    assert!(bench.take().is_none());
    bench.server.transact(&urgent);
    // The guard of the port that is gone does not hold: nothing is written for it, and the other
    // follower gets its row.
    bench.server.transact(&waited);
    bench.run(0);
    assert_eq!(bench.mac("rtoe-GR_blue", "172.18.0.5"), None);
    assert_eq!(bench.mac("rtoe-GR_green", "172.18.0.5"), Some(MAC_B));
    assert_eq!(bench.due(), []);
}

#[test]
fn a_row_that_is_written_just_before_its_port_goes_is_deleted_as_soon_as_it_is_seen() {
    let mut bench = Bench::settled(known([]));
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.now = bench.now.after(1_000);
    let batch = bench.take().unwrap();
    bench.server.transact(&batch);
    bench.treat("rtoe-GR_blue", Treatment::Gone);
    assert!(bench.machine.remembered().contains("rtoe-GR_blue"));
    bench.run(0);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), None);
    assert_eq!(bench.mac("rtoe-GR_green", FOUR), Some(MAC_A));
}

#[test]
fn ports_that_leave_lose_their_rows_while_the_nodes_are_not_known() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.want(None);
    bench.treat("rtoe-GR_blue", Treatment::Leaving);
    bench.run(60_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), None);
    assert_eq!(bench.mac("rtoe-GR_green", FOUR), Some(MAC_A));
}

#[test]
fn a_port_that_is_gone_and_clean_is_forgotten_with_whatever_comes_there_later() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    assert_eq!(bench.machine.remembered().len(), 2);
    bench.treat("rtoe-GR_blue", Treatment::Gone);
    assert_eq!(bench.machine.remembered().len(), 2);
    bench.run(0);
    let remembered = bench.machine.remembered();
    assert_eq!(
        remembered.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["rtoe-GR_green"]
    );
    // It came back on another chassis, where another agent writes.
    bench.server.put("rtoe-GR_blue", FOUR, Some(MAC_B), true);
    bench.run(60_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_B));
}

#[test]
fn a_paused_port_keeps_its_rows_and_is_remembered_and_once_it_is_gone_they_go() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.treat("rtoe-GR_blue", Treatment::Paused);
    bench.want(Some(known([])));
    bench.run(5_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_A));
    assert_eq!(bench.mac("rtoe-GR_green", FOUR), None);
    bench.set_mode(Mode::Withdraw);
    bench.run(5_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_A));
    assert!(bench.machine.remembered().contains("rtoe-GR_blue"));
    bench.treat("rtoe-GR_blue", Treatment::Gone);
    bench.run(0);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), None);
}

#[test]
fn a_held_port_loses_rows_of_nodes_that_leave_and_gets_none() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A), binding("172.18.0.5", MAC_A)]));
    bench.treat("rtoe-GR_blue", Treatment::Held);
    bench.run(5_000);
    assert_eq!(bench.server.transactions, 0);
    bench.want(Some(known([
        binding(FOUR, MAC_B),
        binding("172.18.0.6", MAC_B),
    ])));
    bench.run(5_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_B));
    assert_eq!(bench.mac("rtoe-GR_blue", "172.18.0.5"), None);
    assert_eq!(bench.mac("rtoe-GR_blue", "172.18.0.6"), None);
    bench.treat("rtoe-GR_blue", Treatment::Follower);
    bench.run(5_000);
    assert_eq!(bench.mac("rtoe-GR_blue", "172.18.0.6"), Some(MAC_B));
}

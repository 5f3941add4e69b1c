use super::{Bench, MAC_A, MAC_B, binding, known, target, uuid};
use crate::{
    ovsdb::{Atom, Datum, Row},
    statics::{COLUMNS, FailureKind, RowSkip, RowWrite, Settings, StaticRow, Treatment},
};

const FOUR: &str = "172.18.0.4";
const FIVE: &str = "172.18.0.5";
const BLUE: &str = "rtoe-GR_blue";
const GREEN: &str = "rtoe-GR_green";

#[test]
fn a_row_that_was_there_unknown_holds_back_nothing_but_itself() {
    for names_faults in [true, false] {
        let mut bench = Bench::settled(known([]));
        bench.server.names_faults = names_faults;
        let row = bench.server.put(BLUE, FOUR, Some(MAC_B), true);
        let told = bench.server.telling.pop_back().unwrap();
        bench.want(Some(known([binding(FOUR, MAC_A), binding(FIVE, MAC_A)])));
        bench.run(1_000);
        assert_eq!(bench.mac(GREEN, FOUR), Some(MAC_A));
        assert_eq!(bench.mac(BLUE, FIVE), Some(MAC_A));
        assert_eq!(bench.mac(BLUE, FOUR), Some(MAC_B));
        let [at_fault] = bench.at_fault.as_slice() else {
            panic!("{:?}", bench.at_fault);
        };
        assert_eq!(
            (&*at_fault.port, at_fault.ip.to_string()),
            (BLUE, FOUR.to_owned())
        );
        assert_eq!(bench.machine.status(bench.now).held, 1);
        // It is read again, and corrected like any other.
        bench.server.telling.push_back(told);
        bench.run(1_000);
        assert_eq!(bench.server.find(BLUE, FOUR), Some(row));
        assert_eq!(bench.mac(BLUE, FOUR), Some(MAC_A));
    }
}

#[test]
fn a_row_that_is_refused_again_and_again_is_tried_less_and_less_often() {
    let mut bench = Bench::settled(known([]));
    bench.server.put(BLUE, FOUR, Some(MAC_B), true);
    bench.server.telling.clear();
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.run(600_000);
    let refused = bench.machine.counters().errors.duplicate_index;
    assert!((8..=12).contains(&refused), "{refused}");
    assert_eq!(bench.mac(GREEN, FOUR), Some(MAC_A));
}

#[test]
fn a_port_that_went_meanwhile_is_left_out_until_it_is_told_anew() {
    for names_faults in [true, false] {
        let mut bench = Bench::settled(known([]));
        bench.server.names_faults = names_faults;
        bench.server.ports.remove(BLUE);
        bench.want(Some(known([binding(FOUR, MAC_A), binding(FIVE, MAC_A)])));
        bench.run(1_500);
        assert_eq!(bench.mac(GREEN, FOUR), Some(MAC_A));
        assert_eq!(bench.mac(GREEN, FIVE), Some(MAC_A));
        assert_eq!(bench.mac(BLUE, FOUR), None);
        assert_eq!(bench.machine.status(bench.now).barred_ports, 1);
        // The port was made anew: another row of the same name.
        let mut targets = bench.targets.clone();
        targets[0].port_row = Some(uuid(77));
        bench.retarget(targets);
        bench.run(1_000);
        assert_eq!(bench.mac(BLUE, FOUR), Some(MAC_A));
        assert_eq!(bench.machine.status(bench.now).barred_ports, 0);
    }
}

#[test]
fn a_server_that_is_not_available_is_asked_again_later_with_all_of_it() {
    let mut bench = Bench::settled(known([]));
    bench.server.refuse = Some(FailureKind::Unavailable);
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.run(1_999);
    assert_eq!((bench.server.transactions, bench.server.written), (1, 0));
    bench.run(1);
    assert_eq!((bench.server.transactions, bench.server.written), (2, 2));
    assert_eq!(bench.machine.counters().errors.unavailable, 1);
}

#[test]
fn a_row_that_went_before_it_was_updated_is_inserted() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.want(Some(known([binding(FOUR, MAC_B)])));
    let row = bench.server.find(BLUE, FOUR).unwrap();
    bench.server.rows.remove(&row);
    bench.run(3_000);
    assert_eq!(bench.mac(BLUE, FOUR), Some(MAC_B));
    assert_eq!(bench.mac(GREEN, FOUR), Some(MAC_B));
    assert_eq!(bench.machine.counters().errors.rows_missed, 1);
}

#[test]
fn an_outcome_that_overtakes_its_changes_causes_no_second_write() {
    let mut bench = Bench::settled(known([]));
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.now = bench.now.after(1_000);
    let batch = bench.take().unwrap();
    bench.server.transact(&batch);
    let outcome = bench.server.telling.pop_back().unwrap();
    bench.server.telling.push_front(outcome);
    assert!(bench.read());
    bench.want(Some(known([binding(FOUR, MAC_A), binding(FIVE, MAC_A)])));
    bench.now = bench.now.after(2_000);
    assert!(
        bench.take().is_none(),
        "the rows of the former one are not seen yet"
    );
    bench.run(0);
    assert_eq!((bench.server.transactions, bench.server.written), (2, 4));
}

#[test]
fn our_own_change_that_is_seen_after_its_outcome_is_taken_for_nobody_elses() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    for mac in [MAC_B, MAC_A, MAC_B, MAC_A] {
        bench.want(Some(known([binding(FOUR, mac)])));
        bench.now = bench.now.after(1_000);
        let batch = bench.take().unwrap();
        bench.server.transact(&batch);
        let outcome = bench.server.telling.pop_back().unwrap();
        bench.server.telling.push_front(outcome);
        // The node flaps on before its rows are seen.
        let other = if mac == MAC_A { MAC_B } else { MAC_A };
        bench.want(Some(known([binding(FOUR, other)])));
        while bench.read() {}
        assert_eq!(bench.machine.counters().contested, 0);
        assert_eq!(bench.machine.status(bench.now).held, 0);
    }
    bench.run(1_000);
    assert_eq!(bench.server.transactions, 5, "one a window");
}

#[test]
fn changes_that_are_never_seen_are_waited_for_no_longer_than_a_while() {
    let mut bench = Bench::settled(known([]));
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.now = bench.now.after(1_000);
    let batch = bench.take().unwrap();
    bench.server.transact(&batch);
    let outcome = bench.server.telling.pop_back().unwrap();
    // Written and deleted again before the monitor could tell.
    bench.server.telling.clear();
    bench.server.rows.clear();
    bench.server.telling.push_back(outcome);
    bench.run(10_019);
    assert_eq!(bench.server.transactions, 1);
    bench.run(1);
    assert_eq!(bench.mac(BLUE, FOUR), Some(MAC_A));
    assert_eq!(bench.machine.counters().errors.unseen, 2);
}

#[test]
fn a_connection_that_is_lost_mid_write_leaves_only_what_is_missing_to_do() {
    let mut bench = Bench::settled(known([]));
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.now = bench.now.after(1_000);
    let batch = bench.take().unwrap();
    bench.server.transact(&batch);
    bench.server.telling.pop_back();
    bench.machine.disconnected();
    assert!(bench.take().is_none());
    assert_eq!(bench.machine.next_deadline(), None);
    bench.want(Some(known([binding(FOUR, MAC_A), binding(FIVE, MAC_A)])));
    while bench.read() {}
    bench.machine.synced(bench.now);
    bench.run(1_000);
    assert_eq!((bench.server.transactions, bench.server.written), (2, 4));
    assert_eq!(bench.machine.counters().errors.unknown_outcome, 1);
}

#[test]
fn of_two_spellings_of_an_address_a_right_one_stays() {
    let mut bench = Bench::settled(known([binding("fd00::4", MAC_A)]));
    bench.server.put(BLUE, "FD00:0::4", Some(MAC_B), true);
    let right = bench.server.find(BLUE, "fd00::4").unwrap();
    bench.run(2_000);
    assert_eq!(bench.server.find(BLUE, "FD00:0::4"), None);
    assert_eq!(bench.server.find(BLUE, "fd00::4"), Some(right));
    // Where the odd one is right and the other is not, the odd one stays, and nothing is inserted.
    let mut bench = Bench::new(Settings::default());
    bench.retarget(vec![target(BLUE, Treatment::Follower)]);
    bench.server.put(BLUE, "fd00::4", Some(MAC_B), true);
    let right = bench.server.put(BLUE, "FD00:0::4", Some(MAC_A), true);
    bench.want(Some(known([binding("fd00::4", MAC_A)])));
    while bench.read() {}
    bench.machine.synced(bench.now);
    bench.run(2_000);
    assert_eq!(
        bench.server.rows.keys().copied().collect::<Vec<_>>(),
        [right]
    );
}

#[test]
fn a_row_that_does_not_override_or_has_no_mac_is_made_right() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.server.put(BLUE, FOUR, Some(MAC_A), false);
    bench.server.put(GREEN, FOUR, None, true);
    bench.run(2_000);
    let rows = bench.server.rows.values();
    let right = rows.filter(|(row, _)| row.mac == Some(MAC_A) && row.override_dynamic_mac);
    assert_eq!(right.count(), 2);
    assert_eq!(bench.machine.counters().writes.updated, 2);
}

#[test]
fn a_row_whose_address_cannot_be_read_is_left_and_counted() {
    let mut bench = Bench::settled(known([]));
    let row = bench.server.put(BLUE, "no address", Some(MAC_A), true);
    bench.run(10_000);
    assert!(bench.server.rows.contains_key(&row));
    assert_eq!(bench.machine.status(bench.now).unreadable, 1);
    assert_eq!(bench.server.transactions, 0);
    bench.server.delete(row);
    bench.run(0);
    assert_eq!(bench.machine.status(bench.now).unreadable, 0);
}

#[test]
fn rows_that_somebody_else_keeps_changing_are_corrected_less_and_less_often() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    for _ in 0..300 {
        bench.server.put(BLUE, FOUR, Some(MAC_B), true);
        bench.run(1_000);
    }
    assert!(
        bench.server.transactions < 20,
        "{}",
        bench.server.transactions
    );
    bench.run(300_000);
    assert_eq!(bench.mac(BLUE, FOUR), Some(MAC_A));
}

#[test]
fn a_row_is_read_whatever_the_case_of_its_mac() {
    let row = |port: &str, ip: &str, mac: &str| {
        let columns: Vec<std::sync::Arc<str>> = COLUMNS.iter().map(|name| (*name).into()).collect();
        let text = |value: &str| Datum::Scalar(Atom::String(value.into()));
        let overrides = Datum::Scalar(Atom::Boolean(true));
        let row = Row::new(
            columns.into(),
            vec![text(port), text(ip), text(mac), overrides],
        );
        StaticRow::parse(uuid(1), &row.unwrap())
    };
    let read = row(BLUE, "FD00::4", "02:00:00:00:00:0A").unwrap();
    assert_eq!(read, row(BLUE, "fd00:0::4", "02:00:00:00:00:0a").unwrap());
    assert_eq!((read.mac, read.override_dynamic_mac), (Some(MAC_A), true));
    assert_eq!(
        row(BLUE, "fd00::4/64", "router").map(|it| (it.ip, it.mac)),
        Ok((None, None))
    );
    assert_eq!(
        row("", "fd00::4", "02:00:00:00:00:0a"),
        Err(RowSkip::NoPort)
    );
}

#[test]
fn a_change_that_another_row_of_the_batch_makes_impossible_names_its_row() {
    let mut bench = Bench::settled(known([]));
    bench.want(Some(known([binding(FOUR, MAC_A), binding(FIVE, MAC_A)])));
    bench.now = bench.now.after(1_000);
    let batch = bench.take().unwrap();
    let details = "Transaction causes multiple rows in \"Static_MAC_Binding\" table to have \
        identical values (rtoe-GR_green and \"172.18.0.5\") for index on columns";
    let [position] = batch.blame(details).try_into().unwrap();
    let operation = &batch.operations[position];
    assert_eq!(
        (&*operation.port, operation.ip.to_string()),
        (GREEN, FIVE.to_owned())
    );
    assert_eq!(operation.write, RowWrite::Insert { mac: MAC_A });
}

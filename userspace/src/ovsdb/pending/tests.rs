use super::*;
use crate::ovsdb::value::{Datum, Row};

fn row(value: i64) -> Row {
    Row::new(["value"].map(Arc::from).into(), vec![Datum::from(value)]).unwrap()
}

fn change(number: u128, old: Option<i64>, new: Option<i64>) -> Change {
    Change {
        table: "T".into(),
        uuid: Uuid(uuid::Uuid::from_u128(number)),
        old: old.map(row),
        new: new.map(row),
    }
}

fn lost() -> Arc<SessionError> {
    Arc::new(SessionError::MonitorCanceled)
}

fn next(shared: &Shared) -> Option<Event> {
    shared.lock().queue.take()
}

fn synced() -> Shared {
    let shared = Shared::new(Vec::new());
    shared.synced(Vec::new(), 0);
    assert!(matches!(next(&shared), Some(Event::Synced(_))));
    shared
}

#[track_caller]
fn changes(event: Option<Event>) -> Vec<Change> {
    match event {
        Some(Event::Changes(batch)) => batch.changes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn changes_of_one_row_become_one() {
    let shared = synced();
    shared.changed(vec![change(1, None, Some(1)), change(2, Some(1), Some(2))]);
    shared.changed(vec![change(1, Some(1), Some(2))]);
    shared.changed(vec![change(2, Some(2), None)]);
    assert_eq!(
        changes(next(&shared)),
        [change(1, None, Some(2)), change(2, Some(1), None)]
    );
    assert!(next(&shared).is_none());
}

#[test]
fn row_that_is_what_it_was_is_no_news() {
    let shared = synced();
    shared.changed(vec![change(1, None, Some(1))]);
    shared.changed(vec![change(1, Some(1), None)]);
    assert!(next(&shared).is_none());
}

#[test]
fn nothing_is_told_before_everything_is_known() {
    let shared = Shared::new(Vec::new());
    shared.changed_unsynced(vec![change(1, None, Some(1))]);
    assert!(next(&shared).is_none());
    shared.disconnected(lost());
    assert!(matches!(next(&shared), Some(Event::Disconnected { .. })));
    shared.synced(vec![change(2, None, Some(2))], 3);
    let Some(Event::Synced(batch)) = next(&shared) else {
        panic!();
    };
    assert_eq!(batch.conditions, 3);
    assert_eq!(
        batch.changes,
        [change(1, None, Some(1)), change(2, None, Some(2))]
    );
}

#[test]
fn first_snapshot_that_nobody_saw_is_part_of_the_next() {
    let shared = Shared::new(Vec::new());
    shared.synced(vec![change(1, None, Some(1))], 0);
    shared.disconnected(lost());
    assert!(matches!(next(&shared), Some(Event::Disconnected { .. })));
    assert!(next(&shared).is_none());
    shared.synced(vec![change(1, Some(1), Some(2))], 0);
    let Some(Event::Synced(batch)) = next(&shared) else {
        panic!();
    };
    assert_eq!(batch.changes, [change(1, None, Some(2))]);
}

#[test]
fn changes_before_a_loss_are_told_before_it() {
    let shared = synced();
    shared.changed(vec![change(1, None, Some(1))]);
    shared.disconnected(lost());
    assert_eq!(changes(next(&shared)).len(), 1);
    assert!(matches!(next(&shared), Some(Event::Disconnected { .. })));
}

#[test]
fn loss_that_is_over_is_not_told() {
    let shared = synced();
    shared.disconnected(lost());
    shared.synced(Vec::new(), 0);
    assert!(matches!(next(&shared), Some(Event::Synced(_))));
    assert!(next(&shared).is_none());
}

#[test]
fn part_of_a_snapshot_waits_for_the_rest() {
    let shared = synced();
    shared.disconnected(lost());
    shared.changed_unsynced(vec![change(1, None, Some(1))]);
    assert!(matches!(next(&shared), Some(Event::Disconnected { .. })));
    assert!(next(&shared).is_none());
    shared.synced(Vec::new(), 0);
    let Some(Event::Synced(batch)) = next(&shared) else {
        panic!();
    };
    assert_eq!(batch.changes.len(), 1);
}

#[test]
fn conditions_are_confirmed_without_a_change() {
    let shared = synced();
    shared.conditions_in_force(4);
    let Some(Event::Changes(batch)) = next(&shared) else {
        panic!();
    };
    assert_eq!((batch.conditions, batch.changes.len()), (4, 0));
    assert!(next(&shared).is_none());
}

#[test]
fn nothing_piles_up_for_a_consumer_that_has_gone() {
    let shared = synced();
    shared.leave();
    for number in 0..1000 {
        shared.changed(vec![change(number, None, Some(1))]);
    }
    assert!(shared.lock().queue.changes.is_empty());
}

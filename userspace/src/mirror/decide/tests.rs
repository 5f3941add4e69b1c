//! Every combination of what the source says and what the follower has.

use super::*;
use crate::{ids::Mac, mirror::clock::Millis};

const T: u64 = 300_000;
const NOW: i64 = 1_700_000_000_000;
const RIGHT: Mac = Mac([2, 0, 0, 0, 0, 1]);
const WRONG: Mac = Mac([2, 0, 0, 0, 0, 2]);
const ROW: Uuid = Uuid(uuid::Uuid::from_u128(7));

/// Ages of the source's and the follower's row, in ms before now.
fn need(source_age: i64, row: Option<(Option<Mac>, i64)>, ages: Ages) -> Need {
    let truth = Truth {
        mac: RIGHT,
        timestamp: NOW - source_age,
        text: Some("192.0.2.1".into()),
    };
    let row = row.map(|(mac, age)| StoredRow {
        uuid: ROW,
        timestamp: NOW - age,
        mac,
        elsewhere: false,
    });
    decide(&truth, row.as_ref(), ages, times())
}

fn times() -> Times {
    Times {
        now: Now {
            at: Millis(0),
            wall_ms: NOW,
        },
        earliest: NOW,
        latest: NOW,
    }
}

const EQUAL: Ages = Ages {
    source: Some(T),
    follower: Some(T),
    cooldown: T / 2,
};
const NEITHER_AGES: Ages = Ages {
    source: None,
    follower: None,
    cooldown: T / 2,
};
const ONLY_FOLLOWER_AGES: Ages = Ages {
    source: None,
    ..EQUAL
};
const ONLY_SOURCE_AGES: Ages = Ages {
    follower: None,
    ..EQUAL
};

#[test]
fn what_a_row_needs_follows_from_the_two_rows_and_their_ages() {
    let right = |age| Some((Some(RIGHT), age));
    let wrong = |age| Some((Some(WRONG), age));
    let rest = |skip| Need::Nothing(skip, None);
    let due = |age| Need::Nothing(Skip::Cooldown, Some(NOW - age + 150_000));
    for (source_age, row, ages, expected) in [
        // Missing: put in, unless the source's row is about to go.
        (0, None, EQUAL, Need::Insert),
        (299_999, None, EQUAL, Need::Insert),
        (300_000, None, EQUAL, rest(Skip::SourceExpiring)),
        (300_000, None, NEITHER_AGES, Need::Insert),
        // No timestamp at all: no age either.
        (NOW, None, EQUAL, Need::Insert),
        (NOW, right(200_000), EQUAL, rest(Skip::Fresh)),
        // Wrong or unreadable: corrected, whatever the ages.
        (0, wrong(0), EQUAL, Need::Correct(ROW)),
        (300_000, wrong(0), EQUAL, Need::Correct(ROW)),
        (0, Some((None, 0)), NEITHER_AGES, Need::Correct(ROW)),
        // Right: refreshed where it would expire first, and is old enough.
        (0, right(0), EQUAL, rest(Skip::Fresh)),
        (50_000, right(49_000), EQUAL, rest(Skip::Fresh)),
        (0, right(1), EQUAL, due(1)),
        (0, right(149_999), EQUAL, due(149_999)),
        (0, right(150_000), EQUAL, Need::Refresh(ROW)),
        (200_000, right(250_000), EQUAL, Need::Refresh(ROW)),
        (300_000, right(350_000), EQUAL, rest(Skip::SourceExpiring)),
        // Rows that do not age need no refresh; those that do need it as long as the source lives.
        (0, right(999_000), NEITHER_AGES, rest(Skip::Fresh)),
        (0, right(999_000), ONLY_SOURCE_AGES, rest(Skip::Fresh)),
        (900_000, right(1_000), ONLY_FOLLOWER_AGES, due(1_000)),
        (
            900_000,
            right(150_000),
            ONLY_FOLLOWER_AGES,
            Need::Refresh(ROW),
        ),
        // The future: nothing is written over something newer.
        (0, right(-5_000), EQUAL, rest(Skip::Fresh)),
    ] {
        assert_eq!(
            need(source_age, row, ages),
            expected,
            "source {source_age}, row {row:?}, {ages:?}"
        );
    }
}

#[test]
fn a_row_of_another_datapath_is_left_alone() {
    let truth = Truth {
        mac: RIGHT,
        timestamp: NOW,
        text: Some("192.0.2.1".into()),
    };
    let row = StoredRow {
        uuid: ROW,
        timestamp: 0,
        mac: Some(WRONG),
        elsewhere: true,
    };
    assert_eq!(
        decide(&truth, Some(&row), EQUAL, times()),
        Need::Nothing(Skip::OtherDatapath, None)
    );
}

/// Where the node's clock is ahead, ages are judged by another clock than the one rows are stamped with.
#[test]
fn a_row_that_is_always_due_is_not_written_again_at_once() {
    const HOUR: i64 = 3_600_000;
    let truth = Truth {
        mac: RIGHT,
        timestamp: 0,
        text: None,
    };
    let behind = Times {
        earliest: NOW - HOUR,
        ..times()
    };
    for (age, expected) in [
        (0, Need::Nothing(Skip::Newer, Some(NOW + 37_500))),
        (1, Need::Nothing(Skip::Cooldown, Some(NOW + 37_499))),
        (37_500, Need::Refresh(ROW)),
    ] {
        let row = StoredRow {
            uuid: ROW,
            timestamp: NOW - HOUR - age,
            mac: Some(RIGHT),
            elsewhere: false,
        };
        let need = decide(&truth, Some(&row), ONLY_FOLLOWER_AGES, behind);
        assert_eq!(need, expected, "{age}");
    }
}

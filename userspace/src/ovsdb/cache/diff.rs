//! Applies the difference of a column's value (`modify` of `<table-updates2>`).

use std::cmp::Ordering;

use crate::ovsdb::value::{Atom, Datum};

/// The value that `difference` makes of `old`: for a set the elements that only one of both has;
/// for a map the pairs of `old`, less those that `difference` repeats, with the values of the keys
/// that it changes, and with the keys that it adds. Both must be sorted; a scalar is replaced.
#[must_use]
pub fn apply(old: &Datum, difference: Datum) -> Datum {
    match (old, difference) {
        (Datum::Set(old), Datum::Set(difference)) => Datum::Set(symmetric(old, difference)),
        (Datum::Map(old), Datum::Map(difference)) => Datum::Map(merge(old, difference)),
        (_, difference) => difference,
    }
}

fn symmetric(old: &[Atom], difference: Vec<Atom>) -> Vec<Atom> {
    let mut merged = Vec::with_capacity(old.len() + difference.len());
    let mut old = old.iter().peekable();
    for atom in difference {
        while let Some(kept) = old.next_if(|kept| **kept < atom) {
            merged.push(kept.clone());
        }
        if old.next_if(|same| **same == atom).is_none() {
            merged.push(atom);
        }
    }
    merged.extend(old.cloned());
    merged
}

fn merge(old: &[(Atom, Atom)], difference: Vec<(Atom, Atom)>) -> Vec<(Atom, Atom)> {
    let mut merged = Vec::with_capacity(old.len() + difference.len());
    let mut old = old.iter().peekable();
    for (key, value) in difference {
        while let Some(kept) = old.next_if(|kept| kept.0.cmp(&key) == Ordering::Less) {
            merged.push(kept.clone());
        }
        match old.next_if(|same| same.0 == key) {
            Some(same) if same.1 == value => {}
            _ => merged.push((key, value)),
        }
    }
    merged.extend(old.cloned());
    merged
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn set_difference_applied_to_the_old_set_gives_the_new_one(
            old in proptest::collection::btree_set(0i64..40, 0..20),
            new in proptest::collection::btree_set(0i64..40, 0..20),
        ) {
            let difference: BTreeSet<i64> = old.symmetric_difference(&new).copied().collect();
            prop_assert_eq!(apply(&Datum::set(old), Datum::set(difference)), Datum::set(new));
        }

        #[test]
        fn map_difference_applied_to_the_old_map_gives_the_new_one(
            old in proptest::collection::btree_map(0i64..20, 0i64..3, 0..15),
            new in proptest::collection::btree_map(0i64..20, 0i64..3, 0..15),
        ) {
            let mut difference = BTreeMap::new();
            for (key, value) in &old {
                if !new.contains_key(key) {
                    difference.insert(*key, *value);
                }
            }
            for (key, value) in &new {
                if old.get(key) != Some(value) {
                    difference.insert(*key, *value);
                }
            }
            prop_assert_eq!(apply(&Datum::map(old), Datum::map(difference)), Datum::map(new));
        }
    }

    #[test]
    fn a_scalar_is_replaced() {
        assert_eq!(apply(&Datum::from(1), Datum::from(2)), Datum::from(2));
    }
}

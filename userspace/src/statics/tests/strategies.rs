use super::{MAC_A, binding, known, target};
use crate::{
    rows::{Rows, Table, tests as rows},
    statics::{Treatment, Wanted, northd_version, rows_wanted},
};

#[test]
fn the_version_is_that_of_the_northd_that_was_last_active() {
    let mut known = Rows::default();
    assert_eq!(northd_version(&known), None);
    let options = rows::map(&[("northd_internal_version", "25.03.0-20.41.0-76.8")]);
    let root = rows::row(Table::NbGlobal, &[("options", options)]);
    known.apply(Table::NbGlobal, rows::uuid(1), Some(&root));
    assert_eq!(
        northd_version(&known).map(|it| &**it),
        Some("25.03.0-20.41.0-76.8")
    );
}

#[test]
fn followers_and_those_that_are_held_count_for_every_binding_that_can_be_told() {
    let mut wanted = known([binding("172.18.0.4", MAC_A), binding("fd00::4", MAC_A)]);
    let bindings = &mut wanted.bridges.get_mut("breth0").unwrap().bindings;
    bindings.insert("172.18.0.5".parse().unwrap(), Wanted::Keep);
    let mut elsewhere = target("rtoe-GR_red", Treatment::Follower);
    elsewhere.bridge = Some("brup".into());
    let targets = [
        target("rtoe-GR_blue", Treatment::Follower),
        target("rtoe-GR_green", Treatment::Follower),
        target("rtoe-GR_held", Treatment::Held),
        target("rtoe-GR_node", Treatment::DefaultSource),
        elsewhere,
    ];
    assert_eq!(rows_wanted(&targets, &wanted), 6);
}

//! The agent on both pairs of versions: OVN 23.03 with Open vSwitch 3.1, OVN 25.03 with 3.5.

mod agent;
mod learning;
mod mirroring;
#[path = "../lab_agent/rig.rs"]
#[expect(dead_code, reason = "the other tests with an agent use more of it")]
mod rig;

use neighsteer_tests::lab::{Lab, OvnVersion};

use crate::rig::Rig;

/// Makes two tests of each scenario, one for each version.
macro_rules! on_both_versions {
    ($($module:ident :: $scenario:ident,)*) => {
        mod ovn_23_03 {
            $(#[test] fn $scenario() { crate::$module::$scenario(super::OvnVersion::V23_03); })*
        }
        mod ovn_25_03 {
            $(#[test] fn $scenario() { crate::$module::$scenario(super::OvnVersion::V25_03); })*
        }
    };
}

on_both_versions! {
    agent::the_agent_steers_says_so_and_is_cleaned_up_after,
    learning::a_request_for_the_routers_address_makes_a_binding_and_a_solicitation_only_changes_one,
    mirroring::the_first_packet_of_a_pod_to_an_unresolved_host_is_answered,
    mirroring::a_gateway_with_another_mac_reaches_every_follower,
    mirroring::a_followers_row_that_vanishes_under_a_live_source_is_put_back,
    mirroring::one_sign_of_the_source_restores_the_rows_of_all_followers,
}

/// A lab of a version without fan-out flows, with one pod in its last UDN.
fn rig(version: OvnVersion, udns: u16) -> Rig {
    let rig = Rig::build(Lab::builder().version(version), udns, &[udns]);
    let running = rig.lab.versions().unwrap();
    // The machine's own packages are Debian 12's in CI, and may be newer elsewhere.
    if version == OvnVersion::V25_03 {
        assert!(running.ovn.starts_with("25.03."), "{running:?}");
        assert!(running.open_vswitch.starts_with("3.5."), "{running:?}");
    }
    rig
}

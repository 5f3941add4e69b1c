use super::*;
use crate::{
    plan::{
        Gates, Install, plan,
        tests::{group, on},
    },
    topology::tests::Network,
};

fn refused(mark: u32) -> String {
    SteeringMark::new(mark).unwrap_err().to_string()
}

#[test]
fn a_mark_that_ovn_kubernetes_uses_is_refused_and_its_use_is_named() {
    for (mark, named) in [
        (0, "without a mark"),
        (0x3f0, "EgressService"),
        (0x1000, "user-defined networks"),
        (4096 + 4096, "user-defined networks"),
        (50_000, "EgressIP objects"),
        (65_535, "EgressIP objects"),
        (0x17_45ec, "internal traffic policy"),
        (0x4000, "masquerade"),
        (0x6e73_8000, "masquerade"),
    ] {
        let text = refused(mark);
        assert!(text.contains(named), "{text}");
        assert!(text.contains("0x6e730034"), "{text}");
    }
}

#[test]
fn a_mark_is_read_as_decimal_or_hex() {
    assert_eq!("0x52".parse(), SteeringMark::new(0x52));
    assert_eq!("82".parse(), SteeringMark::new(0x52));
    assert_eq!("0x6e730034".parse(), Ok(SteeringMark::DEFAULT));
    for text in ["", "x", "0x", "-1", "0x100000000", "0x52/0xff"] {
        let error = text.parse::<SteeringMark>().unwrap_err();
        assert!(matches!(error, MarkError::NotANumber(_)), "{text}");
    }
}

#[test]
fn the_default_is_no_ones() {
    let default = SteeringMark::DEFAULT;
    assert_eq!(SteeringMark::new(default.get()), Ok(default));
}

#[test]
fn a_mark_wants_the_kernels_datapath_without_hardware_offload() {
    let mut group = group(|_: &mut Network| {}, &[]);
    let wanted = Some(SteeringMark::DEFAULT);
    for kernel in ["", "system"] {
        group.datapath_type = kernel.into();
        assert_eq!(mark_for(&group, false, wanted), Ok(wanted));
        assert_eq!(mark_for(&group, false, None), Ok(None));
        assert_eq!(mark_for(&group, true, wanted), Err(NoMark::HardwareOffload));
    }
    group.datapath_type = "netdev".into();
    let reason = mark_for(&group, false, wanted).unwrap_err();
    assert!(reason.to_string().contains("netdev"), "{reason}");
    assert_eq!(mark_for(&group, true, None), Ok(None));
}

#[test]
fn a_plan_that_steers_nothing_has_no_flow_for_marks() {
    let group = group(|_| {}, &[7]);
    for install in [Install::Overlay, Install::Complete] {
        let off = plan(&group, Gates::default(), install);
        assert_eq!(off.clone().by_mark(&group, SteeringMark::DEFAULT), off);
    }
}

#[test]
fn the_mark_of_a_bridge_is_read_off_our_flow_alone() {
    let group = group(|_| {}, &[7]);
    let mark = SteeringMark::new(0x52).unwrap();
    let header = plan(&group, on(), Install::Overlay);
    assert_eq!(mark_of(&header.flows, &group), None);
    let mut marked = header.by_mark(&group, mark);
    assert_eq!(mark_of(&marked.flows, &group), Some(mark));
    marked.flows[0].cookie = crate::openflow::Cookie(1);
    assert_eq!(mark_of(&marked.flows, &group), None);
}

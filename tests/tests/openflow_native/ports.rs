use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use neighsteer::{
    ids::OfPort,
    openflow::{OfCtl, Switch, SwitchError},
};

use crate::{BRIDGE, Ovs, native};

fn ofport(number: u16) -> OfPort {
    OfPort::from_column(Some(number.into())).unwrap()
}

#[tokio::test]
async fn no_flood_of_500_ports_is_set_and_cleared_well_within_a_second() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=500);
    let (native, ofctl) = (native(&ovs), OfCtl::new(ovs.rundir()));
    for no_flood in [true, false] {
        let wanted: BTreeMap<OfPort, bool> =
            (1..=500).map(|number| (ofport(number), no_flood)).collect();
        let begun = Instant::now();
        native.set_no_flood(BRIDGE, &wanted).await.unwrap();
        let took = begun.elapsed();
        println!("no-flood {no_flood} on 500 ports in {took:?}");
        assert!(took < Duration::from_secs(1), "{took:?}");

        let ports = ofctl.ports(BRIDGE).await.unwrap();
        assert_eq!(ports.len(), 500);
        assert!(ports.iter().all(|port| port.no_flood == no_flood));
        assert_eq!(native.ports(BRIDGE).await.unwrap(), ports);
    }
}

#[tokio::test]
async fn a_port_that_is_missing_does_not_keep_the_others_from_being_changed() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=2);
    let native = native(&ovs);
    let wanted = [(ofport(1), true), (ofport(2), true), (ofport(9), true)].into();
    let error = native.set_no_flood(BRIDGE, &wanted).await.unwrap_err();
    assert!(
        matches!(error, SwitchError::NoSuchPort { ofport: missing, .. } if missing == ofport(9)),
        "{error:?}"
    );
    let ports = native.ports(BRIDGE).await.unwrap();
    assert!(ports.iter().all(|port| port.no_flood), "{ports:?}");
}

#[tokio::test]
async fn a_bridge_with_more_ports_than_one_message_holds_lists_them_all() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=1_500);
    let ports = native(&ovs).ports(BRIDGE).await.unwrap();
    assert_eq!(ports.len(), 1_500);
    assert_eq!(ports[1_499].name, "p1500");
}

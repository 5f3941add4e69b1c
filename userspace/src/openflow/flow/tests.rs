use super::*;
use crate::openflow::Protocol;

fn ofport(number: i64) -> OfPort {
    OfPort::from_column(Some(number)).unwrap()
}

#[test]
fn a_flow_reads_as_ovs_ofctl_writes_it() {
    let flow = Flow {
        cookie: Cookie(0xdef_f105),
        table: 0,
        priority: 12,
        matches: Match {
            dl_vlan: Some(100),
            protocol: Some(Protocol::Arp),
            arp_op: Some(1),
            arp_tpa: Some([172, 18, 0, 3].into()),
            ..Match::default()
        },
        actions: vec![
            Action::Output(Port::Number(ofport(2))),
            Action::Output(Port::Local),
            Action::Normal,
            Action::Flood,
        ],
    };
    assert_eq!(
        flow.to_string(),
        "cookie=0xdeff105, priority=12, table=0, dl_vlan=100, arp, arp_op=1, arp_tpa=172.18.0.3, \
         actions=output:2,LOCAL,NORMAL,FLOOD"
    );
    assert_eq!(
        flow.to_strict_deletion(),
        "cookie=0xdeff105/-1, priority=12, table=0, dl_vlan=100, arp, arp_op=1, \
         arp_tpa=172.18.0.3"
    );
}

#[test]
fn a_flow_for_every_frame_that_does_nothing_is_a_drop() {
    let flow = Flow {
        cookie: Cookie(0),
        table: 1,
        priority: 0,
        matches: Match::default(),
        actions: Vec::new(),
    };
    assert_eq!(
        flow.to_string(),
        "cookie=0x0, priority=0, table=1, actions=drop"
    );
    assert_eq!(
        flow.to_strict_deletion(),
        "cookie=0x0/-1, priority=0, table=1"
    );
}

//! The northbound server goes and comes back while nodes change.

use neighsteer::ids::Mac;
use neighsteer_tests::lab::{Daemon, Lab};

use crate::{rig::Rig, support::Nodes};

#[test]
fn nodes_that_change_around_a_restart_of_the_northbound_server_are_written_when_it_is_back() {
    let mut nodes = Nodes::on(Rig::build(Lab::builder(), 6, &[]), 4);
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    for round in 1..=3 {
        // Before, while it is away, and as it comes back.
        change_mac(&mut nodes, 0, round);
        nodes.rig.lab.kill_daemon(Daemon::Northbound).unwrap();
        change_mac(&mut nodes, 1, round);
        let gone = nodes.peers.pop().unwrap();
        nodes.manifests.remove(&gone.name()).unwrap();
        nodes.rig.lab.start_daemon(Daemon::Northbound).unwrap();
        change_mac(&mut nodes, 0, round + 10);
        nodes.wait_for_static_rows();
        nodes.masquerade_rows_are_untouched();
        // As it was.
        nodes.manifests.put(&gone).unwrap();
        nodes.peers.push(gone);
        nodes.rig.lab.restart_daemon(Daemon::Northbound).unwrap();
        nodes.wait_for_static_rows();
    }
    nodes.rig.lab.sync().unwrap();
    nodes.masquerade_rows_are_untouched();
}

fn change_mac(nodes: &mut Nodes, peer: u8, last: u8) {
    let changed = &mut nodes.peers[usize::from(peer)];
    changed
        .set_mac(Mac([0x02, 0xee, 0, 0, peer, last]))
        .unwrap();
    nodes.manifests.put(changed).unwrap();
}

//! An agent needs no more than the capabilities that the files in deploy/ grant.

use std::fs;

use neighsteer::datapath::{self, AttachOptions, Direction, Hook, State};
use neighsteer_common::Validate;
use nix::mount::{MsFlags, mount};

use crate::rig::*;

#[test]
fn three_capabilities_are_enough_to_attach_replace_and_detach() {
    if let Some(bpffs) = bpffs_of_three_capabilities() {
        for hook in [Hook::Tc, Hook::Xdp] {
            with_three_capabilities(&AttachOptions {
                interface: UPLINK.to_owned(),
                direction: Direction::Ingress,
                hook,
                policy: Some(POLICY),
                tag: None,
                steering_mark: None,
                validate: Validate::default(),
                bpffs: bpffs.clone(),
                clsact: false,
            });
        }
        return;
    }
    let Some(rig) = Rig::new() else { return };
    // Mounting takes CAP_SYS_ADMIN: the node does it.
    fs::create_dir(rig.bpffs()).unwrap();
    let none = None::<&str>;
    mount(
        Some("bpf"),
        &rig.bpffs(),
        Some("bpf"),
        MsFlags::empty(),
        none,
    )
    .unwrap();
    again_with_three_capabilities(
        "capabilities::three_capabilities_are_enough_to_attach_replace_and_detach",
        &rig.bpffs(),
    );
}

fn with_three_capabilities(options: &AttachOptions) {
    for again in [false, true] {
        let attached =
            datapath::attach(options).unwrap_or_else(|error| panic!("{}", chain(&error)));
        assert_eq!((attached.replaced, attached.counters_kept), (again, again));
        let attachments = datapath::attachments(&options.bpffs).unwrap();
        let states: Vec<_> = attachments
            .iter()
            .map(|attachment| attachment.state)
            .collect();
        assert_eq!(states, [State::Attached]);
    }
    assert_eq!(datapath::counters(UPLINK, &options.bpffs).unwrap(), []);
    assert!(datapath::detach(UPLINK, &options.bpffs).unwrap());
    assert_eq!(datapath::attachments(&options.bpffs).unwrap().len(), 0);
}

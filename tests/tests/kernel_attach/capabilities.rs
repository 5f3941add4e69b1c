//! An agent needs no more than the capabilities that the files in deploy/ grant.

use std::{env, fs, process::Command};

use neighsteer::datapath::{self, AttachOptions, Direction, Hook, State};
use neighsteer_common::Validate;
use nix::mount::{MsFlags, mount};

use crate::rig::*;

/// Set for the process that has only the three; names its bpffs.
const BPFFS: &str = "NEIGHSTEER_TEST_BPFFS";

#[test]
fn three_capabilities_are_enough_to_attach_replace_and_detach() {
    if let Some(bpffs) = env::var_os(BPFFS) {
        for hook in [Hook::Tc, Hook::Xdp] {
            with_three_capabilities(&AttachOptions {
                interface: UPLINK.to_owned(),
                direction: Direction::Ingress,
                hook,
                policy: Some(POLICY),
                tag: None,
                steering_mark: None,
                validate: Validate::default(),
                bpffs: bpffs.clone().into(),
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
    let output = Command::new("setpriv")
        .args([
            "--no-new-privs",
            "--bounding-set=-all,+bpf,+perfmon,+net_admin",
            "--",
        ])
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "capabilities::three_capabilities_are_enough_to_attach_replace_and_detach",
        ])
        .env(BPFFS, rig.bpffs())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    assert!(stdout.contains("1 passed"), "{stdout}");
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

//! What another ABI version of neighsteer attached.

use std::fs;

use neighsteer::datapath::{self, AttachError, AttachOptions, Hook, Mode, pins};

use crate::{errors::nothing_is_attached, rig::*};

#[test]
fn an_attachment_of_another_version_is_found_under_a_former_name() {
    const RENAMED: &str = "renamed";
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    for hook in [Hook::Tc, Hook::Xdp] {
        if hook == Hook::Tc && tc_mode() == Mode::Clsact {
            continue;
        }
        rig.attach(hook);
        let other = bpffs.join("neighsteer/v2/uplink%2e5");
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::rename(rig.pins(), &other).unwrap();
        ip(&["link", "set", UPLINK, "down"]);
        ip(&["link", "set", UPLINK, "name", RENAMED]);
        let error = datapath::attach(&AttachOptions {
            interface: RENAMED.to_owned(),
            ..rig.options(hook)
        })
        .unwrap_err();
        assert!(matches!(error, AttachError::OtherAbi { .. }), "{error}");
        assert!(error.to_string().contains("v2/uplink"), "{error}");
        let all = pins::interfaces_of_every_version(&bpffs).unwrap();
        assert_eq!(Vec::from_iter(all), [RENAMED]);
        assert!(pins::other_version(&bpffs, RENAMED).unwrap().is_some());

        assert!(datapath::detach(RENAMED, &bpffs).unwrap());
        assert!(rig.is_clean());
        ip(&["link", "set", RENAMED, "name", UPLINK]);
        ip(&["link", "set", UPLINK, "up"]);
        nothing_is_attached();
    }
}

#[test]
fn what_cannot_be_removed_of_another_version_keeps_nothing_attached() {
    let Some(rig) = Rig::new() else { return };
    for hook in [Hook::Tc, Hook::Xdp] {
        for version in ["v2", "v4"] {
            let directory = rig
                .bpffs()
                .join(format!("neighsteer/{version}/uplink%2e5/of-that-version"));
            rig.attach(hook);
            fs::create_dir_all(&directory).unwrap();
            let error = datapath::detach(UPLINK, &rig.bpffs()).unwrap_err();
            assert!(error.to_string().contains("of-that-version"), "{error}");
            assert!(!rig.pins().exists());
            nothing_is_attached();
            fs::remove_dir(directory).unwrap();
        }
    }
}

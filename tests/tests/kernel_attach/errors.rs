//! Each fault is one clear line, and leaves nothing attached.

use std::{env, fs, path::PathBuf, process::Command};

use aya::maps::{HashMap, MapData, PerCpuHashMap};
use neighsteer::datapath::{
    self, AttachError, AttachOptions, DetachError, Direction, Hook, Mode, ReadError, load,
};

use neighsteer_common::{Validate, abi};

use crate::rig::*;

fn refused(rig: &Rig, hook: Hook) -> String {
    chain(&datapath::attach(&rig.options(hook)).unwrap_err())
}

fn shown() -> String {
    run("bpftool", &["net", "show", "dev", UPLINK])
}

pub fn nothing_is_attached() {
    let shown = shown();
    assert!(!shown.contains("ingress"), "{shown}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let Some(rig) = Rig::new() else { return };
    let mut options = rig.options(Hook::Tc);
    options.interface = "eth7".to_owned();
    let error = datapath::attach(&options).unwrap_err();
    assert!(matches!(error, AttachError::NoInterface { .. }));
    assert_eq!(
        error.to_string(),
        "there is no interface eth7 in this network namespace"
    );
    assert!(!rig.bpffs().exists());
}

#[test]
fn a_pin_of_another_shape_is_refused_and_both_shapes_are_named() {
    let Some(rig) = Rig::new() else { return };
    rig.attach(Hook::Tc);
    rig.detach();
    fs::create_dir_all(rig.pins()).unwrap();
    let pin = rig.pins().join("counters");

    let other = HashMap::<MapData, u32, u64>::create(64, 0).unwrap();
    other.pin(&pin).unwrap();
    let error = refused(&rig, Hook::Tc);
    for shape in [
        "a hash with 4-byte keys, 8-byte values and 64 entries",
        "not a per-CPU hash with 8-byte keys, 24-byte values and 512 entries",
    ] {
        assert!(error.contains(shape), "{error}");
    }
    let error = datapath::counters(UPLINK, &rig.bpffs()).unwrap_err();
    assert!(matches!(error, ReadError::CountersShape { .. }), "{error}");
    fs::remove_file(&pin).unwrap();

    // Right in all but the number of entries.
    let small = PerCpuHashMap::<MapData, [u32; 2], [u64; 3]>::create(64, 0).unwrap();
    small.pin(&pin).unwrap();
    let error = refused(&rig, Hook::Xdp);
    assert!(error.contains("64 entries, not a"), "{error}");
    assert_eq!(entries(&rig.pins()), 1, "the foreign pin stays");
    nothing_is_attached();
}

#[test]
fn an_attachment_of_another_abi_version_is_refused() {
    let Some(rig) = Rig::new() else { return };
    rig.attach(Hook::Tc);
    let other = rig.bpffs().join("neighsteer/v7/uplink%2e5");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::rename(rig.pins(), &other).unwrap();
    let before = shown();
    let error = refused(&rig, Hook::Tc);
    assert_eq!(shown(), before, "nothing else is attached");
    assert!(error.contains("another ABI version"), "{error}");
    assert!(error.contains("v7"), "{error}");
    // It is taken off all the same, whichever version made it.
    assert!(rig.detach());
    assert!(rig.is_clean());
    nothing_is_attached();
    rig.attach(Hook::Tc);
}

#[test]
fn an_object_of_another_abi_version_is_refused() {
    let Some(rig) = Rig::new() else { return };
    let mut object = load::OBJECT.to_vec();
    let name = abi::SETTINGS.as_bytes();
    let mut at = 0;
    while let Some(start) = object[at..].windows(name.len()).position(|it| it == name) {
        at += start + name.len();
        object[at - 1] = b'9';
    }
    let error = datapath::attach::attach_object(&rig.options(Hook::Tc), &object).unwrap_err();
    assert!(matches!(error, AttachError::ObjectAbi { .. }), "{error}");
    assert!(rig.is_clean());
    nothing_is_attached();
}

#[test]
fn another_xdp_program_is_not_replaced() {
    let Some(rig) = Rig::new() else { return };
    rig.attach(Hook::Xdp);
    // The same program, but in a bpffs that this one does not know.
    let mut options = rig.options(Hook::Xdp);
    options.bpffs = rig.second_bpffs();
    let error = datapath::attach(&options).unwrap_err();
    assert!(
        matches!(error, AttachError::XdpBusy { .. }),
        "{}",
        chain(&error)
    );
    assert!(!options.bpffs.join("neighsteer").exists());
    assert_eq!(entries(&rig.pins()), pin_names(Mode::XdpNative).len());
}

#[test]
fn a_place_that_cannot_hold_bpffs_is_named() {
    let Some(rig) = Rig::new() else { return };
    let file = rig.bpffs();
    fs::write(&file, "").unwrap();
    let error = datapath::attach(&rig.options(Hook::Tc)).unwrap_err();
    assert!(matches!(error, AttachError::Bpffs { .. }), "{error}");
    nothing_is_attached();
}

/// Set for the process that has no capabilities.
const WITHOUT_CAPABILITIES: &str = "NEIGHSTEER_TEST_WITHOUT_CAPABILITIES";

#[test]
fn a_process_without_capabilities_is_told_which_it_lacks() {
    if env::var_os(WITHOUT_CAPABILITIES).is_some() {
        let options = AttachOptions {
            interface: "lo".to_owned(),
            direction: Direction::Ingress,
            hook: Hook::Tc,
            policy: None,
            tag: None,
            steering_mark: None,
            validate: Validate::default(),
            bpffs: PathBuf::from("/nonexistent"),
            clsact: false,
        };
        let error = datapath::attach(&options).unwrap_err();
        assert!(matches!(error, AttachError::Permission { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")
        );
        let error = datapath::detach("lo", &options.bpffs).unwrap_err();
        assert!(matches!(error, DetachError::Permission { .. }), "{error}");
        let error = datapath::counters("lo", &options.bpffs).unwrap_err();
        assert!(matches!(error, ReadError::Permission { .. }), "{error}");
        return;
    }
    // The namespaces of the rig keep the child from the machine's own interfaces.
    let Some(_rig) = Rig::new() else { return };
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", "--"])
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "errors::a_process_without_capabilities_is_told_which_it_lacks",
        ])
        .env(WITHOUT_CAPABILITIES, "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    assert!(stdout.contains("1 passed"), "{stdout}");
}

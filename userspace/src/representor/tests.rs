//! Discovery over made-up sysfs roots: how boards and simulators lay theirs out, and how it goes wrong.

use std::{fs, os::unix::ffi::OsStrExt as _, path::Path, sync::Arc};

use super::*;

/// A file below `class/net`.
enum File {
    Text(&'static str, &'static str),
    Bytes(&'static str, &'static [u8]),
    Long(&'static str),
    /// A directory where a file should be: whoever runs the tests may read every file.
    Directory(&'static str),
    Fifo(&'static str),
}

use File::{Bytes, Directory, Fifo, Long, Text};

impl File {
    fn make(&self, root: &Path) {
        let make = |path: &str, bytes: &[u8]| {
            let path = root.join("class/net").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        match self {
            Text(path, text) => make(path, text.as_bytes()),
            Bytes(path, bytes) => make(path, bytes),
            Long(path) => make(path, &vec![b'p'; 1 << 20]),
            Directory(path) => fs::create_dir_all(root.join("class/net").join(path)).unwrap(),
            Fifo(path) => {
                let path = root.join("class/net").join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
            }
        }
    }
}

struct Layout {
    what: &'static str,
    files: &'static [File],
    /// The bridge's ordinary ports.
    ports: &'static [&'static str],
    named: &'static [&'static str],
    /// The port that leads to the host, or a part of the error.
    found: Result<&'static str, &'static str>,
    /// Ports that may be the uplink.
    uplinks: &'static [&'static str],
}

/// Two switches, as of a card with two ports.
const SWITCH_0: &str = "1c34da0003a1b2c0\n";
const SWITCH_1: &str = "1c34da0003a1b2c1\n";

const BLUEFIELD_2: &[File] = &[
    Text("p0/phys_switch_id", SWITCH_0),
    Text("p0/phys_port_name", "p0\n"),
    Text("pf0hpf/phys_switch_id", SWITCH_0),
    Text("pf0hpf/phys_port_name", "pf0hpf\n"),
    Text("pf0vf0/phys_switch_id", SWITCH_0),
    Text("pf0vf0/phys_port_name", "pf0vf0\n"),
    Text("en3f0pf0sf0/phys_switch_id", SWITCH_0),
    Text("en3f0pf0sf0/phys_port_name", "pf0sf0\n"),
    Text("oob_net0/address", "02:00:00:00:00:01\n"),
];

const BLUEFIELD_3: &[File] = &[
    Text("p0/phys_switch_id", SWITCH_0),
    Text("p0/phys_port_name", "p0\n"),
    Text("pf0hpf/phys_switch_id", SWITCH_0),
    Text("pf0hpf/phys_port_name", "c1pf0\n"),
    Text("pf0vf3/phys_switch_id", SWITCH_0),
    Text("pf0vf3/phys_port_name", "c1pf0vf3\n"),
];

const TWO_PFS: &[File] = &[
    Text("p0/phys_switch_id", SWITCH_0),
    Text("p0/phys_port_name", "p0\n"),
    Text("p1/phys_switch_id", SWITCH_1),
    Text("p1/phys_port_name", "p1\n"),
    Text("pf0hpf/phys_switch_id", SWITCH_0),
    Text("pf0hpf/phys_port_name", "c1pf0\n"),
    Text("pf1hpf/phys_switch_id", SWITCH_1),
    Text("pf1hpf/phys_port_name", "c1pf1\n"),
];

const SRIOV: &[File] = &[
    Text("enp3s0f0/phys_switch_id", SWITCH_0),
    Text("enp3s0f0/phys_port_name", "p0\n"),
    Text("enp3s0f0_2/phys_switch_id", SWITCH_0),
    Text("enp3s0f0_2/phys_port_name", "pf0vf2\n"),
    Text("enp3s0f0_3/phys_switch_id", SWITCH_0),
    Text("enp3s0f0_3/phys_port_name", "3\n"),
];

const LAYOUTS: &[Layout] = &[
    Layout {
        what: "BlueField-2: the PF goes before VFs and SFs",
        files: BLUEFIELD_2,
        ports: &["en3f0pf0sf0", "p0", "pf0hpf", "pf0vf0"],
        named: &[],
        found: Ok("pf0hpf"),
        uplinks: &["p0"],
    },
    Layout {
        what: "BlueField-3: names with the host's controller",
        files: BLUEFIELD_3,
        ports: &["p0", "pf0hpf", "pf0vf3"],
        named: &[],
        found: Ok("pf0hpf"),
        uplinks: &["p0"],
    },
    Layout {
        what: "BlueField-3: a VF alone is the host's",
        files: BLUEFIELD_3,
        ports: &["p0", "pf0vf3"],
        named: &[],
        found: Ok("pf0vf3"),
        uplinks: &["p0"],
    },
    Layout {
        what: "a VF that was named goes before the PF",
        files: BLUEFIELD_2,
        ports: &["p0", "pf0hpf", "pf0vf0"],
        named: &["pf0vf0"],
        found: Ok("pf0vf0"),
        uplinks: &["p0"],
    },
    Layout {
        what: "two PFs on one bridge: the first by name",
        files: TWO_PFS,
        ports: &["pf1hpf", "p1", "pf0hpf", "p0"],
        named: &[],
        found: Ok("pf0hpf"),
        uplinks: &["p1", "p0"],
    },
    Layout {
        what: "two PFs on the bridge of the second port: that of the uplink's switch",
        files: TWO_PFS,
        ports: &["p1", "pf0hpf", "pf1hpf"],
        named: &[],
        found: Ok("pf1hpf"),
        uplinks: &["p1"],
    },
    Layout {
        what: "two PFs and no uplink of a switch, such as a bond",
        files: TWO_PFS,
        ports: &["bond0", "pf0hpf", "pf1hpf"],
        named: &[],
        found: Ok("pf0hpf"),
        uplinks: &["bond0"],
    },
    Layout {
        what: "SR-IOV: the only VF",
        files: SRIOV,
        ports: &["enp3s0f0", "enp3s0f0_3"],
        named: &[],
        found: Ok("enp3s0f0_3"),
        uplinks: &["enp3s0f0"],
    },
    Layout {
        what: "SR-IOV: several VFs",
        files: SRIOV,
        ports: &["enp3s0f0", "enp3s0f0_2", "enp3s0f0_3"],
        named: &[],
        found: Err("any of enp3s0f0_2, enp3s0f0_3: name its port by --host-representor"),
        uplinks: &["enp3s0f0"],
    },
    Layout {
        what: "SR-IOV: several VFs, one named for this bridge and one for another",
        files: SRIOV,
        ports: &["enp3s0f0", "enp3s0f0_2", "enp3s0f0_3"],
        named: &["br-ex=enp3s0f0_2", "br-up=enp3s0f0_3"],
        found: Ok("enp3s0f0_2"),
        uplinks: &["enp3s0f0"],
    },
    Layout {
        what: "a simulator's lanes, by number; nothing in sysfs but what any device has",
        files: &[
            Text("rep0-10/address", "52:54:00:00:00:0a\n"),
            Text("rep0-3/address", "52:54:00:00:00:03\n"),
            Text("eth0/address", "52:54:00:00:00:01\n"),
        ],
        ports: &["eth0", "rep0-10", "rep0-3"],
        named: &[],
        found: Ok("rep0-3"),
        uplinks: &["eth0"],
    },
    Layout {
        what: "a simulator's lane by its phys_port_name",
        files: &[
            Text("sim3/phys_switch_id", "00"),
            Text("sim3/phys_port_name", "rep0-3"),
        ],
        ports: &["eth0", "sim3"],
        named: &[],
        found: Ok("sim3"),
        uplinks: &["eth0"],
    },
    Layout {
        what: "no sysfs at all, as in a container: nothing can be told",
        files: &[],
        ports: &["p0", "pf0hpf"],
        named: &[],
        found: Err(" is no sysfs: mount it there, or name it by --sysfs, pf0hpf: "),
        uplinks: &["p0", "pf0hpf"],
    },
    Layout {
        what: "no sysfs at all, and a name",
        files: &[],
        ports: &["p0", "pf0hpf"],
        named: &["pf0hpf"],
        found: Ok("pf0hpf"),
        uplinks: &["p0"],
    },
    Layout {
        what: "legacy mode: port names, no switch",
        files: &[
            Text("p0/phys_port_name", "p0\n"),
            Text("pf0vf0/phys_port_name", "pf0vf0\n"),
            Text("pf0vf0/phys_switch_id", "\n"),
        ],
        ports: &["p0", "pf0vf0"],
        named: &[],
        found: Err("add the host's representor to the bridge"),
        uplinks: &["p0", "pf0vf0"],
    },
    Layout {
        what: "a switch's port without a name",
        files: &[Text("pf0hpf/phys_switch_id", SWITCH_0)],
        ports: &["pf0hpf"],
        named: &[],
        found: Err("pf0hpf: it is a port of switch 1c34da0003a1b2c0 without phys_port_name"),
        uplinks: &["pf0hpf"],
    },
    Layout {
        what: "odd names beside a good one cost themselves only",
        files: &[
            Text("odd/phys_switch_id", SWITCH_0),
            Text("odd/phys_port_name", "pf0vfx"),
            Text("rep/phys_switch_id", SWITCH_0),
            Text("rep/phys_port_name", "pf0vf1"),
        ],
        ports: &["odd", "rep"],
        named: &[],
        found: Ok("rep"),
        uplinks: &["odd"],
    },
    Layout {
        what: "an odd name alone is repeated",
        files: &[
            Text("odd/phys_switch_id", SWITCH_0),
            Text("odd/phys_port_name", "pf0vfx"),
        ],
        ports: &["odd"],
        named: &[],
        found: Err("odd: its phys_port_name \"pf0vfx\" is of no known form"),
        uplinks: &["odd"],
    },
    Layout {
        what: "a file that cannot be read is named",
        files: &[Directory("pf0hpf/phys_switch_id")],
        ports: &["pf0hpf"],
        named: &[],
        found: Err("class/net/pf0hpf/phys_switch_id cannot be read: Is a directory"),
        uplinks: &["pf0hpf"],
    },
    Layout {
        what: "bytes that are no text",
        files: &[
            Text("pf0hpf/phys_switch_id", SWITCH_0),
            Bytes("pf0hpf/phys_port_name", b"pf0\xff\xfe"),
        ],
        ports: &["pf0hpf"],
        named: &[],
        found: Err("class/net/pf0hpf/phys_port_name holds no name"),
        uplinks: &["pf0hpf"],
    },
    Layout {
        what: "control characters",
        files: &[
            Text("pf0hpf/phys_switch_id", SWITCH_0),
            Text("pf0hpf/phys_port_name", "pf0\u{1b}[2Jhpf"),
        ],
        ports: &["pf0hpf"],
        named: &[],
        found: Err("class/net/pf0hpf/phys_port_name holds no name"),
        uplinks: &["pf0hpf"],
    },
    Layout {
        what: "a file far larger than a page",
        files: &[Long("pf0hpf/phys_switch_id")],
        ports: &["pf0hpf"],
        named: &[],
        found: Err("class/net/pf0hpf/phys_switch_id holds no name"),
        uplinks: &["pf0hpf"],
    },
    Layout {
        what: "a FIFO without a writer, for which nobody waits",
        files: &[Fifo("pf0hpf/phys_switch_id")],
        ports: &["pf0hpf"],
        named: &[],
        found: Err("pf0hpf: no phys_switch_id"),
        uplinks: &["pf0hpf"],
    },
    Layout {
        what: "a bridge's row may say anything: no file outside is looked at",
        files: &[
            Text("../../phys_switch_id", SWITCH_0),
            Text("../../phys_port_name", "pf0\n"),
        ],
        ports: &["../..", "..", "", "a/b", "far-too-long-for-an-interface"],
        named: &[],
        found: Err("none of its ports leads to the host"),
        uplinks: &["../..", "..", "", "a/b", "far-too-long-for-an-interface"],
    },
    Layout {
        what: "the named one is on no bridge",
        files: BLUEFIELD_2,
        ports: &["p0", "pf0vf0"],
        named: &["pf0hpf"],
        found: Err(
            "the host's representor pf0hpf (--host-representor) is no port of it: it has p0, pf0vf0;",
        ),
        uplinks: &["p0"],
    },
    Layout {
        what: "a bridge without ports",
        files: BLUEFIELD_2,
        ports: &[],
        named: &[],
        found: Err("none of its ports leads to the host (no port)"),
        uplinks: &[],
    },
];

fn known(root: &Path, ports: &[&str], named: &[&str]) -> Representors {
    let named = named.iter().map(|text| text.parse().unwrap());
    let mut representors = Representors::new(named.collect());
    for port in ports {
        representors.learn(&Arc::from(*port), read(root, port));
    }
    representors
}

#[test]
fn the_hosts_port_is_found_in_every_layout_or_the_error_says_what_to_do() {
    for layout in LAYOUTS {
        let root = tempfile::tempdir().unwrap();
        for file in layout.files {
            file.make(root.path());
        }
        let representors = known(root.path(), layout.ports, layout.named);
        let found = representors.host_of("br-ex", true, layout.ports);
        let what = layout.what;
        match (found, layout.found) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{what}"),
            (Err(error), Err(wanted)) => {
                let error = error.to_string();
                assert!(error.contains(wanted), "{what}: {error}");
            }
            (found, wanted) => panic!("{what}: {found:?} instead of {wanted:?}"),
        }
        let uplinks: Vec<&str> = layout.ports.to_vec();
        let uplinks: Vec<&str> = uplinks
            .into_iter()
            .filter(|port| !representors.faces_host(port))
            .collect();
        assert_eq!(uplinks, layout.uplinks, "uplinks of: {what}");
    }
}

#[test]
fn a_name_without_a_bridge_is_the_default_networks() {
    let root = tempfile::tempdir().unwrap();
    for file in TWO_PFS {
        file.make(root.path());
    }
    let ports = ["p1", "pf0hpf", "pf1hpf"];
    let representors = known(root.path(), &ports, &["pf0hpf"]);
    assert_eq!(representors.host_of("br-ex", true, &ports), Ok("pf0hpf"));
    assert_eq!(representors.host_of("br-up", false, &ports), Ok("pf1hpf"));
}

#[test]
fn a_named_interface_is_followed_to_its_next_name_and_back() {
    let mut representors = Representors::new(["rep0-0".parse().unwrap()].into_iter().collect());
    let [old, new]: [Arc<str>; 2] = ["rep0-0".into(), "host0".into()];
    representors.rename(&old, &new);
    assert_eq!(
        representors.host_of("br-ex", true, &["host0", "p0"]),
        Ok("host0")
    );
    assert!(representors.faces_host("host0") && !representors.faces_host("rep0-0"));
    representors.rename(&old, &old);
    assert_eq!(
        representors.host_of("br-ex", true, &["p0", "rep0-0"]),
        Ok("rep0-0")
    );
}

#[test]
fn what_was_forgotten_is_known_no_more() {
    let root = tempfile::tempdir().unwrap();
    for file in BLUEFIELD_2 {
        file.make(root.path());
    }
    let ports = ["p0", "pf0hpf"];
    let mut representors = known(root.path(), &ports, &[]);
    representors.forget("pf0hpf");
    assert!(!representors.knows("pf0hpf"));
    assert!(representors.host_of("br-ex", true, &ports).is_err());
}

#[test]
fn names_are_parsed_with_or_without_a_bridge() {
    let parse = |text: &str| text.parse::<HostRepresentor>();
    assert_eq!(parse("br-up=pf1vf0").unwrap().to_string(), "br-up=pf1vf0");
    assert_eq!(parse("pf0hpf").unwrap().bridge, None);
    for text in ["", "=", "br-ex=", "=pf0hpf", "a=b=c", "a b", "a/b", "a,b"] {
        assert!(parse(text).is_err(), "{text:?}");
    }
    let bytes = std::ffi::OsStr::from_bytes(b"pf0hpf");
    assert_eq!(
        parse(bytes.to_str().unwrap()).unwrap().to_string(),
        "pf0hpf"
    );
}

//! A veth pair in a network and a mount namespace that end with the test's thread.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use aya::util::KernelVersion;
pub use neighsteer::agent::chain;
use neighsteer::datapath::{self, AttachOptions, Attached, Counter, Direction, Hook, Mode};
use neighsteer_common::{Decision, Kind, NodeAddresses, Policy, Validate, abi};
pub use neighsteer_tests::tools::{ip, run};
use neighsteer_tests::{kernel, lab::wait_until, packet_socket::PacketSocket};
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
};

/// The end that programs are attached to.
pub const UPLINK: &str = "uplink.5";
/// The end that frames are sent from.
pub const OUTSIDE: &str = "outside";

pub const BRIDGE_MAC: [u8; 6] = [0x02, 0x42, 0xac, 0x12, 0x00, 0x0f];
pub const SENDER_MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
pub const BROADCAST: [u8; 6] = [0xff; 6];

pub const POLICY: Policy = Policy {
    bridge_mac: BRIDGE_MAC,
    gateway_vlan: None,
    node_addresses: NodeAddresses::NONE,
};

pub const DEADLINE: Duration = Duration::from_secs(10);

pub struct Rig {
    /// Holds the mount point of this test's bpffs.
    directory: tempfile::TempDir,
}

impl Rig {
    /// A fresh pair of interfaces, or `None` where this machine cannot have one.
    pub fn new() -> Option<Self> {
        if let Some(reason) = kernel::missing() {
            println!("SKIPPED: {reason}");
            return None;
        }
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
        // What is mounted here stays in this namespace.
        mount(
            None::<&str>,
            "/",
            None::<&str>,
            MsFlags::MS_REC | MsFlags::MS_PRIVATE,
            None::<&str>,
        )
        .unwrap();
        let rig = Self {
            // Without the dot of its default prefix, which libbpf would change.
            directory: tempfile::Builder::new()
                .prefix("neighsteer-")
                .tempdir()
                .unwrap(),
        };
        rig.make_pair();
        Some(rig)
    }

    pub fn make_pair(&self) {
        // The names that the receiving end gives its own traffic do not matter: no IPv6 there.
        for name in [UPLINK, OUTSIDE] {
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        }
        fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        ip(&[
            "link", "add", OUTSIDE, "mtu", "9000", "type", "veth", "peer", "name", UPLINK, "mtu",
            "9000",
        ]);
        for name in [UPLINK, OUTSIDE] {
            ip(&["link", "set", name, "up"]);
        }
    }

    /// Not mounted before the first attachment.
    pub fn bpffs(&self) -> PathBuf {
        self.directory.path().join("bpf")
    }

    /// Another one, likewise.
    pub fn second_bpffs(&self) -> PathBuf {
        self.directory.path().join("elsewhere")
    }

    pub fn pins(&self) -> PathBuf {
        self.version().join("uplink%2e5")
    }

    /// The directory of this ABI version.
    pub fn version(&self) -> PathBuf {
        let version = abi::VERSION;
        self.bpffs().join(format!("neighsteer/v{version}"))
    }

    /// Whether no pin of ours is left.
    pub fn is_clean(&self) -> bool {
        !self.bpffs().join("neighsteer").exists()
    }

    pub fn options(&self, hook: Hook) -> AttachOptions {
        AttachOptions {
            interface: UPLINK.to_owned(),
            direction: Direction::Ingress,
            hook,
            policy: Some(POLICY),
            tag: None,
            steering_mark: None,
            validate: Validate::default(),
            bpffs: self.bpffs(),
            clsact: false,
        }
    }

    pub fn attach(&self, hook: Hook) -> Attached {
        datapath::attach(&self.options(hook)).unwrap_or_else(|error| panic!("{}", chain(&error)))
    }

    pub fn detach(&self) -> bool {
        datapath::detach(UPLINK, &self.bpffs()).unwrap()
    }

    pub fn counters(&self) -> Vec<Counter> {
        datapath::counters(UPLINK, &self.bpffs()).unwrap()
    }

    /// Packets of one kind and decision so far.
    pub fn packets(&self, kind: Kind, decision: Decision) -> u64 {
        self.counters()
            .iter()
            .filter(|counter| counter.kind == kind && counter.decision == decision)
            .map(|counter| counter.packets)
            .sum()
    }

    /// All packets so far.
    pub fn all_packets(&self) -> u64 {
        self.counters().iter().map(|counter| counter.packets).sum()
    }

    /// Waits until a counter stands at `expected`, which it must not pass.
    pub fn expect(&self, kind: Kind, decision: Decision, expected: u64) {
        let probe = || match self.packets(kind, decision) {
            packets if packets == expected => Ok(()),
            packets => Err(format!("{packets}; all: {:?}", self.counters())),
        };
        wait_until(DEADLINE, format!("{expected} × {kind} {decision}"), probe)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A directory that is mounted on cannot be removed; it may never have been mounted on.
        for mount in [self.bpffs(), self.second_bpffs()] {
            while umount2(&mount, MntFlags::MNT_DETACH).is_ok() {}
        }
    }
}

/// Set for the process that has only the three capabilities; names its bpffs.
const BPFFS: &str = "NEIGHSTEER_TEST_BPFFS";

/// The bpffs, in the process that [`again_with_three_capabilities`] starts.
pub fn bpffs_of_three_capabilities() -> Option<PathBuf> {
    env::var_os(BPFFS).map(PathBuf::from)
}

/// Runs a test again in a process that has no more than the files in deploy/ grant.
pub fn again_with_three_capabilities(test: &str, bpffs: &Path) {
    let output = Command::new("setpriv")
        .args([
            "--no-new-privs",
            "--bounding-set=-all,+bpf,+perfmon,+net_admin",
            "--",
        ])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(BPFFS, bpffs)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    assert!(stdout.contains("1 passed"), "{stdout}");
}

/// How tc ingress is attached to on this kernel.
pub fn tc_mode() -> Mode {
    if KernelVersion::current().unwrap() >= KernelVersion::new(6, 6, 0) {
        Mode::Tcx
    } else {
        Mode::Clsact
    }
}

/// The names of the pins that an attachment has.
pub fn pin_names(mode: Mode) -> &'static [&'static str] {
    match mode {
        // A filter has no link.
        Mode::Clsact => &["counters", "checks", "program"],
        Mode::Tcx | Mode::XdpNative | Mode::XdpGeneric => {
            &["counters", "checks", "program", "link"]
        }
    }
}

/// A socket on the outside.
pub fn sender() -> PacketSocket {
    PacketSocket::open(OUTSIDE).unwrap()
}

/// Sends a frame from the outside.
pub fn send(frame: &[u8]) {
    sender().send(frame).unwrap();
}

/// How many entries a directory has; 0 where it is missing.
pub fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

pub fn arp_reply(destination: [u8; 6]) -> Vec<u8> {
    arp_reply_behind(destination, &[])
}

/// An ARP reply behind VLAN tags, as `(TPID, TCI)`.
pub fn arp_reply_behind(destination: [u8; 6], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = [destination, SENDER_MAC].concat();
    for (tpid, tci) in tags {
        frame.extend(tpid.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    frame.extend(SENDER_MAC);
    frame.extend([172, 18, 0, 1]);
    frame.extend(BRIDGE_MAC);
    frame.extend([172, 18, 0, 3]);
    frame
}

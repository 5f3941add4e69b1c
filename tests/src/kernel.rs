//! The eBPF programs in the running kernel, for tests: by `BPF_PROG_TEST_RUN`, and on a veth pair.

use std::{env, io, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, ensure};
use aya::{
    Ebpf, EbpfLoader, TestRun as _, TestRunOptions,
    maps::{Array, PerCpuHashMap},
    programs::{SchedClassifier, TcAttachType, Xdp, tc},
};
use neighsteer_common::{
    Policy, Validate, Verdict,
    abi::{
        self, CheckCounts, CheckKey, CounterKey, CounterValue, Direction, ObservedVerdict, Settings,
    },
};

use crate::{frames::hex, lab::wait_until, packet_socket::PacketSocket};

/// The object that ships.
pub const SHIPPED: &str = "neighsteer.bpf.o";
/// The object whose programs hand out their verdicts.
pub const BENCH: &str = "neighsteer-bench.bpf.o";

/// Length of `struct __sk_buff`, and where `mark` is in it.
const SK_BUFF: usize = 192;
const MARK: std::ops::Range<usize> = 8..12;

/// Whether `BPF_PROG_TEST_RUN` takes a frame: it wants an Ethernet header, and a whole IP header
/// where that one announces it.
#[must_use]
pub fn can_run(frame: &[u8]) -> bool {
    let least = match frame.get(12..14) {
        None => return false,
        Some([0x08, 0x00]) => 14 + 20,
        Some([0x86, 0xdd]) => 14 + 40,
        Some(_) => 14,
    };
    frame.len() >= least
}

/// An object of `cargo xtask build-ebpf`.
#[must_use]
pub fn object(name: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || {
            [env!("CARGO_MANIFEST_DIR"), "..", "target"]
                .iter()
                .collect()
        },
        PathBuf::from,
    );
    target.join("bpf").join(name)
}

/// Why the programs cannot run here, if so.
#[must_use]
pub fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("loading eBPF programs needs root".to_owned());
    }
    [SHIPPED, BENCH]
        .into_iter()
        .map(object)
        .find(|object| !object.exists())
        .map(|object| format!("{} is missing: cargo xtask build-ebpf", object.display()))
}

/// One object with its settings, its programs loaded as they are asked for.
pub struct Programs(Ebpf);

impl Programs {
    /// Reads an object and creates its maps.
    ///
    /// # Errors
    /// Where the kernel or aya refuses it.
    pub fn open(name: &str, policy: Option<&Policy>, tag: Option<u32>) -> anyhow::Result<Self> {
        let validate = Validate::default();
        Self::open_with(
            name,
            &Settings::new(Direction::Ingress, policy, tag, validate),
        )
    }

    /// The same with settings as they are.
    ///
    /// # Errors
    /// Where the kernel or aya refuses it.
    pub fn open_with(name: &str, settings: &Settings) -> anyhow::Result<Self> {
        let path = object(name);
        let ebpf = EbpfLoader::new()
            .override_global(abi::SETTINGS, settings, true)
            .load_file(&path)
            .with_context(|| format!("cannot load {}", path.display()))?;
        Ok(Self(ebpf))
    }

    /// As plain bpftool or tc load it: settings untouched.
    ///
    /// # Errors
    /// Where the kernel or aya refuses it.
    pub fn open_plain(name: &str) -> anyhow::Result<Self> {
        Ok(Self(Ebpf::load_file(object(name))?))
    }

    /// Loads a tc program.
    ///
    /// # Errors
    /// Where there is none of the name, or the verifier refuses it.
    pub fn load_tc(&mut self, name: &str) -> anyhow::Result<&mut SchedClassifier> {
        let program = self.0.program_mut(name).with_context(|| no_program(name))?;
        let program: &mut SchedClassifier = program.try_into()?;
        program
            .load()
            .with_context(|| format!("cannot load {name}"))?;
        Ok(program)
    }

    /// Loads an XDP program.
    ///
    /// # Errors
    /// Where there is none of the name, or the verifier refuses it.
    pub fn load_xdp(&mut self, name: &str) -> anyhow::Result<&mut Xdp> {
        let program = self.0.program_mut(name).with_context(|| no_program(name))?;
        let program: &mut Xdp = program.try_into()?;
        program
            .load()
            .with_context(|| format!("cannot load {name}"))?;
        Ok(program)
    }

    /// Runs a loaded tc program once and checks that it left the frame as it was.
    ///
    /// # Errors
    /// Where it is not loaded, or the kernel refuses the run: see [`can_run`].
    pub fn run_tc(&self, name: &str, frame: &[u8]) -> anyhow::Result<Ran> {
        let program = self.0.program(name).with_context(|| no_program(name))?;
        let program: &SchedClassifier = program.try_into()?;
        let mut left = vec![0; frame.len()];
        let mut context = [0; SK_BUFF];
        let result = program
            .test_run(TestRunOptions {
                data_in: Some(frame),
                data_out: Some(&mut left),
                ctx_in: Some(&[0; SK_BUFF]),
                ctx_out: Some(&mut context),
                ..TestRunOptions::default()
            })
            .with_context(|| format!("{name} cannot run on {} bytes", frame.len()))?;
        ensure!(left == frame, "{name} changed the frame to {}", hex(&left));
        Ok(Ran {
            returned: result.return_value,
            mark: context[MARK].try_into().map_or(0, u32::from_ne_bytes),
        })
    }

    /// Runs a loaded XDP program once and checks that it left the frame as it was.
    ///
    /// # Errors
    /// Where it is not loaded, or the kernel refuses the run: see [`can_run`].
    pub fn run_xdp(&self, name: &str, frame: &[u8]) -> anyhow::Result<Ran> {
        let program = self.0.program(name).with_context(|| no_program(name))?;
        let program: &Xdp = program.try_into()?;
        let mut left = vec![0; frame.len()];
        let result = program
            .test_run(TestRunOptions {
                data_in: Some(frame),
                data_out: Some(&mut left),
                ..TestRunOptions::default()
            })
            .with_context(|| format!("{name} cannot run on {} bytes", frame.len()))?;
        ensure!(left == frame, "{name} changed the frame to {}", hex(&left));
        Ok(Ran {
            returned: result.return_value,
            mark: 0,
        })
    }

    /// What `COUNTERS` holds, summed over the CPUs; `last_seen_ns` is the latest.
    ///
    /// # Errors
    /// Where there is no such map or it cannot be read.
    pub fn counters(&self) -> anyhow::Result<Vec<(CounterKey, CounterValue)>> {
        let map = self
            .0
            .map(abi::COUNTERS)
            .context("the object counts nothing")?;
        let map = PerCpuHashMap::<_, CounterKey, CounterValue>::try_from(map)?;
        map.iter()
            .map(|entry| {
                let (key, values) = entry?;
                let sum = values
                    .iter()
                    .fold(CounterValue::default(), |sum, value| CounterValue {
                        packets: sum.packets + value.packets,
                        bytes: sum.bytes + value.bytes,
                        last_seen_ns: sum.last_seen_ns.max(value.last_seen_ns),
                    });
                Ok((key, sum))
            })
            .collect()
    }

    /// What `CHECKS` holds, summed over interfaces and CPUs.
    ///
    /// # Errors
    /// Where there is no such map or it cannot be read.
    pub fn checks(&self) -> anyhow::Result<CheckCounts> {
        let map = self
            .0
            .map(abi::CHECKS)
            .context("the object checks nothing")?;
        let map = PerCpuHashMap::<_, CheckKey, CheckCounts>::try_from(map)?;
        let mut sum = CheckCounts::default();
        for entry in map.iter() {
            let (_, values) = entry?;
            values.iter().for_each(|value| sum.add(value));
        }
        Ok(sum)
    }

    fn observed(&self) -> anyhow::Result<ObservedVerdict> {
        let map = self.0.map("OBSERVED").context("no map OBSERVED")?;
        Ok(Array::<_, ObservedVerdict>::try_from(map)?.get(&0, 0)?)
    }
}

/// What a program did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its return value.
    pub returned: u32,
    /// `skb->mark` afterwards; 0 for XDP, which has none.
    pub mark: u32,
}

impl Ran {
    /// The verdict that a program of [`BENCH`] packed into its return value, if it is one.
    #[must_use]
    pub fn verdict(self) -> Option<Verdict> {
        Verdict::unpack(self.returned)
    }
}

fn no_program(name: &str) -> String {
    format!("the object has no program {name}")
}

/// A veth pair with `tc_observe` on one end: a frame that leaves the other end goes the kernel's
/// ordinary way, which takes the outer tag off before tc.
pub struct ObservedVeth {
    sender: String,
    socket: PacketSocket,
    programs: Programs,
}

impl ObservedVeth {
    /// Makes the pair, quiet but for the frames of [`Self::verdict`].
    ///
    /// # Errors
    /// Where an interface, a socket or the program cannot be had.
    pub fn new(policy: &Policy) -> anyhow::Result<Self> {
        let id: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(6)
            .collect();
        let (sender, receiver) = (format!("nst{id}"), format!("nsr{id}"));
        ip(&format!(
            "link add {sender} mtu 9000 type veth peer name {receiver} mtu 9000"
        ))?;
        // From here on the pair is removed in every case.
        let mut programs = Programs::open(BENCH, Some(policy), None).inspect_err(|_| {
            let _ = ip(&format!("link del {sender}"));
        })?;
        let ready = prepare(&sender, &receiver, &mut programs).inspect_err(|_| {
            let _ = ip(&format!("link del {sender}"));
        });
        Ok(Self {
            socket: ready?,
            sender,
            programs,
        })
    }

    /// Sends one frame and says what the program saw: its verdict, and the frame's length as it is
    /// counted.
    ///
    /// # Errors
    /// Where the frame cannot be sent or does not arrive, alone, in time.
    pub fn verdict(&self, frame: &[u8]) -> anyhow::Result<(Verdict, u32)> {
        let before = self.programs.observed()?.frames;
        self.socket.send(frame)?;
        let seen = wait_until(Duration::from_secs(5), "the frame", || {
            let seen = self
                .programs
                .observed()
                .map_err(|error| error.to_string())?;
            if seen.frames > before {
                Ok(seen)
            } else {
                Err(format!("{} frames seen", seen.frames))
            }
        })?;
        ensure!(
            seen.frames == before + 1,
            "another frame came in between: {seen:?}"
        );
        let verdict = Verdict::unpack(seen.verdict)
            .with_context(|| format!("{:#x} is no verdict", seen.verdict))?;
        Ok((verdict, seen.length))
    }
}

impl Drop for ObservedVeth {
    fn drop(&mut self) {
        // The peer goes with it. Nobody is there to be told.
        let _ = ip(&format!("link del {}", self.sender));
    }
}

fn prepare(sender: &str, receiver: &str, programs: &mut Programs) -> anyhow::Result<PacketSocket> {
    for interface in [sender, receiver] {
        // No Router Solicitations and listener reports of the kernel's own.
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
        match std::fs::write(&path, "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        ip(&format!("link set {interface} up"))?;
    }
    // Already there on kernels without TCX only if something else made it.
    let _ = tc::qdisc_add_clsact(receiver);
    programs
        .load_tc("tc_observe")?
        .attach(receiver, TcAttachType::Ingress)?;
    Ok(PacketSocket::open(sender)?)
}

fn ip(arguments: &str) -> anyhow::Result<()> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .context("cannot run ip")?;
    ensure!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}

//! One virtual machine: QEMU, what it is started with, and how it ends.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use super::initramfs;
#[cfg(doc)]
use super::programs;
use crate::{exec, setup::kernels::Unpacked, workspace::Workspace};

/// Processors, and tests at a time.
const PROCESSORS: usize = 2;
/// What QEMU emulates them with: one thread, in turn. A thread for each would run code that the other
/// is patching (jump labels, ftrace) half old and half new, which no hardware does: 6.12 died of a
/// breakpoint that was gone already.
const ACCELERATOR: &str = "tcg,thread=single";
/// MiB.
pub(super) const MEMORY: usize = 2048;
/// How long one test program may take.
const PROGRAM: Duration = Duration::from_secs(600);
/// How long the machine may take to say its first word.
const BOOT: Duration = Duration::from_secs(180);
/// How long it may then be silent: a program's time and some more.
const SILENCE: Duration = PROGRAM.saturating_add(Duration::from_secs(60));
/// How long it may take to turn itself off.
const POWER_OFF: Duration = Duration::from_secs(60);
/// How long all may take.
const TOTAL: Duration = Duration::from_secs(1800);
/// How much of the log is shown when it failed.
const TAIL_LINES: usize = 40;

/// A machine that is ready to be turned on.
pub(super) struct Machine {
    qemu: Command,
    log: PathBuf,
}

/// How it went.
#[derive(Debug)]
pub(super) enum End {
    /// It turned itself off.
    Off,
    /// QEMU ended in another way.
    Died(ExitStatus),
    /// It was silent for too long, and was ended.
    Silent(Duration),
}

impl Machine {
    /// Makes what the machine boots from; `share` is what [`programs::lay_out`] made.
    ///
    /// # Errors
    /// When a module is missing, or a file cannot be written.
    pub(super) fn prepare(
        folder: &Path,
        kernel: &Unpacked,
        share: &Path,
        workspace: &Workspace,
        filter: Option<&str>,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let settings = [
            ("KERNEL", folder_name(&kernel.folder)),
            ("TREE", kernel.folder.display().to_string()),
            ("SHARE", share.display().to_string()),
            ("TARGET", workspace.target().display().to_string()),
            (
                "TESTS",
                workspace.root().join("tests").display().to_string(),
            ),
            ("LIMIT", PROGRAM.as_secs().to_string()),
            ("THREADS", PROCESSORS.to_string()),
            ("FILTER", filter.unwrap_or_default().to_owned()),
        ];
        let settings: String = settings
            .iter()
            .map(|(name, value)| format!("{name}={}\n", quoted(value)))
            .collect();
        let archive = folder.join("initramfs.cpio");
        initramfs::write(&archive, &folder.join("initramfs"), kernel, &settings)?;
        let log = folder.join("log");
        Ok(Self {
            qemu: qemu(&kernel.image(), &archive, &log),
            log,
        })
    }

    /// The kernel's log and what the guest's scripts print.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Turns the machine on and hands over each line of its results; it is off when this returns.
    ///
    /// # Errors
    /// When QEMU cannot be started.
    pub(super) fn run(mut self, mut line: impl FnMut(&str)) -> anyhow::Result<End> {
        let mut child = Running(
            self.qemu
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .with_context(|| format!("cannot run {}", exec::shown(&self.qemu)))?,
        );
        let results = child.0.stdout.take().context("QEMU has no output")?;
        let (sender, receiver) = mpsc::channel();
        let reading = thread::spawn(move || {
            each_line(results, |line| sender.send(line).is_ok());
        });
        let last = Instant::now() + TOTAL;
        let mut patience = BOOT;
        let end = loop {
            let left = last.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(patience.min(left)) {
                Ok(said) => {
                    patience = match said.as_str() {
                        "[done]" => POWER_OFF,
                        _ => SILENCE,
                    };
                    line(&said);
                }
                Err(RecvTimeoutError::Timeout) => break End::Silent(patience.min(left)),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.0.wait().context("cannot wait for QEMU")?;
                    break match status.success() {
                        true => End::Off,
                        false => End::Died(status),
                    };
                }
            }
        };
        drop(child);
        // Its pipe has ended with QEMU; a panic in it would have been one of this program's.
        let _ = reading.join();
        Ok(end)
    }
}

/// QEMU does not outlive this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended where this fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn qemu(image: &Path, initramfs: &Path, log: &Path) -> Command {
    // QEMU ends with this process, however that ends.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"]);
    command.args([
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]);
    // Where /dev/kvm exists it may still not work: emulation does everywhere.
    command.args(["-accel", ACCELERATOR, "-cpu", "max"]);
    command.args(["-smp", &PROCESSORS.to_string(), "-m", &MEMORY.to_string()]);
    command.arg("-kernel").arg(image);
    command.arg("-initrd").arg(initramfs);
    command.args([
        "-append",
        // A kernel that has found a fault of its own ends at once.
        "console=ttyS0 panic=-1 oops=panic mitigations=off nokaslr",
    ]);
    command.args([
        "-virtfs",
        "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
    ]);
    command
        .arg("-serial")
        .arg(format!("file:{}", log.display()));
    command.args([
        "-chardev",
        "stdio,id=results,signal=off",
        "-serial",
        "chardev:results",
    ]);
    command
}

/// As a shell reads it back.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

fn folder_name(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Until the end, or until somebody does not want more; the last line may have no end.
fn each_line(from: impl Read, mut line: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match from.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if !line(String::from_utf8_lossy(&bytes).trim_end().to_owned()) {
            return;
        }
    }
}

/// The last lines of a log.
pub(super) fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut tail = VecDeque::with_capacity(TAIL_LINES);
    for line in text.lines() {
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(format!("  {}\n", line.trim_end()));
    }
    tail.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_reads_back_what_it_was_told() {
        assert_eq!(quoted("/srv/it's here"), r"'/srv/it'\''s here'");
    }

    #[test]
    fn a_line_that_the_machine_did_not_end_is_shown_too() {
        let mut lines = Vec::new();
        each_line(&b"test a ... ok\r\ntest b ... "[..], |line| {
            lines.push(line);
            true
        });
        assert_eq!(lines, ["test a ... ok", "test b ..."]);
    }
}

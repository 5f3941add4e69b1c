//! An Open vSwitch of its own with dummy devices: real daemons, no privilege, no network.

use std::{
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{lab::wait_until, vm};

/// How long a daemon may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Nothing of the system's, and dummies in its place.
const DUMMIES: [&str; 2] = ["--enable-dummy=override", "--disable-system"];
/// Where Debian puts the schema of the Open_vSwitch database.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// ovsdb-server and ovs-vswitchd in a temporary directory; both end when it is dropped.
#[derive(Debug)]
pub struct DummySwitch {
    directory: TempDir,
    /// Which devices ovs-vswitchd has.
    devices: &'static [&'static str],
    database: Child,
    vswitchd: Option<Child>,
}

/// Why the switch does not work.
#[derive(Debug, thiserror::Error)]
pub enum DummySwitchError {
    /// A program could not be started.
    #[error("cannot run {program}")]
    Program {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("{command} failed ({status}): {message}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it printed.
        message: String,
    },
    /// A daemon did not get ready.
    #[error("nothing listens at {socket} after {PATIENCE:?}")]
    NotReady {
        /// The socket.
        socket: PathBuf,
    },
    /// The temporary directory could not be made.
    #[error("cannot make a temporary directory")]
    Directory(#[from] io::Error),
}

impl DummySwitch {
    /// Starts both daemons.
    ///
    /// # Errors
    /// Where Open vSwitch is not installed or does not start.
    pub fn start() -> Result<Self, DummySwitchError> {
        Self::start_with(&DUMMIES, &[])
    }

    /// Starts both daemons with the system's devices; the settings are those of the Open_vSwitch
    /// table.
    pub(crate) fn start_on_system(settings: &[&str]) -> Result<Self, DummySwitchError> {
        Self::start_with(&[], settings)
    }

    fn start_with(
        devices: &'static [&'static str],
        settings: &[&str],
    ) -> Result<Self, DummySwitchError> {
        let directory = tempfile::Builder::new().prefix("ovs-").tempdir()?;
        let database = directory.path().join("conf.db");
        run(Command::new("ovsdb-tool")
            .arg("create")
            .args([database.as_path(), Path::new(SCHEMA)]))?;
        let socket = directory.path().join("db.sock");
        let server = daemon(
            directory.path(),
            Command::new("ovsdb-server")
                .arg(format!("--remote=punix:{}", socket.display()))
                .arg(database),
            "ovsdb-server",
        )?;
        let mut switch = Self {
            directory,
            devices,
            database: server,
            vswitchd: None,
        };
        listening(&socket)?;
        switch.vsctl(&["--no-wait", "init"])?;
        if !settings.is_empty() {
            let set = ["--no-wait", "set", "Open_vSwitch", "."];
            switch.vsctl(&[&set, settings].concat())?;
        }
        switch.start_vswitchd()?;
        Ok(switch)
    }

    /// As [`DummySwitch::start`], reading two VLAN tags as ovn-controller has it. `None`, said as
    /// a skipped test says it, where Open vSwitch is not installed.
    ///
    /// # Errors
    /// Where it is installed and does not start.
    pub fn start_or_skip() -> Result<Option<Self>, DummySwitchError> {
        let switch = match Self::start() {
            Err(DummySwitchError::Program { program, source })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                println!("SKIPPED: {program} is not installed");
                return Ok(None);
            }
            started => started?,
        };
        switch.vsctl(&["set", "Open_vSwitch", ".", "other_config:vlan-limit=0"])?;
        Ok(Some(switch))
    }

    /// The run directory of ovs-vswitchd.
    #[must_use]
    pub fn run_directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts ovs-vswitchd and waits until its control socket accepts.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start_vswitchd(&mut self) -> Result<(), DummySwitchError> {
        let vswitchd = daemon(
            self.directory.path(),
            Command::new("ovs-vswitchd")
                .args(self.devices)
                .arg(self.remote()),
            "ovs-vswitchd",
        )?;
        let control = format!("ovs-vswitchd.{}.ctl", vswitchd.id());
        self.vswitchd = Some(vswitchd);
        listening(&self.directory.path().join(control))
    }

    /// Ends ovs-vswitchd at once, as a crash would: its sockets stay behind.
    pub fn kill_vswitchd(&mut self) {
        if let Some(mut vswitchd) = self.vswitchd.take() {
            end(&mut vswitchd);
        }
    }

    /// Makes a bridge with the given Ethernet address, which learns as a switch does.
    ///
    /// # Errors
    /// Where ovs-vsctl fails.
    pub fn add_bridge(&self, bridge: &str, mac: &str) -> Result<(), DummySwitchError> {
        let address = format!("other_config:hwaddr=\"{mac}\"");
        let fail_mode = "fail_mode=standalone";
        self.vsctl(&[
            "add-br",
            bridge,
            "--",
            "set",
            "bridge",
            bridge,
            fail_mode,
            "datapath_type=dummy",
            &address,
        ])
        .map(drop)
    }

    /// Adds dummy ports with the numbers that are given.
    ///
    /// # Errors
    /// Where ovs-vsctl fails.
    pub fn add_ports(&self, bridge: &str, ports: &[(&str, u16)]) -> Result<(), DummySwitchError> {
        let mut arguments: Vec<String> = Vec::new();
        for (name, ofport) in ports {
            let number = format!("ofport_request={ofport}");
            let words = [
                "--",
                "add-port",
                bridge,
                name,
                "--",
                "set",
                "interface",
                name,
            ];
            arguments.extend(words.map(str::to_owned));
            arguments.extend(["type=dummy".to_owned(), number]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.vsctl(&arguments).map(drop)
    }

    /// Runs ovs-vsctl, which waits until ovs-vswitchd has followed.
    ///
    /// # Errors
    /// Where it fails.
    pub fn vsctl(&self, arguments: &[&str]) -> Result<String, DummySwitchError> {
        let mut command = Command::new("ovs-vsctl");
        command
            .arg(format!("--db={}", self.remote()))
            .arg(format!("--timeout={}", vm::patience(PATIENCE).as_secs()))
            .args(arguments);
        run(&mut command)
    }

    /// Runs ovs-ofctl on a bridge: `options` and the subcommand before it, `arguments` after it.
    ///
    /// # Errors
    /// Where it fails.
    pub fn ofctl(
        &self,
        options: &[&str],
        bridge: &str,
        arguments: &[&str],
    ) -> Result<String, DummySwitchError> {
        let socket = self.directory.path().join(format!("{bridge}.mgmt"));
        let mut command = Command::new("ovs-ofctl");
        command
            .args(options)
            .arg(format!("unix:{}", socket.display()))
            .args(arguments);
        run(&mut command)
    }

    fn remote(&self) -> String {
        format!("unix:{}", self.directory.path().join("db.sock").display())
    }
}

impl Drop for DummySwitch {
    fn drop(&mut self) {
        self.kill_vswitchd();
        end(&mut self.database);
    }
}

/// Starts a daemon that logs to a file of its own and keeps everything else in `directory`.
fn daemon(directory: &Path, command: &mut Command, name: &str) -> Result<Child, DummySwitchError> {
    let file = |ending: &str| directory.join(format!("{name}.{ending}"));
    command
        .arg(format!("--pidfile={}", file("pid").display()))
        .arg(format!("--log-file={}", file("log").display()))
        .arg("-vconsole:off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, directory);
    }
    command.spawn().map_err(|source| DummySwitchError::Program {
        program: name.to_owned(),
        source,
    })
}

fn run(command: &mut Command) -> Result<String, DummySwitchError> {
    let Output {
        status,
        stdout,
        stderr,
    } = match command.output() {
        Ok(output) => output,
        Err(source) => {
            return Err(DummySwitchError::Program {
                program: command_line(command),
                source,
            });
        }
    };
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(DummySwitchError::Failed {
        command: command_line(command),
        status,
        message: String::from_utf8_lossy(&stderr).trim().to_owned(),
    })
}

fn command_line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn listening(socket: &Path) -> Result<(), DummySwitchError> {
    wait_until(PATIENCE, "a daemon to accept", || {
        UnixStream::connect(socket).map(drop)
    })
    .map_err(|_| DummySwitchError::NotReady {
        socket: socket.to_owned(),
    })
}

fn end(child: &mut Child) {
    // It may have ended by itself; there is nothing to do about that here.
    let _ = child.kill();
    let _ = child.wait();
}

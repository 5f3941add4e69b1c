//! ovs-vswitchd without a datapath, in a temporary directory: enough for `ofproto/trace`, needs no
//! privilege.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use neighsteer::openflow::unixctl::UnixCtl;
use tempfile::TempDir;

use crate::lab::wait_until;

/// How long a daemon or a command may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// ovsdb-server and ovs-vswitchd with dummy datapaths only. They end with the value.
#[derive(Debug)]
pub struct Switch {
    directory: TempDir,
    daemons: Vec<Child>,
}

impl Switch {
    /// Why there can be none on this machine, if so.
    #[must_use]
    pub fn missing() -> Option<String> {
        [
            "ovsdb-tool",
            "ovsdb-server",
            "ovs-vswitchd",
            "ovs-vsctl",
            "ovs-ofctl",
        ]
        .into_iter()
        .find(|program| {
            let found = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            !found.is_ok_and(|status| status.success())
        })
        .map(|program| format!("{program} is not installed"))
    }

    /// Starts both daemons, with `vlan-limit` as ovn-controller keeps it.
    ///
    /// # Errors
    /// Where a program is missing, fails, or does not get ready in time.
    pub fn start() -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("neighsteer-switch-")
            .tempdir()?;
        let mut switch = Self {
            directory,
            daemons: Vec::new(),
        };
        let database = switch.path("conf.db");
        run(Command::new("ovsdb-tool")
            .arg("create")
            .arg(&database)
            .arg(SCHEMA))?;
        let socket = switch.path("db.sock");
        let remote = format!("--remote=punix:{}", socket.display());
        switch.spawn("ovsdb-server", &[&remote, &database.display().to_string()])?;
        wait_until(PATIENCE, "ovsdb-server", || {
            UnixStream::connect(&socket).map(drop)
        })?;
        switch.vsctl(&["--no-wait", "init"])?;
        switch.spawn(
            "ovs-vswitchd",
            &[
                "--enable-dummy=override",
                "--disable-system",
                &format!("--unixctl={}", switch.control_socket().display()),
                &switch.database_remote(),
            ],
        )?;
        wait_until(PATIENCE, "ovs-vswitchd", || {
            UnixStream::connect(switch.control_socket()).map(drop)
        })?;
        switch.vsctl(&["set", "Open_vSwitch", ".", "other_config:vlan-limit=0"])?;
        Ok(switch)
    }

    /// Adds a bridge with `ports`, whose OpenFlow numbers are 1, 2, …
    ///
    /// # Errors
    /// Where `ovs-vsctl` fails.
    pub fn add_bridge(&self, bridge: &str, ports: &[&str]) -> anyhow::Result<()> {
        let mut arguments = vec!["add-br", bridge, "--", "set", "Bridge", bridge];
        arguments.push("datapath_type=dummy");
        arguments.push("fail_mode=secure");
        let requests: Vec<String> = (1..=ports.len())
            .map(|number| format!("ofport_request={number}"))
            .collect();
        for (port, request) in ports.iter().zip(&requests) {
            arguments.extend(["--", "add-port", bridge, port]);
            arguments.extend(["--", "set", "Interface", port, "type=dummy", request]);
        }
        self.vsctl(&arguments)
    }

    /// Adds flows in `ovs-ofctl` syntax, one a line.
    ///
    /// # Errors
    /// Where `ovs-ofctl` refuses them.
    pub fn add_flows(&self, bridge: &str, flows: &str) -> anyhow::Result<()> {
        let file = self.path(&format!("{bridge}.flows"));
        fs::write(&file, flows)?;
        let management = self.path(&format!("{bridge}.mgmt"));
        run(Command::new("ovs-ofctl")
            .arg("add-flows")
            .arg(format!("unix:{}", management.display()))
            .arg(file))
    }

    /// ovs-vswitchd's control socket.
    #[must_use]
    pub fn control(&self) -> UnixCtl {
        UnixCtl::new(self.control_socket()).with_timeout(PATIENCE)
    }

    fn control_socket(&self) -> PathBuf {
        self.path("vswitchd.ctl")
    }

    fn database_remote(&self) -> String {
        format!("unix:{}", self.path("db.sock").display())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn vsctl(&self, arguments: &[&str]) -> anyhow::Result<()> {
        run(Command::new("ovs-vsctl")
            .arg(format!("--db={}", self.database_remote()))
            .arg(format!("--timeout={}", PATIENCE.as_secs()))
            .args(arguments))
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let log = fs::File::create(self.path(&format!("{program}.log")))?;
        let child = environment(Command::new(program).args(arguments), self.directory.path())
            .arg("--no-chdir")
            .arg("-vconsole:info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        self.daemons.push(child);
        Ok(())
    }
}

/// Where Open vSwitch's programs make their files.
fn environment<'a>(command: &'a mut Command, directory: &Path) -> &'a mut Command {
    ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"]
        .into_iter()
        .fold(command, |command, variable| {
            command.env(variable, directory)
        })
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}

impl Drop for Switch {
    fn drop(&mut self) {
        // ovs-vswitchd first; nothing is lost by an abrupt end, and nobody is there to be told.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

//! A switch by way of the program ovs-ofctl(8).

mod output;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use tokio::{io::AsyncWriteExt, process::Command, task::JoinSet, time::timeout};

use super::{
    Cookie, FlowChanges, InstalledFlow, PortDescription, Switch, SwitchError, parse::parse_dump,
};
use crate::ids::OfPort;

/// How many `ovs-ofctl mod-port` run at once.
const PARALLEL_PORT_CHANGES: usize = 8;

/// Runs `ovs-ofctl` against the management sockets in a run directory.
#[derive(Clone, Debug)]
pub struct OfCtl {
    program: PathBuf,
    rundir: PathBuf,
    timeout: Duration,
}

impl OfCtl {
    /// How long one run of the program may take.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

    /// The bridges whose sockets are `<rundir>/<bridge>.mgmt`.
    #[must_use]
    pub fn new(rundir: impl Into<PathBuf>) -> Self {
        Self {
            program: "ovs-ofctl".into(),
            rundir: rundir.into(),
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }

    /// The same with another program, by path or by name.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// The same with another time limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn socket(&self, bridge: &str) -> PathBuf {
        self.rundir.join(format!("{bridge}.mgmt"))
    }

    /// Runs the program on a bridge and returns what it printed.
    async fn run(
        &self,
        bridge: &str,
        operation: &'static str,
        options: &[&str],
        arguments: &[&str],
        input: &str,
    ) -> Result<String, SwitchError> {
        let socket = self.socket(bridge);
        if !socket.exists() {
            return Err(SwitchError::SocketMissing {
                bridge: bridge.to_owned(),
                socket,
            });
        }
        let mut process = Command::new(&self.program);
        process
            .args(options)
            .arg(format!("unix:{}", socket.display()))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output = match timeout(self.timeout, feed(process, input)).await {
            Ok(Ok(output)) => output,
            Ok(Err(source)) => return Err(self.not_run(source)),
            Err(_) => {
                return Err(SwitchError::Timeout {
                    bridge: bridge.to_owned(),
                    operation,
                    after: self.timeout,
                });
            }
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(output::explain(bridge, operation, &socket, &output))
    }

    fn not_run(&self, source: io::Error) -> SwitchError {
        let program = self.program.clone();
        if source.kind() == io::ErrorKind::NotFound {
            SwitchError::ProgramMissing { program }
        } else {
            SwitchError::Program { program, source }
        }
    }

    async fn mod_port(&self, bridge: &str, port: OfPort, on: bool) -> Result<(), SwitchError> {
        // By number: OpenFlow cuts names off after 15 bytes. By OpenFlow 1.0, which mod-port takes
        // by default: later versions have no such flag and ignore it without an error.
        let number = port.to_string();
        let flag = if on { "no-flood" } else { "flood" };
        let changed = self
            .run(
                bridge,
                "change a port",
                &["-O", "OpenFlow10", "mod-port"],
                &[&number, flag],
                "",
            )
            .await;
        match changed {
            Err(SwitchError::Failed { message, .. }) if message.contains("couldn't find port") => {
                Err(SwitchError::NoSuchPort {
                    bridge: bridge.to_owned(),
                    ofport: port,
                })
            }
            other => other.map(drop),
        }
    }
}

/// Starts a process, writes its input and collects its output.
async fn feed(mut process: Command, input: &str) -> io::Result<Output> {
    let mut child = process.spawn()?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            match stdin.write_all(input.as_bytes()).await {
                // It ended early: its own message says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other,
            }
        } else {
            Ok(())
        }
    };
    let (written, output) = tokio::join!(write, child.wait_with_output());
    written?;
    output
}

impl Switch for OfCtl {
    async fn dump_flows(
        &self,
        bridge: &str,
        cookie: Option<Cookie>,
    ) -> Result<Vec<InstalledFlow>, SwitchError> {
        let only = cookie.map(|cookie| format!("cookie={cookie}/-1"));
        let arguments: Vec<&str> = only.iter().map(String::as_str).collect();
        let text = self
            .run(
                bridge,
                "list the flows",
                &["-O", "OpenFlow13", "--no-names", "dump-flows"],
                &arguments,
                "",
            )
            .await?;
        parse_dump(&text).map_err(|source| SwitchError::Unreadable {
            bridge: bridge.to_owned(),
            source,
        })
    }

    async fn change_flows(&self, bridge: &str, changes: &FlowChanges) -> Result<(), SwitchError> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut input = String::new();
        for flow in &changes.delete {
            // Writing to a string does not fail.
            let _ = writeln!(input, "delete_strict {}", flow.to_strict_deletion());
        }
        for flow in &changes.add {
            let _ = writeln!(input, "add {flow}");
        }
        self.run(
            bridge,
            "change flows",
            &["-O", "OpenFlow13", "--bundle", "add-flows"],
            &["-"],
            &input,
        )
        .await
        .map(drop)
    }

    async fn ports(&self, bridge: &str) -> Result<Vec<PortDescription>, SwitchError> {
        let text = self
            .run(
                bridge,
                "list the ports",
                &["-O", "OpenFlow10", "dump-ports-desc"],
                &[],
                "",
            )
            .await?;
        Ok(output::ports(&text))
    }

    async fn set_no_flood(
        &self,
        bridge: &str,
        ports: &BTreeMap<OfPort, bool>,
    ) -> Result<(), SwitchError> {
        let mut running = JoinSet::new();
        let mut first_failure = None;
        for (&port, &on) in ports {
            if running.len() >= PARALLEL_PORT_CHANGES {
                note(&mut first_failure, running.join_next().await);
            }
            let (switch, bridge) = (self.clone(), bridge.to_owned());
            running.spawn(async move { switch.mod_port(&bridge, port, on).await });
        }
        while let Some(done) = running.join_next().await {
            note(&mut first_failure, Some(done));
        }
        first_failure.map_or(Ok(()), Err)
    }
}

/// Keeps the first failure of several runs.
fn note(
    first: &mut Option<SwitchError>,
    done: Option<Result<Result<(), SwitchError>, tokio::task::JoinError>>,
) {
    let failure = match done {
        None | Some(Ok(Ok(()))) => return,
        Some(Ok(Err(error))) => error,
        Some(Err(error)) => SwitchError::Program {
            program: PathBuf::from("ovs-ofctl"),
            source: io::Error::other(error),
        },
    };
    first.get_or_insert(failure);
}

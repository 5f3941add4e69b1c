//! Bridges over their own management sockets, without ovs-ofctl.

mod convert;
mod flow_changes;
mod flow_watch;
mod port_watch;
mod ports;
mod text;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

pub use convert::UnwritableFlow;
pub use flow_watch::{FlowEvent, FlowWatch};
pub use port_watch::{PortEvent, PortWatch};

use super::{
    Cookie, FlowChanges, InstalledFlow, PortDescription, Switch, SwitchError,
    session::{Deadline, Session, SessionError},
    wire::{FlowStatsRequest, Message, Reply, Request, Version},
};
use crate::ids::OfPort;

/// The bridges of one ovs-vswitchd over OpenFlow: 1.3 for flows, 1.0 for ports (the only version
/// with no-flood). Each operation has a connection of its own, so that there is nothing to keep
/// alive; it costs below a millisecond.
#[derive(Clone, Debug)]
pub struct NativeSwitch {
    rundir: PathBuf,
    timeout: Duration,
}

impl NativeSwitch {
    /// How long an operation may take unless [`NativeSwitch::with_timeout`] says otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// The bridges whose management sockets are in the run directory `rundir`.
    #[must_use]
    pub fn new(rundir: impl Into<PathBuf>) -> Self {
        Self {
            rundir: rundir.into(),
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }

    /// The same bridges with another time limit for each operation.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The run directory.
    #[must_use]
    pub fn rundir(&self) -> &Path {
        &self.rundir
    }

    async fn connect(&self, bridge: &str, version: Version) -> Result<Session, SessionError> {
        let socket = self.rundir.join(format!("{bridge}.mgmt"));
        Session::connect(&socket, version, self.timeout).await
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    async fn list_flows(
        &self,
        bridge: &str,
        cookie: Option<Cookie>,
    ) -> Result<Vec<InstalledFlow>, SessionError> {
        let deadline = self.deadline();
        let mut session = self.connect(bridge, Version::V1_3).await?;
        let (cookie, cookie_mask) = match cookie {
            Some(Cookie(cookie)) => (cookie, u64::MAX),
            None => (0, 0),
        };
        let request = Message::Request {
            request: Request::Flows(FlowStatsRequest {
                table: 0xff,
                cookie,
                cookie_mask,
                matches: Vec::new(),
            }),
            more: false,
        };
        let xid = session.send(&request)?;
        let mut flows = Vec::new();
        loop {
            let answer = session.answer(xid, "the list of flows", deadline).await?;
            let Message::Reply { reply, more } = answer else {
                continue;
            };
            if let Reply::Flows(listed) = reply {
                flows.extend(listed.iter().map(convert::installed));
                session.check_length("the list of flows", flows.len())?;
            }
            if !more {
                return Ok(flows);
            }
        }
    }
}

impl Switch for NativeSwitch {
    async fn dump_flows(
        &self,
        bridge: &str,
        cookie: Option<Cookie>,
    ) -> Result<Vec<InstalledFlow>, SwitchError> {
        self.list_flows(bridge, cookie)
            .await
            .map_err(|source| SwitchError::of_session(bridge, "list the flows", source))
    }

    async fn change_flows(&self, bridge: &str, changes: &FlowChanges) -> Result<(), SwitchError> {
        if changes.is_empty() {
            return Ok(());
        }
        flow_changes::carry_out(self, bridge, changes).await
    }

    async fn ports(&self, bridge: &str) -> Result<Vec<PortDescription>, SwitchError> {
        ports::list(self, bridge)
            .await
            .map_err(|source| SwitchError::of_session(bridge, "list the ports", source))
    }

    async fn set_no_flood(
        &self,
        bridge: &str,
        ports: &BTreeMap<OfPort, bool>,
    ) -> Result<(), SwitchError> {
        if ports.is_empty() {
            return Ok(());
        }
        ports::set_no_flood(self, bridge, ports).await
    }
}

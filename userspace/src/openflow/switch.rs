//! What is asked of a bridge, whoever carries it out.

use std::{collections::BTreeMap, io, path::PathBuf, process::ExitStatus, time::Duration};

use super::{
    Cookie, Flow, FlowChanges, InstalledFlow, ParseFlowError, native::UnwritableFlow,
    session::SessionError,
};
use crate::ids::OfPort;

/// A port as the bridge describes it over OpenFlow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDescription {
    /// Its number.
    pub ofport: OfPort,
    /// Its name, which OpenFlow cuts off after 15 bytes.
    pub name: String,
    /// Whether `NORMAL` and `FLOOD` leave it out (`OFPPC_NO_FLOOD`).
    pub no_flood: bool,
}

/// The bridges of one ovs-vswitchd, by name.
pub trait Switch: Send + Sync {
    /// The flows of a bridge: those with exactly this cookie, or all of them.
    ///
    /// # Errors
    /// As [`SwitchError`] says.
    fn dump_flows(
        &self,
        bridge: &str,
        cookie: Option<Cookie>,
    ) -> impl Future<Output = Result<Vec<InstalledFlow>, SwitchError>> + Send;

    /// Deletes, then adds, in one bundle: all of it happens or nothing. A deletion takes only a
    /// flow with the very cookie, table, priority and match.
    ///
    /// # Errors
    /// As [`SwitchError`] says; after an error the bridge has the flows that it had before.
    fn change_flows(
        &self,
        bridge: &str,
        changes: &FlowChanges,
    ) -> impl Future<Output = Result<(), SwitchError>> + Send;

    /// The ports of a bridge by number, the bridge's own LOCAL one aside.
    ///
    /// # Errors
    /// As [`SwitchError`] says.
    fn ports(
        &self,
        bridge: &str,
    ) -> impl Future<Output = Result<Vec<PortDescription>, SwitchError>> + Send;

    /// Sets or clears no-flood on ports, any number at once. All are tried, whichever fails.
    ///
    /// # Errors
    /// The first failure, as [`SwitchError`] says.
    fn set_no_flood(
        &self,
        bridge: &str,
        ports: &BTreeMap<OfPort, bool>,
    ) -> impl Future<Output = Result<(), SwitchError>> + Send;

    /// Adds flows in one bundle.
    ///
    /// # Errors
    /// As [`Switch::change_flows`].
    fn add_flows(
        &self,
        bridge: &str,
        flows: &[Flow],
    ) -> impl Future<Output = Result<(), SwitchError>> + Send {
        let changes = FlowChanges {
            add: flows.to_vec(),
            ..FlowChanges::default()
        };
        async move { self.change_flows(bridge, &changes).await }
    }

    /// Deletes flows, each only with its own cookie, in one bundle.
    ///
    /// # Errors
    /// As [`Switch::change_flows`].
    fn delete_flows(
        &self,
        bridge: &str,
        flows: &[Flow],
    ) -> impl Future<Output = Result<(), SwitchError>> + Send {
        let changes = FlowChanges {
            delete: flows.to_vec(),
            ..FlowChanges::default()
        };
        async move { self.change_flows(bridge, &changes).await }
    }
}

/// Why a bridge did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The program that talks to the bridge is not installed.
    #[error("cannot run {program}: it is not installed (Debian: openvswitch-common)")]
    ProgramMissing {
        /// The program.
        program: PathBuf,
    },
    /// The program could not be started or read.
    #[error("cannot run {program}")]
    Program {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is no such bridge, or nobody serves it.
    #[error(
        "bridge {bridge} has no management socket at {socket}: does the bridge exist, and is ovs-vswitchd running?"
    )]
    SocketMissing {
        /// The bridge.
        bridge: String,
        /// Where the socket should be.
        socket: PathBuf,
    },
    /// The socket is there and does not accept.
    #[error("bridge {bridge} refuses connections at {socket}: is ovs-vswitchd running?")]
    Refused {
        /// The bridge.
        bridge: String,
        /// The socket.
        socket: PathBuf,
    },
    /// It took too long.
    #[error(
        "bridge {bridge} did not finish to {operation} within {after:?}: does ovs-vswitchd hang? see its log"
    )]
    Timeout {
        /// The bridge.
        bridge: String,
        /// What was asked, as a verb.
        operation: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The bridge rejected a flow.
    #[error("bridge {bridge} rejected the flow `{flow}`: {error}")]
    Rejected {
        /// The bridge.
        bridge: String,
        /// The flow, as it was sent or as the bridge shows it.
        flow: String,
        /// The OpenFlow error's name, for example `OFPBAC_BAD_OUT_PORT`.
        error: String,
    },
    /// The bridge has no such port.
    #[error("bridge {bridge} has no port {ofport}")]
    NoSuchPort {
        /// The bridge.
        bridge: String,
        /// The number that was asked for.
        ofport: OfPort,
    },
    /// It failed in another way.
    #[error("cannot {operation} on bridge {bridge}: {message} ({status})")]
    Failed {
        /// The bridge.
        bridge: String,
        /// What was asked, as a verb.
        operation: &'static str,
        /// What was printed.
        message: String,
        /// How the program ended.
        status: ExitStatus,
    },
    /// A flow that the bridge reports cannot be read.
    #[error("cannot read the flows of bridge {bridge}")]
    Unreadable {
        /// The bridge.
        bridge: String,
        /// The line.
        #[source]
        source: ParseFlowError,
    },
    /// A flow has a part that this program does not write.
    #[error("cannot change flows on bridge {bridge}")]
    Unwritable {
        /// The bridge.
        bridge: String,
        /// The part.
        #[source]
        source: UnwritableFlow,
    },
    /// The bridge rejected a change to a port.
    #[error("bridge {bridge} rejected the change to port {ofport}: {error}")]
    PortRejected {
        /// The bridge.
        bridge: String,
        /// The port.
        ofport: OfPort,
        /// The OpenFlow error's name, for example `OFPPMFC_BAD_HW_ADDR`.
        error: String,
    },
    /// The OpenFlow connection ended or cannot be used.
    #[error("cannot {operation} on bridge {bridge}")]
    Session {
        /// The bridge.
        bridge: String,
        /// What was asked, as a verb.
        operation: &'static str,
        /// What became of the connection.
        #[source]
        source: SessionError,
    },
}

impl SwitchError {
    /// What a connection's end means for an operation.
    pub(super) fn of_session(bridge: &str, operation: &'static str, source: SessionError) -> Self {
        let bridge = bridge.to_owned();
        match source {
            SessionError::SocketMissing { socket } => Self::SocketMissing { bridge, socket },
            SessionError::Refused { socket } => Self::Refused { bridge, socket },
            SessionError::Timeout { after, .. } => Self::Timeout {
                bridge,
                operation,
                after,
            },
            source => Self::Session {
                bridge,
                operation,
                source,
            },
        }
    }
}

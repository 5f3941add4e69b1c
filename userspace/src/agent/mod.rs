//! The agent: everything with a clock, a socket or a file.

pub mod attachments;
pub mod clock;
pub mod config;
pub mod control;
pub mod converge;
pub mod covered;
pub mod database_locks;
pub mod databases;
mod driver;
pub mod host_side;
pub mod lock;

pub mod managed;
pub mod marking;
pub mod mirroring;
pub mod mode;
pub mod model;
pub mod node_bindings;
mod observing;
pub mod state;
pub mod static_rows;
pub mod status;
pub mod steering;
mod transactions;
mod unconfirmed;

use std::fmt::Write as _;

pub use config::{AgentConfig, Connection, NodeConfig};
pub use driver::run;
pub use mode::{HostConfig, ModeError, NodeMode};
pub use observing::interfaces as observed_interfaces;

use crate::{
    datapath::{
        AttachError,
        netlink::{LinkWatchEnded, LinkWatchError},
    },
    plan::NoMark,
    topology::SkipReason,
};

/// Why the agent could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Another agent runs.
    #[error(transparent)]
    Lock(#[from] lock::LockError),
    /// The state file cannot be used.
    #[error(transparent)]
    State(#[from] state::StateError),
    /// The control socket cannot be made.
    #[error(transparent)]
    Control(#[from] control::ControlError),
    /// A database cannot be read.
    #[error(transparent)]
    Database(#[from] databases::DatabaseError),
    /// Nodes cannot be known.
    #[error(transparent)]
    Nodes(#[from] crate::sources::SourceError),
    /// The source of nodes is no more.
    #[error(transparent)]
    NodesEnded(#[from] crate::sources::SourceEnded),
    /// No lock can be asked for.
    #[error(transparent)]
    LockName(#[from] crate::ovsdb::LockNameError),
    /// The datapath cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A bridge with gateway routers cannot be reached from outside.
    #[error("bridge {bridge}: {reason}")]
    NoUplink {
        /// The bridge.
        bridge: String,
        /// What is wrong with it.
        reason: SkipReason,
    },
    /// A bridge is not for the flows that were asked for.
    #[error(transparent)]
    Steering(#[from] converge::SteeringError),
    /// A bridge is not for steering by mark.
    #[error("bridge {bridge} cannot be steered by mark, use `--match header`: {reason}")]
    NoMark {
        /// The bridge.
        bridge: String,
        /// Why not.
        reason: NoMark,
    },
    /// Interfaces cannot be followed.
    #[error(transparent)]
    Links(#[from] LinkWatchError),
    /// Interfaces are followed no more.
    #[error(transparent)]
    LinksEnded(#[from] LinkWatchEnded),
    /// The mode does not go with the rest.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// On a DPU's host it is not known which interface to look at.
    #[error(transparent)]
    NoInterface(#[from] observing::NoInterface),
    /// A task that should last has ended.
    #[error("{0} task has ended")]
    TaskEnded(&'static str),
}

/// An error and its causes on one line, each said once.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            // Writing to a String does not fail.
            let _ = write!(text, ": {part}");
        }
        cause = error.source();
    }
    text
}

//! News of ports as they come.

use std::collections::VecDeque;

use super::{NativeSwitch, ports};
use crate::openflow::{
    PortDescription, SwitchError,
    session::{Session, SessionError},
    wire::{AsyncConfig, Message, PortStatus, PortStatusReason, Version},
};

const OPERATION: &str = "watch the ports";

/// How many events are kept while the first list of ports is awaited. Afterwards the socket keeps
/// what is not asked for.
const EARLY_EVENTS: usize = 4096;

/// All reasons of PORT_STATUS: added, deleted, modified.
const ALL_PORT_EVENTS: u32 = 0b111;

/// What became of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// It was added.
    Added(PortDescription),
    /// It was deleted; this is how it was.
    Deleted(PortDescription),
    /// Its flags or state changed; this is how it is.
    Modified(PortDescription),
}

impl PortEvent {
    /// Nothing where the port is LOCAL.
    fn of(status: &PortStatus) -> Option<Self> {
        let port = ports::real(&status.port)?;
        Some(match status.reason {
            PortStatusReason::Added => Self::Added(port),
            PortStatusReason::Deleted => Self::Deleted(port),
            PortStatusReason::Modified => Self::Modified(port),
        })
    }
}

/// A bridge's ports as they come, change and go. Dropping it ends the connection.
#[derive(Debug)]
pub struct PortWatch {
    bridge: String,
    session: Session,
    early: VecDeque<PortEvent>,
    ignored: u64,
}

impl NativeSwitch {
    /// The ports of a bridge, LOCAL aside, and what becomes of them from then on: nothing between
    /// the list and the first event is missed, an event may repeat what the list says.
    ///
    /// # Errors
    /// As [`SwitchError`] says.
    pub async fn watch_ports(
        &self,
        bridge: &str,
    ) -> Result<(Vec<PortDescription>, PortWatch), SwitchError> {
        self.start_port_watch(bridge)
            .await
            .map_err(|source| SwitchError::of_session(bridge, OPERATION, source))
    }

    async fn start_port_watch(
        &self,
        bridge: &str,
    ) -> Result<(Vec<PortDescription>, PortWatch), SessionError> {
        let deadline = self.deadline();
        let mut session = self.connect(bridge, Version::V1_0).await?;
        // First what is wanted, then that anything is: no frame may come here.
        session.send(&Message::SetAsyncConfig(AsyncConfig {
            packet_in: 0,
            port_status: ALL_PORT_EVENTS,
            flow_removed: 0,
        }))?;
        session.send(&Message::SetConfig {
            flags: 0,
            miss_send_len: 1,
        })?;
        let socket = session.socket().to_owned();
        let mut early = VecDeque::new();
        let described = ports::describe(&mut session, deadline, |message| match message {
            Message::PortStatus(_) if early.len() >= EARLY_EVENTS => {
                let (socket, limit) = (socket.clone(), EARLY_EVENTS);
                Err(SessionError::TooManyEvents { socket, limit })
            }
            Message::PortStatus(status) => {
                early.extend(PortEvent::of(&status));
                Ok(())
            }
            Message::Error(error) => Err(SessionError::Rejected {
                socket: socket.clone(),
                request: "the subscription to ports",
                code: error.code,
            }),
            _ => Ok(()),
        })
        .await?;
        let mut listed: Vec<_> = described.iter().filter_map(ports::real).collect();
        listed.sort_by_key(|port| port.ofport);
        let watch = PortWatch {
            bridge: bridge.to_owned(),
            session,
            early,
            ignored: 0,
        };
        Ok((listed, watch))
    }
}

impl PortWatch {
    /// The next event, whenever it comes. Can be cancelled without loss. What is not asked for
    /// waits in the socket, and with it the bridge's echo requests: ask again within seconds.
    ///
    /// # Errors
    /// Where the connection has ended: everything must be looked at anew.
    pub async fn next(&mut self) -> Result<PortEvent, SwitchError> {
        loop {
            if let Some(event) = self.early.pop_front() {
                return Ok(event);
            }
            let next = self.session.next_event("news of ports").await;
            let (_, message) =
                next.map_err(|source| SwitchError::of_session(&self.bridge, OPERATION, source))?;
            if let Message::PortStatus(status) = message {
                self.early.extend(PortEvent::of(&status));
            } else {
                self.ignored = self.ignored.saturating_add(1);
            }
        }
    }

    /// How many messages came that are no news of ports. Not 0 means that the bridge does not keep
    /// to what it was asked to send.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }
}

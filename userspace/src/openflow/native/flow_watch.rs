//! News of flows as they come.

use std::collections::VecDeque;

use super::{NativeSwitch, convert};
use crate::openflow::{
    Flow, Match, SwitchError,
    session::{Session, SessionError},
    wire::{FlowChange, FlowMonitorRequest, FlowUpdate, Message, Reply, Request, Version},
};

const OPERATION: &str = "watch the flows";

/// What became of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// It was added.
    Added(Flow),
    /// It was deleted; this is how it was.
    Deleted(Flow),
    /// Its actions or its cookie were changed; this is how it is.
    Modified(Flow),
    /// The bridge has more to tell than it may queue. Deletions come all the same; what is added or
    /// changed comes before [`FlowEvent::Resumed`], once and as it is by then.
    Paused,
    /// What there was to tell is told.
    Resumed,
}

/// A bridge's flows as they come, change and go, whoever causes it. Dropping it ends the
/// connection.
#[derive(Debug)]
pub struct FlowWatch {
    bridge: String,
    session: Session,
    /// What one message holds beyond the event that was returned.
    pending: VecDeque<FlowEvent>,
}

impl NativeSwitch {
    /// The flows of a bridge and what becomes of them from then on, without a gap (Open vSwitch ≥
    /// 3.0). Only those that one of `matches` covers: a flow whose match has all fields of it; all
    /// flows where there is none. Cookies are the caller's to look at.
    ///
    /// # Errors
    /// As [`SwitchError`] says; a field of `matches` that is kept as text cannot be asked for.
    pub async fn watch_flows(
        &self,
        bridge: &str,
        matches: &[Match],
    ) -> Result<(Vec<Flow>, FlowWatch), SwitchError> {
        let everything = [Match::default()];
        let matches = if matches.is_empty() {
            &everything
        } else {
            matches
        };
        let requests = (0..)
            .zip(matches)
            .map(|(id, matches)| Ok(FlowMonitorRequest::all(id, convert::fields(matches)?)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| SwitchError::Unwritable {
                bridge: bridge.to_owned(),
                source,
            })?;
        self.start_flow_watch(bridge, requests)
            .await
            .map_err(|source| SwitchError::of_session(bridge, OPERATION, source))
    }

    async fn start_flow_watch(
        &self,
        bridge: &str,
        requests: Vec<FlowMonitorRequest>,
    ) -> Result<(Vec<Flow>, FlowWatch), SessionError> {
        const WHAT: &str = "the flows to watch";
        let deadline = self.deadline();
        let mut session = self.connect(bridge, Version::V1_3).await?;
        let xid = session.send(&Message::Request {
            request: Request::FlowMonitor(requests),
            more: false,
        })?;
        let mut flows = Vec::new();
        loop {
            let Message::Reply { reply, more } = session.answer(xid, WHAT, deadline).await? else {
                continue;
            };
            if let Reply::FlowUpdates(updates) = reply {
                flows.extend(
                    updates
                        .iter()
                        .filter_map(event)
                        .filter_map(|event| match event {
                            FlowEvent::Added(flow) => Some(flow),
                            _ => None,
                        }),
                );
                session.check_length(WHAT, flows.len())?;
            }
            if !more {
                break;
            }
        }
        let watch = FlowWatch {
            bridge: bridge.to_owned(),
            session,
            pending: VecDeque::new(),
        };
        Ok((flows, watch))
    }
}

fn event(update: &FlowUpdate) -> Option<FlowEvent> {
    match update {
        FlowUpdate::Abbreviated { .. } => None,
        FlowUpdate::Full { change, flow } => {
            let flow = convert::monitored(flow);
            Some(match change {
                FlowChange::Added => FlowEvent::Added(flow),
                FlowChange::Deleted { .. } => FlowEvent::Deleted(flow),
                FlowChange::Modified => FlowEvent::Modified(flow),
            })
        }
    }
}

impl FlowWatch {
    /// The next event, whenever it comes. Can be cancelled without loss. What is not asked for
    /// waits in the socket, and with it the bridge's echo requests: ask again within seconds.
    ///
    /// # Errors
    /// Where the connection has ended: everything must be looked at anew.
    pub async fn next(&mut self) -> Result<FlowEvent, SwitchError> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            let next = self.session.next_event("news of flows").await;
            let (_, message) =
                next.map_err(|source| SwitchError::of_session(&self.bridge, OPERATION, source))?;
            match message {
                Message::Reply {
                    reply: Reply::FlowUpdates(updates),
                    ..
                } => self.pending.extend(updates.iter().filter_map(event)),
                Message::FlowMonitorPaused => return Ok(FlowEvent::Paused),
                Message::FlowMonitorResumed => return Ok(FlowEvent::Resumed),
                _ => {}
            }
        }
    }
}

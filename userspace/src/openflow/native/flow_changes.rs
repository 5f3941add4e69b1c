//! Changes to flows as one bundle.

use std::collections::BTreeMap;

use super::{NativeSwitch, convert};
use crate::openflow::{
    Flow, FlowChanges, SwitchError,
    session::{Deadline, Session, SessionError},
    wire::{
        BundleAdd, BundleControl, BundleStep, ErrorCode, FlowCommand, FlowMod, Message, Version,
    },
};

const FLAGS: u16 = BundleControl::ATOMIC | BundleControl::ORDERED;

const OPERATION: &str = "change flows";

/// A connection makes one bundle.
const BUNDLE: u32 = 1;

/// Why a bundle was not carried out.
enum Failure {
    Session(SessionError),
    /// The bridge rejected the change with this xid.
    Change {
        xid: u32,
        code: ErrorCode,
    },
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

/// Deletes, then adds, all or nothing.
pub(super) async fn carry_out(
    switch: &NativeSwitch,
    bridge: &str,
    changes: &FlowChanges,
) -> Result<(), SwitchError> {
    let deletions = changes
        .delete
        .iter()
        .map(|flow| (flow, FlowCommand::DeleteStrict));
    let additions = changes.add.iter().map(|flow| (flow, FlowCommand::Add));
    let requests = deletions
        .chain(additions)
        .map(|(flow, command)| convert::flow_mod(flow, command).map(|request| (flow, request)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| SwitchError::Unwritable {
            bridge: bridge.to_owned(),
            source,
        })?;

    let of_session = |source| SwitchError::of_session(bridge, OPERATION, source);
    let deadline = switch.deadline();
    let mut session = switch
        .connect(bridge, Version::V1_3)
        .await
        .map_err(of_session)?;
    let mut sent = BTreeMap::new();
    match transact(&mut session, requests, &mut sent, deadline).await {
        Ok(()) => Ok(()),
        Err(Failure::Session(source)) => Err(of_session(source)),
        Err(Failure::Change { xid, code }) => Err(SwitchError::Rejected {
            bridge: bridge.to_owned(),
            flow: sent.get(&xid).map_or_else(String::new, ToString::to_string),
            error: code.to_string(),
        }),
    }
}

async fn transact<'a>(
    session: &mut Session,
    requests: Vec<(&'a Flow, FlowMod)>,
    sent: &mut BTreeMap<u32, &'a Flow>,
    deadline: Deadline,
) -> Result<(), Failure> {
    let opening = session.send(&step(BundleStep::OpenRequest))?;
    for (flow, flow_mod) in requests {
        let xid = session.send(&Message::BundleAdd(BundleAdd {
            bundle: BUNDLE,
            flags: FLAGS,
            flow_mod,
        }))?;
        sent.insert(xid, flow);
    }
    // Open vSwitch keeps the good changes of a bundle beside one that it could not read: hear all
    // errors before committing.
    let barrier = session.send(&Message::BarrierRequest)?;
    if let Err(failure) = until_barrier(session, opening, barrier, sent, deadline).await {
        if matches!(failure, Failure::Change { .. }) {
            discard(session, deadline).await;
        }
        return Err(failure);
    }
    commit(session, sent, deadline).await
}

fn step(step: BundleStep) -> Message {
    Message::BundleControl(BundleControl {
        bundle: BUNDLE,
        step,
        flags: FLAGS,
    })
}

/// Hears what the bridge says of the bundle's content.
async fn until_barrier(
    session: &mut Session,
    opening: u32,
    barrier: u32,
    sent: &BTreeMap<u32, &Flow>,
    deadline: Deadline,
) -> Result<(), Failure> {
    let mut first = None;
    loop {
        match session
            .next_before(deadline, "the bundle's barrier")
            .await?
        {
            (xid, Message::Error(error)) => {
                let failure = if sent.contains_key(&xid) {
                    let code = error.code;
                    Failure::Change { xid, code }
                } else {
                    let request = if xid == opening {
                        "a bundle"
                    } else {
                        "a barrier"
                    };
                    session.rejected(request, &error).into()
                };
                first.get_or_insert(failure);
            }
            (xid, Message::BarrierReply) if xid == barrier => return first.map_or(Ok(()), Err),
            _ => {}
        }
    }
}

/// An error of one change comes with that change's xid, and before the commit's own.
async fn commit(
    session: &mut Session,
    sent: &BTreeMap<u32, &Flow>,
    deadline: Deadline,
) -> Result<(), Failure> {
    let commit = session.send(&step(BundleStep::CommitRequest))?;
    loop {
        match session.next_before(deadline, "the bundle's commit").await? {
            (xid, Message::Error(error)) if sent.contains_key(&xid) => {
                let code = error.code;
                return Err(Failure::Change { xid, code });
            }
            (xid, Message::Error(error)) if xid == commit => {
                return Err(session.rejected("the bundle's commit", &error).into());
            }
            (xid, Message::BundleControl(control))
                if xid == commit && control.step == BundleStep::CommitReply =>
            {
                return Ok(());
            }
            _ => {}
        }
    }
}

/// Best effort: the bridge also forgets a bundle whose connection ends.
async fn discard(session: &mut Session, deadline: Deadline) {
    let Ok(xid) = session.send(&step(BundleStep::DiscardRequest)) else {
        return;
    };
    if let Err(error) = session.answer(xid, "the bundle's end", deadline).await {
        tracing::debug!(
            socket = %session.socket().display(),
            error = &error as &dyn std::error::Error,
            "a failed bundle was not discarded"
        );
    }
}

//! Ports and their no-flood flags over OpenFlow 1.0.

use std::collections::BTreeMap;

use super::NativeSwitch;
use crate::{
    ids::OfPort,
    openflow::{
        PortDescription, SwitchError,
        session::{Deadline, Session, SessionError},
        wire::{self, Message, PortMod, Reply, Request, Version},
    },
};

const OPERATION: &str = "change ports";

/// The ports with a number of their own, sorted by it.
pub(super) async fn list(
    switch: &NativeSwitch,
    bridge: &str,
) -> Result<Vec<PortDescription>, SessionError> {
    let deadline = switch.deadline();
    let mut session = switch.connect(bridge, Version::V1_0).await?;
    let described = describe(&mut session, deadline, |_| Ok(())).await?;
    let mut ports: Vec<_> = described.iter().filter_map(real).collect();
    ports.sort_by_key(|port| port.ofport);
    Ok(ports)
}

/// A port, unless it is LOCAL.
pub(super) fn real(port: &wire::PortDescription) -> Option<PortDescription> {
    Some(PortDescription {
        ofport: port.number.real()?,
        name: port.name.clone(),
        no_flood: port.no_flood(),
    })
}

/// All ports as the bridge describes them. What else comes meanwhile goes to `other`.
pub(super) async fn describe(
    session: &mut Session,
    deadline: Deadline,
    mut other: impl FnMut(Message) -> Result<(), SessionError>,
) -> Result<Vec<wire::PortDescription>, SessionError> {
    const WHAT: &str = "the list of ports";
    let request = Message::Request {
        request: Request::Ports,
        more: false,
    };
    let xid = session.send(&request)?;
    let mut ports = Vec::new();
    loop {
        match session.next_before(deadline, WHAT).await? {
            (got, Message::Error(error)) if got == xid => {
                return Err(session.rejected(WHAT, &error));
            }
            (got, Message::Reply { reply, more }) if got == xid => {
                if let Reply::Ports(some) = reply {
                    ports.extend(some);
                    session.check_length(WHAT, ports.len())?;
                }
                if !more {
                    return Ok(ports);
                }
            }
            (_, message) => other(message)?,
        }
    }
}

/// Sets and clears the flag where it differs. All ports are tried.
pub(super) async fn set_no_flood(
    switch: &NativeSwitch,
    bridge: &str,
    wanted: &BTreeMap<OfPort, bool>,
) -> Result<(), SwitchError> {
    let of_session = |source| SwitchError::of_session(bridge, OPERATION, source);
    let deadline = switch.deadline();
    let mut session = switch
        .connect(bridge, Version::V1_0)
        .await
        .map_err(of_session)?;
    let described = describe(&mut session, deadline, |_| Ok(()))
        .await
        .map_err(of_session)?;
    let there: BTreeMap<OfPort, &wire::PortDescription> = described
        .iter()
        .filter_map(|port| Some((port.number.real()?, port)))
        .collect();

    let mut first_failure = None;
    let mut sent = BTreeMap::new();
    for (&ofport, &no_flood) in wanted {
        let Some(port) = there.get(&ofport) else {
            first_failure.get_or_insert(SwitchError::NoSuchPort {
                bridge: bridge.to_owned(),
                ofport,
            });
            continue;
        };
        if port.no_flood() == no_flood {
            continue;
        }
        let mask = wire::PortDescription::NO_FLOOD;
        let change = Message::PortMod(PortMod {
            number: port.number,
            hw_addr: port.hw_addr,
            config: if no_flood { mask } else { 0 },
            mask,
        });
        sent.insert(session.send(&change).map_err(of_session)?, ofport);
    }
    if !sent.is_empty() {
        let rejected = barrier(&mut session, &sent, deadline).await;
        if let Some((ofport, error)) = rejected.map_err(of_session)? {
            first_failure.get_or_insert(SwitchError::PortRejected {
                bridge: bridge.to_owned(),
                ofport,
                error,
            });
        }
    }
    first_failure.map_or(Ok(()), Err)
}

/// Waits until all changes are made and returns the first that was rejected.
async fn barrier(
    session: &mut Session,
    sent: &BTreeMap<u32, OfPort>,
    deadline: Deadline,
) -> Result<Option<(OfPort, String)>, SessionError> {
    const WHAT: &str = "the barrier after the changes to ports";
    let barrier = session.send(&Message::BarrierRequest)?;
    let mut first = None;
    loop {
        match session.next_before(deadline, WHAT).await? {
            (xid, Message::Error(error)) => match sent.get(&xid) {
                Some(&ofport) => {
                    first.get_or_insert((ofport, error.code.to_string()));
                }
                None => return Err(session.rejected("a barrier", &error)),
            },
            (xid, Message::BarrierReply) if xid == barrier => return Ok(first),
            _ => {}
        }
    }
}

//! Questions whose answers may take several messages: "statistics" in OpenFlow 1.0 (section 5.3.5),
//! "multipart" in 1.3 (section 7.3.5).

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError, put_zeros},
    flow_monitor::{FlowMonitorRequest, FlowUpdate},
    flow_stats::{FlowStats, FlowStatsRequest},
    header::Version,
    message::ONF,
    port::PortDescription,
};

const FLOW: u16 = 1;
const PORT_DESCRIPTION: u16 = 13;
const EXPERIMENTER: u16 = 0xffff;
const FLOW_MONITOR: u32 = 1870;

/// More messages of the same question or answer follow.
const MORE: u16 = 1;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// List flows (1.3).
    Flows(FlowStatsRequest),
    /// Describe the ports (1.0: an extension of Open vSwitch, whose answer has no limit of one
    /// message as FEATURES_REPLY has).
    Ports,
    /// Tell of changes to flows from now on (1.3).
    FlowMonitor(Vec<FlowMonitorRequest>),
    /// Another one.
    Other {
        /// Its type.
        kind: u16,
        /// What follows the flags, and in 1.3 the padding.
        body: Vec<u8>,
    },
}

/// An answer or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Flows (1.3).
    Flows(Vec<FlowStats>),
    /// Ports (1.0).
    Ports(Vec<PortDescription>),
    /// Changes to flows: at first in answer to the request, then with xid 0 (1.3).
    FlowUpdates(Vec<FlowUpdate>),
    /// Another one.
    Other {
        /// Its type.
        kind: u16,
        /// What follows the flags, and in 1.3 the padding.
        body: Vec<u8>,
    },
}

/// The type, whether more follows, and a reader of the rest.
fn split<'a>(
    version: Version,
    what: &'static str,
    body: &'a [u8],
) -> Result<(u16, bool, Reader<'a>), WireError> {
    let mut reader = Reader::new(what, body);
    let kind = reader.u16()?;
    let more = reader.u16()? & MORE != 0;
    if version == Version::V1_3 {
        reader.skip(4)?;
    }
    Ok((kind, more, reader))
}

fn put_head(version: Version, kind: u16, more: bool, to: &mut BytesMut) {
    to.put_u16(kind);
    to.put_u16(if more { MORE } else { 0 });
    if version == Version::V1_3 {
        put_zeros(to, 4);
    }
}

fn put_flow_monitor_head(version: Version, more: bool, to: &mut BytesMut) {
    put_head(version, EXPERIMENTER, more, to);
    to.put_u32(ONF);
    to.put_u32(FLOW_MONITOR);
}

/// Whether the body is the flow monitor's; its two numbers are then read.
fn is_flow_monitor(reader: &mut Reader<'_>) -> bool {
    let mut ahead = reader.clone();
    let found = ahead.u32() == Ok(ONF) && ahead.u32() == Ok(FLOW_MONITOR);
    if found {
        *reader = ahead;
    }
    found
}

fn many<'a, T>(
    mut reader: Reader<'a>,
    one: impl Fn(&mut Reader<'a>) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let mut all = Vec::new();
    while !reader.is_empty() {
        all.push(one(&mut reader)?);
    }
    Ok(all)
}

impl Request {
    pub(super) fn decode(version: Version, body: &[u8]) -> Result<(Self, bool), WireError> {
        let (kind, more, mut reader) = split(version, "a multipart request", body)?;
        let request = match (version, kind) {
            (Version::V1_3, FLOW) => Self::Flows(FlowStatsRequest::decode(reader)?),
            (Version::V1_0, PORT_DESCRIPTION) if reader.is_empty() => Self::Ports,
            (Version::V1_3, EXPERIMENTER) if is_flow_monitor(&mut reader) => {
                Self::FlowMonitor(many(reader, FlowMonitorRequest::decode)?)
            }
            _ => Self::Other {
                kind,
                body: reader.rest().to_vec(),
            },
        };
        Ok((request, more))
    }

    pub(super) fn encode(
        &self,
        version: Version,
        more: bool,
        to: &mut BytesMut,
    ) -> Result<(), WireError> {
        match (self, version) {
            (Self::Flows(request), Version::V1_3) => {
                put_head(version, FLOW, more, to);
                request.encode(to)
            }
            (Self::Ports, Version::V1_0) => {
                put_head(version, PORT_DESCRIPTION, more, to);
                Ok(())
            }
            (Self::FlowMonitor(requests), Version::V1_3) => {
                put_flow_monitor_head(version, more, to);
                requests.iter().try_for_each(|request| request.encode(to))
            }
            (Self::Other { kind, body }, _) => {
                put_head(version, *kind, more, to);
                to.put_slice(body);
                Ok(())
            }
            (Self::Flows(_) | Self::FlowMonitor(_) | Self::Ports, _) => {
                Err(WireError::NotInVersion {
                    what: "multipart request of this type",
                    version: version.number(),
                })
            }
        }
    }
}

impl Reply {
    pub(super) fn decode(version: Version, body: &[u8]) -> Result<(Self, bool), WireError> {
        let (kind, more, mut reader) = split(version, "a multipart reply", body)?;
        let reply = match (version, kind) {
            (Version::V1_3, FLOW) => Self::Flows(many(reader, FlowStats::decode)?),
            (Version::V1_0, PORT_DESCRIPTION) => {
                Self::Ports(many(reader, PortDescription::decode)?)
            }
            (Version::V1_3, EXPERIMENTER) if is_flow_monitor(&mut reader) => {
                Self::FlowUpdates(many(reader, FlowUpdate::decode)?)
            }
            _ => Self::Other {
                kind,
                body: reader.rest().to_vec(),
            },
        };
        Ok((reply, more))
    }

    pub(super) fn encode(
        &self,
        version: Version,
        more: bool,
        to: &mut BytesMut,
    ) -> Result<(), WireError> {
        match (self, version) {
            (Self::Flows(flows), Version::V1_3) => {
                put_head(version, FLOW, more, to);
                flows.iter().try_for_each(|flow| flow.encode(to))
            }
            (Self::Ports(ports), Version::V1_0) => {
                put_head(version, PORT_DESCRIPTION, more, to);
                ports.iter().try_for_each(|port| port.encode(to))
            }
            (Self::FlowUpdates(updates), Version::V1_3) => {
                put_flow_monitor_head(version, more, to);
                updates.iter().try_for_each(|update| update.encode(to))
            }
            (Self::Other { kind, body }, _) => {
                put_head(version, *kind, more, to);
                to.put_slice(body);
                Ok(())
            }
            (Self::Flows(_) | Self::FlowUpdates(_) | Self::Ports(_), _) => {
                Err(WireError::NotInVersion {
                    what: "multipart reply of this type",
                    version: version.number(),
                })
            }
        }
    }
}

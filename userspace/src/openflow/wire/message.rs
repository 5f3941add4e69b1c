//! Whole messages.

use bytes::{BufMut, BytesMut};

use super::{
    bundle::{BundleAdd, BundleControl, FLOW_MOD},
    codec::{Reader, WireError, put_zeros, with_length},
    error::ErrorMessage,
    flow_mod::FlowMod,
    header::{Header, Version},
    hello::Hello,
    multipart::{Reply, Request},
    port::{PortMod, PortStatus},
};

/// The Open Networking Foundation as an experimenter.
pub(super) const ONF: u32 = 0x4f4e_4600;
/// Nicira, whose extensions Open vSwitch carries on, as a vendor or experimenter.
pub(super) const NICIRA: u32 = 0x0000_2320;

const BUNDLE_CONTROL: u32 = 2300;
const BUNDLE_ADD: u32 = 2301;
const FLOW_MONITOR_PAUSED: u32 = 1871;
const FLOW_MONITOR_RESUMED: u32 = 1872;
const SET_ASYNC_CONFIG: u32 = 19;

const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const EXPERIMENTER: u8 = 4;
const SET_CONFIG: u8 = 9;
const PORT_STATUS: u8 = 12;

/// Types whose numbers differ between the versions.
struct Types {
    port_mod: u8,
    multipart_request: u8,
    multipart_reply: u8,
    barrier_request: u8,
    barrier_reply: u8,
}

impl Version {
    const fn types(self) -> Types {
        match self {
            Self::V1_0 => Types {
                port_mod: 15,
                multipart_request: 16,
                multipart_reply: 17,
                barrier_request: 18,
                barrier_reply: 19,
            },
            Self::V1_3 => Types {
                port_mod: 16,
                multipart_request: 18,
                multipart_reply: 19,
                barrier_request: 20,
                barrier_reply: 21,
            },
        }
    }
}

/// Which asynchronous messages a connection gets, as bits of their reasons; it is a master's or an
/// equal's share, a slave gets none (`struct nx_async_config`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsyncConfig {
    /// Frames for the controller.
    pub packet_in: u32,
    /// News of ports.
    pub port_status: u32,
    /// Flows that are gone.
    pub flow_removed: u32,
}

/// A message of OpenFlow 1.0 or 1.3, without its xid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Which versions the sender speaks.
    Hello(Hello),
    /// A request failed.
    Error(ErrorMessage),
    /// Are you there? Answer with the same bytes.
    EchoRequest(Vec<u8>),
    /// I am.
    EchoReply(Vec<u8>),
    /// Finish all that came before.
    BarrierRequest,
    /// It is finished.
    BarrierReply,
    /// How the switch treats fragments and frames for controllers.
    SetConfig {
        /// `OFPC_*`.
        flags: u16,
        /// How much of a frame a controller gets (bytes). Not 0 on a management connection of Open
        /// vSwitch also means: send asynchronous messages here.
        miss_send_len: u16,
    },
    /// Change the flow tables (1.3).
    FlowMod(FlowMod),
    /// Change a port (1.0).
    PortMod(PortMod),
    /// News of a port (1.0).
    PortStatus(PortStatus),
    /// Which asynchronous messages to send (1.0, `NXT_SET_ASYNC_CONFIG`).
    SetAsyncConfig(AsyncConfig),
    /// A question, or a part of one.
    Request {
        /// The question.
        request: Request,
        /// Whether another part follows.
        more: bool,
    },
    /// An answer, or a part of one.
    Reply {
        /// The answer.
        reply: Reply,
        /// Whether another part follows.
        more: bool,
    },
    /// A step in a bundle's life (1.3).
    BundleControl(BundleControl),
    /// A change for a bundle (1.3).
    BundleAdd(BundleAdd),
    /// The switch has too many flow updates to send: until it resumes it tells of deletions only
    /// (1.3).
    FlowMonitorPaused,
    /// What was added or changed during a pause has now been told (1.3).
    FlowMonitorResumed,
    /// Another message.
    Other {
        /// Its type.
        kind: u8,
        /// What follows the header.
        body: Vec<u8>,
    },
}

impl Message {
    /// Reads one whole message. A HELLO of whatever version is read; other messages of a version
    /// that this client does not speak are refused.
    ///
    /// # Errors
    /// Where `bytes` are not exactly one message, or a structure in it is cut short or contradicts
    /// itself.
    pub fn decode(bytes: &[u8]) -> Result<(Header, Self), WireError> {
        let header = Header::decode(bytes)?;
        let length = usize::from(header.length);
        if length != bytes.len() {
            let what = "an OpenFlow message";
            return Err(WireError::BadLength { what, length });
        }
        let body = bytes.get(Header::LENGTH..).unwrap_or_default();
        if header.kind == HELLO {
            let hello = Hello::decode(header.version, body)?;
            return Ok((header, Self::Hello(hello)));
        }
        let version = Version::from_number(header.version).ok_or(WireError::BadValue {
            what: "the version of a message",
            value: u64::from(header.version),
        })?;
        Self::decode_body(version, header.kind, body).map(|message| (header, message))
    }

    fn decode_body(version: Version, kind: u8, body: &[u8]) -> Result<Self, WireError> {
        let types = version.types();
        let empty = body.is_empty();
        Ok(match kind {
            ERROR => Self::Error(ErrorMessage::decode(version, body)?),
            ECHO_REQUEST => Self::EchoRequest(body.to_vec()),
            ECHO_REPLY => Self::EchoReply(body.to_vec()),
            SET_CONFIG => {
                let mut reader = Reader::new("a SET_CONFIG", body);
                Self::SetConfig {
                    flags: reader.u16()?,
                    miss_send_len: reader.u16()?,
                }
            }
            EXPERIMENTER => decode_experimenter(version, body)?,
            FLOW_MOD if version == Version::V1_3 => Self::FlowMod(FlowMod::decode(body)?),
            PORT_STATUS if version == Version::V1_0 => Self::PortStatus(PortStatus::decode(body)?),
            kind if kind == types.port_mod && version == Version::V1_0 => {
                Self::PortMod(PortMod::decode(body)?)
            }
            kind if kind == types.multipart_request => {
                let (request, more) = Request::decode(version, body)?;
                Self::Request { request, more }
            }
            kind if kind == types.multipart_reply => {
                let (reply, more) = Reply::decode(version, body)?;
                Self::Reply { reply, more }
            }
            kind if kind == types.barrier_request && empty => Self::BarrierRequest,
            kind if kind == types.barrier_reply && empty => Self::BarrierReply,
            kind => Self::Other {
                kind,
                body: body.to_vec(),
            },
        })
    }

    /// Appends the message to `to`. The version is the connection's; a HELLO carries its own.
    ///
    /// # Errors
    /// Where the message does not exist in the version, or is longer than 65,535 bytes; `to` is
    /// then unchanged.
    pub fn encode(&self, version: Version, xid: u32, to: &mut BytesMut) -> Result<(), WireError> {
        let start = to.len();
        let number = match self {
            Self::Hello(hello) => hello.version,
            _ => version.number(),
        };
        let encoded = with_length(to, "an OpenFlow message", 2, |to| {
            to.put_u8(number);
            to.put_u8(self.kind(version)?);
            to.put_u16(0);
            to.put_u32(xid);
            self.encode_body(version, xid, to)
        });
        if encoded.is_err() {
            to.truncate(start);
        }
        encoded.map(drop)
    }

    fn kind(&self, version: Version) -> Result<u8, WireError> {
        let types = version.types();
        Ok(match (self, version) {
            (Self::Hello(_), _) => HELLO,
            (Self::Error(_), _) => ERROR,
            (Self::EchoRequest(_), _) => ECHO_REQUEST,
            (Self::EchoReply(_), _) => ECHO_REPLY,
            (Self::SetConfig { .. }, _) => SET_CONFIG,
            (Self::BarrierRequest, _) => types.barrier_request,
            (Self::BarrierReply, _) => types.barrier_reply,
            (Self::Request { .. }, _) => types.multipart_request,
            (Self::Reply { .. }, _) => types.multipart_reply,
            (Self::FlowMod(_), Version::V1_3) => FLOW_MOD,
            (Self::PortMod(_), Version::V1_0) => types.port_mod,
            (Self::PortStatus(_), Version::V1_0) => PORT_STATUS,
            (Self::SetAsyncConfig(_), Version::V1_0)
            | (
                Self::BundleControl(_)
                | Self::BundleAdd(_)
                | Self::FlowMonitorPaused
                | Self::FlowMonitorResumed,
                Version::V1_3,
            ) => EXPERIMENTER,
            (Self::Other { kind, .. }, _) => *kind,
            _ => {
                return Err(WireError::NotInVersion {
                    what: "such message",
                    version: version.number(),
                });
            }
        })
    }

    fn encode_body(&self, version: Version, xid: u32, to: &mut BytesMut) -> Result<(), WireError> {
        match self {
            Self::Hello(hello) => return hello.encode(to),
            Self::Error(error) => error.encode(to),
            Self::EchoRequest(body) | Self::EchoReply(body) | Self::Other { body, .. } => {
                to.put_slice(body);
            }
            Self::BarrierRequest | Self::BarrierReply => {}
            Self::SetConfig {
                flags,
                miss_send_len,
            } => {
                to.put_u16(*flags);
                to.put_u16(*miss_send_len);
            }
            Self::FlowMod(flow_mod) => return flow_mod.encode(to),
            Self::PortMod(port_mod) => return port_mod.encode(to),
            Self::PortStatus(status) => return status.encode(to),
            Self::SetAsyncConfig(config) => {
                put_experimenter(to, NICIRA, SET_ASYNC_CONFIG);
                for mask in [config.packet_in, config.port_status, config.flow_removed] {
                    to.put_u32(mask);
                    put_zeros(to, 4);
                }
            }
            Self::Request { request, more } => return request.encode(version, *more, to),
            Self::Reply { reply, more } => return reply.encode(version, *more, to),
            Self::BundleControl(control) => {
                put_experimenter(to, ONF, BUNDLE_CONTROL);
                control.encode(to);
            }
            Self::BundleAdd(add) => {
                put_experimenter(to, ONF, BUNDLE_ADD);
                return add.encode(xid, to);
            }
            Self::FlowMonitorPaused => put_experimenter(to, ONF, FLOW_MONITOR_PAUSED),
            Self::FlowMonitorResumed => put_experimenter(to, ONF, FLOW_MONITOR_RESUMED),
        }
        Ok(())
    }
}

fn put_experimenter(to: &mut BytesMut, experimenter: u32, kind: u32) {
    to.put_u32(experimenter);
    to.put_u32(kind);
}

fn decode_experimenter(version: Version, body: &[u8]) -> Result<Message, WireError> {
    let mut reader = Reader::new("an experimenter's message", body);
    // Another vendor's message of OpenFlow 1.0 need not have a subtype.
    let numbers = (reader.u32().ok(), reader.u32().ok());
    Ok(match (version, numbers) {
        (Version::V1_3, (Some(ONF), Some(BUNDLE_CONTROL))) => {
            Message::BundleControl(BundleControl::decode(reader.named("a bundle control"))?)
        }
        (Version::V1_3, (Some(ONF), Some(BUNDLE_ADD))) => {
            Message::BundleAdd(BundleAdd::decode(reader.named("a bundle addition"))?)
        }
        (Version::V1_3, (Some(ONF), Some(FLOW_MONITOR_PAUSED))) => Message::FlowMonitorPaused,
        (Version::V1_3, (Some(ONF), Some(FLOW_MONITOR_RESUMED))) => Message::FlowMonitorResumed,
        (Version::V1_0, (Some(NICIRA), Some(SET_ASYNC_CONFIG))) => {
            let mut mask = || {
                let mask = reader.u32()?;
                reader.skip(4)?;
                Ok(mask)
            };
            Message::SetAsyncConfig(AsyncConfig {
                packet_in: mask()?,
                port_status: mask()?,
                flow_removed: mask()?,
            })
        }
        _ => Message::Other {
            kind: EXPERIMENTER,
            body: body.to_vec(),
        },
    })
}

//! Errors that a switch reports, with the names that Open vSwitch's documentation and ovs-ofctl
//! give them.

use std::fmt;

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError},
    header::Version,
    message::{NICIRA, ONF},
};

/// The error type that says: the code is an experimenter's.
const EXPERIMENTER: u16 = 0xffff;

/// What an error is, apart from the message that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// The version of the message that carried it: the numbers depend on it.
    pub version: Version,
    /// The experimenter whose code it is; `None` for OpenFlow's own.
    pub experimenter: Option<u32>,
    /// The type; 0xffff for an experimenter's.
    pub kind: u16,
    /// The code in this type, or an experimenter's.
    pub code: u16,
}

/// An ERROR message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ErrorMessage {
    /// What the error is.
    pub code: ErrorCode,
    /// The beginning of the message that caused it (at most 64 bytes from Open vSwitch), or a text.
    pub data: Vec<u8>,
}

impl ErrorMessage {
    pub(super) fn decode(version: Version, body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("an ERROR", body);
        let kind = reader.u16()?;
        let code = reader.u16()?;
        let experimenter = match kind {
            EXPERIMENTER if version == Version::V1_3 => Some(reader.u32()?),
            _ => None,
        };
        let code = ErrorCode {
            version,
            experimenter,
            kind,
            code,
        };
        let data = reader.rest().to_vec();
        Ok(Self { code, data })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) {
        to.put_u16(self.code.kind);
        to.put_u16(self.code.code);
        if let Some(experimenter) = self.code.experimenter {
            to.put_u32(experimenter);
        }
        to.put_slice(&self.data);
    }
}

impl ErrorCode {
    /// The name, for example `OFPBAC_BAD_OUT_PORT`; `None` where it has none here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let names = match (self.version, self.experimenter, self.kind) {
            (_, Some(ONF), _) => return nth(BUNDLE, self.code.checked_sub(2300)?),
            (_, Some(NICIRA), _) => return nicira_name(self.code),
            (_, Some(_), _) => return None,
            (_, None, 0) => HELLO,
            (_, None, 1) => BAD_REQUEST,
            (_, None, 2) => BAD_ACTION,
            (Version::V1_0, None, 3) => FLOW_MOD_1_0,
            (Version::V1_3, None, 3) => BAD_INSTRUCTION,
            (Version::V1_3, None, 4) => BAD_MATCH,
            (Version::V1_3, None, 5) => FLOW_MOD,
            (Version::V1_0, None, 4) | (Version::V1_3, None, 7) => PORT_MOD,
            (Version::V1_3, None, 10) => SWITCH_CONFIG,
            _ => return None,
        };
        nth(names, self.code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.experimenter) {
            (Some(name), _) => f.write_str(name),
            (None, Some(experimenter)) => {
                write!(f, "error {} of experimenter {experimenter:#x}", self.code)
            }
            (None, None) => write!(f, "error {}/{}", self.kind, self.code),
        }
    }
}

fn nth(names: &[&'static str], code: u16) -> Option<&'static str> {
    names.get(usize::from(code)).copied()
}

fn nicira_name(code: u16) -> Option<&'static str> {
    Some(match code {
        2 => "NXBRC_NXM_INVALID",
        3 => "NXBRC_NXM_BAD_TYPE",
        4 => "NXBRC_MUST_BE_ZERO",
        6 => "OFPMOFC_MONITOR_EXISTS",
        7 => "OFPMOFC_BAD_FLAGS",
        8 => "OFPMOFC_UNKNOWN_MONITOR",
        10 => "NXBRC_UNENCODABLE_ERROR",
        11 => "NXBAC_MUST_BE_ZERO",
        15 => "NXBAC_BAD_CONJUNCTION",
        12 => "NXFMFC_HARDWARE",
        13 => "NXFMFC_BAD_TABLE_ID",
        _ => return None,
    })
}

const HELLO: &[&str] = &["OFPHFC_INCOMPATIBLE", "OFPHFC_EPERM"];

const BAD_REQUEST: &[&str] = &[
    "OFPBRC_BAD_VERSION",
    "OFPBRC_BAD_TYPE",
    "OFPBRC_BAD_STAT",
    "OFPBRC_BAD_VENDOR",
    "OFPBRC_BAD_SUBTYPE",
    "OFPBRC_EPERM",
    "OFPBRC_BAD_LEN",
    "OFPBRC_BUFFER_EMPTY",
    "OFPBRC_BUFFER_UNKNOWN",
    "OFPBRC_BAD_TABLE_ID",
    "OFPBRC_IS_SLAVE",
    "OFPBRC_BAD_PORT",
    "OFPBRC_BAD_PACKET",
    "OFPBRC_MULTIPART_BUFFER_OVERFLOW",
];

const BAD_ACTION: &[&str] = &[
    "OFPBAC_BAD_TYPE",
    "OFPBAC_BAD_LEN",
    "OFPBAC_BAD_VENDOR",
    "OFPBAC_BAD_VENDOR_TYPE",
    "OFPBAC_BAD_OUT_PORT",
    "OFPBAC_BAD_ARGUMENT",
    "OFPBAC_EPERM",
    "OFPBAC_TOO_MANY",
    "OFPBAC_BAD_QUEUE",
    "OFPBAC_BAD_OUT_GROUP",
    "OFPBAC_MATCH_INCONSISTENT",
    "OFPBAC_UNSUPPORTED_ORDER",
    "OFPBAC_BAD_TAG",
    "OFPBAC_BAD_SET_TYPE",
    "OFPBAC_BAD_SET_LEN",
    "OFPBAC_BAD_SET_ARGUMENT",
];

const BAD_INSTRUCTION: &[&str] = &[
    "OFPBIC_UNKNOWN_INST",
    "OFPBIC_UNSUP_INST",
    "OFPBIC_BAD_TABLE_ID",
    "OFPBIC_UNSUP_METADATA",
    "OFPBIC_UNSUP_METADATA_MASK",
    "OFPBIC_BAD_EXPERIMENTER",
    "OFPBIC_BAD_EXP_TYPE",
    "OFPBIC_BAD_LEN",
    "OFPBIC_EPERM",
];

const BAD_MATCH: &[&str] = &[
    "OFPBMC_BAD_TYPE",
    "OFPBMC_BAD_LEN",
    "OFPBMC_BAD_TAG",
    "OFPBMC_BAD_DL_ADDR_MASK",
    "OFPBMC_BAD_NW_ADDR_MASK",
    "OFPBMC_BAD_WILDCARDS",
    "OFPBMC_BAD_FIELD",
    "OFPBMC_BAD_VALUE",
    "OFPBMC_BAD_MASK",
    "OFPBMC_BAD_PREREQ",
    "OFPBMC_DUP_FIELD",
    "OFPBMC_EPERM",
];

const FLOW_MOD: &[&str] = &[
    "OFPFMFC_UNKNOWN",
    "OFPFMFC_TABLE_FULL",
    "OFPFMFC_BAD_TABLE_ID",
    "OFPFMFC_OVERLAP",
    "OFPFMFC_EPERM",
    "OFPFMFC_BAD_TIMEOUT",
    "OFPFMFC_BAD_COMMAND",
    "OFPFMFC_BAD_FLAGS",
];

const FLOW_MOD_1_0: &[&str] = &[
    "OFPFMFC_TABLE_FULL",
    "OFPFMFC_OVERLAP",
    "OFPFMFC_EPERM",
    "OFPFMFC_BAD_EMERG_TIMEOUT",
    "OFPFMFC_BAD_COMMAND",
    "OFPFMFC_UNSUPPORTED",
];

const PORT_MOD: &[&str] = &[
    "OFPPMFC_BAD_PORT",
    "OFPPMFC_BAD_HW_ADDR",
    "OFPPMFC_BAD_CONFIG",
    "OFPPMFC_BAD_ADVERTISE",
    "OFPPMFC_EPERM",
];

const SWITCH_CONFIG: &[&str] = &["OFPSCFC_BAD_FLAGS", "OFPSCFC_BAD_LEN", "OFPSCFC_EPERM"];

const BUNDLE: &[&str] = &[
    "OFPBFC_UNKNOWN",
    "OFPBFC_EPERM",
    "OFPBFC_BAD_ID",
    "OFPBFC_BUNDLE_EXIST",
    "OFPBFC_BUNDLE_CLOSED",
    "OFPBFC_OUT_OF_BUNDLES",
    "OFPBFC_BAD_TYPE",
    "OFPBFC_BAD_FLAGS",
    "OFPBFC_MSG_BAD_LEN",
    "OFPBFC_MSG_BAD_XID",
    "OFPBFC_MSG_UNSUP",
    "OFPBFC_MSG_CONFLICT",
    "OFPBFC_MSG_TOO_MANY",
    "OFPBFC_MSG_FAILED",
    "OFPBFC_TIMEOUT",
    "OFPBFC_BUNDLE_IN_PROGRESS",
];

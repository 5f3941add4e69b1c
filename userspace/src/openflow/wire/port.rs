//! Ports in OpenFlow 1.0, the only version with no-flood (OpenFlow 1.0 section 5.2.1).

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError, put_zeros},
    port_number::PortNumber,
};
use crate::ids::Mac;

const NAME_LENGTH: usize = 16;

/// A port as a switch describes it (`struct ofp10_phy_port`). Link modes are not kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortDescription {
    /// Its number.
    pub number: PortNumber,
    /// Its Ethernet address.
    pub hw_addr: Mac,
    /// Its name, cut off after 15 bytes; what is no UTF-8 is replaced.
    pub name: String,
    /// [`Self::NO_FLOOD`] and the other `OFPPC_*`.
    pub config: u32,
    /// `OFPPS_*`.
    pub state: u32,
}

impl PortDescription {
    /// `NORMAL` and `FLOOD` leave it out (`OFPPC_NO_FLOOD`).
    pub const NO_FLOOD: u32 = 1 << 4;

    /// Whether `NORMAL` and `FLOOD` leave it out.
    #[must_use]
    pub const fn no_flood(&self) -> bool {
        self.config & Self::NO_FLOOD != 0
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let number = PortNumber::from_1_0(reader.u16()?);
        let hw_addr = Mac(reader.array()?);
        let name: [u8; NAME_LENGTH] = reader.array()?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let port = Self {
            number,
            hw_addr,
            name: String::from_utf8_lossy(name).into_owned(),
            config: reader.u32()?,
            state: reader.u32()?,
        };
        reader.skip(16)?;
        Ok(port)
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        put_number(self.number, to)?;
        to.put_slice(&self.hw_addr.0);
        let length = self.name.len();
        let padding = (NAME_LENGTH - 1)
            .checked_sub(length)
            .ok_or(WireError::TooLong {
                what: "a port's name",
                length,
            })?;
        to.put_slice(self.name.as_bytes());
        put_zeros(to, padding + 1);
        to.put_u32(self.config);
        to.put_u32(self.state);
        put_zeros(to, 16);
        Ok(())
    }
}

fn put_number(port: PortNumber, to: &mut BytesMut) -> Result<(), WireError> {
    let number = port.to_1_0().ok_or(WireError::BadValue {
        what: "a port number of OpenFlow 1.0",
        value: u64::from(port.0),
    })?;
    to.put_u16(number);
    Ok(())
}

/// A change to a port's configuration (OpenFlow 1.0 section 5.3.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortMod {
    /// The port.
    pub number: PortNumber,
    /// Its Ethernet address, which must be right.
    pub hw_addr: Mac,
    /// The bits' new values.
    pub config: u32,
    /// Which bits to change.
    pub mask: u32,
}

impl PortMod {
    pub(super) fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("a PORT_MOD", body);
        let port = Self {
            number: PortNumber::from_1_0(reader.u16()?),
            hw_addr: Mac(reader.array()?),
            config: reader.u32()?,
            mask: reader.u32()?,
        };
        reader.skip(8)?;
        Ok(port)
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        put_number(self.number, to)?;
        to.put_slice(&self.hw_addr.0);
        to.put_u32(self.config);
        to.put_u32(self.mask);
        put_zeros(to, 8);
        Ok(())
    }
}

/// What became of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortStatusReason {
    /// It was added.
    Added,
    /// It was deleted.
    Deleted,
    /// Its configuration or state changed.
    Modified,
}

/// News of a port (OpenFlow 1.0 section 5.4.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortStatus {
    /// What became of it.
    pub reason: PortStatusReason,
    /// The port as it is now (as it was, once deleted).
    pub port: PortDescription,
}

impl PortStatus {
    pub(super) fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("a PORT_STATUS", body);
        let reason = match reader.u8()? {
            0 => PortStatusReason::Added,
            1 => PortStatusReason::Deleted,
            2 => PortStatusReason::Modified,
            other => {
                let what = "the reason of a PORT_STATUS";
                let value = u64::from(other);
                return Err(WireError::BadValue { what, value });
            }
        };
        reader.skip(7)?;
        let port = PortDescription::decode(&mut reader)?;
        Ok(Self { reason, port })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        to.put_u8(self.reason as u8);
        put_zeros(to, 7);
        self.port.encode(to)
    }
}

//! Port numbers: 16 bits in OpenFlow 1.0, 32 in 1.3, the reserved ones at the top of either.

use std::fmt;

use crate::ids::OfPort;

/// A port's number in the 32 bits of OpenFlow 1.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortNumber(pub u32);

impl PortNumber {
    /// The first of the reserved numbers of 1.3 (`OFPP_MAX`).
    const RESERVED: u32 = 0xffff_ff00;
    /// The first of the reserved numbers of 1.0.
    const RESERVED_1_0: u16 = 0xff00;

    /// Back to the port by which the frame came in.
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// To the flow tables; from a packet-out alone.
    pub const TABLE: Self = Self(0xffff_fff9);
    /// What a learning switch does.
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// To every port but the ingress and the no-flood ones.
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// To every port but the ingress.
    pub const ALL: Self = Self(0xffff_fffc);
    /// To the controllers.
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// The bridge's own port to the host.
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// None or any, by context.
    pub const ANY: Self = Self(0xffff_ffff);

    /// A port with the number that OpenFlow 1.0 gives it.
    #[must_use]
    pub const fn from_1_0(number: u16) -> Self {
        // `u32::from` is not const.
        if number >= Self::RESERVED_1_0 {
            Self(number as u32 | 0xffff_0000)
        } else {
            Self(number as u32)
        }
    }

    /// The number in OpenFlow 1.0, unless it has none.
    #[must_use]
    pub fn to_1_0(self) -> Option<u16> {
        let low = (self.0 & 0xffff) as u16;
        (Self::from_1_0(low) == self).then_some(low)
    }

    /// The port, where it is a real one.
    #[must_use]
    pub fn real(self) -> Option<OfPort> {
        OfPort::from_column(Some(i64::from(self.0)))
    }

    /// The name of a reserved number.
    const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::IN_PORT => "IN_PORT",
            Self::TABLE => "TABLE",
            Self::NORMAL => "NORMAL",
            Self::FLOOD => "FLOOD",
            Self::ALL => "ALL",
            Self::CONTROLLER => "CONTROLLER",
            Self::LOCAL => "LOCAL",
            Self::ANY => "ANY",
            _ => return None,
        })
    }

    /// Whether the number is one of the reserved ones.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.0 >= Self::RESERVED
    }
}

impl From<OfPort> for PortNumber {
    fn from(port: OfPort) -> Self {
        Self(u32::from(port.get()))
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl fmt::Debug for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

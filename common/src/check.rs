//! What is checked of ARP and NDP frames beyond what the flows match, and what is done about it.

use core::fmt;

use crate::Notes;

/// What becomes of frames that every receiver must discard by the standards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Validate {
    /// They are counted and passed on.
    #[default]
    Count = 0,
    /// They are passed on, and nothing is counted of checks.
    Off = 1,
    /// They are counted and dropped.
    Drop = 2,
}

impl Validate {
    /// Every setting.
    pub const ALL: [Self; 3] = [Self::Off, Self::Count, Self::Drop];

    /// The name in text and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Count => "count",
            Self::Drop => "drop",
        }
    }
}

impl fmt::Display for Validate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One thing that may be wrong with an ARP or NDP frame. A frame may fail several checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// [`Notes::HOP_LIMIT_NOT_255`].
    HopLimit,
    /// [`Notes::CODE_NOT_ZERO`].
    Code,
    /// [`Notes::TOO_SHORT`].
    Length,
    /// [`Notes::MULTICAST_TARGET`].
    Target,
    /// [`Notes::FRAGMENTED_NDP`].
    Fragment,
    /// [`Notes::SENDER_MAC_DIFFERS`].
    SenderMac,
    /// [`Notes::ODD_SENDER`].
    Sender,
    /// [`Notes::NODE_ADDRESS_ANNOUNCED`].
    NodeAddress,
}

impl Check {
    /// Every check, those of invalid frames first.
    pub const ALL: [Self; 8] = [
        Self::HopLimit,
        Self::Code,
        Self::Length,
        Self::Target,
        Self::Fragment,
        Self::SenderMac,
        Self::Sender,
        Self::NodeAddress,
    ];

    /// The note of a frame that fails the check.
    #[must_use]
    pub const fn note(self) -> Notes {
        match self {
            Self::HopLimit => Notes::HOP_LIMIT_NOT_255,
            Self::Code => Notes::CODE_NOT_ZERO,
            Self::Length => Notes::TOO_SHORT,
            Self::Target => Notes::MULTICAST_TARGET,
            Self::Fragment => Notes::FRAGMENTED_NDP,
            Self::SenderMac => Notes::SENDER_MAC_DIFFERS,
            Self::Sender => Notes::ODD_SENDER,
            Self::NodeAddress => Notes::NODE_ADDRESS_ANNOUNCED,
        }
    }

    /// The name of [`Self::note`], in text and JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.note().names().next().unwrap_or_default()
    }

    /// Whether every receiver must discard a frame that fails the check (RFC 4861, 6.1, 7.1 and
    /// 8.1; RFC 6980, 5). Failing any other check is merely suspicious.
    #[must_use]
    pub const fn is_of_invalid_frames(self) -> bool {
        Notes::INVALID.contains(self.note())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

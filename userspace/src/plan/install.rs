//! How much of a bridge's flow table is ours.

use std::{fmt, str::FromStr};

/// Which flows are installed, always under our own cookie.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Install {
    /// What goes over the flows of a manager that keeps its own, as ovnkube-node does: the steering
    /// flows, and flows that shadow the fan-out of broadcast ARP and multicast NA, which is not
    /// ours to delete. With the gate off, nothing.
    #[default]
    Overlay,
    /// The whole ARP and NDP part of the design, for bridges that nobody else manages: with the
    /// gate on steering, validation of what comes from OVN, and the catch-all; with the gate off
    /// today's fan-out.
    Complete,
}

impl Install {
    /// The word for it, as in configuration and on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Overlay => "overlay",
            Self::Complete => "complete",
        }
    }
}

impl fmt::Display for Install {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that stands for no set of flows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no set of flows: overlay or complete is wanted")]
pub struct ParseInstallError(pub String);

impl FromStr for Install {
    type Err = ParseInstallError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Overlay, Self::Complete]
            .into_iter()
            .find(|install| install.word() == text)
            .ok_or_else(|| ParseInstallError(text.to_owned()))
    }
}

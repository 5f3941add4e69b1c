//! What kind of node this is: where the host is, and where Open vSwitch and OVN are.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{plan::Gates, representor::Configured};

/// What kind of node this is, as ovnkube-node tells them (`ovnkube-node-mode`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum NodeMode {
    /// Host, Open vSwitch and OVN are on one machine.
    #[default]
    Full,
    /// The DPU: it has Open vSwitch and OVN, and the host is behind a representor.
    Dpu,
    /// The host of a DPU: it has neither.
    DpuHost,
}

impl NodeMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Dpu, Self::DpuHost];

    /// The word for it, as in configuration and on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Dpu => "dpu",
            Self::DpuHost => "dpu-host",
        }
    }

    /// Refuses a gate that the mode has nothing to do with.
    ///
    /// # Errors
    /// Where steering is asked for on the host of a DPU (OKEP-6691: on the DPU only).
    pub const fn check(self, gates: Gates) -> Result<(), ModeError> {
        if matches!(self, Self::DpuHost) && gates.steering() {
            return Err(ModeError::GateOnHost);
        }
        Ok(())
    }
}

impl fmt::Display for NodeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that stands for no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode: full, dpu or dpu-host is wanted")]
pub struct ParseModeError(pub String);

impl FromStr for NodeMode {
    type Err = ParseModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.word() == text)
            .ok_or_else(|| ParseModeError(text.to_owned()))
    }
}

/// A configuration that contradicts the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    /// Nothing is steered on the host of a DPU.
    #[error(
        "disable-udn-arp-ndp-flood is not for --mode dpu-host: flows and bindings are on the DPU, \
         turn it on there"
    )]
    GateOnHost,
    /// Something that would open a database there.
    #[error(
        "--mode dpu-host has no Open vSwitch and no OVN to look at: run this on the DPU, with \
         --mode dpu"
    )]
    NoDatabase,
}

/// The mode, and what it needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// What kind of node this is.
    pub mode: NodeMode,
    /// On a DPU: representors of the host that were named.
    pub representors: Configured,
    /// On a DPU's host: the interfaces that lead to the DPU; none = that of the default route.
    pub interfaces: Vec<Arc<str>>,
    /// Where sysfs is.
    pub sysfs: PathBuf,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            mode: NodeMode::Full,
            representors: Configured::default(),
            interfaces: Vec::new(),
            sysfs: PathBuf::from("/sys"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_is_refused_on_a_dpus_host_alone() {
        let (on, off) = (Gates::new(true, true).unwrap(), Gates::default());
        for mode in NodeMode::ALL {
            assert_eq!(mode.check(off), Ok(()), "{mode}");
            let refused = mode == NodeMode::DpuHost;
            assert_eq!(mode.check(on).is_err(), refused, "{mode}");
            assert_eq!(mode.word().parse(), Ok(mode));
        }
        assert!("DPU".parse::<NodeMode>().is_err());
    }
}

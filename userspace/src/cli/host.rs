//! The flags that say what kind of node this is.

use std::{path::PathBuf, sync::Arc};

use crate::{
    agent::{HostConfig, NodeMode},
    representor::HostRepresentor,
};

/// What kind of node this is.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Kind of node")]
pub struct HostArgs {
    /// full: host, Open vSwitch and OVN are here; dpu: the host is behind a representor, and has IPv4
    /// only; dpu-host: Open vSwitch and OVN are on the DPU
    #[arg(long, value_name = "MODE", default_value_t, env = "NEIGHSTEER_MODE")]
    pub mode: NodeMode,
    /// With dpu: the port that leads to the host, of the default network's bridge or of the one that is
    /// named; any number of times [default: found in sysfs]
    #[arg(
        long,
        value_name = "[BRIDGE=]INTERFACE",
        value_delimiter = ',',
        env = "NEIGHSTEER_HOST_REPRESENTOR"
    )]
    pub host_representor: Vec<HostRepresentor>,
    /// With dpu-host: an interface that leads to the DPU; any number of times [default: that of the
    /// IPv4 default route]
    #[arg(
        long,
        value_name = "INTERFACE",
        value_delimiter = ',',
        env = "NEIGHSTEER_HOST_INTERFACE"
    )]
    pub host_interface: Vec<String>,
    /// Where sysfs is
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "/sys",
        env = "NEIGHSTEER_SYSFS"
    )]
    pub sysfs: PathBuf,
}

impl HostArgs {
    /// What these say.
    #[must_use]
    pub fn config(&self) -> HostConfig {
        let interfaces = self.host_interface.iter();
        HostConfig {
            mode: self.mode,
            representors: self.host_representor.iter().cloned().collect(),
            interfaces: interfaces.map(|name| Arc::from(&**name)).collect(),
            sysfs: self.sysfs.clone(),
        }
    }
}

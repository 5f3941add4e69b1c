//! The flags that say what kind of node this is.

use std::{path::PathBuf, sync::Arc};

use anyhow::ensure;

use crate::{
    agent::{HostConfig, NodeMode},
    representor::{HostRepresentor, is_interface_name},
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
        value_parser = interface,
        env = "NEIGHSTEER_HOST_INTERFACE"
    )]
    pub host_interface: Vec<Arc<str>>,
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
    ///
    /// # Errors
    /// Where something is told that the mode has no use for: the mode may have been forgotten.
    pub fn config(&self) -> anyhow::Result<HostConfig> {
        let mode = self.mode;
        ensure!(
            mode == NodeMode::Dpu || self.host_representor.is_empty(),
            "--host-representor is for --mode dpu, and the mode is {mode}"
        );
        ensure!(
            mode == NodeMode::DpuHost || self.host_interface.is_empty(),
            "--host-interface is for --mode dpu-host, and the mode is {mode}"
        );
        Ok(HostConfig {
            mode,
            representors: self.host_representor.iter().cloned().collect(),
            interfaces: self.host_interface.clone(),
            sysfs: self.sysfs.clone(),
        })
    }
}

fn interface(text: &str) -> Result<Arc<str>, String> {
    match is_interface_name(text) {
        true => Ok(text.into()),
        false => Err("no interface can be called so".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        host: HostArgs,
    }

    fn config(arguments: &str) -> Result<HostConfig, String> {
        let arguments = ["agent"].into_iter().chain(arguments.split(' '));
        let command = Command::try_parse_from(arguments).map_err(|error| error.to_string())?;
        command.host.config().map_err(|error| error.to_string())
    }

    #[test]
    fn what_another_mode_is_for_is_refused() {
        for (arguments, named) in [
            ("--host-representor pf0hpf", "--mode dpu,"),
            ("--mode dpu-host --host-representor pf0hpf", "--mode dpu,"),
            ("--host-interface eth0", "--mode dpu-host,"),
            ("--mode dpu --host-interface eth0", "--mode dpu-host,"),
        ] {
            let error = config(arguments).unwrap_err();
            assert!(error.contains(named), "{arguments}: {error}");
        }
        assert!(config("--mode dpu --host-representor pf0hpf").is_ok());
        let host = config("--mode dpu-host --host-interface eth0,eth1").unwrap();
        assert_eq!(host.interfaces, ["eth0".into(), "eth1".into()]);
    }

    #[test]
    fn a_name_that_no_interface_can_have_is_refused() {
        for name in ["", "a/b", "..", "a b", "sixteen-or-longer"] {
            let arguments = ["agent", "--mode", "dpu-host", "--host-interface", name];
            assert!(Command::try_parse_from(arguments).is_err(), "{name:?}");
        }
    }
}

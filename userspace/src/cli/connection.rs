//! The flags that say where databases, switch and state are.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;

use crate::{agent::Connection, ovsdb::Remote};

/// Where the databases and the switch are.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Where things are")]
pub struct ConnectionArgs {
    /// The Open_vSwitch database: `unix:<path>` or `tcp:<address>:<port>`
    #[arg(
        long,
        value_name = "REMOTE",
        default_value = "unix:/var/run/openvswitch/db.sock",
        env = "NEIGHSTEER_OVS_DB"
    )]
    pub ovs_db: String,
    /// OVN's northbound database
    #[arg(
        long,
        value_name = "REMOTE",
        default_value = "unix:/var/run/ovn/ovnnb_db.sock",
        env = "NEIGHSTEER_OVN_NB"
    )]
    pub ovn_nb: String,
    /// OVN's southbound database [default: external_ids:ovn-remote of the Open_vSwitch row]
    #[arg(long, value_name = "REMOTE", env = "NEIGHSTEER_OVN_SB")]
    pub ovn_sb: Option<String>,
    /// ovs-vswitchd's run directory: `<bridge>.mgmt` and its control socket
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "/var/run/openvswitch",
        env = "NEIGHSTEER_OVS_RUNDIR"
    )]
    pub ovs_rundir: PathBuf,
}

impl ConnectionArgs {
    /// Reads the remotes; `startup_timeout` is what the agent gives a database at start.
    ///
    /// # Errors
    /// Where one of them is not a remote.
    pub fn parse(&self, startup_timeout: Duration) -> anyhow::Result<Connection> {
        Ok(Connection {
            ovs: remotes("--ovs-db", &self.ovs_db)?,
            northbound: remotes("--ovn-nb", &self.ovn_nb)?,
            southbound: self
                .ovn_sb
                .as_deref()
                .map(|text| remotes("--ovn-sb", text))
                .transpose()?,
            ovs_run_directory: self.ovs_rundir.clone(),
            startup_timeout,
        })
    }
}

fn remotes(flag: &str, text: &str) -> anyhow::Result<Vec<Remote>> {
    Remote::parse_list(text).with_context(|| format!("{flag} {text}"))
}

/// Where the state file, the lock and the control socket are.
#[derive(Clone, Debug, clap::Args)]
pub struct StateArgs {
    /// Where the state file, the lock and the control socket are
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "/run/neighsteer",
        env = "NEIGHSTEER_STATE_DIR"
    )]
    pub state_dir: PathBuf,
}

/// Where the pins are.
#[derive(Clone, Debug, clap::Args)]
pub struct BpffsArgs {
    /// The BPF file system; mounted where it is missing
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "/sys/fs/bpf",
        env = "NEIGHSTEER_BPFFS"
    )]
    pub bpffs: PathBuf,
}

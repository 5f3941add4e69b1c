//! The flags that say where databases, switch and state are.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;

use super::host::HostArgs;
use crate::{
    agent::Connection,
    ovsdb::{Remote, TlsFiles},
};

/// Where the databases and the switch are.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Where things are")]
pub struct ConnectionArgs {
    /// The Open_vSwitch database: `unix:<path>`, `tcp:<host>:<port>` or `ssl:<host>:<port>`;
    /// several, separated by commas, for a cluster
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
    /// Our private key for `ssl:` remotes, PEM, not encrypted
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["certificate", "ca_cert"],
        env = "NEIGHSTEER_PRIVATE_KEY"
    )]
    pub private_key: Option<PathBuf>,
    /// Our certificate for `ssl:` remotes, PEM, with those between it and the authority
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["private_key", "ca_cert"],
        env = "NEIGHSTEER_CERTIFICATE"
    )]
    pub certificate: Option<PathBuf>,
    /// Certificates of the authorities of `ssl:` remotes, PEM
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["private_key", "certificate"],
        env = "NEIGHSTEER_CA_CERT"
    )]
    pub ca_cert: Option<PathBuf>,
    /// What kind of node this is
    #[command(flatten)]
    pub host: HostArgs,
}

impl ConnectionArgs {
    /// Reads the remotes; `startup_timeout` is what the agent gives a database at start.
    ///
    /// # Errors
    /// Where one of them is not a remote.
    pub fn parse(&self, startup_timeout: Duration) -> anyhow::Result<Connection> {
        let connection = Connection {
            ovs: remotes("--ovs-db", &self.ovs_db)?,
            northbound: remotes("--ovn-nb", &self.ovn_nb)?,
            southbound: self
                .ovn_sb
                .as_deref()
                .map(|text| remotes("--ovn-sb", text))
                .transpose()?,
            ovs_run_directory: self.ovs_rundir.clone(),
            tls: self.tls(),
            host: self.host.config()?,
            startup_timeout,
        };
        let southbound = connection.southbound.iter().flatten();
        let mut remotes = connection
            .ovs
            .iter()
            .chain(&connection.northbound)
            .chain(southbound);
        if let Some(remote) = remotes.find(|remote| remote.is_tls())
            && connection.tls.is_none()
        {
            anyhow::bail!("{remote} needs --private-key, --certificate and --ca-cert");
        }
        Ok(connection)
    }

    fn tls(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            private_key: self.private_key.clone()?,
            certificate: self.certificate.clone()?,
            ca_cert: self.ca_cert.clone()?,
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

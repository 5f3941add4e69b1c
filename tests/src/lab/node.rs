//! Bringing a lab up, and changing what is on the node while it runs.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;

use super::command::run;
use super::daemon::Daemon;
use super::error::{LabError, Result, wait_until};
use super::flows::FlowSet;
use super::namespace::veth;
use super::network::{
    BRIDGE, BRIDGE_MAC, EXTERNAL_INTERFACE, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, NODE_IPV4,
    NODE_IPV6, Network, PHYSICAL_NETWORK, POD_IPV4, POD_IPV6, POD_MAC,
};
use super::northbound::{self, SecondaryLocalnet};
use super::{Database, Lab};

/// How long ovn-controller may take to make patch ports after it has caught up.
const PORTS: Duration = Duration::from_secs(60);

impl Lab {
    pub(super) fn bring_up(&mut self, pods: &BTreeSet<Network>, flows: FlowSet) -> Result<()> {
        self.programs.prepare()?;
        self.create_namespaces()?;
        for daemon in [Daemon::OvsDatabase, Daemon::Northbound, Daemon::Southbound] {
            let (_, database, schema) = daemon.serves().unwrap_or_default();
            let database = self.directory().join(database);
            run(self
                .tool("ovsdb-tool")
                .arg("create")
                .arg(database)
                .arg(self.programs.file(schema)))?;
            self.start_daemon(daemon)?;
        }
        self.with_database(Daemon::Northbound, |northbound| {
            // As `ovn-nbctl init`: without it there is nothing for `sync` to count with.
            northbound.transact(vec![
                json!({"op": "insert", "table": "NB_Global", "row": {}}),
            ])
        })?;
        self.configure_chassis()?;
        self.start_daemon(Daemon::Vswitchd)?;
        self.create_bridges()?;
        self.start_daemon(Daemon::Northd)?;
        let networks: Vec<_> = self.networks().collect();
        let options = self.router_options();
        self.with_database(Daemon::Northbound, |northbound| {
            northbound::add_networks(northbound, &networks, &options)
        })?;
        for network in pods {
            self.connect_pod(*network)?;
        }
        // ovn-controller 23.03 crashes when it finds no row in SB_Global.
        self.sync_northd()?;
        self.start_daemon(Daemon::Controller)?;
        self.wait_for_chassis()?;
        self.sync()?;
        self.wait_for_patch_ports(networks.iter().map(|network| network.patch_port()))?;
        self.set_flows(flows)
    }

    fn create_namespaces(&self) -> Result<()> {
        self.node.create()?;
        self.external.create()?;
        self.node.sysctl("net/ipv6/conf/all/disable_ipv6", "0")?;
        let uplink = self.uplink();
        // The kernel sees the uplink's frames beside the userspace datapath: with the kernel's own
        // datapath it would not, so it must not answer them.
        for (key, value) in [
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/arp_ignore", "8"),
            ("ipv4/conf/default/rp_filter", "1"),
            ("ipv6/conf/default/disable_ipv6", "1"),
        ] {
            self.node.sysctl(&format!("net/{key}"), value)?;
        }
        let lines = veth(&uplink, EXTERNAL_INTERFACE, &self.external);
        let address = format!("link set {uplink} address {}\n", BRIDGE_MAC);
        self.node.ip(&(lines + &address))?;
        self.external.ip(&format!(
            "link set {EXTERNAL_INTERFACE} address {} up\n\
             addr add {GATEWAY_IPV4}/16 dev {EXTERNAL_INTERFACE}\n\
             addr add {GATEWAY_IPV6}/64 dev {EXTERNAL_INTERFACE} nodad\n",
            GATEWAY_MAC
        ))?;
        self.node.disable_checksum_offload(&uplink)?;
        self.external.disable_checksum_offload(EXTERNAL_INTERFACE)
    }

    fn configure_chassis(&self) -> Result<()> {
        let settings = [
            format!("system-id={}", self.chassis()),
            format!("ovn-remote={}", self.southbound_remote()),
            "ovn-encap-type=geneve".to_owned(),
            "ovn-encap-ip=127.0.0.1".to_owned(),
            format!("ovn-bridge-mappings={PHYSICAL_NETWORK}:{BRIDGE}"),
            format!("ovn-bridge-datapath-type={}", self.state.datapath.kind()),
            // As OVN-Kubernetes sets them.
            "ovn-monitor-all=true".to_owned(),
            "ovn-remote-probe-interval=100000".to_owned(),
            "ovn-openflow-probe-interval=180".to_owned(),
        ];
        let mut arguments = ["--no-wait", "init", "--", "set", "open", "."]
            .map(str::to_owned)
            .to_vec();
        arguments.extend(settings.map(|setting| format!("external_ids:{setting}")));
        arguments.push("other_config:vlan-limit=0".to_owned());
        // As it does, too: ovn-controller sends its flows as one bundle, and is busy with something else
        // for more than the 10 s of the default where there are some hundred thousand.
        arguments.push("other_config:bundle-idle-timeout=180".to_owned());
        self.vsctl(arguments).map(drop)
    }

    fn create_bridges(&self) -> Result<()> {
        let uplink = self.uplink();
        let mac = BRIDGE_MAC;
        let datapath = self.state.datapath.kind();
        let text = format!(
            "-- add-br br-int -- set bridge br-int datapath_type={datapath} fail_mode=secure \
             other_config:disable-in-band=true \
             -- add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type={datapath} fail_mode=standalone \
             other_config:hwaddr=\"{mac}\" other_config:disable-in-band=true \
             external_ids:bridge-id={BRIDGE} external_ids:bridge-uplink={uplink} \
             -- add-port {BRIDGE} {uplink}"
        );
        self.vsctl(text.split_whitespace())?;
        // Until the bridge has its flows: routers announce themselves as they come up, and each
        // announcement would flood to all of them.
        self.drop_everything()?;
        self.configure_bridge_interface()
    }

    /// Gives the bridge's own interface the node's addresses, where it has not got them.
    pub(super) fn configure_bridge_interface(&self) -> Result<()> {
        for (key, value) in [
            ("ipv4/conf/{}/arp_ignore", "0"),
            ("ipv4/conf/{}/rp_filter", "0"),
            ("ipv6/conf/{}/disable_ipv6", "0"),
        ] {
            let key = key.replace("{}", BRIDGE);
            self.node.sysctl(&format!("net/{key}"), value)?;
        }
        self.node.ip(&format!(
            "link set {BRIDGE} up\n\
             addr replace {NODE_IPV4}/16 dev {BRIDGE}\n\
             addr replace {NODE_IPV6}/64 dev {BRIDGE} nodad\n"
        ))?;
        self.node.disable_checksum_offload(BRIDGE)
    }

    /// Without a chassis, northd takes every configuration for installed.
    fn wait_for_chassis(&self) -> Result<()> {
        wait_until(PORTS, "ovn-controller to register its chassis", || {
            let rows = self
                .with_database(Daemon::Southbound, |southbound| {
                    southbound.select("Chassis_Private", json!([]), &["name", "_uuid"])
                })
                .map_err(|error| error.to_string())?;
            match rows.len() {
                0 => self.check_daemons(Err("no row in Chassis_Private".to_owned())),
                _ => Ok(Ok(())),
            }
        })?
    }

    fn wait_for_patch_ports(&self, wanted: impl Iterator<Item = String>) -> Result<()> {
        let wanted: Vec<String> = wanted.collect();
        wait_until(PORTS, "ovn-controller to make all patch ports", || {
            let ports = self.openflow_ports().map_err(|error| error.to_string())?;
            match wanted.iter().find(|port| !ports.contains_key(*port)) {
                None => Ok(Ok(())),
                Some(missing) => self.check_daemons(Err(format!("no port {missing}"))),
            }
        })?
    }

    /// Makes a pod: a namespace with one interface, and the port that binds it to its network.
    fn connect_pod(&self, network: Network) -> Result<()> {
        let outside = format!("pod{}", network.0);
        self.plug(&outside, network, &network.pod_port())?;
        let pod = self.pod_netns(network);
        let mut lines = format!(
            "link set eth0 address {} mtu 1400 up\n\
             addr add {POD_IPV4}/16 dev eth0\n\
             route add default via 10.100.0.1\n",
            POD_MAC
        );
        if self.state.ipv6 {
            lines += &format!("addr add {POD_IPV6}/64 dev eth0 nodad\n");
            lines += "route add default via fd10::1\n";
        }
        pod.ip(&lines)?;
        pod.disable_checksum_offload("eth0")
    }

    fn plug(&self, outside: &str, network: Network, logical_port: &str) -> Result<()> {
        let pod = self.pod_netns(network);
        pod.create()?;
        self.node.ip(&veth(outside, "eth0", &pod))?;
        let external_id = format!("external_ids:iface-id={logical_port}");
        self.vsctl([
            "--",
            "add-port",
            "br-int",
            outside,
            "--",
            "set",
            "interface",
            outside,
            &external_id,
        ])
        .map(drop)
    }

    /// Adds a pod to a network that has none, and waits until it is connected.
    ///
    /// # Errors
    /// When it has one already, or OVN does not follow.
    pub fn add_pod(&mut self, network: Network) -> Result<()> {
        self.connect_pod(network)?;
        self.state.pods.push(network.0);
        self.directory.write_state(&self.state)?;
        self.sync()
    }

    /// Adds a primary UDN, and waits until its patch port is there. The bridge's flows are not
    /// touched: see [`Lab::set_flows`].
    ///
    /// # Errors
    /// When it exists, or OVN does not follow.
    pub fn add_udn(&mut self, id: u16) -> Result<Network> {
        let network = Network(id);
        if !self.networks.insert(network) {
            return Err(LabError::Choice(format!("network {id} exists already")));
        }
        let options = self.router_options();
        self.with_database(Daemon::Northbound, |northbound| {
            northbound::add_networks(northbound, &[network], &options)
        })?;
        self.sync()?;
        self.wait_for_patch_ports(std::iter::once(network.patch_port()))?;
        Ok(network)
    }

    /// Removes a primary UDN, and waits until its patch port is gone.
    ///
    /// # Errors
    /// When OVN does not follow.
    pub fn remove_udn(&mut self, id: u16) -> Result<()> {
        let network = Network(id);
        if network.is_default() || !self.networks.remove(&network) {
            return Err(LabError::Choice(format!("no UDN {id}")));
        }
        self.with_database(Daemon::Northbound, |northbound| {
            northbound::remove_network(northbound, network)
        })?;
        let port = network.patch_port();
        wait_until(PORTS, format_args!("{port} to go"), || {
            // ovn-controller keeps ports in its first 10 seconds and 20 updates; each call is one.
            self.sync().map_err(|error| error.to_string())?;
            let ports = self.openflow_ports().map_err(|error| error.to_string())?;
            match ports.contains_key(&port) {
                false => Ok(()),
                true => Err("it is there".to_owned()),
            }
        })
    }

    /// Removes a primary UDN and makes it again under the same name; waits for nobody.
    ///
    /// # Errors
    /// When the northbound database refuses.
    pub fn recreate_udn(&self, id: u16) -> Result<()> {
        let network = Network(id);
        if network.is_default() || !self.networks.contains(&network) {
            return Err(LabError::Choice(format!("no UDN {id}")));
        }
        let options = self.router_options();
        self.with_database(Daemon::Northbound, |northbound| {
            northbound::remove_network(northbound, network)?;
            northbound::add_networks(northbound, &[network], &options)
        })
    }

    /// Adds a secondary localnet network on the external bridge, with one pod so that
    /// ovn-controller makes its patch port; waits for that.
    ///
    /// # Errors
    /// When OVN does not follow.
    pub fn add_secondary_localnet(&mut self, name: &str) -> Result<SecondaryLocalnet> {
        let names = SecondaryLocalnet {
            name: name.to_owned(),
        };
        self.with_database(Daemon::Northbound, |northbound| {
            northbound::add_secondary_localnet(northbound, &names)
        })?;
        // Numbers of pods above all of the primary networks'.
        let place = Network(u16::MAX - u16::try_from(self.secondaries.len()).unwrap_or_default());
        self.plug(
            &format!("sec{}", self.secondaries.len()),
            place,
            &names.pod_port(),
        )?;
        self.secondaries.push(names.clone());
        self.sync()?;
        self.wait_for_patch_ports(std::iter::once(names.patch_port()))?;
        Ok(names)
    }

    /// Gives the external host one more address.
    ///
    /// # Errors
    /// When it has it already.
    pub fn add_external_host(&self, address: IpAddr) -> Result<()> {
        self.external.ip(&match address {
            IpAddr::V4(ip) => format!("addr add {ip}/16 dev {EXTERNAL_INTERFACE}\n"),
            IpAddr::V6(ip) => format!("addr add {ip}/64 dev {EXTERNAL_INTERFACE} nodad\n"),
        })
    }

    /// Takes an address away from the external host.
    ///
    /// # Errors
    /// When it does not have it.
    pub fn remove_external_host(&self, address: IpAddr) -> Result<()> {
        self.external.ip(&match address {
            IpAddr::V4(ip) => format!("addr del {ip}/16 dev {EXTERNAL_INTERFACE}\n"),
            IpAddr::V6(ip) => format!("addr del {ip}/64 dev {EXTERNAL_INTERFACE}\n"),
        })
    }

    /// Runs a closure with a connection to a database server, which is kept for the next time.
    ///
    /// # Errors
    /// When the server is not reached, and what the closure returns.
    pub fn with_database<T>(
        &self,
        daemon: Daemon,
        closure: impl FnOnce(&Database) -> Result<T>,
    ) -> Result<T> {
        let name = match daemon {
            Daemon::Northbound => "OVN_Northbound",
            Daemon::Southbound => "OVN_Southbound",
            _ => "Open_vSwitch",
        };
        // The pool is not locked meanwhile: another thread connects anew.
        let connection = match self.disconnect(daemon) {
            Some(connection) => connection,
            None => Database::connect(&self.socket(daemon), name)?,
        };
        let result = closure(&connection);
        // A connection that failed is not used again; a refused transaction is no such failure.
        if !matches!(result, Err(LabError::Io { .. })) {
            let mut databases = self
                .databases
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            databases.insert(daemon, connection);
        }
        result
    }

    /// Ports by name with their OpenFlow numbers; ports that have none yet are left out.
    ///
    /// # Errors
    /// When the Open_vSwitch database is not reached.
    pub fn openflow_ports(&self) -> Result<std::collections::BTreeMap<String, u32>> {
        let rows = self.with_database(Daemon::OvsDatabase, |database| {
            database.select("Interface", json!([]), &["name", "ofport", "_uuid"])
        })?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                let number = row["ofport"].as_u64()?.try_into().ok()?;
                Some((row["name"].as_str()?.to_owned(), number))
            })
            .collect())
    }
}

//! A northbound database without OVN: gateway routers with their ports, and static bindings.

use std::{sync::Arc, time::Duration};

use neighsteer::{
    agent::databases::{STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS},
    ovsdb::{
        Client, Datum, MonitorCondition, MonitorRequest, Operation, Options, Remote, TableRequest,
        Uuid,
    },
};

use crate::{mirroring::follower_port, southbound::synced};

/// A gateway router of a user-defined network.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Its row in `Logical_Router`; the port goes with it.
    pub router: Uuid,
    /// Its external port's row in `Logical_Router_Port`.
    pub port_row: Uuid,
    /// The external port's name.
    pub port: Arc<str>,
}

/// The static bindings that match, and nothing else.
#[must_use]
pub fn options(remotes: Vec<Remote>, condition: MonitorCondition) -> Options {
    let rows = TableRequest::new(STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS).filter(condition);
    Options {
        transact_timeout: Duration::from_secs(60),
        ..Options::new(remotes, "OVN_Northbound", MonitorRequest::new().table(rows))
    }
}

/// A client that only writes.
///
/// # Errors
/// Where the server does not answer.
pub async fn writer(remote: Remote) -> anyhow::Result<Client> {
    let none = MonitorCondition::AnyOf(Vec::new());
    let (client, mut monitor, driver) = Client::connect(options(vec![remote], none));
    tokio::spawn(driver.run());
    synced(&mut monitor).await?;
    Ok(client)
}

/// As many gateway routers; the first one's number is 1.
///
/// # Errors
/// Where the server refuses them.
pub async fn gateways(client: &Client, count: usize) -> anyhow::Result<Vec<Gateway>> {
    let gateways: Vec<Gateway> = (1..=count)
        .map(|number| Gateway {
            router: Uuid::random(),
            port_row: Uuid::random(),
            port: follower_port(number).into(),
        })
        .collect();
    let inserts: Vec<Operation> = gateways.iter().flat_map(add).collect();
    client.transact(&inserts).await?;
    Ok(gateways)
}

/// Adds a gateway router.
#[must_use]
pub fn add(gateway: &Gateway) -> [Operation; 2] {
    let port = Operation::insert("Logical_Router_Port")
        .uuid(gateway.port_row)
        .set("name", &*gateway.port)
        .set("mac", "02:00:00:00:00:02")
        .set("networks", Datum::set(["172.18.0.2/16"]));
    let router = Operation::insert("Logical_Router")
        .uuid(gateway.router)
        .set("name", &*gateway.port)
        .set("ports", Datum::set([gateway.port_row]));
    [port.into(), router.into()]
}

/// Removes a gateway router, and its port with it.
#[must_use]
pub fn remove(gateway: &Gateway) -> Operation {
    Operation::delete("Logical_Router")
        .by_uuid(gateway.router)
        .into()
}

/// A static binding to insert.
#[must_use]
pub fn insert(port: &str, ip: &str, mac: &str, override_dynamic_mac: bool) -> Operation {
    Operation::insert(STATIC_MAC_BINDING)
        .set("logical_port", port)
        .set("ip", ip)
        .set("mac", mac)
        .set("override_dynamic_mac", override_dynamic_mac)
        .into()
}

//! Counting rows of `MAC_Binding`, quickly enough to time what writes them.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use neighsteer::ids::Mac;
use neighsteer_tests::lab::{Daemon, Lab, Network};
use serde_json::{Value, json};

/// How long rows may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A neighbour that has not been heard says it again after this.
const AGAIN: Duration = Duration::from_secs(3);
/// Between two looks: one takes the server some milliseconds itself.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until so many routers have a neighbour at a MAC; how long that took.
///
/// # Errors
/// When they have not in a minute.
pub(crate) fn wait(
    lab: &Lab,
    address: IpAddr,
    mac: Mac,
    routers: usize,
) -> anyhow::Result<Duration> {
    say_until(lab, &[], address, mac, routers)
}

/// Sends a frame from outside and waits until so many routers have a neighbour at a MAC; how long
/// that took. Where no router has it after three seconds, the frame is sent again: it may be lost
/// while OVN works on something else.
///
/// # Errors
/// When they have not in a minute.
pub(crate) fn say_until(
    lab: &Lab,
    frame: &[Vec<u8>],
    address: IpAddr,
    mac: Mac,
    routers: usize,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut said = start;
    lab.send_from_outside(frame, Duration::ZERO)?;
    loop {
        let found = count(lab, address, mac)?;
        if found == routers {
            return Ok(start.elapsed());
        }
        if start.elapsed() > PATIENCE {
            bail!("{found} of {routers} routers have {address} at {mac}");
        }
        if found == 0 && said.elapsed() > AGAIN {
            lab.send_from_outside(frame, Duration::ZERO)?;
            said = Instant::now();
        }
        // Between two looks, until the deadline above; `wait_until` looks too seldom to measure with.
        thread::sleep(PAUSE);
    }
}

fn count(lab: &Lab, address: IpAddr, mac: Mac) -> anyhow::Result<usize> {
    let conditions = json!([
        ["ip", "==", address.to_string()],
        ["mac", "==", mac.to_string()]
    ]);
    let rows = lab.with_database(Daemon::Southbound, |southbound| {
        southbound.select("MAC_Binding", conditions, &["logical_port"])
    })?;
    Ok(rows.len())
}

/// Deletes the rows of all followers in one transaction, as ovn-northd does when they have aged.
///
/// # Errors
/// When the server refuses it.
pub(crate) fn delete_followers(lab: &Lab, address: IpAddr) -> anyhow::Result<()> {
    let conditions = json!([
        ["ip", "==", address.to_string()],
        ["logical_port", "!=", Network::DEFAULT.external_port()],
    ]);
    transact(
        lab,
        json!({"op": "delete", "table": "MAC_Binding", "where": conditions}),
    )
}

/// Gives the source's row of a neighbour another timestamp, as ovn-controller 25.03 does while there
/// is traffic; ms since the epoch.
///
/// # Errors
/// When the server refuses it.
pub(crate) fn refresh_source(lab: &Lab, address: IpAddr, timestamp: u64) -> anyhow::Result<()> {
    let conditions = json!([
        ["ip", "==", address.to_string()],
        ["logical_port", "==", Network::DEFAULT.external_port()],
    ]);
    let row = json!({"timestamp": timestamp});
    transact(
        lab,
        json!({"op": "update", "table": "MAC_Binding", "where": conditions, "row": row}),
    )
}

fn transact(lab: &Lab, operation: Value) -> anyhow::Result<()> {
    lab.with_database(Daemon::Southbound, |southbound| {
        southbound.transact(vec![operation])
    })?;
    Ok(())
}

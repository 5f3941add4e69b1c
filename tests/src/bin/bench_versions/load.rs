//! Neighbours that go on being there while something else is measured.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use neighsteer::ids::Mac;
use neighsteer_tests::{
    frames::arp_reply,
    lab::{BRIDGE_MAC, Lab, NODE_IPV4},
};

use crate::rows;

/// Each neighbour replies once a second …
const REPLIES: Duration = Duration::from_secs(1);
/// … and OVN refreshes its binding after so many replies: 3/16 of the age threshold of 300 s.
const REPLIES_TO_A_REFRESH: usize = 56;

/// One of the neighbours.
pub(crate) fn neighbour(number: u8) -> (Mac, Ipv4Addr) {
    (
        Mac([0x02, 0xdd, 0, 0, 0, number]),
        Ipv4Addr::new(172, 18, 200, number),
    )
}

/// Sends a reply of a neighbour.
///
/// # Errors
/// When it cannot be sent.
fn reply(lab: &Lab, number: u8) -> anyhow::Result<()> {
    let (mac, ip) = neighbour(number);
    let frame = arp_reply(mac, ip, BRIDGE_MAC, NODE_IPV4);
    Ok(lab.send_from_outside(&[frame], Duration::ZERO)?)
}

/// Keeps neighbours alive until the other end of `stop` is dropped.
///
/// # Errors
/// When a frame cannot be sent, or a row not written.
pub(crate) fn run(lab: &Lab, neighbours: u8, stop: &Receiver<()>) -> anyhow::Result<()> {
    let pace = REPLIES / u32::from(neighbours);
    for (turn, number) in (1..=neighbours).cycle().enumerate() {
        if stop.recv_timeout(pace) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
        reply(lab, number)?;
        // One after the other, evenly over the time.
        if turn % REPLIES_TO_A_REFRESH == 0 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
            let (_, ip) = neighbour(number);
            let now = u64::try_from(now).context("the clock is off")?;
            rows::refresh_source(lab, IpAddr::V4(ip), now)?;
        }
    }
    Ok(())
}

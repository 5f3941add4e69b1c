//! The native OpenFlow client against a real ovs-vswitchd, with ovs-ofctl as the oracle.

mod faults;
mod flows;
mod ovs;
mod ports;
mod watches;

use std::time::Duration;

use neighsteer::openflow::{NativeSwitch, SwitchError};
use ovs::{BRIDGE, Ovs};

const PATIENCE: Duration = Duration::from_secs(20);

fn native(ovs: &Ovs) -> NativeSwitch {
    NativeSwitch::new(ovs.rundir()).with_timeout(PATIENCE)
}

/// What happens before the deadline, which no healthy run comes near.
async fn soon<T>(future: impl Future<Output = Result<T, SwitchError>>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("nothing came in time")
        .unwrap()
}

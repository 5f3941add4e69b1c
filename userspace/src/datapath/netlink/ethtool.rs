//! ethtool's feature bits, by generic netlink (Linux 5.7 and newer).

use nix::sys::socket::SockProtocol;

use super::{
    NetlinkError, ask,
    message::{Request, attribute, attributes, read_text, read_u16},
};

/// `GENL_ID_CTRL`.
const CONTROL: u16 = 0x10;
/// `CTRL_CMD_GETFAMILY`, version 1.
const GET_FAMILY: [u8; 4] = [3, 1, 0, 0];
/// `CTRL_ATTR_FAMILY_ID`.
const FAMILY_ID: u16 = 1;
/// `CTRL_ATTR_FAMILY_NAME`.
const FAMILY_NAME: u16 = 2;
/// Length of `struct genlmsghdr`.
const GENERIC_HEADER: usize = 4;
/// `ETHTOOL_MSG_FEATURES_GET`, version 1.
const GET_FEATURES: [u8; 4] = [11, 1, 0, 0];
/// `ETHTOOL_A_FEATURES_HEADER`.
const FEATURES_HEADER: u16 = 1;
/// `ETHTOOL_A_HEADER_DEV_NAME`.
const DEVICE_NAME: u16 = 2;
/// `ETHTOOL_A_FEATURES_ACTIVE`.
const FEATURES_ACTIVE: u16 = 4;
/// `ETHTOOL_A_BITSET_BITS`.
const BITSET_BITS: u16 = 3;
/// `ETHTOOL_A_BITSET_BIT_NAME`.
const BIT_NAME: u16 = 2;
/// What `ethtool -k` calls rx-vlan-offload.
const RX_VLAN_OFFLOAD: &str = "rx-vlan-hw-parse";

/// Whether an interface takes VLAN tags out of the frames that it receives (`ethtool -k`:
/// rx-vlan-offload).
///
/// # Errors
/// Where the kernel has no ethtool netlink, or no such interface.
pub fn rx_vlan_offload(interface: &str) -> Result<bool, NetlinkError> {
    let family = family()?;
    let name = [interface.as_bytes(), &[0]].concat();
    let request = Request::new("show the interface's features", family)
        .header(&[&GET_FEATURES])
        .nested(FEATURES_HEADER, &[(DEVICE_NAME, &name)]);
    let bodies = ask(SockProtocol::NetlinkGeneric, &request)?;
    bodies
        .iter()
        .find_map(|body| is_active(body, RX_VLAN_OFFLOAD))
        .ok_or(NetlinkError::Malformed {
            request: request.what,
        })
}

fn family() -> Result<u16, NetlinkError> {
    let request = Request::new("name the ethtool family", CONTROL)
        .header(&[&GET_FAMILY])
        .attribute(FAMILY_NAME, b"ethtool\0");
    let bodies = ask(SockProtocol::NetlinkGeneric, &request)?;
    bodies
        .iter()
        .find_map(|body| read_u16(attribute(body.get(GENERIC_HEADER..)?, FAMILY_ID)?))
        .ok_or(NetlinkError::Malformed {
            request: request.what,
        })
}

/// Whether a feature is in the list of active ones: that list has no mask and holds set bits only.
fn is_active(body: &[u8], feature: &str) -> Option<bool> {
    let active = attribute(body.get(GENERIC_HEADER..)?, FEATURES_ACTIVE)?;
    let bits = attribute(active, BITSET_BITS)?;
    Some(
        attributes(bits)
            .filter_map(|(_, bit)| attribute(bit, BIT_NAME))
            .any(|name| read_text(name) == feature),
    )
}

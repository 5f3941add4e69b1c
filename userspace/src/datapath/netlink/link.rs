//! What XDP program an interface runs.

use nix::sys::socket::SockProtocol;

use super::{
    NetlinkError, ask,
    message::{Request, attribute, read_u32},
};

/// `RTM_GETLINK`.
const GET_LINK: u16 = 18;
/// Length of `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// `IFLA_XDP`.
const XDP: u16 = 43;
/// `IFLA_XDP_ATTACHED`.
const XDP_ATTACHED: u16 = 2;
/// `IFLA_XDP_PROG_ID`: the one program; absent where several modes have one each.
const XDP_PROGRAM: u16 = 4;
/// `IFLA_XDP_DRV_PROG_ID` and the same for the other modes.
const XDP_PROGRAMS_OF_MODES: [u16; 3] = [5, 6, 7];

/// How an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// In the network stack.
    Generic,
    /// In the NIC, or in several modes at once.
    Other,
}

/// The XDP programs of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xdp {
    /// How they run.
    pub mode: XdpMode,
    /// Their IDs.
    pub program_ids: Vec<u32>,
}

/// The XDP programs that the interface of that index runs, if any.
///
/// # Errors
/// Where the kernel knows no such interface.
pub fn xdp(interface_index: u32) -> Result<Option<Xdp>, NetlinkError> {
    let request = Request::new("show the interface", GET_LINK).header(&[
        &[0; 4],
        &interface_index.to_ne_bytes(),
        &[0; 8],
    ]);
    let bodies = ask(SockProtocol::NetlinkRoute, &request)?;
    Ok(bodies.iter().find_map(|body| read(body)))
}

fn read(body: &[u8]) -> Option<Xdp> {
    let xdp = attribute(body.get(LINK_HEADER..)?, XDP)?;
    let mode = match attribute(xdp, XDP_ATTACHED)?.first()? {
        0 => return None,
        1 => XdpMode::Native,
        2 => XdpMode::Generic,
        _ => XdpMode::Other,
    };
    let program = |kind| attribute(xdp, kind).and_then(read_u32);
    let program_ids = match program(XDP_PROGRAM) {
        Some(id) => vec![id],
        None => XDP_PROGRAMS_OF_MODES
            .into_iter()
            .filter_map(program)
            .collect(),
    };
    Some(Xdp { mode, program_ids })
}

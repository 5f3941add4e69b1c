//! As much of netlink as the datapath asks for: XDP state, tc filters, ethtool features, and how
//! interfaces come and go.
//!
//! Messages and attributes: RFC 3549 and the kernel's `Documentation/userspace-api/netlink`.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket},
};

mod ethtool;
mod filter;
mod link;
mod links;
mod message;
mod watch;

pub use ethtool::rx_vlan_offload;
pub use filter::{Filter, ingress_filters};
pub use link::{Xdp, XdpMode, xdp};
pub use links::{Link, LinkTable};
use message::{Reply, Request};
pub use watch::{LinkWatch, LinkWatchEnded, LinkWatchError};

/// More than the kernel puts into one datagram of a dump (32 KiB).
const BUFFER: usize = 65536;

/// Why netlink gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket failed.
    #[error("netlink socket")]
    Socket(#[source] std::io::Error),
    /// The kernel refused the request.
    #[error("the kernel refused to {request}: {errno}")]
    Refused {
        /// What was asked for.
        request: &'static str,
        /// Why.
        errno: Errno,
    },
    /// The kernel's answer could not be understood.
    #[error("the kernel's answer to \"{request}\" is malformed")]
    Malformed {
        /// What was asked for.
        request: &'static str,
    },
}

impl From<Errno> for NetlinkError {
    fn from(errno: Errno) -> Self {
        Self::Socket(errno.into())
    }
}

/// The bodies that answer one request, without their netlink headers.
fn ask(protocol: SockProtocol, request: &Request) -> Result<Vec<Vec<u8>>, NetlinkError> {
    let socket = open(protocol)?;
    send(socket.as_raw_fd(), &request.bytes(), MsgFlags::empty())?;
    let mut bodies = Vec::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            length => length?,
        };
        let received = buffer.get(..length).unwrap_or_default();
        for reply in message::replies(received) {
            match reply {
                Some(Reply::Body(body)) => bodies.push(body.to_vec()),
                Some(Reply::End) => return Ok(bodies),
                Some(Reply::Error(errno)) => {
                    return Err(NetlinkError::Refused {
                        request: request.what,
                        errno,
                    });
                }
                None => {
                    return Err(NetlinkError::Malformed {
                        request: request.what,
                    });
                }
            }
        }
    }
}

fn open(protocol: SockProtocol) -> nix::Result<OwnedFd> {
    socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )
}

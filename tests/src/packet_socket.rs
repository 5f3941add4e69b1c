//! Sending whole frames by an interface, as packet(7) does.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, sendto, setsockopt,
        socket, sockopt,
    },
};

/// A socket of the network namespace that the thread which opened it was in.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    address: LinkAddr,
}

impl PacketSocket {
    /// A socket whose frames leave by this interface.
    ///
    /// # Errors
    /// Where there is no such interface, or without CAP_NET_RAW.
    pub fn open(interface: &str) -> io::Result<Self> {
        let address = nix::ifaddrs::getifaddrs()?
            .filter(|address| address.interface_name == interface)
            .find_map(|address| address.address?.as_link_addr().copied())
            .ok_or_else(|| {
                let what = format!("no link address on {interface}");
                io::Error::new(io::ErrorKind::NotFound, what)
            })?;
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )?;
        Ok(Self { socket, address })
    }

    /// Gives every frame that is sent from now on a mark (`skb->mark`), which a veth pair within one
    /// network namespace keeps.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN.
    pub fn set_mark(&self, mark: u32) -> io::Result<()> {
        setsockopt(&self.socket, sockopt::Mark, &mark).map_err(Into::into)
    }

    /// Sends a frame; says whether it left: the queue of a veth pair may be full.
    ///
    /// # Errors
    /// Where the interface takes no such frame.
    pub fn try_send(&self, frame: &[u8]) -> io::Result<bool> {
        let sent = sendto(
            self.socket.as_raw_fd(),
            frame,
            &self.address,
            MsgFlags::empty(),
        );
        match sent {
            Ok(length) => Ok(length == frame.len()),
            Err(Errno::ENOBUFS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// As [`PacketSocket::try_send`], and where the queue is full.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        if self.try_send(frame)? {
            Ok(())
        } else {
            Err(io::Error::from(Errno::ENOBUFS))
        }
    }
}

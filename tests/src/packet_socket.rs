//! Whole frames by an interface, as packet(7) sends and receives them.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::{
        socket::{
            AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv,
            sendto, setsockopt, socket, sockopt,
        },
        time::TimeVal,
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
        let address = link_address(interface)?;
        let socket = raw_socket(SockProtocol::EthAll)?;
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

fn raw_socket(protocol: SockProtocol) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socket(
        AddressFamily::Packet,
        SockType::Raw,
        flags,
        protocol,
    )?)
}

/// How long a frame may take from one end of a cable to the other.
const DEADLINE: TimeVal = TimeVal::new(10, 0);

/// A socket that gets the IPv6 packets which an interface hands to the network stack: what XDP or tc
/// dropped is not among them.
#[derive(Debug)]
pub struct PacketReceiver(OwnedFd);

impl PacketReceiver {
    /// A socket on this interface.
    ///
    /// # Errors
    /// Where there is no such interface, or without CAP_NET_RAW.
    pub fn open(interface: &str) -> io::Result<Self> {
        let address = link_address(interface)?;
        let socket = raw_socket(SockProtocol::EthIpv6)?;
        bind(socket.as_raw_fd(), &address)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &DEADLINE)?;
        Ok(Self(socket))
    }

    /// The next frame.
    ///
    /// # Errors
    /// Where none comes for ten seconds.
    pub fn next(&self) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; 65_536];
        let length = recv(self.0.as_raw_fd(), &mut frame, MsgFlags::empty())?;
        frame.truncate(length);
        Ok(frame)
    }
}

fn link_address(interface: &str) -> io::Result<LinkAddr> {
    nix::ifaddrs::getifaddrs()?
        .filter(|address| address.interface_name == interface)
        .find_map(|address| address.address?.as_link_addr().copied())
        .ok_or_else(|| {
            let what = format!("no link address on {interface}");
            io::Error::new(io::ErrorKind::NotFound, what)
        })
}

//! Follows the interfaces by the kernel's own news of them (rtnetlink(7), `RTMGRP_LINK`).

use std::{io, os::fd::AsRawFd as _, time::Duration};

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, send, socket,
    },
};
use tokio::{net::unix::pipe, sync::watch, task::JoinHandle, time::sleep};

use super::{
    BUFFER,
    links::{LinkTable, Links},
    message::Request,
};
use crate::ovsdb::Backoff;

/// `RTM_GETLINK`.
const GET_LINK: u16 = 18;
/// `RTMGRP_LINK`.
const LINK_GROUP: u32 = 1;
/// A socket that fails is rather out of memory than out of order.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    longest: Duration::from_secs(5),
};

/// The interfaces of this network namespace, always the newest. Its task ends with it.
#[derive(Debug)]
pub struct LinkWatch {
    table: watch::Receiver<LinkTable>,
    task: JoinHandle<()>,
}

/// Nothing more is told of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task that follows the interfaces has ended")]
pub struct LinkWatchEnded;

/// Interfaces cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("cannot follow the interfaces over netlink")]
pub struct LinkWatchError(#[from] io::Error);

impl LinkWatch {
    /// Lists the interfaces and follows them from then on: nothing between the two is missed.
    ///
    /// # Errors
    /// Where the kernel gives no socket, or no list.
    pub async fn start() -> Result<Self, LinkWatchError> {
        let mut follower = Follower::open()?;
        while !follower.listed {
            follower.receive().await?;
        }
        let (sender, table) = watch::channel(follower.links.table().clone());
        let task = tokio::spawn(follow(follower, sender));
        Ok(Self { table, task })
    }

    /// The interfaces now.
    #[must_use]
    pub fn table(&mut self) -> LinkTable {
        self.table.borrow_and_update().clone()
    }

    /// Waits until something about them is different from what [`Self::table`] returned. Cancel-safe.
    ///
    /// # Errors
    /// Where nothing more will come.
    pub async fn changed(&mut self) -> Result<(), LinkWatchEnded> {
        self.table.changed().await.map_err(|_| LinkWatchEnded)
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Goes on for as long as somebody listens.
async fn follow(mut follower: Follower, sender: watch::Sender<LinkTable>) {
    let mut failures = 0;
    while !sender.is_closed() {
        match follower.receive().await {
            Ok(changed) => {
                failures = 0;
                if changed {
                    sender.send_replace(follower.links.table().clone());
                }
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, failures, "interfaces are not followed; listening anew");
                sleep(BACKOFF.wait(failures, fastrand::f64())).await;
                if let Err(error) = follower.reopen() {
                    tracing::debug!(%error, "no netlink socket");
                }
            }
        }
    }
}

struct Follower {
    socket: pipe::Receiver,
    buffer: Vec<u8>,
    links: Links,
    /// Whether a list came to its end.
    listed: bool,
}

impl Follower {
    fn open() -> io::Result<Self> {
        let mut follower = Self {
            socket: open()?,
            buffer: vec![0; BUFFER],
            links: Links::default(),
            listed: false,
        };
        follower.list()?;
        Ok(follower)
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.socket = open()?;
        self.list()
    }

    fn list(&mut self) -> io::Result<()> {
        let request = Request::new("list the interfaces", GET_LINK)
            .dump()
            .numbered(self.links.list())
            .header(&[&[0; 16]]);
        send(self.socket.as_raw_fd(), &request.bytes(), MsgFlags::empty())?;
        Ok(())
    }

    /// Takes in one datagram; whether the interfaces are other ones.
    async fn receive(&mut self) -> io::Result<bool> {
        let length = loop {
            self.socket.readable().await?;
            match self.socket.try_read(&mut self.buffer) {
                // One that fills the buffer may have been cut off.
                Ok(length) => break (length < self.buffer.len()).then_some(length),
                // There was more news than the socket holds.
                Err(error) if is(&error, Errno::ENOBUFS) => break None,
                // What was there is read; tokio's own error has no number.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        let Some(datagram) = length.and_then(|length| self.buffer.get(..length)) else {
            tracing::debug!("news of interfaces were lost; listing them");
            self.list()?;
            return Ok(false);
        };
        let taken = self.links.take(datagram);
        if let Some(errno) = taken.refused {
            return Err(errno.into());
        }
        if taken.list {
            self.list()?;
        } else {
            self.listed |= !self.links.is_listing();
        }
        Ok(taken.changed)
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno as i32)
}

/// A socket that gets the news, for tokio to wait on and to read from as from a pipe.
fn open() -> io::Result<pipe::Receiver> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::NetlinkRoute,
    )?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, LINK_GROUP))?;
    pipe::Receiver::from_owned_fd_unchecked(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_loopback_interface_is_listed() {
        let mut watch = LinkWatch::start().await.unwrap();
        let table = watch.table();
        assert!(table.values().any(|link| &*link.name == "lo"), "{table:?}");
    }

    #[tokio::test]
    async fn a_socket_without_news_is_waited_for_and_not_opened_anew() {
        let mut follower = Follower::open().unwrap();
        while !follower.listed {
            follower.receive().await.unwrap();
        }
        // Other interfaces may come and go meanwhile; an error must not.
        let next = follower.receive();
        let waited = tokio::time::timeout(Duration::from_millis(50), next).await;
        assert!(!matches!(waited, Ok(Err(_))), "{waited:?}");
    }

    #[tokio::test]
    async fn whoever_listens_no_more_ends_the_task() {
        let watch = LinkWatch::start().await.unwrap();
        let task = watch.task.abort_handle();
        drop(watch);
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}

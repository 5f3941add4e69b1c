//! Raw frames out of and into a namespace, and pings from pods.

use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, sendto,
    setsockopt, socket,
};
use nix::sys::time::TimeVal;

use super::Lab;
use super::command::output;
use super::error::{LabError, Result, check_interrupted};
use super::namespace::Namespace;
use super::network::Network;

/// Larger than any frame on the lab's links.
const FRAME_BUFFER: usize = 65_536;
/// How often a capture looks whether it is to end.
const POLL: TimeVal = TimeVal::new(0, 20_000);

impl Lab {
    /// Sends frames from an interface, one each `pace` (zero: as fast as it goes).
    ///
    /// # Errors
    /// When there is no such interface, or a frame is refused.
    pub fn send(
        &self,
        namespace: &Namespace,
        interface: &str,
        frames: &[Vec<u8>],
        pace: Duration,
    ) -> Result<()> {
        namespace.enter(|| {
            let (socket, address) = packet_socket(interface)?;
            let start = Instant::now();
            for (due, frame) in (0_u32..).map(|nth| pace * nth).zip(frames) {
                check_interrupted()?;
                // The rate that was asked for, not a wait for something to be true.
                thread::sleep(due.saturating_sub(start.elapsed()));
                sendto(socket.as_raw_fd(), frame, &address, MsgFlags::empty())
                    .map_err(LabError::errno("send on", interface))?;
            }
            Ok(())
        })?
    }

    /// Sends frames from the external host.
    ///
    /// # Errors
    /// As [`Lab::send`].
    pub fn send_from_outside(&self, frames: &[Vec<u8>], pace: Duration) -> Result<()> {
        self.send(&self.external, super::EXTERNAL_INTERFACE, frames, pace)
    }

    /// Captures what an interface sends and receives from now on.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn capture(&self, namespace: &Namespace, interface: &str) -> Result<Capture> {
        Capture::start(namespace.clone(), interface.to_owned())
    }

    /// Captures on the external host.
    ///
    /// # Errors
    /// As [`Lab::capture`].
    pub fn capture_outside(&self) -> Result<Capture> {
        self.capture(&self.external, super::EXTERNAL_INTERFACE)
    }

    /// One echo request from a network's pod, with no second try: the time until the answer, or
    /// `None` when there is none within `patience`. To an address that the router has not
    /// resolved, it is the packet that OVN buffered that is answered.
    ///
    /// # Errors
    /// When the network has no pod.
    pub fn ping(
        &self,
        network: Network,
        address: IpAddr,
        patience: Duration,
    ) -> Result<Option<Duration>> {
        let mut command = self.pod_netns(network).command("ping");
        let seconds = patience.as_secs().max(1).to_string();
        command.args(["-n", "-c", "1", "-W", &seconds, &address.to_string()]);
        let output = output(&mut command, "")?;
        let text = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => round_trip(&text).map(Some).ok_or(LabError::Unexpected {
                what: "the output of ping",
                text: text.into_owned(),
            }),
            // No answer. Anything else is an error of ping's own.
            Some(1) => Ok(None),
            _ => Err(LabError::Command {
                command: format!("ping {address}"),
                status: output.status,
                stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}

/// The time in `64 bytes from 172.18.0.1: icmp_seq=1 ttl=63 time=12.3 ms`.
fn round_trip(text: &str) -> Option<Duration> {
    let (_, rest) = text.split_once("time=")?;
    let milliseconds: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_secs_f64(milliseconds / 1e3))
}

/// Frames that go by an interface, collected by a thread until this value is dropped.
#[derive(Debug)]
pub struct Capture {
    frames: Arc<Frames>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a capture has collected, and the news of more.
#[derive(Debug, Default)]
struct Frames {
    list: Mutex<Vec<Vec<u8>>>,
    more: Condvar,
}

impl Frames {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, frame: Vec<u8>) {
        self.lock().push(frame);
        self.more.notify_all();
    }
}

impl Capture {
    fn start(namespace: Namespace, interface: String) -> Result<Self> {
        let frames = Arc::new(Frames::default());
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, opened) = mpsc::channel();
        let thread = thread::spawn({
            let (frames, stop) = (Arc::clone(&frames), Arc::clone(&stop));
            move || {
                let socket = namespace
                    .move_this_thread()
                    .and_then(|()| packet_socket(&interface));
                match socket {
                    Ok((socket, _)) => {
                        if ready.send(Ok(())).is_ok() {
                            collect(&socket, &frames, &stop);
                        }
                    }
                    Err(error) => drop(ready.send(Err(error))),
                }
            }
        });
        let capture = Self {
            frames,
            stop,
            thread: Some(thread),
        };
        match opened.recv() {
            Ok(result) => result.map(|()| capture),
            Err(_) => Err(LabError::Choice("a capture ended as it began".to_owned())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.frames.lock()
    }

    /// The frames so far, sent ones included.
    #[must_use]
    pub fn frames(&self) -> Vec<Vec<u8>> {
        self.lock().clone()
    }

    /// How many of the frames so far are wanted.
    #[must_use]
    pub fn count(&self, wanted: impl Fn(&[u8]) -> bool) -> usize {
        self.lock().iter().filter(|frame| wanted(frame)).count()
    }

    /// The number of wanted frames once no further one has come for `quiet`.
    ///
    /// # Errors
    /// When the wait is interrupted.
    pub fn count_when_quiet(
        &self,
        quiet: Duration,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<usize> {
        let count = |frames: &[Vec<u8>]| frames.iter().filter(|frame| wanted(frame)).count();
        let mut frames = self.lock();
        loop {
            check_interrupted()?;
            let seen = count(&frames);
            let (later, result) = self
                .frames
                .more
                .wait_timeout_while(frames, quiet, |frames| count(frames) == seen)
                .unwrap_or_else(PoisonError::into_inner);
            if result.timed_out() {
                return Ok(seen);
            }
            frames = later;
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn collect(socket: &OwnedFd, frames: &Frames, stop: &AtomicBool) {
    let mut buffer = vec![0; FRAME_BUFFER];
    while !stop.load(Ordering::Relaxed) {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => {
                let frame = buffer.get(..length).unwrap_or_default().to_vec();
                frames.push(frame);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            // The interface or its namespace is gone: no more frames will come.
            Err(_) => return,
        }
    }
}

/// A packet socket (packet(7)) bound to an interface of the calling thread's namespace.
fn packet_socket(interface: &str) -> Result<(OwnedFd, LinkAddr)> {
    let address = link_address(interface)?;
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )
    .map_err(LabError::errno("open a packet socket on", interface))?;
    setsockopt(&socket, ReceiveTimeout, &POLL)
        .and_then(|()| bind(socket.as_raw_fd(), &address))
        .map_err(LabError::errno("bind a packet socket to", interface))?;
    Ok((socket, address))
}

fn link_address(interface: &str) -> Result<LinkAddr> {
    nix::ifaddrs::getifaddrs()
        .map_err(LabError::errno("list", "interfaces"))?
        .filter(|candidate| candidate.interface_name == interface)
        .find_map(|candidate| candidate.address?.as_link_addr().copied())
        .ok_or_else(|| LabError::errno("find", interface)(Errno::ENODEV))
}

//! Which frame to trace.

use std::{
    fs::File,
    io::{self, Read},
    net::IpAddr,
    path::PathBuf,
    str::FromStr,
};

use crate::{
    audit::{FrameError, Message, Neighbour},
    cli::capture::{Capture, CaptureError},
    ids::Mac,
    topology::BridgeGroup,
};

/// What an Ethernet header has (bytes): `ofproto/trace` takes no less.
const ETHERNET_HEADER: usize = 14;
/// The longest frame that is handed to `ofproto/trace` (bytes). One of more than 64 KiB makes
/// ovs-vswitchd 3.1 overwrite its heap and die; no neighbour message and no jumbo frame is as long as
/// half of that.
const LONGEST: usize = 32_768;

/// The flags that give the frame.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "The frame [default: hex on the standard input]")]
pub struct FrameArgs {
    /// The frame in hex, from the destination address on
    #[arg(long, value_name = "HEX", group = "frame")]
    pub hex: Option<String>,
    /// The first frame of a pcap, a pcapng or lines of hex; `-` is the standard input
    #[arg(long, value_name = "FILE", group = "frame")]
    pub pcap: Option<PathBuf>,
    /// Each frame of the input, not only the first
    #[arg(long)]
    pub each: bool,
    /// An ARP reply to the node
    #[arg(long, group = "frame", requires = "from")]
    pub arp_reply: bool,
    /// An ARP request to all, for the node's address unless --to says otherwise
    #[arg(long, group = "frame", requires = "from")]
    pub arp_request: bool,
    /// A Neighbor Advertisement to the node, or to the group that --to names
    #[arg(long, group = "frame", requires = "from")]
    pub na: bool,
    /// A Neighbor Solicitation for the node's address, or the one that --to names
    #[arg(long, group = "frame", requires = "from")]
    pub ns: bool,
    /// A Router Advertisement to all nodes, or to the address that --to names
    #[arg(long, group = "frame", requires = "from")]
    pub ra: bool,
    /// The sender of such a message
    #[arg(long, value_name = "IP/MAC")]
    pub from: Option<Sender>,
    /// Whom it is for, or about
    #[arg(long, value_name = "IP", requires = "from")]
    pub to: Option<IpAddr>,
    /// The VLAN of its tag [default: the gateway VLAN, if the bridge has one]
    #[arg(
        long,
        value_name = "ID",
        requires = "from",
        value_parser = clap::value_parser!(u16).range(1..=4094)
    )]
    pub vlan: Option<u16>,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Its IP address.
    pub ip: IpAddr,
    /// Its Ethernet address.
    pub mac: Mac,
}

impl FromStr for Sender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (ip, mac) = text
            .split_once('/')
            .ok_or("an IP address, a slash and a MAC address are wanted")?;
        Ok(Self {
            ip: ip.parse().map_err(|_| format!("{ip:?} is no IP address"))?,
            mac: mac.parse().map_err(|error| format!("{error}"))?,
        })
    }
}

/// Why there is no frame to trace.
#[derive(Debug, thiserror::Error)]
pub enum FrameInputError {
    /// The file cannot be opened.
    #[error("cannot open {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// `--hex` is no hex.
    #[error("--hex is no frame in hex: it starts with {0:?}")]
    NoHex(char),
    /// The input is no capture.
    #[error("cannot read the frame")]
    Capture(#[from] CaptureError),
    /// The input has no frame.
    #[error(
        "there is no frame: give --hex, --pcap, a message such as --arp-reply, or hex on the standard input"
    )]
    Empty,
    /// A frame without an Ethernet header.
    #[error(
        "frame {index} has {length} bytes, fewer than the {ETHERNET_HEADER} of an Ethernet header"
    )]
    Short {
        /// Counted from 1.
        index: usize,
        /// Its length.
        length: usize,
    },
    /// A frame that ovs-vswitchd might not survive.
    #[error(
        "frame {index} has {length} bytes, and ovs-vswitchd is not given more than {LONGEST}: cut it off, only its headers matter"
    )]
    Long {
        /// Counted from 1.
        index: usize,
        /// Its length.
        length: usize,
    },
    /// The node has no address of the message's family.
    #[error("bridge {bridge} has no {family} address of the node: give --to")]
    NoAddress {
        /// The bridge.
        bridge: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// The addresses do not go with the message.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// What the arguments give before the node was looked at.
#[derive(Debug)]
pub(super) enum Given {
    /// Whole frames.
    Frames(Vec<Vec<u8>>),
    /// A message of a neighbour.
    Message(Message, Sender),
}

impl FrameArgs {
    /// Reads the input, if a frame is to be read.
    pub(super) fn given(&self) -> Result<Given, FrameInputError> {
        let messages = [
            (self.arp_reply, Message::ArpReply),
            (self.arp_request, Message::ArpRequest),
            (self.na, Message::NeighborAdvertisement),
            (self.ns, Message::NeighborSolicitation),
            (self.ra, Message::RouterAdvertisement),
        ];
        let message = messages.into_iter().find(|(chosen, _)| *chosen);
        if let (Some((_, message)), Some(sender)) = (message, self.from) {
            return Ok(Given::Message(message, sender));
        }
        let frames = match (&self.hex, &self.pcap) {
            (Some(hex), _) => match hex.trim_start().chars().next() {
                Some(first) if !first.is_ascii_hexdigit() => {
                    return Err(FrameInputError::NoHex(first));
                }
                _ => self.read(hex.as_bytes())?,
            },
            (None, Some(path)) if path.as_os_str() != "-" => match File::open(path) {
                Ok(file) => self.read(file)?,
                Err(source) => {
                    return Err(FrameInputError::Open {
                        path: path.clone(),
                        source,
                    });
                }
            },
            _ => self.read(io::stdin().lock())?,
        };
        Ok(Given::Frames(frames))
    }

    /// The first frame, or each.
    fn read(&self, input: impl Read) -> Result<Vec<Vec<u8>>, FrameInputError> {
        let mut capture = Capture::open(input)?;
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame()? {
            let (index, length) = (frames.len() + 1, frame.bytes.len());
            if length < ETHERNET_HEADER {
                return Err(FrameInputError::Short { index, length });
            }
            if length > LONGEST {
                return Err(FrameInputError::Long { index, length });
            }
            frames.push(frame.bytes.to_vec());
            if !self.each {
                break;
            }
        }
        if frames.is_empty() {
            return Err(FrameInputError::Empty);
        }
        Ok(frames)
    }

    /// The frames, with what the bridge's group adds to a message.
    pub(super) fn frames(
        &self,
        given: Given,
        group: &BridgeGroup,
    ) -> Result<Vec<Vec<u8>>, FrameInputError> {
        let (message, sender) = match given {
            Given::Frames(frames) => return Ok(frames),
            Given::Message(message, sender) => (message, sender),
        };
        let to = match (self.to, message) {
            (Some(to), _) => to,
            (None, Message::RouterAdvertisement) => IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]),
            (None, _) => {
                let is_ipv4 = matches!(message, Message::ArpReply | Message::ArpRequest);
                let mut addresses = group.node_addresses.iter();
                let address = addresses.find(|address| address.is_ipv4() == is_ipv4);
                *address.ok_or_else(|| FrameInputError::NoAddress {
                    bridge: group.bridge.to_string(),
                    family: if is_ipv4 { "IPv4" } else { "IPv6" },
                })?
            }
        };
        let frame = Neighbour {
            message,
            mac: sender.mac,
            ip: sender.ip,
            node_mac: group.bridge_mac,
            to,
            vlan: self.vlan.or(group.gateway_vlan),
        };
        Ok(vec![frame.to_frame()?])
    }
}

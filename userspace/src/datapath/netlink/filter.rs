//! The BPF filters of an interface's clsact qdisc.

use nix::sys::socket::SockProtocol;

use super::{
    NetlinkError, ask,
    message::{Request, attribute, read_text, read_u32},
};

/// `RTM_GETTFILTER`.
const GET_FILTER: u16 = 46;
/// Length of `struct tcmsg`.
const TRAFFIC_HEADER: usize = 20;
/// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)`.
const CLSACT_INGRESS: u32 = 0xffff_fff2;
/// `TCA_KIND`.
const KIND: u16 = 1;
/// `TCA_OPTIONS`.
const OPTIONS: u16 = 2;
/// `TCA_BPF_NAME`.
const BPF_NAME: u16 = 7;
/// `TCA_BPF_ID`.
const BPF_ID: u16 = 11;

/// One BPF filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Lower runs first.
    pub priority: u16,
    /// Its number within the priority.
    pub handle: u32,
    /// The name that its loader gave it.
    pub name: String,
    /// The program's ID.
    pub program_id: u32,
}

/// The BPF filters on an interface's ingress: none where it has no clsact qdisc.
///
/// # Errors
/// Where the kernel does not answer.
pub fn ingress_filters(interface_index: u32) -> Result<Vec<Filter>, NetlinkError> {
    let request = Request::new("list the tc filters", GET_FILTER)
        .dump()
        .header(&[
            &[0; 4],
            &interface_index.to_ne_bytes(),
            &[0; 4],
            &CLSACT_INGRESS.to_ne_bytes(),
            &[0; 4],
        ]);
    let bodies = ask(SockProtocol::NetlinkRoute, &request)?;
    Ok(bodies.iter().filter_map(|body| read(body)).collect())
}

/// The filter that a message holds; `None` for a filter of another kind, and for the message that
/// stands for a whole priority.
fn read(body: &[u8]) -> Option<Filter> {
    let handle = read_u32(body.get(8..)?)?;
    let info = read_u32(body.get(16..)?)?;
    let attributes = body.get(TRAFFIC_HEADER..)?;
    if read_text(attribute(attributes, KIND)?) != "bpf" {
        return None;
    }
    let options = attribute(attributes, OPTIONS)?;
    Some(Filter {
        priority: u16::try_from(info >> 16).ok()?,
        handle,
        name: attribute(options, BPF_NAME)
            .map(read_text)
            .unwrap_or_default(),
        program_id: read_u32(attribute(options, BPF_ID)?)?,
    })
}

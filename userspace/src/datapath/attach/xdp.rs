//! XDP: in the driver, and in the network stack where the driver refuses.

use std::{error::Error, path::PathBuf};

use aya::{
    Ebpf,
    maps::Map,
    programs::{
        ProgramError, Xdp, XdpMode,
        links::{FdLink, LinkType},
        xdp::XdpLink,
    },
};
use neighsteer_common::abi;
use nix::errno::Errno;

use super::{Attempt, Earlier, Hook, Mode, Warning};
use crate::datapath::{
    error::{AttachError, errno_of},
    load, netlink,
};

impl Attempt<'_> {
    pub(super) fn xdp(
        &mut self,
        ebpf: &mut Ebpf,
        maps: &[(Map, PathBuf)],
        earlier: Earlier,
    ) -> Result<(Mode, u32), AttachError> {
        let program = load::xdp_program(ebpf, abi::XDP_INGRESS)?;
        let program_id = program.info().map_err(|error| self.refused(error))?.id();
        self.begin(maps, |pin| program.pin(pin))?;

        let former = match earlier.link {
            Some(link) if link.link_type == Some(LinkType::Xdp) => {
                let link = XdpLink::try_from(link.link).map_err(|error| self.link_error(error))?;
                program
                    .attach_to_link(link)
                    .map_err(|error| self.refused(error))?;
                None
            }
            former => {
                self.native_or_generic(program)?;
                former
            }
        };
        self.finish()?;
        if earlier.filter.is_some() {
            self.remove_filter()?;
        }
        self.await_end(former);
        self.check_rx_vlan_offload();
        Ok((self.xdp_mode()?, program_id))
    }

    fn native_or_generic(&mut self, program: &mut Xdp) -> Result<(), AttachError> {
        let attached = match program.attach_to_if_index(self.interface_index, XdpMode::Driver) {
            Err(error) if !is_final(&error) => {
                let reason = last_cause(&error);
                self.warnings.push(Warning::GenericXdp { reason });
                program.attach_to_if_index(self.interface_index, XdpMode::Skb)
            }
            attached => attached,
        };
        let id = attached.map_err(|error| self.refused(error))?;
        let link = program.take_link(id).map_err(|error| self.refused(error))?;
        // A link without a file descriptor was made by netlink, and goes when it is dropped.
        let link = FdLink::try_from(link).map_err(|_| AttachError::NoLinks { hook: Hook::Xdp })?;
        self.pin_link(link)
    }

    fn xdp_mode(&self) -> Result<Mode, AttachError> {
        let xdp = netlink::xdp(self.interface_index).map_err(|source| AttachError::Netlink {
            interface: self.options.interface.clone(),
            source,
        })?;
        Ok(match xdp.map(|xdp| xdp.mode) {
            Some(netlink::XdpMode::Generic) => Mode::XdpGeneric,
            _ => Mode::XdpNative,
        })
    }

    fn check_rx_vlan_offload(&mut self) {
        match netlink::rx_vlan_offload(&self.options.interface) {
            Ok(false) => {}
            Ok(true) => self.warnings.push(Warning::RxVlanOffload {
                interface: self.options.interface.clone(),
            }),
            Err(error) => self.warnings.push(Warning::RxVlanOffloadUnknown {
                reason: last_cause(&error),
            }),
        }
    }
}

/// Whether generic XDP would be refused for the same reason.
fn is_final(error: &ProgramError) -> bool {
    matches!(
        errno_of(error),
        Some(Errno::EBUSY | Errno::EEXIST | Errno::EPERM | Errno::EACCES | Errno::ENODEV)
    )
}

/// The innermost error, which is the kernel's answer.
fn last_cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

//! tc ingress: TCX, and clsact where the kernel has no TCX (before 6.6).

use std::path::PathBuf;

use aya::{
    Ebpf,
    maps::Map,
    programs::{
        SchedClassifier, TcAttachType,
        links::{FdLink, LinkOrder, LinkType},
        tc::{NlOptions, SchedClassifierLink, TcAttachOptions, qdisc_add_clsact},
    },
};
use neighsteer_common::abi;
use nix::errno::Errno;

use super::{Attempt, Earlier, Mode};
use crate::datapath::{
    error::{AttachError, errno_of},
    filter, load,
};

impl Attempt<'_> {
    pub(super) fn tc(
        &mut self,
        ebpf: &mut Ebpf,
        maps: &[(Map, PathBuf)],
        earlier: Earlier,
    ) -> Result<(Mode, u32), AttachError> {
        let program = load::tc_program(ebpf, abi::TC_INGRESS)?;
        let program_id = program.info().map_err(|error| self.refused(error))?.id();
        self.begin(maps, |pin| program.pin(pin))?;

        let Earlier { link, filter } = earlier;
        let has_filter = filter.is_some();
        let (mode, former) = match link {
            Some(link) if !self.options.clsact && link.link_type == Some(LinkType::Tcx) => {
                let link = SchedClassifierLink::try_from(link.link)
                    .map_err(|error| self.link_error(error))?;
                program
                    .attach_to_link(link)
                    .map_err(|error| self.refused(error))?;
                (Mode::Tcx, None)
            }
            former if self.options.clsact => (self.clsact(program, has_filter)?, former),
            former => (self.tcx_or_clsact(program, has_filter)?, former),
        };
        self.finish()?;
        // What another mechanism attached earlier would count a second time.
        match mode {
            Mode::Clsact => self.remove_link()?,
            _ if has_filter => self.remove_filter()?,
            _ => {}
        }
        self.await_end(former);
        Ok((mode, program_id))
    }

    fn tcx_or_clsact(
        &mut self,
        program: &mut SchedClassifier,
        has_filter: bool,
    ) -> Result<Mode, AttachError> {
        // First, because a program after another one sees only what that one passes on.
        let attached = program.attach_with_options(
            &self.options.interface,
            TcAttachType::Ingress,
            TcAttachOptions::TcxOrder(LinkOrder::first()),
        );
        let id = match attached {
            Ok(id) => id,
            Err(error) if errno_of(&error) == Some(Errno::EINVAL) => {
                return self.clsact(program, has_filter);
            }
            Err(error) => return Err(self.refused(error)),
        };
        let link = program.take_link(id).map_err(|error| self.refused(error))?;
        self.pin_link(FdLink::try_from(link).map_err(|error| self.link_error(error))?)?;
        Ok(Mode::Tcx)
    }

    fn clsact(&self, program: &mut SchedClassifier, has_filter: bool) -> Result<Mode, AttachError> {
        let interface = &self.options.interface;
        let attached = if has_filter {
            let link = filter::on(interface).map_err(|error| self.refused(error.into()))?;
            program.attach_to_link(link)
        } else {
            if let Err(error) = qdisc_add_clsact(interface)
                && errno_of(&error) != Some(Errno::EEXIST)
            {
                return Err(self.refused(error.into()));
            }
            program.attach_with_options(
                interface,
                TcAttachType::Ingress,
                TcAttachOptions::Netlink(NlOptions {
                    priority: filter::PRIORITY,
                    handle: filter::HANDLE,
                    classid: None,
                }),
            )
        };
        let id = attached.map_err(|error| self.refused(error))?;
        let link = program.take_link(id).map_err(|error| self.refused(error))?;
        // Dropping it would remove the filter.
        std::mem::forget(link);
        Ok(Mode::Clsact)
    }
}

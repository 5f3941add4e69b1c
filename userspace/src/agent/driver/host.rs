//! The host of a DPU: which interfaces lead to it, and which address it has.

use std::future::pending;

use super::Driver;
use crate::{
    agent::{
        AgentError,
        host_side::{self, HostSide},
        mode::HostConfig,
        model::Model,
        node_bindings::NodeBindings,
    },
    datapath::netlink::{LinkWatch, LinkWatchEnded},
    topology::{SkipReason, Skipped},
};

/// What is known of the host, and the news of interfaces.
#[derive(Debug)]
pub(super) struct Host {
    side: HostSide,
    watch: LinkWatch,
}

impl Host {
    /// Follows the interfaces, where this is a DPU.
    pub(super) async fn start(config: &HostConfig) -> Result<Option<Self>, AgentError> {
        let Some(mut side) = HostSide::of(config) else {
            return Ok(None);
        };
        let mut watch = LinkWatch::start().await?;
        side.links_changed(watch.table());
        Ok(Some(Self { side, watch }))
    }
}

/// Computes the groups anew with what is known of the host; whether they are other ones.
pub(super) fn rebuild(model: &mut Model, host: Option<&mut Host>) -> bool {
    host_side::rebuild(model, host.map(|host| &mut host.side))
}

/// Waits for news of interfaces; for ever where they are not followed. Cancel-safe.
pub(super) async fn links(host: Option<&mut Host>) -> Result<(), LinkWatchEnded> {
    match host {
        Some(host) => host.watch.changed().await,
        None => pending().await,
    }
}

impl Driver {
    /// An interface came, went or has another name.
    pub(super) fn links_changed(&mut self) {
        let Some(host) = &mut self.host else { return };
        let changes = host.side.links_changed(host.watch.table());
        if changes.is_empty() {
            return;
        }
        for (from, to) in &changes.renamed {
            self.attachments.renamed(from, to);
        }
        if rebuild(&mut self.model, self.host.as_mut()) {
            self.groups_changed();
        } else if self.attachments.concern(changes.names()) {
            self.attachments.check();
        }
    }

    /// Reads sysfs again where it made no sense: no interface need come or go for it to.
    pub(super) fn look_at_host_again(&mut self) {
        let lacks_host = |it: &Skipped| matches!(it.reason, SkipReason::NoRepresentor(_));
        let is_left_out = self.model.topology().skipped.iter().any(lacks_host);
        let Some(host) = &mut self.host else { return };
        if is_left_out {
            host.side.forget_what_told_nothing();
        }
        let is_due = is_left_out || host.side.is_to_be_read_again();
        if is_due && rebuild(&mut self.model, Some(host)) {
            self.groups_changed();
        }
    }

    /// Something about nodes is different, this one's host included.
    pub(super) fn nodes_changed(&mut self) {
        if let Some(host) = &mut self.host {
            let known = self.nodes.as_ref();
            let address =
                known.and_then(|it| NodeBindings::dpu_host_address(it, self.model.topology()));
            if host.side.set_address(address) && rebuild(&mut self.model, Some(host)) {
                self.groups_changed();
                return;
            }
        }
        self.carry_out();
    }
}

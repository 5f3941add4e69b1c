//! The datapath on every group's uplink, attached with the group's policy, and on a DPU on the host's
//! representor.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use tokio::task::JoinSet;

use super::{config::AgentConfig, status::DatapathStatus};
use crate::{
    datapath::{self, AttachError, AttachOptions, Attached, Direction, Hook, State, attach},
    plan::SteeringMark,
    topology::{BridgeGroup, Topology},
};
use neighsteer_common::{Policy, Validate};

/// What the program on an interface is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Which way the frames go that the interface receives.
    pub direction: Direction,
    /// What decisions are made by; `None` = frames are counted, and nothing is decided.
    pub policy: Option<Policy>,
    /// What frames are marked with, whatever becomes of them.
    pub tag: Option<u32>,
    /// The mark of frames to steer; `None` = they get none.
    pub mark: Option<SteeringMark>,
}

impl Orders {
    /// On a representor: what the host sends is counted.
    const FROM_HOST: Self = Self {
        direction: Direction::Egress,
        policy: None,
        tag: None,
        mark: None,
    };
}

/// What an attempt to attach came to.
pub type Outcome = (Arc<str>, Orders, Result<Attached, AttachError>);

/// What is wanted on interfaces, and what is there.
#[derive(Debug)]
pub struct Attachments {
    hook: Option<Hook>,
    tag: Option<u32>,
    validate: Validate,
    bpffs: PathBuf,
    wanted: BTreeMap<Arc<str>, Orders>,
    attached: BTreeMap<Arc<str>, (Orders, Result<Attached, String>)>,
    under_way: BTreeMap<Arc<str>, Orders>,
    tasks: JoinSet<Outcome>,
    /// The task that empties each program's log.
    #[cfg(feature = "log")]
    logs: BTreeMap<Arc<str>, tokio::task::AbortHandle>,
}

impl Attachments {
    /// Nothing attached yet.
    #[must_use]
    pub fn new(config: &AgentConfig) -> Self {
        Self {
            hook: config.hook,
            tag: config.tag,
            validate: config.validate,
            bpffs: config.bpffs.clone(),
            wanted: BTreeMap::new(),
            attached: BTreeMap::new(),
            under_way: BTreeMap::new(),
            tasks: JoinSet::new(),
            #[cfg(feature = "log")]
            logs: BTreeMap::new(),
        }
    }

    /// Takes the groups' uplinks and policies, the mark by which each is steered, and on a DPU the host's
    /// representors. An uplink that is one no more keeps its program: it counts and changes nothing, and
    /// `cleanup` takes it off. Whether anything else is wanted now.
    pub fn want(
        &mut self,
        topology: &Topology,
        mark: impl Fn(&BridgeGroup) -> Option<SteeringMark>,
    ) -> bool {
        let groups = topology.groups.iter();
        let representors = groups.clone().filter_map(|it| it.host.representor());
        let representors = representors.map(|name| (Arc::clone(name), Orders::FROM_HOST));
        let uplinks = groups.map(|group| {
            let orders = self.inwards(group.policy(), mark(group));
            (Arc::clone(&group.uplink.name), orders)
        });
        self.take_wanted(representors.chain(uplinks).collect())
    }

    /// Takes interfaces and policies, on the host of a DPU.
    pub fn want_only(&mut self, interfaces: impl IntoIterator<Item = (Arc<str>, Policy)>) {
        let interfaces = interfaces.into_iter();
        let wanted = interfaces.map(|(interface, policy)| (interface, self.inwards(policy, None)));
        self.take_wanted(wanted.collect());
    }

    const fn inwards(&self, policy: Policy, mark: Option<SteeringMark>) -> Orders {
        Orders {
            direction: Direction::Ingress,
            policy: Some(policy),
            tag: self.tag,
            mark,
        }
    }

    fn take_wanted(&mut self, wanted: BTreeMap<Arc<str>, Orders>) -> bool {
        let changed = wanted != self.wanted;
        self.wanted = wanted;
        // What failed on an interface that is not wanted any more is no problem any more.
        let wanted = &self.wanted;
        self.attached
            .retain(|interface, (_, result)| result.is_ok() || wanted.contains_key(interface));
        changed
    }

    /// Whether any of these interfaces is wanted, or has a program.
    pub fn concern<'a>(&self, mut interfaces: impl Iterator<Item = &'a Arc<str>>) -> bool {
        interfaces.any(|it| self.wanted.contains_key(it) || self.attached.contains_key(it))
    }

    /// An interface has another name: its program and its counters go on under that.
    pub fn renamed(&mut self, from: &Arc<str>, to: &Arc<str>) {
        let Some(attached) = self.attached.remove(from) else {
            return;
        };
        match datapath::rename(&self.bpffs, from, to) {
            Ok(true) => {
                tracing::info!(%from, interface = %to, "datapath goes on under another name");
                self.attached.insert(Arc::clone(to), attached);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%from, interface = %to, %error, "pins keep the former name");
            }
        }
    }

    /// Forgets what is not attached any more: the interface was made anew, or somebody detached it.
    fn forget_the_lost(&mut self) {
        let pinned = match datapath::attachments(&self.bpffs) {
            Ok(pinned) => pinned,
            Err(error) => {
                tracing::warn!(error = %super::chain(&error), "attachments not looked at");
                return;
            }
        };
        self.attached.retain(|interface, (_, result)| {
            let lives = pinned.iter().any(|attachment| {
                *attachment.interface == **interface && attachment.state == State::Attached
            });
            if result.is_ok() && !lives {
                tracing::warn!(%interface, "datapath is not attached any more");
            }
            lives || result.is_err()
        });
    }

    /// Starts whatever is wanted and neither there nor under way. Another policy takes the place of
    /// the one that is there without a gap: a program is replaced, never detached.
    pub fn check(&mut self) {
        let Some(hook) = self.hook else { return };
        self.forget_the_lost();
        for (interface, orders) in &self.wanted {
            let is_there =
                matches!(self.attached.get(interface), Some((there, Ok(_))) if there == orders);
            if is_there || self.under_way.contains_key(interface) {
                continue;
            }
            let options = AttachOptions {
                interface: interface.to_string(),
                hook,
                direction: orders.direction,
                policy: orders.policy,
                tag: orders.tag,
                steering_mark: orders.mark.map(SteeringMark::get),
                // Whatever the host sends goes on.
                validate: match (orders.direction, self.validate) {
                    (Direction::Egress, Validate::Drop) => Validate::Count,
                    (_, validate) => validate,
                },
                bpffs: self.bpffs.clone(),
                clsact: false,
            };
            let (interface, orders) = (Arc::clone(interface), *orders);
            self.under_way.insert(Arc::clone(&interface), orders);
            self.tasks.spawn_blocking(move || {
                let result = attach(&options);
                (interface, orders, result)
            });
        }
    }

    /// Attaches for the first time. Where it works on one interface, what does not on another is
    /// tried again later, and shown meanwhile.
    ///
    /// # Errors
    /// Where it works nowhere: why not on the first one.
    pub async fn attach_first(&mut self) -> Result<(), AttachError> {
        self.check();
        let (mut failed, mut any) = (Vec::new(), false);
        while !self.under_way.is_empty() {
            match self.finished().await {
                (interface, orders, Err(error)) => {
                    self.under_way.remove(&interface);
                    failed.push((interface, orders, error));
                }
                attached => {
                    any = true;
                    self.note(attached);
                }
            }
        }
        for (interface, orders, error) in failed {
            if !any {
                return Err(error);
            }
            self.note((interface, orders, Err(error)));
        }
        Ok(())
    }

    /// The next attempt that is over; for ever pending where none is under way. Cancel-safe.
    pub async fn finished(&mut self) -> Outcome {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(outcome)) => return outcome,
                Some(Err(error)) => {
                    tracing::error!(%error, "an attachment's task ended early");
                    self.under_way.clear();
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Keeps what an attempt came to.
    pub fn note(&mut self, (interface, orders, result): Outcome) {
        self.under_way.remove(&interface);
        match &result {
            Ok(attached) => {
                tracing::info!(%interface, mode = %attached.mode, replaced = attached.replaced, "datapath attached");
                #[cfg(feature = "log")]
                self.follow_log(&interface, attached.program_id);
                for warning in &attached.warnings {
                    tracing::warn!(%interface, %warning, "datapath");
                }
            }
            Err(error) => {
                tracing::warn!(%interface, error = %super::chain(error), "datapath not attached")
            }
        }
        let wanted = self.wanted.get(&interface);
        if wanted.is_none() && result.is_err() {
            return;
        }
        let outdated = wanted.is_some_and(|it| *it != orders);
        self.attached.insert(
            interface,
            (orders, result.map_err(|error| super::chain(&error))),
        );
        if outdated {
            // The address, the VLAN or the mark changed meanwhile.
            self.check();
        }
    }

    #[cfg(feature = "log")]
    fn follow_log(&mut self, interface: &Arc<str>, program_id: u32) {
        let name = Arc::clone(interface);
        let task = tokio::spawn(async move {
            let Err(error) = crate::datapath::log::drain(program_id).await;
            tracing::warn!(interface = %name, error = %super::chain(&error), "no log of the program");
        });
        if let Some(former) = self.logs.insert(Arc::clone(interface), task.abort_handle()) {
            former.abort();
        }
    }

    /// How every interface stands.
    #[must_use]
    pub fn status(&self) -> Vec<DatapathStatus> {
        let statuses = self
            .attached
            .iter()
            .map(|(interface, (orders, result))| DatapathStatus {
                interface: interface.to_string(),
                direction: orders.direction.name(),
                steering_mark: orders.mark.filter(|_| result.is_ok()),
                mode: result.as_ref().ok().map(|attached| attached.mode),
                validate: self.validate.name(),
                error: result.as_ref().err().cloned(),
                warnings: match result {
                    Ok(attached) => attached.warnings.iter().map(ToString::to_string).collect(),
                    Err(_) => Vec::new(),
                },
            });
        statuses.collect()
    }

    /// Those of the interfaces that nothing is known of, as not attached.
    pub fn absent(&self, wanted: &[Arc<str>]) -> impl Iterator<Item = DatapathStatus> {
        let absent = wanted.iter().filter(|it| !self.attached.contains_key(*it));
        absent.map(|interface| DatapathStatus {
            interface: interface.to_string(),
            direction: Direction::Ingress.name(),
            steering_mark: None,
            mode: None,
            validate: self.validate.name(),
            error: Some("it is not there (yet)".to_owned()),
            warnings: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use neighsteer_common::NodeAddresses;

    use super::*;
    use crate::topology::tests::{Network, Node};

    const ORDERS: Orders = Orders {
        direction: Direction::Ingress,
        policy: Some(Policy {
            bridge_mac: [2, 0, 0, 0, 0, 1],
            gateway_vlan: None,
            node_addresses: NodeAddresses::NONE,
        }),
        tag: None,
        mark: None,
    };

    fn attachments(wanted: &[&str]) -> Attachments {
        let wanted = wanted.iter().map(|it| (Arc::from(*it), ORDERS));
        Attachments {
            hook: Some(Hook::Tc),
            tag: None,
            validate: Validate::default(),
            bpffs: PathBuf::new(),
            wanted: wanted.collect(),
            attached: BTreeMap::new(),
            under_way: BTreeMap::new(),
            tasks: JoinSet::new(),
            #[cfg(feature = "log")]
            logs: BTreeMap::new(),
        }
    }

    fn failed(interface: &str) -> Outcome {
        let error = AttachError::NoInterface {
            interface: interface.to_owned(),
        };
        (interface.into(), ORDERS, Err(error))
    }

    #[test]
    fn another_mark_is_another_program() {
        let topology = Node::new(&[Network::default_network()]).topology();
        let mut attachments = attachments(&[]);
        assert!(attachments.want(&topology, |_| None));
        assert!(!attachments.want(&topology, |_| None));
        assert!(attachments.want(&topology, |_| Some(SteeringMark::DEFAULT)));
    }

    #[test]
    fn a_failure_is_forgotten_when_the_interface_is_an_uplink_no_more() {
        let mut attachments = attachments(&["eth0"]);
        attachments.note(failed("eth0"));
        assert_eq!(attachments.status().len(), 1);
        attachments.want(&Topology::default(), |_| None);
        assert_eq!(attachments.status().len(), 0);
        attachments.note(failed("eth0"));
        assert_eq!(attachments.status().len(), 0, "it was under way");
    }
}

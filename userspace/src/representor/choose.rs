//! Which of a bridge's ports it is.

use std::{collections::BTreeMap, sync::Arc};

use super::{Configured, PortName, Reading};

/// What is known of the node's interfaces, and what was named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Representors {
    configured: Configured,
    readings: BTreeMap<Arc<str>, Reading>,
    /// What interfaces that were named are called since.
    renamed: BTreeMap<Arc<str>, Arc<str>>,
}

/// Why a bridge has no host endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NoRepresentor {
    /// The one that was named is not there.
    #[error(
        "the host's representor {name} (--host-representor) is no port of it: it has {ports}; add \
         {name} to the bridge, or name another one"
    )]
    NotThere {
        /// The interface, as it is called now.
        name: Arc<str>,
        /// The bridge's ports.
        ports: String,
    },
    /// No port is a representor.
    #[error(
        "none of its ports leads to the host ({ports}): add the host's representor to the bridge, or \
         name its port by --host-representor"
    )]
    NoneFound {
        /// The bridge's ports, and what each is.
        ports: String,
    },
    /// Several are representors of VFs or SFs.
    #[error("the host may be behind any of {candidates}: name its port by --host-representor")]
    Several {
        /// The interfaces.
        candidates: String,
    },
}

/// How soon a port is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Pf,
    Function,
    Simulated,
}

fn rank(name: PortName) -> Option<Rank> {
    match name {
        PortName::Physical { .. } => None,
        PortName::Pf { .. } => Some(Rank::Pf),
        PortName::Vf { .. } | PortName::Sf { .. } => Some(Rank::Function),
        PortName::Simulated { .. } => Some(Rank::Simulated),
    }
}

struct Candidate<'a> {
    /// Whether it is of another switch than the uplink: `false` goes first.
    is_foreign: bool,
    rank: Rank,
    name: PortName,
    interface: &'a str,
}

impl Representors {
    /// Nothing is known of any interface yet.
    #[must_use]
    pub fn new(configured: Configured) -> Self {
        Self {
            configured,
            ..Self::default()
        }
    }

    /// What was named.
    #[must_use]
    pub const fn configured(&self) -> &Configured {
        &self.configured
    }

    /// Whether it is known what an interface is. One that could not be read or understood is not: a
    /// driver may tell later.
    #[must_use]
    pub fn knows(&self, interface: &str) -> bool {
        self.readings.get(interface).is_some_and(Result::is_ok)
    }

    /// Whether any interface could not be read or understood.
    #[must_use]
    pub fn has_problems(&self) -> bool {
        self.readings.values().any(Result::is_err)
    }

    /// Keeps what an interface is.
    pub fn learn(&mut self, interface: &Arc<str>, reading: Reading) {
        self.readings.insert(Arc::clone(interface), reading);
    }

    /// Forgets what an interface is: it has gone, or has another name, or became another one.
    pub fn forget(&mut self, interface: &str) {
        self.readings.remove(interface);
    }

    /// Forgets those that are no port of a switch as far as could be told.
    pub fn forget_what_told_nothing(&mut self) {
        self.readings.retain(|_, it| matches!(it, Ok(Some(_))));
    }

    /// Forgets all interfaces but these.
    pub fn retain(&mut self, is_there: impl Fn(&Arc<str>) -> bool) {
        self.readings.retain(|name, _| is_there(name));
    }

    /// What an interface that was named is called now; its own name again ends that.
    pub fn rename(&mut self, configured: &Arc<str>, now: &Arc<str>) {
        if configured == now {
            self.renamed.remove(configured);
        } else {
            self.renamed.insert(Arc::clone(configured), Arc::clone(now));
        }
    }

    fn now<'a>(&'a self, configured: &'a Arc<str>) -> &'a Arc<str> {
        self.renamed.get(configured).unwrap_or(configured)
    }

    fn port(&self, interface: &str) -> Option<&super::SwitchPort> {
        self.readings.get(interface)?.as_ref().ok()?.as_ref()
    }

    /// Whether an interface leads to the host or a guest of it: then it is no uplink.
    #[must_use]
    pub fn faces_host(&self, interface: &str) -> bool {
        let is_named = self
            .configured
            .names()
            .any(|it| **self.now(it) == *interface);
        is_named
            || self
                .port(interface)
                .is_some_and(|port| port.name.is_representor())
    }

    /// Which of a bridge's ports leads to the host. `ports` are the interfaces of its ordinary ports
    /// by name; `is_default` says whether it is the default network's bridge.
    ///
    /// # Errors
    /// Where none does, or it cannot be told: what was looked at, and what to do.
    pub fn host_of<'a>(
        &self,
        bridge: &str,
        is_default: bool,
        ports: &[&'a str],
    ) -> Result<&'a str, NoRepresentor> {
        if let Some(configured) = self.configured.of(bridge, is_default) {
            let name = self.now(configured);
            let found = ports.iter().find(|port| **port == &**name);
            return found.copied().ok_or_else(|| NoRepresentor::NotThere {
                name: Arc::clone(name),
                ports: list(ports.iter().copied().map(str::to_owned)),
            });
        }
        let mut candidates = self.candidates(ports);
        candidates.sort_by_key(|it| (it.is_foreign, it.rank));
        let Some(first) = candidates.first() else {
            return Err(NoRepresentor::NoneFound {
                ports: list(ports.iter().map(|port| self.described(port))),
            });
        };
        let alike =
            |it: &&Candidate<'_>| (it.is_foreign, it.rank) == (first.is_foreign, first.rank);
        match first.rank {
            Rank::Pf => {}
            Rank::Function => {
                let alike: Vec<_> = candidates.iter().take_while(alike).collect();
                if alike.len() > 1 {
                    let names = alike.iter().map(|it| it.interface.to_owned());
                    return Err(NoRepresentor::Several {
                        candidates: list(names),
                    });
                }
            }
            // By number: rep0-10 comes after rep0-9.
            Rank::Simulated => {
                let mut alike = candidates.iter().filter(alike);
                let lowest = alike.by_ref().min_by_key(|it| it.name);
                return Ok(lowest.map_or(first.interface, |it| it.interface));
            }
        }
        Ok(first.interface)
    }

    fn candidates<'a>(&self, ports: &[&'a str]) -> Vec<Candidate<'a>> {
        let mut ports: Vec<&str> = ports.to_vec();
        ports.sort_unstable();
        let is_uplink = |port: &&super::SwitchPort| matches!(port.name, PortName::Physical { .. });
        let uplinks = ports.iter().filter_map(|port| self.port(port));
        let uplinks: Vec<_> = uplinks.filter(is_uplink).map(|it| &it.switch).collect();
        ports
            .into_iter()
            .filter_map(|interface| {
                let port = self.port(interface)?;
                Some(Candidate {
                    is_foreign: !uplinks.is_empty() && !uplinks.contains(&&port.switch),
                    rank: rank(port.name)?,
                    name: port.name,
                    interface,
                })
            })
            .collect()
    }

    fn described(&self, interface: &str) -> String {
        match self.readings.get(interface) {
            Some(Ok(Some(port))) => format!("{interface}: {}", port.name),
            Some(Ok(None)) | None => format!("{interface}: no phys_switch_id"),
            Some(Err(problem)) => format!("{interface}: {problem}"),
        }
    }
}

fn list(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => "no port".to_owned(),
        false => names.join(", "),
    }
}

//! Labs that outlive a process: giving one up, taking one over, removing what was left.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use super::Lab;
use super::daemon::{Daemon, Process};
use super::directory::{Datapath, Directory, State, is_alive, this_process};
use super::error::{LabError, Result};
use super::network::Network;
use super::programs::{OvnVersion, Programs};

impl Lab {
    /// Gives the lab up: it stays until [`Lab::attach`] and a drop, or `neighsteer-lab down`.
    ///
    /// # Errors
    /// When its directory cannot be written.
    pub fn detach(mut self) -> Result<State> {
        self.state.owner = None;
        self.directory.write_state(&self.state)?;
        let state = self.state.clone();
        // Drop would end it.
        std::mem::forget(self);
        Ok(state)
    }

    /// Takes over the lab with an ID that [`Lab::detach`] left.
    ///
    /// # Errors
    /// When there is none, or a process owns it.
    pub fn attach(id: &str) -> Result<Self> {
        let directory = Directory::all()
            .into_iter()
            .find(|directory| directory.id == id)
            .ok_or_else(|| LabError::Choice(format!("no lab {id} on this machine")))?;
        let mut state = directory.state()?;
        if let Some(owner) = state.owner
            && is_alive(owner)
        {
            let (pid, _) = owner;
            return Err(LabError::Choice(format!("process {pid} owns lab {id}")));
        }
        let tree = state.ovn.find()?;
        state.owner = this_process();
        let daemons = Daemon::ALL
            .into_iter()
            .filter_map(|daemon| {
                let file = directory.path.join(format!("{}.pid", daemon.name()));
                let pid = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
                Some((daemon, Process::existing(pid)))
            })
            .collect();
        let lab = Self {
            programs: Programs::new(tree, &directory.path),
            node: directory.namespace("node"),
            external: directory.namespace("ext"),
            networks: (0..=state.udns).map(Network).collect(),
            daemons,
            databases: Mutex::new(BTreeMap::new()),
            secondaries: Vec::new(),
            state,
            directory,
        };
        lab.directory.write_state(&lab.state)?;
        Ok(lab)
    }
}

/// The labs on this machine: state, directory, and whether their owner (if any) runs.
#[must_use]
pub fn labs() -> Vec<(State, PathBuf, bool)> {
    Directory::all()
        .into_iter()
        .filter_map(|directory| {
            let state = directory.state().ok()?;
            let owned = state.owner.is_some_and(is_alive);
            Some((state, directory.path, owned))
        })
        .collect()
}

/// Removes the labs for which `wanted` says so, however they were left.
///
/// # Errors
/// The first failure; the other labs are removed all the same.
pub fn remove_labs(mut wanted: impl FnMut(&State) -> bool) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let mut result = Ok(());
    for directory in Directory::all() {
        // Without a state it is half removed.
        let state = directory.state().unwrap_or_else(|_| State {
            id: directory.id.clone(),
            owner: Some((0, 0)),
            udns: 0,
            pods: Vec::new(),
            ipv6: false,
            age_threshold: 0,
            ovn: OvnVersion::default(),
            datapath: Datapath::default(),
        });
        if wanted(&state) {
            result = result.and(directory.remove());
            removed.push(state.id);
        }
    }
    result.map(|()| removed)
}

/// Removes what labs left whose owner was killed.
///
/// # Errors
/// The first failure; the other labs are removed all the same.
pub fn sweep() -> Result<Vec<String>> {
    remove_labs(|state| state.owner.is_some_and(|owner| !is_alive(owner)))
}

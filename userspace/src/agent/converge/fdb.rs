//! The static FDB entry of a bridge, and the one of somebody else that was in its place.

use super::{Bridge, Changes, SteeringError};
use crate::{
    agent::state::FdbEntry,
    openflow::{
        Switch,
        unixctl::{self, FdbPort, UnixCtlSession},
    },
    plan::BridgePlan,
};

impl<S: Switch> Bridge<'_, S> {
    pub(super) async fn converge_fdb(
        &self,
        plan: &BridgePlan,
        changes: &mut Changes,
    ) -> Result<(), SteeringError> {
        let mut state = self.state.bridge(self.name);
        if plan.static_fdb.is_none() && state.static_fdb.is_empty() {
            return Ok(());
        }
        let session = self.unixctl.connect().await;
        let session = &mut session.map_err(|e| self.control_error(e))?;
        let present = session.fdb_show(self.name).await;
        let present = present.map_err(|e| self.control_error(e))?;
        let present: Vec<FdbEntry> = present.iter().filter_map(|it| self.entry(it)).collect();
        let wanted = plan.static_fdb.as_ref().map(|fdb| FdbEntry {
            mac: fdb.mac,
            vlan: fdb.vlan,
            port: fdb.port.to_string(),
        });
        let ours = state.static_fdb.clone();
        for entry in &ours {
            if wanted.as_ref() == Some(entry) {
                continue;
            }
            let mut replaced = state.static_fdb_replaced.iter();
            let replaced = replaced.find(|it| it.is_about(entry)).cloned();
            if present.contains(entry) {
                self.take_back(session, entry, replaced.as_ref()).await?;
                changes.fdb_changed += 1;
            }
            state.static_fdb.remove(entry);
            state.static_fdb_replaced.retain(|it| !it.is_about(entry));
        }
        if let Some(entry) = wanted
            && !present.contains(&entry)
        {
            let theirs = present.iter().find(|it| it.is_about(&entry));
            if let Some(theirs) = theirs.filter(|it| !ours.contains(it)) {
                state.static_fdb_replaced.retain(|it| !it.is_about(&entry));
                state.static_fdb_replaced.insert(theirs.clone());
            }
            state.static_fdb.insert(entry.clone());
            self.record(state.clone())?;
            self.add(session, &entry).await?;
            changes.fdb_changed += 1;
        }
        self.record(state)
    }

    /// Takes our entry off; one that was there before takes its place, if its port is still there.
    async fn take_back(
        &self,
        session: &mut UnixCtlSession,
        ours: &FdbEntry,
        replaced: Option<&FdbEntry>,
    ) -> Result<(), SteeringError> {
        let has_port =
            |it: &&FdbEntry| it.port == self.name || self.ports.contains_key(it.port.as_str());
        if let Some(theirs) = replaced.filter(has_port) {
            return self.add(session, theirs).await;
        }
        let deleted = session.fdb_del(self.name, ours.vlan, ours.mac).await;
        deleted.map_err(|e| self.control_error(e))
    }

    async fn add(
        &self,
        session: &mut UnixCtlSession,
        entry: &FdbEntry,
    ) -> Result<(), SteeringError> {
        let FdbEntry { mac, vlan, port } = entry;
        let added = session.fdb_add(self.name, port, *vlan, *mac).await;
        added.map_err(|e| self.control_error(e))
    }

    /// A static entry that is installed, if its port has a name.
    fn entry(&self, there: &unixctl::FdbEntry) -> Option<FdbEntry> {
        let port = match there.port {
            _ if !there.is_static => return None,
            FdbPort::Local => self.name,
            FdbPort::Number(ofport) => {
                let mut ports = self.ports.iter();
                ports.find(|(_, number)| **number == ofport)?.0
            }
            FdbPort::Other => return None,
        };
        Some(FdbEntry {
            mac: there.mac,
            vlan: there.vlan,
            port: port.to_owned(),
        })
    }
}

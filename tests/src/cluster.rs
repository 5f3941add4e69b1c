//! A cluster of database servers on one machine.

use std::{path::Path, time::Duration};

use neighsteer::ovsdb::Remote;

use crate::{
    database::{DatabaseError, DatabaseServer},
    lab::{LabError, wait_until},
};

/// How long members may take to agree, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A clustered database. Its members end with it.
#[derive(Debug)]
pub struct Cluster {
    database: String,
    /// The members, in the order in which they joined.
    pub members: Vec<DatabaseServer>,
}

impl Cluster {
    /// Starts a cluster of `members` with an empty database of this schema, and waits until all
    /// have joined.
    ///
    /// # Errors
    /// Where a tool is missing or fails.
    pub fn start(
        schema: impl AsRef<Path>,
        database: &str,
        members: usize,
    ) -> Result<Self, DatabaseError> {
        let schema = schema.as_ref();
        let first = DatabaseServer::builder(schema).clustered().start()?;
        let mut cluster = Self {
            database: database.to_owned(),
            members: vec![first],
        };
        for _ in 1..members {
            let joining = DatabaseServer::builder(schema).joining(&cluster.members[0], database);
            cluster.members.push(joining.start()?);
            let last = cluster.members.len() - 1;
            cluster.until(last, |status| status.contains("Status: cluster member"))?;
        }
        Ok(cluster)
    }

    /// Waits until a member's `cluster/status` is as wanted.
    ///
    /// # Errors
    /// Where it is not in time.
    pub fn until(&self, member: usize, wanted: impl Fn(&str) -> bool) -> Result<(), DatabaseError> {
        let what = format_args!("member {member} of the cluster");
        let waited = wait_until(PATIENCE, what, || match self.status(member) {
            Ok(status) if wanted(&status) => Ok(()),
            Ok(status) => Err(status),
            Err(error) => Err(error.to_string()),
        });
        waited.map_err(tool_failed)
    }

    fn status(&self, member: usize) -> Result<String, DatabaseError> {
        self.members[member].control(&["cluster/status", &self.database])
    }

    /// Waits for a member that leads, and returns its place.
    ///
    /// # Errors
    /// Where none does in time.
    pub fn leader(&self) -> Result<usize, DatabaseError> {
        wait_until(PATIENCE, "a leader", || {
            (0..self.members.len())
                .find(|member| {
                    self.status(*member)
                        .is_ok_and(|status| status.contains("Role: leader"))
                })
                .ok_or("none")
        })
        .map_err(tool_failed)
    }

    /// A member that does not lead.
    ///
    /// # Errors
    /// Where no leader is elected in time.
    pub fn follower(&self) -> Result<usize, DatabaseError> {
        Ok(usize::from(self.leader()? == 0))
    }

    /// Makes the leader hand the lead on, as it does before it writes a snapshot, and returns the
    /// former and the next one.
    ///
    /// # Errors
    /// Where the lead does not move in time.
    pub fn transfer(&self) -> Result<(usize, usize), DatabaseError> {
        let former = self.leader()?;
        self.members[former].control(&["cluster/failure-test", "transfer-leadership"])?;
        self.until(former, |status| !status.contains("Role: leader"))?;
        Ok((former, self.leader()?))
    }

    /// Makes this member the leader.
    ///
    /// # Errors
    /// Where a server does not do as it should.
    pub fn lead(&mut self, member: usize) -> Result<(), DatabaseError> {
        loop {
            if self.leader()? == member || self.transfer()?.1 == member {
                return Ok(());
            }
            // A leader always hands over to the same one; whom the others elect is open.
            let leader = self.leader()?;
            if leader != member {
                self.members[leader].kill()?;
                self.leader()?;
                self.members[leader].resurrect()?;
            }
        }
    }

    /// The sockets of all members.
    #[must_use]
    pub fn remotes(&self) -> Vec<Remote> {
        self.members.iter().map(DatabaseServer::remote).collect()
    }
}

fn tool_failed(error: LabError) -> DatabaseError {
    DatabaseError::Tool {
        tool: "ovsdb-server",
        message: error.to_string(),
    }
}

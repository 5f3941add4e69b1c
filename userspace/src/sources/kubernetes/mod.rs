//! Objects from a Kubernetes API server: `nodes`, and `uplinkstates` where the server has them. Nothing
//! but lists and watches of these two is ever asked for.

mod access;
mod error;
mod follow;
mod resource;
mod server;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, time::Duration};

use super::{NodeSource, SourceError, feed::Publisher};
use crate::{
    nodes::{Node, UplinkState},
    ovsdb::Backoff,
};
use access::Access;
use follow::Follower;

/// How patient the source is with a Kubernetes API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Between attempts that fail.
    pub backoff: Backoff,
    /// How long the server may take to begin an answer.
    pub answer: Duration,
    /// How long an answer may pause.
    pub pause: Duration,
    /// How long a watch lasts, in whole seconds, less up to a fifth by chance; 290 at most. A
    /// connection that says nothing for that long and [`Patience::pause`] is given up.
    pub watch: Duration,
    /// Before the server is asked again for a kind that it does not have.
    pub absent: Duration,
    /// How many objects are asked for at once, where a list cannot come from the server's cache.
    pub page: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                first: Duration::from_millis(500),
                longest: Duration::from_secs(30),
            },
            answer: Duration::from_secs(30),
            pause: Duration::from_secs(30),
            watch: Duration::from_secs(290),
            absent: Duration::from_secs(180),
            page: 100,
        }
    }
}

/// A Kubernetes API server.
#[derive(Debug)]
pub(super) struct Kubernetes {
    access: Access,
    url: String,
    patience: Patience,
}

impl Kubernetes {
    /// Reads where the server is and who we are.
    pub(super) fn new(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        patience: Patience,
    ) -> Result<Self, SourceError> {
        let access = Access::new(kubeconfig, context)?;
        let url = access.url()?;
        Ok(Self {
            access,
            url,
            patience,
        })
    }
}

impl NodeSource for Kubernetes {
    fn name(&self) -> String {
        format!("Kubernetes API server {}", self.url)
    }

    async fn run(self, publisher: Publisher) {
        let Self {
            access, patience, ..
        } = self;
        tokio::join!(
            Follower::<Node>::new(&access, patience, &publisher).run(),
            Follower::<UplinkState>::new(&access, patience, &publisher).run(),
        );
    }
}

//! Where Node and `UplinkState` objects come from.
//!
//! [`start`] gives a [`NodeFeed`]: the newest inventory, and what is known of its source. A feed says
//! nothing until a source has given every node once, and it never says that there are no nodes: a
//! source that has none to show is one that cannot be believed, and the former inventory stays.

mod feed;
mod files;
mod kubernetes;
mod text;

use std::{future::Future, path::PathBuf};

pub use feed::{KindStatus, NodeFeed, SourceEnded, SourceStatus};
use feed::{Publisher, feed};
use files::Files;
use kube::config::{InClusterError, KubeconfigError};
use kubernetes::Kubernetes;
pub use kubernetes::Patience;

/// Where objects are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceConfig {
    /// A Kubernetes API server.
    Kubernetes {
        /// Where it is and who we are; `None` = what a pod is given.
        kubeconfig: Option<PathBuf>,
        /// The kubeconfig's context; `None` = its current one.
        context: Option<String>,
    },
    /// A file of Node and `UplinkState` manifests, or a directory of such (`*.yaml`, `*.yml` and
    /// `*.json`, not those below it). It may come to be later, and is watched.
    Files(PathBuf),
}

/// A configuration that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// What a pod is given is not there, or incomplete.
    #[error("this is no pod with a service account, and no kubeconfig was given")]
    InCluster(#[source] Box<InClusterError>),
    /// The kubeconfig is no file of a kubeconfig's kind.
    #[error("cannot read the kubeconfig {}", path.display())]
    KubeconfigFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The kubeconfig cannot be read, or lacks what is needed.
    #[error("kubeconfig {} does not lead to an API server", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// A context of no kubeconfig.
    #[error("context {context:?} was given without a kubeconfig that has it")]
    ContextOfNothing {
        /// Its name.
        context: String,
    },
    /// Manifests cannot be there.
    #[error("{} is neither a file nor a directory of manifests", path.display())]
    NeitherFileNorDirectory {
        /// What was given.
        path: PathBuf,
    },
}

/// Whoever knows nodes.
trait NodeSource: Send + 'static {
    /// What it is, for people.
    fn name(&self) -> String;

    /// Publishes what it knows, for as long as it is polled.
    fn run(self, publisher: Publisher) -> impl Future<Output = ()> + Send;
}

/// Starts to take objects from a source. It is well if the source is away: the feed's status says so.
///
/// Must be called on a tokio runtime; the work ends when the feed is dropped.
///
/// # Errors
/// When the configuration cannot work. A directory or file of manifests that is missing may yet come.
pub fn start(config: SourceConfig) -> Result<NodeFeed, SourceError> {
    start_with(config, Patience::default())
}

/// [`start`], with another patience for Kubernetes API servers.
///
/// # Errors
/// As [`start`].
pub fn start_with(config: SourceConfig, patience: Patience) -> Result<NodeFeed, SourceError> {
    match config {
        SourceConfig::Files(path) => Ok(spawn(Files::new(path)?)),
        SourceConfig::Kubernetes {
            kubeconfig,
            context,
        } => Ok(spawn(Kubernetes::new(kubeconfig, context, patience)?)),
    }
}

fn spawn(source: impl NodeSource) -> NodeFeed {
    feed(source.name(), |publisher| {
        tokio::spawn(source.run(publisher))
    })
}

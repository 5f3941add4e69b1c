//! Where the server is, and who we are there.

use std::{path::PathBuf, time::Duration};

use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _},
    config::Kubeconfig,
};
use tower::{BoxError, ServiceBuilder};

use super::super::SourceError;
use crate::plain_file;

/// Bytes; it has keys and certificates, not files of data.
const KUBECONFIG_LIMIT: u64 = 16 << 20;

/// A connection on which nothing comes is asked for a sign of life after so long,
const KEEPALIVE: Duration = Duration::from_secs(30);
/// again after so long,
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(10);
/// and given up after so many times.
const KEEPALIVE_TIMES: u32 = 3;

/// Where a client's configuration is. It is read anew for each client: tokens, authorities and
/// addresses change.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// What every pod is given.
    InCluster,
    /// A kubeconfig.
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
    },
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    /// The configuration can no longer be read.
    #[error(transparent)]
    Config(#[from] SourceError),
    /// A key, a certificate, a token or a proxy is not what it should be.
    #[error("no client can be made of the configuration")]
    Client(#[source] Box<kube::Error>),
}

impl Access {
    pub(super) fn new(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    ) -> Result<Self, SourceError> {
        match (kubeconfig, context) {
            (Some(path), context) => Ok(Self::Kubeconfig { path, context }),
            (None, None) => Ok(Self::InCluster),
            (None, Some(context)) => Err(SourceError::ContextOfNothing { context }),
        }
    }

    /// The server's address.
    pub(super) fn url(&self) -> Result<String, SourceError> {
        Ok(self.config()?.cluster_url.to_string())
    }

    /// Makes a client. Blocks: it reads files, and may run the kubeconfig's credential plugin. Must be
    /// called on a tokio runtime.
    pub(super) fn client(&self) -> Result<Client, AccessError> {
        let config = self.config()?;
        build(config).map_err(|error| AccessError::Client(Box::new(error)))
    }

    fn config(&self) -> Result<Config, SourceError> {
        let mut config = match self {
            Self::InCluster => {
                Config::incluster().map_err(|source| SourceError::InCluster(Box::new(source)))?
            }
            Self::Kubeconfig { path, context } => {
                // kube would wait for the writer of a FIFO, and read a device for ever.
                plain_file::read(path, KUBECONFIG_LIMIT).map_err(|source| {
                    SourceError::KubeconfigFile {
                        path: path.clone(),
                        source,
                    }
                })?;
                let read = || {
                    let mut kubeconfig = Kubeconfig::read_from(path)?;
                    if let Some(context) = context {
                        kubeconfig.current_context = Some(context.clone());
                    }
                    Config::try_from(kubeconfig)
                };
                read().map_err(|source| SourceError::Kubeconfig {
                    path: path.clone(),
                    source: Box::new(source),
                })?
            }
        };
        // Attempts are counted, and made again, in one place.
        config.default_retry = false;
        Ok(config)
    }
}

fn build(config: Config) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        return Ok(ClientBuilder::try_from(config)?.build());
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    // A watch may be silent for long; only the kernel can tell that from a server that is gone.
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_AGAIN));
    connector.set_keepalive_retries(Some(KEEPALIVE_TIMES));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let http = HttpClient::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

#[cfg(test)]
mod tests {
    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[test]
    fn a_kubeconfig_that_is_no_file_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("kubeconfig");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for path in [fifo, PathBuf::from("/dev/zero")] {
            let access = Access::new(Some(path), None).unwrap();
            let error = access.url().unwrap_err();
            assert!(
                matches!(error, SourceError::KubeconfigFile { .. }),
                "{error}"
            );
        }
    }
}

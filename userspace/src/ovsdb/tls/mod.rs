//! TLS to a database server, as Open vSwitch does it: both sides show certificates of one
//! authority (ovsdb-server(1), "Public Key Infrastructure Options").

mod error;
mod files;
mod verify;

use std::{path::PathBuf, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, crypto::ring, pki_types::ServerName},
};

pub use error::TlsError;

/// The files of `ssl:` connections, PEM. They are read again for each connection, so that renewed
/// ones are taken up by the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Our private key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub private_key: PathBuf,
    /// The certificate of that key, then any between it and the authority.
    pub certificate: PathBuf,
    /// Certificates of the authorities that a server's may come from.
    pub ca_cert: PathBuf,
}

/// Shakes hands with the server at the other end of `stream`, which was reached as `host`.
///
/// # Errors
/// Where a file cannot be used, or one side refuses the other.
pub(crate) async fn connect(
    files: &TlsFiles,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, TlsError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::HostName {
        host: host.to_owned(),
    })?;
    let paths = files.clone();
    let config = tokio::task::spawn_blocking(move || config(&paths))
        .await
        .map_err(|source| TlsError::Io(source.into()))??;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|source| TlsError::of_handshake(source, host, files))
}

/// Reads the files; everything here is cheap beside the handshake.
fn config(paths: &TlsFiles) -> Result<ClientConfig, TlsError> {
    let chain = files::certificates(&paths.certificate)?;
    let key = files::private_key(&paths.private_key)?;
    let roots = files::authorities(&paths.ca_cert)?;
    let provider = Arc::new(ring::default_provider());
    let verifier = verify::AuthorityVerifier::new(roots, &provider);
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Handshake)?
        // "Dangerous" is to bring one's own verifier: see there for what it demands.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(chain, key)
        .map_err(|source| TlsError::Identity {
            private_key: paths.private_key.clone(),
            certificate: paths.certificate.clone(),
            source,
        })
}

#[cfg(test)]
mod tests;

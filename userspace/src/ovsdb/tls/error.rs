//! Why there is no TLS connection.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio_rustls::rustls::{self, CertificateError, pki_types::pem};

use super::TlsFiles;

/// Why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is no PEM.
    #[error("{} is not well-formed PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// A file without what it is for.
    #[error("{} holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file without a key that can be used.
    #[error("{} holds no private key, or an encrypted one", path.display())]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// An authority that is none.
    #[error("{} holds a certificate that cannot be an authority", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// Key and certificate do not make an identity: they do not belong together, or are of a kind
    /// that is not supported.
    #[error("key {} and certificate {} cannot be used together", private_key.display(), certificate.display())]
    Identity {
        /// The file of the key.
        private_key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The remote's host can be in no certificate.
    #[error("{host:?} is neither a host name nor an address")]
    HostName {
        /// The host.
        host: String,
    },
    /// The server's certificate comes from somebody else.
    #[error("the server's certificate is not from an authority of {}", ca_cert.display())]
    UnknownAuthority {
        /// The file of the authorities.
        ca_cert: PathBuf,
        /// As the library has it.
        #[source]
        source: rustls::Error,
    },
    /// The server's certificate, or its authority's, is over.
    #[error("the server's certificate or its authority's has expired: renew it on the server")]
    Expired(#[source] rustls::Error),
    /// The server's certificate, or its authority's, is not valid yet.
    #[error("the server's certificate or its authority's is not valid yet: are both clocks right?")]
    NotYetValid(#[source] rustls::Error),
    /// The server's certificate is somebody else's.
    #[error("the server's certificate is not for {host} but for {}", presented.join(", "))]
    WrongName {
        /// The host of the remote.
        host: String,
        /// The names that it is for.
        presented: Vec<String>,
    },
    /// The server does not take our certificate.
    #[error("the server refused our certificate: {reason}")]
    Refused {
        /// In the words of its alert.
        reason: &'static str,
    },
    /// The server left right after the handshake, before a word of its own.
    #[error(
        "the server closed the connection after the TLS handshake: it may not accept our certificate"
    )]
    Dropped(#[source] Option<io::Error>),
    /// The handshake failed otherwise; a server that speaks no TLS is the usual reason.
    #[error("TLS failed; does the server speak TLS on this port?")]
    Handshake(#[source] rustls::Error),
    /// The connection broke in the middle.
    #[error("the connection broke during the TLS handshake")]
    Io(#[source] io::Error),
}

impl TlsError {
    /// What a failed handshake with `host` means.
    pub(super) fn of_handshake(source: io::Error, host: &str, files: &TlsFiles) -> Self {
        match rustls_error(source) {
            Ok(error) => Self::of(error, host, &files.ca_cert),
            Err(source) => Self::Io(source),
        }
    }

    fn of(error: rustls::Error, host: &str, ca_cert: &Path) -> Self {
        let rustls::Error::InvalidCertificate(certificate) = error else {
            return match refusal(&error) {
                Some(reason) => Self::Refused { reason },
                None => Self::Handshake(error),
            };
        };
        match certificate {
            CertificateError::NotValidForNameContext { presented, .. } => Self::WrongName {
                host: host.to_owned(),
                presented,
            },
            certificate => {
                use CertificateError::{
                    BadSignature, Expired, ExpiredContext, NotValidYet, NotValidYetContext,
                    UnknownIssuer,
                };
                let error = rustls::Error::InvalidCertificate(certificate.clone());
                match certificate {
                    Expired | ExpiredContext { .. } => Self::Expired(error),
                    NotValidYet | NotValidYetContext { .. } => Self::NotYetValid(error),
                    // One of the same name with another key looks like a bad signature.
                    UnknownIssuer | BadSignature => Self::UnknownAuthority {
                        ca_cert: ca_cert.to_owned(),
                        source: error,
                    },
                    _ => Self::Handshake(error),
                }
            }
        }
    }

    /// What it means that a connection broke on which nothing was heard yet: with TLS 1.3 the
    /// server judges our certificate when the handshake is over for us.
    pub(crate) fn of_first_read(source: io::Error) -> Self {
        match rustls_error(source) {
            Ok(error) => match refusal(&error) {
                Some(reason) => Self::Refused { reason },
                None => Self::Handshake(error),
            },
            Err(source) => Self::Dropped(Some(source)),
        }
    }
}

/// The library's error inside an I/O error.
fn rustls_error(source: io::Error) -> Result<rustls::Error, io::Error> {
    let inner = source.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(error) => Ok(rustls::Error::clone(error)),
        None => Err(source),
    }
}

/// What an alert of the server says against our certificate (RFC 8446, 6.2).
fn refusal(error: &rustls::Error) -> Option<&'static str> {
    use rustls::AlertDescription as Alert;
    let rustls::Error::AlertReceived(alert) = error else {
        return None;
    };
    Some(match alert {
        Alert::CertificateExpired => "it has expired; renew it",
        Alert::UnknownCA => "it is from an authority that the server does not know",
        Alert::CertificateRequired | Alert::NoCertificate => "the server got none",
        Alert::CertificateRevoked => "it was revoked",
        Alert::UnsupportedCertificate => "it is of a kind that the server does not support",
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::AccessDenied => {
            "it is not valid"
        }
        Alert::DecryptError => "its signature does not verify",
        _ => return None,
    })
}

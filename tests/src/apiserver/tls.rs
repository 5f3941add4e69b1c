//! The server's certificate and the authority that vouches for it.

use std::{fs, io, path::Path, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// Makes an authority, writes its certificate to a file, and gives a server one of its own.
pub(super) fn acceptor(authority_file: &Path) -> io::Result<TlsAcceptor> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::new([]).map_err(io::Error::other)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).map_err(io::Error::other)?;
    fs::write(authority_file, authority.pem())?;
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let names = ["127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names)
        .and_then(|params| params.signed_by(&key, &issuer))
        .map_err(io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.into()], key)
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

//! Whether a server is who it should be.

use std::{net::IpAddr, sync::Arc};

use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// Demands a certificate of one of the authorities, in every case. The name comes second: `ovs-pki`
/// writes what the certificate is for (`ovnsb`), not the host, and Open vSwitch looks at no name.
/// So a name is held against the server where the certificate has one of the kind by which the
/// server was reached:
///
/// * an address: the addresses among the alternative names;
/// * a host name: the host names among the alternative names;
/// * without any alternative name, a common name that is an address or a host name with a dot.
#[derive(Debug)]
pub(super) struct AuthorityVerifier {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AuthorityVerifier {
    pub(super) fn new(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Self {
        Self {
            roots,
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for AuthorityVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        verify_name(&certificate, end_entity, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn verify_name(
    certificate: &ParsedCertificate<'_>,
    end_entity: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
) -> Result<(), Error> {
    let (expected, presented) = match verify_server_name(certificate, server_name) {
        Ok(()) => return Ok(()),
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected,
            presented,
        })) => (expected, presented),
        Err(error) => return Err(error),
    };
    let refused = |presented| {
        Err(Error::InvalidCertificate(
            CertificateError::NotValidForNameContext {
                expected: expected.clone(),
                presented,
            },
        ))
    };
    if presented.is_empty() {
        return match common_name(end_entity) {
            Some(name) if names_a_host(&name) && !is_named(server_name, &name) => {
                refused(vec![name])
            }
            _ => Ok(()),
        };
    }
    // The library has them as text only.
    let of_the_kind: Vec<String> = presented
        .iter()
        .filter_map(|name| match server_name {
            ServerName::IpAddress(_) => name.strip_prefix("IpAddress(")?.strip_suffix(')'),
            _ => name
                .strip_prefix("DnsName(\"")?
                .strip_suffix("\")")
                .filter(|name| could_be_a_host_name(name)),
        })
        .map(str::to_owned)
        .collect();
    if of_the_kind.is_empty() {
        return Ok(());
    }
    refused(of_the_kind)
}

fn could_be_a_host_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte))
}

fn names_a_host(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok() || (name.contains('.') && could_be_a_host_name(name))
}

fn is_named(server: &ServerName<'_>, name: &str) -> bool {
    match server {
        ServerName::IpAddress(address) => name.parse() == Ok(IpAddr::from(*address)),
        server => server.to_str().eq_ignore_ascii_case(name),
    }
}

/// The first common name of a certificate's subject.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    const SEQUENCE: u8 = 0x30;
    const SET: u8 = 0x31;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    /// 2.5.4.3, encoded.
    const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut names = certificate.subject();
    while let Some((SET, mut set, rest)) = element(names) {
        names = rest;
        while let Some((SEQUENCE, pair, rest)) = element(set) {
            set = rest;
            let (OBJECT_IDENTIFIER, kind, value) = element(pair)? else {
                return None;
            };
            if kind == COMMON_NAME {
                let (_, text, _) = element(value)?;
                return String::from_utf8(text.to_vec()).ok();
            }
        }
    }
    None
}

/// The first element of DER: its tag, its content and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes
                .iter()
                .fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

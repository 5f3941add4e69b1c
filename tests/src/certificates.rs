//! Authorities and certificates for tests, made by openssl.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use neighsteer::ovsdb::TlsFiles;
use tempfile::TempDir;

use crate::database::{DatabaseError, failed, tool};

/// What `openssl ca` needs to know.
const CONFIGURATION: &str = "\
[ca]
default_ca = authority
[authority]
database = index.txt
serial = serial
new_certs_dir = .
certificate = authority.pem
private_key = authority.key
policy = policy
default_md = sha256
unique_subject = no
[policy]
commonName = supplied
";

/// An authority in a directory of its own.
#[derive(Debug)]
pub struct Authority {
    directory: TempDir,
}

/// The form of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// P-256, `BEGIN PRIVATE KEY`.
    EcPkcs8,
    /// P-256, `BEGIN EC PRIVATE KEY`.
    EcSec1,
    /// 2048 bits, `BEGIN PRIVATE KEY`.
    RsaPkcs8,
    /// 2048 bits, `BEGIN RSA PRIVATE KEY`.
    RsaPkcs1,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Now and for ten years.
    Valid,
    /// In 2020 only.
    Expired,
    /// From the year 2100 on.
    NotYet,
}

impl Authority {
    /// Makes an authority.
    ///
    /// # Errors
    /// Where openssl is missing or fails.
    pub fn new(name: &str) -> Result<Self, DatabaseError> {
        let directory = tempfile::Builder::new()
            .prefix("neighsteer-ca-")
            .tempdir()
            .map_err(failed("make a directory"))?;
        let authority = Self { directory };
        authority.write("configuration", CONFIGURATION)?;
        authority.write("index.txt", "")?;
        authority.write("serial", "1000\n")?;
        authority.key(Key::EcPkcs8, "authority.key")?;
        authority.openssl(&[
            "req",
            "-x509",
            "-new",
            "-key",
            "authority.key",
            "-subj",
            &format!("/CN={name}"),
            "-days",
            "3650",
            "-out",
            "authority.pem",
        ])?;
        Ok(authority)
    }

    /// The authority's certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// Issues a key and a certificate, in files that start with `file`; those that are there are
    /// replaced. `alternatives` as openssl writes them (`DNS:a,IP:10.0.0.1`); `None` = a common
    /// name only.
    ///
    /// # Errors
    /// Where openssl fails.
    pub fn issue(
        &self,
        file: &str,
        common_name: &str,
        alternatives: Option<&str>,
        key: Key,
        validity: Validity,
    ) -> Result<TlsFiles, DatabaseError> {
        let [key_file, request, certificate, extensions] =
            ["key", "request", "pem", "extensions"].map(|kind| format!("{file}.{kind}"));
        self.key(key, &key_file)?;
        self.openssl(&[
            "req",
            "-new",
            "-key",
            &key_file,
            "-subj",
            &format!("/CN={common_name}"),
            "-out",
            &request,
        ])?;
        let mut wanted = "basicConstraints = CA:FALSE\n".to_owned();
        if let Some(names) = alternatives {
            wanted.push_str(&format!("subjectAltName = {names}\n"));
        }
        self.write(&extensions, &wanted)?;
        let (from, until) = match validity {
            Validity::Valid => ("20200101000000Z", "20600101000000Z"),
            Validity::Expired => ("20200101000000Z", "20200201000000Z"),
            Validity::NotYet => ("21000101000000Z", "21000201000000Z"),
        };
        self.openssl(&[
            "ca",
            "-config",
            "configuration",
            "-batch",
            "-notext",
            "-extfile",
            &extensions,
            "-startdate",
            from,
            "-enddate",
            until,
            "-in",
            &request,
            "-out",
            &certificate,
        ])?;
        Ok(TlsFiles {
            private_key: self.path(&key_file),
            certificate: self.path(&certificate),
            ca_cert: self.certificate(),
        })
    }

    fn key(&self, key: Key, file: &str) -> Result<(), DatabaseError> {
        let curve = "ec_paramgen_curve:P-256";
        let arguments: &[&str] = match key {
            Key::EcPkcs8 => &["genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out"],
            Key::EcSec1 => &[
                "ecparam",
                "-name",
                "prime256v1",
                "-genkey",
                "-noout",
                "-out",
            ],
            Key::RsaPkcs8 => &["genpkey", "-algorithm", "RSA", "-out"],
            // With the size behind the file, as this one wants it.
            Key::RsaPkcs1 => &["genrsa", "-traditional", "-out"],
        };
        self.openssl(&[arguments, &[file]].concat())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), DatabaseError> {
        fs::write(self.path(file), text).map_err(failed("write a file"))
    }

    fn openssl(&self, arguments: &[&str]) -> Result<(), DatabaseError> {
        let directory: &Path = self.directory.path();
        let mut command = Command::new("openssl");
        tool("openssl", command.current_dir(directory).args(arguments)).map(drop)
    }
}

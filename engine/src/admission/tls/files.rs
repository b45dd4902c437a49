//! What the files of certificates say.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    sign::CertifiedKey,
};

use super::der;

/// A larger file is no certificate.
const MAX_BYTES: u64 = 1 << 20;

/// A certificate with its key.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certified: Arc<CertifiedKey>,
    /// Its last moment, if the certificate says it in a way that we read.
    pub(super) expires: Option<Timestamp>,
}

/// Why files cannot be used. Each error says what would help.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{path} cannot be read: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path} is no regular file of at most 1 MB")]
    NoFile { path: String },
    #[error("{path} is not PEM: {problem}")]
    Pem { path: String, problem: &'static str },
    #[error("there is no certificate in {path}: it takes PEM, with the certificate first that is shown")]
    NoCertificate { path: String },
    #[error("there is no certificate of an authority in {path}: it takes PEM")]
    NoAuthority { path: String },
    #[error("there is no private key in {path}: it takes PEM, with a key that needs no passphrase")]
    NoKey { path: String },
    #[error("the key in {path} cannot be used: {source}; RSA, P-256, P-384 and Ed25519 can")]
    Key { path: String, source: rustls::Error },
    #[error("the key in {key} is not that of the first certificate in {certificate}: replace both at once")]
    NoPair { certificate: String, key: String },
    #[error("the certificate in {path} cannot be used: {source}")]
    Certificate { path: String, source: rustls::Error },
    #[error("the certificate in {path} has expired at {moment}: renew it")]
    Expired { path: String, moment: Timestamp },
}

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let name = || path.display().to_string();
    let failed = |source| Error::Read { path: name(), source };
    // A pipe keeps whoever opens it waiting.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Error::NoFile { path: name() });
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES { Err(Error::NoFile { path: name() }) } else { Ok(bytes) }
}

/// A certificate with its key, of which we know that they belong together.
pub(super) fn pair(
    (certificate_path, certificate): (&Path, &[u8]),
    (key_path, key): (&Path, &[u8]),
    provider: &CryptoProvider,
) -> Result<Pair, Error> {
    let chain = certificates(certificate_path, certificate)?;
    let Some(first) = chain.first() else {
        return Err(Error::NoCertificate { path: certificate_path.display().to_string() });
    };
    let expires = der::not_after(first);
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| match source {
        pem::Error::NoItemsFound => Error::NoKey { path: key_path.display().to_string() },
        error => Error::Pem { path: key_path.display().to_string(), problem: problem(&error) },
    })?;
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(|source| match source {
        rustls::Error::InconsistentKeys(_) => {
            Error::NoPair { certificate: certificate_path.display().to_string(), key: key_path.display().to_string() }
        }
        source @ rustls::Error::InvalidCertificate(_) => {
            Error::Certificate { path: certificate_path.display().to_string(), source }
        }
        source => Error::Key { path: key_path.display().to_string(), source },
    })?;
    Ok(Pair { certified: Arc::new(certified), expires })
}

/// The authorities of a file. Several are there while one takes the place of another.
pub(super) fn authorities(path: &Path, bytes: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, bytes)? {
        roots.add(certificate).map_err(|source| Error::Certificate { path: path.display().to_string(), source })?;
    }
    if roots.is_empty() { Err(Error::NoAuthority { path: path.display().to_string() }) } else { Ok(roots) }
}

/// The certificates of a file.
fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>();
    chain.map_err(|error| Error::Pem { path: path.display().to_string(), problem: problem(&error) })
}

/// What is wrong, in words: the error itself would show bytes of the file.
fn problem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no end",
        pem::Error::IllegalSectionStart { .. } => "a section has no proper beginning",
        pem::Error::Base64Decode(_) => "a section is not base64",
        _ => "it cannot be understood",
    }
}

#[cfg(test)]
mod tests {
    use portal_test_kit::certificates::Authority;
    use rustls::crypto::ring::default_provider;

    use super::*;

    /// Compares what is wrong with the texts of the two files.
    #[track_caller]
    fn check(certificate: &str, key: &str, expected: &str) {
        let certificate = (Path::new("tls.crt"), certificate.as_bytes());
        let problem = pair(certificate, (Path::new("tls.key"), key.as_bytes()), &default_provider()).err();
        assert_eq!(problem.map(|error| error.to_string()).unwrap_or_default(), expected);
    }

    #[test]
    fn what_is_wrong_is_told_with_the_file() {
        let authority = Authority::new("authority").unwrap();
        let (good, other) = (authority.server("a", &["a"]).unwrap(), authority.server("b", &["b"]).unwrap());
        check(&good.certificate, &good.key, "");
        check(&format!("{}{}", good.certificate, authority.pair().certificate), &good.key, "");
        check(
            &good.certificate,
            &other.key,
            "the key in tls.key is not that of the first certificate in tls.crt: replace both at once",
        );
        let none = "there is no certificate in tls.crt: it takes PEM, with the certificate first that is shown";
        check("", &good.key, none);
        check(&good.key, &good.key, none);
        check(
            &good.certificate,
            &good.certificate,
            "there is no private key in tls.key: it takes PEM, with a key that needs no passphrase",
        );
        let half = &good.certificate[..good.certificate.len() / 2];
        check(half, &good.key, "tls.crt is not PEM: a section has no end");
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        check(nonsense, &good.key, "the certificate in tls.crt cannot be used: invalid peer certificate: BadEncoding");
        let nonsense = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        check(
            &good.certificate,
            nonsense,
            "the key in tls.key cannot be used: unexpected error: failed to parse private key as RSA, ECDSA, or EdDSA; \
             RSA, P-256, P-384 and Ed25519 can",
        );
    }

    #[test]
    fn only_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(read(&folder.path().join("none")), Err(Error::Read { .. })));
        assert!(matches!(read(folder.path()), Err(Error::NoFile { .. })));
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(matches!(read(&large), Err(Error::NoFile { .. })));
    }
}

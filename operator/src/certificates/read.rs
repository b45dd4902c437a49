//! What Secrets and the webhook configuration hold, whatever the time is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use rcgen::KeyPair;
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use sha2::{Digest as _, Sha256};
use webpki::EndEntityCert;
use x509_cert::{
    der::{Decode as _, Encode as _, Tag, Tagged as _},
    ext::pkix::{BasicConstraints, KeyUsage, SubjectAltName, SubjectKeyIdentifier, name::GeneralName},
    name::Name,
    time::Time,
};

use super::{Data, Given, trust};

/// Where the two Secrets have what.
pub(super) mod entry {
    pub(in super::super) const AUTHORITY: Pair = Pair { certificate: "ca.crt", key: "ca.key" };
    pub(in super::super) const NEXT: Pair = Pair { certificate: "next.crt", key: "next.key" };
    pub(in super::super) const PREVIOUS: &str = "previous.crt";
    pub(in super::super) const LEAF: Pair = Pair { certificate: "tls.crt", key: "tls.key" };
    pub(in super::super) const BUNDLE: &str = "ca.crt";
    pub(in super::super) const OF_LEAF: [&str; 3] = [LEAF.certificate, LEAF.key, BUNDLE];
    pub(in super::super) const OF_AUTHORITY: [&str; 5] =
        [AUTHORITY.certificate, AUTHORITY.key, NEXT.certificate, NEXT.key, PREVIOUS];

    /// The entries of a certificate and its key.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Pair {
        pub(in super::super) certificate: &'static str,
        pub(in super::super) key: &'static str,
    }
}

/// The largest certificate that is read, in bytes of DER.
const MAX_BYTES: usize = 64 << 10;

/// What is known whatever the time is.
pub(super) struct Known {
    /// The authority that signs, or why it cannot.
    pub(super) current: Result<Signer, Flaw>,
    /// The one that will follow, if there is an entry for it.
    pub(super) next: Option<Result<Signer, Flaw>>,
    /// Whether there is an entry for those before.
    pub(super) has_previous: bool,
    /// The leaf, or why it cannot be shown.
    pub(super) leaf: Result<Leaf, Flaw>,
    /// Every authority that either Secret or the webhook configuration names, in the order of the bundle.
    pub(super) authorities: Vec<Certificate>,
    /// Those of the webhook configuration.
    pub(super) published: Vec<Certificate>,
}

/// An authority with its key.
pub(super) struct Signer {
    pub(super) certificate: Certificate,
    pub(super) key: KeyPair,
    /// Its subject is this common name and nothing else.
    pub(super) name: String,
    pub(super) key_identifier: Vec<u8>,
}

/// A leaf whose key fits.
pub(super) struct Leaf {
    pub(super) certificate: Certificate,
    pub(super) fingerprint: String,
    /// The authority that signed it, if it is one of those that are known.
    pub(super) issuer: Option<CertificateDer<'static>>,
}

/// A certificate, as far as it matters here.
#[derive(Clone, Debug)]
pub(super) struct Certificate {
    pub(super) der: CertificateDer<'static>,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) subject: Name,
    pub(super) issuer: Name,
    /// Its DNS names.
    pub(super) names: BTreeSet<String>,
}

/// What an authority is known by.
#[derive(Clone)]
struct OwnAuthority {
    name: String,
    key_identifier: Vec<u8>,
}

/// Authorities that were looked at: the same one has several places, and its signature takes the longest to check.
#[derive(Default)]
struct Checked(BTreeMap<Vec<u8>, Option<OwnAuthority>>);

/// What is wrong with an entry of a Secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("its Secret does not exist")]
    NoSecret,
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{0} is not PEM: {1}")]
    Pem(&'static str, &'static str),
    #[error("there is no certificate in {0}")]
    NoCertificate(&'static str),
    #[error("the certificate in {0} cannot be read")]
    Certificate(&'static str),
    #[error("the certificate in {0} is not one of an authority that Portal made")]
    NoAuthority(&'static str),
    #[error("the key in {0} cannot be used")]
    Key(&'static str),
    #[error("the key in {1} is not that of the certificate in {0}")]
    NoPair(&'static str, &'static str),
}

impl Known {
    /// Reads all there is.
    pub(super) fn read(given: &Given<'_>) -> Known {
        let secret = given.authority;
        let mut checked = Checked::default();
        let current = signer(secret, entry::AUTHORITY, &mut checked);
        let has_next = [entry::NEXT.certificate, entry::NEXT.key].iter().any(|key| has(secret, key));
        let published = given.published.map(|published| readable(published.bundle)).unwrap_or_default();
        let mut authorities = published.clone();
        for key in [entry::AUTHORITY.certificate, entry::NEXT.certificate, entry::PREVIOUS] {
            authorities.extend(own(secret, key, &mut checked));
        }
        authorities.extend(own(given.leaf, entry::BUNDLE, &mut checked));
        in_order(&mut authorities);
        let leaf = leaf(given.leaf, &authorities);
        Known {
            current,
            next: has_next.then(|| signer(secret, entry::NEXT, &mut checked)),
            has_previous: has(secret, entry::PREVIOUS),
            leaf,
            authorities,
            published,
        }
    }
}

impl Certificate {
    pub(super) fn read(der: CertificateDer<'_>) -> Option<Certificate> {
        if der.len() > MAX_BYTES {
            return None;
        }
        // Two readers, because both the names and the verification must work later.
        let certificate = x509_cert::Certificate::from_der(&der).ok()?;
        webpki::anchor_from_trusted_cert(&der).ok()?;
        let certificate = certificate.tbs_certificate();
        let validity = certificate.validity();
        let names = certificate.get_extension::<SubjectAltName>().ok()?;
        let names = names.map(|(_, SubjectAltName(names))| names).unwrap_or_default();
        let names = names.into_iter().filter_map(|name| match name {
            GeneralName::DnsName(text) => Some(text.to_string()),
            _ => None,
        });
        Some(Certificate {
            from: moment(validity.not_before),
            until: moment(validity.not_after),
            subject: certificate.subject().clone(),
            issuer: certificate.issuer().clone(),
            names: names.collect(),
            der: der.into_owned(),
        })
    }

    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.from <= now && now <= self.until
    }

    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.until < now
    }

    /// When it is time for another one.
    pub(super) fn renewal(&self) -> Timestamp {
        let life = self.until.as_second() - self.from.as_second();
        Timestamp::from_second(self.from.as_second() + life / 3 * 2).unwrap_or(self.until)
    }
}

/// The SHA-256 of the first certificate of a PEM text, in hex: the one that a server shows as its own.
pub fn fingerprint(pem: &[u8]) -> Option<String> {
    Some(fingerprint_of_der(&CertificateDer::pem_slice_iter(pem).next()?.ok()?))
}

/// The SHA-256 of a certificate, in hex.
pub fn fingerprint_of_der(certificate: &[u8]) -> String {
    hexadecimal(&Sha256::digest(certificate))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Sorts certificates so that the same ones are the same text, whatever each is for: oldest first, each once.
pub(super) fn in_order(certificates: &mut Vec<Certificate>) {
    certificates.sort_by(|one, other| (one.from, one.der.as_ref()).cmp(&(other.from, other.der.as_ref())));
    certificates.dedup_by(|one, other| one.der == other.der);
}

/// The certificates of a PEM text that can be read, up to the first thing that is no PEM.
pub(super) fn readable(text: &[u8]) -> Vec<Certificate> {
    CertificateDer::pem_slice_iter(text).map_while(Result::ok).filter_map(Certificate::read).collect()
}

/// The certificates of an entry. The first is the one that a server shows as its own.
pub(super) fn chain(data: &Data, key: &'static str) -> Result<Vec<CertificateDer<'static>>, Flaw> {
    let text = data.get(key).ok_or(Flaw::Missing(key))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| Flaw::Pem(key, problem(&error)))?;
    if chain.is_empty() { Err(Flaw::NoCertificate(key)) } else { Ok(chain) }
}

/// The first certificate of an entry, whose key another entry has.
pub(super) fn pair(data: &Data, pair: entry::Pair) -> Result<Certificate, Flaw> {
    let certificate = chain(data, pair.certificate)?.swap_remove(0);
    let certificate = Certificate::read(certificate).ok_or(Flaw::Certificate(pair.certificate))?;
    let parsed = EndEntityCert::try_from(&certificate.der).map_err(|_| Flaw::Certificate(pair.certificate))?;
    let text = data.get(pair.key).ok_or(Flaw::Missing(pair.key))?;
    let key = PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => Flaw::Key(pair.key),
        error => Flaw::Pem(pair.key, problem(&error)),
    })?;
    let key = any_supported_type(&key).map_err(|_| Flaw::Key(pair.key))?;
    if key.public_key() != Some(parsed.subject_public_key_info()) {
        return Err(Flaw::NoPair(pair.certificate, pair.key));
    }
    Ok(certificate)
}

fn has(data: Option<&Data>, key: &str) -> bool {
    data.is_some_and(|data| data.contains_key(key))
}

/// An authority of ours that can sign.
fn signer(data: Option<&Data>, entry: entry::Pair, checked: &mut Checked) -> Result<Signer, Flaw> {
    let data = data.ok_or(Flaw::NoSecret)?;
    let certificate = pair(data, entry)?;
    let own = checked.own_authority(&certificate.der);
    let OwnAuthority { name, key_identifier } = own.ok_or(Flaw::NoAuthority(entry.certificate))?;
    let key = data.get(entry.key).and_then(|text| std::str::from_utf8(text).ok());
    let key = key.and_then(|text| KeyPair::from_pem(text).ok()).ok_or(Flaw::Key(entry.key))?;
    Ok(Signer { certificate, key, name, key_identifier })
}

/// Authorities of ours that an entry has. Others would be in the bundle because somebody changed a Secret by hand, where one that an
/// API server cannot read would keep all of it from being published.
fn own(data: Option<&Data>, key: &str, checked: &mut Checked) -> Vec<Certificate> {
    let text = data.and_then(|data| data.get(key)).map(Vec::as_slice).unwrap_or_default();
    readable(text).into_iter().filter(|found| checked.own_authority(&found.der).is_some()).collect()
}

impl Checked {
    fn own_authority(&mut self, der: &CertificateDer<'static>) -> Option<OwnAuthority> {
        self.0.entry(der.to_vec()).or_insert_with(|| own_authority(der)).clone()
    }
}

/// An authority, if it is one that Portal makes, down to the last bit: it has signed itself.
fn own_authority(der: &CertificateDer<'_>) -> Option<OwnAuthority> {
    let certificate = x509_cert::Certificate::from_der(der).ok()?;
    let signed = certificate.tbs_certificate();
    let (_, constraints) = signed.get_extension::<BasicConstraints>().ok()??;
    let (_, usage) = signed.get_extension::<KeyUsage>().ok()??;
    let (_, SubjectKeyIdentifier(identifier)) = signed.get_extension().ok()??;
    let mut attributes = signed.subject().iter();
    let (name, None) = (attributes.next()?, attributes.next()) else { return None };
    let is_ours = constraints.ca
        && usage.key_cert_sign()
        && name.oid == x509_cert::der::oid::db::rfc4519::CN
        && name.value.tag() == Tag::Utf8String
        && signed.subject() == signed.issuer();
    if !is_ours {
        return None;
    }
    let name = String::from_utf8(name.value.value().to_vec()).ok()?;
    let signature = certificate.signature().as_bytes()?;
    let parsed = EndEntityCert::try_from(der).ok()?;
    parsed.verify_signature(webpki::ring::ECDSA_P256_SHA256, &signed.to_der().ok()?, signature).ok()?;
    Some(OwnAuthority { name, key_identifier: identifier.into_bytes().to_vec() })
}

fn leaf(data: Option<&Data>, authorities: &[Certificate]) -> Result<Leaf, Flaw> {
    let certificate = pair(data.ok_or(Flaw::NoSecret)?, entry::LEAF)?;
    let issuer = authorities.iter().find(|authority| trust::is_issued_by(&certificate, authority));
    let issuer = issuer.map(|authority| authority.der.clone());
    Ok(Leaf { fingerprint: fingerprint_of_der(&certificate.der), certificate, issuer })
}

/// A time of a certificate. The very last ones, which say that it never ends, are later than the latest here.
fn moment(time: Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// What is wrong, in words: the error itself would show bytes of the Secret.
fn problem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no end",
        pem::Error::IllegalSectionStart { .. } => "a section has no proper beginning",
        pem::Error::Base64Decode(_) => "a section is not base64",
        _ => "it cannot be understood",
    }
}

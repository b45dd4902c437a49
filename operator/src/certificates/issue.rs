//! Makes authorities and certificates. Only here are things that differ from one call to the next: keys, and with them serial
//! numbers, which are a hash of the key.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls_pki_types::CertificateDer;

use super::{
    Action, Data, Given, Secret, Write,
    decide::{View, text},
    read::{self, Certificate, Known, Signer, entry},
    trust,
};

/// Why nothing can be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An action of another judgement.
    #[error("what {0:?} needs is not there: judge again")]
    Outdated(Action),
    /// One of the names.
    #[error("{name:?} cannot be a name of a certificate")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: rcgen::Error,
    },
    /// A key or a certificate.
    #[error("a certificate could not be made")]
    Make(#[from] rcgen::Error),
    /// The last check before something is written.
    #[error("a certificate was made that its authority does not prove")]
    Unproven,
}

/// A certificate and its key, in PEM.
struct Made {
    certificate: String,
    key: String,
}

/// The longest common name that X.520 allows.
const MAX_COMMON_NAME: usize = 64;

/// What an action writes. It takes what the judgement took that named the action.
pub fn perform(action: Action, given: &Given<'_>) -> Result<Write, Error> {
    write(action, &Known::read(given), given)
}

pub(super) fn write(action: Action, known: &Known, given: &Given<'_>) -> Result<Write, Error> {
    let view = View::new(known, given);
    let outdated = || Error::Outdated(action);
    let empty = Data::new();
    let (authority, leaf) = (given.authority.unwrap_or(&empty), given.leaf.unwrap_or(&empty));
    let mut data = Data::new();
    match action {
        Action::FoundAuthority => {
            make_authority(&view)?.put(&mut data, entry::AUTHORITY);
            put_previous(&mut data, &view.bundle);
        }
        Action::PrepareNext => {
            copy(authority, &mut data, &[entry::AUTHORITY.certificate, entry::AUTHORITY.key, entry::PREVIOUS]);
            make_authority(&view)?.put(&mut data, entry::NEXT);
        }
        Action::Promote => {
            let next = view.next.ok_or_else(outdated)?;
            for (from, to) in
                [(entry::NEXT.certificate, entry::AUTHORITY.certificate), (entry::NEXT.key, entry::AUTHORITY.key)]
            {
                data.insert(to.to_owned(), authority.get(from).ok_or_else(outdated)?.clone());
            }
            let others = view.bundle.iter().filter(|authority| authority.der != next.certificate.der);
            put_previous(&mut data, others);
        }
        Action::Forget => {
            copy(authority, &mut data, &[entry::AUTHORITY.certificate, entry::AUTHORITY.key]);
            if view.next.is_some() {
                copy(authority, &mut data, &[entry::NEXT.certificate, entry::NEXT.key]);
            }
        }
        Action::Issue => {
            make_leaf(&view, view.current.ok_or_else(outdated)?)?.put(&mut data, entry::LEAF);
            data.insert(entry::BUNDLE.to_owned(), view.bundle_text());
        }
        Action::ShareBundle => {
            copy(leaf, &mut data, &[entry::LEAF.certificate, entry::LEAF.key]);
            data.insert(entry::BUNDLE.to_owned(), view.bundle_text());
        }
    }
    let secret = match action {
        Action::Issue | Action::ShareBundle => Secret::Leaf,
        Action::FoundAuthority | Action::PrepareNext | Action::Promote | Action::Forget => Secret::Authority,
    };
    Ok(Write { secret, data })
}

/// Makes an authority. Its name is its own, so that nobody takes one authority for another.
fn make_authority(view: &View<'_>) -> Result<Made, Error> {
    let key = KeyPair::generate()?;
    let from = view.from();
    let mut parameters = parameters(from, view.authority_until(from));
    let identifier = parameters.key_identifier(&key);
    let day = view.given.now.strftime("%F");
    let name = format!("Portal authority {day} {}", read::hexadecimal(&identifier[..identifier.len().min(4)]));
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Made { certificate: parameters.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

/// Makes a leaf, with a key of its own.
fn make_leaf(view: &View<'_>, signer: &Signer) -> Result<Made, Error> {
    let key = KeyPair::generate()?;
    let from = view.from();
    let mut parameters = parameters(from, view.leaf_until(from, signer));
    let names = view.given.names;
    let name = names.first().filter(|name| name.len() <= MAX_COMMON_NAME).map_or("Portal webhook", String::as_str);
    parameters.distinguished_name.push(DnType::CommonName, name);
    for name in names {
        let dns_name = name.as_str().try_into().map_err(|source| Error::Name { name: name.clone(), source })?;
        parameters.subject_alt_names.push(SanType::DnsName(dns_name));
    }
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Of the authority's certificate only its name and the identifier of its key are in what it signs.
    let mut authority = CertificateParams::default();
    authority.distinguished_name = DistinguishedName::new();
    authority.distinguished_name.push(DnType::CommonName, signer.name.as_str());
    authority.key_identifier_method = KeyIdMethod::PreSpecified(signer.key_identifier.clone());
    let certificate = parameters.signed_by(&key, &Issuer::from_params(&authority, &signer.key))?;
    prove(certificate.der(), signer)?;
    Ok(Made { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn parameters(from: Timestamp, until: Timestamp) -> CertificateParams {
    let moment = |moment: Timestamp| date_time_ymd(1970, 1, 1) + Duration::from_secs(moment.as_second().unsigned_abs());
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.not_before = moment(from);
    parameters.not_after = moment(until);
    parameters.use_authority_key_identifier_extension = true;
    parameters
}

/// Checks that whoever trusts the authority will trust the leaf.
fn prove(leaf: &CertificateDer<'_>, signer: &Signer) -> Result<(), Error> {
    let leaf = Certificate::read(leaf.clone()).ok_or(Error::Unproven)?;
    if trust::is_issued_by(&leaf, &signer.certificate) { Ok(()) } else { Err(Error::Unproven) }
}

fn put_previous<'a>(data: &mut Data, authorities: impl IntoIterator<Item = &'a Certificate>) {
    let text = text(authorities);
    if !text.is_empty() {
        data.insert(entry::PREVIOUS.to_owned(), text);
    }
}

fn copy(from: &Data, to: &mut Data, keys: &[&str]) {
    to.extend(keys.iter().filter_map(|key| from.get_key_value(*key)).map(|(key, value)| (key.clone(), value.clone())));
}

impl Made {
    fn put(self, data: &mut Data, pair: entry::Pair) {
        data.insert(pair.certificate.to_owned(), self.certificate.into_bytes());
        data.insert(pair.key.to_owned(), self.key.into_bytes());
    }
}

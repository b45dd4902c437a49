//! Whether an API server trusts what a pod shows, decided by the library that decides it in earnest.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};
use x509_cert::{Certificate, der::Decode as _};

/// Between when and when.
type Span = (i64, i64);

thread_local! {
    /// Between when and when who trusts a bundle trusts a certificate.
    static KNOWN: RefCell<HashMap<u64, Vec<Span>>> = RefCell::default();
}

/// Whether whoever trusts a bundle trusts a server that shows a certificate under a name. All in PEM.
pub(super) fn is_trusted(bundle: &[u8], shown: &[u8], name: &str, now: Timestamp) -> bool {
    let mut hasher = DefaultHasher::new();
    (bundle, shown, name).hash(&mut hasher);
    let hash = hasher.finish();
    let now = now.as_second();
    KNOWN.with_borrow_mut(|known| {
        let spans = known.entry(hash).or_insert_with(|| spans(bundle, shown, name).unwrap_or_default());
        spans.iter().any(|(from, until)| (*from..=*until).contains(&now))
    })
}

fn spans(bundle: &[u8], shown: &[u8], name: &str) -> Option<Vec<Span>> {
    let leaf = CertificateDer::from_pem_slice(shown).ok()?;
    let (from, until) = span(&leaf)?;
    let mut spans = Vec::new();
    for authority in CertificateDer::pem_slice_iter(bundle).filter_map(Result::ok) {
        let (start, end) = span(&authority)?;
        let anchors = [webpki::anchor_from_trusted_cert(&authority).ok()?];
        let certificate = EndEntityCert::try_from(&leaf).ok()?;
        let moment = UnixTime::since_unix_epoch(Duration::from_secs(from.max(start).unsigned_abs()));
        let usage = KeyUsage::server_auth();
        let is_signed = certificate.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, &[], moment, usage, None, None);
        let is_named = certificate.verify_is_valid_for_subject_name(&ServerName::try_from(name).ok()?);
        if is_signed.is_ok() && is_named.is_ok() {
            spans.push((from.max(start), until.min(end)));
        }
    }
    Some(spans)
}

fn span(certificate: &CertificateDer<'_>) -> Option<Span> {
    let validity = *Certificate::from_der(certificate).ok()?.tbs_certificate().validity();
    let seconds = |time: x509_cert::time::Time| i64::try_from(time.to_unix_duration().as_secs()).ok();
    Some((seconds(validity.not_before)?, seconds(validity.not_after)?))
}

/// When a certificate in PEM ends. None if it is none.
pub(super) fn end(shown: &[u8]) -> Option<i64> {
    Some(span(&CertificateDer::from_pem_slice(shown).ok()?)?.1)
}

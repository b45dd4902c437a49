//! Whether a certificate would be trusted, as the API server decides it.

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};

use super::read::Certificate;

/// Why a certificate is not trusted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Distrust {
    #[error(transparent)]
    Chain(#[from] webpki::Error),
    /// The first of the names that it is not for.
    #[error("it is not for {0}")]
    Name(String),
}

/// Whether a server that shows a chain of certificates is trusted by whoever trusts these authorities. An authority that is out of its
/// time is trusted by nobody, as in Go; the library here would not ask.
pub(super) fn verify(
    chain: &[CertificateDer<'_>],
    authorities: &[Certificate],
    names: &[String],
    now: Timestamp,
) -> Result<(), Distrust> {
    let Some((certificate, intermediates)) = chain.split_first() else { return Err(webpki::Error::BadDer.into()) };
    let certificate = EndEntityCert::try_from(certificate)?;
    let authorities = authorities.iter().filter(|authority| authority.is_valid(now));
    let anchors: Result<Vec<_>, _> =
        authorities.map(|authority| webpki::anchor_from_trusted_cert(&authority.der)).collect();
    let usage = KeyUsage::server_auth();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.as_second().unsigned_abs()));
    certificate.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors?, intermediates, now, usage, None, None)?;
    for name in names {
        let wrong = || Distrust::Name(name.clone());
        let server_name = ServerName::try_from(name.as_str()).map_err(|_| wrong())?;
        certificate.verify_is_valid_for_subject_name(&server_name).map_err(|_| wrong())?;
    }
    Ok(())
}

/// Whether an authority has signed a certificate for a server, whatever the time is.
pub(super) fn is_issued_by(certificate: &Certificate, authority: &Certificate) -> bool {
    // A moment at which both are valid says the same of the signature as any other.
    let moment = certificate.from.max(authority.from);
    certificate.issuer == authority.subject
        && verify(std::slice::from_ref(&certificate.der), std::slice::from_ref(authority), &[], moment).is_ok()
}

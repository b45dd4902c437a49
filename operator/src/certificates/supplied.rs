//! Certificates that somebody else issues: a person, or cert-manager.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};

use super::{
    ASK_AGAIN, Data, Judgement, Published, Reason, Served, State,
    decide::{serve, since, text},
    read::{self, Certificate, Flaw, entry},
    state,
    trust::{self, Distrust},
};

/// What is known of a certificate that somebody else issues.
#[derive(Clone, Copy)]
pub struct Supplied<'a> {
    /// The time.
    pub now: Timestamp,
    /// Who issues it.
    pub source: Source,
    /// The DNS names that it has to be for.
    pub names: &'a [String],
    /// The name of the Secret, for sentences.
    pub secret_name: &'a str,
    /// The Secret in the engine's namespace, if it exists: `tls.crt`, `tls.key`, `ca.crt`.
    pub secret: Option<&'a Data>,
    /// `spec.certificates.caBundle`, in place of `ca.crt`.
    pub bundle: Option<&'a [u8]>,
    /// What the webhook configuration says, if it exists.
    pub published: Option<Published<'a>>,
    /// What pods serve.
    pub served: &'a [Served],
}

/// Who issues a certificate, if not the operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// cert-manager, by a Certificate that the operator applies: see [`cert_manager`](super::cert_manager).
    CertManager,
    /// Somebody who writes the Secret that the instance names.
    Secret,
}

/// What is wrong, with what would help.
struct Problem(Reason, String);

/// A certificate that is good.
struct Good {
    leaf: Certificate,
    /// Whether it is about to end.
    is_late: bool,
}

/// How long before its end a certificate should have been renewed. For one that lives for less than two months, a quarter of its life.
const LATE: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Looks at what is given. Never has an action. What API servers trusted before stays in the bundle until every pod serves what is given.
pub fn verify(supplied: &Supplied<'_>) -> Judgement {
    let now = supplied.now;
    let checked = check(supplied);
    let good = checked.as_ref().ok();
    let fingerprint = good.map(|good| read::fingerprint_of_der(&good.leaf.der));
    let is_served = fingerprint.is_some() && supplied.served.iter().all(|served| served.fingerprint == fingerprint);
    let can_begin = fingerprint.is_some_and(|fingerprint| serve(supplied.served, &fingerprint));
    let mut authorities = authorities(supplied).unwrap_or_default();
    let count = authorities.len();
    if let Some(published) = supplied.published.filter(|_| !is_served) {
        authorities.extend(read::readable(published.bundle).into_iter().filter(|found| !found.has_expired(now)));
    }
    read::in_order(&mut authorities);
    let keeps_more = authorities.len() > count;
    let bundle = text(&authorities);
    let (is_ready, reason, message) = match &checked {
        Err(Problem(reason, message)) => (false, *reason, message.clone()),
        Ok(good) => told(supplied, good),
    };
    let leaf = good.map(|good| &good.leaf);
    let issuer = authorities.iter().filter(|authority| leaf.is_some_and(|leaf| leaf.issuer == authority.subject));
    let authority_expires = issuer.map(|authority| authority.until).min();
    let ask_again = now.saturating_add(ASK_AGAIN).unwrap_or(now);
    let mut moments: Vec<Timestamp> = authorities.iter().map(|authority| authority.until).collect();
    moments.extend(leaf.into_iter().flat_map(|leaf| [late(leaf), leaf.until]));
    moments.extend((keeps_more || (supplied.published.is_none() && !can_begin)).then_some(ask_again));
    Judgement {
        since: since(supplied.published, &bundle, now),
        bundle,
        can_begin,
        action: None,
        look_again: moments.into_iter().filter(|moment| *moment > now).min().unwrap_or(ask_again),
        state: State { is_ready, reason, message, expires: leaf.map(|leaf| leaf.until), authority_expires },
    }
}

/// What is said of a certificate that is good.
fn told(supplied: &Supplied<'_>, good: &Good) -> (bool, Reason, String) {
    let (until, secret) = (good.leaf.until, supplied.secret_name);
    if !good.is_late {
        return (true, Reason::Valid, format!("the certificate in the Secret {secret} is valid until {until}"));
    }
    let help = match supplied.source {
        Source::CertManager => "cert-manager should have renewed it: kubectl describe certificates".to_owned(),
        Source::Secret => "write a new one into it".to_owned(),
    };
    (true, Reason::ExpiresSoon, format!("the certificate in the Secret {secret} is valid only until {until}: {help}"))
}

/// Whether API servers will trust what is given.
fn check(supplied: &Supplied<'_>) -> Result<Good, Problem> {
    let secret = supplied.secret_name;
    let problem = |reason, text: String| Problem(reason, format!("the Secret {secret}: {text}"));
    let Some(data) = supplied.secret else {
        return Err(match supplied.source {
            Source::CertManager => Problem(
                Reason::WaitingForCertManager,
                format!("cert-manager has not written the Secret {secret} yet: kubectl describe certificates"),
            ),
            Source::Secret => {
                let name = supplied.names.first().map(String::as_str).unwrap_or_default();
                let authority =
                    if supplied.bundle.is_some() { "" } else { ", and in ca.crt the authority that signed it" };
                let message = format!(
                    "there is no Secret {secret} in the namespace of the engine: create it, with a certificate for {name} in tls.crt, its \
                     key in tls.key{authority}"
                );
                Problem(Reason::SecretMissing, message)
            }
        });
    };
    let leaf = read::pair(data, entry::LEAF).map_err(|flaw| flawed(&flaw, problem))?;
    let chain = read::chain(data, entry::LEAF.certificate).map_err(|flaw| flawed(&flaw, problem))?;
    let now = supplied.now;
    if !leaf.is_valid(now) {
        let reason = if leaf.has_expired(now) { Reason::Expired } else { Reason::NotYetValid };
        let help = if leaf.has_expired(now) { "renew it" } else { "compare the clocks of whoever issued it" };
        return Err(problem(
            reason,
            format!("the certificate cannot be used, {}: {help}", state::out_of_time(&leaf, now)),
        ));
    }
    let authorities = authorities(supplied)?;
    trusted(supplied, &chain, &leaf, &authorities).map_err(|(reason, text)| problem(reason, text))?;
    let is_late = late(&leaf) <= now;
    Ok(Good { leaf, is_late })
}

/// Whether a chain leads to the authorities, and is for the names.
fn trusted(
    supplied: &Supplied<'_>,
    chain: &[CertificateDer<'_>],
    leaf: &Certificate,
    authorities: &[Certificate],
) -> Result<(), (Reason, String)> {
    let Err(distrust) = trust::verify(chain, authorities, supplied.names, supplied.now) else { return Ok(()) };
    let place = if supplied.bundle.is_some() { "spec.certificates.caBundle" } else { "ca.crt" };
    let expired =
        authorities.iter().find(|authority| authority.subject == leaf.issuer && !authority.is_valid(supplied.now));
    Err(match distrust {
        Distrust::Name(name) => {
            let names: Vec<&str> = leaf.names.iter().map(String::as_str).collect();
            let names = if names.is_empty() { "no DNS name".to_owned() } else { names.join(", ") };
            (Reason::NameNotCovered, format!("the certificate is for {names}, and not for {name}: issue one that is"))
        }
        Distrust::Chain(webpki::Error::CaUsedAsEndEntity) => (
            Reason::NotTrusted,
            "the certificate in tls.crt is one of an authority: issue one for a server, that the authority signs"
                .to_owned(),
        ),
        Distrust::Chain(webpki::Error::RequiredEkuNotFoundContext(_)) => (
            Reason::NotTrusted,
            "the certificate is not for servers: issue one with the extended key usage serverAuth".to_owned(),
        ),
        Distrust::Chain(webpki::Error::UnknownIssuer) if expired.is_some() => {
            let text = expired.map(|authority| state::out_of_time(authority, supplied.now)).unwrap_or_default();
            (Reason::NotTrusted, format!("the authority in {place} cannot be used, {text}: renew it"))
        }
        Distrust::Chain(error) => (
            Reason::NotTrusted,
            format!(
                "the certificate does not lead to an authority in {place} ({error}): put the authority there, and those between \
                 them into tls.crt, behind the certificate"
            ),
        ),
    })
}

/// The authorities that are given.
fn authorities(supplied: &Supplied<'_>) -> Result<Vec<Certificate>, Problem> {
    let secret = supplied.secret_name;
    let shared = supplied.secret.and_then(|data| data.get(entry::BUNDLE)).map(Vec::as_slice);
    let (place, text) = match (supplied.bundle, shared) {
        (Some(text), _) => ("spec.certificates.caBundle".to_owned(), text),
        (None, Some(text)) if !text.is_empty() => (format!("ca.crt of the Secret {secret}"), text),
        (None, _) => {
            let message = format!(
                "nobody says which authority API servers have to trust: the Secret {secret} has no ca.crt; add it, or set \
                 spec.certificates.caBundle"
            );
            return Err(Problem(Reason::AuthorityMissing, message));
        }
    };
    // Whoever reads it later, the API server and other replicas, takes all of it or nothing.
    let found: Option<Vec<_>> =
        CertificateDer::pem_slice_iter(text).map(|found| Certificate::read(found.ok()?)).collect();
    found.filter(|found| !found.is_empty()).ok_or_else(|| {
        let message = format!("{place} cannot be read: it takes certificates in PEM, one behind the other");
        Problem(Reason::AuthorityUnreadable, message)
    })
}

fn flawed(flaw: &Flaw, problem: impl Fn(Reason, String) -> Problem) -> Problem {
    let (reason, help) = match flaw {
        Flaw::NoSecret | Flaw::Missing("tls.crt") | Flaw::Pem("tls.crt", _) | Flaw::NoCertificate(_) => {
            (Reason::CertificateUnreadable, "it takes PEM, with the certificate first that is shown")
        }
        Flaw::Certificate(_) | Flaw::NoAuthority(_) => (Reason::CertificateUnreadable, "issue another one"),
        Flaw::Missing(_) | Flaw::Pem(..) => {
            (Reason::KeyUnreadable, "it takes PEM, with a key that needs no passphrase")
        }
        Flaw::Key(_) => {
            (Reason::KeyUnreadable, "it takes RSA, P-256, P-384 or Ed25519, in PEM and without a passphrase")
        }
        Flaw::NoPair(..) => (Reason::KeyMismatch, "replace both at once"),
    };
    problem(reason, format!("{flaw}: {help}"))
}

/// When a certificate should have been renewed.
fn late(leaf: &Certificate) -> Timestamp {
    let life = leaf.until.duration_since(leaf.from);
    leaf.until.saturating_sub(LATE.min(life / 4)).unwrap_or(leaf.until)
}

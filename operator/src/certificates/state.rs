//! How the certificates are, for people.

use std::fmt;

use jiff::Timestamp;

use super::{
    Action, Served,
    decide::{Trusted, View},
    read::{Certificate, Leaf},
};

/// What the condition `CertificatesReady` says, and when certificates end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct State {
    /// Whether pods have a certificate that API servers trust, or get one without further ado.
    pub is_ready: bool,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence, with what helps if something has to be done.
    pub message: String,
    /// When the leaf ends.
    pub expires: Option<Timestamp>,
    /// When the authority ends that has signed it, of several the first.
    pub authority_expires: Option<Timestamp>,
}

/// Why the certificates are ready or not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// All is well.
    Valid,
    /// One authority takes the place of another.
    RotatingAuthority,
    /// Some pods do not serve the certificate yet.
    WaitingForPods,
    /// There is nothing that pods could show, and it is being made.
    Issuing,
    /// There is nothing that pods could show, until API servers know its authority.
    WaitingForApiServers,
    /// It is good for some days only, and nobody has renewed it.
    ExpiresSoon,
    /// The Secret that the instance names does not exist.
    SecretMissing,
    /// cert-manager has not written the Secret.
    WaitingForCertManager,
    /// There is no certificate that can be read.
    CertificateUnreadable,
    /// There is no key that can be used.
    KeyUnreadable,
    /// The key belongs to another certificate.
    KeyMismatch,
    /// The certificate is for other names.
    NameNotCovered,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate has expired.
    Expired,
    /// Nobody says which authority to trust.
    AuthorityMissing,
    /// The authority cannot be read.
    AuthorityUnreadable,
    /// The certificate does not lead to the authority.
    NotTrusted,
}

/// Pods that a message names.
const MAX_PODS: usize = 5;

impl State {
    /// How certificates are that the operator issues.
    pub(super) fn of_issued(view: &View<'_>, action: Option<Action>) -> State {
        let (is_ready, reason, message) = match view.leaf {
            Some(leaf) => in_use(view, leaf),
            None => missing(view, action),
        };
        let leaf = view.known.leaf.as_ref().ok();
        let issuer =
            leaf.and_then(|leaf| view.known.authorities.iter().find(|known| Some(&known.der) == leaf.issuer.as_ref()));
        State {
            is_ready,
            reason,
            message,
            expires: leaf.map(|leaf| leaf.certificate.until),
            authority_expires: issuer.map(|issuer| issuer.until),
        }
    }
}

/// What is said while pods have a leaf that can be trusted.
fn in_use(view: &View<'_>, leaf: &Leaf) -> (bool, Reason, String) {
    let now = view.given.now;
    let rotating = |message: String| (true, Reason::RotatingAuthority, message);
    let Some(current) = view.current else {
        let problem = match &view.known.current {
            Err(flaw) => flaw.to_string(),
            Ok(current) => out_of_time(&current.certificate, now),
        };
        return rotating(format!("the authority cannot sign: {problem}; another one takes its place"));
    };
    if view.next.is_some() || !view.is_of_current(leaf) {
        return rotating(
            "another authority signs the next certificate, as soon as every API server trusts it".to_owned(),
        );
    }
    if view.has_more_than_needed() {
        let behind = names(view.behind(leaf));
        if behind.is_empty() {
            return rotating(
                "every pod serves the certificate of the authority; the one before is forgotten soon".to_owned(),
            );
        }
        let message = format!(
            "the authority before stays trusted, because these pods do not serve the new certificate yet, or could not be asked: \
             {behind}; a pod that is still named here after ten minutes has to be deleted"
        );
        return (true, Reason::WaitingForPods, message);
    }
    let (until, renewal) = (leaf.certificate.until, leaf.certificate.renewal().min(current.certificate.renewal()));
    (true, Reason::Valid, format!("the certificate is valid until {until}, and is replaced after {}", seconds(renewal)))
}

/// What is said while there is no leaf that can be trusted.
fn missing(view: &View<'_>, action: Option<Action>) -> (bool, Reason, String) {
    let problem = match &view.known.leaf {
        Err(flaw) => flaw.to_string(),
        Ok(leaf) if !leaf.certificate.is_valid(view.given.now) => out_of_time(&leaf.certificate, view.given.now),
        Ok(_) => "no authority that is trusted has signed it".to_owned(),
    };
    if action.is_some() {
        return (
            false,
            Reason::Issuing,
            format!("the certificate cannot be used: {problem}; another one is being made"),
        );
    }
    let moment = match view.current.map(|current| view.trusted(current)) {
        Some(Trusted::From(moment)) => format!(" at {}", seconds(moment)),
        _ => String::new(),
    };
    let message = format!(
        "the certificate cannot be used: {problem}; another one is made{moment}, when every API server trusts its authority; until \
         then pods go on with what they have"
    );
    (false, Reason::WaitingForApiServers, message)
}

pub(super) fn out_of_time(certificate: &Certificate, now: Timestamp) -> String {
    if certificate.has_expired(now) {
        format!("it has expired at {}", certificate.until)
    } else {
        format!("it is not valid before {}", certificate.from)
    }
}

/// The names of pods, in order, not too many.
pub(super) fn names<'a>(pods: impl Iterator<Item = &'a Served>) -> String {
    let mut names: Vec<&str> = pods.map(|served| served.pod.as_str()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(MAX_PODS);
    names.truncate(MAX_PODS);
    let text = names.join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// A moment without fractions of a second.
fn seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

impl Reason {
    /// Every reason, for whoever has to know them all.
    pub const ALL: [Reason; 17] = [
        Reason::Valid,
        Reason::RotatingAuthority,
        Reason::WaitingForPods,
        Reason::Issuing,
        Reason::WaitingForApiServers,
        Reason::ExpiresSoon,
        Reason::SecretMissing,
        Reason::WaitingForCertManager,
        Reason::CertificateUnreadable,
        Reason::KeyUnreadable,
        Reason::KeyMismatch,
        Reason::NameNotCovered,
        Reason::NotYetValid,
        Reason::Expired,
        Reason::AuthorityMissing,
        Reason::AuthorityUnreadable,
        Reason::NotTrusted,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_explained() {
        let page = include_str!("../../../docs/operator/certificate-management.md");
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert!(page.contains(&format!("| `{reason}` |")), "{reason} is not in the table of the page");
            assert_eq!(reason as usize, index, "each is there once");
        }
    }
}

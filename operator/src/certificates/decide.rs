//! What is right at this moment.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use pem::{EncodeConfig, LineEnding, Pem};

use super::{
    ASK_AGAIN, Action, BACKDATED, Data, Given, Judgement, PROPAGATION, Published, SETTLING, Served, State,
    read::{Certificate, Known, Leaf, Signer, entry},
};

/// The shortest life of a certificate.
const SHORTEST: SignedDuration = SignedDuration::from_hours(1);

/// What is known, at a time.
pub(super) struct View<'a> {
    pub(super) known: &'a Known,
    pub(super) given: &'a Given<'a>,
    /// The authority that signs, if it can.
    pub(super) current: Option<&'a Signer>,
    /// The one that follows, if it can sign.
    pub(super) next: Option<&'a Signer>,
    /// The leaf, if API servers can trust it.
    pub(super) leaf: Option<&'a Leaf>,
    /// What API servers must trust, in order.
    pub(super) bundle: Vec<Certificate>,
    /// Whether no pod can need any authority but the current one.
    pub(super) is_settled: bool,
}

/// Since when API servers trust an authority, as far as we can tell.
pub(super) enum Trusted {
    /// For long enough, or there is nobody who would have to.
    Yes,
    /// It will be by then.
    From(Timestamp),
    /// It has not been published yet.
    No,
}

/// Decides.
pub(super) fn judgement(known: &Known, given: &Given<'_>) -> Judgement {
    let view = View::new(known, given);
    let bundle = view.bundle_text();
    let action = view.action(&bundle);
    Judgement {
        since: since(given.published, &bundle, given.now),
        can_begin: view.can_begin(),
        look_again: view.look_again(),
        state: State::of_issued(&view, action),
        action,
        bundle,
    }
}

/// Certificates as PEM.
pub(super) fn text<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> Vec<u8> {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let encode = |certificate: &Certificate| {
        pem::encode_config(&Pem::new("CERTIFICATE", certificate.der.as_ref()), config).into_bytes()
    };
    certificates.into_iter().flat_map(encode).collect()
}

/// Since when a bundle is published. A time that has yet to come is no answer: the clock was set back.
pub(super) fn since(published: Option<Published<'_>>, bundle: &[u8], now: Timestamp) -> Timestamp {
    let kept = published.filter(|published| published.bundle == bundle && published.since <= now);
    kept.map_or(now, |published| published.since)
}

/// Whether pods serve a certificate: some do, and none serves another.
pub(super) fn serve(served: &[Served], fingerprint: &str) -> bool {
    let mut answers = served.iter().filter_map(|served| served.fingerprint.as_deref()).peekable();
    answers.peek().is_some() && answers.all(|answer| answer == fingerprint)
}

impl<'a> View<'a> {
    pub(super) fn new(known: &'a Known, given: &'a Given<'a>) -> View<'a> {
        let now = given.now;
        let is_valid = |signer: &&Signer| signer.certificate.is_valid(now);
        let current = known.current.as_ref().ok().filter(is_valid);
        let next = known.next.as_ref().and_then(|next| next.as_ref().ok()).filter(is_valid);
        let living = known.authorities.iter().filter(|authority| !authority.has_expired(now));
        let is_trusted = |leaf: &&Leaf| {
            let issuer = leaf.issuer.as_ref();
            leaf.certificate.is_valid(now) && living.clone().any(|authority| Some(&authority.der) == issuer)
        };
        let leaf = known.leaf.as_ref().ok().filter(is_trusted);
        let mut view = View { known, given, current, next, leaf, bundle: Vec::new(), is_settled: false };
        view.is_settled = view.leaf.is_some_and(|leaf| {
            view.is_of_current(leaf) && view.settles(leaf) <= now && view.behind(leaf).next().is_none()
        });
        let is_needed = |authority: &&Certificate| {
            let signers = [current, next].into_iter().flatten();
            !view.is_settled || signers.into_iter().any(|signer| signer.certificate.der == authority.der)
        };
        view.bundle = living.clone().filter(is_needed).cloned().collect();
        view
    }

    pub(super) fn bundle_text(&self) -> Vec<u8> {
        text(&self.bundle)
    }

    /// The one thing to do. What keeps pods working comes first, and what can wait until API servers know comes last.
    pub(super) fn action(&self, bundle: &[u8]) -> Option<Action> {
        let Some(current) = self.current else {
            return Some(if self.next.is_some() { Action::Promote } else { Action::FoundAuthority });
        };
        let may_sign = matches!(self.trusted(current), Trusted::Yes);
        let Some(leaf) = self.leaf else {
            return (may_sign || self.is_nothing_valid_served()).then_some(Action::Issue);
        };
        let has_bundle = |data: &Data| data.get(entry::BUNDLE).is_some_and(|shared| shared == bundle);
        if !self.given.leaf.is_some_and(|data| has_bundle(data) && has_only(data, &entry::OF_LEAF)) {
            return Some(Action::ShareBundle);
        }
        match self.next {
            Some(next) if matches!(self.trusted(next), Trusted::Yes) => return Some(Action::Promote),
            None if self.is_due(current) => return Some(Action::PrepareNext),
            _ => {}
        }
        let has_leftovers = self.known.has_previous
            || (self.known.next.is_some() && self.next.is_none())
            || !self.given.authority.is_some_and(|data| has_only(data, &entry::OF_AUTHORITY));
        if has_leftovers && self.is_settled {
            return Some(Action::Forget);
        }
        (self.is_stale(leaf, current) && may_sign).then_some(Action::Issue)
    }

    /// Whether API servers trust an authority.
    pub(super) fn trusted(&self, signer: &Signer) -> Trusted {
        let certificate = &signer.certificate;
        let since = match self.given.published {
            // None who asks pods at all, unless that has changed since we looked. Whoever looks later publishes this authority too.
            None => certificate.from.saturating_add(BACKDATED).unwrap_or(Timestamp::MAX),
            Some(published) if self.known.published.iter().any(|found| found.der == certificate.der) => published.since,
            Some(_) => return Trusted::No,
        };
        if since > self.given.now && self.given.published.is_some() {
            return Trusted::No;
        }
        let moment = since.saturating_add(PROPAGATION).unwrap_or(Timestamp::MAX);
        if moment <= self.given.now { Trusted::Yes } else { Trusted::From(moment) }
    }

    pub(super) fn is_of_current(&self, leaf: &Leaf) -> bool {
        self.current.is_some_and(|current| leaf.issuer.as_ref() == Some(&current.certificate.der))
    }

    /// Pods that do not serve the leaf, as far as we know.
    pub(super) fn behind(&self, leaf: &Leaf) -> impl Iterator<Item = &'a Served> {
        self.given.served.iter().filter(|served| served.fingerprint.as_ref() != Some(&leaf.fingerprint))
    }

    /// Whether anything is kept that goes when all pods serve the leaf.
    pub(super) fn has_more_than_needed(&self) -> bool {
        let signers = [self.current, self.next].into_iter().flatten().count();
        self.known.has_previous || self.bundle.len() > signers
    }

    /// Whether pods have nothing to show that API servers could trust. Where the leaf is out of its time, so are those before it.
    fn is_nothing_valid_served(&self) -> bool {
        let is_out_of_time = self.known.leaf.as_ref().is_ok_and(|leaf| !leaf.certificate.is_valid(self.given.now));
        self.given.served.is_empty() || is_out_of_time
    }

    /// Whether pods serve the leaf, all that answered. Others do not run, and mount it when they do.
    fn can_begin(&self) -> bool {
        self.leaf.is_some_and(|leaf| serve(self.given.served, &leaf.fingerprint))
    }

    fn is_due(&self, authority: &Signer) -> bool {
        let certificate = &authority.certificate;
        certificate.renewal() <= self.given.now || certificate.until != self.authority_until(certificate.from)
    }

    /// Whether a leaf that can be trusted must be replaced all the same.
    fn is_stale(&self, leaf: &Leaf, current: &Signer) -> bool {
        let certificate = &leaf.certificate;
        !self.is_of_current(leaf)
            || !certificate.names.iter().eq(self.given.names.iter().collect::<BTreeSet<_>>())
            || certificate.until != self.leaf_until(certificate.from, current)
            || (certificate.renewal() <= self.given.now && self.is_prolonged(leaf, current))
    }

    /// Whether another leaf would be valid for longer. It would not if the authority ends before: then the authority is replaced.
    fn is_prolonged(&self, leaf: &Leaf, current: &Signer) -> bool {
        leaf.certificate.until < self.leaf_until(self.from(), current)
    }

    /// When what is made at this moment begins to be valid. Certificates know no fractions of a second.
    pub(super) fn from(&self) -> Timestamp {
        let moment = self.given.now.saturating_sub(BACKDATED).unwrap_or(Timestamp::UNIX_EPOCH);
        Timestamp::from_second(moment.as_second().max(0)).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// When an authority ends that is valid from some moment on.
    pub(super) fn authority_until(&self, from: Timestamp) -> Timestamp {
        end(from, self.given.validity.authority)
    }

    /// When a leaf ends that is valid from some moment on.
    pub(super) fn leaf_until(&self, from: Timestamp, issuer: &Signer) -> Timestamp {
        end(from, self.given.validity.leaf).min(issuer.certificate.until)
    }

    /// When a leaf has been in its Secret for long enough.
    fn settles(&self, leaf: &Leaf) -> Timestamp {
        leaf.certificate.from.saturating_add(BACKDATED + SETTLING).unwrap_or(Timestamp::MAX)
    }

    /// The first moment at which this judgement may be another one.
    fn look_again(&self) -> Timestamp {
        let now = self.given.now;
        let ask_again = now.saturating_add(ASK_AGAIN).unwrap_or(now);
        let mut moments = Vec::new();
        for signer in [self.current, self.next].into_iter().flatten() {
            moments.push(signer.certificate.renewal());
            if let Trusted::From(moment) = self.trusted(signer) {
                moments.push(moment);
            }
        }
        moments.extend(self.bundle.iter().map(|authority| authority.until));
        if self.given.published.is_none() && !self.can_begin() {
            moments.push(ask_again);
        }
        if let Some(leaf) = self.leaf {
            moments.extend([leaf.certificate.renewal(), leaf.certificate.until]);
            if self.has_more_than_needed() && self.is_of_current(leaf) {
                moments.push(self.settles(leaf).max(ask_again));
            }
        }
        moments.into_iter().filter(|moment| *moment > now).min().unwrap_or(ask_again)
    }
}

/// Whether a Secret has nothing that somebody else has put into it.
fn has_only(data: &Data, names: &[&str]) -> bool {
    data.keys().all(|name| names.contains(&name.as_str()))
}

/// When a certificate ends that is valid from some moment on. One that ends at once would be replaced for ever.
fn end(from: Timestamp, validity: SignedDuration) -> Timestamp {
    let validity = validity.max(SHORTEST).as_secs();
    let until = from.as_second().saturating_add(BACKDATED.as_secs()).saturating_add(validity);
    Timestamp::from_second(until.min(Timestamp::MAX.as_second())).unwrap_or(Timestamp::MAX)
}

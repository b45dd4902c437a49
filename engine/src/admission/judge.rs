//! From the bytes of an AdmissionReview to the answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use portal_cluster::rules::snapshot::{InForce, Snapshot};
use portal_core::{
    decide::{Decision, Policy},
    evaluate::{Evaluation, evaluate_until},
    event::{Entry, Event},
    kinds::Kinds,
    lookup::Query,
    object::{Object, Visible},
    review::{Review, ReviewError},
    selector::Selector,
    webhook::SPARED_NAMESPACES,
};
use portal_document::{Document, DocumentLimits, Interning, Node, Options, Path};
use portal_expr::{Limits, Moment};
use serde_json::Value;

use super::namespaces::Namespaces;
use crate::{
    cache::{answers::Answers, fresh::Fresh, keeper::Caches},
    outcomes::Outcomes,
    sinks::{About, alertmanager::owner},
};

/// How reviews are judged.
#[derive(Clone, Debug)]
pub struct JudgeSettings {
    /// How an instance decides.
    pub policy: Policy,
    /// What one rule may take.
    pub limits: Limits,
    /// How long a request may take. Shorter than the API server waits, so that it is told why.
    pub deadline: Duration,
    /// The namespaces that the instance serves, by their labels.
    pub namespace_selector: Selector,
    /// The namespaces that are left alone: those of Portal, and those that the instance names.
    pub exclude_namespaces: BTreeSet<String>,
}

/// Judges AdmissionReviews by the rules in force. A clone judges by the same.
#[derive(Clone)]
pub struct Judge {
    /// The rules.
    pub in_force: InForce,
    /// The namespaces of what is judged.
    pub namespaces: Namespaces,
    /// The objects that rules look up.
    pub caches: Caches,
    /// What reads for rules that want to know more than is cached.
    pub fresh: Fresh,
    /// Where it keeps what was let in although a rule has something to say that audit never asks. Nowhere if the instance has no audit.
    pub outcomes: Option<Outcomes>,
    /// How it judges.
    pub settings: Arc<JudgeSettings>,
}

/// What came of a review.
#[derive(Debug)]
pub struct Judged {
    /// The AdmissionReview that answers.
    pub answer: Value,
    /// What happened, in a word.
    pub outcome: Outcome,
    /// What was decided. Empty if no rule was asked.
    pub decision: Decision,
    /// What came of the rules, and which they were, if any was asked.
    pub evaluated: Option<(Arc<Snapshot>, Evaluation)>,
    /// What was refused, if anything was.
    pub refused: Option<Subject>,
    /// What it was about.
    pub about: About,
}

/// What a request is about, for whoever is alerted.
#[derive(Debug)]
pub struct Subject {
    /// The kind.
    pub kind: String,
    /// Who the object belongs to.
    pub owner: String,
}

/// Why there is an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Rules were asked, and let it in.
    Allowed,
    /// A rule refused.
    Denied,
    /// Its namespace is left alone, or is not one that the instance serves.
    Excluded,
    /// Its namespace says that rules are to be passed by.
    Bypassed,
    /// No rule knows its kind.
    Unknown,
}

/// Why a body cannot be answered. The API server then does what the failure policy says, and shows this.
#[derive(Debug, thiserror::Error)]
pub enum Unanswerable {
    /// It is no JSON, or too large, or too deep.
    #[error("the body is no AdmissionReview that can be read: {0}")]
    Document(#[from] portal_document::Error),
    /// It is JSON, and no review.
    #[error("{0}")]
    Review(#[from] ReviewError),
}

/// The name of a namespace, and what is known of it.
type Found<'a> = (&'a str, Result<Arc<Object<'static>>, String>);

/// The annotation of a namespace by which rules are passed by.
const BYPASS: &str = "portal.io/bypass";

/// How many bytes of a text of the request are kept for those who are told of decisions. Names have fewer.
const MAX_TEXT: usize = 1024;

/// How long the uid of a request may be. It is echoed.
const MAX_UID: usize = 128;

/// How often what rules ask for is read before the answer: what they ask for next may depend on it.
pub const READINGS: usize = 3;

/// Where the API server names the kind in a review: before the object.
const HEAD: usize = 512;

const SECRET: &[u8] = b"\"Secret\"";

/// The levels of a review around the object in it.
const LEVELS_AROUND: usize = 8;

impl Judge {
    /// Judges a review that came by an entry of the webhook configuration, or by none in particular.
    pub async fn judge(&self, entry: Option<Entry>, body: &[u8], now: Moment) -> Result<Judged, Unanswerable> {
        let begin = Instant::now();
        let snapshot = self.in_force.now();
        let document = read_visible(body, &snapshot.kinds)?;
        let review = match Review::of(document.root(), &snapshot.kinds) {
            Ok(review) => review,
            // The configuration knows a kind that this engine does not: no rule in force can be about it.
            Err(ReviewError::Kind { .. }) => return Ok(About::of(document.root())?.unjudged(Outcome::Unknown)),
            Err(error) => return Err(error.into()),
        };
        let event = Event { entry, ..review.event(now) };
        let about = About { name: shorten(event.name), ..About::of(document.root())? };
        if event.namespace.is_some_and(|namespace| self.settings.leaves_alone(namespace)) {
            return Ok(about.unjudged(Outcome::Excluded));
        }
        let mut namespace = match event.namespace {
            Some(name) => Some((name, self.namespaces.get(name).await)),
            None => None,
        };
        let mut exempt = self.settings.exempt(&event, namespace.as_ref());
        if exempt.is_some()
            && !self.namespaces.are_followed()
            && let Some((name, found)) = &mut namespace
        {
            // What was known may be long past. It would do for rules, and not for leaving them out.
            *found = self.namespaces.read(name).await;
            exempt = self.settings.exempt(&event, namespace.as_ref());
        }
        if let Some(outcome) = exempt {
            return Ok(about.unjudged(outcome));
        }
        let (evaluation, decision) = self.decide(&snapshot, &event, namespace.as_ref(), begin).await;
        let outcome = if decision.is_allowed() { Outcome::Allowed } else { Outcome::Denied };
        let answer = decision.response(&about.uid);
        if let Some(outcomes) = self.outcomes.as_ref().filter(|_| decision.is_allowed() && !about.dry_run) {
            outcomes.note(&event, &snapshot.rules, &evaluation, Timestamp::now());
        }
        let refused = (outcome == Outcome::Denied).then(|| Subject {
            kind: event.kind.kind.clone(),
            owner: event.judged().and_then(owner).unwrap_or_else(|| event.name.to_owned()),
        });
        drop(review);
        Ok(Judged { answer, outcome, decision, evaluated: Some((snapshot, evaluation)), refused, about })
    }

    /// Judges again and again, until all is read that rules ask for.
    async fn decide(
        &self,
        snapshot: &Snapshot,
        event: &Event<'_>,
        namespace: Option<&Found<'_>>,
        begin: Instant,
    ) -> (Evaluation, Decision) {
        let JudgeSettings { policy, limits, deadline, .. } = &*self.settings;
        let mut answers = Answers::new(&self.caches, namespace.map(|(name, found)| (*name, found)));
        let is_over = || begin.elapsed() > *deadline;
        // What comes later is of no use: it has to be judged by.
        let end_of_reading = tokio::time::Instant::from_std(begin + *deadline * 3 / 4);
        let mut readings = 0;
        loop {
            if readings == READINGS {
                answers.end_reading();
            }
            let evaluation = evaluate_until(&snapshot.rules, &answers, event, limits, &is_over);
            let decision = Decision::of(&evaluation, &snapshot.rules, &answers, event, limits, *policy, &is_over);
            let needs: BTreeSet<Query> = evaluation.needs.iter().chain(&decision.needs).cloned().collect();
            if needs.is_empty() {
                return (evaluation, decision);
            }
            readings += 1;
            answers.add(self.fresh.read(needs, end_of_reading).await);
        }
    }
}

/// Reads the body of a request without what nobody may see. That it is about a Secret is known only once it was read, and mostly told at
/// its beginning; what was taken for one wrongly, or was not, is read again.
fn read_visible(body: &[u8], kinds: &Kinds) -> Result<Document, portal_document::Error> {
    let head = &body[..body.len().min(HEAD)];
    let expected = match head.windows(SECRET.len()).any(|part| part == SECRET) {
        true => Review::hidden_of_secrets(),
        false => &[],
    };
    let document = read(body, expected)?;
    let hidden = Review::hidden(document.root(), kinds);
    if hidden == expected {
        return Ok(document);
    }
    drop(document);
    read(body, &hidden)
}

/// Reads the body of a request. It leaves nothing behind in the process.
pub(super) fn read_review(body: &[u8]) -> Result<Document, portal_document::Error> {
    read(body, &[])
}

fn read(body: &[u8], mask: &[Path]) -> Result<Document, portal_document::Error> {
    let limits = DocumentLimits::default();
    let limits = DocumentLimits { depth: limits.depth + LEVELS_AROUND, ..limits };
    let drop = Review::unseen();
    Document::parse(body, &Options { drop, mask, interning: Interning::LookUpOnly, limits, ..Options::default() })
}

impl JudgeSettings {
    pub(super) fn leaves_alone(&self, namespace: &str) -> bool {
        SPARED_NAMESPACES.contains(&namespace) || self.exclude_namespaces.contains(namespace)
    }

    /// Why no rule is asked about an event, if its namespace is such.
    fn exempt(&self, event: &Event<'_>, namespace: Option<&Found<'_>>) -> Option<Outcome> {
        let known = namespace.and_then(|(_, found)| found.as_ref().ok()).map(|namespace| namespace.root());
        if known.and_then(|namespace| annotation(namespace, BYPASS)) == Some("true") {
            return Some(Outcome::Bypassed);
        }
        // A namespace that is being written counts by the labels that it is to have, for the API server too.
        let written = event.object.filter(|_| event.is_of_namespace()).map(Visible::root);
        let is_other = |namespace| !self.namespace_selector.matches(metadata(namespace, "labels"));
        written.or(known).is_some_and(is_other).then_some(Outcome::Excluded)
    }
}

impl About {
    /// What a review is about. It must have a uid, or nobody could answer it.
    pub(super) fn of(review: Node<'_>) -> Result<About, ReviewError> {
        let request = review.get_str("request").ok_or(ReviewError::Field("request"))?;
        let field = |node: Option<Node<'_>>, name: &str| {
            shorten(node.and_then(|node| node.get_str(name)).and_then(Node::as_str).unwrap_or_default())
        };
        let text = |name: &str| field(Some(request), name);
        let is_uid = |uid: &String| (1..=MAX_UID).contains(&uid.len());
        let uid = Some(text("uid")).filter(is_uid).ok_or(ReviewError::Field("request.uid"))?;
        let part = |name: &str| field(request.get_str("resource"), name);
        let (mut resource, group, subresource) = (part("resource"), part("group"), text("subResource"));
        for (sign, part) in [("/", subresource), (".", group)] {
            if !part.is_empty() {
                resource = format!("{resource}{sign}{part}");
            }
        }
        Ok(About {
            uid,
            operation: text("operation"),
            resource,
            namespace: text("namespace"),
            name: text("name"),
            user: field(request.get_str("userInfo"), "username"),
            dry_run: request.get_str("dryRun").and_then(Node::as_bool).unwrap_or(false),
        })
    }

    /// The answer for what no rule is asked about.
    fn unjudged(self, outcome: Outcome) -> Judged {
        let decision = Decision::default();
        Judged { answer: decision.response(&self.uid), outcome, decision, evaluated: None, refused: None, about: self }
    }
}

fn shorten(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

fn metadata<'n>(object: Node<'n>, field: &str) -> Option<Node<'n>> {
    object.get_str("metadata")?.get_str(field)
}

fn annotation<'n>(object: Node<'n>, name: &str) -> Option<&'n str> {
    metadata(object, "annotations")?.get_str(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of the data in a review with these fields, in this order.
    #[track_caller]
    fn check(fields: &[&str], expected: &str) {
        let body = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{{}}}}}"#,
            fields.join(",")
        );
        let document = read_visible(body.as_bytes(), Kinds::builtin()).unwrap();
        let object = document.root().get_str("request").and_then(|request| request.get_str("object")).unwrap();
        assert_eq!(object.get_str("data").unwrap().to_json(), expected, "{fields:?}");
    }

    #[test]
    fn the_values_of_secrets_alone_are_hidden_wherever_the_kind_is_told() {
        let object = r#""object":{"data":{"a":"b"}}"#;
        let own = r#""object":{"apiVersion":"v1","kind":"Secret","data":{"a":"b"}}"#;
        let secret = r#""kind":{"kind":"Secret"},"resource":{"group":"","version":"v1","resource":"secrets"}"#;
        let other = r#""kind":{"kind":"Secret"},"resource":{"group":"x.io","version":"v1","resource":"secrets"}"#;
        let map = r#""kind":{"kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"}"#;
        let (shown, hidden) = (r#"{"a":"b"}"#, r#"{"a":"***"}"#);
        let long = format!(r#""name":"{}""#, "x".repeat(HEAD));
        check(&[secret, object], hidden);
        check(&[object, &long, secret], hidden);
        check(&[map, &long, own], hidden);
        check(&[map, object], shown);
        check(&[map, r#""name":"Secret""#, object], shown);
        check(&[other, object], shown);
    }
}

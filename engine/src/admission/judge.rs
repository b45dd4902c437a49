//! From the bytes of an AdmissionReview to the answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portal_cluster::rules::snapshot::{InForce, Snapshot};
use portal_core::{
    decide::{Decision, Policy},
    evaluate::{Evaluation, evaluate_until},
    event::{Entry, Event},
    lookup::{Answer, Filter, Lookup, Query},
    object::Object,
    review::{Review, ReviewError},
    selector::Selector,
    webhook::SPARED_NAMESPACES,
};
use portal_document::{Document, DocumentLimits, Interning, Node, Options};
use portal_expr::{Limits, Moment};
use serde_json::Value;

use super::namespaces::Namespaces;

/// How reviews are judged.
#[derive(Clone, Debug)]
pub struct Settings {
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
    /// How it judges.
    pub settings: Arc<Settings>,
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
    /// What it was about.
    pub about: About,
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

/// What a request is about, without anything that the object holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct About {
    /// The uid of the request.
    pub uid: String,
    /// What is done.
    pub operation: String,
    /// The resource, with group and subresource.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Who asks.
    pub user: String,
    /// Whether nothing will be stored.
    pub dry_run: bool,
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

/// Answers what rules ask of the namespace of a request. Nothing else is looked up.
struct OwnNamespace<'a> {
    name: &'a str,
    found: &'a Result<Arc<Object<'static>>, String>,
}

/// The annotation of a namespace by which rules are passed by.
const BYPASS: &str = "portal.io/bypass";

/// The levels of a review around the object in it.
const LEVELS_AROUND: usize = 8;

impl Judge {
    /// Judges a review that came by an entry of the webhook configuration, or by none in particular.
    pub async fn judge(&self, entry: Option<Entry>, body: &[u8], now: Moment) -> Result<Judged, Unanswerable> {
        let begin = Instant::now();
        let document = read_review(body)?;
        let snapshot = self.in_force.now();
        let review = match Review::of(document.root(), &snapshot.kinds) {
            Ok(review) => review,
            // The configuration knows a kind that this engine does not: no rule in force can be about it.
            Err(ReviewError::Kind { .. }) => return Ok(About::of(document.root())?.unjudged(Outcome::Unknown)),
            Err(error) => return Err(error.into()),
        };
        let about = About::of(document.root())?;
        let event = Event { entry, ..review.event(now) };
        if event.namespace.is_some_and(|namespace| self.settings.leaves_alone(namespace)) {
            return Ok(about.unjudged(Outcome::Excluded));
        }
        let namespace = match event.namespace {
            Some(name) => Some((name, self.namespaces.get(name).await)),
            None => None,
        };
        if let Some((_, Ok(namespace))) = &namespace {
            if annotation(namespace.root(), BYPASS) == Some("true") {
                return Ok(about.unjudged(Outcome::Bypassed));
            }
            if !self.settings.namespace_selector.matches(metadata(namespace.root(), "labels")) {
                return Ok(about.unjudged(Outcome::Excluded));
            }
        }
        let (evaluation, decision) = self.decide(&snapshot, &event, namespace.as_ref(), begin);
        let outcome = if decision.is_allowed() { Outcome::Allowed } else { Outcome::Denied };
        let answer = decision.response(&about.uid);
        drop(review);
        Ok(Judged { answer, outcome, decision, evaluated: Some((snapshot, evaluation)), about })
    }

    fn decide(
        &self,
        snapshot: &Snapshot,
        event: &Event<'_>,
        namespace: Option<&(&str, Result<Arc<Object<'static>>, String>)>,
        begin: Instant,
    ) -> (Evaluation, Decision) {
        let Settings { policy, limits, deadline, .. } = &*self.settings;
        let nothing = Err("the object is in no namespace".to_owned());
        let lookup =
            namespace.map_or(OwnNamespace { name: "", found: &nothing }, |(name, found)| OwnNamespace { name, found });
        let is_over = || begin.elapsed() > *deadline;
        let evaluation = evaluate_until(&snapshot.rules, &lookup, event, limits, &is_over);
        let decision = Decision::of(&evaluation, &snapshot.rules, &lookup, event, limits, *policy, &is_over);
        (evaluation, decision)
    }
}

/// Reads the body of a request. It leaves nothing behind in the process.
pub(super) fn read_review(body: &[u8]) -> Result<Document, portal_document::Error> {
    let limits = DocumentLimits::default();
    let limits = DocumentLimits { depth: limits.depth + LEVELS_AROUND, ..limits };
    let drop = Review::unseen();
    Document::parse(body, &Options { drop, interning: Interning::LookUpOnly, limits, ..Options::default() })
}

impl Settings {
    fn leaves_alone(&self, namespace: &str) -> bool {
        SPARED_NAMESPACES.contains(&namespace) || self.exclude_namespaces.contains(namespace)
    }
}

impl About {
    /// What a review is about. It must have a uid, or nobody could answer it.
    pub(super) fn of(review: Node<'_>) -> Result<About, ReviewError> {
        let request = review.get_str("request").ok_or(ReviewError::Field("request"))?;
        let field = |node: Option<Node<'_>>, name: &str| {
            node.and_then(|node| node.get_str(name)).and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        let text = |name: &str| field(Some(request), name);
        let uid = Some(text("uid")).filter(|uid| !uid.is_empty()).ok_or(ReviewError::Field("request.uid"))?;
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
        Judged { answer: decision.response(&self.uid), outcome, decision, evaluated: None, about: self }
    }
}

impl Lookup for OwnNamespace<'_> {
    fn answer(&self, query: &Query) -> Answer {
        let is_own = query.kind.group.is_empty()
            && query.kind.kind == "Namespace"
            && matches!(&query.filter, Filter::Name(name) if name == self.name);
        match self.found {
            Ok(namespace) if is_own => Answer::Found(vec![Arc::clone(namespace)]),
            Err(error) if is_own => Answer::Forbidden(error.clone()),
            _ => Answer::NotSynced,
        }
    }
}

fn metadata<'n>(object: Node<'n>, field: &str) -> Option<Node<'n>> {
    object.get_str("metadata")?.get_str(field)
}

fn annotation<'n>(object: Node<'n>, name: &str) -> Option<&'n str> {
    metadata(object, "annotations")?.get_str(name)?.as_str()
}

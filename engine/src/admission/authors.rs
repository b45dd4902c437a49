//! Portal's own rules when they are written. Whoever writes one is told at once what is wrong with it, and whether they may read what
//! it reads: a rule must not show anybody what they could not see without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kube::{
    Client,
    core::{Selector, SelectorExt as _},
};
use portal_cluster::{
    access::{Subject, is_allowed},
    rules::snapshot::InForce,
};
use portal_core::{
    authoring::Draft,
    decide::response::response,
    language::ExprEngine,
    layers::Layers,
    requirements::{Permission, Requirements, in_words},
    review::{ReviewError, request_of},
    rule::RuleSet,
};
use portal_document::Node;
use portal_expr::Moment;
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    judge::{Unanswerable, read_review},
    preview::Preview,
};
use crate::metrics::{EngineMetrics, RuleReview};
use crate::sinks::About;

/// Judges rules that are written. A clone judges the same.
#[derive(Clone)]
pub struct Authors {
    /// What is asked who may do what.
    client: Client,
    /// The kinds that are served, and how many rules each namespace has.
    in_force: InForce,
    settings: AuthorSettings,
    metrics: EngineMetrics,
    /// Whoever asks the API server takes a part of it.
    questions: Arc<Semaphore>,
    /// What tries rules on what is there.
    preview: Option<Preview>,
}

/// How rules are judged when they are written.
#[derive(Clone, Debug)]
pub struct AuthorSettings {
    /// What happens if an author may not read what the rule reads.
    pub check: AuthorCheck,
    /// How many rules a namespace may have.
    pub rules_per_namespace: usize,
    /// The labels of the rules that the instance takes.
    pub rule_selector: Selector,
    /// Who grants what rules need. Nobody is told what cannot be granted if that is not known.
    pub granter: Option<String>,
    /// The layers of the engine: what they need is looked at, and what other pods need is not.
    pub layers: Layers,
}

/// What happens if the author of a rule may not do what the rule does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuthorCheck {
    /// They are told.
    Warn,
    /// The rule is refused. So is one that cannot be checked.
    Enforce,
    /// Nobody asks.
    Off,
}

/// How long all questions about an author may take together. Less than the API server waits for the answer.
pub(super) const DEADLINE: Duration = Duration::from_secs(2);

/// A rule is tried on what is there only if the questions have left time for it: the API server waits five seconds.
const PREVIEW_UNTIL: Duration = Duration::from_secs(3);

/// How many questions are asked at a time, for all authors together: whoever reaches the webhook may have made them up.
pub(super) const AT_A_TIME: usize = 16;

impl Authors {
    /// Judges rules for an instance with these settings.
    pub fn new(client: Client, in_force: InForce, settings: AuthorSettings, metrics: EngineMetrics) -> Authors {
        Authors { client, in_force, settings, metrics, questions: Arc::new(Semaphore::new(AT_A_TIME)), preview: None }
    }

    /// The same, which tell authors what their rules would hit of what is there.
    pub fn previewing(self, preview: Preview) -> Authors {
        Authors { preview: Some(preview), ..self }
    }

    /// Answers the review of a rule.
    pub async fn answer(&self, body: &[u8], now: Moment) -> Result<Value, Unanswerable> {
        let begin = Instant::now();
        let document = read_review(body)?;
        let about = About::of(document.root())?;
        let snapshot = self.in_force.now();
        let is_taken = |labels: &BTreeMap<String, String>| self.settings.rule_selector.matches(labels);
        let draft = Draft::of(document.root(), &is_taken, &snapshot.kinds, &ExprEngine)?;
        let user = author(request_of(document.root())?)?;
        let mut warnings = draft.findings();
        let mut refusal = self.is_one_too_many(&draft);
        warnings.extend(self.not_granted(&draft).await);
        if draft.is_changed && refusal.is_none() && self.settings.check != AuthorCheck::Off {
            let missing = self.missing(&draft, &user).await;
            if missing.is_empty() && begin.elapsed() < PREVIEW_UNTIL {
                // Who may see all that the rule reads may be told what it says of it.
                warnings.extend(self.preview(&draft, now).await);
            }
            match self.settings.check {
                AuthorCheck::Enforce => refusal = enforced(&draft, &missing),
                _ => warnings.extend(missing),
            }
        }
        let result = match (&refusal, warnings.is_empty()) {
            (Some(_), _) => RuleReview::Denied,
            (None, false) => RuleReview::Warned,
            (None, true) => RuleReview::Allowed,
        };
        self.metrics.rule_reviews.at(&result).inc();
        Ok(response(&about.uid, refusal.as_deref(), warnings))
    }

    /// What the rule would hit of what is there now.
    async fn preview(&self, draft: &Draft, now: Moment) -> Vec<String> {
        match (&self.preview, draft.rule.as_ref().filter(|_| draft.is_usable)) {
            (Some(preview), Some(rule)) => preview.of(Arc::clone(rule), now).await,
            _ => Vec::new(),
        }
    }

    /// Why a rule is one too many for its namespace. Only one that is not there yet can be.
    fn is_one_too_many(&self, draft: &Draft) -> Option<String> {
        let (namespace, most) = (draft.id.namespace.as_ref()?, self.settings.rules_per_namespace);
        let count = self.in_force.rules_of(namespace);
        (draft.is_new && count >= most).then(|| {
            format!(
                "namespace {namespace} has {count} rules, and may have {most}: delete one, or let --rules-per-namespace of the \
                 engine be raised"
            )
        })
    }

    /// What the engine may not do for a rule, and nobody will grant it by themselves. What cannot be found out is not told: the status of the
    /// rule tells it later.
    async fn not_granted(&self, draft: &Draft) -> Option<String> {
        let granter = Subject { name: self.settings.granter.clone()?, ..Subject::default() };
        let rules = RuleSet::new(vec![draft.rule.clone()?]);
        let needs = Requirements::of(&rules, self.settings.layers).grants();
        let questions = needs.keys().map(|(permission, namespace)| {
            let (permission, namespace, granter) = (permission.clone(), namespace.clone(), &granter);
            async move {
                let _permit = self.questions.acquire().await;
                let may = async |subject| is_allowed(&self.client, subject, &permission, namespace.as_deref()).await;
                let is_lacking = may(None).await == Ok(false) && may(Some(granter)).await == Ok(false);
                is_lacking.then_some((permission, namespace))
            }
        });
        let answers = stream::iter(questions.collect::<Vec<_>>()).buffered(AT_A_TIME).collect::<Vec<_>>();
        let lacks: Vec<_> = tokio::time::timeout(DEADLINE, answers).await.ok()?.into_iter().flatten().collect();
        (!lacks.is_empty()).then(|| {
            let lacks = in_words(lacks.iter().map(|(permission, namespace)| (permission, namespace.as_deref())));
            // The way out comes first: what is too long is cut at the end.
            format!(
                "the rule takes effect only when somebody has granted what the engine may not do for it; its condition PermissionGranted \
                 says what to apply: {lacks}"
            )
        })
    }

    /// What the author may not do, or cannot be asked about, a line each.
    async fn missing(&self, draft: &Draft, user: &Subject) -> Vec<String> {
        let questions: Vec<_> = draft.needs.iter().map(|need| self.ask(user, need)).collect();
        // In their order, so that a rule is told the same twice.
        let answers = stream::iter(questions).buffered(AT_A_TIME).collect::<Vec<_>>();
        match tokio::time::timeout(DEADLINE, answers).await {
            Ok(answers) => answers.into_iter().flatten().collect(),
            Err(_) => vec![format!("what {} may do is not known: no answer within {DEADLINE:?}", user.name)],
        }
    }

    /// Why the author may not do something, if that is so.
    async fn ask(&self, user: &Subject, (permission, namespace): &(Permission, Option<String>)) -> Option<String> {
        // An error would say that it was closed, and nobody does that.
        let permit = self.questions.acquire().await;
        let allowed = is_allowed(&self.client, Some(user), permission, namespace.as_deref()).await;
        drop(permit);
        let name = in_words([(permission, namespace.as_deref())]);
        match allowed {
            Ok(true) => None,
            Ok(false) => Some(format!("{} may not {name}, which the rule does for them", user.name)),
            Err(error) => Some(format!("whether {} may {name} is not known: {error}", user.name)),
        }
    }
}

/// Why a rule is refused whose author is checked strictly. What cannot be used cannot be checked either, and may come to life later.
fn enforced(draft: &Draft, missing: &[String]) -> Option<String> {
    if !draft.is_usable {
        let findings = draft.findings().join("\n");
        return Some(format!("what the rule reads is not known, so that its author cannot be checked:\n{findings}"));
    }
    let first = missing.first()?;
    let more = if missing.len() > 1 { format!(" (and {} more)", missing.len() - 1) } else { String::new() };
    Some(format!("{first}{more}: a rule is written by somebody who may do what it does"))
}

/// The one who writes.
fn author(request: Node<'_>) -> Result<Subject, ReviewError> {
    let info = request.get_str("userInfo").ok_or(ReviewError::Field("request.userInfo"))?;
    let text = |name: &str| info.get_str(name).and_then(Node::as_str).map(str::to_owned);
    let list = |node: Node<'_>| -> Vec<String> {
        let items = node.as_array().into_iter().flat_map(|items| items.iter());
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let extra = info.get_str("extra").and_then(Node::as_object).into_iter().flat_map(|extra| extra.iter());
    Ok(Subject {
        name: text("username").ok_or(ReviewError::Field("request.userInfo.username"))?,
        uid: text("uid"),
        groups: info.get_str("groups").map(list).unwrap_or_default(),
        extra: extra.map(|(key, values)| (key.to_owned(), list(values))).collect(),
    })
}

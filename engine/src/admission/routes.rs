//! The paths of the webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use portal_cluster::health::Health;
use portal_core::{
    event::Entry,
    webhook::{OWN_RULES_PATH, PROBE_PATH},
};
use portal_expr::Moment;
use serde_json::Value;
use tracing::info;

use super::{
    authors::Authors,
    guard::FromApiServer,
    judge::{Judge, Judged, Outcome, Unanswerable},
    probe,
};
use crate::{
    metrics::{AdmissionDecision, EngineMetrics, NamespaceName},
    sinks::{
        Outputs, Record,
        alertmanager::{Denials, Refused},
    },
    tally::Tallies,
};

/// What answers reviews.
pub struct Webhook {
    /// What judges.
    pub judge: Judge,
    /// What judges rules that are written.
    pub authors: Authors,
    /// What each rule has answered.
    pub tallies: Tallies,
    /// Whether everything is there that judging needs.
    pub health: Health,
    /// What is counted.
    pub metrics: EngineMetrics,
    /// Who is told of decisions.
    pub outputs: Outputs,
    /// Who sends alerts of what is refused, if anybody does.
    pub denials: Option<Denials>,
    /// Whether everything was there once. Written by the first request that finds it so.
    pub was_ready: AtomicBool,
}

impl Webhook {
    /// The paths that the API server asks.
    pub fn router(self) -> Router {
        Router::new()
            .route("/validate", post(any))
            .route("/validate/{entry}", post(by_entry))
            .route(OWN_RULES_PATH, post(own_rules))
            .route(PROBE_PATH, post(probe))
            .with_state(Arc::new(self))
    }

    async fn answer(&self, entry: Option<Entry>, body: &[u8]) -> Response {
        if let Some(response) = self.not_yet() {
            return response;
        }
        let (begin, now) = (Instant::now(), since_1970());
        match self.judge.judge(entry, body, moment(now)).await {
            Ok(judged) => {
                let seconds = begin.elapsed().as_secs_f64();
                self.metrics.admission_seconds.observe(seconds);
                self.count(&judged);
                self.alert(&judged);
                let answer = json(&judged.answer);
                let (decision, has_rules) = (word(&judged).name(), !judged.decision.is_silent());
                self.outputs.send(decision, has_rules, || record(decision, judged, now.as_secs_f64(), seconds));
                answer
            }
            Err(error) => self.unanswerable(&error),
        }
    }

    /// Says that a body is no review.
    fn unanswerable(&self, error: &Unanswerable) -> Response {
        self.metrics.admission_requests.at(&AdmissionDecision::Unreadable).inc();
        (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response()
    }

    /// What is answered before the rules are there: everything would be let in.
    fn not_yet(&self) -> Option<Response> {
        let text = "this replica has not loaded its rules yet: /readyz of it says what it waits for\n";
        (!self.is_ready()).then(|| (StatusCode::SERVICE_UNAVAILABLE, text).into_response())
    }

    fn is_ready(&self) -> bool {
        self.was_ready.load(Ordering::Relaxed) || {
            // The first request may come when the replica is to end already.
            let is_ready = self.health.was_ready();
            self.was_ready.fetch_or(is_ready, Ordering::Relaxed);
            is_ready
        }
    }

    /// Tells of what was refused, and would have been stored.
    fn alert(&self, judged: &Judged) {
        let (Some(denials), Some((snapshot, evaluation)), Some(refused)) =
            (&self.denials, &judged.evaluated, &judged.refused)
        else {
            return;
        };
        if !judged.about.dry_run {
            let namespace = Some(judged.about.namespace.as_str()).filter(|namespace| !namespace.is_empty());
            let refused = Refused { namespace, kind: &refused.kind, owner: &refused.owner };
            denials.refused(refused, &snapshot.rules, evaluation, &judged.decision);
        }
    }

    fn count(&self, judged: &Judged) {
        self.metrics.admission_requests.at(&word(judged)).inc();
        if judged.outcome == Outcome::Bypassed {
            let about = &judged.about;
            self.metrics.admission_bypass.at(&NamespaceName(about.namespace.clone())).inc();
            info!(
                user = about.user,
                operation = about.operation,
                resource = about.resource,
                namespace = about.namespace,
                name = about.name,
                "Rules were passed by, because the namespace says so"
            );
        }
        if let Some((snapshot, evaluation)) = &judged.evaluated {
            self.tallies.count(snapshot, evaluation);
        }
    }
}

/// Judges by every rule: for a configuration that was written by hand.
async fn any(State(webhook): State<Arc<Webhook>>, FromApiServer(body): FromApiServer) -> Response {
    webhook.answer(None, &body).await
}

/// Judges by the rules of a class of entries.
async fn by_entry(
    State(webhook): State<Arc<Webhook>>,
    Path(name): Path<String>,
    FromApiServer(body): FromApiServer,
) -> Response {
    match Entry::ALL.into_iter().find(|entry| entry.name() == name) {
        Some(entry) => webhook.answer(Some(entry), &body).await,
        None => {
            let names = Entry::ALL.map(Entry::name).join(", ");
            let text = format!("there is no entry `{name}`: there are {names}; /validate judges by every rule\n");
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

/// Judges a rule that somebody writes.
async fn own_rules(State(webhook): State<Arc<Webhook>>, FromApiServer(body): FromApiServer) -> Response {
    if let Some(response) = webhook.not_yet() {
        return response;
    }
    match webhook.authors.answer(&body, moment(since_1970())).await {
        Ok(answer) => json(&answer),
        Err(error) => webhook.unanswerable(&error),
    }
}

/// Shows that the API server reaches this replica, and that it would judge.
async fn probe(State(webhook): State<Arc<Webhook>>, FromApiServer(body): FromApiServer) -> Response {
    if let Some(response) = webhook.not_yet() {
        return response;
    }
    match probe::answer(&body) {
        Ok(answer) => json(&answer),
        Err(error) => webhook.unanswerable(&error),
    }
}

fn json(answer: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

/// What happened, in a word.
fn word(judged: &Judged) -> AdmissionDecision {
    match judged.outcome {
        Outcome::Allowed if judged.decision.warnings.is_empty() => AdmissionDecision::Allowed,
        Outcome::Allowed => AdmissionDecision::Warned,
        Outcome::Denied => AdmissionDecision::Denied,
        Outcome::Excluded => AdmissionDecision::Excluded,
        Outcome::Bypassed => AdmissionDecision::Bypassed,
        Outcome::Unknown => AdmissionDecision::Unknown,
    }
}

fn record(decision: &'static str, judged: Judged, time: f64, seconds: f64) -> Record {
    let rules = judged.decision.annotations();
    Record { time, decision, about: judged.about, rules, milliseconds: seconds * 1000.0 }
}

fn moment(since_1970: std::time::Duration) -> Moment {
    Moment::new(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}

fn since_1970() -> std::time::Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

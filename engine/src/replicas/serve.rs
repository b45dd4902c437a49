//! What a replica says of itself, to whoever may ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{FromRequest as _, Request, State as Shared},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use portal_cluster::{health::Health, rules::snapshot::InForce};
use portal_core::rule::source::RuleId;

use super::{Evaluations, Question, STATE_PATH, State, lacks::Lacks, tokens::Tokens};
use crate::{outcomes::Outcomes, tally::Tallies};

/// What a replica knows of itself. A clone knows the same.
#[derive(Clone)]
pub struct Own {
    /// Which process it is.
    pub process: Arc<str>,
    /// The name of the replica.
    pub identity: Arc<str>,
    /// Whether it is ready.
    pub health: Health,
    /// Its rules.
    pub in_force: InForce,
    /// The rules that would be among them if what they look up were at hand.
    pub lacks: Lacks,
    /// What it has counted.
    pub tallies: Tallies,
    /// What it has let in.
    pub outcomes: Outcomes,
}

impl Own {
    /// Answers the holder, which may be this replica itself.
    pub fn answer(&self, question: &Question) -> State {
        let is_meant = question.process.as_deref() == Some(&*self.process);
        if is_meant {
            for (rule, total) in &question.accounted {
                self.tallies.account(&RuleId::parse(rule), *total);
            }
        }
        let snapshot = self.in_force.now();
        let fingerprint = snapshot.fingerprint();
        let rules = (question.known.as_deref() != Some(fingerprint)).then(|| {
            let rules = snapshot.rules.rules().iter();
            rules.map(|rule| (rule.id.to_string(), rule.version.clone())).collect::<BTreeMap<_, _>>()
        });
        let counted = self.tallies.unaccounted().into_iter();
        let counted = counted.map(|(rule, total, accounted)| (rule.to_string(), Evaluations { total, accounted }));
        State {
            process: self.process.to_string(),
            identity: self.identity.to_string(),
            ready: self.health.is_ready(),
            fingerprint: fingerprint.to_owned(),
            rules,
            evaluations: counted.collect(),
            // Of another process the number means nothing.
            outcomes: question.outcomes.map(|from| self.outcomes.from(if is_meant { from } else { 0 })),
            lacks: question.lacks.and_then(|known| self.lacks.told(is_meant.then_some(known))),
        }
    }
}

/// The path at which other replicas ask.
pub fn router(own: Own, tokens: Tokens) -> Router {
    Router::new().route(STATE_PATH, post(state)).with_state(Arc::new((own, tokens)))
}

async fn state(Shared(shared): Shared<Arc<(Own, Tokens)>>, request: Request) -> Response {
    let (own, tokens) = &*shared;
    let token = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    // Before the body is read: nobody else may make us read one.
    if let Err(refusal) = tokens.check(token.and_then(|value| value.strip_prefix("Bearer "))).await {
        return refusal.into_response();
    }
    let body = match Bytes::from_request(request, &()).await {
        Ok(body) => body,
        Err(rejection) => return rejection.into_response(),
    };
    match serde_json::from_slice(&body) {
        Ok(question) => {
            let state = serde_json::to_string(&own.answer(&question)).expect("texts and numbers can be written");
            ([(header::CONTENT_TYPE, "application/json")], state).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("the question cannot be read: {error}\n")).into_response(),
    }
}

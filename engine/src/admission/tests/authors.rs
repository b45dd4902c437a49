//! What the API server is asked about those who write rules, and how much of it at a time.

use std::time::Duration;

use futures_util::future::join_all;
use portal_cluster::{metrics::Registry, rules::quota::RULES_PER_NAMESPACE};
use portal_core::layers::Layers;
use serde_json::{Value, json};
use tokio::time::{Instant, pause, resume, sleep, timeout};

use crate::testing::{
    api::ApiServer,
    rules::{Rules, review},
};
use crate::{
    admission::authors::{AT_A_TIME, AuthorCheck, AuthorSettings, Authors, DEADLINE},
    metrics::EngineMetrics,
};

const ALLOWED: &str = r#"{"metadata":{},"spec":{},"status":{"allowed":true}}"#;

/// Those who are asked about, by an engine that has one rule itself. Nobody is said to grant what rules need.
async fn authors(check: AuthorCheck, api: &ApiServer) -> Authors {
    authors_by(settings(check), api).await
}

fn settings(check: AuthorCheck) -> AuthorSettings {
    AuthorSettings {
        check,
        rules_per_namespace: RULES_PER_NAMESPACE,
        rule_selector: Default::default(),
        granter: None,
        layers: Layers::default(),
    }
}

async fn authors_by(settings: AuthorSettings, api: &ApiServer) -> Authors {
    let rules = Rules::of("name: r\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostNetwork\n").await;
    Authors::new(api.client(), rules.in_force.clone(), settings, EngineMetrics::register(&Registry::new()))
}

/// Alice writes a rule that is about every kind of a group, each of which is a question.
async fn answer(authors: &Authors) -> Value {
    let matching = json!({"gvk": [{"group": "storage.k8s.io", "kind": "*"}]});
    let rule = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": "a"},
        "spec": {"match": matching, "rule": "metadata.labels.team == nil"},
    });
    answer_to(authors, rule).await
}

async fn answer_to(authors: &Authors, rule: Value) -> Value {
    let request = json!({
        "resource": {"group": "portal.io", "version": "v1alpha1", "resource": "portalclusterrules"},
        "object": rule, "userInfo": {"username": "alice"},
    });
    authors.answer(review(&request).as_bytes(), Default::default()).await.unwrap()["response"].take()
}

/// How many questions that is.
const QUESTIONS: usize = 7;

#[tokio::test]
async fn however_many_rules_are_written_a_few_questions_are_asked_at_a_time() {
    const RULES: usize = 8;
    let api = ApiServer::saying(201, ALLOWED).silent();
    let authors = authors(AuthorCheck::Enforce, &api).await;
    // The clock goes on when nothing else does.
    pause();
    let let_them = async {
        sleep(DEADLINE / 2).await;
        assert_eq!(api.asked().len(), AT_A_TIME);
        api.answers.add_permits(RULES * QUESTIONS);
    };
    let (answers, ()) = tokio::join!(join_all((0..RULES).map(|_| answer(&authors))), let_them);
    assert_eq!(answers, vec![json!({"uid": "1", "allowed": true}); RULES]);
    assert_eq!((api.asked().len(), api.most_at_once()), (RULES * QUESTIONS, AT_A_TIME));
}

#[tokio::test]
async fn an_author_whom_nobody_knows_in_time_is_refused_or_told() {
    let words = "what alice may do is not known: no answer within 2s";
    for (check, is_allowed) in [(AuthorCheck::Enforce, false), (AuthorCheck::Warn, true)] {
        let api = ApiServer::saying(201, ALLOWED).silent();
        let authors = authors(check, &api).await;
        pause();
        let began = Instant::now();
        // More of them than are asked about at a time.
        let answers = join_all((0..2 * AT_A_TIME).map(|_| answer(&authors)));
        for answer in timeout(Duration::from_secs(60), answers).await.unwrap() {
            assert_eq!(answer["allowed"], is_allowed);
            assert!(answer.to_string().contains(words), "{answer}");
        }
        assert!(began.elapsed() < 2 * DEADLINE);
        // Those who gave up leave their places to others.
        api.answers.add_permits(QUESTIONS);
        assert_eq!(answer(&authors).await, json!({"uid": "1", "allowed": true}));
        resume();
    }
}

#[tokio::test]
async fn what_nobody_grants_is_told_for_the_layers_that_the_engine_has() {
    let admission = Layers { admission: true, ..Layers::default() };
    let audit = Layers { audit: true, ..admission };
    let told = "the rule takes effect only when somebody has granted what the engine may not do for it; its condition \
                PermissionGranted says what to apply: get, list, watch pods, podtemplates";
    for (layers, warning) in [(admission, None), (audit, Some(told))] {
        let api = ApiServer::saying(201, &ALLOWED.replace("true", "false"));
        let granter = Some("nobody".to_owned());
        let authors = authors_by(AuthorSettings { granter, layers, ..settings(AuthorCheck::Off) }, &api).await;
        let rule = json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": "a"},
            "spec": {"match": {"gvk": [{"kind": "Pod"}]}, "rule": "spec.hostNetwork"},
        });
        let answer = answer_to(&authors, rule).await;
        match warning {
            Some(told) => assert!(answer["warnings"][0].as_str().unwrap().starts_with(told), "{answer}"),
            None => assert_eq!(answer["warnings"], Value::Null),
        }
    }
}

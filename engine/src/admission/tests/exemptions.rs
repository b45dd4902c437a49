//! Namespaces of which no rule is asked, while the watch that tells of them is well and while it is cut.

use portal_cluster::health::{Health, Part};
use portal_core::{
    decide::Policy,
    selector::{Requirement, Selector, Test},
};
use portal_expr::Moment;
use serde_json::{Value, json};

use crate::admission::{
    judge::{Judge, JudgeSettings, Judged, Outcome},
    namespaces::tests::knowing,
};
use crate::testing::{
    api::ApiServer,
    rules::{Rules, judge, review, settings},
};

/// Whatever they are for violates them.
const RULES: &str = "
name: pods
match: {gvk: [{kind: Pod}]}
rule: metadata.name != ''
---
name: production
match: {gvk: [{kind: ConfigMap}], namespaceSelector: {matchLabels: {env: prod}}}
rule: metadata.name != ''
---
name: namespaces
match: {gvk: [{kind: Namespace}], operations: [CREATE, UPDATE, DELETE]}
rule: metadata.name != ''
---
name: parts-of-namespaces
match: {gvk: [{kind: Namespace}], operations: [UPDATE], subresources: [finalize]}
rule: metadata.name != ''
";

const PLAIN: &str = r#"{"metadata":{"name":"shop"}}"#;
const BYPASS: &str = r#"{"metadata":{"name":"shop","annotations":{"portal.io/bypass":"true"}}}"#;
const PRODUCTION: &str = r#"{"metadata":{"name":"shop","labels":{"env":"prod"}}}"#;

/// What the API server says if it says nothing of use.
const FAILURES: [(u16, &str); 5] = [(500, ""), (403, "{}"), (404, "{}"), (200, "{}"), (200, "{")];

/// A judge, and what it learns of namespace `shop`.
struct Fixture {
    api: ApiServer,
    judge: Judge,
    _rules: Rules,
}

impl Fixture {
    /// The watch has told one thing, if it has told anything. The API server has another one to say.
    async fn new(
        told: Option<&str>,
        is_followed: bool,
        (status, body): (u16, &str),
        settings: JudgeSettings,
    ) -> Fixture {
        let (api, health) = (ApiServer::saying(status, body), Health::default());
        health.well(&Part::Namespaces);
        if !is_followed {
            health.unwell(&Part::Namespaces, "could not watch namespaces: the connection was cut");
        }
        let rules = Rules::of(RULES).await;
        let namespaces = knowing(told.as_slice(), &health, &api);
        let judge = judge(&rules, namespaces, &api, settings);
        Fixture { api, judge, _rules: rules }
    }

    async fn judge(&self, request: &Value) -> Judged {
        self.judge.judge(None, review(request).as_bytes(), Moment::default()).await.unwrap()
    }
}

/// An instance that serves production alone, and excuses nothing because it was so before.
fn of_production() -> JudgeSettings {
    let test = Test::In(["prod".to_owned()].into());
    let namespace_selector = Selector::new([Requirement { key: "env".to_owned(), test }]);
    let settings = settings();
    JudgeSettings { policy: Policy { admit_existing: false, ..settings.policy }, namespace_selector, ..settings }
}

/// The request that makes an object in namespace `shop`.
fn creation(resource: &str) -> Value {
    let object = json!({"metadata": {"name": "web", "namespace": "shop"}});
    json!({"resource": {"group": "", "version": "v1", "resource": resource}, "object": object})
}

/// What comes of a pod, and how often the API server was asked for its namespace.
async fn judged(told: &str, is_followed: bool, says: (u16, &str), settings: JudgeSettings) -> (Outcome, usize) {
    let fixture = Fixture::new(Some(told), is_followed, says, settings).await;
    (fixture.judge(&creation("pods")).await.outcome, fixture.api.asked().len())
}

#[tokio::test]
async fn what_a_watch_tells_that_is_well_is_believed_without_a_question() {
    assert_eq!(judged(BYPASS, true, (200, PLAIN), settings()).await, (Outcome::Bypassed, 0));
    assert_eq!(judged(PLAIN, true, (200, PRODUCTION), of_production()).await, (Outcome::Excluded, 0));
    assert_eq!(judged(PLAIN, true, (200, BYPASS), settings()).await, (Outcome::Denied, 0));
}

#[tokio::test]
async fn while_the_watch_is_cut_nobody_is_exempt_by_what_was() {
    assert_eq!(judged(BYPASS, false, (200, PLAIN), settings()).await, (Outcome::Denied, 1));
    assert_eq!(judged(PLAIN, false, (200, PRODUCTION), of_production()).await, (Outcome::Denied, 1));
    // Whoever still is exempt is so.
    assert_eq!(judged(BYPASS, false, (200, BYPASS), settings()).await, (Outcome::Bypassed, 1));
    assert_eq!(judged(PLAIN, false, (200, PLAIN), of_production()).await, (Outcome::Excluded, 1));
    // One exemption may have taken the place of another.
    assert_eq!(judged(BYPASS, false, (200, PLAIN), of_production()).await, (Outcome::Excluded, 1));
    // Whoever was not is judged without a question, which a crowd might ask.
    assert_eq!(judged(PLAIN, false, (200, BYPASS), settings()).await, (Outcome::Denied, 0));
}

#[tokio::test]
async fn while_the_watch_is_cut_a_namespace_that_cannot_be_read_is_not_exempt() {
    for says in FAILURES {
        assert_eq!(judged(BYPASS, false, says, settings()).await, (Outcome::Denied, 1), "{says:?}");
        assert_eq!(judged(PLAIN, false, says, of_production()).await, (Outcome::Denied, 1), "{says:?}");
    }
}

#[tokio::test]
async fn a_namespace_that_cannot_be_read_is_none_without_labels() {
    let told = [(None, true), (None, false), (Some(BYPASS), false)];
    for ((told, is_followed), says) in told.into_iter().flat_map(|told| FAILURES.map(|says| (told, says))) {
        // By its labels the rule would not be asked.
        let fixture = Fixture::new(told, is_followed, says, settings()).await;
        let judged = fixture.judge(&creation("configmaps")).await;
        let message = judged.answer["response"]["status"]["message"].as_str().unwrap_or_default();
        let failed = "production could not be evaluated: namespace shop could not be read: ";
        assert!(message.starts_with(failed), "{told:?} {is_followed} {says:?}: {}", judged.answer);
    }
}

#[tokio::test]
async fn namespaces_that_are_left_alone_by_their_names_need_no_watch() {
    let settings = JudgeSettings { exclude_namespaces: ["shop".to_owned()].into(), ..settings() };
    assert_eq!(judged(PLAIN, false, (500, ""), settings).await, (Outcome::Excluded, 0));
}

/// What comes of a change of namespace `shop` in an instance that serves production, and how that was before.
async fn judged_itself(before: &str, request: Value) -> Outcome {
    let fixture = Fixture::new(Some(before), true, (500, ""), of_production()).await;
    let mut request = request;
    request["resource"] = json!({"group": "", "version": "v1", "resource": "namespaces"});
    request["name"] = json!("shop");
    fixture.judge(&request).await.outcome
}

#[tokio::test]
async fn a_namespace_that_is_written_counts_by_the_labels_that_it_is_to_have() {
    let object = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    let update = |old: &str, new: &str| json!({"operation": "UPDATE", "object": object(new), "oldObject": object(old)});
    assert_eq!(judged_itself(PLAIN, update(PLAIN, PRODUCTION)).await, Outcome::Denied);
    assert_eq!(judged_itself(PRODUCTION, update(PRODUCTION, PLAIN)).await, Outcome::Excluded);
    assert_eq!(judged_itself(PLAIN, json!({"object": object(PRODUCTION)})).await, Outcome::Denied);
    // An exemption that comes with the request does not excuse the request.
    let excused = json!({"name": "shop", "labels": {"env": "prod"}, "annotations": {"portal.io/bypass": "true"}});
    assert_eq!(judged_itself(PRODUCTION, json!({"object": {"metadata": excused}})).await, Outcome::Denied);
    // What is written to a part of it has no say.
    let part = |old: &str, new: &str| {
        let mut request = update(old, new);
        request["subResource"] = json!("finalize");
        request
    };
    assert_eq!(judged_itself(PLAIN, part(PLAIN, PRODUCTION)).await, Outcome::Excluded);
    assert_eq!(judged_itself(PRODUCTION, part(PRODUCTION, PLAIN)).await, Outcome::Denied);
    // One that goes has only what it had.
    let delete = |old: &str| json!({"operation": "DELETE", "oldObject": object(old)});
    assert_eq!(judged_itself(PLAIN, delete(PLAIN)).await, Outcome::Excluded);
    assert_eq!(judged_itself(PRODUCTION, delete(PRODUCTION)).await, Outcome::Denied);
}

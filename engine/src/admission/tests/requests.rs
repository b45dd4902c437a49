//! What is left of a request when it is answered.

use portal_cluster::health::Health;
use portal_core::review::ReviewError;
use portal_document::Interner;
use portal_expr::Moment;
use serde_json::{Map, Value, json};

use crate::testing::{
    api::ApiServer,
    rules::{Rules, judge, review, settings},
};
use crate::{
    admission::{
        judge::{Judged, Outcome, read_review},
        namespaces::tests::knowing,
    },
    sinks::About,
};

const RULES: &str = "
name: pods
match: {gvk: [{kind: Pod}]}
rule: metadata.labels.owner == nil
---
name: secrets
match: {gvk: [{kind: Secret}]}
rule: metadata.labels.owner == nil
---
name: namespaces
match: {gvk: [{kind: Namespace}]}
rule: metadata.labels.owner == nil
---
name: kept
match: {gvk: [{kind: ConfigMap}], operations: [DELETE], names: [keep-*]}
rule: 'true'
message: it stays
";

async fn judged(request: &Value) -> Judged {
    let rules = Rules::of(RULES).await;
    let api = ApiServer::saying(200, r#"{"metadata":{"name":"shop"}}"#);
    let namespaces = knowing(&[], &Health::default(), &api);
    let judge = judge(&rules, namespaces, &api, settings());
    judge.judge(None, review(request).as_bytes(), Moment::default()).await.unwrap()
}

fn about(request: &Value) -> Result<About, ReviewError> {
    About::of(read_review(review(request).as_bytes()).unwrap().root())
}

#[test]
fn texts_of_a_request_are_kept_up_to_a_bound_and_whole_characters_of_them() {
    let long = format!("x{}", "ä".repeat(100_000));
    let kept = format!("x{}", "ä".repeat(511));
    let about = about(&json!({
        "operation": long, "namespace": long, "name": long, "subResource": long, "userInfo": {"username": long},
        "resource": {"group": long, "version": long, "resource": long},
    }));
    let resource = format!("{kept}/{kept}.{kept}");
    let text = || kept.clone();
    let expected = About {
        uid: "1".to_owned(),
        operation: text(),
        resource,
        namespace: text(),
        name: text(),
        user: text(),
        dry_run: false,
    };
    assert_eq!(about, Ok(expected));
}

#[test]
fn a_uid_that_nobody_could_echo_is_refused() {
    let uid = |length: usize| about(&json!({"uid": "u".repeat(length)})).map(|about| about.uid.len());
    assert_eq!(uid(128), Ok(128));
    for length in [0, 129, 1024, 100_000] {
        assert_eq!(uid(length), Err(ReviewError::Field("request.uid")));
    }
}

#[tokio::test]
async fn what_is_deleted_with_others_is_judged_and_told_by_its_own_name() {
    let delete = |name: &str| {
        json!({
            "operation": "DELETE", "name": "", "oldObject": {"metadata": {"name": name, "namespace": "shop"}},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        })
    };
    let Judged { outcome, about, .. } = judged(&delete("keep-me")).await;
    assert_eq!((outcome, &*about.name), (Outcome::Denied, "keep-me"));
    let Judged { outcome, about, .. } = judged(&delete("other")).await;
    assert_eq!((outcome, &*about.name), (Outcome::Allowed, "other"));
    let long = format!("keep-{}", "ä".repeat(100_000));
    assert_eq!(judged(&delete(&long)).await.about.name.len(), 1023);
}

#[tokio::test]
async fn whatever_keys_a_request_has_none_stays_in_the_process() {
    let interner = Interner::global();
    for (group, resource) in [("", "pods"), ("apps", "deployments"), ("", "secrets"), ("", "namespaces")] {
        // As long as keys may be that are shared.
        let key = |place: &str, number: usize| format!("{resource}-{place}-{number}-{}", "k".repeat(250));
        let keys = |place: &str| -> Map<String, Value> {
            (0..200).map(|number| (key(place, number), json!(key(place, number)))).collect()
        };
        let metadata = |place: &str| json!({"name": "shop", "labels": keys(place), "managedFields": [{}]});
        let mut object = json!({"metadata": metadata("metadata"), "data": keys("data")});
        object["spec"] = json!({"template": {"metadata": metadata("template"), "spec": keys("spec")}});
        let request = json!({
            "resource": {"group": group, "version": "v1", "resource": resource},
            "object": object, "oldObject": object, "operation": "UPDATE", "options": keys("options"),
        });
        let decision = judged(&request).await.decision;
        assert_eq!(decision.warnings.len(), 1, "{resource}: the rule sees it, as before this change: {decision:?}");
        for place in ["metadata", "data", "template", "spec", "options"] {
            let shared = (0..200).find(|number| interner.look_up(&key(place, *number)).is_some());
            assert_eq!(shared, None, "{resource}: {place}");
        }
    }
}

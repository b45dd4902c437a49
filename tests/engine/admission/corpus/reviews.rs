//! JSON that is no review, or a review that contradicts itself.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Corpus, bad_pod, creation};

/// The review of a pod that violates a rule, with a change.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut review = bad_pod();
    change(&mut review);
    review.to_string()
}

/// The same, with a field of the request that is something else or, for `None`, missing.
fn with(field: &str, value: Option<Value>) -> String {
    changed(|review| {
        let request = review["request"].as_object_mut().unwrap();
        match value {
            Some(value) => request.insert(field.to_owned(), value),
            None => request.remove(field),
        };
    })
}

#[test]
fn what_is_no_review_is_refused_with_what_is_wrong() {
    let corpus = Corpus::shared();
    corpus.review(
        "{}",
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is of no version of no kind"],
    );
    corpus.review(
        "[]",
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is of no version of no kind"],
    );
    corpus.review(
        "null",
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is of no version of no kind"],
    );
    corpus.review(
        "\"AdmissionReview\"",
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is of no version of no kind"],
    );
    corpus.review(
        bad_pod()["request"]["object"].to_string(),
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is v1 Pod"],
    );
    corpus.review(
        changed(|review| review["apiVersion"] = json!("admission.k8s.io/v1beta1")),
        expect![
            "400: this is no AdmissionReview of admission.k8s.io/v1: it is admission.k8s.io/v1beta1 AdmissionReview"
        ],
    );
    corpus.review(
        changed(|review| review["apiVersion"] = json!(1)),
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is of no version AdmissionReview"],
    );
    corpus.review(
        changed(|review| review["kind"] = json!("ConversionReview")),
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is admission.k8s.io/v1 ConversionReview"],
    );
    corpus.review(
        changed(|review| *review = json!([review.clone()])),
        expect!["400: this is no AdmissionReview of admission.k8s.io/v1: it is of no version of no kind"],
    );
    corpus.review(
        changed(|review| review["request"] = json!(null)),
        expect!["400: `request.operation` of the AdmissionReview is missing or not what it should be"],
    );
    corpus.review(
        changed(|review| review["request"] = json!([])),
        expect!["400: `request.operation` of the AdmissionReview is missing or not what it should be"],
    );
    corpus.review(
        changed(|review| review["request"] = json!("x")),
        expect!["400: `request.operation` of the AdmissionReview is missing or not what it should be"],
    );
    // Nobody could tell which request is answered.
    let wrong = |field: &str| format!("400: `{field}` of the AdmissionReview is missing or not what it should be");
    let uids = [None, Some(json!("")), Some(json!(null)), Some(json!(7)), Some(json!(["1"]))];
    corpus.all(uids.map(|uid| with("uid", uid)), &wrong("request.uid"));
    let operations = [None, Some(json!("create")), Some(json!("PATCH")), Some(json!(null))];
    corpus.all(operations.map(|operation| with("operation", operation)), &wrong("request.operation"));
    corpus.all([with("resource", None)], &wrong("request.resource"));
    let resources = [json!("pods"), json!(null), json!({"group": "", "version": "v1"})];
    corpus.all(resources.map(|resource| with("resource", Some(resource))), &wrong("request.resource.resource"));
    corpus.review(
        with("resource", Some(json!({"group": "", "resource": "pods"}))),
        expect!["400: `request.resource.version` of the AdmissionReview is missing or not what it should be"],
    );
}

#[test]
fn an_object_that_is_none_is_never_taken_for_one_that_is_fine() {
    let corpus = Corpus::shared();
    corpus.review(
        with("object", None),
        expect![[r#"
            closed: denied: 4 rules refuse this:
            - host-network could not be evaluated: `request.object` is missing, and the rule needs the object
            - host-pid could not be evaluated: `request.object` is missing, and the rule needs the object
            - privileged could not be evaluated: `request.object` is missing, and the rule needs the object
            - small could not be evaluated: `request.object` is missing, and the rule needs the… and 7 bytes
            open: allowed
            warning: host-network could not be evaluated: `request.object` is missing, and the rule needs the object
            warning: host-pid could not be evaluated: `request.object` is missing, and the rule needs the object
            warning: privileged could not be evaluated: `request.object` is missing, and the rule needs the object
            warning: small could not be evaluated: `request.object` is missing, and the rule needs the object"#]],
    );
    corpus.review(
        with("object", Some(json!(null))),
        expect![[r#"
            closed: denied: 4 rules refuse this:
            - host-network could not be evaluated: `request.object` is missing, and the rule needs the object
            - host-pid could not be evaluated: `request.object` is missing, and the rule needs the object
            - privileged could not be evaluated: `request.object` is missing, and the rule needs the object
            - small could not be evaluated: `request.object` is missing, and the rule needs the… and 7 bytes
            open: allowed
            warning: host-network could not be evaluated: `request.object` is missing, and the rule needs the object
            warning: host-pid could not be evaluated: `request.object` is missing, and the rule needs the object
            warning: privileged could not be evaluated: `request.object` is missing, and the rule needs the object
            warning: small could not be evaluated: `request.object` is missing, and the rule needs the object"#]],
    );
    for field in ["object", "oldObject"] {
        let objects = [json!("x"), json!([]), json!(7), json!(true)].map(|object| with(field, Some(object)));
        let wrong = format!("400: `request.{field}` of the AdmissionReview is missing or not what it should be");
        corpus.all(objects, &wrong);
    }
    // Nothing in it is what a pod has.
    corpus.review(with("object", Some(json!({}))), expect!["allowed"]);
    corpus.review(
        with("object", Some(json!({"spec": "x", "metadata": []}))),
        expect![[r#"
            closed: denied: 2 rules refuse this:
            - host-network could not be evaluated: 1:6: cannot fetch hostNetwork from string
             | spec.hostNetwork
             |      ^
            - host-pid could not be evaluated: 1:6: cannot fetch hostPID from string
             | spec.hostPID
             |      ^
            open: allowed
            warning: host-network could not be evaluated: 1:6: cannot fetch hostNetwork from string
            warning: host-pid could not be evaluated: 1:6: cannot fetch hostPID from string"#]],
    );
    corpus.review(with("object", Some(json!({"spec": {"hostNetwork": "true"}}))), expect![[r#"
        closed: denied: host-network could not be evaluated: the rule is the text "true", which is neither true nor false
        open: allowed
        warning: host-network could not be evaluated: the rule is the text "true", which is neither true nor false"#]]);
    corpus
        .review(with("object", Some(json!({"spec": {"hostNetwork": 1, "containers": {"name": "a"}}}))), expect![[r#"
            closed: denied: host-network could not be evaluated: the rule is the number 1, which is neither true nor false
            open: allowed
            warning: host-network could not be evaluated: the rule is the number 1, which is neither true nor false"#]]);
}

#[test]
fn what_is_judged_is_what_the_resource_says_whatever_else_the_request_claims() {
    let corpus = Corpus::shared();
    let config_map = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    corpus.review(with("kind", Some(config_map.clone())), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(with("requestKind", Some(config_map)), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(with("kind", None), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(
        changed(|review| review["request"]["object"]["kind"] = json!("ConfigMap")),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    corpus.review(
        changed(|review| review["request"]["object"]["apiVersion"] = json!("v9")),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    corpus.review(
        changed(|review| review["request"]["resource"]["version"] = json!("v9")),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    // A namespace that is left alone, of a kind that is in none: the rule is asked all the same.
    let role = json!({"kind": "ClusterRole", "metadata": {"name": "all"}, "rules": [{"verbs": ["*"]}]});
    let mut review = creation("clusterroles", "kube-system", "all", role);
    review["request"]["resource"]["group"] = json!("rbac.authorization.k8s.io");
    corpus.review(review.to_string(), expect![[r#"denied: roles: rules[0].verbs[0] is "*""#]]);
    // The object says that it is elsewhere.
    corpus.review(
        changed(|review| review["request"]["object"]["metadata"]["namespace"] = json!("kube-system")),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    // A Secret hides its values by whatever name it comes.
    let secret = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "hunter2"}});
    corpus.review(
        creation("secrets", "default", "s", secret).to_string(),
        expect![[r#"denied: secrets: {"a":"***"} (data is {"a":"***"})"#]],
    );
    // No rule knows these.
    corpus.review(
        with("resource", Some(json!({"group": "acme.io", "version": "v1", "resource": "pods"}))),
        expect!["allowed"],
    );
    corpus
        .review(with("resource", Some(json!({"group": "", "version": "v1", "resource": "Pods"}))), expect!["allowed"]);
}

#[test]
fn names_of_any_length_and_content_do_no_harm() {
    let corpus = Corpus::shared();
    let named = |field: &str, name: &str| {
        changed(|review| {
            review["request"][field] = json!(name);
            review["request"]["object"]["metadata"][field] = json!(name);
            review["request"]["object"]["spec"] = json!({"hostPID": true});
        })
    };
    corpus.review(named("name", &"x".repeat(1 << 20)), expect!["denied: host-pid: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… of default (spec.hostPID is true)"]);
    corpus.review(
        named("name", "\u{1b}[2J\u{7}\r\nWarning: all is well\0"),
        expect![[r#"
            denied: host-pid: �[2J��
            Warning: all is well� of default (spec.hostPID is true)"#]],
    );
    corpus.review(named("name", ""), expect!["denied: host-pid:  of default (spec.hostPID is true)"]);
    corpus.review(named("namespace", &"x".repeat(1 << 20)), expect!["denied: host-pid: web of xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (spec.hostPID is true)"]);
    corpus.review(
        named("namespace", "../../secrets"),
        expect!["denied: host-pid: web of ../../secrets (spec.hostPID is true)"],
    );
    corpus.review(named("namespace", "\0"), expect!["denied: host-pid: web of � (spec.hostPID is true)"]);
    corpus.review(
        with("uid", Some(json!("u".repeat(100_000)))),
        expect!["400: `request.uid` of the AdmissionReview is missing or not what it should be"],
    );
}

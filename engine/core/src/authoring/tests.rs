use expect_test::{Expect, expect};
use portal_document::{Document, Options};
use serde_json::{Value, json};

use super::*;
use crate::language::ExprEngine;

fn review(operation: &str, plural: &str, object: &Value, before: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": operation,
            "resource": {"group": "portal.io", "version": "v1alpha1", "resource": plural},
            "object": object, "oldObject": before,
        },
    })
}

fn cluster_rule(spec: &Value) -> Value {
    json!({"apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule", "metadata": {"name": "a", "uid": "u"}, "spec": spec})
}

fn draft(review: &Value) -> Result<Draft, ReviewError> {
    let document = Document::parse(review.to_string().as_bytes(), &Options::default()).unwrap();
    Draft::of(document.root(), &|_| true, Kinds::builtin(), &ExprEngine)
}

/// Compares what is said about a rule that somebody creates, and what they must be allowed to do.
#[track_caller]
fn check(spec: &Value, expected: Expect) {
    let draft = draft(&review("CREATE", "portalclusterrules", &cluster_rule(spec), &Value::Null)).unwrap();
    let mut lines = draft.findings();
    for (Permission { group, resource, verb }, namespace) in &draft.needs {
        let place = namespace.as_ref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        lines.push(format!("needs {verb} {group}/{resource}{place}"));
    }
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_mistake_is_answered_with_its_place() {
    check(
        &json!({"match": {"gvk": [{"kind": "Pod"}]}, "rule": "contaner.tty"}),
        expect![[r#"
            spec.rule: 1:1: unknown name `contaner`, did you mean `container`?
             | contaner.tty
             | ^
            the rule judges nothing until this is mended"#]],
    );
    check(
        &json!({"match": {"gvk": [{"group": "acme.io", "kind": "Widget"}]}, "rule": "object.spec.size > 3"}),
        expect![[r#"
            spec.match.gvk[0].kind: no kind `Widget` is served in group `acme.io`
            the rule judges nothing until that is served"#]],
    );
    check(
        &json!({"match": {"gvk": [{"kind": "Pod"}]}, "rule": "container.tty", "colour": "red"}),
        expect![[r#"
            spec.colour: unknown field `colour`
            the rule judges nothing until this is mended"#]],
    );
}

#[test]
fn an_author_needs_what_the_rule_reads() {
    check(
        &json!({"match": {"gvk": [{"kind": "Service"}]}, "rule": "object.spec.type == \"NodePort\""}),
        expect![[r#"needs list /services"#]],
    );
    // Kinds that come to a group later are judged too.
    check(
        &json!({"match": {"gvk": [{"group": "storage.k8s.io", "kind": "*"}]}, "rule": "metadata.labels.team == nil"}),
        expect![[r#"
            needs list storage.k8s.io/*
            needs list storage.k8s.io/csidrivers
            needs list storage.k8s.io/csinodes
            needs list storage.k8s.io/csistoragecapacities
            needs list storage.k8s.io/storageclasses
            needs list storage.k8s.io/volumeattachments
            needs list storage.k8s.io/volumeattributesclasses"#]],
    );
    // A rule that is switched off reads nothing, and switching it on is a change.
    check(
        &json!({"enabled": false, "match": {"gvk": [{"kind": "Service"}]}, "rule": "object.spec.type == \"NodePort\""}),
        expect![[r#""#]],
    );
}

#[test]
fn a_change_that_leaves_the_spec_alone_is_none() {
    let spec = json!({"match": {"gvk": [{"kind": "Pod"}]}, "rule": "contaner.tty"});
    let before = cluster_rule(&spec);
    let mut after = before.clone();
    after["metadata"]["labels"] = json!({"team": "a"});
    let unchanged = draft(&review("UPDATE", "portalclusterrules", &after, &before)).unwrap();
    assert!(!unchanged.is_changed && !unchanged.is_new && unchanged.findings().is_empty());
    after["spec"]["rule"] = json!("container.tty");
    let changed = draft(&review("UPDATE", "portalclusterrules", &after, &before)).unwrap();
    assert!(changed.is_changed && changed.is_usable && !changed.is_new);
}

#[test]
fn a_rule_that_becomes_one_of_the_instance_is_looked_at() {
    let before = cluster_rule(&json!({"match": {"gvk": [{"kind": "Secret"}]}, "rule": "object.type == 'Opaque'"}));
    let mut after = before.clone();
    after["metadata"]["labels"] = json!({"team": "a"});
    let of_team = |after: &Value, before: &Value| {
        let review = review("UPDATE", "portalclusterrules", after, before).to_string();
        let document = Document::parse(review.as_bytes(), &Options::default()).unwrap();
        let is_taken = |labels: &BTreeMap<String, String>| labels.get("team").is_some_and(|team| team == "a");
        Draft::of(document.root(), &is_taken, Kinds::builtin(), &ExprEngine).unwrap()
    };
    let drafted = of_team(&after, &before);
    assert!(drafted.is_changed && !drafted.needs.is_empty());
    let mut later = after.clone();
    later["metadata"]["labels"]["more"] = json!("b");
    assert!(!of_team(&later, &after).is_changed);
}

#[test]
fn what_cannot_be_checked_now_is_not_usable_and_what_is_off_needs_nothing() {
    let drafted =
        |spec: &Value| draft(&review("CREATE", "portalclusterrules", &cluster_rule(spec), &Value::Null)).unwrap();
    let kinds = json!({"gvk": [{"kind": "ConfigMap"}, {"group": "acme.io", "kind": "Vault"}]});
    assert!(!drafted(&json!({"match": kinds, "rule": "object.metadata.name == 'a'"})).is_usable);
    let off = drafted(&json!({"match": {"gvk": [{"kind": "Pod"}]}, "rule": "contaner.tty", "enabled": false}));
    assert!(off.is_usable && off.needs.is_empty() && !off.findings().is_empty());
}

#[test]
fn a_rule_of_a_namespace_is_named_by_it() {
    let mut rule =
        cluster_rule(&json!({"match": {"gvk": [{"kind": "Service"}]}, "rule": "object.spec.type == \"NodePort\""}));
    rule["kind"] = json!("PortalRule");
    rule["metadata"]["namespace"] = json!("shop");
    let draft = draft(&review("CREATE", "portalrules", &rule, &Value::Null)).unwrap();
    assert_eq!(draft.id.to_string(), "shop/a");
    assert_eq!(draft.needs.first().unwrap().1.as_deref(), Some("shop"));
}

#[test]
fn what_is_no_review_of_a_rule_is_refused() {
    let rule = cluster_rule(&json!({}));
    let other = |operation, plural| draft(&review(operation, plural, &rule, &Value::Null)).unwrap_err();
    assert_eq!(other("DELETE", "portalclusterrules"), ReviewError::Field("request.operation"));
    assert!(matches!(other("CREATE", "pods"), ReviewError::Kind { .. }));
    let none = review("CREATE", "portalrules", &json!("text"), &Value::Null);
    assert!(!draft(&none).unwrap().is_usable);
}

mod layers;
mod references;

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use portal_expr::Limits;

use super::*;
use crate::{
    evaluate::evaluate,
    kinds::Kinds,
    language::ExprEngine,
    testing::{Objects, creation, objects, rules, rules_with},
};

/// Compiles rules and compares everything that they need of an engine that has all layers, with the rules that cause it.
#[track_caller]
fn check(yaml: &str, expected: Expect) {
    check_in(Layers::ALL, yaml, expected);
}

#[track_caller]
fn check_in(layers: Layers, yaml: &str, expected: Expect) {
    let (rules, problems) = rules(yaml);
    assert_eq!(problems, Vec::<String>::new());
    let requirements = Requirements::of(&rules, layers);
    let mut text = String::new();
    for (kind, reasons) in &requirements.watches {
        for (reason, reach) in reasons {
            let _ = writeln!(text, "watch {} for {reason:?}: {}", kind.qualified_plural(), show(reach));
        }
    }
    for (resource, operations) in &requirements.webhook {
        let WebhookResource { pinned, kind, .. } = resource;
        let entry = pinned.as_ref().map(|version| format!(" for {version}")).unwrap_or_default();
        let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
        let (versions, plural) = (resource.versions().join(","), resource.resource());
        let mut reaches: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (operation, Route { judging, refusing }) in operations {
            let word = ["create", "update", "delete", "connect"][*operation as usize];
            let refused = match refusing {
                all if all == judging => String::new(),
                none if *none == Reach::default() => ", never refused".to_owned(),
                some => format!(", refused {}", show(some)),
            };
            reaches.entry(show(judging) + &refused).or_default().push(word);
        }
        for (reach, words) in reaches {
            let words = words.join(",");
            let _ = writeln!(text, "webhook{entry}: {words} {}/{versions} {plural} {scope}: {reach}", kind.group);
        }
    }
    for (Permission { group, resource, verb }, reach) in &requirements.permissions {
        let _ = writeln!(text, "may {verb} {group}/{resource}: {}", show(reach));
    }
    expected.assert_eq(&text);
}

/// Compares what the authors of rules must be allowed to do.
#[track_caller]
fn check_authors(yaml: &str, expected: Expect) {
    let (rules, problems) = rules(yaml);
    assert_eq!(problems, Vec::<String>::new());
    let mut text = String::new();
    for rule in rules.rules() {
        let mut verbs: BTreeMap<(String, Option<String>), Vec<&str>> = BTreeMap::new();
        for (Permission { group, resource, verb }, namespace) in Requirements::of_author(rule) {
            verbs.entry((format!("{group}/{resource}"), namespace)).or_default().push(verb);
        }
        for ((resource, namespace), verbs) in verbs {
            let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            let _ = writeln!(text, "the author of {} may {} {resource}{place}", rule.id, verbs.join(","));
        }
    }
    expected.assert_eq(&text);
}

fn show(reach: &Reach) -> String {
    let cluster = (!reach.cluster.is_empty()).then(|| format!("everywhere for {}", names(&reach.cluster)));
    let namespaces = reach.namespaces.iter().map(|(namespace, rules)| format!("in {namespace} for {}", names(rules)));
    cluster.into_iter().chain(namespaces).collect::<Vec<_>>().join("; ")
}

fn names(rules: &[Arc<RuleId>]) -> String {
    rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_rule_for_pods_needs_what_makes_pods_too() {
    check(
        "
name: pods
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
",
        expect![[r#"
            watch pods.core for Match: everywhere for pods
            watch podtemplates.core for Match: everywhere for pods
            watch replicationcontrollers.core for Match: everywhere for pods
            watch daemonsets.apps for Match: everywhere for pods
            watch deployments.apps for Match: everywhere for pods
            watch replicasets.apps for Match: everywhere for pods
            watch statefulsets.apps for Match: everywhere for pods
            watch cronjobs.batch for Match: everywhere for pods
            watch jobs.batch for Match: everywhere for pods
            webhook: create,update /v1 pods Namespaced: everywhere for pods
            webhook: update /v1 pods/ephemeralcontainers Namespaced: everywhere for pods
            webhook: update /v1 pods/resize Namespaced: everywhere for pods
            webhook: create,update /v1 podtemplates Namespaced: everywhere for pods
            webhook: create,update /v1 replicationcontrollers Namespaced: everywhere for pods
            webhook: create,update apps/v1 daemonsets Namespaced: everywhere for pods
            webhook: create,update apps/v1 deployments Namespaced: everywhere for pods
            webhook: create,update apps/v1 replicasets Namespaced: everywhere for pods
            webhook: create,update apps/v1 statefulsets Namespaced: everywhere for pods
            webhook: create,update batch/v1 cronjobs Namespaced: everywhere for pods
            webhook: create,update batch/v1 jobs Namespaced: everywhere for pods
        "#]],
    );
}

#[test]
fn the_rules_that_cause_a_need_are_named() {
    check(
        "
name: one
mode: [admission]
match: {gvk: [{kind: ConfigMap}], operations: [CREATE]}
rule: object.data.a == 'b'
---
name: two
mode: [admission]
match: {gvk: [{kind: ConfigMap}], operations: [DELETE]}
rule: object.data.a == 'b'
---
name: three
mode: [audit]
match: {gvk: [{kind: ConfigMap}]}
rule: object.data.a == 'b'
",
        expect![[r#"
            watch configmaps.core for Match: everywhere for three
            webhook: create /v1 configmaps Namespaced: everywhere for one
            webhook: delete /v1 configmaps Namespaced: everywhere for two
        "#]],
    );
}

#[test]
fn versions_and_subresources_are_those_that_the_rule_names() {
    check(
        "
name: scaler
mode: [admission]
match: {gvk: [{group: autoscaling, kind: HorizontalPodAutoscaler, version: v2}]}
rule: object.spec.maxReplicas == 1
---
name: exec
mode: [admission]
match: {gvk: [{kind: Pod}, {kind: Node}], operations: [CONNECT], subresources: [exec, proxy], podControllers: false}
rule: request.userInfo.username == 'eve'
",
        expect![[r#"
            webhook: connect /v1 nodes/proxy Cluster: everywhere for exec
            webhook: connect /v1 pods/exec Namespaced: everywhere for exec
            webhook: connect /v1 pods/proxy Namespaced: everywhere for exec
            webhook for v2: create,update autoscaling/v2 horizontalpodautoscalers Namespaced: everywhere for scaler
        "#]],
    );
}

#[test]
fn a_lookup_is_watched_where_the_rule_says() {
    check(
        "
name: written
mode: [admission]
match: {gvk: [{kind: ConfigMap}]}
rule: len(cluster.services.list('shop')) == 0 || cluster.nodes.byName('a') == nil
---
name: everywhere
mode: [admission]
match: {gvk: [{kind: ConfigMap}]}
rule: len(cluster.services.list('*')) == 0
---
name: only-an-evaluation-knows
mode: [admission]
match: {gvk: [{kind: ConfigMap}]}
rule: len(cluster.secrets.list(metadata.namespace)) == 0
---
name: fresh
mode: [admission]
match: {gvk: [{kind: ConfigMap}]}
rule: consistentCluster.services.byName('shop', 'a') == nil
---
name: labels-of-the-namespace
mode: [admission]
match: {gvk: [{kind: ConfigMap}], namespaceSelector: {matchLabels: {a: b}}}
rule: object.data.a == 'b'
",
        expect![[r#"
            watch namespaces.core for NamespaceSelector: everywhere for labels-of-the-namespace
            watch nodes.core for Lookup: everywhere for written
            watch secrets.core for Lookup: everywhere for only-an-evaluation-knows
            watch services.core for Lookup: everywhere for everywhere; in shop for written
            webhook: create,update /v1 configmaps Namespaced: everywhere for written, everywhere, only-an-evaluation-knows, fresh, labels-of-the-namespace
            may get /services: in shop for fresh
            may list /services: in shop for fresh
        "#]],
    );
}

#[test]
fn a_rule_of_a_namespace_needs_nothing_outside_of_it() {
    check(
        "
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: r, namespace: shop}
spec:
  match: {gvk: [{kind: ConfigMap}]}
  rule: len(cluster.services.list(metadata.namespace)) == 0
  actions: [{type: label, key: a, value: b}]
",
        expect![[r#"
            watch configmaps.core for Match: in shop for shop/r
            watch services.core for Lookup: in shop for shop/r
            webhook: create,update /v1 configmaps Namespaced: in shop for shop/r
            may patch /configmaps: in shop for shop/r
        "#]],
    );
}

#[test]
fn actions_need_their_verbs() {
    check(
        "
name: all-of-them
mode: [audit]
alert: Broken
match: {gvk: [{kind: Pod}], podControllers: false}
rule: spec.hostNetwork
actions:
- {type: label, key: a, value: b}
- {type: evict}
- {type: patch-networkpolicy}
- {type: revoke-sa-token}
",
        expect![[r#"
            watch pods.core for Match: everywhere for all-of-them
            may patch /pods: everywhere for all-of-them
            may create /pods/eviction: everywhere for all-of-them
            may delete /secrets: everywhere for all-of-them
            may list /secrets: everywhere for all-of-them
            may create networking.k8s.io/networkpolicies: everywhere for all-of-them
            may delete networking.k8s.io/networkpolicies: everywhere for all-of-them
            may get networking.k8s.io/networkpolicies: everywhere for all-of-them
            may patch networking.k8s.io/networkpolicies: everywhere for all-of-them
        "#]],
    );
}

#[test]
fn namespaces_are_those_of_the_api_server_that_the_rules_were_compiled_for() {
    let own = Kinds::builtin().get("", "Namespace").unwrap();
    let other = Kind { subresources: vec!["finalize".to_owned()], ..Kind::clone(own) };
    let kinds = Kinds::builtin().with([other.clone()]);
    let yaml = "
name: r
match: {gvk: [{kind: Pod}], namespaceSelector: {matchLabels: {a: b}}}
rule: cluster.namespaces.byName('shop') != nil
";
    let (rules, problems) = rules_with(yaml, &kinds, &ExprEngine);
    assert_eq!(problems, Vec::<String>::new());
    let watched = Requirements::of(&rules, Layers::ALL).watches;
    let namespaces: Vec<&Kind> = watched.keys().map(|kind| &**kind).filter(|kind| kind.kind == "Namespace").collect();
    assert_eq!(namespaces, [&other]);
    let pod = objects("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}").remove(0);
    let evaluation = evaluate(&rules, &Objects(Vec::new()), &creation(&pod), &Limits::default());
    assert_eq!(evaluation.reads.iter().map(|query| &*query.kind).collect::<Vec<_>>(), [&other]);
}

#[test]
fn a_rule_for_labels_of_namespaces_waits_for_namespaces() {
    let kinds = Kinds::new([Kind::clone(Kinds::builtin().get("", "ConfigMap").unwrap())]);
    let yaml = "
name: r
match: {gvk: [{kind: ConfigMap}], namespaceSelector: {matchLabels: {a: b}}}
rule: object.data.a == 'b'
";
    let (rules, problems) = rules_with(yaml, &kinds, &ExprEngine);
    assert_eq!(problems, ["Error: rule r: match.namespaceSelector: no kind `Namespace` is served in the core group"]);
    assert!(rules.rules().is_empty());
}

#[test]
fn an_author_must_be_allowed_what_the_rule_reads_and_does() {
    check_authors(
        "
name: pods
mode: [admission]
match: {gvk: [{kind: Pod}], podControllers: false, namespaceSelector: {matchLabels: {a: b}}}
rule: len(cluster.services.list('shop')) == 0 && len(consistentCluster.secrets.list('*')) == 0
actions: [{type: evict}, {type: patch-networkpolicy}, {type: revoke-sa-token}]
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: r, namespace: shop}
spec:
  match: {gvk: [{kind: ConfigMap}]}
  rule: len(cluster.services.list(metadata.namespace)) == 0
  actions: [{type: label, key: a, value: b}]
",
        expect![[r#"
            the author of pods may list /namespaces
            the author of pods may list /pods
            the author of pods may create /pods/eviction
            the author of pods may delete,list /secrets
            the author of pods may list /services in shop
            the author of pods may create,delete,get,patch networking.k8s.io/networkpolicies
            the author of shop/r may list,patch /configmaps in shop
            the author of shop/r may list /services in shop
        "#]],
    );
}

#[test]
fn a_version_that_a_rule_pins_has_a_need_of_its_own() {
    check(
        "
name: any
mode: [admission]
match: {gvk: [{group: autoscaling, kind: HorizontalPodAutoscaler}]}
rule: object.spec.maxReplicas == 1
---
name: all
mode: [admission]
match:
  gvk:
  - {group: autoscaling, kind: HorizontalPodAutoscaler, version: v1}
  - {group: autoscaling, kind: HorizontalPodAutoscaler, version: v2}
rule: object.spec.maxReplicas == 1
---
name: old
mode: [admission]
match: {gvk: [{group: autoscaling, kind: HorizontalPodAutoscaler, version: v1}], operations: [UPDATE]}
rule: object.spec.maxReplicas == 1
---
name: there-is-no-other
mode: [admission]
match: {gvk: [{kind: ConfigMap, version: v1}]}
rule: object.data.a == 'b'
",
        expect![[r#"
            webhook: create,update autoscaling/v2,v1 horizontalpodautoscalers Namespaced: everywhere for any
            webhook for v1: create,update /v1 configmaps Namespaced: everywhere for there-is-no-other
            webhook for v1: update autoscaling/v1 horizontalpodautoscalers Namespaced: everywhere for old
            webhook for v2: create,update autoscaling/v2 horizontalpodautoscalers Namespaced: everywhere for all
        "#]],
    );
}

#[test]
fn a_rule_of_a_namespace_sends_nobody_elses_requests_to_the_webhook() {
    check(
        "
name: everywhere
mode: [admission]
match: {gvk: [{kind: ConfigMap}], operations: [CREATE]}
rule: object.data.a == 'b'
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: r, namespace: shop}
spec:
  mode: [admission]
  match: {gvk: [{kind: ConfigMap}, {kind: Service}], operations: [CREATE, DELETE]}
  rule: metadata.name == 'a'
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: r, namespace: bank}
spec:
  mode: [admission]
  match: {gvk: [{kind: Service}], operations: [CREATE]}
  rule: metadata.name == 'a'
",
        expect![[r#"
            webhook: create /v1 configmaps Namespaced: everywhere for everywhere; in shop for shop/r
            webhook: delete /v1 configmaps Namespaced: in shop for shop/r
            webhook: create /v1 services Namespaced: in bank for bank/r; in shop for shop/r
            webhook: delete /v1 services Namespaced: in shop for shop/r
        "#]],
    );
}

/// One rule of each mode, with everything that a layer may need.
const MODES: &str = "
name: both
match: {gvk: [{kind: ConfigMap}]}
rule: len(cluster.services.list('*')) == 0
actions: [{type: label, key: a, value: b}]
---
name: admission
mode: [admission]
match: {gvk: [{kind: ConfigMap}], namespaceSelector: {matchLabels: {a: b}}}
rule: len(consistentCluster.endpoints.list('*')) == 0
actions: [{type: label, key: a, value: b}]
---
name: audit
mode: [audit]
match: {gvk: [{kind: ConfigMap}]}
rule: len(cluster.secrets.list('*')) == 0
actions: [{type: evict}]
";

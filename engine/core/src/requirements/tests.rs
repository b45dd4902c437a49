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

/// Compiles rules and compares everything that they need, with the rules that cause it.
#[track_caller]
fn check(yaml: &str, expected: Expect) {
    let (rules, problems) = rules(yaml);
    assert_eq!(problems, Vec::<String>::new());
    let requirements = Requirements::of(&rules);
    let mut text = String::new();
    for (kind, reach) in &requirements.watches {
        let _ = writeln!(text, "watch {}: {}", kind.qualified_plural(), show(reach));
    }
    for (WebhookResource { group, resource, namespaced }, need) in &requirements.webhook {
        let scope = if *namespaced { "Namespaced" } else { "Cluster" };
        let WebhookNeed { versions, operations, rules } = need;
        let versions = versions.iter().cloned().collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "webhook {group}/{versions} {resource} {scope} {operations:?}: {}", names(rules));
    }
    for (Permission { group, resource, verb }, reach) in &requirements.permissions {
        let _ = writeln!(text, "may {verb} {group}/{resource}: {}", show(reach));
    }
    for (rule, asked) in &requirements.author {
        let mut verbs: BTreeMap<(String, Option<&str>), Vec<&str>> = BTreeMap::new();
        for (Permission { group, resource, verb }, namespace) in asked {
            verbs.entry((format!("{group}/{resource}"), namespace.as_deref())).or_default().push(verb);
        }
        for ((resource, namespace), verbs) in verbs {
            let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            let _ = writeln!(text, "the author of {rule} may {} {resource}{place}", verbs.join(","));
        }
    }
    expected.assert_eq(&text);
}

fn show(reach: &Reach) -> String {
    let cluster = (!reach.cluster.is_empty()).then(|| format!("everywhere for {}", names(&reach.cluster)));
    let namespaces = reach.namespaces.iter().map(|(namespace, rules)| format!("in {namespace} for {}", names(rules)));
    cluster.into_iter().chain(namespaces).collect::<Vec<_>>().join("; ")
}

fn names(rules: &BTreeSet<RuleId>) -> String {
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
            watch pods.core: everywhere for pods
            watch podtemplates.core: everywhere for pods
            watch replicationcontrollers.core: everywhere for pods
            watch daemonsets.apps: everywhere for pods
            watch deployments.apps: everywhere for pods
            watch replicasets.apps: everywhere for pods
            watch statefulsets.apps: everywhere for pods
            watch cronjobs.batch: everywhere for pods
            watch jobs.batch: everywhere for pods
            webhook /v1 pods Namespaced {Create, Update}: pods
            webhook /v1 pods/ephemeralcontainers Namespaced {Create, Update}: pods
            webhook /v1 pods/resize Namespaced {Create, Update}: pods
            webhook /v1 podtemplates Namespaced {Create, Update}: pods
            webhook /v1 replicationcontrollers Namespaced {Create, Update}: pods
            webhook apps/v1 daemonsets Namespaced {Create, Update}: pods
            webhook apps/v1 deployments Namespaced {Create, Update}: pods
            webhook apps/v1 replicasets Namespaced {Create, Update}: pods
            webhook apps/v1 statefulsets Namespaced {Create, Update}: pods
            webhook batch/v1 cronjobs Namespaced {Create, Update}: pods
            webhook batch/v1 jobs Namespaced {Create, Update}: pods
            the author of pods may get,list,watch /pods
            the author of pods may get,list,watch /podtemplates
            the author of pods may get,list,watch /replicationcontrollers
            the author of pods may get,list,watch apps/daemonsets
            the author of pods may get,list,watch apps/deployments
            the author of pods may get,list,watch apps/replicasets
            the author of pods may get,list,watch apps/statefulsets
            the author of pods may get,list,watch batch/cronjobs
            the author of pods may get,list,watch batch/jobs
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
            watch configmaps.core: everywhere for three
            webhook /v1 configmaps Namespaced {Create, Delete}: one, two
            the author of one may get,list,watch /configmaps
            the author of three may get,list,watch /configmaps
            the author of two may get,list,watch /configmaps
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
            webhook /v1 nodes/proxy Cluster {Connect}: exec
            webhook /v1 pods/exec Namespaced {Connect}: exec
            webhook /v1 pods/proxy Namespaced {Connect}: exec
            webhook autoscaling/v2 horizontalpodautoscalers Namespaced {Create, Update}: scaler
            the author of exec may get,list,watch /nodes
            the author of exec may get,list,watch /pods
            the author of scaler may get,list,watch autoscaling/horizontalpodautoscalers
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
            watch namespaces.core: everywhere for labels-of-the-namespace
            watch nodes.core: everywhere for written
            watch secrets.core: everywhere for only-an-evaluation-knows
            watch services.core: everywhere for everywhere; in shop for written
            webhook /v1 configmaps Namespaced {Create, Update}: everywhere, fresh, labels-of-the-namespace, only-an-evaluation-knows, written
            may get /services: in shop for fresh
            may list /services: in shop for fresh
            the author of everywhere may get,list,watch /configmaps
            the author of everywhere may get,list,watch /services
            the author of fresh may get,list,watch /configmaps
            the author of fresh may get,list,watch /services in shop
            the author of labels-of-the-namespace may get,list,watch /configmaps
            the author of only-an-evaluation-knows may get,list,watch /configmaps
            the author of only-an-evaluation-knows may get,list,watch /secrets
            the author of written may get,list,watch /configmaps
            the author of written may get,list,watch /nodes
            the author of written may get,list,watch /services in shop
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
            watch configmaps.core: in shop for shop/r
            watch services.core: in shop for shop/r
            webhook /v1 configmaps Namespaced {Create, Update}: shop/r
            may patch /configmaps: in shop for shop/r
            the author of shop/r may get,list,patch,watch /configmaps in shop
            the author of shop/r may get,list,watch /services in shop
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
            watch pods.core: everywhere for all-of-them
            may patch /pods: everywhere for all-of-them
            may create /pods/eviction: everywhere for all-of-them
            may delete /secrets: everywhere for all-of-them
            may list /secrets: everywhere for all-of-them
            may create networking.k8s.io/networkpolicies: everywhere for all-of-them
            may delete networking.k8s.io/networkpolicies: everywhere for all-of-them
            may get networking.k8s.io/networkpolicies: everywhere for all-of-them
            may patch networking.k8s.io/networkpolicies: everywhere for all-of-them
            the author of all-of-them may get,list,patch,watch /pods
            the author of all-of-them may create /pods/eviction
            the author of all-of-them may delete,list /secrets
            the author of all-of-them may create,delete,get,patch networking.k8s.io/networkpolicies
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
    let watched = Requirements::of(&rules).watches;
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

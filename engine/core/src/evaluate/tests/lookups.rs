//! What rules ask of the cluster, what they are told, and what is needed before they can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::{Expect, expect};
use portal_expr::Limits;

use super::{DEPLOYMENT, POD, check, check_in, pod_rule};
use crate::{
    evaluate::evaluate,
    lookup::{Answer, Lookup, Query},
    object::Object,
    testing::{Objects, creation, objects, rules},
};

const PDB: &str = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {of: template}}}
";

const NEEDS_PDB: &str = "
name: pdb
match: {gvk: [{group: apps, kind: Deployment}]}
rule: none(cluster.poddisruptionbudgets.list(metadata.namespace), selects(.spec.selector, object.spec.template.metadata.labels))
";

#[test]
fn lookups_are_answered_and_recorded() {
    check_in(
        PDB,
        NEEDS_PDB,
        DEPLOYMENT,
        expect![[r#"asked for poddisruptionbudgets in Some("shop"): Labels(Selector { requirements: {} })"#]],
    );
    check_in(
        &PDB.replace("shop", "other"),
        NEEDS_PDB,
        DEPLOYMENT,
        expect![[r#"
            pdb: there are no poddisruptionbudgets in shop (there are no poddisruptionbudgets in shop)
            asked for poddisruptionbudgets in Some("shop"): Labels(Selector { requirements: {} })"#]],
    );
}

#[test]
fn a_lookup_sees_the_incoming_object() {
    check(
        &pod_rule(
            "len(cluster.pods.list('shop', {app: 'api'})) == 1 && cluster.pods.byName('shop', 'api').spec.hostNetwork",
        ),
        POD,
        expect![[r#"
            r: pods["shop/api"].spec.hostNetwork is true, len(pods in shop with app=api) is 1 (pods["shop/api"].spec.hostNetwork is true, len(pods in shop with app=api) is 1)
            asked for pods in Some("shop"): Name("api")
            asked for pods in Some("shop"): Labels(Selector { requirements: {Requirement { key: "app", test: In({"api"}) }} })"#]],
    );
}

#[test]
fn a_lookup_sees_the_incoming_object_in_place_of_the_one_that_is_there() {
    for (rule, object) in [
        (pod_rule("len(cluster.pods.list('shop')) == 1"), POD),
        (
            "name: r\nmatch: {gvk: [{kind: Namespace}]}\nrule: len(cluster.namespaces.list()) == 1".to_owned(),
            "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
        ),
        (
            "name: r\nmatch: {gvk: [{kind: Node}]}\nrule: len(cluster.nodes.list()) == 1".to_owned(),
            "{apiVersion: v1, kind: Node, metadata: {name: a}}",
        ),
    ] {
        let (rules, problems) = rules(&rule);
        assert_eq!(problems, Vec::<String>::new());
        let cluster = Objects(objects(object));
        let evaluation = evaluate(&rules, &cluster, &creation(&objects(object)[0]), &Limits::default());
        assert_eq!(evaluation.violations.len(), 1, "{object}");
    }
}

#[test]
fn a_namespace_that_may_be_missing_is_refused() {
    check(
        &pod_rule("len(cluster.services.list(metadata.labels.nothing)) == 0"),
        POD,
        expect![[r#"
            Error: rule r: rule: 1:22: the namespace of `services` may be missing here: give it a value by `?? …`, or ask first by `… != nil && …`
             | len(cluster.services.list(metadata.labels.nothing)) == 0
             |                      ^"#]],
    );
}

#[test]
fn a_plural_that_nobody_knows_is_shown_with_the_nearest_one() {
    check(
        &pod_rule("spec.hostPID && len(cluster['networkpolicies.networking.k8s.o'].list('shop')) == 0"),
        "",
        expect![[r#"
            Error: rule r: rule: 1:30: no kind is served as `networkpolicies.networking.k8s.o`, did you mean `networkpolicies.networking.k8s.io`?
             | spec.hostPID && len(cluster['networkpolicies.networking.k8s.o'].list('shop')) == 0
             |                              ^"#]],
    );
    check(
        &pod_rule("len(cluster.servces.list('shop')) == 0"),
        "",
        expect![[r#"
            Error: rule r: rule: 1:13: no kind is served as `servces`, did you mean `services`?
             | len(cluster.servces.list('shop')) == 0
             |             ^"#]],
    );
}

#[test]
fn a_selector_that_is_missing_selects_nothing() {
    let service = "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}, spec: {}}";
    for lookup in [
        "cluster.pods.list('shop', object.spec.selector)",
        "cluster.pods.list('shop', nil)",
        "cluster.pods.list(selector=object.spec.selector, ns='shop')",
        "cluster.nodes.list(object.spec.selector)",
    ] {
        let rule = format!("name: r\nmatch: {{gvk: [{{kind: Service}}]}}\nrule: {lookup} == []\nmessage: found\n");
        let (rules, problems) = rules(&rule);
        assert_eq!(problems, Vec::<String>::new());
        let evaluation = evaluate(&rules, &Objects(Vec::new()), &creation(&objects(service)[0]), &Limits::default());
        assert_eq!((evaluation.violations.len(), evaluation.reads.len()), (1, 0), "{lookup}");
    }
}

#[test]
fn a_name_is_asked_for_in_one_namespace() {
    check(
        &pod_rule("cluster.pods.byName('*', 'api') != nil"),
        "",
        expect![[r#"
            Error: rule r: rule: 1:14: a name is one of a namespace: write byName(ns, name), or list("*")
             | cluster.pods.byName('*', 'api') != nil
             |              ^"#]],
    );
    check(
        &pod_rule("cluster.pods.byName(metadata.labels.app == 'api' ? '*' : 'shop', 'api') != nil"),
        POD,
        expect![[r#"
            r failed: 1:14: byName asks for pods of one namespace, and "*" stands for all
             | cluster.pods.byName(metadata.labels.app == 'api' ? '*' : 'shop', 'api') != nil
             |              ^"#]],
    );
}

#[test]
fn a_rule_of_a_namespace_never_leaves_it() {
    let rule = |expression: &str| {
        format!(
            "apiVersion: portal.io/v1alpha1\nkind: PortalRule\nmetadata: {{name: r, namespace: shop}}\nspec:\n  match: {{gvk: [{{kind: Pod}}]}}\n  rule: {expression:?}\n"
        )
    };
    check(
        &rule("true"),
        &POD.replace("shop", "other"),
        expect![[r#"
            Warning: rule shop/r: spec.rule: 1:1: this reads nothing, so its answer is always the same
             | true
             | ^"#]],
    );
    check(
        &rule("len(cluster.secrets.list('other')) > 0"),
        "",
        expect![[r#"
            Error: rule shop/r: spec.rule: 1:21: a PortalRule sees its own namespace only: write "shop" or metadata.namespace
             | len(cluster.secrets.list('other')) > 0
             |                     ^"#]],
    );
    check(
        &rule("len(cluster.secrets.list('*')) > 0"),
        "",
        expect![[r#"
            Error: rule shop/r: spec.rule: 1:21: a PortalRule sees its own namespace only: write "shop" or metadata.namespace
             | len(cluster.secrets.list('*')) > 0
             |                     ^"#]],
    );
    check(
        &rule("cluster.nodes.byName('a') != nil"),
        "",
        expect![[r#"
            Error: rule shop/r: spec.rule: 1:15: a PortalRule sees its own namespace only, and `nodes` are in none
             | cluster.nodes.byName('a') != nil
             |               ^"#]],
    );
    check(
        &rule("len(cluster.services.list(metadata.labels.app ?? 'x')) == 0"),
        POD,
        expect![[r#"
            shop/r failed: 1:22: a PortalRule sees its own namespace only, and this one asks for services in `api`
             | len(cluster.services.list(metadata.labels.app ?? 'x')) == 0
             |                      ^"#]],
    );
}

/// Answers with what was fetched from a cluster, and needs everything else.
struct Fetched {
    cluster: Objects,
    answers: BTreeMap<Query, Vec<Arc<Object<'static>>>>,
}

impl Lookup for Fetched {
    fn answer(&self, query: &Query) -> Answer {
        match self.answers.get(query) {
            Some(found) => Answer::Found(found.clone()),
            None => Answer::Needs,
        }
    }
}

/// Evaluates until nothing is needed, as a caller does, and tells of each round.
#[track_caller]
fn check_rounds(cluster: &str, rule: &str, expected: Expect) {
    let (rules, problems) = rules(rule);
    assert_eq!(problems, Vec::<String>::new());
    let cluster = Objects(objects(cluster));
    let mut lookup = Fetched { cluster, answers: Default::default() };
    let pod = objects(POD).remove(0);
    let mut lines = Vec::new();
    loop {
        let evaluation = evaluate(&rules, &lookup, &creation(&pod), &Limits::default());
        lines.extend(evaluation.violations.iter().map(|found| format!("{}: {}", found.rule, found.message)));
        lines.extend(evaluation.failures.iter().map(|failed| format!("{} failed: {}", failed.rule, failed.error)));
        if evaluation.needs.is_empty() {
            break;
        }
        for query in evaluation.needs {
            lines.push(format!("needs {} in {:?}: {:?}", query.kind.plural, query.namespace, query.filter));
            let Answer::Found(found) = lookup.cluster.answer(&query) else { panic!("the cluster knows") };
            // Whoever needs the same again would ask for ever.
            assert!(lookup.answers.insert(query, found).is_none());
        }
    }
    expected.assert_eq(&lines.join("\n"));
}

const CHAIN: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: shop}
data: {next: second}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second, namespace: shop}
data: {next: third}
";

#[test]
fn a_consistent_read_that_is_not_at_hand_is_needed_and_decides_in_the_next_round() {
    let rule = pod_rule("consistentCluster.configmaps.byName('shop', 'first').data.next == 'second'");
    check_rounds(
        CHAIN,
        &rule,
        expect![[r#"
            needs configmaps in Some("shop"): Name("first")
            r: configmaps["shop/first"].data.next is "second""#]],
    );
    check_rounds("", &rule, expect![[r#"needs configmaps in Some("shop"): Name("first")"#]]);
}

#[test]
fn a_read_that_depends_on_another_needs_a_round_of_its_own() {
    let rule = pod_rule(
        "let entry = cluster.consistent.configmaps.byName('shop', 'first'); cluster.consistent.configmaps.byName('shop', entry.data.next).data.next == 'third'",
    );
    check_rounds(
        CHAIN,
        &rule,
        expect![[r#"
            needs configmaps in Some("shop"): Name("first")
            needs configmaps in Some("shop"): Name("second")
            r: configmaps["shop/second"].data.next is "third""#]],
    );
}

#[test]
fn a_rule_that_needs_nothing_is_decided_while_another_waits() {
    let rules = format!(
        "{}---\nname: plain\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostNetwork\n",
        pod_rule("len(consistentCluster.configmaps.list('shop')) == 2")
    );
    check_rounds(
        CHAIN,
        &rules,
        expect![[r#"
            plain: spec.hostNetwork is true
            needs configmaps in Some("shop"): Labels(Selector { requirements: {} })
            r: len(configmaps in shop) is 2
            plain: spec.hostNetwork is true"#]],
    );
}

#[test]
fn the_same_read_of_many_containers_is_needed_once() {
    let rule = pod_rule(
        "container.name == 'app' && len(consistentCluster.configmaps.list('shop')) == 2 || len(consistentCluster.configmaps.list('shop')) == 3",
    );
    check_rounds(
        CHAIN,
        &rule,
        expect![[r#"
            needs configmaps in Some("shop"): Labels(Selector { requirements: {} })
            r: container app: len(configmaps in shop) is 2, name is "app""#]],
    );
}

//! References whose kind is data: what they lead to, and what is asked on the way.

use expect_test::expect;
use portal_expr::Limits;

use super::{POD, check, check_in, pod_rule};
use crate::{
    evaluate::evaluate,
    kinds::{Kind, Kinds},
    language::ExprEngine,
    testing::{Objects, creation, objects, rules, rules_with},
};

const CLUSTER: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: d-1}
spec: {replicas: 3}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop, uid: s-1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, uid: v-1}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: view, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: view}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: from-a-file, namespace: shop}
";

/// What the expression gives for references, each with what is expected: the kind and the name that were found.
#[track_caller]
fn check_references(kinds: &str, table: &[(&str, &str)]) {
    let cluster = Objects(objects(CLUSTER));
    for (reference, expected) in table {
        let rule = format!(
            "name: r\nmatch: {{gvk: [{{kind: ConfigMap}}]}}\nrule: |\n  let found = cluster.any({kinds}).byRef(\"shop\", fromJSON(object.data.ref ?? \"null\"));\n  true\nmessage: '{{{{ found == nil ? \"nothing\" : found.kind + \"/\" + found.metadata.name }}}}'\n"
        );
        let (rules, problems) = rules(&rule);
        assert!(problems.iter().all(|problem| problem.starts_with("Warning")), "{problems:?}");
        let object = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: shop}}\ndata:\n  ref: |\n    {reference}\n"
        );
        let object = objects(&object).remove(0);
        let evaluation = evaluate(&rules, &cluster, &creation(&object), &Limits::default());
        let said: Vec<String> = evaluation.violations.into_iter().map(|violation| violation.message).collect();
        assert_eq!(said.join("\n"), *expected, "{reference}: {:?}", evaluation.failures);
    }
}

#[test]
fn a_reference_leads_to_the_object_of_its_group_kind_and_name() {
    check_references(
        r#""deployments", "statefulsets.apps", "services", "configmaps""#,
        &[
            (r#"{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}"#, "Deployment/web"),
            (r#"{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}"#, "StatefulSet/db"),
            (r#"{"apiVersion": "v1", "kind": "Service", "name": "web"}"#, "Service/web"),
            // Which version it was written in does not matter.
            (r#"{"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web"}"#, "Deployment/web"),
            (r#"{"apiGroup": "apps", "kind": "Deployment", "name": "web"}"#, "Deployment/web"),
            (r#"{"group": "apps", "kind": "Deployment", "name": "web"}"#, "Deployment/web"),
            (r#"{"group": "", "kind": "Service", "name": "web"}"#, "Service/web"),
            (r#"{"apiGroup": "", "kind": "Service", "name": "web"}"#, "Service/web"),
            // Without a group the kind decides.
            (r#"{"kind": "Deployment", "name": "web"}"#, "Deployment/web"),
            (r#"{"apiVersion": "", "kind": "Deployment", "name": "web"}"#, "Deployment/web"),
            (r#"{"kind": "Service", "name": "web"}"#, "Service/web"),
            // An empty group is the core group, and not a missing one.
            (r#"{"group": "", "kind": "Deployment", "name": "web"}"#, "nothing"),
            (r#"{"apiVersion": "v1", "kind": "Deployment", "name": "web"}"#, "nothing"),
            (r#"{"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"}"#, "nothing"),
            (r#"{"apiVersion": "v1", "kind": "service", "name": "web"}"#, "nothing"),
        ],
    );
}

#[test]
fn what_is_missing_leads_nowhere_and_fails_nothing() {
    check_references(
        r#""deployments", "services", "configmaps""#,
        &[
            ("null", "nothing"),
            ("{}", "nothing"),
            (r#"{"kind": "Deployment"}"#, "nothing"),
            (r#"{"name": "web"}"#, "nothing"),
            (r#"{"kind": "Deployment", "name": ""}"#, "nothing"),
            (r#"{"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}"#, "nothing"),
            (r#"{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}"#, "nothing"),
        ],
    );
}

#[test]
fn a_reference_with_a_uid_means_that_object_and_no_other_of_its_name() {
    check_references(
        r#""deployments", "configmaps""#,
        &[
            (r#"{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d-1"}"#, "Deployment/web"),
            (r#"{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": ""}"#, "Deployment/web"),
            (r#"{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d-0"}"#, "nothing"),
            // Objects of files have none.
            (
                r#"{"apiVersion": "v1", "kind": "ConfigMap", "name": "from-a-file", "uid": "c-1"}"#,
                "ConfigMap/from-a-file",
            ),
        ],
    );
}

#[test]
fn a_reference_into_another_namespace_is_not_followed_there_and_means_nothing_here() {
    check_references(
        r#""services", "clusterroles""#,
        &[
            (r#"{"kind": "Service", "name": "web", "namespace": "shop"}"#, "Service/web"),
            (r#"{"kind": "Service", "name": "web", "namespace": ""}"#, "Service/web"),
            (r#"{"kind": "Service", "name": "web", "namespace": "other"}"#, "nothing"),
            // What is in no namespace is everywhere.
            (r#"{"kind": "ClusterRole", "name": "view", "namespace": "other"}"#, "ClusterRole/view"),
        ],
    );
}

#[test]
fn a_kind_in_no_namespace_needs_none() {
    let binding = |role: &str, name: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: b, namespace: shop}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: {name}}}\n"
        )
    };
    let rule = |expression: &str| {
        format!(
            "name: r\nmatch: {{gvk: [{{group: rbac.authorization.k8s.io, kind: RoleBinding}}]}}\nrule: {expression:?}\n"
        )
    };
    let both = rule("cluster.any('roles', 'clusterroles').byRef(metadata.namespace, object.roleRef) == nil");
    check_in(CLUSTER, &both, &binding("Role", "view"), expect![[r#"asked for roles in Some("shop"): Name("view")"#]]);
    check_in(
        CLUSTER,
        &both,
        &binding("ClusterRole", "view"),
        expect![[r#"asked for clusterroles in None: Name("view")"#]],
    );
    check_in(
        CLUSTER,
        &both,
        &binding("ClusterRole", "edit"),
        expect![[r#"
            r: clusterroles["edit"] does not exist, roleRef is {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"} (clusterroles["edit"] does not exist, roleRef is {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"})
            asked for clusterroles in None: Name("edit")"#]],
    );
    for call in ["byRef(object.roleRef)", "byRef(ref=object.roleRef)"] {
        let one = rule(&format!("cluster.any('clusterroles').{call} == nil"));
        check_in(
            CLUSTER,
            &one,
            &binding("ClusterRole", "view"),
            expect![[r#"asked for clusterroles in None: Name("view")"#]],
        );
        // None of these kinds has it.
        check_in(
            CLUSTER,
            &one,
            &binding("Role", "view"),
            expect![[r#"
            r: Role.rbac.authorization.k8s.io["view"] among clusterroles does not exist, roleRef is {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"view"} (Role.rbac.authorization.k8s.io["view"] among clusterroles does not exist, roleRef is {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"view"})"#]],
        );
    }
}

const AUTOSCALER: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
";

fn autoscaler_rule(expression: &str) -> String {
    format!("name: r\nmatch: {{gvk: [{{group: autoscaling, kind: HorizontalPodAutoscaler}}]}}\nrule: {expression:?}\n")
}

#[test]
fn what_a_reference_led_to_is_told_by_its_name() {
    let rule = autoscaler_rule(
        "let target = cluster.any('deployments', 'statefulsets').byRef(metadata.namespace, object.spec.scaleTargetRef); target == nil || target.spec.replicas == 3",
    );
    check_in(
        CLUSTER,
        &rule,
        AUTOSCALER,
        expect![[r#"
        r: deployments["shop/web"].spec.replicas is 3 (deployments["shop/web"].spec.replicas is 3)
        asked for deployments in Some("shop"): Name("web")"#]],
    );
    check_in(
        CLUSTER,
        &rule,
        &AUTOSCALER.replace("name: web}}", "name: api}}"),
        expect![[r#"
        r: deployments["shop/api"] does not exist, spec.scaleTargetRef is {"apiVersion":"apps/v1","kind":"Deployment","name":"api"} (deployments["shop/api"] does not exist, spec.scaleTargetRef is {"apiVersion":"apps/v1","kind":"Deployment","name":"api"})
        asked for deployments in Some("shop"): Name("api")"#]],
    );
    check_in(
        CLUSTER,
        &rule,
        &AUTOSCALER.replace("Deployment, name", "Rollout, name"),
        expect![[
            r#"r: Rollout.apps["web"] among deployments and statefulsets does not exist, spec.scaleTargetRef is {"apiVersion":"apps/v1","kind":"Rollout","name":"web"} (Rollout.apps["web"] among deployments and statefulsets does not exist, spec.scaleTargetRef is {"apiVersion":"apps/v1","kind":"Rollout","name":"web"})"#
        ]],
    );
    check_in(
        CLUSTER,
        &pod_rule("any(metadata.ownerReferences, cluster.any('deployments').byRef(metadata.namespace, #) == nil)"),
        &POD.replace(
            "labels: {app: api}",
            "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d-0, controller: true}]",
        ),
        expect![[r#"
            Warning: rule r: rule: only a Pod that is there has `metadata.ownerReferences`, so that this judges Pods and not what makes them, such as a Deployment: set `podControllers: false`, which says so
            r: deployments["shop/web"] with uid d-0 does not exist, metadata.ownerReferences[0] is {"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d-0","controller":true} (deployments["shop/web"] with uid d-0 does not exist, metadata.ownerReferences[0] is {"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d-0","controller":true})
            asked for deployments in Some("shop"): Name("web")"#]],
    );
}

#[test]
fn a_reference_to_the_incoming_object_finds_it() {
    let rule = pod_rule(
        "cluster.any('pods').byRef(metadata.namespace, {kind: 'Pod', name: metadata.name}).spec.hostNetwork == true",
    );
    check(
        &rule,
        POD,
        expect![[r#"
        r: pods["shop/api"].spec.hostNetwork is true (pods["shop/api"].spec.hostNetwork is true)
        asked for pods in Some("shop"): Name("api")"#]],
    );
}

#[test]
fn a_fresh_read_of_a_reference_asks_for_one_kind() {
    for root in ["consistentCluster", "cluster.consistent"] {
        let rule = autoscaler_rule(&format!(
            "{root}.any('deployments', 'statefulsets').byRef(metadata.namespace, object.spec.scaleTargetRef) == nil"
        ));
        let (rules, problems) = rules(&rule);
        assert_eq!(problems, [""; 0]);
        let object = objects(AUTOSCALER).remove(0);
        let evaluation = evaluate(&rules, &Objects(objects(CLUSTER)), &creation(&object), &Limits::default());
        let asked: Vec<(&str, bool)> =
            evaluation.reads.iter().map(|query| (query.kind.plural.as_str(), query.consistent)).collect();
        assert_eq!(asked, [("deployments", true)]);
    }
}

#[test]
fn what_is_no_reference_is_a_failure() {
    let rule = pod_rule("cluster.any('services').byRef('shop', fromJSON(metadata.annotations.ref ?? 'null')) == nil");
    for (reference, expected) in [
        (
            "'7'",
            expect![[r#"
            r failed: 1:25: a reference is a map with a kind and a name, not 7
             | cluster.any('services').byRef('shop', fromJSON(metadata.annotations.ref ?? 'null')) == nil
             |                         ^"#]],
        ),
        (
            r#"'{"kind": "Service", "name": 7}'"#,
            expect![[r#"
            r failed: 1:25: the name of a reference is text, not 7
             | cluster.any('services').byRef('shop', fromJSON(metadata.annotations.ref ?? 'null')) == nil
             |                         ^"#]],
        ),
        (
            r#"'{"kind": "Service", "name": "web", "uid": []}'"#,
            expect![[r#"
            r failed: 1:25: the uid of a reference is text, not []
             | cluster.any('services').byRef('shop', fromJSON(metadata.annotations.ref ?? 'null')) == nil
             |                         ^"#]],
        ),
    ] {
        let pod = POD.replace("labels: {app: api}", &format!("annotations: {{ref: {reference}}}"));
        check_in(CLUSTER, &rule, &pod, expected);
    }
}

#[test]
fn a_reference_leads_into_one_namespace() {
    check(
        &pod_rule(
            "cluster.any('services').byRef(spec.hostNetwork ? '*' : 'shop', {kind: 'Service', name: 'x'}) == nil",
        ),
        POD,
        expect![[r#"
            r failed: 1:25: a reference leads into one namespace, and "*" stands for all
             | cluster.any('services').byRef(spec.hostNetwork ? '*' : 'shop', {kind: 'Service', name: 'x'}) == nil
             |                         ^"#]],
    );
}

#[test]
fn a_rule_of_a_namespace_follows_references_within_it() {
    let rule = |expression: &str| {
        format!(
            "apiVersion: portal.io/v1alpha1\nkind: PortalRule\nmetadata: {{name: r, namespace: shop}}\nspec:\n  match: {{gvk: [{{kind: Pod}}]}}\n  rule: {expression:?}\n"
        )
    };
    let reference = "{kind: 'Service', name: 'web', namespace: metadata.labels.app}";
    check(
        &rule(&format!("cluster.any('services', 'nodes').byRef('other', {reference}) == nil")),
        "",
        expect![[r#"
        Error: rule shop/r: spec.rule: 1:25: a PortalRule sees its own namespace only, and `nodes` are in none
         | cluster.any('services', 'nodes').byRef('other', {kind: 'Service', name: 'web', namespace: metadata.labels.app}) == nil
         |                         ^"#]],
    );
    check(
        &rule(&format!("cluster.any('services').byRef('other', {reference}) == nil")),
        "",
        expect![[r#"
        Error: rule shop/r: spec.rule: 1:25: a PortalRule sees its own namespace only: write "shop" or metadata.namespace
         | cluster.any('services').byRef('other', {kind: 'Service', name: 'web', namespace: metadata.labels.app}) == nil
         |                         ^"#]],
    );
    check(
        &rule(&format!("cluster.any('services').byRef('*', {reference}) == nil")),
        "",
        expect![[r#"
        Error: rule shop/r: spec.rule: 1:25: a PortalRule sees its own namespace only: write "shop" or metadata.namespace
         | cluster.any('services').byRef('*', {kind: 'Service', name: 'web', namespace: metadata.labels.app}) == nil
         |                         ^"#]],
    );
    check(
        &rule(&format!("cluster.any('services').byRef(metadata.labels.app ?? 'x', {reference}) == nil")),
        POD,
        expect![[r#"
            shop/r failed: 1:25: a PortalRule sees its own namespace only, and this one asks for services in `api`
             | cluster.any('services').byRef(metadata.labels.app ?? 'x', {kind: 'Service', name: 'web', namespace: metadata.labels.app}) == nil
             |                         ^"#]],
    );
}

/// The kinds of Kubernetes, and others with the same names.
fn crowded() -> Kinds {
    let service = |group: &str| Kind {
        group: group.to_owned(),
        kind: "Service".to_owned(),
        plural: "services".to_owned(),
        versions: vec!["v1".to_owned()],
        namespaced: true,
        subresources: Vec::new(),
    };
    let widget = |group: &str| Kind { kind: "Widget".to_owned(), plural: "widgets".to_owned(), ..service(group) };
    Kinds::builtin().with([service("a.example.com"), widget("a.example.com"), widget("b.example.com")])
}

#[test]
fn of_kinds_with_one_name_the_group_decides_and_otherwise_the_first_that_is_written() {
    for (written, reference, expected) in [
        ("'services', 'services.a.example.com'", "{kind: 'Service', name: 'x'}", ""),
        ("'services.a.example.com', 'services'", "{kind: 'Service', name: 'x'}", "a.example.com"),
        (
            "'services', 'services.a.example.com'",
            "{kind: 'Service', name: 'x', group: 'a.example.com'}",
            "a.example.com",
        ),
        ("'services.a.example.com', 'services'", "{kind: 'Service', name: 'x', apiVersion: 'v1'}", ""),
        ("'services.a.example.com', 'services'", "{kind: 'Service', name: 'x', apiGroup: ''}", ""),
    ] {
        let rule = pod_rule(&format!("cluster.any({written}).byRef(metadata.namespace, {reference}) == nil"));
        let (rules, problems) = rules_with(&rule, &crowded(), &ExprEngine);
        assert_eq!(problems, [""; 0]);
        let pod = objects(POD).remove(0);
        let evaluation = evaluate(&rules, &Objects(Vec::new()), &creation(&pod), &Limits::default());
        let asked: Vec<&str> = evaluation.reads.iter().map(|query| query.kind.group.as_str()).collect();
        assert_eq!(asked, [expected], "{written} {reference}");
    }
}

#[test]
fn a_plural_of_several_groups_must_say_which() {
    let rule = pod_rule("cluster.any('pods', 'widgets').byRef('shop', {kind: 'Widget', name: 'x'}) == nil");
    let (_, problems) = rules_with(&rule, &crowded(), &ExprEngine);
    let expected = expect![[r#"
        Error: rule r: rule: 1:21: several groups serve `widgets`: write "widgets.a.example.com" or "widgets.b.example.com"
         | cluster.any('pods', 'widgets').byRef('shop', {kind: 'Widget', name: 'x'}) == nil
         |                     ^"#]];
    expected.assert_eq(&problems.join("\n"));
}

/// What is wrong with rules, each with its column.
#[track_caller]
fn check_mistakes(table: &[(&str, &str)]) {
    for (expression, expected) in table {
        // What is referred to does not matter here.
        let expression = expression.replace("$", "{kind: 'Service', name: 'x'}");
        let (_, problems) = rules(&pod_rule(&expression));
        let first: Vec<&str> = problems.iter().filter_map(|problem| problem.lines().next()).collect();
        let first: Vec<&str> = first.iter().map(|line| line.trim_start_matches("Error: rule r: rule: ")).collect();
        assert_eq!(first.join("\n"), *expected, "{expression}");
    }
}

#[test]
fn what_is_wrong_with_a_reference_is_told_where_it_is_written() {
    check_mistakes(&[
        (
            "cluster.any('services', 'deploymets').byRef('shop', $) == nil",
            "1:25: no kind is served as `deploymets`, did you mean `deployments`?",
        ),
        (
            "cluster.any('servces', 'deploymets').byRef('shop', $) == nil",
            "1:13: no kind is served as `servces`, did you mean `services`?\n1:24: no kind is served as `deploymets`, did you mean `deployments`?",
        ),
        (
            "cluster.any('services', 'services.core').byRef('shop', $) == nil",
            "1:25: `services.core` is written twice: leave one out",
        ),
        (
            "cluster.any().byRef('shop', $) == nil",
            r#"1:9: `any` needs every name that may be meant: write `any("NAME", …)`"#,
        ),
        (
            "cluster.any(['services']).byRef('shop', $) == nil",
            "1:13: the names of `any` are texts in quotes: leave the brackets out",
        ),
        (
            "cluster.any(metadata.name).byRef('shop', $) == nil",
            r#"1:22: the names of `any` are texts in quotes: write `any("NAME", …)`, because what is looked up must be known before the rule runs"#,
        ),
        (
            "cluster.any(kind='services').byRef('shop', $) == nil",
            "1:13: this takes no argument called `kind`: leave the name out",
        ),
        ("cluster.any('services').byRef($) == nil", "1:25: `services` are in namespaces: write byRef(ns, ref)"),
        ("cluster.any('services').byRef(ref=$) == nil", "1:25: `services` are in namespaces: write byRef(ns, ref)"),
        (
            "cluster.any('services').byRef('*', $) == nil",
            "1:25: a reference leads into one namespace: write byRef(metadata.namespace, ref), or byRef(ref.namespace ?? …, ref) for one that says its own",
        ),
        (
            "cluster.any('services').byRef('', $) == nil",
            "1:25: a reference leads into one namespace: write byRef(metadata.namespace, ref), or byRef(ref.namespace ?? …, ref) for one that says its own",
        ),
        (
            "cluster.any('services').byRef(7, $) == nil",
            "1:25: the namespace of `services` is text: write byRef(ns, ref)",
        ),
        (
            "cluster.any('services').byRef(metadata.labels.ns, $) == nil",
            "1:25: the namespace of `services` may be missing here: give it a value by `?? …`, or ask first by `… != nil && …`",
        ),
        (
            "cluster.any('services').byRef($, 'shop') == nil",
            "1:61: `ref` of `byRef` must be map, and this is string: write `byRef(ns, ref)`",
        ),
        (
            "cluster.any('services').byRef('shop', metadata.name) == nil",
            "1:48: `ref` of `byRef` must be map, and this is string: write `byRef(ns, ref)`",
        ),
        ("cluster.any('nodes').byRef('shop', $) == nil", "1:22: these kinds are in no namespace: write byRef(ref)"),
        (
            "cluster.any('nodes').byRef('a') == nil",
            "1:22: a reference is a map with a kind and a name: write byRef(ref)",
        ),
        ("cluster.any('nodes').byRef() == nil", "1:22: `byRef` needs the reference: write byRef(ref)"),
        (
            "cluster.any('services').byRef('shop', metadata.ownerReferences) == nil",
            "1:48: `ref` of `byRef` must be map, and this is array of object: write `any(metadata.ownerReferences, ….byRef(…, #) …)` to ask for each",
        ),
        (
            "any(spec.imagePullSecrets, cluster.any('secrets').byRef('shop', #) == nil)",
            "1:65: `#` has no `kind`, without which `byRef` cannot know what is meant: write `cluster.NAME.byName(…, .name)`",
        ),
        (
            "cluster.any('services').byRef('shop', {name: 'x'}) == nil",
            r#"1:39: `{name: "x"}` has no `kind`, without which `byRef` cannot know what is meant: write `{kind: …}`"#,
        ),
        (
            "cluster.fresh.any('services').byRef('shop', $) == nil",
            "1:31: `cluster.fresh` is no way to a kind: write cluster.<plural> or cluster.consistent.<plural>",
        ),
        (
            "cluster.any('services', 'deployments').byRef('shop', $).spec.replcas == 1",
            "1:89: ServiceSpec or DeploymentSpec has no field `replcas`, did you mean `replicas`?",
        ),
        (
            "!cluster.any('services').byRef('shop', $)",
            r#"1:1: `!` does not work with object: write `cluster.any("services").byRef("shop", {kind: "Service", name: "x"}) == nil`"#,
        ),
    ]);
}

#[test]
fn who_leaves_the_kinds_out_is_told_what_to_write() {
    check_mistakes(&[
        (
            "cluster.byRef(metadata.ownerReferences[0]) == nil",
            r#"1:9: `cluster` has no function `byRef`: write `cluster.any("NAME", …).byRef(ns, metadata.ownerReferences[0])`, with every NAME that may be meant"#,
        ),
        (
            "cluster.get(metadata.ownerReferences[0]) == nil",
            r#"1:9: `cluster` has no function `get`: write `cluster.any("NAME", …).byRef(ns, metadata.ownerReferences[0])`, with every NAME that may be meant"#,
        ),
        (
            "cluster.exists($)",
            r#"1:9: `cluster` has no function `exists`: write `cluster.any("NAME", …).byRef(ns, {kind: "Service", name: "x"}) != nil`, with every NAME that may be meant"#,
        ),
        (
            "cluster.deployments.byRef('shop', $) == nil",
            r#"1:21: `cluster` has no function `byRef`: write `cluster.any("deployments").byRef("shop", {kind: "Service", name: "x"})`"#,
        ),
        (
            "cluster.consistent.deployments.byRef('shop', $) == nil",
            r#"1:32: `cluster` has no function `byRef`: write `cluster.consistent.any("deployments").byRef("shop", {kind: "Service", name: "x"})`"#,
        ),
        (
            "cluster.any('deployments', 'statefulsets') == nil",
            r#"1:9: `cluster` has no function `any` alone: write `cluster.any("deployments", "statefulsets").byRef(ns, ref)`"#,
        ),
        (
            "cluster.any() == nil",
            r#"1:9: `cluster` has no function `any` alone: write `cluster.any("NAME", …).byRef(ns, ref)`"#,
        ),
        (
            "cluster.any('deployments').byName('shop', 'web') == nil",
            r#"1:28: `any(…)` has no function `byName`: write `cluster.deployments.byName("shop", "web")`"#,
        ),
        (
            "cluster.any('deployments', 'statefulsets').byName('shop', 'web') == nil",
            r#"1:44: `any(…)` has no function `byName`: write `(cluster.deployments.byName("shop", "web") ?? cluster.statefulsets.byName("shop", "web"))`"#,
        ),
        (
            "len(cluster.any('deployments', 'ingresses.networking.k8s.io').list('shop')) == 0",
            r#"1:63: `any(…)` has no function `list`: write `concat(cluster.deployments.list("shop"), cluster["ingresses.networking.k8s.io"].list("shop"))`"#,
        ),
        ("cluster.any('deployments').get('shop', $) == nil", "1:28: `any(…)` has no function `get`, it has `byRef`"),
        (
            "cluster.any('deployments').byref('shop', $) == nil",
            "1:28: `any(…)` has no function `byref`, did you mean `byRef`?",
        ),
        (
            "cluster.any == nil",
            r#"1:1: `cluster` can only be used as `cluster.NAME.byName(…)` or `cluster.NAME.list(…)` or `cluster.any("NAME", …).byRef(…)`"#,
        ),
        (
            "consistentCluster.consistent.any('deployments').byRef('shop', $) == nil",
            r#"1:49: `consistentCluster` can only be used as `consistentCluster.NAME.byName(…)` or `consistentCluster.NAME.list(…)` or `consistentCluster.any("NAME", …).byRef(…)`"#,
        ),
        (
            "cluster.all('deployments').byRef('shop', $) == nil",
            "1:9: `cluster` has no function `all`, it has `byName` and `list`",
        ),
    ]);
}

mod lookups;
mod references;
mod saw;

use expect_test::{Expect, expect};

use super::*;
use crate::{
    event::{Entry, Operation},
    kinds::{Kind, Kinds},
    language::ExprEngine,
    testing::{Objects, creation, judge, objects, rules, rules_with},
};

/// Compiles rules, judges an object by them, and compares what comes out.
#[track_caller]
fn check_in(cluster: &str, rule: &str, object: &str, expected: Expect) {
    let (rules, problems) = rules(rule);
    let cluster = Objects(objects(cluster));
    let mut lines = problems;
    lines.extend(objects(object).iter().map(|object| judge(&rules, object, &cluster)).filter(|text| !text.is_empty()));
    expected.assert_eq(&lines.join("\n"));
}

#[track_caller]
fn check(rule: &str, object: &str, expected: Expect) {
    check_in("", rule, object, expected);
}

fn pod_rule(expression: &str) -> String {
    format!("name: r\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: {expression:?}\n")
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop, labels: {app: api}}
spec:
  hostNetwork: true
  initContainers: [{name: setup, image: 'registry:5000/setup@sha256:abc'}]
  containers:
  - {name: app, image: nginx, securityContext: {privileged: true, seccompProfile: {type: Unconfined}}}
  - {name: side, image: 'ghcr.io/acme/side:1'}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {of: deployment}}
spec:
  template:
    metadata: {name: other, labels: {of: template}}
    spec: {containers: [{name: app, image: nginx, securityContext: {privileged: true}}]}
";

#[test]
fn a_rule_that_mentions_container_runs_for_each() {
    check(
        &pod_rule("container.securityContext.privileged == true"),
        POD,
        expect![
            "r: container app: securityContext.privileged is true (container app: securityContext.privileged is true)"
        ],
    );
    check(
        &pod_rule("container.image.tag == 'latest' || container.image.sha256 == 'abc'"),
        POD,
        expect![[r#"
            r: container app: image.tag is "latest" (container app: image.tag is "latest")
            r: container setup: image.sha256 is "abc" (container setup: image.sha256 is "abc")"#]],
    );
}

#[test]
fn a_rule_that_does_not_runs_once() {
    check(
        &pod_rule("spec.hostNetwork == true"),
        POD,
        expect!["r: spec.hostNetwork is true (spec.hostNetwork is true)"],
    );
    check(
        &pod_rule("any(spec.initContainers, .containerType == 'init' && .image.registry == 'registry:5000')"),
        POD,
        expect![[
            r#"r: spec.initContainers[0].image.registry is "registry:5000", spec.initContainers[0].containerType is "init" (spec.initContainers[0].image.registry is "registry:5000", spec.initContainers[0].containerType is "init")"#
        ]],
    );
}

#[test]
fn sugar_belongs_to_the_type() {
    check(
        &pod_rule("'Unconfined' in [container.securityContext.seccompProfileType, securityContext.seccompProfileType]"),
        POD,
        expect![[
            r#"r: container app: securityContext.seccompProfileType is "Unconfined" (container app: securityContext.seccompProfileType is "Unconfined")"#
        ]],
    );
}

#[test]
fn sugar_and_mistyped_fields_are_seen_through_functions_and_operators() {
    let all = "concat(spec.containers, spec.initContainers)";
    check(
        &pod_rule(&format!("any({all}, .image.registry == 'registry:5000' && .containerType == 'init')")),
        POD,
        expect![[
            r#"r: spec.initContainers[0].containerType is "init", spec.initContainers[0].image.registry is "registry:5000" (spec.initContainers[0].containerType is "init", spec.initContainers[0].image.registry is "registry:5000")"#
        ]],
    );
    check(
        &pod_rule("count(map(spec.containers, .securityContext), .seccompProfileType == 'Unconfined') == 1"),
        POD,
        expect![[r#"
            Warning: rule r: rule: 1:16: `spec.containers` leaves out init containers and ephemeral ones, and this rule says nothing of those: write `count(map(concat(spec.containers, spec.initContainers, spec.ephemeralContainers), .securityContext), .seccompProfileType == "Unconfined") == 1`, or ask `container`, which is each of them
             | count(map(spec.containers, .securityContext), .seccompProfileType == 'Unconfined') == 1
             |                ^
            r: spec.containers[0].securityContext.seccompProfileType is "Unconfined" (spec.containers[0].securityContext.seccompProfileType is "Unconfined")"#]],
    );
    check(
        &pod_rule("any(filter(spec.containers, .name != 'proxy'), .securityContext.privilged == true)"),
        POD,
        expect![[r#"
            Error: rule r: rule: 1:65: SecurityContext has no field `privilged`, did you mean `privileged`?
             | any(filter(spec.containers, .name != 'proxy'), .securityContext.privilged == true)
             |                                                                 ^"#]],
    );
}

#[test]
fn what_can_never_fit_is_told_when_a_rule_is_compiled() {
    check(
        &pod_rule("metadata.name"),
        POD,
        expect![[r#"
            Error: rule r: rule: 1:10: a rule must be true or false, and this is string: write `(metadata.name ?? "") != ""`, or `metadata.name != nil` to ask only whether it is there
             | metadata.name
             |          ^"#]],
    );
    let refused = |rule: &str, message: &str| {
        let (_, problems) = rules(&pod_rule(rule));
        assert!(problems.iter().any(|problem| problem.contains(message)), "{rule}: {problems:?}");
    };
    refused("len(cluster.pods.list(nil)) > 0", "the namespace of `pods` is text");
    refused("len(cluster.pods.list({app: 'x'})) > 0", "the namespace of `pods` is text");
    refused("len(cluster.pods.list('*', 'app=x')) > 0", "a selector is a map of labels, and this is text");
    refused("len(cluster.pods.list('*', 5)) > 0", "`selector` of `list` must be map, and this is int");
    refused("len(cluster.nodes.list('app=x')) > 0", "`nodes` are in no namespace");
    refused("cluster.pods.byName('shop', 1) == nil", "`name` of `byName` must be string, and this is int");
    refused("cluster.nodes.byName(nil) == nil", "`ns` of `byName` must be string, and this is nil");
    refused("selects('app=x', metadata.labels)", "`selector` of `selects` must be map, and this is string");
    for rule in [
        "len(cluster.pods.list('*', {app: 'x'})) > 0",
        "len(cluster.nodes.list({app: 'x'})) > 0",
        "any(cluster.services.list(metadata.namespace), selects(.spec.selector, metadata.labels))",
        "any(spec.topologySpreadConstraints, selects(.labelSelector, metadata.labels))",
    ] {
        assert_eq!(rules(&pod_rule(rule)).1, [""; 0], "{rule}");
    }
}

#[test]
fn sugar_on_an_object_that_is_not_typed_is_no_quiet_nil() {
    check_in(
        POD,
        &pod_rule("any(cluster.pods.list('shop')[0].spec.containers, .image.tag == 'latest')"),
        POD,
        expect![[r#"
            Error: rule r: rule: 1:58: a value that is string has no field `tag`: an image is plain text here, write `image(.image).tag`
             | any(cluster.pods.list('shop')[0].spec.containers, .image.tag == 'latest')
             |                                                          ^"#]],
    );
    check_in(
        POD,
        &pod_rule("any(cluster.pods.list('shop')[0].spec.containers, .containerType == 'init')"),
        POD,
        expect![[r#"
            Error: rule r: rule: 1:52: Container has no field `containerType`: it is worked out for what is judged alone, as in `container.containerType`
             | any(cluster.pods.list('shop')[0].spec.containers, .containerType == 'init')
             |                                                    ^"#]],
    );
}

#[test]
fn what_the_pod_says_does_not_read_like_what_its_container_says() {
    check(
        &pod_rule("container.name == 'app' && securityContext.runAsUser == container.securityContext.runAsUser"),
        POD,
        expect![[
            r#"r: container app: spec.securityContext.runAsUser is not set, securityContext.runAsUser is not set, name is "app" (container app: spec.securityContext.runAsUser is not set, securityContext.runAsUser is not set, name is "app")"#
        ]],
    );
}

#[test]
fn what_is_missing_is_empty_or_nil() {
    check(
        &pod_rule("'ALL' not in container.securityContext.capabilities.drop"),
        POD,
        expect![[r#"
            r: container app: securityContext.capabilities.drop is empty (container app: securityContext.capabilities.drop is empty)
            r: container side: securityContext.capabilities.drop is empty (container side: securityContext.capabilities.drop is empty)
            r: container setup: securityContext.capabilities.drop is empty (container setup: securityContext.capabilities.drop is empty)"#]],
    );
    check(
        &pod_rule("metadata.annotations.owner == nil"),
        POD,
        expect!["r: metadata.annotations.owner is not set (metadata.annotations.owner is not set)"],
    );
}

#[test]
fn a_typo_is_told_with_the_nearest_name() {
    check(
        &pod_rule("container.securityContext.privilged == true"),
        "",
        expect![[r#"
            Error: rule r: rule: 1:27: SecurityContext has no field `privilged`, did you mean `privileged`?
             | container.securityContext.privilged == true
             |                           ^"#]],
    );
}

#[test]
fn a_deployment_is_judged_as_the_pods_that_it_makes() {
    check(
        &pod_rule(
            "container.securityContext.privileged == true && metadata.labels.of == 'template' && metadata.name == 'web'",
        ),
        DEPLOYMENT,
        expect![[
            r#"r: container app: spec.template.metadata.labels.of is "template", securityContext.privileged is true, metadata.name is "web" (container app: spec.template.metadata.labels.of is "template", securityContext.privileged is true, metadata.name is "web")"#
        ]],
    );
    // A kind that is named has its own metadata.
    check(
        "name: r\nmatch: {gvk: [{group: apps, kind: Deployment}]}\nrule: metadata.labels.of == 'deployment' && container.name == 'app'",
        DEPLOYMENT,
        expect![[
            r#"r: container app: metadata.labels.of is "deployment", name is "app" (container app: metadata.labels.of is "deployment", name is "app")"#
        ]],
    );
    // Not what reads the object, and not what asks not to be.
    check(
        &pod_rule("object.kind != 'Pod'"),
        DEPLOYMENT,
        expect![
            "Warning: rule r: rule: a rule that reads `object` or `request` judges Pods and not what makes them, such as a Deployment: write it with `metadata`, `spec`, `securityContext` and `container`, or set `podControllers: false` to let Deployments pass"
        ],
    );
    check(
        "name: r\nmatch: {gvk: [{kind: Pod}], podControllers: false}\nrule: container.name == 'app'",
        DEPLOYMENT,
        expect![""],
    );
}

#[test]
fn a_message_shows_values() {
    let rule = pod_rule("container.securityContext.privileged == true");
    check(
        &format!(
            "{rule}message: '{{{{ container.name }}}} in {{{{ metadata.namespace }}}} is privileged: {{{{ spec.hostPID }}}}'"
        ),
        POD,
        expect!["r: app in shop is privileged: nil (container app: securityContext.privileged is true)"],
    );
}

#[test]
fn an_expression_of_a_message_may_have_braces_in_it() {
    let rule = pod_rule("container.securityContext.privileged == true");
    check(
        &format!("{rule}message: \"{{{{ '}}}}' + {{a: {{b: container.name}}}}.a.b }}}}!\""),
        POD,
        expect!["r: }}app! (container app: securityContext.privileged is true)"],
    );
}

#[test]
fn what_changes_a_running_pod_is_judged_as_the_pod() {
    let judged = |rule: &str, object: &str, subresource: Option<&str>| {
        let (rules, problems) = rules(rule);
        assert_eq!(problems, Vec::<String>::new());
        let object = objects(object).remove(0);
        let event = Event { operation: Operation::Update, subresource, ..creation(&object) };
        let evaluation = evaluate(&rules, &Objects(Vec::new()), &event, &Limits::default());
        evaluation.violations.into_iter().map(|violation| violation.message).collect::<Vec<_>>()
    };
    // The pod is in no cache: a lookup finds what the request has.
    let rule = pod_rule("cluster.pods.byName('shop', 'api').spec.hostNetwork");
    for subresource in [None, Some("ephemeralcontainers"), Some("resize")] {
        assert_eq!(judged(&rule, POD, subresource), ["pods[\"shop/api\"].spec.hostNetwork is true"], "{subresource:?}");
    }
    assert_eq!(judged(&rule, POD, Some("status")), [""; 0]);
    let named = "name: r\nmatch: {gvk: [{group: apps, kind: Deployment}]}\nrule: metadata.name == 'web'";
    assert_eq!(judged(named, DEPLOYMENT, None), [r#"metadata.name is "web""#]);
    assert_eq!(judged(named, DEPLOYMENT, Some("resize")), [""; 0]);
}

#[test]
fn a_rule_is_asked_by_one_entry_of_the_webhook_configuration() {
    let rule = |name: &str, version: &str| {
        let gvk = format!("{{group: autoscaling, kind: HorizontalPodAutoscaler, version: {version:?}}}");
        format!("name: {name}\nmatch: {{gvk: [{gvk}]}}\nrule: metadata.name == 'a'\n")
    };
    let (rules, problems) = rules(&[rule("any", "*"), rule("old", "v1"), rule("new", "v2")].join("---\n"));
    assert_eq!(problems, Vec::<String>::new());
    let judges = |entry, version| {
        let kind = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: shop}}";
        let object = objects(kind).remove(0);
        let event = Event { entry, version, ..creation(&object) };
        let evaluation = evaluate(&rules, &Objects(Vec::new()), &event, &Limits::default());
        evaluation.violations.into_iter().map(|violation| violation.rule.name).collect::<Vec<_>>()
    };
    assert_eq!(judges(None, "v1"), ["any", "old"]);
    let [any, pinned, ..] = Entry::ALL.map(Some);
    assert_eq!(judges(any, "v1"), ["any"]);
    assert_eq!(judges(any, "v2"), ["any"]);
    assert_eq!(judges(pinned, "v1"), ["old"]);
    assert_eq!(judges(pinned, "v2"), ["new"]);
}

#[test]
fn a_rule_stays_with_its_entry_when_its_kind_gets_or_loses_a_version() {
    let widget = |versions: &[&str]| Kind {
        group: "acme.io".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        versions: versions.iter().map(|version| (*version).to_owned()).collect(),
        namespaced: true,
        subresources: Vec::new(),
    };
    let rule = |name: &str, versions: &[&str]| {
        let kind = |version: &&str| format!("{{group: acme.io, kind: Widget, version: {version:?}}}");
        let kinds: Vec<String> = versions.iter().map(kind).collect();
        format!("name: {name}\nmatch: {{gvk: [{}]}}\nrule: metadata.name == 'a'\n", kinds.join(", "))
    };
    let object = objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}").remove(0);
    let [any, pinned, ..] = Entry::ALL.map(Some);
    let judges = |yaml: &str, served: &[&str], entry, version| {
        let kinds = Kinds::builtin().with([widget(served)]);
        let (rules, problems) = rules_with(yaml, &kinds, &ExprEngine);
        assert_eq!(problems, Vec::<String>::new());
        let kind = kinds.get("acme.io", "Widget").unwrap();
        let event = Event { entry, version, kind, ..creation(&object) };
        !evaluate(&rules, &Objects(Vec::new()), &event, &Limits::default()).violations.is_empty()
    };
    for served in [&["v1"][..], &["v1", "v2"], &["v2", "v1"]] {
        let one = rule("one", &["v1"]);
        assert!(judges(&one, served, pinned, "v1") && !judges(&one, served, any, "v1"), "{served:?}");
        let all = rule("any", &["*"]);
        assert!(judges(&all, served, any, "v1") && !judges(&all, served, pinned, "v1"), "{served:?}");
    }
    // Whichever of its versions was preferred when the configuration was made.
    let both = rule("both", &["v1", "v2"]);
    for served in [["v1", "v2"], ["v2", "v1"]] {
        assert!(judges(&both, &served, pinned, "v1") && judges(&both, &served, pinned, "v2"));
    }
}

#[test]
fn what_can_never_be_is_told_when_a_rule_is_compiled() {
    for (rule, expected) in [
        ("container.resources.limits.mem > '1Gi'", "1:28: no resource is called `mem`, did you mean `memory`?"),
        (
            "any(spec.containers, .resources.requests.CPU == nil)",
            "1:42: no resource is called `CPU`, did you mean `cpu`?",
        ),
        (
            "container.imagePullPolicy == 'always'",
            r#"1:30: this is never "always": it is "Always" or "IfNotPresent" or "Never", did you mean `Always`?"#,
        ),
        (
            "request.operation == 'DELETE'",
            r#"1:22: this is never "DELETE": `match.operations` ([CREATE, UPDATE], its default) leaves it out, write `operations: [CREATE, UPDATE, DELETE]`"#,
        ),
        (
            "request.operation in ['CREATE', 'CONNECT']",
            r#"1:33: this is never "CONNECT": `match.operations` ([CREATE, UPDATE], its default) leaves it out, write `operations: [CREATE, UPDATE, CONNECT]` and the `subresources`, such as exec"#,
        ),
        (
            "request.operation == 'Update'",
            r#"1:22: this is never "Update": by `match.operations` ([CREATE, UPDATE], its default) it is "CREATE" or "UPDATE", did you mean `UPDATE`?"#,
        ),
        ("object.kind == 'pod'", r#"1:16: this is never "pod": by `match.gvk` it is "Pod", did you mean `Pod`?"#),
        ("object.kind in ['Pod', 'Deployment']", r#"1:24: this is never "Deployment": by `match.gvk` it is "Pod""#),
        ("len(cluster.services.list('')) > 0", r#"1:22: no namespace is called "": write "*" for all namespaces"#),
    ] {
        let (_, problems) = rules(&pod_rule(rule));
        let problems: Vec<&str> = problems.iter().map(|problem| problem.lines().next().unwrap_or_default()).collect();
        assert_eq!(problems, [format!("Error: rule r: rule: {expected}")], "{rule}");
    }
}

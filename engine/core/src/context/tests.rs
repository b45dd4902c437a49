use std::collections::HashSet;

use expect_test::{Expect, expect};
use portal_expr::Object;

use super::*;
use crate::{
    kinds::Kinds,
    language::ExprEngine,
    testing::{Objects, judge, objects, rules, rules_with},
};

/// What is wrong with a rule for these kinds.
#[track_caller]
fn check(gvk: &str, rule: &str, expected: Expect) {
    let (_, problems) = rules(&rule_of(gvk, rule));
    expected.assert_eq(&problems.join("\n"));
}

/// Nothing is.
#[track_caller]
fn check_good(gvk: &str, rule: &str) {
    let (_, problems) = rules(&rule_of(gvk, rule));
    assert!(problems.is_empty(), "{problems:?}");
}

fn rule_of(gvk: &str, rule: &str) -> String {
    format!("name: r\nmatch: {{gvk: [{gvk}]}}\nrule: {rule:?}\n")
}

/// What is known of a field of one kind.
#[track_caller]
fn check_known(kind: &str, path: &str, expected: &str) {
    assert_eq!(known(kind, path), expected, "{path} of {kind}");
}

fn known(kind: &str, path: &str) -> String {
    let kind = Kinds::builtin().iter().find(|candidate| candidate.kind == kind).unwrap();
    let judged = Judged {
        kinds: &[(kind, &[])],
        has_other_bodies: false,
        has_pods: kind.kind == "Pod",
        sees_pods: kind.kind == "Pod",
        operations: &Operation::ALL,
        subresources: &[],
        names_request: true,
    };
    let schema = schema(judged);
    let mut names = path.split('.');
    let root = schema.root(names.next().unwrap()).unwrap();
    let (mut shape, mut is_required) = (&root.shape, root.required);
    for name in names {
        let object = match shape {
            Shape::Object(id) => *id,
            Shape::List { element, .. } => match &**element {
                Shape::Object(id) => *id,
                other => panic!("{name} of {other:?}"),
            },
            other => panic!("{name} of {other:?}"),
        };
        let Some(field) = schema.object(object).fields.get(name) else { return "unknown".to_owned() };
        (shape, is_required) = (&field.shape, field.required);
    }
    let text = match shape {
        Shape::Word(words) => words.listed.join("|"),
        Shape::Object(id) => schema.object(*id).name.clone(),
        other => format!("{other:?}"),
    };
    if is_required { format!("{text}, required") } else { text }
}

/// Every object that can be reached from these.
fn reached(types: &Types, from: impl IntoIterator<Item = ObjectId>) -> Vec<&Object> {
    fn id_of(shape: &Shape) -> Option<ObjectId> {
        match shape {
            Shape::Object(id) => Some(*id),
            Shape::List { element: inner, .. } | Shape::Map { value: inner, .. } => id_of(inner),
            _ => None,
        }
    }
    let mut open: Vec<ObjectId> = from.into_iter().collect();
    let mut ids = HashSet::new();
    while let Some(id) = open.pop() {
        if ids.insert(id) {
            open.extend(types.schema.object(id).fields.values().filter_map(|field| id_of(&field.shape)));
        }
    }
    ids.into_iter().map(|id| types.schema.object(id)).collect()
}

const DEPLOYMENT: &str = "{group: apps, kind: Deployment}";
const AUTOSCALER: &str = "group: autoscaling, kind: HorizontalPodAutoscaler";

#[test]
fn a_typo_below_object_is_an_error_with_the_nearest_name() {
    check(
        DEPLOYMENT,
        "object.spec.stategy.type == 'Recreate'",
        expect![[r#"
        Error: rule r: rule: 1:13: DeploymentSpec has no field `stategy`, did you mean `strategy`?
         | object.spec.stategy.type == 'Recreate'
         |             ^"#]],
    );
    check(
        "{kind: Service}",
        "any(object.spec.ports, .nodeport != nil)",
        expect![[r#"
        Error: rule r: rule: 1:25: ServicePort has no field `nodeport`, did you mean `nodePort`?
         | any(object.spec.ports, .nodeport != nil)
         |                         ^"#]],
    );
    check(
        "{kind: Service}",
        "request.oldObject.spec.clusterIp != request.object.spec.clusterIP",
        expect![[r#"
        Error: rule r: rule: 1:24: ServiceSpec has no field `clusterIp`, did you mean `clusterIP`?
         | request.oldObject.spec.clusterIp != request.object.spec.clusterIP
         |                        ^"#]],
    );
    check(
        "{kind: ConfigMap}",
        "object.metadata.label.app == 'a'",
        expect![[r#"
        Error: rule r: rule: 1:17: ObjectMeta has no field `label`, did you mean `labels`?
         | object.metadata.label.app == 'a'
         |                 ^"#]],
    );
    check_good("{kind: ConfigMap}", "object.data.anything == 'a' && object.metadata.labels.app == 'a'");
}

#[test]
fn of_several_kinds_a_field_must_be_one_of_theirs() {
    let kinds = "{group: apps, kind: Deployment}, {kind: Service}";
    check_good(kinds, "object.spec.replicas == 1 || object.spec.type == 'NodePort'");
    check(
        kinds,
        "object.spec.replica == 1",
        expect![[r#"
        Error: rule r: rule: 1:13: DeploymentSpec or ServiceSpec has no field `replica`, did you mean `replicas`?
         | object.spec.replica == 1
         |             ^"#]],
    );
    check(
        kinds,
        "object.metadata.nam == 'a'",
        expect![[r#"
        Error: rule r: rule: 1:17: ObjectMeta has no field `nam`, did you mean `name`?
         | object.metadata.nam == 'a'
         |                 ^"#]],
    );
    check(
        kinds,
        "request.operaton == 'CREATE'",
        expect![[r#"
        Error: rule r: rule: 1:9: request has no field `operaton`, did you mean `operation`?
         | request.operaton == 'CREATE'
         |         ^"#]],
    );
}

#[test]
fn the_fields_of_a_pinned_version_are_those_of_that_version() {
    let rule = "object.spec.targetCPUUtilizationPercentage == 80";
    check_good(&format!("{{{AUTOSCALER}}}"), rule);
    check_good(&format!("{{{AUTOSCALER}, version: v1}}"), rule);
    check(
        &format!("{{{AUTOSCALER}, version: v2}}"),
        rule,
        expect![[r#"
        Error: rule r: rule: 1:13: autoscaling/v2/HorizontalPodAutoscalerSpec has no field `targetCPUUtilizationPercentage`
         | object.spec.targetCPUUtilizationPercentage == 80
         |             ^"#]],
    );
    check(
        &format!("{{{AUTOSCALER}}}"),
        "object.spec.metric == nil",
        expect![[r#"
        Error: rule r: rule: 1:13: autoscaling/v2/HorizontalPodAutoscalerSpec or autoscaling/v1/HorizontalPodAutoscalerSpec has no field `metric`, did you mean `metrics`?
         | object.spec.metric == nil
         |             ^"#]],
    );
}

#[test]
fn a_custom_kind_among_those_that_are_judged_leaves_the_object_untyped() {
    let widget = Kind {
        group: "example.com".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        versions: vec!["v1".to_owned()],
        namespaced: true,
        subresources: Vec::new(),
    };
    let kinds = Kinds::builtin().with([widget]);
    for gvk in ["{group: example.com, kind: Widget}", "{kind: Service}, {group: example.com, kind: Widget}"] {
        let (_, problems) = rules_with(&rule_of(gvk, "object.spec.nodeport == nil"), &kinds, &ExprEngine);
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn a_version_that_is_served_and_not_in_the_table_leaves_the_object_untyped() {
    let deployment = Kinds::builtin().get("apps", "Deployment").unwrap();
    let kinds = Kinds::builtin().with([Kind { versions: vec!["v7".to_owned()], ..Kind::clone(deployment) }]);
    let (_, problems) = rules_with(&rule_of(DEPLOYMENT, "object.spec.stategy == nil"), &kinds, &ExprEngine);
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn more_kinds_than_the_language_keeps_apart_leave_the_object_untyped() {
    let kinds: Vec<String> = Kinds::builtin()
        .iter()
        .filter(|kind| kind.kind != "Event")
        .take(9)
        .map(|kind| format!("{{kind: {}}}", kind.kind))
        .collect();
    check_good(&kinds.join(", "), "object.spec.nodeport == nil");
    check(
        &kinds[..8].join(", "),
        "object.spec.nodeport == nil",
        expect![[r#"
            Error: rule r: rule: 1:13: LimitRangeSpec or NamespaceSpec or NodeSpec or PersistentVolumeSpec has no field `nodeport`
             | object.spec.nodeport == nil
             |             ^"#]],
    );
}

#[test]
fn what_a_subresource_has_of_its_own_is_untyped() {
    let of = |subresource: &str| {
        format!(
            "name: r\nmode: [admission]\nmatch: {{gvk: [{{kind: Pod}}], operations: [CREATE, UPDATE, CONNECT], \
             subresources: [{subresource}]}}\nrule: object.comand == nil\n"
        )
    };
    assert_eq!(rules(&of("exec")).1, [""; 0]);
    expect![[r#"
        Error: rule r: rule: 1:8: Pod has no field `comand`
         | object.comand == nil
         |        ^"#]]
    .assert_eq(&rules(&of("status")).1.join("\n"));
}

#[test]
fn below_object_nothing_is_computed() {
    check(
        "{kind: Pod}",
        "any(object.spec.containers, .containerType == 'init')",
        expect![[r#"
            Error: rule r: rule: 1:30: Container has no field `containerType`: it is worked out for what is judged alone, as in `container.containerType`
             | any(object.spec.containers, .containerType == 'init')
             |                              ^"#]],
    );
    check(
        "{kind: Pod}",
        "any(object.spec.containers, .image.tag == 'latest')",
        expect![[r#"
            Error: rule r: rule: 1:36: a value that is string has no field `tag`: an image is plain text here, write `image(.image).tag`
             | any(object.spec.containers, .image.tag == 'latest')
             |                                    ^"#]],
    );
    check(
        DEPLOYMENT,
        "object.spec.template.spec.securityContext.seccompProfileType == nil",
        expect![[r#"
        Error: rule r: rule: 1:43: PodSecurityContext has no field `seccompProfileType`, did you mean `seccompProfile`?
         | object.spec.template.spec.securityContext.seccompProfileType == nil
         |                                           ^"#]],
    );
    let types = &*TYPES;
    let kinds = Kinds::builtin().iter().flat_map(|kind| {
        kind.versions.iter().map(|version| types.of(&kind.group, version, &kind.kind).unwrap().request)
    });
    let computed = |object: &&&Object| object.fields.values().any(|field| field.computed.is_some());
    assert_eq!(reached(types, kinds).iter().filter(computed).count(), 0);
}

#[test]
fn below_the_roots_of_a_pod_every_container_has_what_is_computed() {
    let pod = TYPES.pod;
    let objects = reached(&TYPES, [pod.spec, pod.container, pod.security_context]);
    let of = |name: &str| objects.iter().filter(|object| object.name == name).count();
    assert_eq!((of("PodSpec"), of("Container"), of("EphemeralContainer")), (1, 1, 0));
    assert_eq!((of("SecurityContext"), of("PodSecurityContext")), (1, 1));
    check_good("{kind: Pod}", "any(spec.ephemeralContainers, .targetContainerName == 'a' && .containerType == 'init')");
}

#[test]
fn what_is_computed_is_there_for_containers_that_came_together_with_others() {
    let both = "concat(spec.containers, object.spec.template.spec.containers)";
    check_good(DEPLOYMENT, &format!("any({both}, .image.tag == 'latest')"));
    check_good(DEPLOYMENT, "request.oldObject.spec.template.spec != spec && request.oldObject.metadata != metadata");
}

#[test]
fn every_kind_of_kubernetes_has_a_type() {
    for kind in Kinds::builtin().iter() {
        for version in &kind.versions {
            assert!(TYPES.of(&kind.group, version, &kind.kind).is_some(), "{version} of {kind:?}");
        }
    }
}

#[test]
fn it_is_known_what_every_object_has() {
    check_known("Deployment", "object", "Deployment, required");
    check_known("Deployment", "object.spec", "DeploymentSpec");
    check_known("Deployment", "object.spec.template", "PodTemplateSpec, required");
    check_known("Deployment", "object.spec.template.metadata.name", "Text");
    check_known("Deployment", "object.metadata.name", "Text, required");
    check_known("Deployment", "object.metadata.namespace", "Text, required");
    check_known("Deployment", "metadata", "ObjectMeta, required");
    check_known("Deployment", "metadata.namespace", "Text, required");
    check_known("Node", "object.metadata.name", "Text, required");
    check_known("Node", "metadata.namespace", "Text");
    check_known("TokenReview", "metadata.name", "Text");
    check_known("TokenReview", "object.metadata.name", "Text");
    check_known("Pod", "request", "request, required");
    check_known("Pod", "request.object", "Pod");
    check_known("Pod", "request.userInfo.username", "Text, required");
    check_known("Pod", "container.name", "Text, required");
    check_known("Pod", "spec", "PodSpec, required");
    check_known("Pod", "securityContext", "PodSecurityContext");
}

#[test]
fn it_is_known_which_words_a_field_can_be() {
    check_known("Deployment", "object.apiVersion", "apps/v1, required");
    check_known("Deployment", "object.kind", "Deployment, required");
    check_known("Deployment", "object.spec.strategy.type", "Recreate|RollingUpdate");
    check_known("Pod", "container.imagePullPolicy", "Always|IfNotPresent|Never");
    check_known("Pod", "container.containerType", "standard|init|ephemeral, required");
    check_known("Pod", "securityContext.seccompProfileType", "Localhost|RuntimeDefault|Unconfined");
    check_known("Pod", "request.operation", "CREATE|UPDATE|DELETE|CONNECT, required");
}

#[test]
fn it_is_known_what_an_amount_is() {
    check_known("Pod", "container.resources.limits", &format!("{:?}", Shape::map(Shape::Quantity)));
    check_known("Pod", "spec.volumes.emptyDir.sizeLimit", &format!("{:?}", Shape::Quantity));
    check_known("Service", "object.spec.ports.targetPort", "OneOf([Int, Text])");
}

#[test]
fn lists_and_maps_below_object_are_empty_when_they_are_missing() {
    let (rules, problems) = rules(&rule_of(
        "{group: networking.k8s.io, kind: Ingress}",
        "len(object.spec.tls) == 0 && len(object.metadata.annotations) == 0",
    ));
    assert_eq!(problems, [""; 0]);
    let ingress = objects("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {}}");
    expect![
        "r: metadata.annotations is not set, spec.tls is not set (metadata.annotations is not set, spec.tls is not set)"
    ]
    .assert_eq(&judge(&rules, &ingress[0], &Objects(Vec::new())));
}

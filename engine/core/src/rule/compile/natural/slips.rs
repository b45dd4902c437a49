//! What somebody writes who knows another language, or Kubernetes by heart, and nothing of this one.

use super::{DEPLOYMENT, POLICY, check, check_judged, check_silent, check_warned, told};

const CRD: &str = "{group: apiextensions.k8s.io, kind: CustomResourceDefinition}";
const HPA: &str = "{group: autoscaling, kind: HorizontalPodAutoscaler}";
const ROLE: &str = "{group: rbac.authorization.k8s.io, kind: ClusterRole}";

fn pod(spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i}}], {spec}}}}}"
    )
}

#[test]
fn a_thing_that_is_one_of_several_is_told_where_the_others_are_meant_too() {
    check_warned(
        "{kind: Pod}",
        &[
            (
                r#"any(spec.volumes, .csi.driver not in ["a", "b"])"#,
                r#"`.csi != nil && .csi.driver not in ["a", "b"]`"#,
            ),
            (r#"any(spec.volumes, .hostPath.path != "/x")"#, r#"`(.hostPath == nil || .hostPath.path != "/x")`"#),
            (
                r#"any(spec.volumes, not (.hostPath.type == "File"))"#,
                r#"`(.hostPath == nil || .hostPath.type == "File")`"#,
            ),
            ("any(spec.volumes, .emptyDir.medium == nil)", "`.emptyDir != nil && .emptyDir.medium == nil`"),
            (
                r#"any(container.env, .valueFrom.secretKeyRef.name != "a")"#,
                r#"`.valueFrom.secretKeyRef != nil && .valueFrom.secretKeyRef.name != "a"`"#,
            ),
            (
                r#"container.livenessProbe.httpGet.path != "/healthz""#,
                r#"`container.livenessProbe.httpGet != nil && container.livenessProbe.httpGet.path != "/healthz"`"#,
            ),
            (r#"not all(spec.volumes, .csi.driver == "a")"#, r#"`(.csi == nil || .csi.driver == "a")`"#),
        ],
    );
    check_warned(HPA, &[(r#"any(object.spec.metrics, .resource.name != "cpu")"#, "`.resource != nil && ")]);
    check_warned(
        POLICY,
        &[(
            r#"any(object.spec.egress, .to != nil && any(.to, .ipBlock.cidr != "10.0.0.0/8"))"#,
            "`.ipBlock != nil && ",
        )],
    );
    check_silent(
        "{kind: Pod}",
        &[
            r#"any(spec.volumes, .csi != nil && .csi.driver not in ["a", "b"])"#,
            r#"any(spec.volumes, .csi.driver == "a")"#,
            r#"any(spec.volumes, .csi.driver startsWith "a")"#,
            "any(spec.volumes, .hostPath != nil)",
            "any(filter(spec.volumes, .csi != nil), .csi.driver != \"a\")",
            r#"any(spec.volumes, (.csi.driver ?? "a") != "a")"#,
        ],
    );
    let (other, bad, good) = (
        pod("volumes: [{name: v, emptyDir: {}}]"),
        pod("volumes: [{name: v, csi: {driver: z}}]"),
        pod("volumes: [{name: v, csi: {driver: a}}]"),
    );
    let rule = r#"any(spec.volumes, .csi != nil && .csi.driver not in ["a"])"#;
    check_judged("{kind: Pod}", rule, &[(&other, false), (&bad, true), (&good, false)]);
}

#[test]
fn a_container_that_says_otherwise_does_not_hide_behind_its_pod() {
    let own = "(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot)";
    check_warned(
        "{kind: Pod}",
        &[
            (
                "!(container.securityContext.runAsNonRoot || securityContext.runAsNonRoot)",
                &format!("write `{own}` in place"),
            ),
            (
                "container.securityContext.runAsNonRoot != true && spec.securityContext.runAsNonRoot != true",
                &format!("write `{own} != true` in place"),
            ),
            (
                "not (container.securityContext.runAsNonRoot == true or securityContext.runAsNonRoot == true)",
                &format!("write `{own} == true` in place"),
            ),
        ],
    );
    check_silent(
        "{kind: Pod}",
        &[
            "(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot) != true",
            "container.securityContext.runAsUser == 0 || securityContext.runAsUser == 0",
            "container.securityContext.seccompProfile == nil && securityContext.seccompProfile == nil",
        ],
    );
    let told = told("gvk: [{kind: Pod}]", "!spec?.securityContext?.runAsNonRoot");
    assert!(
        told.contains("write `!(container.securityContext.runAsNonRoot ?? spec.securityContext.runAsNonRoot)`"),
        "{told}"
    );
}

#[test]
fn what_nobody_has_in_a_list_is_told_with_what_they_have() {
    check_warned(
        "{kind: Pod}",
        &[
            (r#""CAP_SYS_ADMIN" in container.securityContext.capabilities.add"#, r#"put `"SYS_ADMIN"` in its place"#),
            (
                r#"any(container.securityContext.capabilities.add, # not in ["CAP_NET_BIND_SERVICE"])"#,
                r#"put `"NET_BIND_SERVICE"` in its place"#,
            ),
        ],
    );
    check_warned(
        ROLE,
        &[
            (r#"any(object.rules, "Secret" in .resources)"#, r#"put `"secrets"` in its place"#),
            (r#"any(object.rules, let r = #; any(["pods", "Job"], # in r.resources))"#, r#"put `"jobs"` in its place"#),
            (r#"any(object.rules, "write" in .verbs)"#, r#"put `"update"` in its place"#),
            (r#"any(object.rules, "apps/v1" in .apiGroups)"#, r#"put `"apps"` in its place"#),
        ],
    );
    check_warned(
        "{kind: Pod}",
        &[(r#"any(metadata.ownerReferences, .kind == "replicaset")"#, r#"put `"ReplicaSet"` in its place"#)],
    );
    check_warned(
        HPA,
        &[(r#"object.spec.scaleTargetRef.kind in ["deployments"]"#, r#"put `"Deployment"` in its place"#)],
    );
    check_silent(HPA, &[r#"object.spec.scaleTargetRef.kind in ["Deployment", "Rollout"]"#]);
}

#[test]
fn texts_of_conditions_and_of_templates_are_told() {
    check(
        "{kind: Node}",
        &[
            (r#"any(object.status.conditions, .type == "Ready" && .status == true)"#, r#"`.status == "True"`"#),
            (r#"any(object.status.conditions, .type == "Ready" && .status != "true")"#, "did you mean `True`?"),
        ],
    );
    check_warned("{kind: Pod}", &[("metadata.name == `${metadata.namespace}-x`", r#"`metadata.namespace + "-x"`"#)]);
    check_silent("{kind: Pod}", &[r#"container.image == "${IMAGE}""#]);
    check_warned(
        "{kind: Pod}",
        &[
            (r#"split(container.image, ":")[1] == "latest""#, "`container.image.tag`"),
            (r#"split(container.image, "/")[0] != "ghcr.io""#, "`container.image.registry`"),
            (
                r#"container.securityContext.procMount != "Default""#,
                r#"`(container.securityContext.procMount ?? "Default") != "Default"`"#,
            ),
        ],
    );
    check_silent("{kind: Pod}", &[r#"last(split(container.image.name, "/")) == "app""#]);
}

#[test]
fn a_list_in_a_list_is_told_as_its_elements() {
    check(
        DEPLOYMENT,
        &[
            (
                r#"["app", "team"] in keys(metadata.labels)"#,
                r#"`all(["app", "team"], # in keys(metadata.labels))` if all"#,
            ),
            (r#"keys(metadata.labels) not in ["app"]"#, r#"`any(keys(metadata.labels), # not in ["app"])` if one"#),
            (
                r#"not (container.image startsWith ["ghcr.io/", "quay.io/"])"#,
                r#"`any(["ghcr.io/", "quay.io/"], container.image startsWith #)`"#,
            ),
        ],
    );
    check(
        "{kind: Service}",
        &[
            ("map(object.spec.ports, .port) in [80, 443]", "`any(object.spec.ports, .port in [80, 443])`"),
            ("object.spec.ports[*].port in [80, 443]", "`map(object.spec.ports, .port) in [80, 443]`"),
        ],
    );
}

#[test]
fn the_projections_of_jmespath_are_told_as_what_goes_through_lists() {
    check(
        "{group: networking.k8s.io, kind: Ingress}",
        &[
            (
                r#"object.spec.rules[*].http.paths[*].path == "/""#,
                r#"`"/" in map(flatten(map(object.spec.rules, .http.paths)), .path)`"#,
            ),
            (
                r#"any(object.spec.rules[*].http.paths[*], .path == "/admin")"#,
                r#"`any(flatten(map(object.spec.rules, .http.paths)), .path == "/admin")`"#,
            ),
            ("length(object.spec.rules[].http.paths[]) > 3", "`len(flatten(map(object.spec.rules, .http.paths))) > 3`"),
        ],
    );
    check(
        "{kind: Pod}",
        &[
            (
                "any(spec.containers[*].ports[*], .hostPort != nil)",
                "`any(flatten(map(spec.containers, .ports)), .hostPort != nil)`",
            ),
            (r#"contains(spec.containers[*].image, "nginx")"#, r#"`"nginx" in map(spec.containers, .image)`"#),
        ],
    );
    let path = |path: &str| {
        format!(
            "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: i}}, spec: {{rules: [{{host: a}}, {{host: b, http: {{paths: \
             [{{path: {path}, pathType: Prefix, backend: {{service: {{name: s, port: {{number: 80}}}}}}}}]}}}}]}}}}"
        )
    };
    let rule = r#"any(flatten(map(object.spec.rules, .http.paths)), .path == "/admin")"#;
    check_judged("{group: networking.k8s.io, kind: Ingress}", rule, &[(&path("/admin"), true), (&path("/"), false)]);
}

#[test]
fn sentences_of_other_languages_are_told_as_one_condition() {
    check(
        "{kind: Pod}",
        &[
            ("typeof spec.priorityClassName === 'undefined'", "`spec.priorityClassName == nil`"),
            ("typeof spec.priorityClassName !== \"undefined\"", "`spec.priorityClassName != nil`"),
            (r#"for c in spec.containers: c.image == "x""#, r#"`any(spec.containers, .image == "x")`"#),
            (
                r#"if container.image.tag == "latest" then true else false"#,
                r#"container.image.tag == "latest" ? true : false`"#,
            ),
            (r#"deny container.image.tag == "latest""#, r#"`container.image.tag == "latest"`"#),
            (
                "cluster.namespaces[metadata.namespace].metadata.labels.a == nil",
                "`cluster.namespaces.byName(metadata.namespace)`",
            ),
        ],
    );
}

#[test]
fn a_host_that_is_empty_is_asked_for_where_it_is_missing() {
    let kind = "{group: networking.k8s.io, kind: Ingress}";
    let told = told(&format!("gvk: [{kind}]"), r#"object.spec.rules != nil && any(object.spec.rules, .host == "")"#);
    assert_eq!(told, "");
}

#[test]
fn words_that_kubernetes_checks_and_does_not_describe_are_told() {
    check(
        CRD,
        &[
            (
                r#"object.spec.conversion.strategy == "webhook""#,
                r#"it is "None" or "Webhook", did you mean `Webhook`?"#,
            ),
            (r#"object.spec.scope != "cluster""#, "did you mean `Cluster`?"),
            (r#"any(object.spec.versions, .schema.openAPIV3Schema.type != "Object")"#, "did you mean `object`?"),
        ],
    );
    check(
        HPA,
        &[
            (r#"any(object.spec.metrics, .type == "resource")"#, "did you mean `Resource`?"),
            (r#"object.spec.behavior.scaleDown.selectPolicy == "disabled""#, "did you mean `Disabled`?"),
        ],
    );
    check("{kind: Pod}", &[(r#"spec.os.name == "Windows""#, "did you mean `windows`?")]);
    check(
        "{group: policy, kind: PodDisruptionBudget}",
        &[(r#"any(object.spec.selector.matchExpressions, .operator == "notin")"#, "did you mean `NotIn`?")],
    );
    check_warned(
        "{kind: Secret}",
        &[
            (r#"object.type == "opaque""#, r#"put `"Opaque"` in its place"#),
            (r#"object.type == "tls""#, r#"put `"kubernetes.io/tls"` in its place"#),
        ],
    );
    check_warned(
        "{kind: Node}",
        &[
            (r#"any(object.status.conditions, .type == "ready")"#, r#"put `"Ready"` in its place"#),
            (r#"object.status.nodeInfo.architecture == "x86_64""#, r#"put `"amd64"` in its place"#),
        ],
    );
    check_warned(
        "{kind: Pod}",
        &[(r#"any(spec.volumes, .emptyDir.medium == "memory")"#, r#"put `"Memory"` in its place"#)],
    );
    check_silent(CRD, &[r#"object.spec.conversion.strategy == "Webhook""#]);
    let definition = |strategy: &str| {
        format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: a.b.c}}, spec: {{group: b.c, scope: \
             Cluster, names: {{kind: A, plural: a}}, versions: [], conversion: {{strategy: {strategy}}}}}}}"
        )
    };
    let rule = r#"object.spec.conversion.strategy == "Webhook""#;
    check_judged(CRD, rule, &[(&definition("Webhook"), true), (&definition("None"), false)]);
}

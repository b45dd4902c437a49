//! What people are told that a rule saw: which field of their object decided.

use super::{DEPLOYMENT, POD, pod_rule};
use crate::{
    evaluate::evaluate,
    testing::{Objects, creation, objects, rules},
};
use portal_expr::Limits;

/// What rules say that they saw, with an object each.
#[track_caller]
fn check(cluster: &str, table: &[(&str, &str, &str)]) {
    let cluster = Objects(objects(cluster));
    for (rule, object, expected) in table {
        let (rules, problems) = rules(rule);
        assert_eq!(problems, [""; 0], "{rule}");
        let object = objects(object).remove(0);
        let evaluation = evaluate(&rules, &cluster, &creation(&object), &Limits::default());
        let said: Vec<String> = evaluation.violations.into_iter().filter_map(|violation| violation.saw).collect();
        assert_eq!(said.join("\n"), *expected, "{rule}");
    }
}

fn deployment_rule(expression: &str) -> String {
    format!("name: r\nmatch: {{gvk: [{{group: apps, kind: Deployment}}]}}\nrule: {expression:?}\n")
}

const CRON_JOB: &str = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: shop}
spec: {schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: {hostNetwork: true, containers: [{name: app, image: nginx}]}}}}}
";

#[test]
fn a_field_is_called_by_where_it_is_in_the_object() {
    check(
        "",
        &[
            (&pod_rule("spec.hostNetwork"), POD, "spec.hostNetwork is true"),
            (&pod_rule("spec.hostNetwork"), CRON_JOB, "spec.jobTemplate.spec.template.spec.hostNetwork is true"),
            (
                "name: r\nmatch: {gvk: [{kind: Pod}], podControllers: false}\nrule: object.spec.hostNetwork",
                POD,
                "spec.hostNetwork is true",
            ),
            (
                &pod_rule("securityContext.fsGroup == nil"),
                DEPLOYMENT,
                "spec.template.spec.securityContext.fsGroup is not set",
            ),
            (
                &pod_rule("(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot) != true"),
                DEPLOYMENT,
                "container app: securityContext.runAsNonRoot is not set, spec.template.spec.securityContext.runAsNonRoot is not set",
            ),
            (&pod_rule("metadata.labels.team == nil"), DEPLOYMENT, "spec.template.metadata.labels.team is not set"),
            (&deployment_rule("metadata.labels.team == nil"), DEPLOYMENT, "metadata.labels.team is not set"),
            (&deployment_rule("object.spec.minReadySeconds == nil"), DEPLOYMENT, "spec.minReadySeconds is not set"),
            // A pod gets its name from its owner, and not from the template.
            (&pod_rule("metadata.name == 'web'"), DEPLOYMENT, r#"metadata.name is "web""#),
        ],
    );
}

#[test]
fn what_an_object_is_comes_last_or_not_at_all() {
    check(
        "",
        &[
            (
                &pod_rule("container.livenessProbe == nil && container.containerType == 'init'"),
                POD,
                "container setup: livenessProbe is not set",
            ),
            (&pod_rule("container.containerType == 'init'"), POD, r#"container setup: containerType is "init""#),
            (
                &pod_rule("spec.hostNetwork && not (metadata.namespace startsWith 'kube-')"),
                POD,
                r#"spec.hostNetwork is true, metadata.namespace is "shop""#,
            ),
            (
                &pod_rule(
                    "spec.os.name != 'windows' && container.securityContext.allowPrivilegeEscalation != false && container.name == 'app'",
                ),
                POD,
                r#"container app: securityContext.allowPrivilegeEscalation is not set, name is "app""#,
            ),
        ],
    );
}

#[test]
fn what_is_missing_comes_before_a_name_that_only_had_to_be_another_one() {
    let namespace =
        |labels: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{{labels}}}}}\n");
    let level = "pod-security.kubernetes.io/enforce";
    let rule = |expression: &str| format!("name: r\nmatch: {{gvk: [{{kind: Namespace}}]}}\nrule: {expression:?}\n");
    let of_namespaces =
        |guard: &str| rule(&format!("metadata.labels['{level}'] not in ['baseline', 'restricted'] and {guard}"));
    let (none, privileged) = (namespace(""), namespace(&format!("{level}: privileged")));
    let missing = format!("metadata.labels[{level:?}] is not set, metadata.name is \"shop\"");
    let other = format!("metadata.labels[{level:?}] is \"privileged\", metadata.name is \"shop\"");
    for guard in [
        "not (metadata.name startsWith 'kube-')",
        "metadata.name not startsWith 'kube-'",
        "not (metadata.name matches '^kube-')",
        "not glob(metadata.name, 'kube-*')",
        "metadata.name not in ['kube-system']",
        "metadata.name != 'kube-system'",
    ] {
        check("", &[(&of_namespaces(guard), &none, &missing), (&of_namespaces(guard), &privileged, &other)]);
    }
}

#[test]
fn what_counts_as_something_else_is_told_with_that() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\nspec: {ports: [{port: 80}]}\n";
    let of_service = |rule: &str| format!("name: r\nmatch: {{gvk: [{{kind: Service}}]}}\nrule: {rule:?}\n");
    check(
        "",
        &[
            (&deployment_rule("object.spec.replicas < 2"), DEPLOYMENT, "spec.replicas is not set, which counts as 1"),
            (
                &pod_rule("(spec.priority ?? 0) < 2"),
                DEPLOYMENT,
                "spec.template.spec.priority is not set, which counts as 0",
            ),
            (
                &of_service("object.spec.type == 'ClusterIP' && any(object.spec.ports, .protocol == 'TCP')"),
                service,
                r#"spec.ports[0].protocol is not set, which counts as "TCP", spec.type is not set, which counts as "ClusterIP""#,
            ),
            (
                &pod_rule("(metadata.labels.team ?? '') == ''"),
                DEPLOYMENT,
                "spec.template.metadata.labels.team is not set",
            ),
            (
                &pod_rule("(spec.hostNetwork ?? false) == false"),
                DEPLOYMENT,
                "spec.template.spec.hostNetwork is not set",
            ),
        ],
    );
}

#[test]
fn what_is_written_and_empty_is_not_told_as_what_is_not_set() {
    let policy = |from: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: a, namespace: b}}\nspec: {{podSelector: {{}}, ingress: [{{from: [{from}]}}]}}"
        )
    };
    let rule = "name: r\nmatch: {gvk: [{group: networking.k8s.io, kind: NetworkPolicy}]}\n\
                rule: any(object.spec.ingress, .from == nil || any(.from, .namespaceSelector == {}))\n";
    check(
        "",
        &[
            (rule, &policy("{namespaceSelector: {}}"), "spec.ingress[0].from[0].namespaceSelector is empty"),
            (rule, &policy("{podSelector: {}}"), ""),
            (rule, &policy(""), "spec.ingress[0].from is empty"),
        ],
    );
}

const SHOP: &str = "
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {selector: {app: api}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: old, namespace: other}
spec: {rules: [{host: a.example.com}]}
";

const INGRESS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site, namespace: shop}
spec:
  rules:
  - {host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
";

#[test]
fn what_was_looked_up_is_told_by_its_name() {
    let ingress = |rule: &str| {
        format!("name: r\nmatch: {{gvk: [{{group: networking.k8s.io, kind: Ingress}}]}}\nrule: {rule:?}\n")
    };
    check(
        SHOP,
        &[
            (
                &deployment_rule("cluster.services.byName(metadata.namespace, metadata.name) == nil"),
                DEPLOYMENT,
                r#"services["shop/web"] does not exist"#,
            ),
            // A Service that is not there has no type.
            (
                &deployment_rule("cluster.services.byName(metadata.namespace, metadata.name).spec.type != 'ClusterIP'"),
                DEPLOYMENT,
                r#"services["shop/web"] does not exist"#,
            ),
            (
                &deployment_rule(
                    "let services = cluster.services.list(metadata.namespace); none(services, selects(.spec.selector, object.spec.template.metadata.labels))",
                ),
                DEPLOYMENT,
                "none of the services in shop fits",
            ),
            (
                &deployment_rule("len(cluster.pods.list(metadata.namespace, {app: 'web'})) == 0"),
                DEPLOYMENT,
                "there are no pods in shop with app=web",
            ),
            (
                &ingress(
                    "object.spec.rules != nil && any(object.spec.rules, any(.http.paths, .backend.service != nil && cluster.services.byName(metadata.namespace, .backend.service.name) == nil))",
                ),
                INGRESS,
                r#"services["shop/web"] does not exist, spec.rules[0].http.paths[0].backend.service.name is "web""#,
            ),
            (
                &ingress(
                    "any(object.spec.rules, let rule = #; any(cluster.ingresses.list('*'), .metadata.namespace != metadata.namespace && any(.spec.rules, .host != nil && .host == rule.host)))",
                ),
                INGRESS,
                r#"ingresses["other/old"].spec.rules[0].host is "a.example.com", spec.rules[0].host is "a.example.com", metadata.namespace is "shop""#,
            ),
        ],
    );
}

#[test]
fn a_field_of_what_is_not_there_is_not_told_as_one_that_is_not_set() {
    let namespace = "cluster.namespaces.byName(metadata.namespace)";
    let absent = r#"namespaces["shop"] does not exist"#;
    for expression in [
        format!("{namespace}.metadata.labels.team == nil"),
        format!("{namespace}.metadata.labels.team != 'a'"),
        format!("'team' not in {namespace}.metadata.labels"),
        format!("not ('team' in keys({namespace}.metadata.labels))"),
        format!("({namespace}.metadata.labels.team ?? '') == ''"),
        format!("let ns = {namespace}; ns.metadata.labels.team == nil && not (metadata.name startsWith 'kube-')"),
        format!("let labels = {namespace}.metadata.labels; 'team' not in labels"),
        format!("none({namespace}.metadata.ownerReferences, .kind == 'Team')"),
        format!("not ({namespace}.metadata.labels.team startsWith 'a')"),
        format!("len({namespace}.metadata.labels) == 0"),
        format!("any(['team', 'owner'], # not in {namespace}.metadata.labels)"),
        "find(cluster.namespaces.list(), .metadata.name == metadata.namespace) == nil".to_owned(),
    ] {
        let expected = if expression.contains("find") { "there are no namespaces" } else { absent };
        check(SHOP, &[(&deployment_rule(&expression), DEPLOYMENT, expected)]);
    }
    let ingress = format!(
        "name: r\nmatch: {{gvk: [{{group: networking.k8s.io, kind: Ingress}}]}}\nrule: {:?}\n",
        "object.spec.rules != nil && any(object.spec.rules, any(.http.paths, .backend.service != nil && (let s = cluster.services.byName(metadata.namespace, .backend.service.name); s.spec.type != 'ClusterIP')))"
    );
    let backend = r#"spec.rules[0].http.paths[0].backend.service is {"name":"web","port":{"number":80}}"#;
    check(SHOP, &[(&ingress, INGRESS, &format!(r#"services["shop/web"] does not exist, {backend}"#))]);
}

#[test]
fn what_was_not_set_is_told_instead_of_what_was_not_found() {
    let service =
        "\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {type: ExternalName}\n";
    let pod = "\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {volumes: [{name: tmp, emptyDir: {}}]}\n";
    for (kind, rule, object, expected) in [
        (
            "Service",
            "len(cluster.pods.list(metadata.namespace, object.spec.selector)) == 0",
            service,
            "spec.selector is not set",
        ),
        (
            "Service",
            "none(cluster.pods.list(metadata.namespace, object.spec.selector), .spec.hostNetwork)",
            service,
            "spec.selector is not set",
        ),
        (
            "Pod",
            "any(spec.volumes, cluster.secrets.byName(metadata.namespace, .secret.secretName) == nil)",
            pod,
            "spec.volumes[0].secret.secretName is not set",
        ),
        (
            "Pod",
            "any(spec.volumes, cluster.secrets.byName(metadata.namespace, .secret.secretName).type != 'Opaque')",
            pod,
            "spec.volumes[0].secret.secretName is not set",
        ),
    ] {
        let (rules, _) = rules(&format!("name: r\nmatch: {{gvk: [{{kind: {kind}}}]}}\nrule: {rule:?}\n"));
        let object = objects(object).remove(0);
        let evaluation = evaluate(&rules, &Objects(objects(SHOP)), &creation(&object), &Limits::default());
        let said: Vec<String> = evaluation.violations.into_iter().filter_map(|violation| violation.saw).collect();
        assert_eq!(said, [expected], "{rule}");
    }
}

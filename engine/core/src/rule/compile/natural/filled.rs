//! What the API server fills in, and a file leaves out: a rule says the same of both.

use super::{DEPLOYMENT, check_judged, check_warned, told};
use crate::testing::{Objects, judge, objects, rules};

fn of(api_version: &str, kind: &str, spec: &str) -> String {
    format!("{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: web, namespace: shop}}, spec: {{{spec}}}}}")
}

/// Each rule is violated by the first object, and not by the second.
#[track_caller]
fn check_pairs(kind: &str, rows: &[(&str, &str, &str)]) {
    for (rule, bad, good) in rows {
        check_judged(kind, rule, &[(bad, true), (good, false)]);
    }
}

#[test]
fn what_is_left_out_is_what_it_will_be() {
    let service = |spec: &str| of("v1", "Service", spec);
    let (none, node) = (service("ports: [{port: 80}]"), service("type: NodePort, ports: [{port: 80, protocol: UDP}]"));
    check_pairs(
        "{kind: Service}",
        &[
            (r#"object.spec.type == "ClusterIP""#, &none, &node),
            (r#"object.spec.type != "ClusterIP""#, &node, &none),
            (r#"object.spec.type not in ["ClusterIP", "ExternalName"]"#, &node, &none),
            (r#"lower(object.spec.type) == "clusterip""#, &none, &node),
            (r#"any(object.spec.ports, .protocol == "TCP")"#, &none, &node),
            (r#""TCP" in map(object.spec.ports, .protocol)"#, &none, &node),
            (r#"let kind = object.spec.type; kind == "ClusterIP""#, &none, &node),
        ],
    );
    let deployment = |spec: &str| of("apps/v1", "Deployment", spec);
    let (none, other) = (deployment("template: {}"), deployment("replicas: 3, strategy: {type: Recreate}"));
    check_pairs(
        DEPLOYMENT,
        &[
            ("object.spec.replicas < 2", &none, &other),
            ("object.spec.replicas == 1", &none, &other),
            ("1 != object.spec.replicas", &other, &none),
            ("object.spec.replicas * 2 < 4", &none, &other),
            (r#"object.spec.strategy.type != "RollingUpdate""#, &other, &none),
            ("object.spec.replicas == 3 && object.spec.progressDeadlineSeconds > 300", &other, &none),
        ],
    );
    let autoscaler = |spec: &str| of("autoscaling/v2", "HorizontalPodAutoscaler", spec);
    let (none, other) = (autoscaler("maxReplicas: 1"), autoscaler("minReplicas: 2, maxReplicas: 3"));
    let kind = "{group: autoscaling, kind: HorizontalPodAutoscaler}";
    check_pairs(
        kind,
        &[
            ("object.spec.minReplicas >= object.spec.maxReplicas", &none, &other),
            ("object.spec.minReplicas < 2", &none, &other),
        ],
    );
    let cron = |spec: &str| of("batch/v1", "CronJob", &format!("jobTemplate: {{}}, {spec}"));
    let (none, other) = (cron(""), cron("concurrencyPolicy: Forbid, suspend: true, successfulJobsHistoryLimit: 1"));
    check_pairs(
        "{group: batch, kind: CronJob}",
        &[
            (r#"object.spec.concurrencyPolicy == "Allow""#, &none, &other),
            ("object.spec.suspend == false", &none, &other),
            ("object.spec.successfulJobsHistoryLimit > 2", &none, &other),
        ],
    );
    let secret =
        |rest: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, data: {{a: eA==}}{rest}}}");
    let rule = r#"object.type == "Opaque" && "a" in object.data"#;
    check_pairs("{kind: Secret}", &[(rule, &secret(""), &secret(", type: kubernetes.io/tls"))]);
}

#[test]
fn whoever_asks_what_was_written_hears_that() {
    let deployment = |spec: &str| of("apps/v1", "Deployment", &format!("template: {{}}, {spec}"));
    let (none, one) = (deployment(""), deployment("replicas: 1"));
    for rule in [
        "object.spec.replicas == nil",
        "not (object.spec.replicas != nil)",
        "let r = object.spec.replicas; r == nil",
        "(object.spec.replicas ?? 7) == 7 && object.spec.replicas == nil",
    ] {
        let told = told(&format!("gvk: [{DEPLOYMENT}], podControllers: false"), rule);
        assert!(!told.contains("Error"), "{told}");
        let (rule_set, _) = rules(&format!("name: a\nmatch: {{gvk: [{DEPLOYMENT}]}}\nrule: |\n  {rule}\n"));
        for (object, is_violated) in [(&none, true), (&one, false)] {
            let judged = judge(&rule_set, &objects(object)[0], &Objects(Vec::new()));
            assert_eq!(judged.starts_with("a:"), is_violated, "{rule}\n{judged}");
        }
    }
    check_judged(
        DEPLOYMENT,
        "object.spec.replicas == nil || object.spec.replicas == 1",
        &[(&none, true), (&one, true), (&deployment("replicas: 2"), false)],
    );
    // What somebody else takes it for is not what it will be.
    check_warned(DEPLOYMENT, &[("(object.spec.replicas ?? 0) > 0", "Kubernetes takes it for 1 then")]);
}

#[test]
fn what_only_some_objects_are_filled_in_with_is_told_of_those() {
    let never = "the API server fills in";
    check_warned(
        "{group: batch, kind: CronJob}",
        &[("object.spec.suspend == nil", "the API server fills in false where `object.spec.suspend` is left out")],
    );
    check_warned("{group: batch, kind: Job}", &[("object.spec.suspend == nil", never)]);
    check_warned("{group: batch, kind: Job}", &[("object.spec.parallelism == nil", never)]);
    check_warned("{kind: Pod}", &[("object.spec.serviceAccountName == nil", never)]);
    check_warned("{kind: ConfigMap}", &[("any(cluster.jobs.list(metadata.namespace), .spec.suspend == nil)", never)]);
    for (kind, rule) in [
        ("{group: batch, kind: CronJob}", "object.spec.jobTemplate.spec.suspend == nil"),
        ("{group: batch, kind: CronJob}", "object.spec.jobTemplate.spec.parallelism == nil"),
        ("{group: batch, kind: CronJob}", "let job = object.spec.jobTemplate; job.spec.suspend == nil"),
        (DEPLOYMENT, "object.spec.template.spec.serviceAccountName == nil"),
        ("{kind: Service}", "object.spec.internalTrafficPolicy == nil"),
    ] {
        assert_eq!(told(&format!("gvk: [{kind}], podControllers: false"), rule), "", "{rule}");
    }
}

#[test]
fn nothing_is_filled_in_where_there_is_nothing() {
    let pod = |container: &str| of("v1", "Pod", &format!("containers: [{{name: c, image: i, {container}}}]"));
    let (none, empty, own) =
        (pod(""), pod("livenessProbe: {}"), pod("livenessProbe: {periodSeconds: 5, httpGet: {port: 80}}"));
    check_judged(
        "{kind: Pod}",
        "container.livenessProbe != nil && container.livenessProbe.periodSeconds >= 10",
        &[(&none, false), (&empty, true), (&own, false)],
    );
    check_judged(
        "{kind: Pod}",
        r#"container.livenessProbe.httpGet != nil && container.livenessProbe.httpGet.scheme == "HTTP""#,
        &[(&none, false), (&empty, false), (&own, true)],
    );
    let advice =
        r#"`container.livenessProbe.httpGet != nil && (container.livenessProbe.httpGet.scheme ?? "HTTP") == "HTTP"`"#;
    check_warned("{kind: Pod}", &[(r#"container.livenessProbe.httpGet.scheme == "HTTP""#, advice)]);
    // A DaemonSet has none, whatever it leaves out.
    let told = told(
        &format!("gvk: [{DEPLOYMENT}, {{group: apps, kind: DaemonSet}}], podControllers: false"),
        "object.spec.replicas > 0",
    );
    assert!(!told.contains("Error"), "{told}");
    let (rule_set, _) = rules(&format!(
        "name: a\nmatch: {{gvk: [{DEPLOYMENT}, {{group: apps, kind: DaemonSet}}]}}\nrule: object.spec.replicas > 0\n"
    ));
    let daemons = objects(&of("apps/v1", "DaemonSet", "template: {}"));
    assert_eq!(judge(&rule_set, &daemons[0], &Objects(Vec::new())), "");
}

#[test]
fn a_message_says_what_was_not_set() {
    let (rule_set, _) = rules(&format!("name: a\nmatch: {{gvk: [{DEPLOYMENT}]}}\nrule: object.spec.replicas < 2\n"));
    let object = objects(&of("apps/v1", "Deployment", "template: {}"));
    assert_eq!(
        judge(&rule_set, &object[0], &Objects(Vec::new())),
        "a: spec.replicas is not set, which counts as 1 (spec.replicas is not set, which counts as 1)"
    );
}

#[test]
fn an_account_that_is_left_out_is_the_default_one() {
    let pod = |spec: &str| of("v1", "Pod", &format!("containers: [{{name: c, image: i}}], {spec}"));
    check_judged(
        "{kind: Pod}",
        r#"spec.serviceAccountName == "default""#,
        &[(&pod(""), true), (&pod("serviceAccountName: ''"), true), (&pod("serviceAccountName: own"), false)],
    );
    let (rule_set, wrong) = rules(
        "name: a\nmatch: {gvk: [{kind: Pod}]}\n\
         rule: cluster.serviceaccounts.byName(metadata.namespace, spec.serviceAccountName) == nil\n",
    );
    assert_eq!(wrong.join("\n"), "");
    let accounts = || objects("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}");
    for (spec, is_violated) in [("", false), ("serviceAccountName: default", false), ("serviceAccountName: own", true)]
    {
        let judged = judge(&rule_set, &objects(&pod(spec))[0], &Objects(accounts()));
        assert_eq!(judged.starts_with("a:"), is_violated, "{spec}\n{judged}");
    }
}

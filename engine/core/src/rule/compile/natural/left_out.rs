//! What Kubernetes makes of what is left out, or empty.

use super::{DEPLOYMENT, PDB, POLICY, check, check_accepted, check_judged, check_silent, check_warned, told};
use crate::testing::{Objects, judge, objects, rules};

fn pod(spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i}}], {spec}}}}}"
    )
}

#[test]
fn an_empty_text_is_none() {
    let [none, empty, null, own] =
        ["", "serviceAccountName: ''", "serviceAccountName: null", "serviceAccountName: own"].map(pod);
    for rule in [
        "spec.serviceAccountName == nil || spec.serviceAccountName == 'default'",
        "spec.serviceAccountName == ''",
        "spec.serviceAccountName in ['', 'default']",
        "(spec.serviceAccountName ?? 'default') == 'default'",
        "not (spec.serviceAccountName != nil)",
        "let name = spec.serviceAccountName; name == nil",
        "spec.serviceAccountName != 'own'",
    ] {
        check_judged("{kind: Pod}", rule, &[(&none, true), (&empty, true), (&null, true), (&own, false)]);
    }
    for rule in
        ["spec.serviceAccountName != nil", "spec.serviceAccountName != ''", "spec.serviceAccountName not in ['']"]
    {
        check_judged("{kind: Pod}", rule, &[(&none, false), (&empty, false), (&null, false), (&own, true)]);
    }
    check_judged(
        "{kind: Pod}",
        "spec.serviceAccountName != '' && upper(spec.serviceAccountName) == 'OWN'",
        &[(&empty, false), (&own, true)],
    );
    let [every, empty, one] = [
        "tolerations: [{operator: Exists}]",
        "tolerations: [{operator: Exists, key: ''}]",
        "tolerations: [{operator: Exists, key: a}]",
    ]
    .map(pod);
    check_judged(
        "{kind: Pod}",
        "any(spec.tolerations, .operator == 'Exists' && .key == nil)",
        &[(&every, true), (&empty, true), (&one, false)],
    );
    check_judged(
        "{kind: Pod}",
        "spec.serviceAccountName != nil && cluster.serviceaccounts.byName(metadata.namespace, spec.serviceAccountName) == nil",
        &[(&pod("serviceAccountName: ''"), false), (&own, true)],
    );
}

#[test]
fn an_empty_text_is_something_where_kubernetes_tells_it_from_none() {
    let claim = |spec: &str| {
        format!("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c}}, spec: {{{spec}}}}}")
    };
    let (none, empty) = (claim(""), claim("storageClassName: ''"));
    let kind = "{kind: PersistentVolumeClaim}";
    check_judged(kind, "object.spec.storageClassName == nil", &[(&none, true), (&empty, false)]);
    check(kind, &[("object.spec.storageClassName == ''", "`object.spec.storageClassName == nil`")]);
    let labelled = pod("nodeName: ''").replace("{name: p}", "{name: p, labels: {team: ''}}");
    check_judged("{kind: Pod}", "metadata.labels.team == nil", &[(&labelled, false)]);
}

#[test]
fn what_was_not_set_is_told_as_such() {
    let (rule_set, _) = rules("name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.serviceAccountName == nil\n");
    let pod = objects(&pod("serviceAccountName: ''"));
    assert_eq!(
        judge(&rule_set, &pod[0], &Objects(Vec::new())),
        "a: spec.serviceAccountName is not set (spec.serviceAccountName is not set)"
    );
}

#[test]
fn what_is_looked_up_is_not_found_because_both_have_nothing() {
    let labels = ".spec.selector.matchLabels == object.spec.selector.matchLabels";
    let budgets = "cluster.poddisruptionbudgets.list(object.metadata.namespace, {})";
    let advice = format!("`.spec.selector.matchLabels != nil && {labels}`");
    check_warned(
        DEPLOYMENT,
        &[
            (&format!("none({budgets}, {labels})"), &advice),
            (&format!("not any({budgets}, .metadata.name != 'a' && {labels})"), &advice),
            (
                "any(cluster.services.list(metadata.namespace), .spec.externalName == metadata.labels.host)",
                "`.spec.externalName != nil && .spec.externalName == metadata.labels.host`",
            ),
        ],
    );
    for rule in [
        &format!("none({budgets}, .spec.selector.matchLabels != nil && {labels})"),
        &format!("none({budgets}, .metadata.name == object.metadata.name && {labels})"),
        "any(cluster.services.list(metadata.namespace), .metadata.name == metadata.name)",
    ] {
        assert_eq!(told(&format!("gvk: [{DEPLOYMENT}], podControllers: false"), rule), "", "{rule}");
    }
}

#[test]
fn a_list_that_kubernetes_fills_in_is_asked_whether_it_is_empty() {
    check_warned(
        POLICY,
        &[
            (
                r#""Ingress" in object.spec.policyTypes"#,
                r#"`("Ingress" in object.spec.policyTypes || object.spec.policyTypes == nil)`"#,
            ),
            (
                r#""Egress" not in object.spec.policyTypes"#,
                r#"`("Egress" not in object.spec.policyTypes && (object.spec.policyTypes != nil || object.spec.egress == nil))`"#,
            ),
            (
                r#"any(object.spec.policyTypes, # == "Egress")"#,
                r#" || object.spec.policyTypes == nil && object.spec.egress != nil)`"#,
            ),
        ],
    );
    let found = r#"none(cluster.networkpolicies.list(metadata.namespace, {}), .spec.podSelector == {} && "Ingress" in .spec.policyTypes)"#;
    check_warned("{kind: Pod}", &[(found, r#"`("Ingress" in .spec.policyTypes || .spec.policyTypes == nil)`"#)]);
    let whole = r#"("Ingress" in object.spec.policyTypes || object.spec.policyTypes == nil)"#;
    assert_eq!(told(&format!("gvk: [{POLICY}]"), whole), "");
}

#[test]
fn what_stands_in_for_a_field_is_advised_before_a_value() {
    let (requests, limits) = ("container.resources.requests", "container.resources.limits");
    let user = "container.securityContext.runAsUser ?? securityContext.runAsUser";
    check(
        "{kind: Pod}",
        &[
            (
                &format!("quantity({requests}.cpu) > quantity('4')"),
                &format!("`quantity({requests}.cpu ?? {limits}.cpu ?? \"0\")`"),
            ),
            (&format!("{requests}.cpu < '100m'"), &format!("`({requests}.cpu ?? {limits}.cpu ?? \"0\") < \"100m\"`")),
            ("container.securityContext.runAsUser < 10000", &format!("`({user} ?? 0) < 10000`")),
            ("container.securityContext.runAsUser < 10000", &format!("`let x = {user}; x != nil && x < 10000`")),
        ],
    );
}

#[test]
fn what_is_left_out_may_have_no_bound() {
    check_warned(
        "{kind: Pod}",
        &[
            (
                "any(spec.tolerations, .tolerationSeconds > 600)",
                "has no bound then, which this rule does not ask for: write `(.tolerationSeconds == nil || .tolerationSeconds > 600)`",
            ),
            (
                r#"any(spec.volumes, .emptyDir.sizeLimit > "1Gi")"#,
                r#"write `.emptyDir != nil && (.emptyDir.sizeLimit == nil || .emptyDir.sizeLimit > "1Gi")`"#,
            ),
            (
                "spec.activeDeadlineSeconds >= 600",
                "`spec.activeDeadlineSeconds != nil && spec.activeDeadlineSeconds >= 600`",
            ),
        ],
    );
    let job = "{group: batch, kind: Job}";
    check_warned(
        job,
        &[("3600 < object.spec.ttlSecondsAfterFinished", "`(object.spec.ttlSecondsAfterFinished == nil || 3600 < ")],
    );
    check_silent(
        job,
        &[
            "object.spec.ttlSecondsAfterFinished == nil || object.spec.ttlSecondsAfterFinished > 3600",
            "object.spec.ttlSecondsAfterFinished != nil && object.spec.ttlSecondsAfterFinished > 3600",
            "not (object.spec.activeDeadlineSeconds > 60)",
        ],
    );
    let autoscaler = "{group: autoscaling, kind: HorizontalPodAutoscaler, version: v2}";
    let policies = "object.spec.behavior.scaleDown.policies";
    let percent = format!(r#"any({policies}, .type == "Percent" && .value > 50)"#);
    check_warned(
        autoscaler,
        &[(
            &percent,
            &format!(
                "stands for 100 percent at a time then, which this rule does not ask for: write `({policies} == nil || {percent})`"
            ),
        )],
    );
    let service = r#"object.spec.type == "LoadBalancer" && object.spec.externalTrafficPolicy == "Cluster""#;
    check_warned("{kind: Service}", &[(service, r#"`(object.spec.externalTrafficPolicy ?? "Cluster") == "Cluster"`"#)]);
}

#[test]
fn a_text_that_is_a_version_or_a_date_is_read_as_one() {
    check(
        "{kind: Pod}",
        &[
            (
                r#"container.image.tag < "1.20""#,
                r#"write `isSemver(container.image.tag) && semver(container.image.tag) < semver("1.20")`"#,
            ),
            (
                "metadata.annotations.expires < now()",
                "write `metadata.annotations.expires != nil && date(metadata.annotations.expires) < now()`",
            ),
            ("now() > metadata.annotations.expires", "&& now() > date(metadata.annotations.expires)`"),
        ],
    );
}

#[test]
fn what_stands_in_for_a_missing_text_can_be_read() {
    let budget = "int(trimSuffix(string(object.spec.maxUnavailable ?? \"\"), \"%\")) > 50";
    check(
        PDB,
        &[(
            budget,
            "this fails where `object.spec.maxUnavailable` is missing, because \"\" is not an int: write `?? \"0\"` in the place of `?? \"\"`",
        )],
    );
    check(
        "{kind: Pod}",
        &[
            (r#"int(metadata.labels.a ?? "") > 5"#, r#"write `?? "0"` in the place of `?? ""`"#),
            (
                r#"duration(metadata.labels.a ?? "never") > duration("5h")"#,
                r#"write `?? "0s"` in the place of `?? "never"`"#,
            ),
            (r#"fromJSON(trim(metadata.labels.a ?? "")).b == 5"#, r#"write `?? "null"`"#),
        ],
    );
    check_accepted(
        "{kind: Pod}",
        &[
            r#"int(metadata.labels.a ?? "0") > 5"#,
            r#"(metadata.labels.a ?? "") matches "^[0-9]+$" && int(metadata.labels.a ?? "") > 5"#,
            r#"isSemver(metadata.labels.a ?? "") && semver(metadata.labels.a ?? "") > semver("1")"#,
        ],
    );
}

#[test]
fn a_number_has_the_default_of_its_place() {
    let autoscaler = "{group: autoscaling, kind: HorizontalPodAutoscaler, version: v2}";
    let seconds = |which: &str| format!("object.spec.behavior.{which}.stabilizationWindowSeconds");
    check(
        autoscaler,
        &[
            (&format!("{} < 300", seconds("scaleDown")), &format!("({} ?? 300) < 300", seconds("scaleDown"))),
            (&format!("{} < 300", seconds("scaleUp")), &format!("({} ?? 0) < 300", seconds("scaleUp"))),
        ],
    );
}

#[test]
fn a_text_that_can_be_few_is_one_of_them() {
    let ranges = "{kind: LimitRange}";
    check(ranges, &[(r#"any(object.spec.limits, .type == "container")"#, r#"did you mean `Container`?"#)]);
}

//! What may be missing, and is neither empty nor 0.

use super::{DEPLOYMENT, check, check_accepted, check_judged, check_silent, check_warned, told};

#[test]
fn what_is_missing_is_not_empty() {
    check(
        "{kind: Pod}",
        &[
            (r#"spec.runtimeClassName in ["", "a"]"#, r#"`(spec.runtimeClassName ?? "") in ["", "a"]`"#),
            (r#"spec.runtimeClassName not in ["", "a"]"#, r#"`(spec.runtimeClassName ?? "") not in ["", "a"]`"#),
            (r#"metadata.labels["a/b"] == """#, r#"`(metadata.labels["a/b"] ?? "") == ""`"#),
            (r#"spec.runtimeClassName != """#, r#"`(spec.runtimeClassName ?? "") != ""`"#),
            (r#"metadata.labels.team == "" && spec.hostPID"#, "`metadata.labels.team == nil`"),
        ],
    );
    check_accepted(
        "{kind: Pod}",
        &[
            r#"metadata.labels.team == "" || metadata.labels.team == nil"#,
            r#"metadata.labels.team == nil || metadata.labels.team == """#,
            r#""team" in metadata.labels && metadata.labels.team == """#,
            r#"metadata.labels.team == "" || "team" not in metadata.labels"#,
            r#"any(container.env, .value != nil && .value == "")"#,
            r#"any(container.args, # == "")"#,
            r#"container.name == "" || metadata.name == """#,
            r#"spec.nodeName in ["", nil, "a"]"#,
            r#"any(["team", "owner"], metadata.labels[#] == nil || metadata.labels[#] == "")"#,
            r#"any(["team", "owner"], not (# in metadata.labels) || metadata.labels[#] == "")"#,
            r#"let team = metadata.labels.team; let missing = team == nil; missing || team == """#,
        ],
    );
    let cannot = r#"metadata.labels.cannot in ["", "x"]"#;
    check("{kind: Pod}", &[(cannot, r#"`(metadata.labels.cannot ?? "") in ["", "x"]`"#)]);
}

#[test]
fn what_is_missing_is_not_0() {
    check(
        "{kind: Pod}",
        &[
            ("any(container.ports, .hostPort)", "`(.hostPort ?? 0) != 0`, or `.hostPort != nil` to ask only"),
            ("any(container.ports, .hostPort != 0)", "`(.hostPort ?? 0) != 0` to take it for 0"),
            (
                "not spec.activeDeadlineSeconds",
                "`spec.activeDeadlineSeconds == nil` to ask whether it is missing, or `(spec.activeDeadlineSeconds ?? 0) == 0`",
            ),
        ],
    );
    check_accepted(
        "{kind: Pod}",
        &[
            "container.securityContext.runAsUser == 0",
            "any(container.ports, .hostPort != nil && .hostPort != 0)",
            "any(container.ports, .hostPort == nil || .hostPort != 0)",
            "any(container.ports, (.hostPort ?? 0) != 0)",
            "any(container.ports, .containerPort != 0)",
        ],
    );
    check_accepted(DEPLOYMENT, &["object.spec.replicas != 0"]);
}

#[test]
fn what_is_put_together_gets_a_name_to_be_asked() {
    let advice = "let x = container.securityContext.runAsUser ?? securityContext.runAsUser; x != nil && x < 10000";
    check(
        "{kind: Pod}",
        &[
            ("(container.securityContext.runAsUser ?? securityContext.runAsUser) < 10000", advice),
            (
                "spec.hostPID && (container.securityContext.runAsUser ?? securityContext.runAsUser) < 10000",
                "(let x = container.securityContext.runAsUser ?? securityContext.runAsUser; x != nil && x < 10000)",
            ),
        ],
    );
    check_accepted("{kind: Pod}", &[advice, &format!("spec.hostPID && ({advice})")]);
}

#[test]
fn what_is_missing_is_in_no_range() {
    check_warned(
        "{kind: Service}",
        &[
            (
                "any(object.spec.ports, .nodePort not in 31000..31999)",
                "so that this is true: write `.nodePort != nil && .nodePort not in 31000..31999` to leave out what has none, or \
                 `(.nodePort == nil || .nodePort not in 31000..31999)` if it must be there",
            ),
            ("any(object.spec.ports, not (.nodePort in 31000..31999))", "`.nodePort != nil && …`"),
        ],
    );
    for rule in [
        "any(object.spec.ports, .nodePort in 30000..30099)",
        "any(object.spec.ports, .nodePort != nil && .nodePort not in 31000..31999)",
        "any(object.spec.ports, .nodePort == nil || .nodePort not in 31000..31999)",
        "any(object.spec.ports, .port not in 1..1024)",
        "any(object.spec.ports, (.nodePort ?? 31000) not in 31000..31999)",
    ] {
        assert_eq!(told("gvk: [{kind: Service}]", rule), "", "{rule}");
    }
}

#[test]
fn what_is_true_of_all_is_true_of_none() {
    let stateful = "{group: apps, kind: StatefulSet}";
    let claims = "object.spec.volumeClaimTemplates";
    let of_all = format!(r#"all({claims}, .spec.storageClassName == "local")"#);
    let told = format!(
        "`{claims}` may be empty, and this is true of it then: write `{claims} != nil && {of_all}` to leave out what has none"
    );
    check_warned(stateful, &[(&of_all, &told), (&format!("object.spec.replicas > 1 && {of_all}"), &told)]);
    check_silent(
        stateful,
        &[
            &format!("{claims} != nil && {of_all}"),
            &format!("len({claims}) > 0 && {of_all}"),
            &format!("not {of_all}"),
            // Nothing is without whatever one likes.
            &format!("all({claims}, .spec.storageClassName != \"local\")"),
            &format!("all({claims}, .spec.selector == nil)"),
        ],
    );
    check_silent("{kind: Pod}", &[r#"all(spec.containers, .name startsWith "a")"#]);
}

#[test]
fn what_is_made_of_what_is_missing_is_no_value_to_compare_it_with() {
    let told =
        "`metadata.labels.team` may be missing: write `metadata.labels.team != nil && …` to leave out what has none\n";
    check("{kind: Pod}", &[("metadata.labels.team != lower(metadata.labels.team)", told)]);
    check("{kind: Pod}", &[(r#""a" != lower(metadata.labels.team)"#, r#"`lower(metadata.labels.team ?? "")`"#)]);
}

#[test]
fn amounts_in_maps_are_compared_by_value() {
    let pod = |requests: &str, limits: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i, resources: \
             {{requests: {requests}, limits: {limits}}}}}]}}}}"
        )
    };
    check_judged(
        "{kind: Pod}",
        "container.resources.requests != container.resources.limits",
        &[
            (&pod("{cpu: 1, memory: 1Gi}", "{cpu: 1000m, memory: 1024Mi}"), false),
            (&pod("{cpu: 1}", "{cpu: 2}"), true),
            (&pod("{cpu: 1}", "{cpu: 1, memory: 1Gi}"), true),
        ],
    );
}

//! What may be missing, and is neither empty nor 0.

use super::{DEPLOYMENT, check, check_accepted};

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

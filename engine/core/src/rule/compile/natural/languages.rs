//! What people know from other languages.

use super::{INGRESS, advised, check, check_accepted, told};

#[test]
fn what_other_languages_write_is_told_as_a_whole() {
    check(
        "{kind: Pod}",
        &[
            (r#"contains(spec.containers[*].image, "a")"#, r#"`"a" in map(spec.containers, .image)`"#),
            (r#"spec.volumes[?hostPath.path == "/a"]"#, r#"`any(spec.volumes, .hostPath.path == "/a")`"#),
            (r#"metadata.labels."a/b" == null"#, r#"`metadata.labels["a/b"] == nil`"#),
            (r#"strings.HasPrefix(metadata.name, "a")"#, r#"`metadata.name startsWith "a"`"#),
            ("metadata.name.match(/^a-/)", r#"`metadata.name matches "^a-"`"#),
            ("/^a-/.test(metadata.name)", r#"`metadata.name matches "^a-"`"#),
            (r#"any(spec.containers, c: c.name == "a")"#, r#"`any(spec.containers, .name == "a")`"#),
            (r#"some c in spec.containers; c.args[_] == "a""#, r#"`any(spec.containers, "a" in .args)`"#),
            (r#"if metadata.name == "a""#, r#"`metadata.name == "a"`"#),
            (r#"deny if metadata.name == "a""#, r#"`metadata.name == "a"`"#),
            (r#"container.image like "%:a""#, r#"`container.image matches "^.*:a$"`"#),
            (r#"eq(metadata.name, "a")"#, r#"`metadata.name == "a"`"#),
            ("metadata.labels.a IS NULL", "`metadata.labels.a == nil`"),
            ("not exists(metadata.labels.a)", "`metadata.labels.a == nil`"),
            (r#"metadata.labels.get("a", "b") == "c""#, r#"`(metadata.labels.a ?? "b")`"#),
            (r#"default(metadata.labels.a, "") == "c""#, r#"`(metadata.labels.a ?? "")`"#),
            ("container.resources.limits.memory > 512Mi", r#"`"512Mi"`"#),
            (r#"parseQuantity("1Gi") < parseQuantity("2Gi")"#, r#"`quantity("1Gi")`"#),
            ("# no latest\nspec.hostPID", "a comment begins with `//`"),
            ("any(container.args,\n  # startswith 'x')", "expected an operator or `)`, found `'x'`"),
            ("spec.hostPID\nspec.hostIPC", "write `&&` between the lines"),
        ],
    );
    let overlaps = told("gvk: [{kind: Pod}]", r#"cidrOverlaps("10.0.0.0/8", "10.1.0.0/16")"#);
    assert!(overlaps.contains("`cidr(a) in cidr(b) || cidr(b) in cidr(a)`"), "{overlaps}");
    for rule in [r#"allow if metadata.name == "a""#, r#"some c in spec.containers; c.args[_] == "a" && c.tty"#] {
        let told = told("gvk: [{kind: Pod}]", rule);
        assert!(told.starts_with("Error") && advised(&told).is_empty(), "{told}");
    }
    for rule in [
        "spec.hostPID &&\u{a0}spec.containers[*].image == 'x'",
        "spec.hostPID &&\u{3000}spec.containers[?image == 'x'].name == 'x'",
    ] {
        let told = told("gvk: [{kind: Pod}]", rule);
        assert!(told.starts_with("Error") && !told.contains("panicked"), "{told}");
    }
}

#[test]
fn what_is_got_by_a_key_is_read() {
    check(
        "{kind: Pod}",
        &[
            (r#"not container.resources.get("limits", {}).get("memory")"#, "`container.resources.limits.memory`"),
            (
                r#"not get(container.resources.limits, "memory")"#,
                r#"`get(container.resources.limits, "memory") == nil`"#,
            ),
            ("(container.ports || []).some(p => p.hostPort > 0)", "`any(container.ports ?? [], .hostPort > 0)`"),
            (r#"["a"] - keys(metadata.labels) != []"#, r#"`filter(["a"], # not in keys(metadata.labels))`"#),
        ],
    );
}

#[test]
fn patterns_are_asked_by_glob() {
    check(
        "{kind: Pod}",
        &[
            (r#"metadata.namespace in ["kube-*"]"#, r#"`glob(metadata.namespace, "kube-*")`"#),
            (
                r#"container.image not in ["a.io/*", "b.io/*"]"#,
                r#"`none(["a.io/*", "b.io/*"], glob(container.image, #))`"#,
            ),
            (r#"metadata.name == "test-*""#, r#"`glob(metadata.name, "test-*")`"#),
            (r#"any(spec.containers, .image != "a.io/*")"#, r#"`not glob(.image, "a.io/*")`"#),
            (r#"metadata.namespace startsWith "team-*""#, r#"`metadata.namespace startsWith "team-"`"#),
            (r#"container.image == "*:latest | *:dev""#, r#"`any(["*:latest", "*:dev"], glob(container.image, #))`"#),
            (r#"metadata.labels.team != "?*""#, r#"`not glob(metadata.labels.team ?? "", "?*")`"#),
            (r#"metadata.labels.team != "*""#, "`metadata.labels.team == nil`"),
            (r#"metadata.labels.team in ["*"]"#, "`metadata.labels.team != nil`"),
            (r#"metadata.namespace not startsWith "team-*""#, r#"`metadata.namespace not startsWith "team-"`"#),
            (r#"metadata.namespace not matches "team-*""#, r#"`not glob(metadata.namespace, "team-*")`"#),
            (r#"metadata.name in [metadata.namespace, "x-*"]"#, r#"`… || glob(metadata.name, "x-*")`"#),
            (r#"metadata.labels.a not in [nil, "x-*"]"#, r#"`… && not glob(metadata.labels.a ?? "", "x-*")`"#),
            (
                r#"any(spec.containers, lower(.image) in ["a.io/*", "b.io/*"])"#,
                r#"`(glob(lower(.image), "a.io/*") || glob(lower(.image), "b.io/*"))`"#,
            ),
            (
                r#"request.userInfo.username matches "system:*:deployer""#,
                r#"`glob(request.userInfo.username, "system:*:deployer")`"#,
            ),
            (r#"none(["a.io/*"], glob(#, container.image))"#, "`glob(container.image, #)`"),
        ],
    );
    check(INGRESS, &[(r#"any(object.spec.rules, .host matches "*.a.io")"#, r#"`glob(.host, "*.a.io")`"#)]);
    check_accepted(
        "{group: rbac.authorization.k8s.io, kind: ClusterRole}",
        &[r#"any(object.rules, "*" in .verbs)"#, r#"metadata.annotations.scope == "*""#],
    );
    check_accepted("{kind: Pod}", &[r#"container.image matches ".*nginx*""#]);
    let flow = r#"any(object.spec.rules, any(.subjects, .user.name == "*" || .serviceAccount.namespace == "*"))"#;
    check_accepted("{group: flowcontrol.apiserver.k8s.io, kind: FlowSchema}", &[flow]);
    check_accepted(INGRESS, &[r#"any(object.spec.rules, .host == "*.a.io")"#]);
}

//! Lists of which only a part is asked.

use super::{DEPLOYMENT, INGRESS, check_silent, check_warned};

#[test]
fn one_element_is_not_all_of_them() {
    let other = "is one of them alone, and there may be more: write ";
    check_warned(
        "{kind: Pod}",
        &[
            (
                r#"container.ports[0].hostPort == 80"#,
                &format!(
                    "`container.ports[0]` {other}`any(container.ports, .hostPort == 80)`, or `first(container.ports)` to mean that one"
                ),
            ),
            (r#"spec.hostPID && not (spec.containers[0].tty)"#, &format!("{other}`all(spec.containers, .tty)`")),
            ("spec.volumes[1].hostPath != nil", &format!("{other}`any(spec.volumes, .hostPath != nil)`")),
        ],
    );
    check_warned(
        INGRESS,
        &[(
            r#"any(object.spec.rules[0].http.paths, .path == "/")"#,
            &format!(r#"{other}`any(object.spec.rules, any(.http.paths, .path == "/"))`"#),
        )],
    );
    check_silent(
        "{kind: Pod}",
        &[
            "len(spec.volumes) == 1 && spec.volumes[0].hostPath != nil",
            r#"metadata.ownerReferences[0].kind == "Job""#,
            r#"container.command[0] == "sh""#,
            "first(spec.volumes).hostPath != nil",
        ],
    );
}

#[test]
fn containers_are_in_three_lists() {
    let all = "concat(spec.containers, spec.initContainers, spec.ephemeralContainers)";
    check_warned(
        "{kind: Pod}",
        &[
            (
                "any(spec.containers, .securityContext.privileged)",
                &format!(
                    "`spec.containers` leaves out init containers and ephemeral ones, and this rule says nothing of those: write \
                     `any({all}, .securityContext.privileged)`, or ask `container`, which is each of them"
                ),
            ),
            (
                r#"not all(spec.containers, .image.registry == "a.io")"#,
                &format!(r#"write `all({all}, .image.registry == "a.io")`"#),
            ),
            (
                "len(filter(spec.containers, .securityContext.privileged)) > 0",
                &format!("write `len(filter({all}, .securityContext.privileged)) > 0`"),
            ),
        ],
    );
    let template = "object.spec.template.spec";
    check_warned(
        DEPLOYMENT,
        &[(
            &format!(r#"any({template}.containers, .image startsWith "a.io/")"#),
            &format!(
                "leaves out init containers, and this rule says nothing of those: write \
                 `any(concat({template}.containers, {template}.initContainers), .image startsWith"
            ),
        )],
    );
    // It looks at pods all the same.
    check_warned(
        DEPLOYMENT,
        &[(
            r#"any(cluster.pods.list(metadata.namespace), any(.spec.containers, .image startsWith "a.io/"))"#,
            "leaves out init containers and ephemeral ones",
        )],
    );
    check_silent(
        "{kind: Pod}",
        &[
            "container.securityContext.privileged",
            "any(spec.containers, .livenessProbe == nil)",
            "any(spec.containers, .resources.limits.memory == nil)",
            "any(spec.containers, .securityContext.privileged) || any(spec.initContainers, .securityContext.privileged)",
            "len(spec.containers) > 5",
        ],
    );
}

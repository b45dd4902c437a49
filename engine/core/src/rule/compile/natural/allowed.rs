//! Lists of what is allowed, which let in more than they name.

use super::{INGRESS, check_silent, check_warned};

#[test]
fn a_registry_ends_with_its_name() {
    let image = r#"container.image startsWith "registry.corp.io""#;
    check_warned(
        "{kind: Pod}",
        &[
            (
                &format!("not ({image})"),
                r#""registry.corp.io" is also the beginning of "registry.corp.io.example/", and this rule lets that through: write `container.image startsWith "registry.corp.io/"`"#,
            ),
            (
                r#"container.image not startsWith "registry.corp.io:5000""#,
                r#"write `container.image not startsWith "registry.corp.io:5000/"`"#,
            ),
            (
                r#"none(["quay.io/", "ghcr.io"], container.image startsWith #)"#,
                r#"put "ghcr.io/" in the place of "ghcr.io""#,
            ),
            (
                r#"not all(spec.containers, .image startsWith "registry.corp.io")"#,
                r#"`.image startsWith "registry.corp.io/"`"#,
            ),
            (
                r#"not (container.image contains "corp.io/")"#,
                r#""corp.io/" may be anywhere in it, as in "other.example/corp.io/", and this rule lets that through: write `container.image startsWith "corp.io/"`"#,
            ),
        ],
    );
    check_silent(
        "{kind: Pod}",
        &[
            image,
            r#"not (container.image startsWith "registry.corp.io/")"#,
            r#"not (container.image contains "@sha256:")"#,
            r#"not (container.image startsWith "nginx:1.2")"#,
            r#"metadata.namespace not startsWith "kube-" && spec.hostPID"#,
        ],
    );
}

#[test]
fn a_domain_begins_behind_a_dot() {
    let rule = |end: &str| {
        format!(r#"object.spec.defaultBackend != nil || any(object.spec.rules, not (.host endsWith "{end}"))"#)
    };
    check_warned(
        INGRESS,
        &[(
            &rule("corp.io"),
            r#""corp.io" is also the end of "othercorp.io", and this rule lets that through: write `(.host == "corp.io" || .host endsWith ".corp.io")`"#,
        )],
    );
    check_silent(INGRESS, &[&rule(".corp.io")]);
    check_warned(
        INGRESS,
        &[(
            r#"not all(object.spec.tls, all(.hosts, # endsWith "corp.io"))"#,
            r##"write `(# == "corp.io" || # endsWith ".corp.io")`"##,
        )],
    );
    check_warned(
        "{kind: Service}",
        &[(
            r#"object.spec.type == "ExternalName" && object.spec.externalName not endsWith "corp.io""#,
            r#"write `not (object.spec.externalName == "corp.io" || object.spec.externalName endsWith ".corp.io")`"#,
        )],
    );
}

#[test]
fn a_folder_or_an_address_ends_with_its_name() {
    check_warned(
        "{kind: Pod}",
        &[(
            r#"any(spec.volumes, .hostPath != nil && not (.hostPath.path startsWith "/var/log"))"#,
            r#"write `(.hostPath.path == "/var/log" || .hostPath.path startsWith "/var/log/")`"#,
        )],
    );
    check_silent("{kind: Pod}", &[r#"any(spec.volumes, .hostPath.path startsWith "/etc")"#]);
    check_warned(
        "{kind: ConfigMap}",
        &[(
            r#"not (object.data.url startsWith "https://git.corp.io")"#,
            r#"write `object.data.url startsWith "https://git.corp.io/"`"#,
        )],
    );
}

#[test]
fn a_pattern_is_found_anywhere() {
    let label = r#"metadata.labels["cost-center"]"#;
    check_warned(
        "{kind: Pod}",
        &[
            (
                &format!(r#"not ({label} matches "cc-[0-9]{{4}}")"#),
                &format!(
                    "a pattern without `^` may be found anywhere in a text, and this rule lets that through: write `{label} matches \"^cc-[0-9]{{4}}$\"`"
                ),
            ),
            (
                r#"container.image not matches "registry.corp.io/.*""#,
                r#"write `container.image not matches "^registry.corp.io/"`"#,
            ),
            (&format!(r#"{label} not matches "a|b""#), &format!(r#"`{label} not matches "^(a|b)$"`"#)),
        ],
    );
    check_silent(
        "{kind: Pod}",
        &[
            &format!(r#"not ({label} matches "^cc-[0-9]{{4}}$")"#),
            &format!(r#"not ({label} matches "-[0-9]{{4}}$")"#),
            &format!(r#"not ({label} matches ".*cc.*")"#),
            r#"any(container.args, # matches "password=")"#,
        ],
    );
}

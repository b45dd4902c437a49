//! What an Ingress lets in beside what its rules name.

use super::{INGRESS, check_judged, check_silent, check_warned};

const BACKEND: &str = "object.spec.defaultBackend";

#[test]
fn an_ingress_without_a_host_is_for_all_hosts() {
    check_warned(
        INGRESS,
        &[
            (r#"any(object.spec.rules, .host startsWith "*")"#, r#"`(.host == nil || .host startsWith "*")`"#),
            (r#"any(object.spec.rules, .host in ["a.example"])"#, r#"`(.host == nil || .host in ["a.example"])`"#),
        ],
    );
    check_silent(
        INGRESS,
        &[
            // What has none violates these.
            &format!(r#"{BACKEND} != nil || any(object.spec.rules, not (.host endsWith ".example"))"#),
            &format!(r#"{BACKEND} != nil || not all(object.spec.rules, .host endsWith ".example")"#),
            &format!(r#"{BACKEND} != nil || any(object.spec.rules, .host != "a.example")"#),
            &format!(r#"{BACKEND} != nil || any(object.spec.rules, .host == nil || .host contains "*")"#),
        ],
    );
}

#[test]
fn the_default_backend_of_an_ingress_is_for_all_other_hosts() {
    let told = |whole: &str| {
        format!(
            "`{BACKEND}` is for every host that no rule is for, also where `object.spec.rules` is empty, and this rule does not ask for it: \
             write `({BACKEND} != nil || {whole})`, or `object.spec.rules != nil && {whole}` to leave it out"
        )
    };
    let outside = r#"any(object.spec.rules, .host not endsWith ".example")"#;
    let covered = "any(object.spec.rules, .host not in flatten(map(object.spec.tls, .hosts)))";
    let hosts = r#"any(hosts, # not endsWith ".example")"#;
    check_warned(
        INGRESS,
        &[
            (outside, &told(outside)),
            (covered, &told(covered)),
            (&format!("let hosts = map(object.spec.rules, .host); {hosts}"), &told(hosts)),
            (
                r#"len(filter(object.spec.rules, .host not endsWith ".example")) > 0"#,
                &told(r#"len(filter(object.spec.rules, .host not endsWith ".example")) > 0"#),
            ),
            (
                r#"not all(object.spec.rules, .host endsWith ".example")"#,
                &format!(
                    "write `({BACKEND} == nil && all(object.spec.rules, .host endsWith \".example\"))`, or `(object.spec.rules == nil || "
                ),
            ),
        ],
    );
    check_silent(
        INGRESS,
        &[
            // What has no rules violates these.
            r#"none(object.spec.rules, .host == "a.example")"#,
            "object.spec.tls == nil",
            // What the default backend has none of is asked here.
            r#"any(object.spec.rules, any(.http.paths, .pathType == "Exact"))"#,
            // Rules for every host are left out on purpose here.
            r#"any(object.spec.rules, .host != nil && not (.host endsWith ".example"))"#,
            &format!("object.spec.rules != nil && {outside}"),
            // Nobody has the same host by a default backend.
            "let own = metadata.name; let hosts = map(filter(object.spec.rules, .host != nil), .host); \
             any(cluster.ingresses.list(\"*\"), .metadata.name != own && any(.spec.rules, .host != nil && .host in hosts))",
        ],
    );
    let ingress = |spec: &str| {
        format!("{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: a}}, spec: {{{spec}}}}}")
    };
    let (backend, good, bad) = (
        "defaultBackend: {service: {name: a, port: {number: 80}}}",
        "rules: [{host: a.example}]",
        "rules: [{host: b}]",
    );
    check_judged(
        INGRESS,
        &format!("{BACKEND} != nil || {outside}"),
        &[
            (&ingress(backend), true),
            (&ingress(&format!("{backend}, {good}")), true),
            (&ingress(bad), true),
            (&ingress(good), false),
        ],
    );
    check_judged(
        INGRESS,
        &format!("object.spec.rules != nil && {outside}"),
        &[(&ingress(backend), false), (&ingress(bad), true), (&ingress(good), false)],
    );
}

#[test]
fn the_default_backend_of_an_ingress_is_a_backend() {
    let named = r#"any(object.spec.rules, any(.http.paths, .backend.service.name == "legacy"))"#;
    let found = "cluster.services.byName(metadata.namespace, .backend.service.name) == nil";
    let whole = format!("any(object.spec.rules, any(.http.paths, .backend.service != nil && {found}))");
    check_warned(
        INGRESS,
        &[
            (
                named,
                &format!(
                    "`{BACKEND}` is a backend too, also where `object.spec.rules` is empty, and this rule does not ask for it: write \
                     `({BACKEND} != nil && {BACKEND}.service.name == \"legacy\" || {named})`"
                ),
            ),
            (
                "any(object.spec.rules, any(.http.paths, .backend.service == nil || .backend.resource != nil))",
                &format!("write `({BACKEND} != nil && ({BACKEND}.service == nil || {BACKEND}.resource != nil) || any("),
            ),
            (
                &whole,
                &format!(
                    "write `({BACKEND} != nil && {BACKEND}.service != nil && {} || any(",
                    found.replace(".backend", BACKEND)
                ),
            ),
            (
                "any(object.spec.rules, any(.http.paths, let path = #; path.backend.service == nil))",
                &format!("write `({BACKEND} != nil && {BACKEND}.… || any("),
            ),
            (
                r#"not all(object.spec.rules, all(.http.paths, .backend.service.name == "gate"))"#,
                &format!("write `(({BACKEND} == nil || {BACKEND}.service.name == \"gate\") && all("),
            ),
        ],
    );
    // A Service is in use also if an Ingress that is looked up leads everything to it.
    check_warned(
        "{kind: Service}",
        &[(
            "any(cluster.ingresses.list(metadata.namespace), any(.spec.rules, any(.http.paths, .backend.service.name == metadata.name)))",
            "write `(.spec.defaultBackend != nil && .spec.defaultBackend.service.name == metadata.name || any(",
        )],
    );
    check_silent(INGRESS, &[&format!("{BACKEND} != nil && {BACKEND}.service.name == \"legacy\" || {named}")]);
}

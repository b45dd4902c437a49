//! What else than the object is asked for, and what nobody sees.

use super::{DEPLOYMENT, PDB, check, check_accepted, check_warned, told};

#[test]
fn what_selects_pods_is_not_found_by_their_labels() {
    let asked = |plural: &str, selector: &str| {
        format!("len(cluster.{plural}.list(metadata.namespace, object.spec.selector{selector})) == 0")
    };
    let advice = |plural: &str, field: &str| {
        format!(
            "`{plural}` are found by their own labels, and not by the pods that they select: write \
             `filter(cluster.{plural}.list(metadata.namespace), selects({field}, object.spec.template.metadata.labels))`"
        )
    };
    check(
        DEPLOYMENT,
        &[
            (&asked("poddisruptionbudgets", ""), &advice("poddisruptionbudgets", ".spec.selector")),
            (&asked("poddisruptionbudgets", ".matchLabels"), &advice("poddisruptionbudgets", ".spec.selector")),
            (&asked("networkpolicies", ""), &advice("networkpolicies", ".spec.podSelector")),
        ],
    );
    check_accepted(DEPLOYMENT, &["len(cluster.pods.list(metadata.namespace, object.spec.selector)) == 0"]);
}

#[test]
fn lookups_have_types() {
    check(
        PDB,
        &[
            (r#"cluster.configmaps.byName(metadata.namespace, "a").dta.x == "1""#, "did you mean `data`?"),
            ("any(cluster.pods.list(metadata.namespace), .spc.hostNetwork)", "did you mean `spec`?"),
            (
                r#"!cluster.pods.byName(metadata.namespace, "a")"#,
                r#"`cluster.pods.byName(metadata.namespace, "a") == nil`"#,
            ),
            ("!cluster.pods.list(metadata.namespace)", "`len(cluster.pods.list(metadata.namespace)) == 0`"),
            (
                "len(cluster.pods.list(metadata.namespace, object.spec.selector.matchLabels)) == 0",
                "`object.spec.selector`",
            ),
            (
                r#"not cluster.pods.exists(metadata.namespace, "a")"#,
                r#"`cluster.pods.byName(metadata.namespace, "a") != nil`"#,
            ),
            (
                r#"len(cluster.pods.list(metadata.namespace, "app=web")) == 0"#,
                r#"`cluster.pods.list(metadata.namespace, {"app": "web"})`"#,
            ),
            (
                "any(cluster.pods.list(metadata.namespace), any(.spec.containers, .image.tag == \"a\"))",
                "`image(.image).tag`",
            ),
        ],
    );
    check(
        PDB,
        &[(
            r#"len(cluster.pods.list(metadata.namespace, "app!=web")) == 0"#,
            r#"a selector is a map of labels, and this is text: write `cluster.pods.list(metadata.namespace, {app: "x"})`, or `cluster.pods.list(metadata.namespace)` for all of them"#,
        )],
    );
    check_warned(
        PDB,
        &[(
            r#"cluster.configmaps.byName("cfg", metadata.namespace) == nil"#,
            r#"`cluster.configmaps.byName(metadata.namespace, "cfg")`"#,
        )],
    );
    let same = "cluster.configmaps.byName(metadata.namespace, request.namespace) == nil";
    assert_eq!(told(&format!("gvk: [{PDB}]"), same), "");
    check_accepted(PDB, &["len(cluster.pods.list(metadata.namespace, object.spec.selector)) == 0"]);
}

#[test]
fn an_empty_namespace_and_an_empty_selector_are_told_at_once() {
    let told = told(&format!("gvk: [{PDB}]"), r#"len(cluster.pods.list("", "")) == 0"#);
    for expected in [
        r#"no namespace is called "": write "*" for all namespaces"#,
        r#"this is text: write `cluster.pods.list("*", {app: "x"})`, or `cluster.pods.list("*")` for all of them"#,
    ] {
        assert!(told.contains(expected), "{told}");
    }
    check(
        PDB,
        &[
            (r#"len(cluster.pods.list("*", "")) == 0"#, r#"`cluster.pods.list("*", {app: "x"})`"#),
            (
                r#"len(cluster.consistent.pods.list("shop", "app=a, tier==b")) == 0"#,
                r#"`cluster.consistent.pods.list("shop", {"app": "a", "tier": "b"})`"#,
            ),
            (r#"len(cluster["pods.metrics.k8s.io"].list("", "")) == 0"#, "no kind is served as"),
            (
                r#"len(cluster.nodes.list("", "")) == 0"#,
                r#"`nodes` are in no namespace, and a selector is a map of labels: write `cluster.nodes.list()` for all of them, or `cluster.nodes.list({app: "x"})`"#,
            ),
            (r#"len(cluster.nodes.list("role=web")) == 0"#, r#"`cluster.nodes.list({"role": "web"})`"#),
        ],
    );
}

#[test]
fn subresources_are_named_in_match() {
    check(DEPLOYMENT, &[(r#"request.subResource == "scale""#, "`subresources: [scale]`")]);
    check(
        DEPLOYMENT,
        &[
            (r#"request.subResource == """#, "where there is none it is `nil`: write `request.subResource == nil`"),
            (r#"request.subResource not in ["", "x"]"#, "this is never \"\": where there is none it is `nil`"),
        ],
    );
    for (kind, expected) in [
        ("kind: PodExecOptions", "`gvk: [{kind: Pod}]` and `subresources: [exec]`"),
        ("kind: pods/exec", "`gvk: [{kind: Pod}]` and `subresources: [exec]`"),
        ("group: apps, kind: Deployment/scale", "`gvk: [{group: apps, kind: Deployment}]` and `subresources: [scale]`"),
        ("group: autoscaling, kind: Scale", "`subresources: [scale]`"),
        ("group: '*', kind: '*'", "name the kinds one by one"),
        ("group: policy, kind: PodSecurityPolicy", "`version: v1beta1`"),
    ] {
        let told = told(&format!("gvk: [{{{kind}}}]"), "true");
        assert!(told.contains(expected), "{kind}\n{told}");
    }
    let custom = told("gvk: [{group: acme.io, kind: Scale}]", "true");
    assert!(custom.contains("no kind `Scale` is served in group `acme.io`"), "{custom}");
    let connected = "gvk: [{kind: Pod}], operations: [CONNECT], subresources: [exec]";
    let told = |rule: &str| told(connected, rule);
    assert!(
        told("metadata.labels.a == 'b'").contains("`cluster.pods.byName(request.namespace, request.name).metadata`")
    );
    assert_eq!(told("cluster.pods.byName(request.namespace, request.name).metadata.labels.a == 'b'"), "");
}

#[test]
fn values_of_secrets_are_hidden() {
    let hidden = "the values of a Secret are hidden";
    let rows = [
        r#"object.data.password == "x""#,
        r#"(object.data.password ?? "") == """#,
        r#"let p = object.data.password; p startsWith "x""#,
        "len(object.data.password) < 12",
        r#"any(values(object.data), # == "")"#,
        r#"any(values(object.data), fromBase64(#) == "x")"#,
        r#""x" in values(object.data)"#,
        "object.data != request.oldObject.data",
        "object != request.oldObject",
        r#"x509(object.data["tls.crt"]).isCA"#,
        r#"toJSON(object.data) contains "x""#,
        r#"cluster.secrets.byName(metadata.namespace, "db").data.password == "x""#,
        r#"any(cluster.secrets.list(metadata.namespace), .data.password == "x")"#,
    ];
    check("{kind: Secret}", &rows.map(|rule| (rule, hidden)));
    let asked = r#"`"password" in object.data`"#;
    check("{kind: Secret}", &[rows[0], "!object.data.password", "object.data.password"].map(|rule| (rule, asked)));
    check(
        "{kind: Secret}",
        &[
            (r#"object.data?.password == "x""#, asked),
            (r#"any(toPairs(object.data), #[0] == "x")"#, "with `\"key\" in …` or `keys(…)`"),
            (r#""x" in object.stringData"#, "before rules see it, write `object.data`"),
        ],
    );
    let more = [
        "len(uniq(values(object.data))) < 2",
        "len(keys(groupBy(values(object.data), #))) < 2",
        "object.data.password[0] == 42",
        r#"{"***": 1}[object.data.password] == 1"#,
        "metadata.labels[object.data.password] == nil",
        r#"get({"***": 1}, object.data.password) == 1"#,
        r#"toJSON([[[object]]]) contains "x""#,
        r#"toJSON({"a": {"b": {"c": object.data}}}) contains "x""#,
        r#"toJSON(request) contains "x""#,
    ];
    check("{kind: Secret}", &more.map(|rule| (rule, hidden)));
    for matching in [
        "gvk: [{kind: Secret}], subresources: [foo]",
        "gvk: [{kind: Secret}, {group: apps, kind: '*'}, {group: batch, kind: '*'}, {group: policy, kind: '*'}, {kind: Service}, {kind: ConfigMap}]",
    ] {
        let told = |rule: &str| told(matching, rule);
        assert!(told(r#"object.data.password == "x""#).contains(hidden), "{matching}");
        assert_eq!(told(r#"object.spec.a.b == "x" || "a" in object.data || object.metadata.name == "x""#), "");
    }
    let both = r#"object.kind == "ConfigMap" && object.data.x == "y""#;
    assert!(told("gvk: [{kind: Secret}, {kind: ConfigMap}]", both).contains("(write a rule for ConfigMap alone)"));
    check_accepted(
        "{kind: Secret}",
        &[
            r#""password" in object.data"#,
            "object.data.password == nil && object.data != nil",
            r#"any(keys(object.data), # startsWith "a") || len(object.data) > 3"#,
            r#"object.type == "Opaque""#,
        ],
    );
}

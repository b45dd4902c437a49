//! Rules as people write them first, and what they are told. Following the text gives a rule that is right.

mod advice;
mod left_out;

use crate::testing::rules;

const DEPLOYMENT: &str = "{group: apps, kind: Deployment}";
const INGRESS: &str = "{group: networking.k8s.io, kind: Ingress}";
const POLICY: &str = "{group: networking.k8s.io, kind: NetworkPolicy}";
const PDB: &str = "{group: policy, kind: PodDisruptionBudget}";

fn told(matching: &str, rule: &str) -> String {
    let rule = rule.replace('\n', "\n  ");
    rules(&format!("name: a\nmatch: {{{matching}}}\nrule: |\n  {rule}\n")).1.join("\n")
}

/// Each rule for a kind is refused with this, and what it is told to write is accepted.
#[track_caller]
fn check(kind: &str, rows: &[(&str, &str)]) {
    for (rule, expected) in rows {
        let matching = format!("gvk: [{kind}]");
        let told = told(&matching, rule);
        assert!(told.starts_with("Error") && told.contains(expected), "{rule}\n{told}");
        follow(&matching, rule, &told);
    }
}

/// Each rule for a kind is accepted with a warning that says this, and what it is told to write is accepted too.
#[track_caller]
fn check_warned(kind: &str, rows: &[(&str, &str)]) {
    for (rule, expected) in rows {
        let matching = format!("gvk: [{kind}], podControllers: false");
        let told = told(&matching, rule);
        assert!(told.starts_with("Warning") && told.contains(expected), "{rule}\n{told}");
        follow(&matching, rule, &told);
    }
}

/// Whatever is said to be written is accepted, as the rule or in place of a part of it. Once more something may be said of it.
#[track_caller]
pub(super) fn follow(matching: &str, rule: &str, told: &str) {
    for advice in advised(told) {
        let is_accepted = leads_on(matching, rule, advice, 0) || leads_on(matching, rule, advice, 1);
        assert!(is_accepted, "{rule}\n{told}\n`{advice}` is refused: {}", self::told(matching, advice));
    }
}

fn leads_on(matching: &str, rule: &str, advice: &str, more: usize) -> bool {
    let in_place = |(start, end): (usize, usize)| format!("{}{advice}{}", &rule[..start], &rule[end..]);
    std::iter::once(advice.to_owned()).chain(parts(rule).map(in_place)).any(|rule| {
        let told = told(matching, &rule);
        let advised = advised(&told);
        !told.contains("Error") || more > 0 && advised.iter().any(|advice| leads_on(matching, &rule, advice, more - 1))
    })
}

/// The expressions that a text says to write. What has a `…` in it is only the form of one, and other fields than the rule have keys.
fn advised(told: &str) -> Vec<&str> {
    let first_line = told.lines().next().unwrap_or_default();
    let pieces: Vec<&str> = first_line.split('`').collect();
    let is_advised = |before: &str| before.ends_with("write ") || before.ends_with(" or ");
    let is_field = |text: &str| text.split_once(": ").is_some_and(|(key, _)| key.chars().all(char::is_alphabetic));
    let advised = pieces.chunks(2).filter_map(|pair| match pair {
        [before, text] if is_advised(before) => Some(*text),
        _ => None,
    });
    advised.filter(|text| !text.contains('…') && !is_field(text) && text.contains(char::is_alphanumeric)).collect()
}

/// The words of a rule, and the parts of it that are expressions, the longest first.
fn parts(rule: &str) -> impl Iterator<Item = (usize, usize)> {
    let is_word = |at: usize| rule.as_bytes()[at].is_ascii_alphanumeric();
    let is_edge = |at: &usize| *at == 0 || *at == rule.len() || !is_word(*at - 1) || !is_word(*at);
    let edges: Vec<usize> = (0..=rule.len()).filter(|at| rule.is_char_boundary(*at)).filter(is_edge).collect();
    let ends_behind = |start: usize| edges.iter().filter(move |end| **end > start).map(move |end| (start, *end));
    let mut parts: Vec<(usize, usize)> = edges.iter().flat_map(|start| ends_behind(*start)).collect();
    parts.sort_by_key(|(start, end)| start + rule.len() - end);
    let is_part = |part: &str| {
        part.chars().all(char::is_alphanumeric) || portal_expr::canonical(&format!("any(list, {part})")).is_ok()
    };
    parts.into_iter().filter(move |(start, end)| is_part(&rule[*start..*end]))
}

/// Each rule for a kind is accepted.
#[track_caller]
fn check_accepted(kind: &str, rules: &[&str]) {
    for rule in rules {
        let told = told(&format!("gvk: [{kind}], podControllers: false"), rule);
        assert!(!told.contains("Error"), "{rule}\n{told}");
    }
}

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
            (r#"len(cluster.pods.list(metadata.namespace, "app=web")) == 0"#, r#"`{"app": "web"}`"#),
            (
                "any(cluster.pods.list(metadata.namespace), any(.spec.containers, .image.tag == \"a\"))",
                "`image(.image).tag`",
            ),
        ],
    );
    check(
        PDB,
        &[(r#"len(cluster.pods.list(metadata.namespace, "app!=web")) == 0"#, "must be map, and this is string")],
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
fn what_can_only_turn_out_one_way_is_refused() {
    check(
        "{kind: Pod}",
        &[
            (r#"metadata.namespace != "a" || metadata.namespace != "b""#, r#"`metadata.namespace not in ["a", "b"]`"#),
            (r#"metadata.name == "a" && metadata.name == "b""#, r#"`metadata.name in ["a", "b"]`"#),
            (r#"container.image.tag == "a" || "b""#, r#"`container.image.tag in ["a", "b"]`"#),
        ],
    );
    let twice = r#"metadata.name != "a" || metadata.name != "b" || metadata.name != "a""#;
    check("{kind: Pod}", &[(twice, r#"`metadata.name not in ["a", "b"]`"#)]);
    check_accepted(
        "{kind: Pod}",
        &[
            r#"metadata.name != "a" && metadata.name != "b""#,
            r#"metadata.name == "a" || metadata.name == "b""#,
            r#"metadata.name != "a" || metadata.namespace != "b""#,
        ],
    );
}

#[test]
fn two_sides_that_do_not_fit_are_told_with_what_fits() {
    check(
        "{kind: Pod}",
        &[
            ("any(container.ports, # == 80)", "`.containerPort == 80`"),
            ("22 in container.ports", "`any(container.ports, .containerPort == 22)`"),
            (r#""DEBUG" in container.env"#, r#"`any(container.env, .name == "DEBUG")`"#),
            (r#""hostPath" in spec.volumes"#, "`any(spec.volumes, .hostPath != nil)`"),
            (r#"container.env["DEBUG"] == "true""#, r#"`any(container.env, .name == "DEBUG" && …)`"#),
            ("metadata.annotations.a == false", r#"`metadata.annotations.a == "false"`"#),
            ("metadata.labels.a > 3", r#"`metadata.labels.a matches "^[0-9]+$" && int(metadata.labels.a) > 3`"#),
            (
                "container.image.tag >= 2",
                r#"`isSemver(container.image.tag) && semver(container.image.tag) >= semver("2")`"#,
            ),
            (r#"(metadata.labels.a || "") == "x""#, r#"`(metadata.labels.a ?? "")`"#),
            ("any(spec.containers + spec.initContainers, .tty)", "`concat(spec.containers, spec.initContainers)`"),
            ("!len(spec.volumes)", "`len(spec.volumes) == 0`"),
            ("container.image.tag == latest", r#"`"latest"`"#),
            ("any(c in spec.containers, c.tty)", "`any(spec.containers, .tty)`"),
            (r#"any(c in spec.containers, c.name == "c")"#, r#"`any(spec.containers, .name == "c")`"#),
            (
                "any(c in spec.containers, any(spec.volumes, .name == c.name))",
                "`any(spec.containers, let c = #; any(spec.volumes, .name == c.name))`",
            ),
            (
                r#"any(metadata.labels, .key == "a" && .value == "b")"#,
                r#"`any(keys(metadata.labels), # == "a" && metadata.labels[#] == "b")`"#,
            ),
            (
                r#"any(metadata.annotations, .key startsWith "a")"#,
                r#"`any(keys(metadata.annotations), # startsWith "a")`"#,
            ),
            ("container.isInit", r#"`container.containerType == "init"`"#),
            (r#"containerType != "init""#, "`container.containerType`"),
            ("not spec.nodeName", r#"`(spec.nodeName ?? "") == ""`"#),
        ],
    );
    check(PDB, &[("object.spec.maxUnavailable < 1", r#"`object.spec.maxUnavailable in [0, "0%"]`"#)]);
    check(DEPLOYMENT, &[("object.spec.replicas < 2", "`(object.spec.replicas ?? 1) < 2`")]);
    check(DEPLOYMENT, &[("object.status.replicas < 1", "`(object.status.replicas ?? 0) < 1`")]);
    let low = r#"any(object.spec.ingress, any(.ports, .port < 1024))"#;
    let advised = r#"the name of a port, which has no such order: write `type(.port) == "int" && .port < 1024`"#;
    check(POLICY, &[(low, advised)]);
    check_accepted(POLICY, &[r#"any(object.spec.ingress, any(.ports, type(.port) == "int" && .port < 1024))"#]);
    let told = told("gvk: [{kind: Service}]", "object.spec.type");
    assert!(told.contains("a rule must be true or false") && !told.contains("those of a pod"), "{told}");
    check(INGRESS, &[(r#"object.apiVersion == "networking.k8s.io/v1beta1""#, "`version: v1beta1`")]);
    check("{kind: Service}", &[(r#"any(object.spec.externalIPs, # in "10.0.0.0/8")"#, r#"`# in cidr("10.0.0.0/8")`"#)]);
}

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
fn whole_sources_of_other_languages_are_told_as_rules() {
    for (rule, expected) in [
        (r#"eq spec.nodeName "a""#, r#"spec.nodeName == "a""#),
        ("(default 1 spec.priority) < 2", "(spec.priority ?? 1) < 2"),
        ("{{ eq .spec.hostNetwork true }}", "spec.hostNetwork == true"),
        (r#"hasKey metadata.labels "a""#, r#""a" in metadata.labels"#),
        (".spec.hostPID", "spec.hostPID"),
        (r#"metadata.annotations has "a""#, r#""a" in metadata.annotations"#),
        ("any(c.tty for c in spec.containers)", "any(spec.containers, .tty)"),
        (r#"any("a" in v for k, v in metadata.labels.items())"#, r#"any(values(metadata.labels), # contains "a")"#),
        (
            "e := container.env[_]\nregex.match(\"a\", e.name)\ne.value != null",
            r#"any(container.env, .name matches "a" && .value != nil)"#,
        ),
        (
            "a := {l | metadata.labels[l]}\nb := {\"x\"}\nc := b - a\ncount(c) > 0",
            r#"let a = keys(metadata.labels); let b = ["x"]; let c = filter(b, # not in a); len(c) > 0"#,
        ),
        (r#"spec.nodeName ?? "a" == "b""#, r#"(spec.nodeName ?? "a") == "b""#),
    ] {
        check("{kind: Pod}", &[(rule, &format!(": write `{expected}`"))]);
        // Whoever does as told has a rule.
        check_accepted("{kind: Pod}", &[expected]);
    }
    check(
        "{kind: Pod}",
        &[("spec.hostPID\nnot metadata.labels.a == 'b'", "write `&&` between the lines if both must be true")],
    );
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
fn a_type_that_was_asked_for_is_known() {
    check(
        PDB,
        &[(
            "object.spec.minAvailable > 3",
            "`type(object.spec.minAvailable) == \"int\" && object.spec.minAvailable > 3`",
        )],
    );
    check_accepted(
        PDB,
        &[
            "type(object.spec.minAvailable) == \"int\" && object.spec.minAvailable < 3",
            "type(object.spec.minAvailable) != \"string\" || object.spec.minAvailable endsWith \"%\"",
        ],
    );
    check(PDB, &[("type(object.spec.minAvailable) == \"string\" && object.spec.minAvailable < 3", "may be a number")]);
    check(
        "{kind: Pod}",
        &[(
            "date(metadata.annotations.expires) < now()",
            "write `metadata.annotations.expires != nil && …` to leave out what has none, or `date(",
        )],
    );
}

#[test]
fn what_may_be_a_number_or_a_text_is_asked_for_both() {
    check_warned(
        PDB,
        &[
            (
                "object.spec.maxUnavailable == 0",
                r#"0 is not "0%": write `object.spec.maxUnavailable in [0, "0%"]` for both"#,
            ),
            (r#""0%" == object.spec.maxUnavailable"#, r#"`object.spec.maxUnavailable in [0, "0%"]`"#),
            ("object.spec.maxUnavailable != 0", r#"`object.spec.maxUnavailable not in [0, "0%"]`"#),
            ("object.spec.maxUnavailable not in [0, 1]", r#"`object.spec.maxUnavailable not in [0, 1, "0%"]`"#),
            ("(object.spec.maxUnavailable ?? 1) == 0", r#"`(object.spec.maxUnavailable ?? 1) in [0, "0%"]`"#),
            ("let x = object.spec.maxUnavailable; x == 0", r#"`x in [0, "0%"]`"#),
        ],
    );
    check_warned(
        DEPLOYMENT,
        &[(
            "object.spec.strategy.rollingUpdate.maxSurge == 0",
            r#"`object.spec.strategy.rollingUpdate.maxSurge in [0, "0%"]`"#,
        )],
    );
    check_accepted(
        PDB,
        &[
            r#"object.spec.maxUnavailable == 0 || object.spec.maxUnavailable == "0%""#,
            r#"type(object.spec.maxUnavailable) == "int" && object.spec.maxUnavailable == 0"#,
            r#"object.spec.minAvailable == "100%""#,
            "object.spec.minAvailable == 1",
            r#"(object.spec.minAvailable ?? "") == """#,
        ],
    );
    check_accepted("{kind: Service}", &["any(object.spec.ports, .targetPort == 80)"]);
    check(
        PDB,
        &[
            (r#"object.spec.maxUnavailable == "0""#, r#"never "0": write `object.spec.maxUnavailable in [0, "0%"]`"#),
            (r#"object.spec.maxUnavailable != "5""#, "`object.spec.maxUnavailable != 5`"),
            ("not object.spec.maxUnavailable", "`object.spec.maxUnavailable == nil` to ask whether it is missing"),
            ("object.spec.maxUnavailable", "`object.spec.maxUnavailable != nil` to ask whether it is there"),
        ],
    );
    let port = r#"any(object.spec.ports, .targetPort == "80")"#;
    check("{kind: Service}", &[(port, r#"the name of a port, and never "80": write `.targetPort == 80`"#)]);
}

#[test]
fn what_may_be_a_number_or_a_text_works_with_neither_alone() {
    check(
        PDB,
        &[
            (
                r#"trimSuffix(object.spec.maxUnavailable, "%") == "0""#,
                r#"may be a number, which is no text: write `trimSuffix(string(object.spec.maxUnavailable ?? ""), "%")`"#,
            ),
            (
                r#"object.spec.maxUnavailable not contains "%""#,
                r#"`string(object.spec.maxUnavailable ?? "") not contains "%"`"#,
            ),
            (
                r#"object.spec.maxUnavailable != nil && object.spec.maxUnavailable matches "^0""#,
                r#"`string(object.spec.maxUnavailable) matches "^0"`"#,
            ),
            ("len(object.spec.maxUnavailable) > 3", r#"`len(string(object.spec.maxUnavailable ?? ""))`"#),
            (
                "object.spec.maxUnavailable + 1 > 2",
                r#"`int(trimSuffix(string(object.spec.maxUnavailable ?? 0), "%")) + 1` to take the number alone"#,
            ),
            (
                "int(object.spec.maxUnavailable ?? 1) < 1",
                r#"`type(object.spec.maxUnavailable) == "int" && …` to leave out such texts, or `int(trimSuffix(string("#,
            ),
            (
                "(object.spec.maxUnavailable ?? 1) < 1",
                r#"`(let x = object.spec.maxUnavailable ?? 1; type(x) == "int" && x < 1)` to leave out such texts"#,
            ),
            (r#"object.spec.maxUnavailable + "a" == "1a""#, r#"`string(object.spec.maxUnavailable ?? "") + "a"`"#),
            (
                r#"type(object.spec.maxUnavailable) == "int" && lower(object.spec.maxUnavailable) == "1""#,
                "which is no text",
            ),
        ],
    );
    check(
        "{kind: Service}",
        &[
            (r#"any(object.spec.ports, .targetPort matches "^h")"#, r#"`string(.targetPort ?? "") matches "^h"`"#),
            ("any(object.spec.ports, .targetPort + 1 > 80)", r#"`type(.targetPort) == "int" && …` to leave out names"#),
        ],
    );
    check_accepted(
        PDB,
        &[
            r#"type(object.spec.maxUnavailable) == "int" && object.spec.maxUnavailable + 1 > 2"#,
            r#"type(object.spec.maxUnavailable) == "string" && lower(object.spec.maxUnavailable) == "0%""#,
            r#"type(object.spec.maxUnavailable) != "int" && object.spec.maxUnavailable endsWith "%""#,
            r#"int(trimSuffix(string(object.spec.maxUnavailable ?? 0), "%")) > 50"#,
        ],
    );
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

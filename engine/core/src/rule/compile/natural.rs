//! Rules as people write them first, and what they are told. Following the text gives a rule that is right.

mod advice;
mod alike;
mod allowed;
mod either;
mod filled;
mod foreign;
mod ingress;
mod languages;
mod left_out;
mod library;
mod lookups;
mod missing;
mod partial;
mod slips;

use crate::testing::{Objects, judge, objects, rules};

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

/// Whether each object violates a rule for its kind, which nothing is told of.
#[track_caller]
fn check_judged(kind: &str, rule: &str, rows: &[(&str, bool)]) {
    let (rule_set, wrong) =
        rules(&format!("name: a\nmatch: {{gvk: [{kind}], podControllers: false}}\nrule: |\n  {rule}\n"));
    assert_eq!(wrong.join("\n"), "", "{rule}");
    for (object, is_violated) in rows {
        let judged = judge(&rule_set, &objects(object)[0], &Objects(Vec::new()));
        assert!(!judged.contains("failed"), "{rule}\n{judged}");
        assert_eq!(judged.starts_with("a:"), *is_violated, "{rule}\n{object}\n{judged}");
    }
}

/// Nothing is told of these rules.
#[track_caller]
fn check_silent(kind: &str, rules: &[&str]) {
    for rule in rules {
        assert_eq!(told(&format!("gvk: [{kind}], podControllers: false"), rule), "", "{rule}");
    }
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
            ("any([container] + fromJSON(metadata.name), .tty)", "`concat([container], fromJSON(metadata.name))`"),
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
    // The values are meant here, and the keys there.
    check(
        "{kind: ConfigMap}",
        &[
            (
                r#"any(object.data, # contains "PRIVATE KEY")"#,
                r#"`any(values(object.data), # contains "PRIVATE KEY")` for its values, or `any(keys(object.data), # contains "PRIVATE KEY")` for its keys"#,
            ),
            (r#"none(metadata.labels, # startsWith "team")"#, r#"`none(keys(metadata.labels), # startsWith "team")`"#),
        ],
    );
    check(PDB, &[("object.spec.maxUnavailable < 1", r#"`object.spec.maxUnavailable in [0, "0%"]`"#)]);
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

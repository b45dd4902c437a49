//! What other languages have and this one does not: the way out is a rule that is right, or the one thing that can be done instead.

use super::{DEPLOYMENT, check, check_silent, check_warned, told};

#[test]
fn texts_that_are_filled_in_are_told_as_sums() {
    check(
        "{kind: Pod}",
        &[
            (
                r#"metadata.name == sprintf("%s-%s", [metadata.namespace, container.name])"#,
                r#"`metadata.namespace + "-" + container.name`"#,
            ),
            (r#"metadata.name == fmt.Sprintf("%s-x", metadata.namespace)"#, r#"`metadata.namespace + "-x"`"#),
            (r#"metadata.name == "%s-x".format([metadata.namespace])"#, r#"`metadata.namespace + "-x"`"#),
            (r#"metadata.name == "{}-x".format(metadata.namespace)"#, r#"`metadata.namespace + "-x"`"#),
            (r#"metadata.name == f"{metadata.namespace}-x""#, r#"`metadata.name == metadata.namespace + "-x"`"#),
            (r#"{{ metadata.name }} == "a""#, r#"`metadata.name == "a"`"#),
            (r#"metadata.name matches r"^a\.b$""#, r#"`metadata.name matches "^a\\.b$"`"#),
        ],
    );
}

#[test]
fn braces_in_a_text_are_filled_in_by_nobody() {
    check_warned(
        "{kind: Pod}",
        &[(r#""{{ request.object.metadata.name }}" == "a""#, "write `request.object.metadata.name`")],
    );
    check_silent("{kind: Pod}", &[r#"container.image == "{{ .Values.image }}:1""#]);
}

#[test]
fn operators_of_kyverno_are_told_as_predicates() {
    check(
        "{kind: Pod}",
        &[
            (r#"container.args AnyIn ["-v", "-x"]"#, r#"`any(container.args, # in ["-v", "-x"])`"#),
            (r#"container.args AnyNotIn ["-v"]"#, r#"`any(container.args, # not in ["-v"])`"#),
            (r#"AllIn(container.args, ["-v"])"#, r#"`all(container.args, # in ["-v"])`"#),
            (r##"any(metadata.namespace, # in ["a"])"##, r#"this is string: write `metadata.namespace in ["a"]`"#),
            (r#"metadata.namespace NotIn ["a"]"#, r#"`metadata.namespace not in ["a"]`"#),
            (r#"metadata.namespace Equals "a""#, r#"`metadata.namespace == "a"`"#),
            ("spec.priority GreaterThan 3", "`spec.priority > 3`"),
            (r#"images.containers.c.tag == "latest""#, "`container.image`"),
        ],
    );
}

#[test]
fn what_is_nowhere_is_told_with_what_is_done_instead() {
    check(
        "{kind: Pod}",
        &[
            (
                r#"authorizer.group("").resource("pods").check("create").allowed()"#,
                r#"nobody is asked what a user may do: write `"system:masters" in request.userInfo.groups`"#,
            ),
            ("spec.priority > params.max", "a rule has no parameters: write the value itself"),
            ("spec.priority > input.parameters.max", "a rule has no parameters: write the value itself"),
            ("variables.isBad", "a variable is declared before by `let name = …;`"),
            (
                r#"data.inventory.namespace[metadata.namespace]["v1"]["Service"] != nil"#,
                r#"other objects are looked up by `cluster.<plural>.list("*")`"#,
            ),
        ],
    );
}

#[test]
fn selections_of_other_languages_are_told_as_predicates() {
    check(
        "{kind: Pod}",
        &[
            (
                ".spec.containers[] | select(.securityContext.privileged)",
                "`any(spec.containers, .securityContext.privileged)`",
            ),
            (
                r#"[.spec.containers[] | select(.image | test("^nginx"))] | length > 0"#,
                r#"`len(filter(spec.containers, .image matches "^nginx")) > 0`"#,
            ),
            ("spec.containers.?[tty == true].size() > 0", "`len(filter(spec.containers, .tty == true)) > 0`"),
            ("spec.containers.![name].contains('x')", r#"`"x" in map(spec.containers, .name)`"#),
            ("#root.spec.hostNetwork == true", "`spec.hostNetwork == true`"),
            ("spec.containers[?tty] | length(@) > `0`", "`len(filter(spec.containers, .tty)) > 0`"),
            ("spec.containers[?tty].name | length(@) > `0`", "`len(map(filter(spec.containers, .tty), .name)) > 0`"),
            (
                "any(spec.containers, length(.ports[?hostPort == `80`]) > `0`)",
                "`any(spec.containers, len(filter(.ports, .hostPort == 80)) > 0)`",
            ),
        ],
    );
    let filtered =
        told("gvk: [{kind: Node}]", r#"filter(object.status.conditions, .type == "Ready").status == "True""#);
    let advice = r#"`find(object.status.conditions, .type == "Ready").status` for the first of them"#;
    assert!(filtered.starts_with("Error") && filtered.contains(advice), "{filtered}");
    check_silent("{kind: Node}", &[r#"find(object.status.conditions, .type == "Ready").status == "True""#]);
}

#[test]
fn libraries_of_other_languages_are_told_as_ours() {
    check(
        "{kind: Pod}",
        &[
            (r#"sets.contains(["a", "b"], container.args)"#, r#"`all(container.args, # in ["a", "b"])`"#),
            (
                r#"strings.any_prefix_match(container.image, ["a.io/", "b.io/"])"#,
                r#"`any(["a.io/", "b.io/"], container.image startsWith #)`"#,
            ),
            ("object.keys(metadata.labels) == []", "`keys(metadata.labels)`"),
            (r#"cel.bind(c, container.image, c == "a")"#, r#"`let c = container.image; c == "a"`"#),
            ("is_string(metadata.labels.a)", r#"`type(metadata.labels.a) == "string"`"#),
            (r#"metadata.labels | has("a")"#, r#"`"a" in metadata.labels`"#),
        ],
    );
}

#[test]
fn what_may_be_missing_of_an_element_is_left_out_before_it_is_added() {
    let rule = "sum(object.spec.template.spec.containers, .livenessProbe.periodSeconds) > 5";
    let advice = "`sum(filter(object.spec.template.spec.containers, .livenessProbe.periodSeconds != nil), .livenessProbe.periodSeconds)`";
    check(DEPLOYMENT, &[(rule, advice)]);
    check(
        "{kind: Pod}",
        &[(
            r#"sum(spec.containers, .resources.requests.cpu) > "4""#,
            "`sum(filter(spec.containers, .resources.requests.cpu != nil), .resources.requests.cpu)`",
        )],
    );
}

//! Sources that are of another language as a whole: a Go template, Python's `any(… for x in xs)`, the statements of Rego, the pipes of jq. What they
//! say is put in the words of this one, and is shown only if it can be read then.

mod jq;
mod python;
mod rego;
mod template;
mod words;

use super::read;
use super::repair::{self, LENIENT};
use super::token::{is_reserved, is_word, skip_space, token};
use crate::habits;

/// How long a source may be that is looked at. What is longer cannot be shown in a message.
const MAX_SOURCE: usize = 1000;

/// How long it may become.
const MAX_TRANSLATED: usize = 4 * MAX_SOURCE;

/// How many things are changed in a source.
const MAX_CHANGES: usize = 16;

/// What a source became, with the number of predicates in it that have a variable.
struct Translated {
    text: String,
    variables: usize,
}

/// What is to be written instead of a source that cannot be read.
pub(super) fn instead(source: &str) -> Option<String> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let languages = [template::translate, python::translate, rego::translate, jq::translate];
    languages
        .into_iter()
        .chain([
            words::of_holders,
            words::of_members,
            words::of_alternatives,
            words::of_braces,
            words::of_defaults,
            words::of_dots,
        ])
        .find_map(|translate| {
            let Translated { text, variables } = translate(source)?;
            let tree = match read(&text, LENIENT) {
                Ok(tree) => tree,
                // There may be more of the other language in it.
                Err(error) => return repair::instead(&text, &error),
            };
            let text = habits::written_here(&tree, variables)?;
            read(&text, !LENIENT).is_ok().then_some(text)
        })
}

/// Where an operand ends that begins at a place: a literal, a path, or something in brackets.
fn operand(text: &str, at: usize) -> Option<usize> {
    let first = text[at..].chars().next()?;
    let word = token(text, at);
    let mut end = match first {
        '(' => closing(text, at)?,
        '"' | '\'' | '`' if word.len() > 1 => return Some(at + word.len()),
        '.' if text[at + 1..].starts_with(is_word) => at,
        _ if is_word(first) && !is_reserved(word) => at + word.len(),
        _ => return None,
    };
    loop {
        let rest = &text[end..];
        match rest.chars().next() {
            Some('.') if rest[1..].starts_with(is_word) => end += 1 + token(text, end + 1).len(),
            Some('[' | '(') => end = closing(text, end)?,
            _ => return Some(end),
        }
    }
}

/// Where a bracket is closed.
fn closing(text: &str, at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, at);
    while at < text.len() {
        let word = token(text, at);
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += word.len();
        if depth == 0 {
            return Some(at);
        }
        at = skip_space(text, at);
    }
    None
}

/// Whether an operand follows a token, and no operator.
fn is_before_operand(word: &str) -> bool {
    let is_operand =
        word.ends_with([')', ']', '}', '"', '\'', '`', '#']) || word.starts_with(is_word) && !is_reserved(word);
    !is_operand && !matches!(word, "." | "?.")
}

/// A text without the dots that paths begin with: `.spec.replicas`.
fn without_dots(text: &str) -> String {
    let mut written = String::new();
    let (mut at, mut copied, mut is_first) = (skip_space(text, 0), 0, true);
    while at < text.len() {
        let word = token(text, at);
        let length = match word {
            "." if is_first && text[at + 1..].starts_with(is_word) => 1,
            "$" if is_first && text[at + 1..].starts_with('.') => 2,
            _ => 0,
        };
        if length > 0 {
            written.push_str(&text[copied..at]);
            (at, copied) = (at + length, at + length);
            continue;
        }
        is_first = is_before_operand(word);
        at = skip_space(text, at + word.len());
    }
    written + &text[copied..]
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// Each source is refused, and told as this.
    #[track_caller]
    fn check(rows: &[(&str, &str)]) {
        for (source, expected) in rows {
            let error = parse(source).expect_err(source);
            assert!(error.message.ends_with(&format!(": write `{expected}`")), "{source}\n{}", error.message);
        }
    }

    #[test]
    fn a_template_is_told_as_operations() {
        check(&[
            (r#"eq object.spec.strategy.type "Recreate""#, r#"object.spec.strategy.type == "Recreate""#),
            ("(default 1 object.spec.replicas) < 2", "(object.spec.replicas ?? 1) < 2"),
            ("{{ eq .spec.hostNetwork true }}", "spec.hostNetwork == true"),
            ("{{ .spec.hostNetwork }}", "spec.hostNetwork"),
            ("{{- if .spec.hostNetwork -}}", "spec.hostNetwork"),
            (
                r#"not (hasKey metadata.annotations "a") and not (hasKey metadata.labels "b")"#,
                r#""a" not in metadata.annotations and "b" not in metadata.labels"#,
            ),
            (
                r#"and (eq .kind "Pod") (hasPrefix "a-" .metadata.name)"#,
                r#"kind == "Pod" && metadata.name startsWith "a-""#,
            ),
            (r#"eq (index .metadata.labels "a/b") "c""#, r#"metadata.labels["a/b"] == "c""#),
            (r#"eq .kind "Pod" "Job""#, r#"kind in ["Pod", "Job"]"#),
            ("gt (len .spec.containers) 3", "len(spec.containers) > 3"),
            (r#"not (hasPrefix container.image "a/")"#, r#"container.image not startsWith "a/""#),
        ]);
    }

    #[test]
    fn what_python_generates_is_told_as_a_predicate() {
        check(&[
            (
                "any(c.securityContext.privileged for c in spec.containers)",
                "any(spec.containers, .securityContext.privileged)",
            ),
            (
                r#"not all(l in object.metadata.labels for l in ["app", "team"])"#,
                r#"not all(["app", "team"], # in object.metadata.labels)"#,
            ),
            (
                r#"any("password" in k.lower() for k in object.data)"#,
                r#"any(keys(object.data), lower(#) contains "password")"#,
            ),
            (r#"any("AKIA" in v for k, v in object.data.items())"#, r#"any(values(object.data), # contains "AKIA")"#),
            (r#"any(k == "a" and v == "b" for k, v in m.items())"#, r#"any(keys(m), # == "a" and m[#] == "b")"#),
            (r#"any("-v" in c.args for c in spec.containers)"#, r#"any(spec.containers, "-v" in .args)"#),
            ("len([c for c in spec.containers if c.tty]) > 1", "len(filter(spec.containers, .tty)) > 1"),
            ("any(c.tty for c in spec.containers if c.stdin)", "any(filter(spec.containers, .stdin), .tty)"),
            (r#""a" in [c.name for c in spec.containers]"#, r#""a" in map(spec.containers, .name)"#),
        ]);
    }

    #[test]
    fn what_grows_with_each_step_is_not_told() {
        let mut source = "xs".to_owned();
        for _ in 0..12 {
            source = format!("[v+v+v+k for k, v in {source}.items()]");
        }
        let error = parse(&source).expect_err("there is no `for`");
        assert!(error.message.len() < 1000, "{}", error.message.len());
    }

    #[test]
    fn the_statements_of_rego_are_told_as_one_condition() {
        check(&[
            (
                "e := container.env[_]\nregex.match(\"(?i)token\", e.name)\ne.value",
                "any(container.env, .name matches \"(?i)token\" && .value)",
            ),
            (
                "provided := {label | object.metadata.labels[label]}\nrequired := {\"app\", \"team\"}\n\
                 missing := required - provided\ncount(missing) > 0",
                "let provided = keys(object.metadata.labels); let required = [\"app\", \"team\"]; \
                 let missing = filter(required, # not in provided); len(missing) > 0",
            ),
            (
                "deny[msg] {\n  c := object.spec.containers[_]\n  not c.tty == true\n  msg := \"a\"\n}",
                "any(object.spec.containers, not (.tty == true))",
            ),
            (
                "deny[msg] { c := object.spec.containers[_]; not c.tty == true; msg := \"a\" }",
                "any(object.spec.containers, not (.tty == true))",
            ),
        ]);
    }

    #[test]
    fn what_may_say_the_opposite_is_not_told_as_a_whole() {
        for source in [
            "allow {\n  x := input.a\n  x == 1\n}",
            "default allow := false\nallow if {\n  x := input.a\n}",
            "x := input.a[_].b\nnot x",
            "x := a.b[_]\nnot y[_] == x",
            "is_good(x) {\n y := x.a\n y\n}",
        ] {
            let error = parse(source).expect_err(source);
            assert!(!error.message.contains(": write `"), "{source}\n{}", error.message);
        }
    }

    #[test]
    fn the_pipes_of_jq_are_told_as_predicates() {
        check(&[
            (".spec.containers[] | select(.tty)", "any(spec.containers, .tty)"),
            (".spec.containers[] | select(.tty == true and .stdin)", "any(spec.containers, .tty == true and .stdin)"),
            ("[.spec.containers[] | select(.tty | not)] | length > 0", "len(filter(spec.containers, not .tty)) > 0"),
            (
                r#".spec.containers[].image | test(":latest$")"#,
                r#"any(map(spec.containers, .image), # matches ":latest$")"#,
            ),
            (
                r#".spec.containers[] | select(.image | startswith("a/") | not)"#,
                r#"any(spec.containers, .image not startsWith "a/")"#,
            ),
            (r#".spec.containers[] | .image == "a""#, r#"any(spec.containers, .image == "a")"#),
            ("any(.spec.containers[]; .tty)", "any(spec.containers, .tty)"),
            (".spec.containers | map(select(.tty)) | length > 1", "len(filter(spec.containers, .tty)) > 1"),
            (
                ".spec.containers[].ports[] | select(.hostPort != null)",
                "any(flatten(map(spec.containers, .ports)), .hostPort != nil)",
            ),
            (r#"spec.containers[] | select(has("tty"))"#, r#"any(spec.containers, "tty" in #)"#),
        ]);
    }

    #[test]
    fn words_between_and_dots_before_are_told() {
        check(&[
            (r#"metadata.annotations has "debug""#, r#""debug" in metadata.annotations"#),
            (r#"not (container.args includes "-v")"#, r#""-v" not in container.args"#),
            (".spec.shareProcessNamespace", "spec.shareProcessNamespace"),
            (".spec.a && !.spec.b", "spec.a && !spec.b"),
            (r#"a.b ?? "x" == "y""#, r#"(a.b ?? "x") == "y""#),
            (r#"any(xs, .a ?? .b ?? 0 > 1)"#, r#"any(xs, (.a ?? .b ?? 0) > 1)"#),
            (r#"a.args AnyIn ["-v", "-x"]"#, r#"any(a.args, # in ["-v", "-x"])"#),
            (r#"a.args AllNotIn ["-v"] && b"#, r#"all(a.args, # not in ["-v"]) && b"#),
            ("(a.b // 0) > 3", "(a.b ?? 0) > 3"),
            (r#"a.b[*].c AnyIn ["x"]"#, r#"any(map(a.b, .c), # in ["x"])"#),
            (r#"{{ a.b }} == "x""#, r#"a.b == "x""#),
            ("a.b[?c].d | [0] > `1`", "map(filter(a.b, .c), .d)[0] > 1"),
            ("a.b GreaterThan 3", "a.b > 3"),
            (r#"a.b NotIn ["x"]"#, r#"a.b not in ["x"]"#),
            (r#"f"{a.b}-x" == a.c"#, r#"a.b + "-x" == a.c"#),
            (r#"a.b matches r"^\d+$""#, r#"a.b matches "^\\d+$""#),
            ("a.b.?[c == 1]", "any(a.b, .c == 1)"),
            ("a.b.?[c && d].size() > 1", "len(filter(a.b, .c && .d)) > 1"),
            ("a.b.![c].contains('x')", r#""x" in map(a.b, .c)"#),
            ("#root.a.b == 1", "a.b == 1"),
            ("a.b[?c == `0`]", "any(a.b, .c == 0)"),
            ("a.b[?c == `x`].d | length(@) > `1`", r#"len(map(filter(a.b, .c == "x"), .d)) > 1"#),
            ("a.b[?c] | length(@) > `0`", "len(filter(a.b, .c)) > 0"),
            ("a.b | contains(@, 'x')", r#"a.b contains "x""#),
        ]);
    }
}

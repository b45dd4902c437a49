//! Traps of YAML around the text of a rule. A text that begins with `!` loses its first word, and one that begins with a quote or a
//! bracket, or has `: ` in it, is no text to YAML at all. The way out is always the same: quotes, or a block.

/// Fields whose text people write without quotes.
const FIELDS: [&str; 3] = ["rule", "message", "alert"];

/// The text of a field as it is written, from its first line to its last, and whether it is in quotes or a block.
struct Written<'a> {
    field: &'a str,
    text: String,
}

/// Whether a file may have a tag where a value begins. Most have none, and are not looked at further.
pub(crate) fn may_have_tags(text: &str) -> bool {
    text.match_indices('!').any(|(at, _)| text[..at].trim_end().ends_with(':'))
}

/// What YAML leaves out of a field because it begins with `!`, and what to do about it. `text` begins with the line that has the key,
/// in this column.
pub(crate) fn tagged(text: &str, column: usize, field: &str) -> Option<String> {
    let written = written(text, column).filter(|written| written.field == field && written.text.starts_with('!'))?;
    let tag = written.text.split_whitespace().next().unwrap_or_default();
    // Whoever writes this tag means it.
    if tag == "!!str" {
        return None;
    }
    Some(format!("YAML takes `{tag}` for a tag and leaves it out: {}", way_out(field, &written.text)))
}

/// What to do about a line that YAML cannot read, if it is that of a text. `text` begins with the line.
pub(crate) fn unreadable(text: &str) -> Option<String> {
    let line = text.lines().next()?;
    let column = 1 + line.find(|letter: char| letter != ' ' && letter != '-')?;
    let written = written(text, column).filter(|written| FIELDS.contains(&written.field))?;
    // What is no text cannot be written as one.
    let is_plain = |letter: char| letter == '\t' || !(letter.is_control() || letter == char::REPLACEMENT_CHARACTER);
    let is_text =
        !written.text.is_empty() && !written.text.starts_with(['|', '>']) && written.text.chars().all(is_plain);
    is_text.then(|| way_out(written.field, &written.text))
}

/// A text in the two forms in which YAML leaves it alone.
pub(crate) fn way_out(field: &str, text: &str) -> String {
    let quoted = text.replace('\'', "''");
    format!("write the {field} in quotes, or as a block\n | {field}: '{quoted}'\n | {field}: |\n |   {text}")
}

/// The fields that [`tagged`] is asked about.
pub(crate) fn fields() -> impl Iterator<Item = &'static str> {
    FIELDS.into_iter()
}

fn written(text: &str, column: usize) -> Option<Written<'_>> {
    let mut lines = text.lines();
    let first = lines.next()?;
    let key = first.char_indices().nth(column - 1).map_or("", |(at, _)| &first[at..]);
    let (field, value) = key.split_once(':')?;
    let is_continued = |line: &&str| line.chars().take_while(|letter| *letter == ' ').count() >= column;
    let rest = lines.take_while(is_continued).map(str::trim);
    let parts: Vec<&str> = std::iter::once(value.trim()).chain(rest).filter(|part| !part.is_empty()).collect();
    Some(Written { field: field.trim_matches(['"', '\'']), text: parts.join(" ") })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{manifest::Manifest, rule::file};

    /// Compares what is said of the last fields of a rule.
    #[track_caller]
    fn check(fields: &str, expected: Expect) {
        let text = format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\n{fields}\n");
        let file = file::read(&Manifest::new("a.yaml", text.as_bytes()));
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        let sources: Vec<&str> = file.sources.iter().map(|source| source.spec.rule.as_str()).collect();
        expected.assert_eq(&[problems, sources.into_iter().map(str::to_owned).collect()].concat().join("\n"));
    }

    #[test]
    fn a_rule_whose_beginning_yaml_takes_for_a_tag_is_refused() {
        check(
            "rule: !metadata.labels.team && spec.hostPID",
            expect![[r#"
                a.yaml:3:1: YAML takes `!metadata.labels.team` for a tag and leaves it out: write the rule in quotes, or as a block
                 | rule: '!metadata.labels.team && spec.hostPID'
                 | rule: |
                 |   !metadata.labels.team && spec.hostPID"#]],
        );
        check(
            "rule: ! (metadata.namespace == 'prod')",
            expect![[r#"
                a.yaml:3:1: YAML takes `!` for a tag and leaves it out: write the rule in quotes, or as a block
                 | rule: '! (metadata.namespace == ''prod'')'
                 | rule: |
                 |   ! (metadata.namespace == 'prod')"#]],
        );
        check(
            "rule:\n  !spec.hostPID",
            expect![[r#"
                a.yaml:3:1: YAML takes `!spec.hostPID` for a tag and leaves it out: write the rule in quotes, or as a block
                 | rule: '!spec.hostPID'
                 | rule: |
                 |   !spec.hostPID"#]],
        );
        check(
            "rule: spec.hostPID\nmessage: !never do this",
            expect![[r#"
                a.yaml:4:1: YAML takes `!never` for a tag and leaves it out: write the message in quotes, or as a block
                 | message: '!never do this'
                 | message: |
                 |   !never do this"#]],
        );
    }

    #[test]
    fn what_yaml_leaves_alone_is_left_alone() {
        for rule in ["'!spec.hostPID'", "\"!spec.hostPID\"", "|\n  !spec.hostPID", "!!str '!spec.hostPID'"] {
            let file = file::read(&Manifest::new(
                "a.yaml",
                format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: {rule}\n").as_bytes(),
            ));
            assert_eq!(file.sources[0].spec.rule.trim_end(), "!spec.hostPID", "{rule}");
        }
    }

    #[test]
    fn a_text_that_yaml_cannot_read_is_told_the_way_out() {
        check(
            "rule: !any(spec.containers, .name == 'x')",
            expect![[r#"
                a.yaml:3:7: while scanning a tag, did not find expected whitespace or line break: write the rule in quotes, or as a block
                 | rule: '!any(spec.containers, .name == ''x'')'
                 | rule: |
                 |   !any(spec.containers, .name == 'x')"#]],
        );
        check(
            "rule: \"ALL\" not in container.args",
            expect![[r#"
                a.yaml:3:13: invalid trailing content after double-quoted scalar: write the rule in quotes, or as a block
                 | rule: '"ALL" not in container.args'
                 | rule: |
                 |   "ALL" not in container.args"#]],
        );
        check(
            "rule: spec.hostPID ? spec.hostIPC : false",
            expect![[r#"
                a.yaml:3:35: mapping values are not allowed in this context: write the rule in quotes, or as a block
                 | rule: 'spec.hostPID ? spec.hostIPC : false'
                 | rule: |
                 |   spec.hostPID ? spec.hostIPC : false"#]],
        );
        check(
            "rule: spec.hostPID\nmessage: {{ metadata.name }} is bad",
            expect![[r#"
                a.yaml:4:11: only a string, a number or a boolean can be a key: write the message in quotes, or as a block
                 | message: '{{ metadata.name }} is bad'
                 | message: |
                 |   {{ metadata.name }} is bad"#]],
        );
        check(
            "rule: [1, 2] contains spec.priority",
            expect![[r#"
                a.yaml:3:14: while parsing a block mapping, did not find expected key: write the rule in quotes, or as a block
                 | rule: '[1, 2] contains spec.priority'
                 | rule: |
                 |   [1, 2] contains spec.priority"#]],
        );
        check(
            "rule: |\n  spec.hostPID\n x",
            expect!["a.yaml:5:2: while parsing a block mapping, did not find expected key"],
        );
    }
}

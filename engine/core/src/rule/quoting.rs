//! Traps of YAML around the text of a rule. A text that begins with `!` loses its first word, and one that begins with a quote or a
//! bracket, or has `: ` in it, is no text to YAML at all. The way out is always the same: quotes, or a block.

/// Fields whose text people write without quotes.
const FIELDS: [&str; 3] = ["rule", "message", "alert"];

/// The value of a field as it is written.
pub(crate) struct Written<'a> {
    field: &'a str,
    /// What follows the colon, line by line.
    pub(crate) lines: Vec<&'a str>,
    /// The column that it begins in, from 1.
    column: usize,
    /// Whether something else than spaces and dashes stands before the key.
    is_behind_other: bool,
}

/// A line that has the key of a text behind which a tag may begin, and the key.
pub(crate) type TagLine = (usize, &'static str);

/// Those lines of a file, in their order. Most files have none, and are not looked at further.
pub(crate) fn tag_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<TagLine> {
    let mut found = Vec::new();
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((number, line)) = lines.next() {
        let next = lines.peek().map_or("", |(_, next)| next.trim_start());
        let has_tag = |field: &str| {
            line.match_indices(field).any(|(at, _)| {
                let behind = line[at + field.len()..].trim_start_matches(['"', '\'']);
                let value = behind.trim_start().strip_prefix(':').map(str::trim_start);
                value.is_some_and(|value| value.starts_with('!') || value.is_empty() && next.starts_with('!'))
            })
        };
        if line.contains('!') || next.starts_with('!') {
            found.extend(FIELDS.into_iter().filter(|field| has_tag(field)).map(|field| (number, field)));
        }
    }
    found
}

/// What YAML leaves out of a field because it begins with `!`, and what to do about it. `text` begins with the line that has the key,
/// in this column.
pub(crate) fn tagged(text: &str, column: usize, field: &str) -> Option<String> {
    let written = Written::of(text, column).filter(|written| written.field == field)?;
    let text = written.text();
    let tag = text.split_whitespace().next().filter(|tag| tag.starts_with('!'))?;
    let behind = text[tag.len()..].trim_start();
    // Whoever writes this tag means it, and a block is whole behind any.
    if tag == "!!str" || behind.starts_with(['|', '>']) {
        return None;
    }
    let way_out = written.meant().map(|meant| way_out(field, &meant));
    let way_out = way_out.unwrap_or_else(|| format!("write the {field} in quotes, or as a block"));
    Some(format!("YAML takes `{tag}` for a tag and leaves it out: {way_out}"))
}

/// What to do about a line that YAML cannot read from this column on, if it is that of a text. `text` begins with the line.
pub(crate) fn unreadable(text: &str, column: usize) -> Option<String> {
    let line = text.lines().next()?;
    let key = 1 + line.find(|letter: char| letter != ' ' && letter != '-')?;
    let written = Written::of(text, key).filter(|written| FIELDS.contains(&written.field))?;
    // What is wrong before the value is not the value.
    let meant = written.meant().filter(|_| column >= written.column)?;
    Some(way_out(written.field, &meant))
}

/// A text in the two forms in which YAML leaves it alone.
pub(crate) fn way_out(field: &str, text: &str) -> String {
    let quoted = text.replace('\'', "''");
    format!("write the {field} in quotes, or as a block\n | {field}: '{quoted}'\n | {field}: |\n |   {text}")
}

impl<'a> Written<'a> {
    /// The field whose key is in this column of the first line.
    pub(crate) fn of(text: &'a str, column: usize) -> Option<Written<'a>> {
        let mut lines = text.lines();
        let first = lines.next()?;
        let (before, key) = first.split_at(first.char_indices().nth(column - 1)?.0);
        let (field, value) = key.split_once(':')?;
        let blank = value.len() - value.trim_start().len();
        let is_continued =
            |line: &&str| line.trim().is_empty() || line.chars().take_while(|letter| *letter == ' ').count() >= column;
        Some(Written {
            field: field.trim_matches(['"', '\'']),
            lines: std::iter::once(value).chain(lines.take_while(is_continued)).collect(),
            column: column + field.chars().count() + 1 + blank,
            is_behind_other: before.contains(|letter| letter != ' ' && letter != '-'),
        })
    }

    /// The value in one line.
    fn text(&self) -> String {
        let parts: Vec<&str> = self.lines.iter().map(|line| line.trim()).filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }

    /// The text that is meant by a value that YAML cannot read. None if that is not sure.
    fn meant(&self) -> Option<String> {
        let text = self.text();
        let is_plain = |letter: char| letter == '\t' || !(letter.is_control() || letter == char::REPLACEMENT_CHARACTER);
        let count = |letters: [char; 2]| text.matches(letters).count();
        // What follows it in braces is no part of it.
        let is_in_braces = self.is_behind_other || text.ends_with(',') || count(['}', ']']) > count(['{', '[']);
        if text.is_empty() || text.starts_with(['|', '>']) || !text.chars().all(is_plain) || is_in_braces {
            return None;
        }
        let inner = without_quotes(&text);
        if self.field == "rule" {
            // A whole text is what YAML was to read, and no rule.
            let whole = Some(&*text).filter(|_| inner.is_none_or(|inner| inner.contains(&text[..1])));
            let mut meant = [whole, inner].into_iter().flatten();
            return meant.find(|meant| portal_expr::canonical(meant).is_ok()).map(str::to_owned);
        }
        // The quotes are around all of it, unless the first word alone is in quotes.
        let is_around = |inner: &&str| {
            let second = inner.split_once(&text[..1]).map_or("", |(_, behind)| behind);
            !second.starts_with(char::is_whitespace)
        };
        Some(inner.filter(is_around).unwrap_or(&text).to_owned())
    }
}

/// What is within the quotes that a text begins and ends with.
fn without_quotes(text: &str) -> Option<&str> {
    ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
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

    #[test]
    fn quotes_in_quotes_are_told_from_quotes_around_a_word() {
        check(
            "rule: 'container.image.tag == 'latest''",
            expect![[r#"
            a.yaml:3:32: invalid trailing content after single-quoted scalar: write the rule in quotes, or as a block
             | rule: 'container.image.tag == ''latest'''
             | rule: |
             |   container.image.tag == 'latest'"#]],
        );
        check(
            "rule: \"container.image.tag == \"latest\"\"",
            expect![[r#"
            a.yaml:3:32: invalid trailing content after double-quoted scalar: write the rule in quotes, or as a block
             | rule: 'container.image.tag == "latest"'
             | rule: |
             |   container.image.tag == "latest""#]],
        );
        check(
            "rule: \"metadata.name matches '\\d+'\"",
            expect!["a.yaml:3:7: while parsing a quoted scalar, found unknown escape character"],
        );
        check(
            "rule: \"a\" == metadata.name || metadata.name == \"b\"",
            expect![[r#"
            a.yaml:3:11: invalid trailing content after double-quoted scalar: write the rule in quotes, or as a block
             | rule: '"a" == metadata.name || metadata.name == "b"'
             | rule: |
             |   "a" == metadata.name || metadata.name == "b""#]],
        );
        check(
            "rule: spec.hostPID\nmessage: 'it's bad'",
            expect![[r#"
            a.yaml:4:14: invalid trailing content after single-quoted scalar: write the message in quotes, or as a block
             | message: 'it''s bad'
             | message: |
             |   it's bad"#]],
        );
        check(
            "rule: spec.hostPID\nmessage: \"A\" is not \"B\"",
            expect![[r#"
            a.yaml:4:14: invalid trailing content after double-quoted scalar: write the message in quotes, or as a block
             | message: '"A" is not "B"'
             | message: |
             |   "A" is not "B""#]],
        );
    }

    #[test]
    fn a_text_is_advised_only_where_it_is_the_text_that_is_wrong() {
        for fields in [
            "more: {gvk: [{kind: Pod}]\nrule: spec.hostPID == true\n",
            "more: [a\nrule: spec.hostPID == true\n",
            " rule: spec.hostPID\n",
            "more: {rule: \"a\" in b, message: x}\n",
            "more: {message: \"a\" in b, rule: x}\n",
            "rule: ! |\n  spec.hostPID\n",
        ] {
            let text = format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\n{fields}\n");
            let file = file::read(&Manifest::new("a.yaml", text.as_bytes()));
            let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
            assert!(!problems.iter().any(|problem| problem.contains("in quotes")), "{fields}\n{problems:?}");
        }
        check(
            "rule: \"a\" in\n\n  container.args",
            expect![[r#"
            a.yaml:3:11: invalid trailing content after double-quoted scalar: write the rule in quotes, or as a block
             | rule: '"a" in container.args'
             | rule: |
             |   "a" in container.args"#]],
        );
    }

    #[test]
    fn a_tag_in_a_list_of_many_rules_is_found_in_its_place() {
        let rule = |index: usize, rule: &str| {
            format!(
                "- apiVersion: portal.io/v1alpha1\n  kind: PortalClusterRule\n  metadata: {{name: r{index}}}\n  spec:\n    \
                 match: {{gvk: [{{kind: Pod}}]}}\n    rule: {rule}\n    message: 'what: !is'\n"
            )
        };
        let mut text = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
        for index in 0..3000 {
            text.push_str(&rule(index, if index == 2000 { "!spec.hostPID == spec.hostIPC" } else { "spec.hostPID" }));
        }
        let file = file::read(&Manifest::new("a.yaml", text.as_bytes()));
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        assert!(problems[0].starts_with("a.yaml:14009:5: YAML takes `!spec.hostPID`"), "{}", problems[0]);
        assert_eq!((problems.len(), file.sources.len()), (1, 2999));
    }
}

//! A trap of YAML: in an expression `#` is the element that a predicate looks at, and in YAML a `#` behind a space begins a comment,
//! unless the text is in quotes or a block. The expression then ends too early.

use portal_expr::{Error, Phase};

use super::quoting::{self, Written};

/// What is said where nobody knows what followed, because the rule came as JSON.
pub(crate) const GUESS: &str = "if a `#` followed: YAML takes it for a comment where a space is before it, so write the rule in quotes, \
                                or below `rule: |`";

/// Whether an expression is in order as far as it goes, and ends too early.
pub(crate) fn ends_early(source: &str, error: &Error) -> bool {
    let source = source.trim_end();
    let last = source.lines().last().unwrap_or_default();
    let end = (source.lines().count().max(1), last.chars().count());
    error.phase == Phase::Parse && (error.line as usize, error.column as usize) > end
}

/// Whether an expression that ends too early looks as if more had followed: what opens a list of arguments, separates them, or
/// joins two values.
pub(crate) fn expects_more(source: &str) -> bool {
    let source = source.trim_end();
    let is_sign =
        source.ends_with(['(', ',', '[', '{', '=', '<', '>', '&', '|', '+', '-', '*', '/', '%', '?', ':', ';', '!']);
    let word = source.rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
    let words = ["in", "not", "and", "or", "contains", "matches", "startsWith", "endsWith"];
    is_sign || words.contains(&word)
}

/// The text of a field and the comment that ends it, if the text is neither in quotes nor a block. `text` begins with the line that
/// has the key, in this column.
pub(crate) fn split(text: &str, column: usize) -> Option<(String, &str)> {
    let written = Written::of(text, column)?;
    if written.lines[0].trim_start().starts_with(['"', '\'', '|', '>', '&', '*', '!']) {
        return None;
    }
    let mut plain = String::new();
    for line in written.lines {
        let comment =
            line.match_indices('#').map(|(at, _)| at).find(|at| !line[..*at].ends_with(|letter| letter != ' '));
        let (before, comment) = comment.map_or((line, None), |at| (&line[..at], Some(line[at..].trim_end())));
        if !plain.is_empty() && !before.trim().is_empty() {
            plain.push(' ');
        }
        plain.push_str(before.trim());
        if let Some(comment) = comment {
            return Some((plain, comment));
        }
    }
    None
}

/// What to do about a field whose text a comment ends.
pub(crate) fn way_out(field: &str, plain: &str, comment: &str) -> String {
    let way_out = quoting::way_out(field, &format!("{plain} {comment}"));
    format!("YAML takes `{comment}` for a comment, because a space is before the `#`: {way_out}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rules;

    #[track_caller]
    fn check(text: &str, column: usize, expected: Option<(&str, &str)>) {
        let found = split(text, column);
        assert_eq!(found.as_ref().map(|(plain, comment)| (plain.as_str(), *comment)), expected);
    }

    #[test]
    fn a_comment_ends_plain_text_only() {
        check("rule: any(x, # in y)\nmessage: a # b\n", 1, Some(("any(x,", "# in y)")));
        check("  rule: any(x, # in y)  \r\n", 3, Some(("any(x,", "# in y)")));
        check("- rule: any(x,\n    any(y, # in z))\n", 3, Some(("any(x, any(y,", "# in z))")));
        check("rule: any(x,\n  # in y)\n", 1, Some(("any(x,", "# in y)")));
        for text in
            ["rule: 'any(x, # in y)'", "rule: \"any(x, # in y)\"", "rule: |\n  any(x, # in y)\n", "rule: >-\n  a #\n"]
        {
            check(text, 1, None);
        }
        check("rule: any(x, y#)\nmessage: a # b\n", 1, None);
        check("rule:\n  any(x, # in y)", 1, Some(("any(x,", "# in y)")));
    }

    #[test]
    fn an_end_that_wants_more_is_told_from_others() {
        for source in ["any(x,", "any( ", "a &&", "a not in ", "a ==", "x ?"] {
            assert!(expects_more(source), "{source}");
        }
        for source in ["any(x", "a", "main", "a.b"] {
            assert!(!expects_more(source), "{source}");
        }
    }

    #[test]
    fn a_rule_without_its_file_is_told_what_may_have_been() {
        let rule =
            |text: &str| rules(&format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: '{text}'\n")).1.join("\n");
        assert!(rule("any(spec.volumes,").ends_with(GUESS));
        assert!(rule("spec.hostPID ==").ends_with(GUESS));
        assert!(rule("any(spec.volumes").ends_with('^'));
        assert!(rule("any(spec.volumes, ) == 1").ends_with('^'));
    }
}

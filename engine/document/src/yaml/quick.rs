//! The YAML that manifests are made of, straight from its bytes to the tape: blocks, scalars on one line, literals, short
//! lists in brackets, comments.
//!
//! Whatever else a document has, it is declined and read by the general parser, which knows all of YAML and alone says what
//! is wrong and where. So there is nothing to tell apart for a caller: what is read here is exactly what would be read there.

mod characters;
mod flow;
pub(super) mod lex;
mod literal;
mod quoted;
mod read;
mod scalars;

#[cfg(test)]
mod random;

use std::ops::Range;

use self::{
    lex::{MARKER, find_line_end, is_marker},
    read::{Read, read},
};
use super::{YamlDocument, load};
use crate::{assemble::next_origin, error::Error, options::Options};

/// Reads every document of a YAML text.
pub(super) fn load(text: &str, options: &Options) -> Result<Vec<YamlDocument>, Error> {
    match documents(text, options) {
        Some((documents, _)) => Ok(documents),
        None => load::load(text, options),
    }
}

/// Every document of a text, and how many of them the general parser read. Nothing if the text cannot be taken apart, or
/// if something is wrong with it.
fn documents(text: &str, options: &Options) -> Option<(Vec<YamlDocument>, usize)> {
    if !characters::are_ordinary(text) {
        return None;
    }
    let (mut documents, mut declined) = (Vec::new(), 0);
    let (mut start, mut line) = (0, 1);
    while start < text.len() {
        // Both readers of a document have it from the same place: otherwise it would count as seen twice.
        let origin = options.origin.unwrap_or_else(|| u64::from(next_origin()));
        let options = Options { origin: Some(origin), ..*options };
        match read(text, start, line, &options) {
            Ok(Read { document, end, end_line }) => {
                documents.extend(document);
                (start, line) = (end, end_line);
            }
            Err(lex::Declined) => {
                let end = end_of_document(text.as_bytes(), start)?;
                documents.extend(generally(text, start..end, line, &options)?);
                declined += 1;
                line += text[start..end].bytes().filter(|byte| *byte == b'\n').count();
                start = end;
            }
        }
    }
    Some((documents, declined))
}

/// The document of a part of a text, which begins on a line, as the general parser reads it.
fn generally(text: &str, part: Range<usize>, line: usize, options: &Options) -> Option<Option<YamlDocument>> {
    // With the marker behind it, which makes one more: how a document ends may tell what it is.
    let has_next = part.end < text.len();
    let end = part.end + if has_next { MARKER.len() } else { 0 };
    let mut found = load::load(&text[part.start..end], options).ok()?;
    if has_next {
        found.pop()?;
    }
    let mut found = found.into_iter().map(|found| YamlDocument { line: found.line + line - 1, ..found });
    let document = found.next();
    // A marker makes a document, even of nothing.
    let is_one = found.next().is_none() && (document.is_some() || !is_marker(text.as_bytes(), part.start));
    is_one.then_some(document)
}

/// Where the document ends that begins at a position: before the next marker, whatever that is in. Nothing if directives or
/// the end of a document are written out, which is for the general parser to sort out.
fn end_of_document(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = if is_marker(bytes, start) { find_line_end(bytes, start) + 1 } else { start };
    while at < bytes.len() {
        match bytes[at] {
            b'%' => return None,
            b'.' if bytes[at..].starts_with(b"...") => return None,
            b'-' if is_marker(bytes, at) => return Some(at),
            _ => at = find_line_end(bytes, at) + 1,
        }
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Compares the documents with their lines, and how many of them were declined; and what the general parser has with both.
    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let options = Options::default();
        let show = |documents: &[YamlDocument]| {
            let lines = documents.iter().map(|found| format!("{}: {}", found.line, found.document.to_json()));
            lines.collect::<Vec<_>>().join("\n")
        };
        let general = load::load(text, &options).map_err(|error| error.to_string());
        let found = match documents(text, &options) {
            Some((documents, declined)) => {
                assert_eq!(Ok(show(&documents)), general.map(|documents| show(&documents)));
                let tail = if declined > 0 { format!("\ndeclined: {declined}") } else { String::new() };
                show(&documents) + &tail
            }
            None => "declined".to_owned(),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn blocks_are_read() {
        check(
            "apiVersion: v1\nmetadata:\n  name: api\n  labels:\n    app: api\nspec:\n  containers:\n  - name: a\n    ports:\n      - 80\n      - 443\n    env:\n",
            expect![[
                r#"1: {"apiVersion":"v1","metadata":{"name":"api","labels":{"app":"api"}},"spec":{"containers":[{"name":"a","ports":[80,443],"env":null}]}}"#
            ]],
        );
        check("- - a\n  - - b\n-\n  - c\n- # d\n  e: f\n-\n", expect![[r#"1: [["a",["b"]],["c"],{"e":"f"},null]"#]]);
        check("a:\n  b\nc:\n\n  - d\n-e: 1", expect![[r#"1: {"a":"b","c":["d"],"-e":1}"#]]);
    }

    #[test]
    fn comments_and_empty_lines_are_nothing() {
        check(
            "# one\n\na: 1 # two\n   # three\nb: c#d\n\n  \ne: #f\n  - g # h\n#",
            expect![[r#"3: {"a":1,"b":"c#d","e":["g"]}"#]],
        );
    }

    #[test]
    fn scalars_on_one_line_are_read() {
        check(
            "a: http://x:80/y  \nb: it's \"so\"\nc: 'it''s'\nd: \"\\t\\u00e4\\x41\\\\ \\U0001F600\"\n'e': yes\n\"f\\n\": 0x1f\n1.0: ~\n",
            expect![[
                r#"1: {"a":"http://x:80/y","b":"it's \"so\"","c":"it's","d":"\täA\\ 😀","e":true,"f\n":31,"1":null}"#
            ]],
        );
    }

    #[test]
    fn literals_are_read() {
        check(
            "a: |\n  x\n\n    y\n  z\n\nb: |-\n  x\n\nc: |+ # keep\n  x\n\nd: >\n  x\n  y\n\n  z\n   w\n  v\n- : 1\n",
            expect!["declined"],
        );
        check(
            "a: |\n  x\n\n    y\n  z\n\nb: |-\n  x\n\nc: |+ # keep\n  x\n\nd: >\n  x\n  y\n\n  z\n   w\n  v\ne:\n- |\n x\n",
            expect![[r#"1: {"a":"x\n\n  y\nz\n","b":"x","c":"x\n\n","d":"x y\nz\n w\nv\n","e":["x\n"]}"#]],
        );
    }

    #[test]
    fn brackets_on_one_line_are_read() {
        check("a: []\nb: {}\nc: [ x y , 'z', \"w\", [1], {k: -1, \"l\":m:n} ] # o\n- \n", expect!["declined"]);
        check(
            "a: []\nb: {}\nc: [ x y , 'z', \"w\", [1], {k: -1, \"l\":m:n} ] # o\nd:\n  - {}\n  - [a]\n",
            expect![[r#"1: {"a":[],"b":{},"c":["x y","z","w",[1],{"k":-1,"l":"m:n"}],"d":[{},["a"]]}"#]],
        );
    }

    #[test]
    fn documents_have_their_lines() {
        check(
            "# none\n---\n# empty\n---   # comment\n\na: 1\n---\n- b\n--- # last",
            expect![[r#"
                2: null
                6: {"a":1}
                8: ["b"]
                9: null"#]],
        );
    }

    #[test]
    fn a_document_that_is_declined_leaves_the_others_alone() {
        check(
            "a: 1\n---\n\nb: &x 2\nc: *x\n---\nd: 3\n--- text\n",
            expect![[r#"
                1: {"a":1}
                4: {"b":2,"c":2}
                7: {"d":3}
                8: "text"
                declined: 2"#]],
        );
    }

    #[test]
    fn what_is_unusual_is_declined() {
        for text in [
            "a: &b c",
            "a: !!str c",
            "? a",
            "<<: {}",
            "a:\tb",
            "\ta: b",
            "a: b\n  c",
            "a: 'b\n  c'",
            "a: [b,\n  c]",
            "a: |2\n  b",
            "a : b",
            "a: b: c",
            "a: @b",
            "a: %b",
            "a: {b}",
            "a: {- b: c}",
            "a: [- b]",
            "a: {b: }",
            "a: [b, ]",
            "a: [b: c]",
            "a: 'b' c",
            "a: 'b'#c",
            "a: [b]#c",
            "text",
            "'text'",
            "|\n text\n",
            "a: |\n  b",
            "a: |\n\n",
            "a: \"\\q\"",
            "a: \"\\ud800\"",
            "- a\nb",
            "a: 1\n- b",
            "a:\n  b: 1\n c: 2",
            "[a]: b",
            "~: a",
            ".inf: 1\na: .inf",
            "a: >\n   b\n  c\n",
        ] {
            let found = documents(text, &Options::default());
            assert!(found.is_none_or(|(_, declined)| declined > 0), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_cannot_be_taken_apart_is_declined() {
        check("%YAML 1.1\n---\na: 1\n", expect!["declined"]);
        check("a: 1\n...\n---\nb: 2\n", expect!["declined"]);
        check("a: 1\r\n---\r\nb: 2\n", expect!["declined"]);
        check("\u{feff}a: 1\n", expect!["declined"]);
        check("a: \u{85}\n", expect!["declined"]);
    }

    #[test]
    fn nesting_over_the_limit_is_declined() {
        let limits = crate::DocumentLimits { depth: 3, ..Default::default() };
        let options = Options { limits, ..Options::default() };
        for text in ["a:\n- - b\n", "a:\n- [b]\n", "- - - a\n"] {
            assert_eq!(documents(text, &options).map(|(_, declined)| declined), Some(0), "{text:?}");
        }
        for text in ["a:\n- - - b\n", "a:\n- [[b]]\n", "a:\n  b:\n  - c: d\n", "- - - - a\n"] {
            assert!(documents(text, &options).is_none(), "{text:?}");
        }
    }

    #[test]
    fn what_was_declined_does_not_count_as_seen() {
        let options = Options::default();
        for _ in 0..2 {
            let own = format!("a: quick-seen-{}\nb: &c d\n", next_origin());
            let found = documents(&own, &options).unwrap().0.remove(0);
            assert!(found.document.text().contains("quick-seen"));
        }
    }
}

//! Texts with objects and rules in them, as people and programs write them: YAML or JSON into documents, each with its place.
//!
//! Nothing here opens a file: the caller does, and decides how large a file may be.

mod items;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use portal_document::{Document, DocumentLimits, Interning, Options, Step, YamlDocument, from_yaml};

use crate::rule::source::RuleId;

pub use self::items::{Content, Item, items, items_between, list_len};

/// The text of a file, or a piece of it that holds whole documents. A clone shares the text.
#[derive(Clone, Debug)]
pub struct Manifest {
    file: Arc<str>,
    text: Arc<[u8]>,
    range: Range<usize>,
    /// The line of the file that the piece begins on, from 1.
    first_line: usize,
}

/// A document and where it begins.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The document. It is not `null`.
    pub document: Document,
    /// The line of the file that its first value is on, from 1.
    pub line: usize,
}

/// Something that is wrong with a file, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The file, as the user called it.
    pub file: Arc<str>,
    /// The line, from 1, if the place is known.
    pub line: Option<usize>,
    /// The column in characters, from 1, if it is known.
    pub column: Option<usize>,
    /// The rule that it is about, if that has a name.
    pub rule: Option<RuleId>,
    /// What is wrong, and the way out.
    pub message: String,
}

/// The largest document.
const MAX_DOCUMENT: usize = 64 << 20;

impl Manifest {
    /// The text of a file. Whether it is text at all is told by [`Manifest::documents`].
    pub fn new(file: impl Into<Arc<str>>, text: impl Into<Arc<[u8]>>) -> Manifest {
        let text = text.into();
        Manifest { file: file.into(), range: 0..text.len(), text, first_line: 1 }
    }

    /// The file, as the user called it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Pieces of about a size, so that one large file keeps every core busy. They are cut between documents: in YAML, a line that
    /// begins with `---` ends the one before, whatever it is in.
    pub fn pieces(&self, bytes: usize) -> Vec<Manifest> {
        let mut pieces = Vec::new();
        let mut piece = self.clone();
        let mut at = self.range.start;
        for (line, text) in (self.first_line..).zip(lines(self.bytes())) {
            let is_marker = text.starts_with(b"---") && text.get(3).is_none_or(u8::is_ascii_whitespace);
            if is_marker && at - piece.range.start >= bytes {
                pieces.push(Manifest { range: piece.range.start..at, ..piece.clone() });
                (piece.range.start, piece.first_line) = (at, line);
            }
            at += text.len();
        }
        pieces.push(piece);
        pieces
    }

    /// The documents that are not empty, and what is wrong with those that cannot be read. A damaged one does not hide the others.
    pub fn documents(&self, interning: Interning) -> (Vec<Placed>, Vec<Problem>) {
        let problem = match self.parse(interning) {
            Ok(documents) => return (documents, Vec::new()),
            Err(problem) => problem,
        };
        let parts = self.pieces(1);
        if parts.len() < 2 {
            return (Vec::new(), vec![problem]);
        }
        let (mut documents, mut problems) = (Vec::new(), Vec::new());
        for part in parts {
            match part.parse(interning) {
                Ok(mut found) => documents.append(&mut found),
                Err(problem) => problems.push(problem),
            }
        }
        (documents, problems)
    }

    /// The line and the column of a field, in the document that begins on this line. If the field is not there, those of the last
    /// step on the way to it that is.
    pub fn locate(&self, line: usize, field: &[Step<'_>]) -> Option<(usize, usize)> {
        let at = portal_document::locate(self.text_from(line), 0, field)?;
        Some((at.line + line - 1, at.column))
    }

    /// The lines of the items of the list that begins on this line, of which there are so many.
    pub fn item_lines(&self, line: usize, count: usize) -> Vec<usize> {
        let lines = portal_document::element_lines(self.text_from(line), "items", count);
        lines.into_iter().map(|item| item + line - 1).collect()
    }

    /// Whether the text contains a word.
    pub fn mentions(&self, word: &str) -> bool {
        self.bytes().windows(word.len()).any(|window| window == word.as_bytes())
    }

    /// Something that is wrong with it, and where.
    pub fn problem(&self, line: Option<usize>, column: Option<usize>, message: String) -> Problem {
        Problem { file: Arc::clone(&self.file), line, column, rule: None, message }
    }

    fn parse(&self, interning: Interning) -> Result<Vec<Placed>, Problem> {
        let bytes = self.bytes();
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let (lines, rest) = whole_lines(&bytes[..error.valid_up_to()]);
            let column = 1 + String::from_utf8_lossy(rest).chars().count();
            self.problem(Some(self.first_line + lines), Some(column), "this is not text in UTF-8".to_owned())
        })?;
        let limits = DocumentLimits { bytes: MAX_DOCUMENT, ..DocumentLimits::default() };
        let options = Options { limits, interning, ..Options::default() };
        // JSON is YAML too, but a parser of its own reads it ten times as fast.
        if text.trim_start().starts_with('{')
            && let Ok(document) = Document::parse(bytes, &options)
        {
            let blank = text.len() - text.trim_start().len();
            let (lines, _) = whole_lines(&bytes[..blank]);
            return Ok(vec![Placed { document, line: self.first_line + lines }]);
        }
        let documents = from_yaml(text, &options).map_err(|error| {
            let place = error.position();
            let line = place.map(|place| self.first_line + place.line - 1);
            self.problem(line, place.map(|place| place.column), error.reason())
        })?;
        let place = |found: YamlDocument| Placed { document: found.document, line: self.first_line + found.line - 1 };
        Ok(documents.into_iter().map(place).filter(|placed| !placed.document.root().is_null()).collect())
    }

    fn bytes(&self) -> &[u8] {
        &self.text[self.range.clone()]
    }

    /// The lines that are UTF-8, with their numbers.
    pub(crate) fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = (self.first_line..).zip(lines(self.bytes()));
        numbered.filter_map(|(number, line)| Some((number, std::str::from_utf8(line).ok()?)))
    }

    /// The text from a line on, as far as it is UTF-8.
    pub(crate) fn text_from(&self, line: usize) -> &str {
        let before: usize = lines(self.bytes()).take(line.saturating_sub(self.first_line)).map(<[u8]>::len).sum();
        let bytes = &self.bytes()[before..];
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

/// The lines of a text, each with its line break. YAML has three of them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = match rest.iter().position(is_break) {
            Some(at) if rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

/// The number of lines that a text ends, and the text after the last of them.
fn whole_lines(text: &[u8]) -> (usize, &[u8]) {
    let (whole, rest) = text.split_at(text.iter().rposition(is_break).map_or(0, |at| at + 1));
    (lines(whole).count(), rest)
}

fn is_break(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

impl Problem {
    /// Something that is wrong with a file as a whole.
    pub fn of_file(file: impl Into<Arc<str>>, message: impl Into<String>) -> Problem {
        Problem { file: file.into(), line: None, column: None, rule: None, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(formatter, ":{number}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Compares documents, after their lines, and problems.
    #[track_caller]
    fn check(manifest: &Manifest, expected: Expect) {
        let (documents, problems) = manifest.documents(Interning::LookUpOnly);
        let documents = documents.iter().map(|placed| format!("{}: {}", placed.line, placed.document.to_json()));
        let problems = problems.iter().map(ToString::to_string);
        expected.assert_eq(&documents.chain(problems).collect::<Vec<_>>().join("\n"));
    }

    fn manifest(text: impl AsRef<[u8]>) -> Manifest {
        Manifest::new("a.yaml", text.as_ref())
    }

    #[test]
    fn documents_have_the_lines_that_they_begin_on() {
        check(
            &manifest("# one\na: 1\n---\n---\n\nb: 2\n"),
            expect![[r#"
                2: {"a":1}
                6: {"b":2}"#]],
        );
        check(&manifest("\n\n {\"a\": 1}"), expect![[r#"3: {"a":1}"#]]);
        check(&manifest(""), expect![""]);
        check(&manifest("# nothing\n---\nnull\n"), expect![""]);
    }

    #[test]
    fn a_document_that_is_damaged_does_not_hide_the_others() {
        check(
            &manifest("a: 1\n---\nb: [\n---\nc: 3\n--- {d: }}\n"),
            expect![[r#"
                1: {"a":1}
                5: {"c":3}
                a.yaml:3:4: unclosed bracket '['
                a.yaml:6:10: misplaced bracket"#]],
        );
        check(
            &manifest(b"a: 1\n---\nb: \xc3\xa9\xff\n"),
            expect![[r#"
            1: {"a":1}
            a.yaml:3:5: this is not text in UTF-8"#]],
        );
        check(&manifest("{\"a\": 1}}"), expect!["a.yaml:1:9: misplaced bracket"]);
    }

    #[test]
    fn pieces_hold_whole_documents_and_know_their_lines() {
        let whole = manifest("a: 1\n---\nb: |\n  --- no\n---\nc: 3\n");
        let pieces = whole.pieces(6);
        assert_eq!(pieces.len(), 2);
        check(
            &pieces[0],
            expect![[r#"
            1: {"a":1}
            3: {"b":"--- no\n"}"#]],
        );
        check(&pieces[1], expect![[r#"6: {"c":3}"#]]);
        assert_eq!(whole.pieces(usize::MAX).len(), 1);
        assert_eq!(whole.pieces(0).len(), 3);
    }

    #[test]
    fn fields_and_items_are_found_in_the_document_of_a_line() {
        let text = "a: 1\n---\n# two\nitems:\n- b: 1\n- b: 2\n  c: 3\n---\nitems: []\n";
        let path = [Step::Field("items"), Step::Index(1), Step::Field("c")];
        for (manifest, line) in [(manifest(text), 4), (manifest(text).pieces(1).swap_remove(1), 4)] {
            assert_eq!(manifest.locate(line, &path), Some((7, 3)));
            assert_eq!(manifest.item_lines(line, 2), [5, 6]);
        }
        let old = manifest(text.replace('\n', "\r"));
        assert_eq!((old.locate(4, &path), old.pieces(1).len()), (Some((7, 3)), 3));
        // What comes behind it may be damaged.
        let damaged = Manifest::new("a.yaml", [text.as_bytes(), b"\xff"].concat());
        assert_eq!(damaged.locate(4, &path), Some((7, 3)));
    }
}

//! Paths into documents: which values to drop, to mask or to compare.

use std::fmt;

use crate::key::Key;

/// Selects values of a document, such as `metadata.labels`, `spec.containers[*].image` or `data.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    segments: Box<[Segment]>,
}

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// The value of a key.
    Field(Key),
    /// Every element of an array.
    AnyIndex,
    /// Every value of an object.
    AnyKey,
}

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column} of path `{path}`: expected {expected}")]
pub struct PathError {
    path: String,
    column: usize,
    expected: &'static str,
}

impl Path {
    /// A path of segments. Without any it selects the whole document.
    pub fn new(segments: impl Into<Box<[Segment]>>) -> Path {
        Path { segments: segments.into() }
    }

    /// The same path in what a field of this name holds.
    pub fn below(&self, name: &str) -> Path {
        let first = Segment::Field(Key::new(name));
        Path::new(std::iter::once(first).chain(self.segments.iter().cloned()).collect::<Vec<_>>())
    }

    /// Reads a path: names joined by `.`, names of any other characters as `["…"]`, `[*]` for every element and `.*`
    /// for every value of an object.
    pub fn parse(path: &str) -> Result<Path, PathError> {
        let mut segments = Vec::new();
        let mut rest = path;
        let error = |rest: &str, expected| {
            let column = path[..path.len() - rest.len()].chars().count() + 1;
            PathError { path: path.to_owned(), column, expected }
        };
        while !rest.is_empty() || segments.is_empty() {
            if let Some(index) = rest.strip_prefix("[*]") {
                segments.push(Segment::AnyIndex);
                rest = index;
            } else if let Some(quoted) = rest.strip_prefix("[\"") {
                let (name, after) = unquote(quoted).ok_or_else(|| error(rest, "a name that ends in `\"]`"))?;
                segments.push(Segment::Field(Key::new(&name)));
                rest = after;
            } else {
                let field = match rest.strip_prefix('.') {
                    Some(field) if !segments.is_empty() => field,
                    None if segments.is_empty() => rest,
                    _ => return Err(error(rest, if segments.is_empty() { "a name" } else { "`.` or `[`" })),
                };
                let end = field.find(['.', '[', ']', '"']).unwrap_or(field.len());
                let (name, after) = field.split_at(end);
                segments.push(match name {
                    "" => return Err(error(field, "a name")),
                    "*" => Segment::AnyKey,
                    name => Segment::Field(Key::new(name)),
                });
                rest = after;
            }
        }
        Ok(Path::new(segments))
    }

    /// The steps from the root on.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl Segment {
    /// Whether the segment selects the value of a key.
    pub(crate) fn selects_key(&self, key: &str) -> bool {
        match self {
            Segment::Field(field) => field.text() == key,
            Segment::AnyKey => true,
            Segment::AnyIndex => false,
        }
    }
}

/// The name before `"]`, with `\"` and `\\` as in JSON, and what comes after.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((name, quoted[at + 1..].strip_prefix(']')?)),
            '\\' => name.push(chars.next().map(|(_, char)| char).filter(|char| matches!(char, '"' | '\\'))?),
            char => name.push(char),
        }
    }
    None
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.segments.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            match segment {
                Segment::AnyIndex => f.write_str("[*]")?,
                Segment::AnyKey => write!(f, "{dot}*")?,
                Segment::Field(key) if !key.text().is_empty() && !key.text().contains(['.', '[', ']', '"', '*']) => {
                    write!(f, "{dot}{}", key.text())?;
                }
                Segment::Field(key) => {
                    write!(f, "[\"{}\"]", key.text().replace('\\', "\\\\").replace('"', "\\\""))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Expect) {
        let found = match Path::parse(path) {
            Ok(path) => path.segments().iter().map(|segment| format!("{segment:?}\n")).collect(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&found);
    }

    #[track_caller]
    fn check_same(path: &str) {
        assert_eq!(Path::parse(path).unwrap().to_string(), path);
    }

    #[test]
    fn a_path_is_written_as_it_was_read() {
        check_same("spec");
        check_same("metadata.managedFields");
        check_same(r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#);
        check_same("spec.containers[*].env[*].value");
        check_same("data.*");
        check_same("*.name");
        check_same("[*][*]");
        check_same(r#"["*"]["a\"b\\c"][""]"#);
    }

    #[test]
    fn a_name_needs_no_quotes_when_it_has_no_special_characters() {
        assert_eq!(Path::parse(r#"["spec"]["a-b/c"]"#).unwrap().to_string(), "spec.a-b/c");
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_column() {
        check("", expect!["column 1 of path ``: expected a name"]);
        check(".spec", expect!["column 1 of path `.spec`: expected a name"]);
        check("spec.", expect!["column 6 of path `spec.`: expected a name"]);
        check("spec..a", expect!["column 6 of path `spec..a`: expected a name"]);
        check("ä[0]", expect!["column 2 of path `ä[0]`: expected `.` or `[`"]);
        check("a]", expect!["column 2 of path `a]`: expected `.` or `[`"]);
        check("a[\"b", expect![[r#"column 2 of path `a["b`: expected a name that ends in `"]`"#]]);
        check("a[\"b\"", expect![[r#"column 2 of path `a["b"`: expected a name that ends in `"]`"#]]);
        check(r#"a["\n"]"#, expect![[r#"column 2 of path `a["\n"]`: expected a name that ends in `"]`"#]]);
    }
}

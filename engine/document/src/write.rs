//! A value back into JSON.

use std::io::Write;

use crate::{
    document::Document,
    node::{Elements, Entries, Node, View},
};

/// A container whose contents are being written.
enum Open<'d> {
    Array(Elements<'d>),
    Object(Entries<'d>),
}

impl Document {
    /// The document as JSON without white space.
    pub fn to_json(&self) -> String {
        self.root().to_json()
    }

    /// Adds the document to a buffer as JSON without white space.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.root().write_json(out);
    }
}

impl Node<'_> {
    /// The value as JSON without white space.
    pub fn to_json(self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).expect("text and punctuation are UTF-8")
    }

    /// Adds the value to a buffer as JSON without white space. Read again, it is the same value: integers stay integers
    /// and floats stay floats.
    pub fn write_json(self, out: &mut Vec<u8>) {
        let mut open = Vec::new();
        write_value(self, out, &mut open);
        while let Some(container) = open.last_mut() {
            let (next, end) = match container {
                Open::Array(elements) => (elements.next(), b']'),
                Open::Object(entries) => {
                    let entry = entries.next();
                    if let Some((key, _)) = entry {
                        separate(out);
                        write_string(key, out);
                        out.push(b':');
                    }
                    (entry.map(|(_, value)| value), b'}')
                }
            };
            match next {
                Some(value) => {
                    if end == b']' {
                        separate(out);
                    }
                    write_value(value, out, &mut open);
                }
                None => {
                    out.push(end);
                    open.pop();
                }
            }
        }
    }
}

/// Writes a scalar, or the beginning of a container and leaves its contents to the caller.
fn write_value<'d>(value: Node<'d>, out: &mut Vec<u8>, open: &mut Vec<Open<'d>>) {
    match value.view() {
        View::Null => out.extend(b"null"),
        View::Bool(true) => out.extend(b"true"),
        View::Bool(false) => out.extend(b"false"),
        View::Int(int) => write_number(format_args!("{int}"), out),
        // The debug form always has a decimal point or an exponent.
        View::Float(float) => write_number(format_args!("{float:?}"), out),
        View::Str(text) => write_string(text, out),
        View::Array(array) => {
            out.push(b'[');
            open.push(Open::Array(array.iter()));
        }
        View::Object(object) => {
            out.push(b'{');
            open.push(Open::Object(object.iter()));
        }
    }
}

fn write_number(number: std::fmt::Arguments, out: &mut Vec<u8>) {
    out.write_fmt(number).expect("a buffer in memory takes everything");
}

/// Writes the comma between two values of a container, which is there unless the container has just begun.
fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'[' | b'{')) {
        out.push(b',');
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(plain) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        out.extend(&rest[..plain]);
        match rest[plain] {
            byte @ (b'"' | b'\\') => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            byte => write_number(format_args!("\\u{byte:04x}"), out),
        }
        rest = &rest[plain + 1..];
    }
    out.extend(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Options};

    /// Builds a value, and compares its JSON and what that is when it is read again.
    #[track_caller]
    fn check(build: impl FnOnce(&mut Builder) -> &mut Builder, expected: &str) {
        let mut builder = Builder::new();
        build(&mut builder);
        let document = builder.finish().unwrap();
        assert_eq!(document.to_json(), expected);
        let again = Document::parse(expected.as_bytes(), &Options::default()).unwrap();
        assert_eq!(again.to_json(), expected);
        assert_eq!(again, document);
    }

    #[test]
    fn containers_are_written_without_white_space() {
        check(|builder| builder.begin_array().end(), "[]");
        check(|builder| builder.begin_object().end(), "{}");
        check(
            |builder| {
                builder.begin_array().begin_array().end().begin_object().key("a").begin_array().null().end().end().end()
            },
            r#"[[],{"a":[null]}]"#,
        );
    }

    #[test]
    fn floats_stay_floats() {
        check(|builder| builder.float(1.0), "1.0");
        check(|builder| builder.float(-0.0), "-0.0");
        check(|builder| builder.float(0.1), "0.1");
        check(|builder| builder.float(1e300), "1e300");
        check(|builder| builder.float(f64::MAX), "1.7976931348623157e308");
        check(|builder| builder.float(f64::MIN_POSITIVE), "2.2250738585072014e-308");
        check(|builder| builder.float(5e-324), "5e-324");
    }

    #[test]
    fn strings_are_escaped() {
        check(|builder| builder.string("a\"b\\c/d"), r#""a\"b\\c/d""#);
        check(
            |builder| builder.string("\0\u{1}\t\n\r\u{1f}\u{7f}ä\u{2028}😀"),
            "\"\\u0000\\u0001\\t\\n\\r\\u001f\u{7f}ä\u{2028}😀\"",
        );
        check(|builder| builder.begin_object().key("\"\n").int(1).end(), r#"{"\"\n":1}"#);
    }

    #[test]
    fn writing_adds_to_what_is_there() {
        let document = Document::parse(b"[1]", &Options::default()).unwrap();
        let mut out = b"value: ".to_vec();
        document.write_json(&mut out);
        document.root().index(0).unwrap().write_json(&mut out);
        assert_eq!(out, b"value: [1]1");
    }
}

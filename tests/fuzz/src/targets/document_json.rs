//! JSON: taken and refused as by `serde_json`, with the same values, in little memory; written and read again, the same.

use portal_document::{Document, DocumentLimits, Error, Interning, Node, Options, Path, View};
use serde_json::Value;

use super::check_position;

/// No deeper than `serde_json` goes.
const LIMITS: DocumentLimits = DocumentLimits { bytes: 1 << 20, depth: 100 };

/// Nobody's documents may fill the interner.
const OPTIONS: Options = Options {
    drop: &[],
    mask: &[],
    interning: Interning::LookUpOnly,
    origin: None,
    well_formed: false,
    limits: LIMITS,
};

/// Memory per byte of input, and for the smallest document.
const BYTES_PER_BYTE: usize = 8;
const SMALLEST: usize = 16;

/// Reads a body.
pub fn document_json(input: &[u8]) {
    let found = Document::parse(input, &OPTIONS);
    match &found {
        Ok(document) => {
            let size = document.size_bytes();
            assert!(size <= BYTES_PER_BYTE * input.len() + SMALLEST, "{size} bytes for {}", input.len());
            check_round_trip(document);
        }
        Err(error) => check_error(error, input),
    }
    check_interning(input, found.as_ref().ok());
    check_filters(input, found.is_ok());
    compare(input, &found);
}

/// Checks that a document that is written and read again is the same.
pub(super) fn check_round_trip(document: &Document) {
    let json = document.to_json();
    let again = Document::parse(json.as_bytes(), &OPTIONS).expect("what was written is read");
    assert!(again.root().same(document.root()), "{json} is not what was written");
    assert_eq!(again.to_json(), json);
}

/// Checks that the interner makes no difference.
fn check_interning(input: &[u8], found: Option<&Document>) {
    // Few inputs: what is interned stays.
    if input.len() <= 64 {
        let added = Document::parse(input, &Options { interning: Interning::Add, ..OPTIONS }).ok();
        assert_eq!(added.map(|document| document.to_json()), found.map(Document::to_json));
    }
}

/// Checks that what is dropped or masked is read as strictly as the rest, and that to know that it is JSON makes no difference then.
fn check_filters(input: &[u8], is_ok: bool) {
    let paths = ["a", "a.b", "[*].a", "*.a"].map(|path| Path::parse(path).expect("a path"));
    for (drop, mask) in [(&paths[..2], &paths[2..]), (&paths[2..], &paths[..2])] {
        let filtered = Document::parse(input, &Options { drop, mask, ..OPTIONS });
        assert_eq!(filtered.is_ok(), is_ok);
        let known = Document::parse(input, &Options { drop, mask, well_formed: true, ..OPTIONS });
        if let Ok(document) = filtered {
            check_round_trip(&document);
            assert_eq!(known.ok().map(|document| document.to_json()), Some(document.to_json()));
        }
    }
}

fn check_error(error: &Error, input: &[u8]) {
    match error {
        Error::TooLarge { bytes, limit } => assert!(bytes > limit),
        Error::TooDeep { at, .. } | Error::Json { at, .. } | Error::NumberOutOfRange { at } => {
            check_position(*at, input);
        }
        other => panic!("JSON has no such mistake: {other}"),
    }
    assert!(!error.to_string().is_empty());
}

fn compare(input: &[u8], found: &Result<Document, Error>) {
    // Go has U+FFFD for what is not Unicode, which `serde_json` refuses.
    let Ok(text) = str::from_utf8(input) else { return };
    match (found, serde_json::from_str::<Value>(text)) {
        (Ok(document), Ok(value)) => assert!(is_same(document.root(), &value), "{} is not {value}", document.to_json()),
        (Ok(_), Err(error)) => assert!(has_surrogate(text), "only taken by us: {error}"),
        (Err(Error::TooDeep { .. } | Error::TooLarge { .. }), Ok(_)) | (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => panic!("only refused by us: {error}"),
    }
}

/// Whether there may be half a surrogate pair, as an escape.
fn has_surrogate(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["8", "9", "a", "b", "c", "d", "e", "f"].iter().any(|digit| text.contains(&format!("\\ud{digit}")))
}

fn is_same(node: Node, value: &Value) -> bool {
    match (node.view(), value) {
        (View::Null, Value::Null) => true,
        (View::Bool(left), Value::Bool(right)) => left == *right,
        // A zero with a sign is a float there.
        (View::Int(0), Value::Number(right)) => right.as_f64() == Some(0.0),
        (View::Int(left), Value::Number(right)) => right.as_i64() == Some(left),
        (View::Float(left), Value::Number(right)) => !right.is_i64() && right.as_f64() == Some(left),
        (View::Str(left), Value::String(right)) => left == right,
        (View::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (View::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| is_same(left, right)))
        }
        _ => false,
    }
}

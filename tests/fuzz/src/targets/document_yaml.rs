//! YAML: read or refused, in bounded memory, as by the general parser alone; what it yields, written as JSON and read again, is
//! the same.

use portal_document::{
    Document, DocumentLimits, Error, Interning, Node, Options, View, YamlDocument, from_yaml, from_yaml_generally,
};

use super::{check_position, document_json::check_round_trip};

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

/// Memory per byte of input, and what merge keys may add.
const BYTES_PER_BYTE: usize = 16;
const MERGED: usize = 4 << 20;

/// The longest JSON that is written. Aliases are cheap in a document and are not in text.
const WRITTEN: usize = 1 << 16;

/// Reads a text.
pub fn document_yaml(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let found = from_yaml(text, &OPTIONS);
    check_general(text, &found);
    match found {
        Ok(documents) => {
            let size: usize = documents.iter().map(|found| found.document.size_bytes()).sum();
            assert!(size <= BYTES_PER_BYTE * input.len() + MERGED, "{size} bytes for {}", input.len());
            let mut line = 0;
            for found in &documents {
                assert!(found.line >= line, "documents are in order");
                line = found.line;
                check(&found.document);
            }
        }
        Err(error) => check_error(&error, input),
    }
}

/// Checks that the general parser has the same of a text: the same documents on the same lines, or the same error. Not of the
/// same size: which text a document has twice depends on what was read before it.
fn check_general(text: &str, found: &Result<Vec<YamlDocument>, Error>) {
    let general = from_yaml_generally(text, &OPTIONS);
    assert_eq!(*found, general, "{text:?}");
    let (Ok(found), Ok(general)) = (found, general) else { return };
    for (found, general) in found.iter().zip(general) {
        // Also the order of keys, and whether a number is an integer.
        if is_short(found.document.root(), &mut WRITTEN.clone()) {
            assert_eq!(found.document.to_json(), general.document.to_json(), "{text:?}");
        }
    }
}

fn check(document: &Document) {
    if is_short(document.root(), &mut WRITTEN.clone()) {
        check_round_trip(document);
    }
}

/// Whether the JSON of a value fits what is left, which it takes.
fn is_short(node: Node, left: &mut usize) -> bool {
    let own = match node.view() {
        View::Str(text) => 2 + text.len(),
        View::Object(object) => 2 + object.iter().map(|(key, _)| key.len() + 4).sum::<usize>(),
        _ => 2,
    };
    let fits = left.checked_sub(own);
    *left = fits.unwrap_or_default();
    fits.is_some()
        && match node.view() {
            View::Array(array) => array.iter().all(|value| is_short(value, left)),
            View::Object(object) => object.iter().all(|(_, value)| is_short(value, left)),
            _ => true,
        }
}

fn check_error(error: &Error, input: &[u8]) {
    match error {
        Error::TooLarge { bytes, limit } => assert!(bytes > limit),
        Error::TooDeep { at, .. }
        | Error::Json { at, .. }
        | Error::NumberOutOfRange { at }
        | Error::Yaml { at, .. }
        | Error::Tag { at, .. }
        | Error::Key { at }
        | Error::Merge { at }
        | Error::AliasWithin { at }
        | Error::Expansion { at } => check_position(*at, input),
    }
    assert!(!error.to_string().is_empty());
}

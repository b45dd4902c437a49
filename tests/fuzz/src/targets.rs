//! The targets: each takes bytes, does nothing with those that it cannot use, and panics when something does not hold.

mod document_json;
mod document_yaml;
mod expression_evaluate;
mod expression_parse;
mod rules;

pub use document_json::document_json;
pub use document_yaml::document_yaml;
pub use expression_evaluate::expression_evaluate;
pub use expression_parse::expression_parse;
pub use rules::rules;

use portal_document::Position;
use portal_expr::Error;

/// A target: its name, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: [Target; 5] = [
    ("expression_parse", expression_parse),
    ("expression_evaluate", expression_evaluate),
    ("document_json", document_json),
    ("document_yaml", document_yaml),
    ("rules", rules),
];

/// The target of this name.
pub fn find(name: &str) -> Option<Target> {
    ALL.into_iter().find(|(known, _)| *known == name)
}

/// Checks that an error of the language points into the source, and can be shown.
fn check_error(error: &Error, source: &str) {
    let line = source.split('\n').nth(error.line as usize - 1).expect("an error is on a line of the source");
    let columns = line.chars().count() + 1;
    assert!((1..=columns).contains(&(error.column as usize)), "column {} of {columns}: {error}", error.column);
    assert!(error.source_line.text.chars().count() < 200, "{:?} is long", error.source_line.text);
    assert!(!error.message.is_empty() && error.to_string().contains(&error.message));
}

/// Checks that a place is within the input.
fn check_position(position: Position, input: &[u8]) {
    assert!(position.offset <= input.len(), "offset {} of {}", position.offset, input.len());
    check_place(position.line, position.column, input);
}

/// Checks that a line and a column are within the input.
fn check_place(line: usize, column: usize, input: &[u8]) {
    let lines = 1 + input.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    assert!((1..=lines).contains(&line), "line {line} of {lines}");
    assert!((1..=input.len() + 1).contains(&column), "column {column}");
}

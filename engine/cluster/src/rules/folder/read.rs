//! What a file says.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;

use portal_core::rule::{
    diagnostic::{Diagnostic, Step},
    load,
    source::Origin,
};
use portal_document::{Document, Node, Options, from_yaml};

use crate::rules::{FileContent, Problem};

/// A larger file is no file of rules.
const MAX_BYTES: u64 = 16 << 20;

/// The text of a file that has this metadata.
pub(super) fn read(path: &Path, metadata: &Metadata) -> Result<String, String> {
    // A pipe keeps whoever opens it waiting, and a device may have no end.
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES { Err(format!("it is larger than {} MB", MAX_BYTES >> 20)) } else { Ok(text) }
}

/// The rules of a file, or everything that is wrong with it.
pub(super) fn rules(path: &Path, text: &str) -> FileContent {
    let documents = from_yaml(text, &Options::default()).map_err(|error| {
        let place = error.position();
        let (line, column) = (place.map(|place| place.line), place.map(|place| place.column));
        vec![Problem { line, column, message: error.reason() }]
    })?;
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for (number, found) in documents.iter().enumerate().filter(|(_, found)| !found.document.root().is_null()) {
        for (object, base) in objects(&found.document) {
            // What else is in the folder, such as a definition beside the rules that name it.
            if !load::is_rule(object) && object.get_str("kind").is_some() {
                continue;
            }
            let origin = Origin::File { path: path.display().to_string(), line: found.line };
            match load::load(object, origin, base) {
                Ok(source) => sources.push(source),
                Err(diagnostics) => {
                    problems.extend(diagnostics.iter().map(|diagnostic| place(text, number, found.line, diagnostic)));
                }
            }
        }
    }
    if sources.is_empty() && problems.is_empty() {
        let message = "there is no rule in this file: remove the file to remove its rules";
        problems.push(Problem::of_file(message.to_owned()));
    }
    if problems.is_empty() { Ok(sources) } else { Err(problems) }
}

/// The objects of a document, each with the way to it: itself, or the items of a list.
fn objects(document: &Document) -> Vec<(Node<'_>, Vec<Step>)> {
    let root = document.root();
    let is_list = root.get_str("kind").and_then(Node::as_str).is_some_and(|kind| kind.ends_with("List"));
    match root.get_str("items").and_then(Node::as_array) {
        Some(items) if is_list => items
            .iter()
            .enumerate()
            .map(|(index, item)| (item, vec![Step::Field("items".to_owned()), Step::Index(index)]))
            .collect(),
        _ => vec![(root, Vec::new())],
    }
}

/// A diagnostic with its place in the text.
fn place(text: &str, document: usize, line: usize, diagnostic: &Diagnostic) -> Problem {
    let at = portal_document::locate(text, document, &diagnostic.document_steps());
    let (line, column) = at.map_or((line, None), |at| (at.line, Some(at.column)));
    Problem { line: Some(line), column, message: diagnostic.to_string() }
}

//! Files, folders and standard input as documents, each with its place.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use portal_cluster::rules::folder::search;
use portal_document::{Builder, Document, DocumentLimits, Interning, Node, Options, Step, YamlDocument, from_yaml};

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 30;

/// The largest document.
const MAX_DOCUMENT: usize = 64 << 20;

/// The most lists within each other.
const MAX_LISTS: usize = 8;

/// The namespace of objects that name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// Something that could not be read, and where.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) file: String,
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    pub(crate) message: String,
}

/// A piece of a file that holds whole documents.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The file, as the user called it.
    pub(crate) file: Arc<str>,
    text: Arc<[u8]>,
    start: usize,
    end: usize,
    /// The line that the piece begins on, from 1.
    first_line: usize,
}

/// A document and where it begins.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) document: Document,
    pub(crate) line: usize,
}

/// An object of a document.
pub(crate) struct Item<'d> {
    /// The places that lead to it: in the outermost list, then in each list within. Empty for a document that is no list.
    pub(crate) path: Vec<usize>,
    /// The object, or what is wrong with the list that it should be in.
    pub(crate) content: Result<Content<'d>, String>,
}

/// An object: as it is written, or with what its list says of it.
pub(crate) enum Content<'d> {
    Given(Node<'d>),
    Made(Document),
}

/// The files below paths, in order. Folders are searched for YAML and JSON; a file that is named is taken whatever it is
/// called.
pub(crate) fn expand(paths: &[PathBuf], problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = search(path);
            if found.files.is_empty() && found.unreadable.is_empty() {
                let message = "there is nothing in this folder: files to read end in .yaml, .yml or .json";
                problems.push(Problem::of_file(path, message.to_owned()));
            }
            // Opening a pipe that nobody writes to would wait for ever. A pipe that the user names is read all the same.
            let is_other = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
            let (others, regular): (Vec<_>, Vec<_>) = found.files.into_iter().partition(is_other);
            problems.extend(others.iter().map(|path| Problem::of_file(path, "this is no regular file".to_owned())));
            files.extend(regular);
            for (folder, error) in found.unreadable {
                problems.push(Problem::of_file(&folder, format!("this folder cannot be read: {error}")));
            }
        } else {
            files.push(path.clone());
        }
    }
    files
}

/// Reads a file into pieces of about a size, so that one large file keeps every core busy.
pub(crate) fn read(path: &Path, piece_bytes: usize) -> Result<Vec<Piece>, Problem> {
    // Standard input can be read once only, and lookups read what is judged too.
    static STANDARD_INPUT: OnceLock<Result<Arc<[u8]>, String>> = OnceLock::new();
    let (name, text) = if path == Path::new("-") {
        (Path::new("(standard input)"), STANDARD_INPUT.get_or_init(|| read_all(std::io::stdin())).clone())
    } else {
        (path, fs::File::open(path).map_err(|error| error.to_string()).and_then(read_all))
    };
    let text = text.map_err(|error| Problem::of_file(name, format!("this file cannot be read: {error}")))?;
    let whole = Piece { file: name.display().to_string().into(), end: text.len(), text, start: 0, first_line: 1 };
    Ok(pieces_from(&whole, piece_bytes))
}

fn read_all(file: impl std::io::Read) -> Result<Arc<[u8]>, String> {
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE { Err(format!("it is larger than {MAX_FILE} bytes")) } else { Ok(text.into()) }
}

/// The line and the column of a field, in the document that begins on this line of a file.
pub(crate) fn locate(path: &Path, line: usize, field: &[Step<'_>]) -> Option<(usize, usize)> {
    let text = fs::read_to_string(path).ok()?;
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let at = portal_document::locate(&text[start..], 0, field)?;
    Some((at.line + line - 1, at.column))
}

/// Cuts a piece between documents: in YAML, a line that begins with `---` ends the one before, whatever it is in.
fn pieces_from(whole: &Piece, piece_bytes: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut piece = whole.clone();
    let (mut at, mut line) = (whole.start, whole.first_line);
    while at < whole.end {
        let rest = &whole.text[at..whole.end];
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |newline| newline + 1);
        let is_marker = rest.starts_with(b"---") && rest.get(3).is_none_or(u8::is_ascii_whitespace);
        if is_marker && at - piece.start >= piece_bytes {
            pieces.push(Piece { end: at, ..piece.clone() });
            (piece.start, piece.first_line) = (at, line);
        }
        (at, line) = (at + length, line + 1);
    }
    pieces.push(piece);
    pieces
}

impl Piece {
    /// The documents in it, and what is wrong with those that cannot be read. A damaged one does not hide the others.
    pub(crate) fn documents(&self) -> (Vec<Placed>, Vec<Problem>) {
        match self.parse() {
            Ok(documents) => (documents, Vec::new()),
            Err(problem) => {
                let parts = pieces_from(self, 1);
                if parts.len() < 2 {
                    return (Vec::new(), vec![problem]);
                }
                let (mut documents, mut problems) = (Vec::new(), Vec::new());
                for part in parts {
                    match part.parse() {
                        Ok(mut found) => documents.append(&mut found),
                        Err(problem) => problems.push(problem),
                    }
                }
                (documents, problems)
            }
        }
    }

    fn parse(&self) -> Result<Vec<Placed>, Problem> {
        let bytes = &self.text[self.start..self.end];
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let (lines, last) =
                before.rsplit_once('\n').map_or((0, &*before), |(lines, last)| (1 + lines.matches('\n').count(), last));
            let column = 1 + last.chars().count();
            self.problem(Some(self.first_line + lines), Some(column), "this is not text in UTF-8".to_owned())
        })?;
        let limits = DocumentLimits { bytes: MAX_DOCUMENT, ..DocumentLimits::default() };
        let options = Options { limits, interning: Interning::Add, ..Options::default() };
        // JSON is YAML too, but a parser of its own reads it ten times as fast.
        if text.trim_start().starts_with('{')
            && let Ok(document) = Document::parse(bytes, &options)
        {
            let blank = text.len() - text.trim_start().len();
            let line = self.first_line + text[..blank].matches('\n').count();
            return Ok(vec![Placed { document, line }]);
        }
        let documents = from_yaml(text, &options).map_err(|error| {
            let place = error.position();
            let line = place.map(|place| self.first_line + place.line - 1);
            self.problem(line, place.map(|place| place.column), error.reason())
        })?;
        let place = |found: YamlDocument| Placed { document: found.document, line: self.first_line + found.line - 1 };
        Ok(documents.into_iter().map(place).filter(|placed| !placed.document.root().is_null()).collect())
    }

    /// The lines of the items of a list that begins on a line.
    pub(crate) fn item_lines(&self, line: usize) -> Vec<usize> {
        let bytes = &self.text[self.start..self.end];
        let before: usize =
            bytes.split_inclusive(|byte| *byte == b'\n').take(line - self.first_line).map(<[u8]>::len).sum();
        let text = std::str::from_utf8(&bytes[before..]).unwrap_or_default();
        portal_document::element_lines(text, "items").into_iter().map(|item| item + line - 1).collect()
    }

    /// Whether the text contains a word.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        let bytes = &self.text[self.start..self.end];
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    }

    /// What is wrong with a file that has nothing in it.
    pub(crate) fn empty(&self, what: &str) -> Problem {
        self.problem(Some(1), Some(1), format!("there is no {what} in this file: it is empty"))
    }

    pub(crate) fn problem(&self, line: Option<usize>, column: Option<usize>, message: String) -> Problem {
        Problem { file: self.file.to_string(), line, column, message }
    }
}

impl Item<'_> {
    /// The object, if its list is in order.
    pub(crate) fn object(&self) -> Option<Node<'_>> {
        self.content.as_ref().ok().map(Content::root)
    }
}

impl Content<'_> {
    pub(crate) fn root(&self) -> Node<'_> {
        match self {
            Content::Given(object) => *object,
            Content::Made(document) => document.root(),
        }
    }
}

impl Problem {
    pub(crate) fn of_file(path: &Path, message: String) -> Problem {
        Problem { file: path.display().to_string(), line: None, column: None, message }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(formatter, ":{number}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}

/// The objects of a document: itself, or those of a list and of the lists in it.
pub(crate) fn items(document: Node<'_>) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    add_items(document, Vec::new(), &mut items);
    items
}

fn add_items<'d>(object: Node<'d>, path: Vec<usize>, found: &mut Vec<Item<'d>>) {
    let text = |name: &str| object.get_str(name).and_then(Node::as_str);
    let items = object.get_str("items");
    let element = text("kind").and_then(|kind| kind.strip_suffix("List"));
    // The kind of a custom resource may end in `List` although it holds no objects.
    let Some(element) = element.filter(|kind| kind.is_empty() || items.is_some()) else {
        return found.push(Item { path, content: Ok(Content::Given(object)) });
    };
    let list = match (items, items.and_then(Node::as_array)) {
        (_, Some(list)) if path.len() < MAX_LISTS => list,
        // Go writes an empty list as null.
        (Some(items), _) if items.is_null() => return,
        (_, Some(_)) => {
            let error = format!("lists are in each other more than {MAX_LISTS} deep");
            return found.push(Item { path, content: Err(error) });
        }
        _ => {
            let error = format!("`items` of this {element}List is no list of objects");
            return found.push(Item { path, content: Err(error) });
        }
    };
    for (index, item) in list.iter().enumerate() {
        let path = path.iter().copied().chain([index]).collect();
        match text("apiVersion").and_then(|version| named_after_list(item, version, element)) {
            Some(named) => found.push(Item { path, content: Ok(Content::Made(named)) }),
            None => add_items(item, path, found),
        }
    }
}

/// An item with the `apiVersion` and `kind` that its list gives it: in lists of the API server items have neither.
fn named_after_list(item: Node<'_>, api_version: &str, kind: &str) -> Option<Document> {
    let has = |name: &str| item.get_str(name).is_some();
    if kind.is_empty() || has("apiVersion") || has("kind") {
        return None;
    }
    item.as_object()?;
    let mut builder = Builder::new();
    builder.begin_object().key("apiVersion").string(api_version).key("kind").string(kind);
    for (key, value) in entries(Some(item)) {
        builder.key(key).node(value);
    }
    builder.end();
    builder.finish().ok()
}

fn entries<'d>(node: Option<Node<'d>>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    node.and_then(Node::as_object).into_iter().flat_map(|object| object.iter())
}

/// A copy of an object with this namespace: the API server fills it in before rules see the object.
pub(crate) fn in_namespace(object: Node<'_>, namespace: &str) -> Option<Document> {
    let mut builder = Builder::new();
    builder.begin_object();
    for (key, value) in entries(Some(object)).filter(|(key, _)| *key != "metadata") {
        builder.key(key).node(value);
    }
    builder.key("metadata").begin_object();
    for (key, value) in entries(object.get_str("metadata")).filter(|(key, _)| *key != "namespace") {
        builder.key(key).node(value);
    }
    builder.key("namespace").string(namespace).end().end();
    builder.finish().ok()
}

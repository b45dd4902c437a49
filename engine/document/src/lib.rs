//! The flat form of a JSON object that rules read and caches hold. Knows neither rules nor Kubernetes.

// What callers say, and what is wrong with what they give.
mod error;
mod key;
mod options;
mod path;

// What documents share.
mod intern;

// How a document is laid out and put together.
mod assemble;
mod builder;
mod copy;
mod duplicates;
mod filter;
mod guess;
mod scratch;
mod tape;
mod texts;

// What documents are made from.
mod parse;
mod yaml;

// What is done with a document.
mod compare;
mod document;
mod node;
mod write;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod random;

pub use builder::{BuildError, Builder};
pub use document::Document;
pub use error::{Error, Found, Position};
pub use intern::{Interner, Symbol};
pub use key::Key;
pub use node::{Array, Elements, Entries, NoObject, Node, Object, View};
pub use options::{DocumentLimits, Interning, Options};
pub use path::{Path, PathError, Segment};
pub use tape::MASK;
pub use yaml::{Step, YamlDocument, element_lines, from_yaml, from_yaml_generally, locate};

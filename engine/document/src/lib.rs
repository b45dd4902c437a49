//! The flat form of a JSON object that rules read and caches hold. Knows neither rules nor Kubernetes.

mod assemble;
mod builder;
mod compare;
mod copy;
mod document;
mod duplicates;
mod error;
mod filter;
mod guess;
mod intern;
mod key;
mod node;
mod options;
mod parse;
mod path;
mod scratch;
mod tape;
mod texts;
mod write;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod random;
mod yaml;

pub use builder::{BuildError, Builder};
pub use document::Document;
pub use error::{Error, Found, Position};
pub use intern::{Interner, Symbol};
pub use key::Key;
pub use node::{Array, Elements, Entries, Node, Object, View};
pub use options::{Interning, Limits, Options};
pub use path::{Path, PathError, Segment};
pub use yaml::{YamlDocument, from_yaml};

//! What a caller says about the documents that it wants.

use crate::path::Path;

/// How to read a document.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Values to leave out, with their keys. They cost the time to step over them, and no memory.
    pub drop: &'a [Path],
    /// Values of which only the shape may be seen: every scalar in them becomes the string `***`. Keys stay, and so
    /// does null, which is no value.
    pub mask: &'a [Path],
    /// Whether the interner may grow.
    pub interning: Interning,
    /// Where the document comes from, for example a hash of the object's identity. A value gets a symbol when two
    /// origins have it: with the same origin for each version of an object, updates do not fill the interner with what
    /// only this object has. Without one, each document is an origin of its own.
    pub origin: Option<u64>,
    /// Whether the input is known to be JSON, because of who has written it. What is left out is then only looked through for its end.
    pub well_formed: bool,
    /// What to refuse.
    pub limits: DocumentLimits,
}

/// Whether reading a document may add to the interner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interning {
    /// Add keys, and short values that another origin has too: for documents that stay.
    #[default]
    Add,
    /// Only use what is there: for documents that come from anybody and go with the request.
    LookUpOnly,
}

/// What input may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Bytes of input.
    pub bytes: usize,
    /// Arrays and objects within each other.
    pub depth: usize,
}

impl Default for DocumentLimits {
    /// An admission review with an old and a new object of the largest size, and the depth that the API server accepts.
    fn default() -> DocumentLimits {
        DocumentLimits { bytes: 7 << 20, depth: 10_000 }
    }
}

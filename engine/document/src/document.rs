//! One JSON value in a compact, immutable form: words that say what is where, and the text that no other document has.

use std::fmt;

use crate::{
    intern::{Interner, Symbol},
    node::Node,
    tape::{self, tag},
};

/// An object, or any other JSON value, as caches hold it and rules read it.
#[derive(Clone)]
pub struct Document {
    words: Box<[u32]>,
    text: Box<str>,
}

impl Document {
    pub(crate) fn new(words: Box<[u32]>, text: Box<str>) -> Document {
        Document { words, text }
    }

    /// The outermost value.
    #[inline]
    pub fn root(&self) -> Node<'_> {
        Node::new(self, self.words.len() - 1)
    }

    /// Bytes of memory that the document holds for itself. What it shares with others is in
    /// [`Interner::size_bytes`].
    pub fn size_bytes(&self) -> usize {
        size_of_val(&*self.words) + self.text.len()
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text of a key or string.
    #[inline]
    pub(crate) fn text_of(&self, word: u32) -> &str {
        text_of(word, &self.words, &self.text)
    }
}

/// The text of a key or string of a document that may not be complete yet. Empty for anything else.
#[inline]
pub(crate) fn text_of<'t>(word: u32, words: &[u32], text: &'t str) -> &'t str {
    let (offset, length) = match tape::tag_of(word) {
        tag::SYMBOL => return Interner::global().text(Symbol(tape::payload(word))),
        tag::SHORT_TEXT => tape::short_text_place(word),
        tag::LONG_TEXT => {
            let position = tape::payload(word) as usize;
            (words[position] as usize, words[position + 1] as usize)
        }
        _ => return "",
    };
    &text[offset..offset + length]
}

impl PartialEq for Document {
    /// Whether both are the same JSON value, whatever the order of their keys.
    fn eq(&self, other: &Document) -> bool {
        self.root().same(other.root())
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the contents: a document may be a secret, and whatever has a Debug form ends up in a log.
        f.debug_struct("Document").field("size_bytes", &self.size_bytes()).finish_non_exhaustive()
    }
}

//! Keys that are prepared once and looked for often.

use crate::{
    intern::Interner,
    tape::{self, tag},
};

/// The name of a field, ready to be compared with the keys of any document.
#[derive(Debug, Clone)]
pub struct Key {
    /// The word that the key has in documents, when the interner had room for it.
    word: Option<u32>,
    text: Box<str>,
}

impl Key {
    /// Prepares a key, and adds it to the interner when there is room.
    pub fn new(text: &str) -> Key {
        let word = Interner::global().intern(text).map(|symbol| tape::word(tag::SYMBOL, symbol.0));
        Key { word, text: text.into() }
    }

    /// A key that came when the interner was full.
    #[cfg(test)]
    pub(crate) fn without_symbol(text: &str) -> Key {
        Key { word: None, text: text.into() }
    }

    /// The name.
    pub fn text(&self) -> &str {
        &self.text
    }

    #[inline]
    pub(crate) fn word(&self) -> Option<u32> {
        self.word
    }
}

impl PartialEq for Key {
    /// By name: one of two equal keys may have been prepared when the interner had no room left.
    fn eq(&self, other: &Key) -> bool {
        self.text == other.text
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_equal_by_name() {
        assert_eq!(Key::new("spec"), Key::new("spec"));
        assert_eq!(Key::new("spec"), Key::without_symbol("spec"));
        assert_ne!(Key::new("spec"), Key::new("status"));
    }
}

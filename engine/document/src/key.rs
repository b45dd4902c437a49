//! Keys that are prepared once and looked for often.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{
    intern::{Interner, Symbol},
    tape::{self, tag},
};

/// The name of a field, ready to be compared with the keys of any document.
#[derive(Debug)]
pub struct Key {
    /// The word that the key has in documents, when the interner had room for it.
    word: Option<u32>,
    text: Box<str>,
    /// Where the key is in a few shapes: the number of the shape plus one, then the place in eight bits. Those
    /// that come first stay, so that threads that share the key soon have nothing to write.
    known: [AtomicU32; KNOWN],
}

const KNOWN: usize = 8;
const PLACE_BITS: u32 = 8;

/// The place of a key that a shape does not have.
const NOWHERE: u32 = (1 << PLACE_BITS) - 1;

impl Key {
    /// Prepares a key, and adds it to the interner when there is room.
    pub fn new(text: &str) -> Key {
        let word = Interner::global().intern(text).map(|symbol| tape::word(tag::SYMBOL, symbol.0));
        Key::of(word, text)
    }

    fn of(word: Option<u32>, text: &str) -> Key {
        Key { word, text: text.into(), known: [const { AtomicU32::new(0) }; KNOWN] }
    }

    /// A key that came when the interner was full.
    #[cfg(test)]
    pub(crate) fn without_symbol(text: &str) -> Key {
        Key::of(None, text)
    }

    /// The name.
    pub fn text(&self) -> &str {
        &self.text
    }

    #[inline]
    pub(crate) fn word(&self) -> Option<u32> {
        self.word
    }

    /// Where the key is in a shape.
    pub(crate) fn place_in(&self, shape: u32) -> Option<usize> {
        if let Some(place) = self.known_place(shape) {
            return place;
        }
        let keys = Interner::global().shape(shape);
        let place = match self.word {
            Some(word) => keys.place(word),
            None => keys.keys().iter().position(|word| symbol_text(*word) == &*self.text),
        };
        let known = (shape + 1) << PLACE_BITS | place.map_or(NOWHERE, |place| place as u32);
        // If another thread is faster, its entry is as right as this one.
        if let Some(free) = self.entries(shape).find(|entry| entry.load(Ordering::Relaxed) == 0) {
            free.store(known, Ordering::Relaxed);
        }
        place
    }

    /// The same, if it is known already.
    #[inline]
    pub(crate) fn known_place(&self, shape: u32) -> Option<Option<usize>> {
        let mut known = self.entries(shape).map(|entry| entry.load(Ordering::Relaxed));
        let known = known.find(|known| known >> PLACE_BITS == shape + 1)?;
        let place = known & NOWHERE;
        Some((place != NOWHERE).then_some(place as usize))
    }

    /// The two entries that a shape may be in.
    #[inline]
    fn entries(&self, shape: u32) -> impl Iterator<Item = &AtomicU32> {
        let first = shape as usize % KNOWN;
        [first, first ^ 1].into_iter().map(|at| &self.known[at])
    }
}

fn symbol_text(word: u32) -> &'static str {
    Interner::global().text(Symbol(tape::payload(word)))
}

impl Clone for Key {
    fn clone(&self) -> Key {
        Key::of(self.word, &self.text)
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
    use crate::{Document, Options};

    #[test]
    fn keys_are_equal_by_name() {
        assert_eq!(Key::new("spec"), Key::new("spec"));
        assert_eq!(Key::new("spec"), Key::without_symbol("spec"));
        assert_ne!(Key::new("spec"), Key::new("status"));
    }

    #[test]
    fn a_key_is_found_in_more_shapes_than_it_remembers() {
        let key = Key::new("key-in-many-shapes");
        let bodies: Vec<String> = (0..3 * KNOWN)
            .map(|n| {
                if n % 3 == 0 {
                    format!(r#"{{"f{n}":0}}"#)
                } else {
                    format!(r#"{{"f{n}":0,"key-in-many-shapes":{n}}}"#)
                }
            })
            .collect();
        // Shapes are known from the second document on.
        for _ in 0..3 {
            for (n, body) in bodies.iter().enumerate() {
                let document = Document::parse(body.as_bytes(), &Options::default()).unwrap();
                for key in [&key, &key.clone(), &Key::without_symbol(key.text())] {
                    let found = document.root().get(key).map(|node| node.to_json());
                    assert_eq!(found, (n % 3 != 0).then(|| n.to_string()));
                }
            }
        }
        assert!(key.known.iter().all(|entry| entry.load(Ordering::Relaxed) != 0));
    }
}

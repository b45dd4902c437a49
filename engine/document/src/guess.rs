//! Which text probably comes next: objects of one kind have the same keys in the same order, and mostly the same values
//! under them. Comparing with a guess is a fraction of the work of finding where a text ends and what its symbol is.

use crate::{
    intern::{Interner, Symbol},
    tape::{self, tag},
};

/// What came last in each situation.
pub(crate) struct Guesses {
    keys: [Guess; SIZE],
    values: [Guess; SIZE],
    shapes: [ShapeGuess; SIZE],
}

/// A text that stands in JSON as it is, with what comes behind it: a quote, and a colon if it is a key.
#[derive(Clone, Copy)]
pub(crate) struct Guess {
    /// The first bytes of it. When it is shorter, anything.
    start: [u64; 2],
    /// Bytes with what comes behind. Never zero.
    length: u32,
    /// The header word of its symbol.
    word: u32,
}

/// A list of keys.
#[derive(Clone, Copy)]
pub(crate) struct ShapeGuess {
    pub(crate) keys: &'static [u32],
    pub(crate) shape: u32,
}

/// Enough for the kinds that a thread sees at a time, and small enough for a fast cache.
const SIZE: usize = 1024;

/// The bits of the first so many of 16 bytes.
const MASKS: [[u64; 2]; 17] = {
    let mut masks = [[0; 2]; 17];
    let mut length = 1;
    while length <= 16 {
        let mask = u128::MAX >> (128 - 8 * length);
        masks[length] = [mask as u64, (mask >> 64) as u64];
        length += 1;
    }
    masks
};

impl Guesses {
    /// The guess for a key, from what leads to the object and from the key before.
    #[inline]
    pub(crate) fn key(&mut self, container: u32, previous: u32) -> &mut Guess {
        &mut self.keys[slot(container, previous)]
    }

    /// The guess for a string, from what leads to its container and from its own key.
    #[inline]
    pub(crate) fn value(&mut self, container: u32, key: u32) -> &mut Guess {
        &mut self.values[slot(container, key)]
    }

    /// The guess for the keys of an object, from what leads to it and from its last key.
    #[inline]
    pub(crate) fn shape(&mut self, container: u32, last: u32) -> &mut ShapeGuess {
        &mut self.shapes[slot(container, last)]
    }
}

impl Guess {
    /// Guesses from here on that a symbol comes again, which takes the first `length` bytes of `rest`.
    #[inline]
    pub(crate) fn set(&mut self, word: u32, rest: &[u8], length: usize) {
        if let Some(start) = start(rest) {
            *self = Guess { start, length: length as u32, word };
        }
    }

    /// The word and the length with what comes behind, if this is what `rest` begins with.
    #[inline(always)]
    pub(crate) fn check(&self, rest: &[u8]) -> Option<(u32, usize)> {
        let [first, second] = start(rest)?;
        let length = self.length as usize;
        let [first_mask, second_mask] = MASKS[length.min(16)];
        let differing = (first ^ self.start[0]) & first_mask | (second ^ self.start[1]) & second_mask;
        (differing == 0 && (length <= 16 || self.check_long(rest))).then_some((self.word, length))
    }

    fn check_long(&self, rest: &[u8]) -> bool {
        if tape::tag_of(self.word) != tag::SYMBOL {
            return false;
        }
        let text = text_of(self.word).as_bytes();
        let behind = rest.get(text.len()..self.length as usize);
        rest.starts_with(text) && behind.is_some_and(|behind| b"\":".starts_with(behind))
    }
}

/// The text of a symbol.
pub(crate) fn text_of(word: u32) -> &'static str {
    Interner::global().text(Symbol(tape::payload(word)))
}

#[inline]
fn slot(container: u32, key: u32) -> usize {
    let mixed = (container.wrapping_mul(5) ^ key).wrapping_mul(0x9E37_79B1);
    (mixed >> (32 - SIZE.ilog2())) as usize
}

/// The first 16 bytes, if there are as many.
#[inline]
fn start(rest: &[u8]) -> Option<[u64; 2]> {
    let start = u128::from_le_bytes(*rest.first_chunk()?);
    Some([start as u64, (start >> 64) as u64])
}

impl Default for Guesses {
    fn default() -> Guesses {
        // No symbol, and longer than what is compared at once, so that it is always looked at; a list that no object has.
        let none = Guess { start: [0, 0], length: 17, word: tag::NULL };
        Guesses { keys: [none; SIZE], values: [none; SIZE], shapes: [ShapeGuess { keys: &[0], shape: 0 }; SIZE] }
    }
}

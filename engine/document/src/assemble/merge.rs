//! Entries of a complete object into one that is open: merge keys of YAML.

use super::Assembler;
use crate::{
    scratch::Scratch,
    tape::{self, tag},
};

impl Assembler {
    /// Takes away the value that was added last.
    pub(crate) fn take_last(&mut self) -> u32 {
        self.scratch.values.pop().unwrap_or_default()
    }

    /// The elements of an array that has ended. Nothing for anything else.
    pub(crate) fn elements(&self, array: u32) -> Option<Vec<u32>> {
        let words = &self.scratch.words;
        let (count, first) = match tape::tag_of(array) {
            tag::ARRAY => tape::container_place(array),
            tag::WIDE_ARRAY => wide_place(array, words),
            _ => return None,
        };
        Some(words[first..first + count].to_vec())
    }

    /// Adds the entries of an object that has ended to the innermost one, and says how many there are. Nothing when it
    /// is no object.
    pub(crate) fn merge(&mut self, object: u32) -> Option<usize> {
        let Scratch { words, values, keys, .. } = &mut *self.scratch;
        let interner = self.texts.interner;
        let (new_keys, first) = match tape::tag_of(object) {
            tag::SHAPED => {
                let (shape, first) = tape::shaped_place(object);
                (interner.shape(shape).keys(), first)
            }
            tag::WIDE_SHAPED => {
                let (shape, first) = wide_place(object, words);
                (interner.shape(shape as u32).keys(), first)
            }
            tag::OBJECT | tag::WIDE_OBJECT => {
                let is_wide = tape::tag_of(object) == tag::WIDE_OBJECT;
                let (count, first) = if is_wide { wide_place(object, words) } else { tape::container_place(object) };
                (&words[first..first + count], first + count)
            }
            _ => return None,
        };
        self.top.has_symbols &= new_keys.iter().all(|key| tape::tag_of(*key) == tag::SYMBOL);
        keys.extend_from_slice(new_keys);
        values.extend_from_slice(&words[first..first + new_keys.len()]);
        Some(new_keys.len())
    }
}

/// The number at the position of a wide container, and the position behind it.
fn wide_place(word: u32, words: &[u32]) -> (usize, usize) {
    let position = tape::payload(word) as usize;
    (words[position] as usize, position + 1)
}

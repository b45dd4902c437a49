//! Buffers that grow with the input, and not much more than it needs.

use super::Assembler;
use crate::scratch::Scratch;

/// How far the caller is in its input, of which the rest will need about as much room as the part before.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) done: usize,
    pub(crate) total: usize,
}

/// Words that there is always room for, unless the rest of the input needs less.
const LEAST_ROOM: usize = 1024;

impl Progress {
    /// For a caller that does not know how far it is.
    pub(crate) const UNKNOWN: Progress = Progress { done: 1, total: 2 };

    /// The room to reserve where `used` is taken so far and `needed` will be taken at least: what the rest of the
    /// input will probably take, but not more than twice as much as there is. Doubling as usual would let a hostile body cost a
    /// multiple of what its document needs.
    fn room(self, used: usize, needed: usize) -> usize {
        let expected = used as f64 * 1.01 * self.total as f64 / self.done.max(1) as f64;
        let least = needed.max(used + used / 16);
        (expected as usize).clamp(least, least + used) + LEAST_ROOM
    }
}

impl Assembler {
    /// The most bytes that buffers have had at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// Makes room for the values of input that goes on at a position. Returns the position up to which it is enough.
    #[cold]
    pub(crate) fn make_room(&mut self, progress: Progress) -> usize {
        let left = progress.total.saturating_sub(progress.done);
        let values = &self.scratch.values;
        if values.capacity() - values.len() < left.min(LEAST_ROOM) {
            let moved = 4 * values.capacity();
            let used = values.len();
            self.scratch.values.reserve_exact(progress.room(used, used + LEAST_ROOM) - used);
            self.note_growth(moved);
        }
        let spare = self.scratch.values.capacity() - self.scratch.values.len();
        // Each byte of input is at most one value.
        if spare > left { usize::MAX } else { progress.done + spare }
    }

    /// Makes room for a text, which may be long.
    #[inline]
    pub(crate) fn make_room_for_text(&mut self, length: usize, progress: Progress) {
        self.make_room_for_words(2, progress);
        let text = &mut self.scratch.text;
        if text.capacity() - text.len() < length {
            let moved = text.capacity();
            text.reserve_exact(progress.room(text.len(), text.len() + length) - text.len());
            self.note_growth(moved);
        }
    }

    #[inline]
    pub(crate) fn make_room_for_words(&mut self, count: usize, progress: Progress) {
        let Scratch { words, values, .. } = &mut *self.scratch;
        if words.capacity() - words.len() < count {
            let moved = 4 * words.capacity();
            // The values of open containers will have their place here too.
            let used = words.len() + values.len();
            words.reserve_exact(progress.room(used, words.len() + count) - words.len());
            self.note_growth(moved);
        }
    }

    /// Remembers the most bytes that there were, when so many have moved: old and new are there at the same time.
    #[cold]
    fn note_growth(&mut self, moved: usize) {
        self.peak = self.peak.max(moved + self.bytes());
    }

    /// Bytes that buffers have reserved.
    fn bytes(&self) -> usize {
        let Scratch { words, values, keys, text, .. } = &*self.scratch;
        4 * (words.capacity() + values.capacity() + keys.capacity()) + text.capacity()
    }
}

//! Lays values into words, in the order in which JSON writes them. Trusts its caller with that order; `Builder` is for
//! callers that want to be checked.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{
    document::Document,
    duplicates,
    guess::{Guess, ShapeGuess},
    intern::Interner,
    options::{Interning, Options},
    scratch::Scratch,
    tape::{self, MASK, tag},
    texts::{Place, Placed, Texts},
};

pub(crate) struct Assembler {
    texts: Texts,
    scratch: Box<Scratch>,
    /// The innermost open container. Those around it are in the scratch.
    top: Frame,
    /// The most bytes that buffers have had at once. Written when they grow.
    peak: usize,
}

/// A container that has begun and not ended.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    kind: Kind,
    /// Whether all keys of an object are symbols.
    has_symbols: bool,
    /// Where its values begin among those of open containers.
    values: u32,
    /// Where its keys begin among those of open objects.
    keys: u32,
    /// The key that leads here.
    name: u32,
    /// The last key of an object.
    previous: u32,
}

/// What a value is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Object,
    /// Nothing: it is the outermost value.
    Outside,
}

/// How far the caller is in its input, of which the rest will need about as much room as the part before.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) done: usize,
    pub(crate) total: usize,
}

/// Words that there is always room for, unless the rest of the input needs less.
const LEAST_ROOM: usize = 1024;

/// The most words, and the most bytes of text: a header has 28 bits to count with.
const MAX_LENGTH: usize = 1 << 27;

/// The longest list of keys that may become a shape.
const MAX_SHAPE: usize = 64;

const EMPTY_ARRAY: u32 = tape::word(tag::ARRAY, 0);
const EMPTY_OBJECT: u32 = tape::word(tag::OBJECT, 0);

/// Origins of documents whose caller names none: each is its own.
static NEXT_ORIGIN: AtomicU32 = AtomicU32::new(0);

impl Progress {
    /// That of somebody who does not know.
    pub(crate) const UNKNOWN: Progress = Progress { done: 1, total: 2 };

    /// The room to have for something of which there is an amount so far and some is needed now: what the rest of the
    /// input lets expect, but not more than twice as much as there is. Doubling as usual would let a hostile body cost a
    /// multiple of what its document needs.
    fn room(self, used: usize, needed: usize) -> usize {
        let expected = used as f64 * 1.01 * self.total as f64 / self.done.max(1) as f64;
        let least = needed.max(used + used / 16);
        (expected as usize).clamp(least, least + used) + LEAST_ROOM
    }
}

impl Assembler {
    pub(crate) fn new(options: &Options) -> Assembler {
        let origin = match options.origin {
            Some(origin) => (origin ^ origin >> 32) as u32,
            None => NEXT_ORIGIN.fetch_add(1, Ordering::Relaxed),
        };
        let texts = Texts { interner: Interner::global(), interning: options.interning, origin };
        let top = Frame { kind: Kind::Outside, has_symbols: true, values: 0, keys: 0, name: 0, previous: 0 };
        Assembler { texts, scratch: Scratch::take(), top, peak: 0 }
    }

    /// Whether words can number one more value with a text.
    pub(crate) fn has_room_for(&self, text: &str) -> bool {
        self.scratch.words.len() <= MAX_LENGTH && self.scratch.text.len() + text.len() <= MAX_LENGTH
    }

    /// The most bytes that buffers have had at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// How many containers are open.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.scratch.frames.len()
    }

    /// What the innermost open container is.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.top.kind
    }

    /// What is probably the next key.
    #[inline]
    pub(crate) fn guess_key(&mut self) -> &mut Guess {
        self.scratch.guesses.key(self.top.name, self.top.previous)
    }

    /// What is probably the next string.
    #[inline]
    pub(crate) fn guess_value(&mut self) -> &mut Guess {
        self.scratch.guesses.value(self.top.name, self.top.previous)
    }

    /// Makes room for the values of input that goes on at a position. Returns the position up to which it is enough.
    #[cold]
    pub(crate) fn make_room(&mut self, progress: Progress) -> usize {
        let left = progress.total - progress.done;
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

    /// The word for a key, whose text is kept if it has no symbol.
    pub(crate) fn key_word(&mut self, key: &str) -> u32 {
        let Scratch { text, recent, .. } = &mut *self.scratch;
        match self.texts.key(key, text, recent) {
            Placed::Symbol(word) => word,
            Placed::Text(place) => self.text_key(place),
        }
    }

    fn text_key(&mut self, place: Place) -> u32 {
        self.top.has_symbols = false;
        self.text_word(place)
    }

    fn text_word(&mut self, Place { offset, length }: Place) -> u32 {
        let long = |assembler: &mut Assembler| assembler.two_words(tag::LONG_TEXT, [offset as u32, length as u32]);
        tape::short_text(offset, length).unwrap_or_else(|| long(self))
    }

    /// The word of a value that needs two more.
    fn two_words(&mut self, tag: u32, words: [u32; 2]) -> u32 {
        let position = self.scratch.words.len();
        self.scratch.words.extend(words);
        tape::word(tag, position as u32)
    }

    /// Adds a key. Its value comes next.
    #[inline]
    pub(crate) fn push_key(&mut self, word: u32) {
        self.top.previous = word;
        self.scratch.keys.push(word);
    }

    /// Adds a string, and returns its word.
    pub(crate) fn string(&mut self, string: &str) -> u32 {
        let Scratch { text, recent, .. } = &mut *self.scratch;
        let word = match self.texts.value(string, text, recent) {
            Placed::Symbol(word) => word,
            Placed::Text(place) => self.text_word(place),
        };
        self.word(word);
        word
    }

    /// Adds a value that is complete: a scalar that is one word, or one that is in the document already.
    #[inline]
    pub(crate) fn word(&mut self, word: u32) {
        self.scratch.values.push(word);
    }

    /// The value that was added last.
    pub(crate) fn last(&self) -> u32 {
        self.scratch.values.last().copied().unwrap_or_default()
    }

    /// The string that hides a value.
    pub(crate) fn masked(&mut self) {
        self.string(MASK);
    }

    #[inline]
    pub(crate) fn null(&mut self) {
        self.word(tag::NULL);
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: bool) {
        self.word(if value { tag::TRUE } else { tag::FALSE });
    }

    #[inline]
    pub(crate) fn int(&mut self, value: i64) {
        match tape::small_int(value) {
            Some(word) => self.word(word),
            None => self.number(tag::INT, value as u64),
        }
    }

    pub(crate) fn float(&mut self, value: f64) {
        self.number(tag::FLOAT, value.to_bits());
    }

    fn number(&mut self, tag: u32, bits: u64) {
        let word = self.two_words(tag, [bits as u32, (bits >> 32) as u32]);
        self.word(word);
    }

    #[inline]
    pub(crate) fn begin(&mut self, is_object: bool) {
        let Scratch { values, keys, frames, .. } = &mut *self.scratch;
        let Frame { kind, name, previous, values: first, .. } = self.top;
        // Elements of one array are told apart: the first port mostly has the same name as the first port elsewhere.
        let index = values.len() as u32 - first;
        let name = if kind == Kind::Object { previous } else { name ^ index.wrapping_mul(0x85EB_CA6B) };
        frames.push(self.top);
        self.top = Frame {
            kind: if is_object { Kind::Object } else { Kind::Array },
            has_symbols: true,
            values: values.len() as u32,
            keys: keys.len() as u32,
            name,
            previous: 0,
        };
    }

    /// Ends the innermost container. Does nothing when none is open.
    #[inline]
    pub(crate) fn end(&mut self, progress: Progress) {
        let Some(parent) = self.scratch.frames.pop() else { return };
        let Frame { kind, values, keys, .. } = self.top;
        let (values, keys) = (values as usize, keys as usize);
        let count = (self.scratch.values.len() - values) + (self.scratch.keys.len() - keys);
        self.make_room_for_words(count + 1, progress);
        let word = if kind == Kind::Object { self.end_object(keys, values) } else { self.end_array(values) };
        self.scratch.keys.truncate(keys);
        self.scratch.values.truncate(values);
        self.top = parent;
        self.word(word);
    }

    #[inline]
    fn end_array(&mut self, first: usize) -> u32 {
        let Scratch { words, values, .. } = &mut *self.scratch;
        let values = &values[first..];
        let position = words.len();
        if values.is_empty() {
            return EMPTY_ARRAY;
        }
        let word = tape::container(tag::ARRAY, values.len(), position).unwrap_or_else(|| {
            words.push(values.len() as u32);
            tape::word(tag::WIDE_ARRAY, position as u32)
        });
        words.extend_from_slice(values);
        word
    }

    #[inline]
    fn end_object(&mut self, first_key: usize, first: usize) -> u32 {
        let keys = &self.scratch.keys[first_key..];
        if keys.is_empty() {
            return EMPTY_OBJECT;
        }
        if !self.top.has_symbols || keys.len() > MAX_SHAPE {
            return self.end_with_keys(first_key, first);
        }
        let guess = *self.scratch.guesses.shape(self.top.name, self.top.previous);
        if guess.keys == &self.scratch.keys[first_key..] {
            self.end_shaped(guess.shape, first)
        } else {
            self.end_unexpected_shape(first_key, first)
        }
    }

    fn end_unexpected_shape(&mut self, first_key: usize, first: usize) -> u32 {
        let keys = &self.scratch.keys[first_key..];
        let Texts { interner, interning, origin } = self.texts;
        let hash = interner.hash_keys(keys);
        let shape = interner.find_shape(hash, keys).or_else(|| {
            let may_add = interning == Interning::Add && !duplicates::has_equal(keys);
            if may_add { interner.add_shape_second_sight(hash, keys, origin) } else { None }
        });
        let Some(shape) = shape else { return self.end_with_keys(first_key, first) };
        let guess = ShapeGuess { keys: interner.shape(shape), shape };
        *self.scratch.guesses.shape(self.top.name, self.top.previous) = guess;
        self.end_shaped(shape, first)
    }

    #[inline]
    fn end_shaped(&mut self, shape: u32, first: usize) -> u32 {
        let Scratch { words, values, .. } = &mut *self.scratch;
        let position = words.len();
        let word = tape::shaped(shape, position).unwrap_or_else(|| {
            words.push(shape);
            tape::word(tag::WIDE_SHAPED, position as u32)
        });
        words.extend_from_slice(&values[first..]);
        word
    }

    /// Ends an object that keeps its keys.
    fn end_with_keys(&mut self, first_key: usize, first: usize) -> u32 {
        let Scratch { words, values, keys, text, .. } = &mut *self.scratch;
        duplicates::remove(keys, values, first_key, words, text);
        let keys = &keys[first_key..];
        let position = words.len();
        let word = tape::container(tag::OBJECT, keys.len(), position).unwrap_or_else(|| {
            words.push(keys.len() as u32);
            tape::word(tag::WIDE_OBJECT, position as u32)
        });
        words.extend_from_slice(keys);
        words.extend_from_slice(&values[first..]);
        word
    }

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
                (interner.shape(shape), first)
            }
            tag::WIDE_SHAPED => {
                let (shape, first) = wide_place(object, words);
                (interner.shape(shape as u32), first)
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

    /// Gives up on a document.
    pub(crate) fn abandon(self) {
        self.scratch.give_back();
    }

    /// The document, when every container has ended.
    pub(crate) fn finish(mut self) -> Document {
        debug_assert!(self.scratch.frames.is_empty(), "every container has ended");
        let last = self.last();
        let Scratch { words, text, .. } = &mut *self.scratch;
        words.reserve_exact(1);
        words.push(last);
        let document = Document::new(exact(words), exact_text(text));
        self.scratch.give_back();
        document
    }
}

/// The number at the position of a wide container, and the position behind it.
fn wide_place(word: u32, words: &[u32]) -> (usize, usize) {
    let position = tape::payload(word) as usize;
    (words[position] as usize, position + 1)
}

/// Documents from this size on take the buffer they were built in: a copy would need as much again.
const MOVED: usize = 64 << 10;

fn exact(words: &mut Vec<u32>) -> Box<[u32]> {
    if words.len() < MOVED { Box::from(&words[..]) } else { std::mem::take(words).into_boxed_slice() }
}

fn exact_text(text: &mut String) -> Box<str> {
    if text.len() < MOVED { Box::from(&text[..]) } else { std::mem::take(text).into_boxed_str() }
}

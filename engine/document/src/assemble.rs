//! Lays values into words, in the order in which JSON writes them. Trusts its caller with that order; `Builder` is for
//! callers that want to be checked.

mod merge;
mod room;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{
    document::Document,
    duplicates,
    guess::{self, Guess, ShapeGuess, Situation},
    intern::{Interner, Shape},
    options::{Interning, Options},
    scratch::Scratch,
    tape::{self, MASK, tag},
    texts::{Place, Placed, Texts},
};

pub(crate) use room::Progress;

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
    /// The path that leads here, as a hash.
    name: u32,
    /// The last key of an object.
    previous: u32,
    /// Where the guesses are for what comes next.
    slot: u32,
}

/// What a value is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Object,
    /// Nothing: it is the outermost value.
    Outside,
}

/// The most words, and the most bytes of text: a payload has 28 bits to count with.
const MAX_LENGTH: usize = 1 << 27;

/// Documents from this size on take the buffer they were built in: a copy would need as much again.
const MOVED: usize = 64 << 10;

/// How many elements of an array are told apart when it is guessed what is in them.
const TOLD_APART: u32 = 7;

const EMPTY_ARRAY: u32 = tape::word(tag::ARRAY, 0);
const EMPTY_OBJECT: u32 = tape::word(tag::OBJECT, 0);

/// Origins of documents whose caller names none: each is its own.
static NEXT_ORIGIN: AtomicU32 = AtomicU32::new(0);

impl Assembler {
    pub(crate) fn new(options: &Options) -> Assembler {
        let origin = match options.origin {
            Some(origin) => (origin ^ origin >> 32) as u32,
            None => next_origin(),
        };
        let texts = Texts { interner: Interner::global(), interning: options.interning, origin };
        let top = Frame { kind: Kind::Outside, has_symbols: true, values: 0, keys: 0, name: 0, previous: 0, slot: 0 };
        Assembler { texts, scratch: Scratch::take(), top, peak: 0 }
    }

    /// Whether the places of one more value and its text still fit into a word.
    pub(crate) fn has_room_for(&self, text: &str) -> bool {
        self.scratch.words.len() <= MAX_LENGTH && self.scratch.text.len() + text.len() <= MAX_LENGTH
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
        &mut self.scratch.guesses.situation(self.top.slot).key
    }

    /// What may be the next key, if that is not the one.
    #[inline]
    pub(crate) fn second_guess_key(&mut self) -> &mut Guess {
        self.scratch.guesses.second_key(self.top.slot)
    }

    /// Guesses from here on that a key comes here: its word, and what it begins with.
    pub(crate) fn expect_key(&mut self, word: u32, rest: &[u8], length: usize) {
        *self.second_guess_key() = *self.guess_key();
        self.guess_key().set(word, rest, length);
    }

    /// What is probably the next string.
    #[inline]
    pub(crate) fn guess_value(&mut self) -> &mut Guess {
        let slot = self.value_slot();
        self.guess_value_at(slot)
    }

    /// Where the guess is for the next string.
    #[inline]
    pub(crate) fn value_slot(&self) -> u32 {
        let Frame { kind, name, slot, .. } = self.top;
        if kind == Kind::Array { guess::slot(name, self.element()) } else { slot }
    }

    /// The guess at such a place, for whoever has added the string since.
    #[inline]
    pub(crate) fn guess_value_at(&mut self, slot: u32) -> &mut Guess {
        &mut self.scratch.guesses.situation(slot).value
    }

    /// What probably comes next in YAML.
    #[inline]
    pub(crate) fn guess_yaml(&mut self) -> &mut Situation {
        self.scratch.guesses.yaml(self.top.slot)
    }

    /// What is probably in a container of YAML that would begin here.
    #[inline]
    pub(crate) fn guess_yaml_within(&mut self) -> &mut Situation {
        let slot = guess::slot(self.name(), 0);
        self.scratch.guesses.yaml(slot)
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
        self.top.slot = guess::slot(self.top.name, word);
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
        let name = self.name();
        let Scratch { values, keys, frames, .. } = &mut *self.scratch;
        frames.push(self.top);
        self.top = Frame {
            kind: if is_object { Kind::Object } else { Kind::Array },
            has_symbols: true,
            values: values.len() as u32,
            keys: keys.len() as u32,
            name,
            previous: 0,
            slot: guess::slot(name, 0),
        };
    }

    /// What tells a container that begins here from others: the path to it.
    #[inline]
    fn name(&self) -> u32 {
        let step = if self.top.kind == Kind::Object { self.top.previous } else { self.element() };
        guess::path(self.top.name, step)
    }

    /// What tells a coming element of an array from others: the first port mostly has the same name as the first port elsewhere.
    /// Those of a long array are alike from some point on, and so are those of an array that is a field of the outermost object, which
    /// may be a list of objects.
    #[inline]
    fn element(&self) -> u32 {
        if self.scratch.frames.len() <= 2 {
            return 0;
        }
        (self.scratch.values.len() as u32 - self.top.values).min(TOLD_APART)
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
        if !self.top.has_symbols || keys.len() > Shape::MAX_KEYS {
            return self.end_with_keys(first_key, first);
        }
        let guess = *self.scratch.guesses.shape(self.top.slot);
        // Most have a few keys, for which a call would take longer.
        if guess.keys.len() == keys.len() && guess.keys.iter().zip(keys).all(|(guess, key)| guess == key) {
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
        let guess = ShapeGuess { keys: interner.shape(shape).keys(), shape };
        *self.scratch.guesses.shape(self.top.slot) = guess;
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

/// The origin of a document whose caller names none.
pub(crate) fn next_origin() -> u32 {
    NEXT_ORIGIN.fetch_add(1, Ordering::Relaxed)
}

fn exact(words: &mut Vec<u32>) -> Box<[u32]> {
    if words.len() < MOVED { Box::from(&words[..]) } else { std::mem::take(words).into_boxed_slice() }
}

fn exact_text(text: &mut String) -> Box<str> {
    if text.len() < MOVED { Box::from(&text[..]) } else { std::mem::take(text).into_boxed_str() }
}

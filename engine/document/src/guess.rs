//! Which text probably comes next: objects of one kind have the same keys in the same order, and mostly the same values
//! under them. Comparing with a guess is a fraction of the work of finding where a text ends and what its symbol is.

use crate::{
    intern::{Interner, Symbol},
    tape::{self, tag},
};

/// What came last in each situation.
pub(crate) struct Guesses {
    situations: [Situation; SIZE],
    shapes: [ShapeGuess; SIZE],
    /// The same for YAML: what is a whole key there may be the beginning of one in JSON. Empty until the thread reads some,
    /// which most never do.
    yaml: Vec<Situation>,
}

/// What came last after a key. It lies in one line of the processor's cache, and those of a pod fit the fastest one.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Situation {
    /// Its value, if that is a string, or any other word that says all in YAML.
    pub(crate) value: Guess,
    /// The next key.
    pub(crate) key: Guess,
}

/// A text that stands in its input as it is, with what comes behind it: in JSON a quote, and a colon if it is a key.
#[derive(Clone, Copy)]
pub(crate) struct Guess {
    /// The first bytes of it. Behind the end of a shorter text, anything.
    start: Start,
    /// Bytes with what comes behind. Never zero.
    length: u32,
    /// The word of its symbol. In YAML, a short one may be any word.
    word: u32,
}

/// What ends a text.
pub(crate) trait Ending {
    /// Whether this may come behind one. As many bytes are asked for as there were when it was guessed.
    fn is_behind(behind: &[u8]) -> bool;
}

/// Behind a key or a string of JSON.
pub(crate) struct Json;

/// Behind a key of a block in YAML.
pub(crate) struct YamlKey;

/// Behind a value of a block in YAML.
pub(crate) struct YamlValue;

/// A list of keys.
#[derive(Clone, Copy)]
pub(crate) struct ShapeGuess {
    pub(crate) keys: &'static [u32],
    pub(crate) shape: u32,
}

/// Enough for the kinds that a thread sees at a time, and small enough for a fast cache.
const SIZE: usize = 4096;

/// The beginning of a text, as many bytes as are compared at once.
type Start = [u64; 3];

const START: usize = size_of::<Start>();

/// The bits of the first so many of these bytes.
const MASKS: [Start; START + 1] = {
    let mut masks = [[0; 3]; START + 1];
    let mut length = 0;
    while length < START {
        masks[length + 1] = masks[length];
        masks[length + 1][length / 8] |= 0xFF << (8 * (length % 8));
        length += 1;
    }
    masks
};

/// A path that goes on by a key or the number of an element.
#[inline]
pub(crate) fn path(path: u32, step: u32) -> u32 {
    (path.rotate_left(5) ^ step).wrapping_mul(0x9E37_79B1)
}

/// Where the guesses are for what follows a key of a container, from the path that leads to the container. Zero stands for no key.
#[inline]
pub(crate) fn slot(container: u32, key: u32) -> u32 {
    path(container, key) >> (32 - SIZE.ilog2())
}

impl Guesses {
    #[inline]
    pub(crate) fn situation(&mut self, slot: u32) -> &mut Situation {
        &mut self.situations[slot as usize % SIZE]
    }

    /// What may be the next key too. Another key may have the same slot, and what was guessed there before comes here.
    #[inline]
    pub(crate) fn second_key(&mut self, slot: u32) -> &mut Guess {
        &mut self.situation(slot ^ 1).key
    }

    /// What comes after a key in YAML.
    #[inline]
    pub(crate) fn yaml(&mut self, slot: u32) -> &mut Situation {
        if self.yaml.is_empty() {
            self.yaml = no_situations();
        }
        &mut self.yaml[slot as usize % SIZE]
    }

    /// The guess for the keys of an object whose last key has a slot.
    #[inline]
    pub(crate) fn shape(&mut self, slot: u32) -> &mut ShapeGuess {
        &mut self.shapes[slot as usize % SIZE]
    }
}

impl Situation {
    /// No symbol, and longer than what is compared at once, so that it is always looked at.
    const NONE: Situation = {
        let none = Guess { start: [0; 3], length: START as u32 + 1, word: tag::NULL };
        Situation { value: none, key: none }
    };
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
    pub(crate) fn check<E: Ending>(&self, rest: &[u8]) -> Option<(u32, usize)> {
        let start = start(rest)?;
        let length = self.length as usize;
        let masks = MASKS[length.min(START)];
        let differing = |at: usize| (start[at] ^ self.start[at]) & masks[at];
        let is_right = differing(0) | differing(1) | differing(2) == 0;
        (is_right && (length <= START || self.check_long::<E>(rest))).then_some((self.word, length))
    }

    fn check_long<E: Ending>(&self, rest: &[u8]) -> bool {
        if tape::tag_of(self.word) != tag::SYMBOL {
            return false;
        }
        let text = text_of(self.word).as_bytes();
        let behind = rest.get(text.len()..self.length as usize);
        rest.starts_with(text) && behind.is_some_and(E::is_behind)
    }
}

impl Ending for Json {
    fn is_behind(behind: &[u8]) -> bool {
        b"\":".starts_with(behind)
    }
}

impl Ending for YamlKey {
    fn is_behind(behind: &[u8]) -> bool {
        matches!(behind, b": " | b":\n")
    }
}

impl Ending for YamlValue {
    fn is_behind(behind: &[u8]) -> bool {
        behind == b"\n"
    }
}

#[cold]
fn no_situations() -> Vec<Situation> {
    vec![Situation::NONE; SIZE]
}

/// The text of a symbol.
pub(crate) fn text_of(word: u32) -> &'static str {
    Interner::global().text(Symbol(tape::payload(word)))
}

/// The first bytes, if there are as many.
#[inline]
fn start(rest: &[u8]) -> Option<Start> {
    let bytes: &[u8; START] = rest.first_chunk()?;
    let (words, _) = bytes.as_chunks();
    let [first, second, third] = *words else { return None };
    Some([first, second, third].map(u64::from_le_bytes))
}

impl Default for Guesses {
    fn default() -> Guesses {
        // A list of keys that no object has.
        let shapes = [ShapeGuess { keys: &[0], shape: 0 }; SIZE];
        Guesses { situations: [Situation::NONE; SIZE], shapes, yaml: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guesses a text and what is behind it, and says whether the guess is right for another body.
    fn is_right<E: Ending>(text: &str, behind: &str, body: &str) -> bool {
        let symbol = Interner::global().intern(text).unwrap();
        let word = tape::word(tag::SYMBOL, symbol.0);
        let mut guess = Guesses::default().situation(0).value;
        let enough = " ".repeat(START);
        guess.set(word, format!("{text}{behind}{enough}").as_bytes(), text.len() + behind.len());
        let found = guess.check::<E>(format!("{body}{enough}").as_bytes());
        assert!(found.is_none_or(|found| found == (word, text.len() + behind.len())));
        found.is_some()
    }

    #[track_caller]
    fn check_right<E: Ending>(text: &str, behind: &str) {
        assert!(is_right::<E>(text, behind, &format!("{text}{behind}")));
        assert!(is_right::<E>(text, behind, &format!("{text}{behind}more")));
        assert!(!is_right::<E>(text, behind, &format!("{text}x{behind}")));
        assert!(!is_right::<E>(text, behind, &format!("x{text}{behind}")));
        assert!(!is_right::<E>(text, behind, text));
    }

    #[test]
    fn a_guess_is_right_when_all_of_it_is_there() {
        for length in [0, 1, 7, 8, 9, 15, 16, 17, 22, 23, 24, 25, 40] {
            let text = "abcdefghij".repeat(5)[..length].to_owned();
            for behind in ["\"", "\":"] {
                check_right::<Json>(&text, behind);
            }
            assert!(!is_right::<Json>(&text, "\":", &format!("{text}\",")));
            for behind in [": ", ":\n"] {
                check_right::<YamlKey>(&text, behind);
            }
            assert!(!is_right::<YamlKey>(&text, ": ", &format!("{text}:x")));
            check_right::<YamlValue>(&text, "\n");
            assert!(!is_right::<YamlValue>(&text, "\n", &format!("{text} #\n")));
        }
    }

    #[test]
    fn nothing_is_guessed_at_first() {
        let mut guesses = Guesses::default();
        assert!(guesses.situation(7).key.check::<Json>(&[0; 40]).is_none());
        assert!(guesses.situation(7).value.check::<Json>(&[b'"'; 40]).is_none());
    }

    #[test]
    fn nothing_is_guessed_near_the_end() {
        let mut guess = Guesses::default().situation(0).value;
        guess.set(tape::word(tag::SYMBOL, 0), b"a\"", 2);
        assert!(guess.check::<Json>(b"a\"").is_none());
    }
}

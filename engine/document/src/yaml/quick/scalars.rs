//! Keys and values that are scalars on one line: where those without quotes end, and how each gets onto the tape.

use super::{
    super::{
        key::key_text,
        resolve::{Scalar, resolve_plain},
        value::{self, NotFinite},
    },
    lex::{Declined, Result, begins_plain, byte, find_mark, is_space_or_end},
    quoted::Quoted,
    read::Reader,
};
use crate::tape::{self, tag};

/// A scalar without quotes whose end has been found.
pub(super) struct Plain {
    pub(super) end: usize,
    /// Whether a colon ends it.
    pub(super) is_key: bool,
}

impl Reader<'_> {
    /// Guesses from here on that the value that was added last comes again, if its word says all that it is.
    pub(super) fn guess_again(&mut self, start: usize, end: usize) {
        let bytes = self.bytes();
        let word = self.assembler.last();
        let is_whole = match tape::tag_of(word) {
            // What is longer is compared with the text of its symbol, which has no quotes.
            tag::SYMBOL => end - start < 16 || begins_plain(bytes[start]),
            tag::NULL | tag::FALSE | tag::TRUE | tag::SMALL_INT => end - start < 16,
            _ => false,
        };
        if is_whole && byte(bytes, end) == b'\n' {
            self.assembler.guess_yaml().value.set(word, &bytes[start..], end + 1 - start);
        }
    }

    /// Finds the end of a scalar without quotes.
    pub(super) fn plain(&self, start: usize) -> Result<Plain> {
        let bytes = self.bytes();
        let mut at = start;
        loop {
            at = find_mark(bytes, at);
            match byte(bytes, at) {
                b':' if is_space_or_end(bytes, at + 1) => {
                    let has_space = at > start && bytes[at - 1] == b' ';
                    return if has_space { Err(Declined) } else { Ok(Plain { end: at, is_key: true }) };
                }
                b'#' if bytes[at - 1] == b' ' => break,
                b':' | b'#' => at += 1,
                b'\n' | 0 => break,
                _ => return Err(Declined),
            }
        }
        let mut end = at;
        while bytes[end - 1] == b' ' {
            end -= 1;
        }
        Ok(Plain { end, is_key: false })
    }

    /// Takes a key of a block, which a colon ends.
    pub(super) fn block_key(&mut self, start: usize, colon: usize) -> Result<()> {
        let bytes = self.bytes();
        let (word, is_text) = self.plain_key_word(start, colon)?;
        if is_text && colon + 1 < bytes.len() && tape::tag_of(word) == tag::SYMBOL {
            self.assembler.guess_yaml().key.set(word, &bytes[start..], colon + 2 - start);
        }
        self.assembler.push_key(word);
        Ok(())
    }

    pub(super) fn plain_key(&mut self, start: usize, end: usize) -> Result<()> {
        let (word, _) = self.plain_key_word(start, end)?;
        self.assembler.push_key(word);
        Ok(())
    }

    /// The word of a key without quotes, and whether it is the text that stands there.
    fn plain_key_word(&mut self, start: usize, end: usize) -> Result<(u32, bool)> {
        match resolve_plain(&self.text[start..end]) {
            // A merge key is a text too.
            Scalar::Text(key) if key == "<<" => Err(Declined),
            Scalar::Text(key) => Ok((self.assembler.key_word(&key), true)),
            other => {
                let key = key_text(&other).ok_or(Declined)?;
                Ok((self.assembler.key_word(&key), false))
            }
        }
    }

    pub(super) fn quoted_key(&mut self, quoted: Quoted) -> Result<()> {
        let key = quoted.decode(self.text, &mut self.decoded)?;
        let word = self.assembler.key_word(key);
        self.assembler.push_key(word);
        Ok(())
    }

    pub(super) fn plain_value(&mut self, start: usize, end: usize) -> Result<()> {
        let scalar = resolve_plain(&self.text[start..end]);
        value::add(&mut self.assembler, &scalar).map_err(|NotFinite| Declined)
    }

    pub(super) fn quoted_value(&mut self, quoted: Quoted) -> Result<()> {
        let text = quoted.decode(self.text, &mut self.decoded)?;
        self.assembler.string(text);
        Ok(())
    }
}

//! JSON into a document, in one pass and without recursion: nesting costs a few bytes of heap, never stack.

use super::{
    escapes,
    lex::{self, Number, Quoted, Result, byte, expected, space},
    skip::{skip, skip_known},
};
use crate::{
    assemble::{Assembler, Kind, Progress},
    document::Document,
    filter::Filter,
    guess::{self, Json},
    options::Options,
    tape::{self, tag},
};

struct Scanner<'b, 'o> {
    body: &'b [u8],
    /// The body again, when it is UTF-8.
    text: Option<&'b str>,
    assembler: Assembler,
    filter: Filter<'o>,
    /// Where strings are decoded that do not stand in the body as they are.
    decoded: String,
    depth_limit: usize,
    /// Whether the body is known to be JSON.
    is_well_formed: bool,
}

/// Reads one JSON value, and says how many bytes buffers had at most on the way.
pub(super) fn scan(body: &[u8], options: &Options) -> Result<(Document, usize)> {
    let mut scanner = Scanner {
        body,
        text: simdutf8::basic::from_utf8(body).ok(),
        assembler: Assembler::new(options),
        filter: Filter::new(options.drop, options.mask),
        decoded: String::new(),
        depth_limit: options.limits.depth,
        is_well_formed: options.well_formed,
    };
    let result = scanner.values().and_then(|at| match space(body, at) {
        end if end < body.len() => Err(expected(body, end, "the end")),
        _ => Ok(()),
    });
    match result {
        Ok(()) => {
            let peak = scanner.assembler.peak() + scanner.decoded.capacity();
            Ok((scanner.assembler.finish(), peak))
        }
        Err(error) => {
            scanner.assembler.abandon();
            Err(error)
        }
    }
}

impl Scanner<'_, '_> {
    /// Takes the outermost value with all that is in it.
    fn values(&mut self) -> Result<usize> {
        let body = self.body;
        let mut at = space(body, 0);
        // The position up to which the document has room.
        let mut room = 0;
        let mut has_key = false;
        loop {
            // Before a value, or before its key.
            let is_kept = match self.assembler.kind() {
                Kind::Object if has_key => true,
                Kind::Object => {
                    let (value, is_kept) = self.key(at)?;
                    at = value;
                    is_kept
                }
                Kind::Array => self.filter.keeps_element(),
                Kind::Outside => true,
            };
            if at >= room {
                room = self.assembler.make_room(self.progress(at));
            }
            has_key = false;
            at = match byte(body, at) {
                _ if !is_kept => self.skip(at)?,
                b'"' => {
                    (at, has_key) = self.strings(at + 1, room)?;
                    if has_key {
                        continue;
                    }
                    at
                }
                opening @ (b'{' | b'[') => {
                    self.begin(at, opening == b'{')?;
                    // Both closing brackets are two after their opening ones.
                    let first = space(body, at + 1);
                    if byte(body, first) != opening + 2 {
                        at = first;
                        continue;
                    }
                    self.end(first);
                    first + 1
                }
                b't' => self.literal(at, "true", |assembler| assembler.bool(true))?,
                b'f' => self.literal(at, "false", |assembler| assembler.bool(false))?,
                b'n' => {
                    let end = lex::literal(body, at, "null")?;
                    self.assembler.null();
                    end
                }
                b'-' | b'0'..=b'9' => self.number(at)?,
                _ => return Err(expected(body, at, "a value")),
            };
            // After a value: end what ends here, until there is another one.
            loop {
                let kind = self.assembler.kind();
                if kind == Kind::Outside {
                    return Ok(at);
                }
                at = space(body, at);
                match (kind, byte(body, at)) {
                    (_, b',') => {
                        at = space(body, at + 1);
                        break;
                    }
                    (Kind::Object, b'}') | (Kind::Array, b']') => self.end(at),
                    (Kind::Object, _) => return Err(expected(body, at, "`,` or `}`")),
                    (_, _) => return Err(expected(body, at, "`,` or `]`")),
                }
                at += 1;
            }
        }
    }

    /// Takes a key and its colon, and says whether its value is wanted.
    #[inline(always)]
    fn key(&mut self, at: usize) -> Result<(usize, bool)> {
        let body = self.body;
        if byte(body, at) != b'"' {
            return Err(expected(body, at, "a key in quotes"));
        }
        let rest = &body[at + 1..];
        let guessed = self.assembler.guess_key().check::<Json>(rest);
        if let Some((word, length)) = guessed.or_else(|| self.assembler.second_guess_key().check::<Json>(rest)) {
            let value = space(body, at + 1 + length);
            if self.filter.has_paths() && !self.filter.keeps_key(guess::text_of(word)) {
                return Ok((value, false));
            }
            self.assembler.push_key(word);
            return Ok((value, true));
        }
        self.unexpected_key(at + 1)
    }

    fn unexpected_key(&mut self, start: usize) -> Result<(usize, bool)> {
        let quoted = lex::string(self.body, start)?;
        let colon = space(self.body, quoted.end + 1);
        if byte(self.body, colon) != b':' {
            return Err(expected(self.body, colon, "`:`"));
        }
        let value = space(self.body, colon + 1);
        let progress = self.progress(value);
        let key = decode(self.body, self.text, start, quoted, &mut self.decoded);
        if !self.filter.keeps_key(key) {
            return Ok((value, false));
        }
        self.assembler.make_room_for_text(key.len(), progress);
        let word = self.assembler.key_word(key);
        if self.is_plain(quoted) && colon == quoted.end + 1 && tape::tag_of(word) == tag::SYMBOL {
            self.assembler.expect_key(word, &self.body[start..], colon + 1 - start);
        }
        self.assembler.push_key(word);
        Ok((value, true))
    }

    /// Takes a string, from behind its opening quote, and whatever else of its object is what was guessed: keys with strings. Returns
    /// the position behind, and whether that is the one behind a key.
    #[inline(always)]
    fn strings(&mut self, start: usize, room: usize) -> Result<(usize, bool)> {
        let body = self.body;
        if self.filter.is_masked() {
            let quoted = lex::string(body, start)?;
            self.assembler.masked();
            return Ok((quoted.end + 1, false));
        }
        let mut start = start;
        loop {
            let Some((word, length)) = self.assembler.guess_value().check::<Json>(&body[start..]) else {
                return Ok((self.unexpected_string(start)?, false));
            };
            self.assembler.word(word);
            let end = start + length;
            let is_open = self.assembler.kind() == Kind::Object && !self.filter.has_paths() && end < room;
            if !is_open || body.get(end..end + 2) != Some(b",\"") {
                return Ok((end, false));
            }
            let Some((word, length)) = self.assembler.guess_key().check::<Json>(&body[end + 2..]) else {
                return Ok((end, false));
            };
            self.assembler.push_key(word);
            let value = space(body, end + 2 + length);
            if byte(body, value) != b'"' {
                return Ok((value, true));
            }
            start = value + 1;
        }
    }

    fn unexpected_string(&mut self, start: usize) -> Result<usize> {
        let quoted = lex::string(self.body, start)?;
        let progress = self.progress(quoted.end);
        let string = decode(self.body, self.text, start, quoted, &mut self.decoded);
        self.assembler.make_room_for_text(string.len(), progress);
        let slot = self.assembler.value_slot();
        let word = self.assembler.string(string);
        if self.is_plain(quoted) && tape::tag_of(word) == tag::SYMBOL {
            self.assembler.guess_value_at(slot).set(word, &self.body[start..], quoted.end + 1 - start);
        }
        Ok(quoted.end + 1)
    }

    /// Steps over a value.
    fn skip(&self, at: usize) -> Result<usize> {
        let known = if self.is_well_formed { skip_known(self.body, at) } else { None };
        known.map_or_else(|| skip(self.body, at, self.assembler.depth(), self.depth_limit), Ok)
    }

    /// Whether a string stands in the body as it is.
    fn is_plain(&self, quoted: Quoted) -> bool {
        !quoted.has_escapes && self.text.is_some()
    }

    fn number(&mut self, at: usize) -> Result<usize> {
        let (number, end) = lex::number(self.body, at)?;
        self.assembler.make_room_for_words(2, self.progress(at));
        self.scalar(|assembler| match number {
            Number::Int(int) => assembler.int(int),
            Number::Float(float) => assembler.float(float),
        });
        Ok(end)
    }

    #[inline]
    fn literal(&mut self, at: usize, literal: &'static str, add: impl FnOnce(&mut Assembler)) -> Result<usize> {
        let end = lex::literal(self.body, at, literal)?;
        self.scalar(add);
        Ok(end)
    }

    #[inline]
    fn scalar(&mut self, add: impl FnOnce(&mut Assembler)) {
        if self.filter.is_masked() { self.assembler.masked() } else { add(&mut self.assembler) }
    }

    #[inline]
    fn begin(&mut self, at: usize, is_object: bool) -> Result<()> {
        if self.assembler.depth() >= self.depth_limit {
            return Err(lex::too_deep(self.body, at, self.depth_limit));
        }
        self.assembler.begin(is_object);
        self.filter.begin();
        Ok(())
    }

    #[inline]
    fn end(&mut self, at: usize) {
        self.assembler.end(self.progress(at));
        self.filter.end();
    }

    #[inline]
    fn progress(&self, at: usize) -> Progress {
        Progress { done: at, total: self.body.len() }
    }
}

/// The characters of a string: straight from the body when they stand there as they are, otherwise decoded.
#[inline]
fn decode<'t>(body: &'t [u8], text: Option<&'t str>, start: usize, quoted: Quoted, decoded: &'t mut String) -> &'t str {
    match text {
        Some(text) if !quoted.has_escapes => &text[start..quoted.end],
        _ => {
            decoded.clear();
            escapes::decode(&body[start..quoted.end], decoded);
            decoded
        }
    }
}

//! JSON as values. Every number is a float, as in Go.

use crate::{
    machine::{Buffer, Failure, Machine, deeper},
    value::{Entry, Keys, Value, map::Duplicates},
};

struct Parser<'m, 'a> {
    machine: &'m Machine<'a>,
    text: &'a str,
    at: usize,
}

pub(super) fn parse<'a>(machine: &Machine<'a>, text: &'a str) -> Result<Value<'a>, Failure> {
    machine.step_bytes(text.len())?;
    let mut parser = Parser { machine, text, at: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.unexpected()) } else { Ok(value) }
}

impl<'a> Parser<'_, 'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    #[cold]
    fn unexpected(&self) -> Failure {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(character) => Failure::new(format!("unexpected {character:?} at byte {} of this JSON", self.at)),
            None => Failure::new("this JSON ends too early"),
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: u32) -> Result<Value<'a>, Failure> {
        self.machine.step(1)?;
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(deeper(depth)?),
            Some(b'[') => self.array(deeper(depth)?),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, Failure> {
        for byte in word.bytes() {
            if self.peek() != Some(byte) {
                return Err(self.unexpected());
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn array(&mut self, depth: u32) -> Result<Value<'a>, Failure> {
        self.at += 1;
        let mut items: Buffer<'_, 'a, Value<'a>> = self.machine.buffer();
        if self.eat(b']') {
            return Ok(Value::EMPTY);
        }
        loop {
            items.push(self.value(depth)?)?;
            if self.eat(b']') {
                return Ok(Value::List(items.finish()));
            }
            if !self.eat(b',') {
                return Err(self.unexpected());
            }
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value<'a>, Failure> {
        self.at += 1;
        let mut entries: Buffer<'_, 'a, Entry<'a>> = self.machine.buffer();
        let mut is_closed = self.eat(b'}');
        while !is_closed {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let key = Value::Text(self.string()?);
            if !self.eat(b':') {
                return Err(self.unexpected());
            }
            entries.push((key, self.value(depth)?))?;
            is_closed = self.eat(b'}');
            if !is_closed && !self.eat(b',') {
                return Err(self.unexpected());
            }
        }
        self.machine.sort_map(entries.finish(), Keys::Text, Duplicates::Last)
    }

    fn number(&mut self) -> Result<Value<'a>, Failure> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let written = &self.text[start..self.at];
        match written.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Float(number)),
            _ => Err(Failure::new(format!("the number at byte {start} of this JSON is too large"))),
        }
    }

    fn digits(&mut self) -> Result<(), Failure> {
        let count = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.unexpected()) } else { Ok(()) }
    }

    /// Reads text in quotes. Without an escape in it, it is a part of the input.
    fn string(&mut self) -> Result<&'a str, Failure> {
        self.at += 1;
        let plain = self.plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(plain);
        }
        let mut writer = self.machine.writer();
        writer.push(plain)?;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return writer.finish();
                }
                Some(b'\\') => {
                    self.at += 1;
                    writer.push_char(self.escape()?)?;
                }
                _ => return Err(self.unexpected()),
            }
            writer.push(self.plain())?;
        }
    }

    /// Text up to a quote, an escape, or what must not be in text.
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Reads what follows a backslash.
    fn escape(&mut self) -> Result<char, Failure> {
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte.into(),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(character)
    }

    /// Reads four digits after `u`, and the same again for the second half of a pair. A half without the other
    /// becomes U+FFFD.
    fn unicode(&mut self) -> Result<char, Failure> {
        let hex = |at: usize| {
            let digits = self.text.get(at..at + 4).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            u32::from_str_radix(digits, 16).ok()
        };
        let first = hex(self.at + 1);
        let second = hex(self.at + 7).filter(|_| self.text.get(self.at + 5..self.at + 7) == Some("\\u"));
        let Some(first) = first else {
            self.at += 1;
            return Err(self.unexpected());
        };
        self.at += 5;
        if let (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) = (first, second) {
            self.at += 6;
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

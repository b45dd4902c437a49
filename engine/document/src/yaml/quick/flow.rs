//! Lists and mappings in brackets that end on their line.

use super::{
    lex::{Declined, Result, begins_plain, byte, is_space_or_end, spaces},
    quoted,
    read::{MAX_KEY, Reader},
};
use crate::assemble::Kind;

impl Reader<'_> {
    /// Takes what begins with a bracket as the value that comes next. Returns the position behind it.
    ///
    /// Without recursion: nesting costs a few bytes of heap, never stack.
    pub(super) fn flow(&mut self, start: usize) -> Result<usize> {
        let bytes = self.bytes();
        let outside = self.assembler.depth();
        let mut at = start;
        loop {
            // Before a value.
            at = match byte(bytes, at) {
                opening @ (b'[' | b'{') => {
                    self.begin(opening == b'{')?;
                    let first = spaces(bytes, at + 1);
                    // Both closing brackets are two after their opening ones.
                    if byte(bytes, first) != opening + 2 {
                        at = if opening == b'{' { self.flow_key(first)? } else { first };
                        continue;
                    }
                    self.end();
                    first + 1
                }
                b'"' | b'\'' => {
                    let quoted = quoted::find_end(bytes, at)?;
                    self.quoted_value(quoted)?;
                    quoted.end + 1
                }
                _ => {
                    let (end, after) = flow_plain(bytes, at)?;
                    self.plain_value(at, end)?;
                    after
                }
            };
            // After a value: end what ends here, until there is another one.
            while self.assembler.depth() > outside {
                let kind = self.assembler.kind();
                at = spaces(bytes, at);
                match (kind, byte(bytes, at)) {
                    (_, b',') => {
                        at = spaces(bytes, at + 1);
                        if kind == Kind::Object {
                            at = self.flow_key(at)?;
                        }
                        break;
                    }
                    (Kind::Object, b'}') | (Kind::Array, b']') => self.end(),
                    _ => return Err(Declined),
                }
                at += 1;
            }
            if self.assembler.depth() == outside {
                return Ok(at);
            }
        }
    }

    /// Takes a key and its colon. Returns the position of its value.
    fn flow_key(&mut self, start: usize) -> Result<usize> {
        let bytes = self.bytes();
        let colon = if matches!(byte(bytes, start), b'"' | b'\'') {
            let quoted = quoted::find_end(bytes, start)?;
            self.quoted_key(quoted)?;
            // What is in quotes may have its value right behind the colon, as in JSON.
            quoted.end + 1
        } else {
            check_start(bytes, start)?;
            let colon = find_flow_mark(bytes, start)?;
            if !is_space_or_end(bytes, colon + 1) || bytes[colon - 1] == b' ' {
                return Err(Declined);
            }
            self.plain_key(start, colon)?;
            colon
        };
        if byte(bytes, colon) != b':' || colon - start > MAX_KEY {
            return Err(Declined);
        }
        Ok(spaces(bytes, colon + 1))
    }
}

/// Finds the end of a scalar without quotes, and the position of what comes behind it.
fn flow_plain(bytes: &[u8], start: usize) -> Result<(usize, usize)> {
    check_start(bytes, start)?;
    let after = find_flow_mark(bytes, start)?;
    if bytes[after] == b':' {
        return Err(Declined);
    }
    let spaces = bytes[start..after].iter().rev().take_while(|byte| **byte == b' ').count();
    Ok((after - spaces, after))
}

/// Checks that a scalar without quotes may begin at a position.
fn check_start(bytes: &[u8], start: usize) -> Result<()> {
    let is_dash = byte(bytes, start) == b'-' && is_mark_or_space(byte(bytes, start + 1));
    if !begins_plain(byte(bytes, start)) || is_dash { Err(Declined) } else { Ok(()) }
}

/// Whether something else begins with a byte, if a dash or a colon is before it.
fn is_mark_or_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'[' | b']' | b'{' | b'}' | b',' | 0)
}

/// The position of what ends a scalar without quotes: a bracket, a comma, or a colon behind which something else begins.
fn find_flow_mark(bytes: &[u8], start: usize) -> Result<usize> {
    let mut at = start;
    loop {
        match byte(bytes, at) {
            b',' | b'[' | b']' | b'{' | b'}' => return Ok(at),
            b':' if matches!(byte(bytes, at + 1), b' ' | b'\n' | b'[' | b']' | b'{' | b'}' | b',' | 0) => {
                return Ok(at);
            }
            // What goes on in the next line, or ends with a comment.
            b'\n' | b'\t' | 0 => return Err(Declined),
            b'#' if at > start && bytes[at - 1] == b' ' => return Err(Declined),
            _ => at += 1,
        }
    }
}

//! Blocks of text: literal and folded ones, whose indentation is that of their first line.

use super::{
    lex::{Declined, Result, byte, find_line_end, spaces},
    read::Reader,
};

/// What happens to the line breaks at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    /// One stays.
    Clip,
    Strip,
    Keep,
}

impl Reader<'_> {
    /// Takes a block of text as the value that comes next, from its `|` or `>` on.
    pub(super) fn literal(&mut self, start: usize) -> Result<()> {
        let bytes = self.bytes();
        let parent = self.indent().ok_or(Declined)?;
        let is_folded = bytes[start] == b'>';
        let (chomping, after) = match byte(bytes, start + 1) {
            b'-' => (Chomping::Strip, start + 2),
            b'+' => (Chomping::Keep, start + 2),
            _ => (Chomping::Clip, start + 1),
        };
        self.end_of_line(after)?;
        let (mut breaks, indent) = self.before_literal(parent)?;

        let mut text = std::mem::take(&mut self.decoded);
        text.clear();
        let mut is_first = true;
        let mut was_spaced = false;
        // At a line of the block. A line of spaces that is longer than the indentation is one too.
        loop {
            let content = self.at + indent;
            let end = find_line_end(bytes, content);
            if end == bytes.len() {
                // Whether the last line has a break to keep is told by the end of the text.
                return Err(Declined);
            }
            let is_spaced = matches!(bytes[content], b' ' | b'\t');
            if is_folded && !is_first && !was_spaced && !is_spaced {
                if breaks == 0 {
                    text.push(' ');
                }
            } else if !is_first {
                text.push('\n');
            }
            push_breaks(&mut text, breaks);
            text.push_str(&self.text[content..end]);
            (is_first, was_spaced) = (false, is_spaced);
            self.next_line(end);

            let is_over;
            (breaks, is_over) = self.between_lines(indent)?;
            if is_over {
                break;
            }
        }
        if chomping != Chomping::Strip {
            text.push('\n');
        }
        if chomping == Chomping::Keep {
            push_breaks(&mut text, breaks);
        }
        self.assembler.string(&text);
        self.decoded = text;
        Ok(())
    }

    /// Takes the empty lines that a block begins with. Returns how many they are, and the indentation of the line after them.
    fn before_literal(&mut self, parent: usize) -> Result<(usize, usize)> {
        let bytes = self.bytes();
        let (mut breaks, mut widest) = (0, 0);
        loop {
            let first = spaces(bytes, self.at);
            let indent = first - self.at;
            match byte(bytes, first) {
                b'\n' => {
                    breaks += 1;
                    widest = widest.max(indent);
                    self.next_line(first);
                }
                // A block without lines, one that begins with a tab, and one that begins behind its empty lines.
                0 | b'\t' => return Err(Declined),
                _ if indent <= parent || indent < widest => return Err(Declined),
                _ => return Ok((breaks, indent)),
            }
        }
    }

    /// Takes the empty lines behind a line of a block. Returns how many they are, and whether the block is over.
    fn between_lines(&mut self, indent: usize) -> Result<(usize, bool)> {
        let bytes = self.bytes();
        let mut breaks = 0;
        loop {
            let first = spaces(bytes, self.at).min(self.at + indent);
            if byte(bytes, first) == b'\n' {
                breaks += 1;
                self.next_line(first);
            } else if first == bytes.len() && first > self.at {
                return Err(Declined);
            } else {
                return Ok((breaks, first < self.at + indent));
            }
        }
    }
}

fn push_breaks(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n('\n', count));
}

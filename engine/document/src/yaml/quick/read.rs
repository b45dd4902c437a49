//! One document, line by line: which collection a line belongs to, and what it adds to it.

use super::{
    super::{YamlDocument, value},
    lex::{Declined, Result, begins_plain, byte, find_line_end, is_marker, is_space_or_end, spaces},
    quoted,
};
use crate::{
    assemble::{Assembler, Progress},
    guess::{YamlKey, YamlValue},
    options::Options,
};

/// What stands before the next marker.
pub(super) struct Read {
    /// Nothing if there are only comments, and no marker before them.
    pub(super) document: Option<YamlDocument>,
    pub(super) end: usize,
    /// The line that the end is on.
    pub(super) end_line: usize,
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// The beginning of the next line, between lines.
    pub(super) at: usize,
    line: usize,
    pub(super) assembler: Assembler,
    depth_limit: usize,
    /// The block collections that are open.
    frames: Vec<Frame>,
    /// Whether the innermost one has had the `:` or the `-` of a value, and not the value.
    awaits: bool,
    /// The line of the first value.
    first_line: Option<usize>,
    /// Where scalars are decoded that do not stand in the text as they are.
    pub(super) decoded: String,
}

/// A block mapping or sequence that has begun and not ended.
#[derive(Clone, Copy)]
struct Frame {
    /// The column of its keys, or of its dashes.
    indent: usize,
    is_mapping: bool,
}

/// Bytes of a key, of which the general parser takes no more than about a thousand characters.
pub(super) const MAX_KEY: usize = 1000;

/// Reads the document that begins at a position, which is on this line: the beginning of the text, or a marker.
pub(super) fn read(text: &str, start: usize, line: usize, options: &Options) -> Result<Read> {
    let mut reader = Reader {
        text,
        at: start,
        line,
        assembler: Assembler::new(options),
        depth_limit: options.limits.depth,
        frames: Vec::new(),
        awaits: false,
        first_line: None,
        decoded: String::new(),
    };
    let found = reader.document();
    let Reader { at: end, line: end_line, assembler, .. } = reader;
    match found {
        Ok(Some(line)) => {
            let document = Some(YamlDocument { line, document: value::finish(assembler, options) });
            Ok(Read { document, end, end_line })
        }
        Ok(None) => {
            assembler.abandon();
            Ok(Read { document: None, end, end_line })
        }
        Err(Declined) => {
            assembler.abandon();
            Err(Declined)
        }
    }
}

impl<'t> Reader<'t> {
    pub(super) fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// The column of the innermost block collection.
    pub(super) fn indent(&self) -> Option<usize> {
        self.frames.last().map(|frame| frame.indent)
    }

    /// Takes a document, and returns its line.
    fn document(&mut self) -> Result<Option<usize>> {
        let marker_line = is_marker(self.bytes(), self.at).then_some(self.line);
        if marker_line.is_some() {
            self.end_of_line(self.at + 3)?;
        }
        self.lines()?;
        while !self.frames.is_empty() {
            self.end_block();
        }
        if self.first_line.is_none() && marker_line.is_some() {
            self.assembler.null();
        }
        Ok(self.first_line.or(marker_line))
    }

    /// Takes every line up to the next marker.
    fn lines(&mut self) -> Result<()> {
        let bytes = self.bytes();
        loop {
            let first = spaces(bytes, self.at);
            match byte(bytes, first) {
                b'\n' => self.next_line(first),
                b'#' => self.next_line(find_line_end(bytes, first)),
                0 => {
                    self.at = first;
                    return Ok(());
                }
                _ if first > self.at => self.content(first)?,
                b'-' if is_marker(bytes, first) => return Ok(()),
                // Directives and ends of documents, perhaps.
                b'%' | b'.' => return Err(Declined),
                _ => self.content(first)?,
            }
        }
    }

    /// Takes a line that has something on it.
    fn content(&mut self, first: usize) -> Result<()> {
        let bytes = self.bytes();
        let indent = first - self.at;
        let is_dash = bytes[first] == b'-' && is_space_or_end(bytes, first + 1);
        loop {
            let Some(top) = self.frames.last().copied() else {
                // The outermost value, of which there is one.
                return if self.first_line.is_none() { self.node(first) } else { Err(Declined) };
            };
            if top.indent < indent {
                // More of a scalar, perhaps.
                if !self.awaits {
                    return Err(Declined);
                }
                self.awaits = false;
                return self.node(first);
            }
            if top.indent == indent {
                match (top.is_mapping, is_dash) {
                    (true, false) => {
                        self.skip_value();
                        return self.entry(first);
                    }
                    (false, true) => {
                        self.skip_value();
                        return self.element(first, indent);
                    }
                    // The sequence of a key may begin where the key does.
                    (true, true) if self.awaits => {
                        self.awaits = false;
                        self.begin_block(indent, false)?;
                        return self.element(first, indent);
                    }
                    (true, true) => return Err(Declined),
                    (false, false) => {
                        let parent = self.frames.iter().rev().nth(1);
                        if parent.is_none_or(|parent| parent.indent < indent) {
                            return Err(Declined);
                        }
                    }
                }
            }
            self.end_block();
        }
    }

    /// Takes what is behind a dash, which is in a column.
    fn element(&mut self, dash: usize, column: usize) -> Result<()> {
        let bytes = self.bytes();
        let (mut dash, mut column) = (dash, column);
        loop {
            let first = spaces(bytes, dash + 1);
            match byte(bytes, first) {
                b'\n' | b'#' | 0 => {
                    self.awaits = true;
                    return self.end_of_line(dash + 1);
                }
                b'|' | b'>' => return self.literal(first),
                b'-' if is_space_or_end(bytes, first + 1) => {
                    column += first - dash;
                    dash = first;
                    self.begin_block(column, false)?;
                }
                _ => return self.inline_node(first, column + (first - dash)),
            }
        }
    }

    /// Takes the value that begins on a line of its own.
    fn node(&mut self, first: usize) -> Result<()> {
        let bytes = self.bytes();
        let column = first - self.at;
        if bytes[first] == b'-' && is_space_or_end(bytes, first + 1) {
            self.begin_block(column, false)?;
            return self.element(first, column);
        }
        self.inline_node(first, column)
    }

    /// Takes a value that is no sequence with dashes: a mapping if it begins with a key.
    fn inline_node(&mut self, first: usize, column: usize) -> Result<()> {
        let bytes = self.bytes();
        if let Some((word, length)) = self.assembler.guess_yaml_within().key.check::<YamlKey>(&bytes[first..]) {
            self.begin_block(column, true)?;
            self.assembler.push_key(word);
            return self.value(first + length - 1);
        }
        match bytes[first] {
            b'"' | b'\'' => {
                let quoted = quoted::find_end(bytes, first)?;
                let after = quoted.end + 1;
                if byte(bytes, after) == b':' {
                    self.begin_block(column, true)?;
                    self.quoted_key(quoted)?;
                    return self.after_key(first, after);
                }
                self.within_block()?;
                self.quoted_value(quoted)?;
                self.end_of_line(after)
            }
            b'[' | b'{' => {
                self.first_line.get_or_insert(self.line);
                let after = self.flow(first)?;
                self.end_of_line(after)
            }
            other if begins_plain(other) => {
                let plain = self.plain(first)?;
                if plain.is_key {
                    self.begin_block(column, true)?;
                    self.block_key(first, plain.end)?;
                    return self.after_key(first, plain.end);
                }
                self.within_block()?;
                self.plain_value(first, plain.end)?;
                self.end_of_line(plain.end)
            }
            _ => Err(Declined),
        }
    }

    /// Takes a key and what is behind it on its line.
    fn entry(&mut self, first: usize) -> Result<()> {
        let bytes = self.bytes();
        if let Some((word, length)) = self.assembler.guess_yaml().key.check::<YamlKey>(&bytes[first..]) {
            self.assembler.push_key(word);
            return self.value(first + length - 1);
        }
        match bytes[first] {
            b'"' | b'\'' => {
                let quoted = quoted::find_end(bytes, first)?;
                self.quoted_key(quoted)?;
                self.after_key(first, quoted.end + 1)
            }
            other if begins_plain(other) => {
                let plain = self.plain(first)?;
                if !plain.is_key {
                    return Err(Declined);
                }
                self.block_key(first, plain.end)?;
                self.after_key(first, plain.end)
            }
            _ => Err(Declined),
        }
    }

    /// Takes what is behind a key, from its colon on.
    fn after_key(&mut self, key: usize, colon: usize) -> Result<()> {
        let bytes = self.bytes();
        if byte(bytes, colon) != b':' || !is_space_or_end(bytes, colon + 1) || colon - key > MAX_KEY {
            return Err(Declined);
        }
        self.value(colon + 1)
    }

    /// Takes what is behind the colon of a key.
    fn value(&mut self, start: usize) -> Result<()> {
        let bytes = self.bytes();
        let first = spaces(bytes, start);
        if let Some((word, length)) = self.assembler.guess_yaml().value.check::<YamlValue>(&bytes[first..]) {
            self.assembler.word(word);
            self.next_line(first + length - 1);
            return Ok(());
        }
        match byte(bytes, first) {
            b'\n' | b'#' | 0 => {
                self.awaits = true;
                self.end_of_line(start)
            }
            b'"' | b'\'' => {
                let quoted = quoted::find_end(bytes, first)?;
                self.quoted_value(quoted)?;
                self.guess_again(first, quoted.end + 1);
                self.end_of_line(quoted.end + 1)
            }
            b'[' | b'{' => {
                let after = self.flow(first)?;
                self.end_of_line(after)
            }
            b'|' | b'>' => self.literal(first),
            b'-' if is_space_or_end(bytes, first + 1) => Err(Declined),
            other if begins_plain(other) => {
                let plain = self.plain(first)?;
                if plain.is_key {
                    return Err(Declined);
                }
                self.plain_value(first, plain.end)?;
                self.guess_again(first, plain.end);
                self.end_of_line(plain.end)
            }
            _ => Err(Declined),
        }
    }

    /// Takes the rest of a line, on which there is nothing more than a comment.
    pub(super) fn end_of_line(&mut self, start: usize) -> Result<()> {
        let bytes = self.bytes();
        let at = spaces(bytes, start);
        match byte(bytes, at) {
            b'\n' => self.next_line(at),
            0 => self.at = at,
            b'#' if at > start => self.next_line(find_line_end(bytes, at)),
            _ => return Err(Declined),
        }
        Ok(())
    }

    /// Goes on behind the end of a line.
    pub(super) fn next_line(&mut self, end: usize) {
        let has_break = end < self.text.len();
        self.at = end + usize::from(has_break);
        self.line += usize::from(has_break);
    }

    pub(super) fn begin(&mut self, is_mapping: bool) -> Result<()> {
        if self.assembler.depth() >= self.depth_limit {
            return Err(Declined);
        }
        self.assembler.begin(is_mapping);
        Ok(())
    }

    pub(super) fn end(&mut self) {
        self.assembler.end(Progress::UNKNOWN);
    }

    fn begin_block(&mut self, indent: usize, is_mapping: bool) -> Result<()> {
        self.first_line.get_or_insert(self.line);
        self.begin(is_mapping)?;
        self.frames.push(Frame { indent, is_mapping });
        Ok(())
    }

    fn end_block(&mut self) {
        self.skip_value();
        self.frames.pop();
        self.end();
    }

    /// Nothing is a value too.
    fn skip_value(&mut self) {
        if self.awaits {
            self.awaits = false;
            self.assembler.null();
        }
    }

    /// A scalar that is the whole document has a line of its own kind.
    fn within_block(&self) -> Result<()> {
        if self.frames.is_empty() { Err(Declined) } else { Ok(()) }
    }
}

//! The events of a YAML parser into documents.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::{
    YamlDocument,
    aliases::{Aliases, Anchor, Container},
    key::key_text,
    position,
    resolve::{NotA, Scalar, Written, resolve},
    value::{self, NotFinite},
};
use crate::{
    assemble::{Assembler, Progress},
    error::{Error, Position},
    options::Options,
};

/// A document that is being read.
struct Loader<'o> {
    text: &'o str,
    options: &'o Options<'o>,
    assembler: Assembler,
    frames: Vec<Frame>,
    aliases: Aliases,
    /// The line of the first value.
    line: Option<usize>,
}

/// A mapping or sequence that has begun and not ended.
struct Frame {
    awaits: Awaits,
    anchor: usize,
    /// Values before it.
    values_before: usize,
    /// The most containers within each other in it.
    height: usize,
    at: Position,
}

/// What comes next in a container.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Element,
    Key,
    Value,
    /// The value of a merge key.
    Merge,
}

const TAGS: &str = "tag:yaml.org,2002:";

/// Reads every document of a YAML text.
pub(super) fn load(text: &str, options: &Options) -> Result<Vec<YamlDocument>, Error> {
    let depth = options.limits.depth;
    let mut parser_options = granit_parser::options! { flow_nesting_limit: depth, block_nesting_limit: depth };
    parser_options.set_emit_comments(false);
    let mut documents = Vec::new();
    let mut loader = None;
    for event in Parser::new_from_str_with_options(text, parser_options) {
        let (event, span) = event.map_err(|error| refusal(&error, depth))?;
        match event {
            Event::DocumentStart(..) => loader = Some(Loader::new(text, options)),
            Event::DocumentEnd => {
                let line = span.start.line();
                documents.extend(loader.take().map(|loader: Loader| loader.finish(line)));
            }
            event => {
                if let Some(loader) = &mut loader {
                    loader.event(event, &span)?;
                }
            }
        }
    }
    Ok(documents)
}

/// What the parser refuses.
fn refusal(error: &ScanError, limit: usize) -> Error {
    let at = position(error.marker());
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => Error::TooDeep { at, limit },
        problem => Error::Yaml { at, problem: problem.to_string() },
    }
}

impl<'o> Loader<'o> {
    fn new(text: &'o str, options: &'o Options<'o>) -> Loader<'o> {
        Loader {
            text,
            options,
            assembler: Assembler::new(options),
            frames: Vec::new(),
            aliases: Aliases::new(),
            line: None,
        }
    }

    fn event(&mut self, event: Event, span: &Span) -> Result<(), Error> {
        let at = position(&span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().map(tag_name);
                let is_plain = style == ScalarStyle::Plain;
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let text = if is_block { self.without_added_newline(&text, span) } else { &text };
                self.scalar(Written { text, is_plain, tag: tag.as_deref() }, anchor, at)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(false, anchor, at),
            Event::MappingStart(_, anchor, _) => self.begin(true, anchor, at),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, at),
            // The stream and what only matters to those who write YAML back.
            _ => Ok(()),
        }
    }

    /// A block without the newline that the parser adds when the file ends in the middle of a line. Go adds none.
    fn without_added_newline<'t>(&self, block: &'t str, span: &Span) -> &'t str {
        // Only at the end: the last line may be long, and a text may have many blocks.
        if span.end.byte_offset() != Some(self.text.len()) {
            return block;
        }
        let last_line = self.text.rsplit(['\n', '\r']).next().unwrap_or_default();
        let has_added = !last_line.trim_matches(' ').is_empty();
        if has_added { block.strip_suffix('\n').unwrap_or(block) } else { block }
    }

    fn scalar(&mut self, written: Written, anchor: usize, at: Position) -> Result<(), Error> {
        self.line.get_or_insert(at.line);
        if let Some(frame) = self.frames.last_mut()
            && frame.awaits == Awaits::Key
            && written.is_merge()
        {
            frame.awaits = Awaits::Merge;
            return Ok(());
        }
        self.aliases.count_value();
        let scalar = resolve(written).map_err(|NotA(tag)| Error::Tag { at, tag })?;
        self.add(&scalar, at)?;
        if anchor != 0 {
            self.aliases.define(anchor, Anchor::Scalar(scalar.into_owned()));
        }
        Ok(())
    }

    /// Adds a scalar as the key or the value that comes next.
    fn add(&mut self, scalar: &Scalar, at: Position) -> Result<(), Error> {
        if let Some(frame) = self.frames.last_mut()
            && frame.awaits == Awaits::Key
        {
            let key = key_text(scalar).ok_or(Error::Key { at })?;
            let word = self.assembler.key_word(&key);
            self.assembler.push_key(word);
            frame.awaits = Awaits::Value;
            return Ok(());
        }
        value::add(&mut self.assembler, scalar).map_err(|NotFinite| Error::NumberOutOfRange { at })?;
        self.complete(0, at)
    }

    fn begin(&mut self, is_mapping: bool, anchor: usize, at: Position) -> Result<(), Error> {
        self.line.get_or_insert(at.line);
        if self.frames.last().is_some_and(|frame| frame.awaits == Awaits::Key) {
            return Err(Error::Key { at });
        }
        self.check_depth(1, at)?;
        self.aliases.define(anchor, Anchor::Open);
        let awaits = if is_mapping { Awaits::Key } else { Awaits::Element };
        let values_before = self.aliases.values();
        self.frames.push(Frame { awaits, anchor, values_before, height: 1, at });
        self.aliases.count_value();
        self.assembler.begin(is_mapping);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let Some(Frame { anchor, values_before, height, at, .. }) = self.frames.pop() else { return Ok(()) };
        self.assembler.end(Progress::UNKNOWN);
        let word = self.assembler.last();
        let values = self.aliases.values() - values_before;
        self.aliases.define(anchor, Anchor::Container(Container { word, values, height }));
        self.complete(height, at)
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Error> {
        self.line.get_or_insert(at.line);
        match self.aliases.get(anchor).cloned() {
            Some(Anchor::Scalar(scalar)) => {
                let is_little = self.aliases.count_alias(1);
                self.add(&scalar, at)?;
                if is_little { Ok(()) } else { Err(Error::Expansion { at }) }
            }
            Some(Anchor::Container(Container { word, values, height })) => {
                let awaits = self.frames.last().map(|frame| frame.awaits);
                if awaits == Some(Awaits::Key) {
                    return Err(Error::Key { at });
                }
                // Go merges a list of mappings only where it is written.
                if awaits == Some(Awaits::Merge) && self.assembler.elements(word).is_some() {
                    return Err(Error::Merge { at });
                }
                self.check_depth(height, at)?;
                if !self.aliases.count_alias(values) {
                    return Err(Error::Expansion { at });
                }
                self.assembler.word(word);
                self.complete(height, at)
            }
            Some(Anchor::Open) => Err(Error::AliasWithin { at }),
            // The parser refuses an alias without an anchor, so that this is an anchor that it never reported.
            None => Err(Error::Yaml { at, problem: "alias stands for nothing".to_owned() }),
        }
    }

    /// Goes on in the container around a value that is complete.
    fn complete(&mut self, height: usize, at: Position) -> Result<(), Error> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        frame.height = frame.height.max(height + 1);
        match frame.awaits {
            Awaits::Element => {}
            Awaits::Key | Awaits::Value => frame.awaits = Awaits::Key,
            Awaits::Merge => {
                frame.awaits = Awaits::Key;
                self.merge(at)?;
            }
        }
        Ok(())
    }

    /// Turns the value that was added last, a mapping or a sequence of mappings, into entries of the mapping around it.
    /// The last one wins, so the mappings come backwards: earlier ones take precedence.
    fn merge(&mut self, at: Position) -> Result<(), Error> {
        let merged = self.assembler.take_last();
        let mappings = self.assembler.elements(merged).unwrap_or_else(|| vec![merged]);
        for mapping in mappings.into_iter().rev() {
            let entries = self.assembler.merge(mapping).ok_or(Error::Merge { at })?;
            if !self.aliases.count_merge(entries) {
                return Err(Error::Expansion { at });
            }
        }
        Ok(())
    }

    fn check_depth(&self, height: usize, at: Position) -> Result<(), Error> {
        let limit = self.options.limits.depth;
        if self.assembler.depth() + height > limit { Err(Error::TooDeep { at, limit }) } else { Ok(()) }
    }

    fn finish(self, end_line: usize) -> YamlDocument {
        let line = self.line.unwrap_or(end_line);
        YamlDocument { line, document: value::finish(self.assembler, self.options) }
    }
}

fn tag_name(tag: &Tag) -> Cow<'_, str> {
    tag.suffix_in_namespace(TAGS).unwrap_or_default()
}

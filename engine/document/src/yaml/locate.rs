//! Where a field stands in a text. Read again from the start: only who reports a mistake asks.

use granit_parser::{Event, Parser};

use super::position;
use crate::error::Position;

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'s> {
    /// The value of this key.
    Field(&'s str),
    /// The element at this place.
    Index(usize),
}

/// The place of a key or an element of a document in a YAML or JSON text. Of a way that ends early, the last place that is there; without
/// any step, the place of the document. Nothing if the text has no such document.
pub fn locate(text: &str, document: usize, path: &[Step<'_>]) -> Option<Position> {
    let mut search = Search { path, found: None, matched: 0, frames: Vec::new() };
    let mut number = 0;
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        match event {
            Event::DocumentEnd if number == document => break,
            Event::DocumentEnd => number += 1,
            _ if number == document && search.event(&event, position(&span.start)) => break,
            _ => {}
        }
    }
    search.found
}

struct Search<'s> {
    path: &'s [Step<'s>],
    found: Option<Position>,
    /// How many steps have been found.
    matched: usize,
    /// The containers that are open at this place.
    frames: Vec<Frame>,
}

struct Frame {
    is_mapping: bool,
    /// How many keys and values it has had.
    count: usize,
    /// Whether it is the container that the next step is looked for in.
    is_on_way: bool,
    /// Whether the next value belongs to the key that was looked for.
    awaits_value: bool,
}

impl Search<'_> {
    /// Takes an event. True when nothing better can come.
    fn event(&mut self, event: &Event, at: Position) -> bool {
        match event {
            Event::Scalar(text, ..) => self.value(Some(text), at, None),
            Event::Alias(_) => self.value(None, at, None),
            Event::SequenceStart(..) => self.value(None, at, Some(false)),
            Event::MappingStart(..) => self.value(None, at, Some(true)),
            Event::SequenceEnd | Event::MappingEnd => {
                // A container on the way that ends did not have the next step.
                self.frames.pop().is_some_and(|frame| frame.is_on_way)
            }
            _ => false,
        }
    }

    fn value(&mut self, text: Option<&str>, at: Position, container: Option<bool>) -> bool {
        let mut is_on_way = false;
        match self.frames.last_mut() {
            None => {
                self.found = Some(at);
                is_on_way = true;
            }
            Some(frame) => {
                let number = frame.count;
                frame.count += 1;
                let step = self.path.get(self.matched).filter(|_| frame.is_on_way);
                if frame.is_mapping && number % 2 == 0 {
                    // A key. If it is the next step, its value is on the way.
                    if let (Some(Step::Field(name)), Some(text)) = (step, text)
                        && *name == text
                    {
                        self.found = Some(at);
                        self.matched += 1;
                        // Its value takes the place of this frame on the way.
                        (frame.is_on_way, frame.awaits_value) = (false, true);
                    }
                } else if frame.awaits_value {
                    frame.awaits_value = false;
                    is_on_way = true;
                } else if let Some(Step::Index(index)) = step
                    && *index == number
                {
                    self.found = Some(at);
                    self.matched += 1;
                    frame.is_on_way = false;
                    is_on_way = true;
                }
            }
        }
        if is_on_way && (self.matched == self.path.len() || container.is_none()) {
            return true;
        }
        if let Some(is_mapping) = container {
            self.frames.push(Frame { is_mapping, count: 0, is_on_way, awaits_value: false });
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "---\na: 1\n---\nspec:\n  match: {gvk: [{kind: Pod}, {kind: Service}]}\n  rule: |\n    x\n  'q': 2\n";

    #[track_caller]
    fn check(document: usize, path: &[Step<'_>], expected: Option<(usize, usize)>) {
        assert_eq!(locate(TEXT, document, path).map(|at| (at.line, at.column)), expected);
    }

    #[test]
    fn fields_and_elements_are_found() {
        use Step::{Field, Index};
        check(0, &[Field("a")], Some((2, 1)));
        check(1, &[], Some((4, 1)));
        check(1, &[Field("spec"), Field("rule")], Some((6, 3)));
        check(1, &[Field("spec"), Field("q")], Some((8, 3)));
        check(1, &[Field("spec"), Field("match"), Field("gvk"), Index(1), Field("kind")], Some((5, 31)));
        check(1, &[Field("spec"), Field("match"), Field("gvk"), Index(1)], Some((5, 30)));
    }

    #[test]
    fn a_way_that_ends_early_leads_as_far_as_it_goes() {
        use Step::{Field, Index};
        check(1, &[Field("spec"), Field("message")], Some((4, 1)));
        check(1, &[Field("spec"), Field("match"), Field("gvk"), Index(7)], Some((5, 11)));
        check(1, &[Field("spec"), Field("rule"), Field("deeper")], Some((6, 3)));
        check(2, &[], None);
    }
}

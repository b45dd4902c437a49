//! Values of one document into another, without what is to be dropped and with what is to be masked.

use crate::{
    assemble::{Assembler, Progress},
    document::Document,
    filter::Filter,
    node::{Elements, Entries, Node, View},
    options::Options,
};

/// A container whose contents are being copied.
enum Open<'d> {
    Array(Elements<'d>),
    Object(Entries<'d>),
}

impl Document {
    /// A copy of a value, without what is to be dropped and with what is to be masked. Limits are for input: what is copied
    /// was within them.
    pub fn copy_of(value: Node, options: &Options) -> Document {
        let mut assembler = Assembler::new(options);
        copy(value, &mut Filter::new(options.drop, options.mask), &mut assembler);
        assembler.finish()
    }
}

/// Adds a value with all that is in it, as far as the filter lets it through, and returns how many containers were open
/// at most.
pub(crate) fn copy(value: Node, filter: &mut Filter, assembler: &mut Assembler) -> usize {
    let mut open = Vec::new();
    let mut deepest = 0;
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take() {
            open.extend(copy_value(value, filter, assembler));
            deepest = deepest.max(assembler.depth());
        }
        let is_ended = match open.last_mut() {
            None => return deepest,
            Some(Open::Array(elements)) => match elements.next() {
                None => true,
                element => {
                    next = element.filter(|_| filter.keeps_element());
                    false
                }
            },
            Some(Open::Object(entries)) => match entries.next() {
                None => true,
                Some((key, value)) => {
                    if filter.keeps_key(key) {
                        let word = assembler.key_word(key);
                        assembler.push_key(word);
                        next = Some(value);
                    }
                    false
                }
            },
        };
        if is_ended {
            open.pop();
            assembler.end(Progress::UNKNOWN);
            filter.end();
        }
    }
}

/// Adds a scalar, or begins a container and returns its contents.
fn copy_value<'d>(value: Node<'d>, filter: &mut Filter, assembler: &mut Assembler) -> Option<Open<'d>> {
    let open = match value.view() {
        View::Array(array) => Open::Array(array.iter()),
        View::Object(object) => Open::Object(object.iter()),
        _ if filter.is_masked() && !value.is_null() => {
            assembler.masked();
            return None;
        }
        scalar => {
            match scalar {
                View::Bool(value) => assembler.bool(value),
                View::Int(value) => assembler.int(value),
                View::Float(value) => assembler.float(value),
                View::Str(value) => {
                    assembler.string(value);
                }
                _ => assembler.null(),
            }
            return None;
        }
    };
    assembler.begin(matches!(open, Open::Object(_)));
    filter.begin();
    Some(open)
}

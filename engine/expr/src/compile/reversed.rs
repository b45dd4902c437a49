//! Operands in the wrong order. `"nginx" startsWith container.image` asks whether the text of the rule begins with what is judged,
//! which is true of next to nothing and seldom meant.

use super::{Compiler, Typed, operators::name_of};
use crate::ast::{Binary, Id, Kind as Syntax};

/// Signs between the parts of a text that stands for a list.
const SEPARATORS: [char; 4] = [',', ';', '|', ' '];

impl<'s> Compiler<'s> {
    /// Warns of a text of the expression that is asked for a part that is read from somewhere.
    pub(super) fn warn_of_reversal(
        &mut self,
        at: u32,
        operator: Binary,
        left_id: Id,
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let is_of_text = matches!(operator, Binary::StartsWith | Binary::EndsWith | Binary::Contains | Binary::Matches);
        let is_reversed = is_of_text && self.is_written(left_id) && !self.is_written(right_id);
        if self.strict || !is_reversed || self.is_fixed(&right.op) {
            return;
        }
        let (whole, part, sign) = (self.shown(left_id), self.shown(right_id), name_of(operator));
        let not = if self.is_negated(at) { "not " } else { "" };
        let listed = match self.tree.kind(left_id) {
            Syntax::Text(text) if operator == Binary::Contains => parts_of(text),
            _ => None,
        };
        let (besides, ours) = match listed {
            Some(parts) => ("even in the middle of a word", format!("{part} {not}in {parts:?}")),
            None => ("and not the other way round", format!("{part} {not}{sign} {whole}")),
        };
        self.warn(at, format!("this looks for `{part}` in `{whole}`, {besides}: write `{ours}`"));
    }

    /// Whether something is a text of the expression, or the element of a list of nothing else.
    fn is_written(&self, id: Id) -> bool {
        match self.tree.kind(id) {
            Syntax::Text(_) => true,
            Syntax::Pointer("") => self.scopes.last().is_some_and(|scope| scope.has_texts),
            _ => false,
        }
    }
}

/// The words of a text such as `"dev,stage,prod"`, of which one is looked for.
fn parts_of(text: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = text.split(SEPARATORS).filter(|part| !part.is_empty()).collect();
    (parts.len() > 1).then_some(parts)
}

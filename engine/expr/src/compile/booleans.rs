//! Fields that are true or false, and may be missing. What is missing is neither, and Kubernetes takes it for one of them: `x == false` lets
//! pass whoever leaves `x` out.

use super::{Compiler, Typed, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Warns of a comparison with `true` or `false` whose answer is another one for what is missing than for what Kubernetes takes it for.
    pub(super) fn warn_of_truth_default(
        &mut self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let (id, field, truth) = match (operator, self.tree.kind(left_id), self.tree.kind(right_id)) {
            (Binary::Equal | Binary::NotEqual, _, Syntax::Bool(truth)) => (left_id, left, *truth),
            (Binary::Equal | Binary::NotEqual, Syntax::Bool(truth), _) => (right_id, right, *truth),
            _ => return,
        };
        let Some(default) = self.truth_default(id, field) else { return };
        // What is missing is not equal to anything, as is what counts as the other one.
        if default.unwrap_or(false) != truth || self.is_read_twice(id) {
            return;
        }
        let text = self.shown(id);
        let taken = match default {
            Some(default) => format!("Kubernetes takes it for {default} then, which this rule does not"),
            None => format!("what is missing is not {truth}"),
        };
        let sign = name_of(operator);
        let advice = match operator {
            Binary::Equal => {
                let counted = self.within(&[id], format!("{text} != {}", !truth));
                format!(
                    "`{counted}` to take it for {truth}, or `{text} != nil && {text} {sign} {truth}` to leave out what has none"
                )
            }
            _ => format!(
                "`{text} == {}` to take it for {truth}, or `{text} == nil || {text} {sign} {truth}` to ask for what has none too",
                !truth
            ),
        };
        self.warn(field.op.at, format!("`{text}` may be missing, and {taken}: write {advice}"));
    }

    /// Warns of a condition that is a field alone, which is false where it is missing, although Kubernetes takes it for true.
    pub(super) fn warn_of_truth(&mut self, id: Id, field: &Typed<'s>, is_there: bool) {
        let id = match self.tree.kind(id) {
            Syntax::Predicate(body) => *body,
            _ => id,
        };
        if self.truth_default(id, field) != Some(Some(true)) || self.is_read_twice(id) {
            return;
        }
        let text = self.shown(id);
        let advice = match is_there {
            true => {
                let counted = self.within(&[id], format!("{text} != false"));
                format!("`{counted}` to take it for true, or `{text} != nil && {text}` to leave out what has none")
            }
            false => format!("`{text} == false` to take it for true"),
        };
        let message = format!(
            "`{text}` may be missing, and Kubernetes takes it for true then, which this rule does not: write {advice}"
        );
        self.warn(field.op.at, message);
    }

    /// What a field that is true or false counts as where it is missing, if it may be, and nobody asks. `Some(None)`: it depends on other fields.
    fn truth_default(&self, id: Id, field: &Typed<'s>) -> Option<Option<bool>> {
        let is_doubtful = field.known.may_be_nil && field.known.kind == Type::BOOL;
        let is_read = matches!(self.tree.kind(id), Syntax::Member { .. });
        if self.strict || !is_doubtful || !is_read || self.is_asked(id) || !self.is_of_all(id) || self.is_of_status(id)
        {
            return None;
        }
        self.last_name(id).and_then(|name| self.schema.truth_default_of(name))
    }
    /// Whether something is read more than once: whoever does that knows what to make of it.
    pub(super) fn is_read_twice(&self, id: Id) -> bool {
        let (text, name) = (self.shown(id), self.last_name(id));
        let ids = (0..self.tree.nodes.len() as u32).map(Id);
        let is_same = |other: &Id| {
            matches!(self.tree.kind(*other), Syntax::Member { .. })
                && self.last_name(*other) == name
                && self.shown(*other) == text
        };
        ids.filter(is_same).take(2).count() == 2
    }
}

//! Texts of which an empty one is the same as none. Whoever asks for one asks for the other: `x == ""` is `x == nil`.

use super::{
    Compiler, Typed,
    form::{Form, Member},
    known::Known,
};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    program::{Constant, Kind, Missing, Op},
    types::Type,
};

impl<'s> Compiler<'s> {
    /// The sides of a comparison, with `nil` in the place of an empty text of the expression where the other side takes one for the other.
    pub(super) fn without_empty(&self, operator: Binary, left: Typed<'s>, right: Typed<'s>) -> (Typed<'s>, Typed<'s>) {
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        if is_equality && takes_for_none(&left.op) && is_empty(&right.op) {
            return (left, none(&right.op));
        }
        if is_equality && takes_for_none(&right.op) && is_empty(&left.op) {
            return (none(&left.op), right);
        }
        match right.op.kind {
            Kind::Array(elements) if operator == Binary::In && takes_for_none(&left.op) => {
                let replaced = |op: Op| if is_empty(&op) { none(&op).op } else { op };
                let elements: Vec<Op> = Vec::from(elements).into_iter().map(replaced).collect();
                let op = Op { kind: Kind::Array(elements.into()), at: right.op.at };
                (left, Typed { op, known: right.known })
            }
            kind => (left, Typed { op: Op { kind, at: right.op.at }, known: right.known }),
        }
    }

    /// Whether an empty text is none in a field, as far as the way to it tells.
    pub(super) fn is_none_if_empty(&self, id: Id) -> bool {
        let Syntax::Member { base, property, .. } = self.tree.kind(id) else { return false };
        let Syntax::Text(name) = self.tree.kind(*property) else { return false };
        let forms = self.form_of(*base);
        let forms = forms.as_ref().map(Form::alternatives).unwrap_or_default();
        let takes =
            |form: &Form<'s>| matches!(form.member(self.schema, name), Member::Read { empty_is_none: true, .. });
        !self.strict && !forms.is_empty() && forms.iter().all(takes)
    }

    /// Whether a literal is what a field is that has nothing in it.
    pub(super) fn is_nothing_of(&self, field: Id, literal: Id) -> bool {
        match self.tree.kind(literal) {
            Syntax::Nil => true,
            Syntax::Text(text) => text.as_ref().is_empty() && self.is_none_if_empty(field),
            _ => false,
        }
    }
}

/// Whether what is read is nil where it is an empty text.
fn takes_for_none(op: &Op) -> bool {
    matches!(op.kind, Kind::Path { missing: Missing::NilOrEmpty, .. })
}

fn is_empty(op: &Op) -> bool {
    matches!(&op.kind, Kind::Constant(Constant::Text(text)) if text.is_empty())
}

fn none<'s>(op: &Op) -> Typed<'s> {
    Typed { op: Op { kind: Kind::Constant(Constant::Nil), at: op.at }, known: Known::of(Type::NIL) }
}

//! Values that the host does not show. Whatever would be made of one, it would be made of the text that stands in its place, and the
//! answer would be wrong without anybody noticing: only whether it is there can be asked.

use super::{Compiler, Typed, form::Form};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    builtins::{Builtin, Gives},
    error::Error,
    program::{Constant, Kind},
    schema::{Schema, Shape},
    types::Type,
};

/// How deep a value is looked into. What is hidden deeper belongs to an object that nobody compares as a whole.
const MAX_DEPTH: usize = 3;

impl<'s> Compiler<'s> {
    /// Refuses what is hidden, or has something in it that is.
    pub(super) fn refuse_hidden(&self, id: Id, typed: &Typed<'s>) -> Result<(), Error> {
        match self.hidden(typed) {
            Some(reason) => Err(self.unseen(id, typed, reason)),
            None => Ok(()),
        }
    }

    /// Refuses to compare what is hidden with anything but nil. The keys of a map are not hidden.
    pub(super) fn refuse_hidden_operands(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let is_nil = |typed: &Typed<'s>| matches!(typed.op.kind, Kind::Constant(Constant::Nil));
        if matches!(operator, Binary::Equal | Binary::NotEqual) && (is_nil(left) || is_nil(right)) {
            return Ok(());
        }
        self.refuse_hidden(left_id, left)?;
        if operator == Binary::In && right.known.kind.is_map() { Ok(()) } else { self.refuse_hidden(right_id, right) }
    }

    /// Refuses what is hidden as an argument, unless the function only hands it on, or asks for keys and their number.
    pub(super) fn refuse_hidden_arguments(
        &self,
        builtin: &Builtin,
        ids: &[Id],
        arguments: &[Typed<'s>],
    ) -> Result<(), Error> {
        for (id, typed) in ids.iter().zip(arguments) {
            let is_text = typed.known.kind == Type::TEXT;
            let is_fine = builtin.gives != Gives::Type || matches!(builtin.name, "keys" | "len") && !is_text;
            if !is_fine {
                self.refuse_hidden(*id, typed)?;
            }
        }
        Ok(())
    }

    fn hidden(&self, typed: &Typed<'s>) -> Option<&'s str> {
        if self.strict { None } else { in_form(self.schema, &typed.known.form, MAX_DEPTH) }
    }

    fn unseen(&self, id: Id, typed: &Typed<'s>, reason: &str) -> Error {
        let id = match self.tree.kind(id) {
            Syntax::Binary(Binary::Coalesce, first, _) => *first,
            _ => id,
        };
        let asked = match self.tree.kind(id) {
            Syntax::Member { base, property, .. } if typed.known.kind == Type::TEXT => {
                format!("`{} in {}`", self.shown(*property), self.shown(*base))
            }
            Syntax::Member { .. } if typed.known.kind == Type::MAP => format!("`\"key\" in {}`", self.shown(id)),
            _ => "with `\"key\" in …` or `keys(…)`".to_owned(),
        };
        self.error(self.at(id), format!("{reason}: ask which keys there are, {asked}"))
    }
}

fn in_form<'s>(schema: &'s Schema, form: &Form<'s>, depth: usize) -> Option<&'s str> {
    let depth = depth.checked_sub(1)?;
    form.alternatives().iter().find_map(|form| match form {
        Form::Shaped(shape) => in_shape(schema, shape, depth),
        Form::List(inner) | Form::Map(inner) => in_form(schema, inner, depth),
        Form::Record(entries) => entries.iter().find_map(|entry| in_form(schema, &entry.form, depth)),
        _ => None,
    })
}

fn in_shape<'s>(schema: &'s Schema, shape: &'s Shape, depth: usize) -> Option<&'s str> {
    match shape {
        Shape::Hidden(reason) => Some(reason),
        Shape::List { element: inner, .. } | Shape::Map { value: inner, .. } => in_shape(schema, inner, depth),
        Shape::Object(id) => {
            let depth = depth.checked_sub(1)?;
            let mut fields = schema.object(*id).fields.values();
            fields.find_map(|field| match &field.shape {
                // Only what stands right in it: an object that refers to itself has no end.
                Shape::Object(_) => None,
                shape => in_shape(schema, shape, depth.min(1)),
            })
        }
        _ => None,
    }
}

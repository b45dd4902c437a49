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

/// How deep an object is looked into. What is hidden deeper belongs to one that nobody compares as a whole.
const MAX_DEPTH: usize = 2;

/// How much of a value that was put together is looked at. It may have been put together so that there is no end to it.
const MAX_LOOKED_AT: usize = 256;

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
            let is_handed_on = builtin.gives != Gives::Type && !matches!(builtin.name, "uniq" | "sort");
            let is_fine = is_handed_on || matches!(builtin.name, "keys" | "len");
            if !is_fine || typed.known.kind == Type::TEXT {
                self.refuse_hidden(*id, typed)?;
            }
        }
        Ok(())
    }

    fn hidden(&self, typed: &Typed<'s>) -> Option<&'s str> {
        if self.strict { None } else { in_form(self.schema, &typed.known.form, &mut MAX_LOOKED_AT.clone()) }
    }

    fn unseen(&self, id: Id, typed: &Typed<'s>, reason: &str) -> Error {
        let mut id = id;
        while let Syntax::Binary(Binary::Coalesce, inner, _) | Syntax::Chain(inner) = self.tree.kind(id) {
            id = *inner;
        }
        let is_index = |property: Id| matches!(self.tree.kind(property), Syntax::Integer(_));
        let asked = match self.tree.kind(id) {
            Syntax::Member { base, property, .. } if typed.known.kind == Type::TEXT && !is_index(*property) => {
                format!("`{} in {}`", self.shown(*property), self.shown(*base))
            }
            Syntax::Member { .. } if typed.known.kind == Type::MAP => format!("`\"key\" in {}`", self.shown(id)),
            _ => "with `\"key\" in …` or `keys(…)`".to_owned(),
        };
        self.error(self.at(id), format!("{reason}: ask which keys there are, {asked}"))
    }
}

fn in_form<'s>(schema: &'s Schema, form: &Form<'s>, left: &mut usize) -> Option<&'s str> {
    *left = left.checked_sub(1)?;
    form.alternatives().iter().find_map(|form| match form {
        Form::Shaped(shape) => in_shape(schema, shape, MAX_DEPTH),
        Form::List(inner) | Form::Map(inner) => in_form(schema, inner, left),
        Form::Record(entries) => entries.iter().find_map(|entry| in_form(schema, &entry.form, left)),
        _ => None,
    })
}

fn in_shape<'s>(schema: &'s Schema, shape: &'s Shape, depth: usize) -> Option<&'s str> {
    match shape {
        Shape::Hidden(reason) => Some(reason),
        Shape::List { element: inner, .. } | Shape::Map { value: inner, .. } => in_shape(schema, inner, depth),
        Shape::OneOf(shapes) => shapes.iter().find_map(|shape| in_shape(schema, shape, depth)),
        Shape::Object(id) => {
            let depth = depth.checked_sub(1)?;
            let mut fields = schema.object(*id).fields.values();
            // An object that refers to itself has no end.
            fields.find_map(|field| in_shape(schema, &field.shape, depth.min(1)))
        }
        _ => None,
    }
}

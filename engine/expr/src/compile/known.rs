//! What is known of a value before there is one.

use std::rc::Rc;

use super::{
    form::{Form, type_of},
    guards::Found,
};
use crate::{facts::Read, schema::Shape, types::Type};

#[derive(Clone, Debug)]
pub(super) struct Known<'s> {
    /// The type, as Go's checker knows it. In rules also where Go's has forgotten it, and the form has not.
    pub(super) kind: Type,
    /// What its fields are. Rules only: in strict mode nothing is asked of it.
    pub(super) form: Form<'s>,
    pub(super) may_be_nil: bool,
    /// Whether elements of it may be nil. Those of documents are not.
    pub(super) has_nil: bool,
    /// What is known of each of its elements, because others were left out of it.
    pub(super) found: Option<Rc<[Found<'s>]>>,
    /// The part of a root that the value is, as long as nobody has used it.
    pub(super) origin: Option<Read>,
}

impl<'s> Known<'s> {
    pub(super) fn of(kind: Type) -> Self {
        Self {
            kind,
            form: Form::of(kind),
            may_be_nil: kind.is_unknown() || kind.is_nil(),
            has_nil: false,
            found: None,
            origin: None,
        }
    }

    pub(super) fn unknown() -> Self {
        Self::of(Type::UNKNOWN)
    }

    pub(super) fn shaped(shape: &'s Shape, origin: Option<Read>) -> Self {
        let never_nil = matches!(shape, Shape::List { never_nil: true, .. } | Shape::Map { never_nil: true, .. });
        let kind = type_of(shape);
        let form = Form::shaped(shape);
        Self { kind, form, may_be_nil: !never_nil, has_nil: false, found: None, origin }
    }

    /// A value of a form that is read somewhere.
    pub(super) fn read(form: Form<'s>) -> Self {
        Self { kind: form.kind(), form, may_be_nil: true, has_nil: false, found: None, origin: None }
    }

    /// An element of a value.
    pub(super) fn element(&self) -> Self {
        let kind = self.kind.element();
        let known = Self::read(self.form.element());
        Self { kind: if known.is_unknown() { kind } else { known.kind }, ..known }
    }

    /// The same, with what is known of its fields.
    pub(super) fn formed(self, form: Form<'s>) -> Self {
        let kind = if self.kind.is_unknown() { form.kind() } else { self.kind };
        Self { kind, form, ..self }
    }

    /// The same, or nil.
    pub(super) fn or_nil(self) -> Self {
        Self { may_be_nil: true, ..self }
    }

    /// Whether it is a list of amounts.
    /// Whether it is a map of quantities, such as the limits of a container.
    pub(super) fn maps_quantities(&self) -> bool {
        self.kind.is_map() && matches!(self.form.element(), Form::Plain(Type::QUANTITY))
    }

    pub(super) fn has_quantities(&self) -> bool {
        self.kind.is_array() && matches!(self.form.element(), Form::Plain(Type::QUANTITY))
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.kind.is_unknown()
    }

    pub(super) fn may_be(&self, kind: Type) -> bool {
        self.kind == kind || self.is_unknown()
    }

    /// The value of one of two branches.
    pub(super) fn either(one: &Self, other: &Self) -> Self {
        let kind = match (one.kind, other.kind) {
            (Type::NIL, kind) | (kind, Type::NIL) => kind,
            (one, other) if one.is_assignable(other) && one.is_array() && one != other => Type::ARRAY,
            (one, other) if one.is_assignable(other) => one,
            _ => Type::UNKNOWN,
        };
        Self { may_be_nil: one.may_be_nil || other.may_be_nil, ..Self::of(kind) }
    }

    /// The value of `one ?? other`.
    pub(super) fn coalesced(one: &Self, other: &Self) -> Self {
        let kind = match (one.kind, other.kind) {
            (Type::NIL, kind) | (kind, Type::NIL) => kind,
            (one, other) if other.is_assignable(one) => one,
            _ => Type::UNKNOWN,
        };
        Self { may_be_nil: one.may_be_nil && other.may_be_nil, ..Self::of(kind) }
    }
}

/// The type of an array literal: that of its elements if they are of one kind.
pub(super) fn array_of(kinds: &[Type]) -> Type {
    let Some(last) = kinds.last() else { return Type::UNKNOWN.array() };
    if kinds.windows(2).all(|pair| same_kind(pair[0], pair[1])) { last.array() } else { Type::ARRAY }
}

/// Whether Go has one kind for both. It knows neither of nil nor of what it knows nothing about.
fn same_kind(one: Type, other: Type) -> bool {
    let is_nothing = |kind: Type| kind == Type::UNKNOWN || kind.is_nil();
    one == other
        || one.is_array() && other.is_array()
        || one.is_map() && other.is_map()
        || is_nothing(one) && is_nothing(other)
}

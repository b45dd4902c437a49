//! What the fields of a value are, as far as it is known before there is a value. A form follows a value through operators and
//! functions, so that a field is found, or found to be mistyped, wherever a value of the schema has got to.
//!
//! A value is of its form, or nil. Of several forms that a value may have all are kept: one of them must have a field that is read.

use std::rc::Rc;

use crate::{
    builtins::Gives,
    schema::{ComputedId, Field, ObjectId, Schema, Shape},
    types::Type,
};

/// How many forms of a value are kept. Those beyond count as anything: no rule means so many.
const MAX_ALTERNATIVES: usize = 8;

/// How much of two forms is compared. They may have been put together so that there is no end to it.
const MAX_COMPARED: usize = 64;

#[derive(Clone, Debug)]
pub(super) enum Form<'s> {
    /// Nothing is known.
    Any,
    /// Nothing but nil, which has every field.
    Nil,
    /// What has no fields that could be read: a number, text, a time.
    Plain(Type),
    /// As the schema says.
    Shaped(&'s Shape),
    /// A list of these.
    List(Rc<Form<'s>>),
    /// A map with these for values.
    Map(Rc<Form<'s>>),
    /// A map that was written out.
    Record(Rc<[Entry<'s>]>),
    /// One of several, none of which is one of several itself.
    OneOf(Rc<[Form<'s>]>),
}

/// A key that was written out, with what is known of its value.
#[derive(Clone, Debug)]
pub(super) struct Entry<'s> {
    pub(super) key: &'s str,
    pub(super) form: Form<'s>,
    pub(super) may_be_nil: bool,
}

/// What a field is for a value of a form.
pub(super) enum Member<'s> {
    /// It has no such field.
    None,
    /// It is read. With `required` it is there whenever the value is, and with `empty_is_none` an empty text is none.
    Read { form: Form<'s>, required: bool, empty_is_none: bool },
    /// The host computes it. Text has no other fields.
    Computed { field: ComputedId, shape: &'s Shape, of_text: bool, required: bool },
}

impl<'s> Form<'s> {
    /// What is known of a value that is known by its type alone.
    pub(super) fn of(kind: Type) -> Self {
        match kind {
            _ if kind.is_unknown() => Form::Any,
            Type::NIL => Form::Nil,
            Type::BYTES => Form::Plain(kind),
            _ if kind.is_array() => Form::list(Form::of(kind.element())),
            _ if kind.is_map() => Form::map(Form::of(kind.element())),
            _ => Form::Plain(kind),
        }
    }

    pub(super) fn shaped(shape: &'s Shape) -> Self {
        match shape {
            Shape::Any => Form::Any,
            Shape::Bool | Shape::Int | Shape::Float | Shape::Text | Shape::Quantity | Shape::Time => {
                Form::Plain(type_of(shape))
            }
            Shape::OneOf(shapes) => Form::any_of(shapes.iter().map(Form::shaped)),
            _ => Form::Shaped(shape),
        }
    }

    pub(super) fn list(element: Self) -> Self {
        Form::List(Rc::new(element))
    }

    pub(super) fn map(value: Self) -> Self {
        Form::Map(Rc::new(value))
    }

    /// The type, where all that it may be have the same.
    pub(super) fn kind(&self) -> Type {
        match self {
            // The keys of a map that was made may be anything.
            Form::Any | Form::Nil | Form::Map(_) => Type::UNKNOWN,
            Form::Plain(kind) => *kind,
            Form::Shaped(shape) => type_of(shape),
            Form::List(element) => element.kind().array(),
            Form::Record(_) => Type::MAP,
            Form::OneOf(forms) => {
                let kind = forms[0].kind();
                if forms.iter().all(|form| form.kind() == kind) { kind } else { Type::UNKNOWN }
            }
        }
    }

    /// Whether it may be true or false. nil counts as false.
    pub(super) fn may_be_bool(&self) -> bool {
        self.alternatives().iter().any(|form| matches!(form, Form::Any | Form::Nil | Form::Plain(Type::BOOL)))
    }

    pub(super) fn alternatives(&self) -> &[Self] {
        match self {
            Form::OneOf(forms) => forms,
            form => std::slice::from_ref(form),
        }
    }

    /// What may be the one or the other.
    pub(super) fn or(self, other: Self) -> Self {
        if matches!((&self, &other), (Form::Plain(one), Form::Plain(other)) if one == other) {
            return self;
        }
        let mut forms: Vec<Self> = Vec::new();
        for form in self.alternatives().iter().chain(other.alternatives()) {
            if !forms.iter_mut().any(|known| known.absorb(form)) {
                forms.push(form.clone());
            }
        }
        if forms.len() > MAX_ALTERNATIVES {
            forms.truncate(MAX_ALTERNATIVES);
            forms.push(Form::Any);
        }
        match forms.len() {
            1 => forms.remove(0),
            _ => Form::OneOf(forms.into()),
        }
    }

    /// What may be any of these. Nothing but nil if there are none.
    pub(super) fn any_of(forms: impl IntoIterator<Item = Self>) -> Self {
        forms.into_iter().reduce(Self::or).unwrap_or(Form::Nil)
    }

    /// Makes this the form of both, if that can be said as one.
    fn absorb(&mut self, other: &Self) -> bool {
        match (&*self, other) {
            (_, Form::Nil) => true,
            (Form::Nil, _) => {
                *self = other.clone();
                true
            }
            (Form::Shaped(Shape::Word(_)), Form::Plain(Type::TEXT)) => {
                *self = other.clone();
                true
            }
            (Form::Plain(Type::TEXT), Form::Shaped(Shape::Word(_))) => true,
            // What may be hidden is not to be looked at.
            (Form::Shaped(Shape::Hidden(_)), Form::Plain(Type::TEXT)) => true,
            (Form::Plain(Type::TEXT), Form::Shaped(Shape::Hidden(_))) => {
                *self = other.clone();
                true
            }
            // Whatever is text can be read as such text.
            (Form::Shaped(Shape::TextWith(_)), Form::Plain(Type::TEXT)) => true,
            (Form::Plain(Type::TEXT), Form::Shaped(Shape::TextWith(_))) => {
                *self = other.clone();
                true
            }
            (one, other) if one.is_list() && other.is_list() => {
                *self = Form::list(one.element().or(other.element()));
                true
            }
            (one, other) => one.is_same(other, &mut MAX_COMPARED.clone()),
        }
    }

    fn is_same(&self, other: &Self, left: &mut usize) -> bool {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return false;
        }
        match (self, other) {
            (Form::Any, Form::Any) | (Form::Nil, Form::Nil) => true,
            (Form::Plain(one), Form::Plain(other)) => one == other,
            (Form::Shaped(one), Form::Shaped(other)) => one == other,
            (Form::List(one), Form::List(other)) | (Form::Map(one), Form::Map(other)) => one.is_same(other, left),
            (Form::Record(one), Form::Record(other)) => {
                let is_same = |(one, other): (&Entry<'s>, &Entry<'s>)| {
                    (one.key, one.may_be_nil) == (other.key, other.may_be_nil) && one.form.is_same(&other.form, left)
                };
                Rc::ptr_eq(one, other) || one.len() == other.len() && one.iter().zip(&**other).all(is_same)
            }
            (Form::OneOf(one), Form::OneOf(other)) => {
                one.len() == other.len() && one.iter().zip(&**other).all(|(one, other)| one.is_same(other, left))
            }
            _ => false,
        }
    }

    fn is_list(&self) -> bool {
        matches!(self, Form::List(_) | Form::Shaped(Shape::List { .. }))
    }

    /// What a list has for elements, and a map for values: what `x[…]` gives.
    pub(super) fn element(&self) -> Self {
        match self {
            Form::Any | Form::Shaped(Shape::Object(_)) => Form::Any,
            Form::Nil => Form::Nil,
            Form::List(element) | Form::Map(element) => (**element).clone(),
            Form::Shaped(Shape::List { element: inner, .. } | Shape::Map { value: inner, .. }) => Form::shaped(inner),
            // Text and bytes have bytes.
            Form::Plain(_) | Form::Shaped(_) => Form::Plain(Type::INT),
            Form::Record(entries) => Form::any_of(entries.iter().map(|entry| entry.form.clone())),
            Form::OneOf(forms) => Form::any_of(forms.iter().map(Self::element)),
        }
    }

    /// What is in lists in lists, at the bottom.
    pub(super) fn flat(&self) -> Self {
        Form::any_of(
            self.alternatives().iter().map(|form| if form.is_list() { form.element().flat() } else { form.clone() }),
        )
    }

    /// A field of one form.
    pub(super) fn member(&self, schema: &'s Schema, name: &str) -> Member<'s> {
        match self {
            Form::Any => Member::optional(Form::Any),
            Form::Nil => Member::optional(Form::Nil),
            Form::Map(value) => Member::optional((**value).clone()),
            Form::Record(entries) => match entries.iter().find(|entry| entry.key == name) {
                Some(entry) => {
                    Member::Read { form: entry.form.clone(), required: !entry.may_be_nil, empty_is_none: false }
                }
                None => Member::optional(Form::Nil),
            },
            Form::Shaped(Shape::Map { value, .. }) => Member::optional(Form::shaped(value)),
            Form::Shaped(Shape::Object(id)) => member_of(schema, *id, name, false),
            Form::Shaped(Shape::TextWith(id)) => member_of(schema, *id, name, true),
            Form::Plain(_) | Form::Shaped(_) | Form::List(_) | Form::OneOf(_) => Member::None,
        }
    }

    /// The object of the schema whose fields it has.
    pub(super) fn object(&self) -> Option<ObjectId> {
        match self {
            Form::Shaped(Shape::Object(id) | Shape::TextWith(id)) => Some(*id),
            _ => None,
        }
    }
}

impl<'s> Member<'s> {
    fn optional(form: Form<'s>) -> Self {
        Member::Read { form, required: false, empty_is_none: false }
    }
}

/// What is known of a function's result beside its type. The body of a predicate is apart from its arguments, of which the second
/// is what `reduce` begins with.
pub(super) fn of_result<'s>(gives: Gives, kind: Type, arguments: &[Form<'s>], body: Option<Form<'s>>) -> Form<'s> {
    let Some(first) = arguments.first() else { return Form::of(kind) };
    let body = body.unwrap_or(Form::Any);
    match gives {
        Gives::Type => Form::of(kind),
        Gives::Elements => Form::list(first.element()),
        Gives::Element | Gives::Member => first.element(),
        Gives::AllElements => Form::list(Form::any_of(arguments.iter().map(Form::element))),
        Gives::Flat => Form::list(first.flat()),
        Gives::Pairs => Form::list(Form::list(Form::of(first.kind().key()).or(first.element()))),
        Gives::Paired => Form::map(first.element().element()),
        Gives::Groups => Form::map(Form::list(first.element())),
        Gives::Bodies => Form::list(body),
        Gives::Reduced => arguments.iter().skip(1).cloned().fold(body, Form::or),
    }
}

fn member_of<'s>(schema: &'s Schema, id: ObjectId, name: &str, of_text: bool) -> Member<'s> {
    match schema.field(id, name) {
        Some(Field { shape, computed: None, required, empty_is_none }) => {
            Member::Read { form: Form::shaped(shape), required: *required, empty_is_none: *empty_is_none }
        }
        Some(Field { shape, computed: Some(field), required, .. }) => {
            Member::Computed { field: *field, shape, of_text, required: *required }
        }
        None if schema.object(id).open => Member::optional(Form::Any),
        None => Member::None,
    }
}

pub(super) fn type_of(shape: &Shape) -> Type {
    match shape {
        Shape::Any | Shape::Calls(_) => Type::UNKNOWN,
        Shape::Bool => Type::BOOL,
        Shape::Int => Type::INT,
        Shape::Float => Type::FLOAT,
        Shape::Text | Shape::Word(_) | Shape::Hidden(_) | Shape::TextWith(_) => Type::TEXT,
        Shape::Quantity => Type::QUANTITY,
        Shape::Time => Type::TIME,
        Shape::OneOf(_) => Form::shaped(shape).kind(),
        Shape::List { element, .. } => type_of(element).array(),
        Shape::Map { .. } => Type::MAP,
        Shape::Object(id) => Type::object(u32::from(id.0)),
    }
}

//! The builtins that run a body for each element.

use super::{
    Compiler, Scope, Typed,
    form::{self, Form},
    guards::Found,
    known::Known,
};
use crate::{
    ast::Id,
    builtins::{Builtin, Gives},
    error::Error,
    facts::Segment,
    program::{Constant, Kind, Op, Predicate},
    types::Type,
};

impl Predicate {
    /// Whether the body answers yes or no.
    fn decides(self) -> bool {
        !matches!(self, Self::Map | Self::Sum | Self::GroupBy | Self::SortBy | Self::Reduce)
    }

    /// Whether elements themselves come out, so that all of each is read.
    fn returns_elements(self) -> bool {
        matches!(self, Self::Filter | Self::Find | Self::FindLast | Self::GroupBy | Self::SortBy | Self::Reduce)
    }
}

impl<'s> Compiler<'s> {
    pub(super) fn predicate(
        &mut self,
        at: u32,
        predicate: Predicate,
        builtin: &'static Builtin,
        arguments: &[Id],
    ) -> Result<Typed<'s>, Error> {
        let name = builtin.name;
        let [collection_id, others @ ..] = arguments else {
            return Err(self.error(at, format!("`{name}` needs a list")));
        };
        self.refuse_named_element(at, name, arguments)?;
        let collection_at = self.at(*collection_id);
        let collection = self.node(*collection_id)?;
        let kind = collection.known.kind;
        if kind.is_map() && !self.strict {
            return Err(self.predicate_over_map(collection_at, name, *collection_id, others.first().copied()));
        }
        if !kind.is_array() && !kind.is_unknown() {
            let meant = others.first().filter(|_| kind == Type::TEXT && !self.strict);
            let meant = meant.and_then(|body| self.asked_of_one(*collection_id, *body));
            let hint = meant.map(|ours| format!(": write `{ours}`")).unwrap_or_default();
            return Err(self.error(collection_at, format!("`{name}` goes through a list, and this is {kind}{hint}")));
        }
        self.refuse_count_of_all(at, predicate, *collection_id, &collection.known, others)?;
        if predicate == Predicate::All {
            self.note_of_all(*collection_id);
        }
        let has_index = matches!(predicate, Predicate::Map | Predicate::Reduce);
        let item = self.item_of(&collection.known);
        let origin = collection.known.origin.clone();
        let accumulator = (predicate == Predicate::Reduce).then(|| match others.get(1) {
            // It is the first element, or what the body made of it. Neither may be missing, which is seen to below.
            None if !self.strict => {
                Known { may_be_nil: collection.known.has_nil, ..Known::read(item.form.clone().or(Form::Any)) }
            }
            _ => Known { may_be_nil: self.strict, ..Known::unknown() },
        });
        let has_patterns = has_patterns(&collection.op);
        let has_texts = has_texts(&collection.op);
        let looked_up = self.is_looked_up(*collection_id);
        self.scopes.push(Scope {
            item,
            looked_up,
            collection: *collection_id,
            body: others.first().copied(),
            has_patterns,
            has_texts,
            has_index,
            accumulator,
            uses_item: false,
            uses_accumulator: false,
        });
        let mark = self.present.len();
        let mut found = collection.known.found.as_deref().unwrap_or_default().to_vec();
        self.add_found(&found);
        let body = others.first().map(|body| self.value(*body)).transpose();
        if let (Predicate::Filter, Some(body)) = (predicate, others.first()) {
            found.extend(self.supposed_of_item(*body));
        }
        self.present.truncate(mark);
        let scope = self.scopes.pop();
        let body = body?;
        let uses_item = scope.as_ref().is_some_and(|scope| scope.uses_item);
        let uses_accumulator = scope.is_some_and(|scope| scope.uses_accumulator);
        if let (Some(body), false) = (&body, uses_item || self.strict)
            && predicate.decides()
            && !matches!(body.op.kind, Kind::Constant(_))
        {
            self.warn(
                at,
                format!("the body of `{name}` does not look at the element, which is `#`, and its field `.name`"),
            );
        }
        if let Some(origin) = origin.filter(|_| predicate.returns_elements() || body.is_none() || !uses_item) {
            self.facts.read(origin);
        }
        if let (Some(body), Some(body_id)) = (&body, others.first())
            && (predicate.decides() || matches!(predicate, Predicate::GroupBy | Predicate::SortBy))
        {
            self.refuse_hidden(*body_id, body)?;
        }
        if let (Some(body), Some(body_id), true) = (&body, others.first(), predicate.decides()) {
            self.refuse_either_truth(*body_id, body, true)?;
            self.warn_of_truth(*body_id, body, true);
        }
        if let (Some(body), Some(body_id)) = (&body, others.first())
            && (body.known.kind.is_nil() || predicate.decides() && !body.known.may_be(Type::BOOL))
        {
            let wanted = if predicate.decides() { "must be true or false" } else { "must have a value" };
            let hint = self.truth_of(*body_id, body.known.kind, true).filter(|_| !self.strict).unwrap_or_default();
            let message = format!("the body of `{name}` {wanted}, and this is {}{hint}", body.known.kind);
            return Err(self.error(self.at(*body_id), message));
        }
        let body = match (body, others.first()) {
            (Some(body), Some(body_id)) => {
                Some(self.counted_body(predicate, uses_accumulator, [*collection_id, *body_id], body)?)
            }
            (None, None) if predicate == Predicate::Sum && !self.strict => {
                self.sum_of_elements(at, *collection_id, &collection.known)?
            }
            (body, _) => body,
        };
        let extra = others.get(1).map(|extra| self.value(*extra)).transpose()?;
        if let (Some(extra), true) = (&extra, uses_accumulator) {
            self.require(others[1], extra, "0", |extra| format!("reduce(…, …, {extra})"))?;
        }
        if let (Some(extra), Predicate::SortBy) = (&extra, predicate)
            && !extra.known.may_be(Type::TEXT)
        {
            return Err(self.error(self.at(others[1]), "the order of `sortBy` is `'asc'` or `'desc'`"));
        }
        let known = result_of(predicate, kind, body.as_ref().map(|body| &body.known));
        let start = extra.as_ref().map_or_else(|| collection.known.form.element(), |extra| extra.known.form.clone());
        let may_be_nil = match predicate {
            _ if self.strict => known.may_be_nil,
            Predicate::Find | Predicate::FindLast | Predicate::FindIndex | Predicate::FindLastIndex => true,
            // Of no element there is nothing to begin with.
            Predicate::Reduce => {
                body.as_ref().is_some_and(|body| body.known.may_be_nil)
                    || extra.as_ref().is_none_or(|extra| extra.known.may_be_nil)
            }
            _ => false,
        };
        let has_nil = match builtin.gives {
            Gives::Bodies => body.as_ref().is_some_and(|body| body.known.may_be_nil),
            Gives::Elements => collection.known.has_nil && !found.iter().any(Found::is_there),
            _ => false,
        };
        let found = (builtin.gives == Gives::Elements).then(|| found.into());
        let forms = [collection.known.form, start];
        let body_form = body.as_ref().map(|body| body.known.form.clone());
        let form = form::of_result(builtin.gives, known.kind, &forms, body_form);
        let known = Known { has_nil, may_be_nil, found, ..self.formed(known, form) };
        let op = Kind::Predicate {
            predicate,
            collection: collection.op.into(),
            body: body.map(|body| body.op.into()),
            extra: extra.map(|extra| extra.op.into()),
        };
        Ok(Typed { op: Op { kind: op, at }, known })
    }

    /// Refuses `count(list)` for the length of a list: it counts what is true.
    fn refuse_count_of_all(
        &mut self,
        at: u32,
        predicate: Predicate,
        id: Id,
        collection: &Known<'s>,
        others: &[Id],
    ) -> Result<(), Error> {
        let element = collection.element();
        if self.strict || predicate != Predicate::Count || !others.is_empty() || element.kind == Type::BOOL {
            return Ok(());
        }
        let list = self.shown(id);
        if element.is_unknown() {
            self.warn(at, format!("`count` counts what is true: write `len({list})` for all elements"));
            return Ok(());
        }
        let message = format!("`count` counts what is true, and these are {}: write `len({list})`", element.kind);
        Err(self.error(at, message))
    }

    /// A body whose answers are added or put in order, so that none of them may be missing, and amounts are amounts.
    fn counted_body(
        &self,
        predicate: Predicate,
        uses_accumulator: bool,
        [list, id]: [Id; 2],
        body: Typed<'s>,
    ) -> Result<Typed<'s>, Error> {
        if predicate == Predicate::Sum {
            self.require_summand(list, id, &body)?;
        }
        if uses_accumulator {
            self.require(id, &body, "…", |body| format!("reduce(…, {body})"))?;
        }
        let is_ordered = matches!(predicate, Predicate::Sum | Predicate::SortBy);
        if is_ordered {
            self.refuse_unclear_amount(&body)?;
        }
        if is_ordered && body.known.kind == Type::QUANTITY { self.as_quantity(id, body) } else { Ok(body) }
    }

    /// The body of a sum of the elements themselves, which they need only where they are amounts.
    fn sum_of_elements(&self, at: u32, id: Id, collection: &Known<'s>) -> Result<Option<Typed<'s>>, Error> {
        if collection.has_nil {
            let list = self.shown(id);
            let message =
                format!("elements of `{list}` may be missing: write `sum({list}, # ?? 0)` to count them as 0");
            return Err(self.error(at, message));
        }
        let item = self.item_of(collection);
        if item.kind != Type::QUANTITY {
            return Ok(None);
        }
        self.as_quantity(id, Typed { op: Op { kind: Kind::Item, at }, known: item }).map(Some)
    }

    /// What `#` is in the body of a predicate over this collection.
    fn item_of(&self, collection: &Known<'s>) -> Known<'s> {
        let origin = collection.origin.clone().map(|mut origin| {
            origin.path.push(Segment::Each);
            origin
        });
        let item = match self.strict {
            true => Known::of(collection.kind.element()),
            false => collection.element(),
        };
        Known { origin, may_be_nil: collection.has_nil, ..item }
    }
}

/// Whether some element of a list of texts is a pattern.
fn has_patterns(list: &Op) -> bool {
    let is_pattern = |op: &Op| matches!(&op.kind, Kind::Constant(Constant::Text(text)) if text.contains(['*', '?']));
    matches!(&list.kind, Kind::Array(elements) if elements.iter().any(is_pattern))
}

/// Whether all elements of a list are texts of the expression.
fn has_texts(list: &Op) -> bool {
    let is_text = |op: &Op| matches!(&op.kind, Kind::Constant(Constant::Text(_)));
    matches!(&list.kind, Kind::Array(elements) if elements.iter().all(is_text))
}

fn result_of<'s>(predicate: Predicate, collection: Type, body: Option<&Known<'s>>) -> Known<'s> {
    let body_kind = body.map_or(Type::UNKNOWN, |body| body.kind);
    match predicate {
        Predicate::All | Predicate::None | Predicate::Any | Predicate::One => Known::of(Type::BOOL),
        Predicate::Count => Known::of(Type::INT),
        Predicate::Filter if collection.is_unknown() => Known::of(Type::ARRAY),
        Predicate::Filter => Known::of(collection.element().array()),
        Predicate::Map => Known::of(body_kind.array()),
        Predicate::Sum if body.is_some() => Known::of(body_kind),
        Predicate::Sum => Known::of(if collection.is_unknown() { Type::UNKNOWN } else { collection.element() }),
        Predicate::Find | Predicate::FindLast => {
            Known::of(if collection.is_unknown() { Type::UNKNOWN } else { collection.element() }).or_nil()
        }
        Predicate::FindIndex | Predicate::FindLastIndex => Known::of(Type::INT).or_nil(),
        Predicate::GroupBy => Known::of(Type::GROUPS),
        Predicate::SortBy => Known::of(collection),
        Predicate::Reduce => Known::of(body_kind),
    }
}

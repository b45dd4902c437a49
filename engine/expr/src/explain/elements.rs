//! The elements of a list with the names that they have where they come from: those of `filter(spec.containers, …)` are containers of
//! `spec.containers`.

use super::{Explanation, Item, Place, describe::field_of};
use crate::{
    evaluate::Frame,
    program::{Kind, Op, Predicate},
    value::Value,
};

/// How the key of an entry of a map is called, before the map.
pub(super) const KEY_OF: &str = "a key of ";

/// More elements than these are not looked at.
const MAX_ELEMENTS: usize = 1_000;

impl Item {
    /// How an observation of it begins, unless it is a constant.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Item::Named(name) => Some(name.clone()),
            Item::Key(map) => Some(format!("{KEY_OF}{map}")),
            Item::Pair { map, key } => Some(field_of(map, key)),
            Item::Written(_) => None,
        }
    }
}

impl<'a> Explanation<'a, '_> {
    /// The elements of a list, and what they are called.
    pub(super) fn elements(&self, op: &'a Op, place: Place<'_, 'a>) -> Vec<(Value<'a>, Item)> {
        let op = self.behind_names(op);
        if !self.step() {
            return Vec::new();
        }
        let mut elements = match &op.kind {
            Kind::Coalesce { first, second, .. } => {
                let is_there = self.value(first, place).is_some_and(|value| !value.is_empty());
                self.elements(if is_there { first } else { second }, place)
            }
            Kind::Array(written) => {
                let named = written.iter().filter_map(|element| {
                    let name = self.describe(element, place).unwrap_or_default();
                    let item = if self.is_constant(element, place) { Item::Written(name) } else { Item::Named(name) };
                    Some((self.value(element, place)?, item))
                });
                named.collect()
            }
            Kind::Predicate { predicate: Predicate::Filter, collection, body: Some(body), .. } => {
                self.answered(collection, place, |explanation, inner| {
                    (explanation.truth(body, inner) == Some(true)).then_some(())
                })
            }
            Kind::Predicate { predicate: Predicate::Map, collection, body: Some(body), .. } => {
                self.mapped(collection, body, place)
            }
            Kind::Builtin { builtin, arguments } => match (builtin.name, &**arguments) {
                ("concat", lists) => lists.iter().flat_map(|list| self.elements(list, place)).collect(),
                ("keys" | "values" | "toPairs", [map]) => self.entries(builtin.name, op, map, place),
                _ => self.listed(op, place),
            },
            _ => self.listed(op, place),
        };
        elements.truncate(MAX_ELEMENTS);
        elements
    }

    /// The elements of a list for which there is an answer.
    fn answered(
        &self,
        collection: &'a Op,
        place: Place<'_, 'a>,
        answer: impl Fn(&Self, Place<'_, 'a>) -> Option<()>,
    ) -> Vec<(Value<'a>, Item)> {
        let elements = (0..).zip(self.elements(collection, place));
        let answered = elements.filter_map(|(index, (value, item))| {
            let frame = Frame::of(value, index);
            answer(self, Place { frame: &frame, item: Some(&item) })?;
            Some((value, item))
        });
        answered.collect()
    }

    /// What is made of each element, called as the part of it that it is.
    fn mapped(&self, collection: &'a Op, body: &'a Op, place: Place<'_, 'a>) -> Vec<(Value<'a>, Item)> {
        let elements = (0..).zip(self.elements(collection, place));
        let mapped = elements.filter_map(|(index, (value, item))| {
            let frame = Frame::of(value, index);
            let inner = Place { frame: &frame, item: Some(&item) };
            let name = self.describe(body, inner).or_else(|| item.name()).unwrap_or_default();
            Some((self.value(body, inner)?, Item::Named(name)))
        });
        mapped.collect()
    }

    /// What `keys`, `values` and `toPairs` make of a map.
    fn entries(&self, function: &str, op: &'a Op, map: &'a Op, place: Place<'_, 'a>) -> Vec<(Value<'a>, Item)> {
        let Some(name) = self.describe(map, place) else { return self.listed(op, place) };
        let Some(fields) = self.value(map, place).and_then(Value::fields) else { return Vec::new() };
        let Ok(entries) = fields.sorted(self.evaluation.machine) else { return Vec::new() };
        let Some(values) = self.value(op, place).and_then(Value::sequence) else { return Vec::new() };
        let item = |key: String| match function {
            "keys" => Item::Key(name.clone()),
            "values" => Item::Named(field_of(&name, &key)),
            _ => Item::Pair { map: name.clone(), key },
        };
        values.iter().zip(entries).take(MAX_ELEMENTS).map(|(value, (key, _))| (value, item(key.to_string()))).collect()
    }

    /// The elements of a list that is what it is, by their places. What a call of the host found is known by what it is called.
    fn listed(&self, op: &'a Op, place: Place<'_, 'a>) -> Vec<(Value<'a>, Item)> {
        let Some(values) = self.value(op, place).and_then(Value::sequence) else { return Vec::new() };
        let name = self.describe_list(op, place).unwrap_or_default();
        let is_found = self.is_found(op);
        let item = |index: usize, value: Value<'a>| match self.identity(value).filter(|_| is_found) {
            Some(identity) => Item::Named(format!("{name}[{identity:?}]")),
            None => Item::Named(format!("{name}[{index}]")),
        };
        values.iter().take(MAX_ELEMENTS).enumerate().map(|(index, value)| (value, item(index, value))).collect()
    }

    /// The namespace and the name of an object, as far as it has them.
    fn identity(&self, object: Value<'a>) -> Option<String> {
        let metadata = self.entry(object, "metadata")?;
        let text = |key| match self.entry(metadata, key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        let name = text("name")?;
        Some(text("namespace").map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}")))
    }

    /// An entry of a map.
    pub(super) fn entry(&self, map: Value<'a>, key: &str) -> Option<Value<'a>> {
        map.fields()?.get_text(self.evaluation.machine, key).ok().flatten()
    }
}

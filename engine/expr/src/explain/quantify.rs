//! Conditions about the elements of a list: which of them decided.

use super::{Doubt, Explanation, Facts, MAX_OBSERVATIONS, Observation, Place, Seen, doubted, each};
use crate::{
    evaluate::Frame,
    program::{Constant, Kind, Op, Predicate},
    value::Value,
};

/// A list, and what is asked of each of its elements.
type Asked<'a> = (&'a Op, &'a Op);

/// More elements than these are not told.
const MAX_ELEMENTS: usize = 3;

impl<'a> Explanation<'a, '_> {
    pub(super) fn explain_predicate(
        &mut self,
        predicate: Predicate,
        asked: Asked<'a>,
        truth: bool,
        op: &'a Op,
        place: Place<'_, 'a>,
    ) -> Facts<'a> {
        match (predicate, truth) {
            (Predicate::Any, true) | (Predicate::None, false) | (Predicate::One, true) => {
                self.explain_some(asked, true, place)
            }
            (Predicate::All, false) => self.explain_some(asked, false, place),
            (Predicate::Any, false) | (Predicate::None, true) => self.explain_none(asked, place),
            (Predicate::All, true) => self.explain_every(asked, true, place),
            _ => self.observe(op, place),
        }
    }

    /// The elements for which the answer is so. Each of them is enough.
    pub(super) fn explain_some(&mut self, asked: Asked<'a>, answer: bool, place: Place<'_, 'a>) -> Facts<'a> {
        let (collection, body) = asked;
        let most = if self.looks_up(body) { 1 } else { MAX_ELEMENTS };
        let mut all = Vec::new();
        for (index, (value, item)) in (0..).zip(self.elements(collection, place)) {
            let frame = Frame::of(value, index);
            let inner = Place { frame: &frame, item: Some(&item) };
            if self.truth(body, inner) == Some(answer) {
                all.push(self.explain(body, answer, inner));
            }
            if all.len() >= most {
                break;
            }
        }
        each(all)
    }

    /// Why no element is what was looked for.
    pub(super) fn explain_none(&mut self, asked: Asked<'a>, place: Place<'_, 'a>) -> Facts<'a> {
        let list = self.behind_names(asked.0);
        if let Some(facts) = self.explain_unset(list, place) {
            return facts;
        }
        if self.is_found(list)
            && let (Some(value), Some(subject)) = (self.value(list, place), self.describe(list, place))
        {
            let seen = if value.is_empty() { Seen::Found } else { Seen::NoneFits };
            return vec![Observation { seen, ..Observation::field(subject, value) }];
        }
        self.explain_every(asked, false, place)
    }

    /// Why the answer is the same for all elements.
    fn explain_every(&mut self, asked: Asked<'a>, answer: bool, place: Place<'_, 'a>) -> Facts<'a> {
        let (collection, body) = asked;
        let elements = self.elements(collection, place);
        if elements.is_empty() {
            return self.presence(collection, true, place);
        }
        let mut all = Vec::new();
        for (index, (value, item)) in (0..).zip(elements.into_iter().take(MAX_ELEMENTS)) {
            let frame = Frame::of(value, index);
            let inner = Place { frame: &frame, item: Some(&item) };
            // Evaluated for the variables that it declares.
            let _ = self.truth(body, inner);
            all.push(self.explain(body, answer, inner));
        }
        let facts = each(all);
        if facts.is_empty() { self.observe(collection, place) } else { facts }
    }

    /// A number of elements that is compared with a constant: what was counted says more.
    pub(super) fn explain_number(&mut self, left: &'a Op, right: &'a Op, place: Place<'_, 'a>) -> Option<Facts<'a>> {
        let (number, other) = if is_number(right) { (left, right) } else { (right, left) };
        if !is_number(other) {
            return None;
        }
        let number = self.behind_names(number);
        let asked = match &number.kind {
            Kind::Predicate { predicate: Predicate::Count, collection, body: Some(body), .. } => {
                (&**collection, &**body)
            }
            Kind::Builtin { builtin, arguments } if builtin.name == "len" => {
                match &self.behind_names(arguments.first()?).kind {
                    Kind::Predicate { predicate: Predicate::Filter, collection, body: Some(body), .. } => {
                        (&**collection, &**body)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        match self.value(number, place)? {
            Value::Int(0) => Some(self.explain_none(asked, place)),
            Value::Int(_) => Some(self.explain_some(asked, true, place)).filter(|facts| !facts.is_empty()),
            _ => None,
        }
    }

    /// Why something is in a list or in a map, or is not.
    pub(super) fn explain_in(
        &mut self,
        needle: &'a Op,
        haystack: &'a Op,
        truth: bool,
        place: Place<'_, 'a>,
    ) -> Facts<'a> {
        let needle_facts = self.observe(needle, place);
        let list = self.behind_names(haystack);
        let map = match &list.kind {
            Kind::Builtin { builtin, arguments } if builtin.name == "keys" => arguments.first().unwrap_or(list),
            _ => list,
        };
        // What is not there has no keys.
        if self.absent(map, place).is_some() {
            return self.observe(map, place);
        }
        if let (Some(Value::Text(key)), Some(map_value), Some(subject)) =
            (self.value(needle, place), self.value(map, place), self.describe(map, place))
            && map_value.fields().is_some()
        {
            let value = self.entry(map_value, key).unwrap_or(Value::Nil);
            let entry = Observation::field(super::describe::field_of(&subject, key), value);
            return std::iter::once(entry).chain(needle_facts).collect();
        }
        if self.is_constant(list, place) {
            return if truth { needle_facts } else { doubted(needle_facts, Doubt::LeftOut) };
        }
        let found = if truth { self.found_in(needle, list, place) } else { Vec::new() };
        let list_facts = if found.is_empty() { self.observe(list, place) } else { found };
        needle_facts.into_iter().chain(list_facts).take(MAX_OBSERVATIONS).collect()
    }

    /// The element of a list that is what was looked for.
    fn found_in(&mut self, needle: &'a Op, list: &'a Op, place: Place<'_, 'a>) -> Facts<'a> {
        let Some(sought) = self.value(needle, place).filter(|sought| sought.is_key()) else { return Vec::new() };
        let elements = self.elements(list, place).into_iter();
        let is_sought = |(value, _): &(Value<'a>, _)| value.is_key() && value.compare_keys(sought).is_eq();
        let named = elements.filter(is_sought).find_map(|(value, item)| Some(Observation::field(item.name()?, value)));
        named.into_iter().collect()
    }
}

fn is_number(op: &Op) -> bool {
    matches!(op.kind, Kind::Constant(Constant::Int(_)))
}

//! What stands beside a list and is for everything that none of its elements is for, such as the default backend of an Ingress, which may have no
//! rules at all. Who asks the elements alone passes over it.

use super::Compiler;
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    habits::MAX_SHOWN,
    print::written,
    schema::{ObjectId, Remainder},
};

/// A field that was read and is named in a remainder.
pub(super) struct Remaining {
    id: Id,
    part: Part,
    of: &'static Remainder,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Part {
    List,
    ChosenBy,
    Leads,
}

impl<'s> Compiler<'s> {
    /// Notes that a list is read beside which there is something for the rest, or a field of its elements.
    pub(super) fn note_remainder(&mut self, id: Id, name: &str, object: Option<ObjectId>) {
        let Some(object) = object.filter(|_| !self.strict) else { return };
        for of in self.schema.remainders() {
            let parts = [(of.list, Part::List), (of.chosen_by, Part::ChosenBy), (of.leads, Part::Leads)];
            let is_meant = |((owner, field), _): &((&str, &str), Part)| {
                *field == name && self.schema.object(object).name == *owner
            };
            self.remaining.extend(parts.into_iter().find(is_meant).map(|(_, part)| Remaining { id, part, of }));
        }
    }

    /// Warns of `any(object.spec.rules, .host …)`, where what is beside the list is for every host.
    pub(super) fn warn_of_remainders(&mut self) {
        let remaining = std::mem::take(&mut self.remaining);
        let of_part = |part: Part| remaining.iter().filter(move |found| found.part == part);
        let lists: Vec<Id> = of_part(Part::List).map(|found| found.id).collect();
        let leads: Vec<Id> = of_part(Part::Leads).map(|found| found.id).collect();
        let chosen: Vec<Id> = of_part(Part::ChosenBy).map(|found| found.id).collect();
        if lists.is_empty() || leads.is_empty() && chosen.is_empty() {
            return;
        }
        for (asked, list, is_positive) in self.asked_of_lists(&lists) {
            let Some(of) = remaining.iter().find(|found| found.id == list).map(|found| found.of) else { continue };
            let shown = self.shown(list);
            let is_left_alone = leads.is_empty() && (self.is_there_asked(&chosen) || self.is_named(of.looked_up));
            if self.is_named(of.field) || self.is_emptiness_asked(&shown) || is_left_alone {
                continue;
            }
            let field = format!("{}{}", shown.strip_suffix(of.list.1).unwrap_or_default(), of.field);
            let whole = written(self.tree, asked);
            let whole = if whole.chars().count() > MAX_SHOWN { "…".to_owned() } else { whole };
            let condition = leads.first().map(|_| self.asked_of_rest(asked, &leads, &field));
            let (what, advice) = match (condition, is_positive) {
                (None, true) => (of.what_for, format!("({field} != nil || {whole})")),
                (None, false) => (of.what_for, format!("({field} == nil && {whole})")),
                (Some(one), true) => (of.what, format!("({field} != nil && {one} || {whole})")),
                (Some(one), false) => (of.what, format!("(({field} == nil || {one}) && {whole})")),
            };
            let leave = match is_positive {
                true => format!("{shown} != nil && {whole}"),
                false => format!("({shown} == nil || {whole})"),
            };
            let message = format!(
                "`{field}` {what}, also where `{shown}` is empty, and this rule does not ask for it: write `{advice}`, or `{leave}` to \
                 leave it out"
            );
            self.warn(self.at(list), message);
        }
    }

    /// What is asked of where the elements lead to, asked of what is for the rest. Only its form where that says more.
    fn asked_of_rest(&self, asked: Id, leads: &[Id], field: &str) -> String {
        let form = || format!("{field}.…");
        let tree = self.tree;
        let (mut rest, mut body) = (vec![asked], None);
        while let Some(id) = rest.pop() {
            if let Syntax::Predicate(inner) = tree.kind(id) {
                body = Some(*inner);
            }
            tree.kind(id).each_child(|child| rest.push(child));
        }
        let Some(body) = body else { return form() };
        let (mut rest, mut items, mut own) = (vec![body], 0, Vec::new());
        while let Some(id) = rest.pop() {
            match tree.kind(id) {
                Syntax::Pointer(_) => items += 1,
                Syntax::Let { .. } => return form(),
                _ if leads.contains(&id) => own.push(self.shown(id)),
                _ => {}
            }
            tree.kind(id).each_child(|child| rest.push(child));
        }
        let text = written(tree, body);
        let Some(lead) = own.first().filter(|first| own.iter().all(|lead| lead == *first)) else { return form() };
        let is_told = items == own.len() && text.matches(lead.as_str()).count() == own.len();
        if !is_told || !lead.starts_with('.') || text.chars().count() > MAX_SHOWN {
            return form();
        }
        let text = text.replace(lead.as_str(), field);
        match tree.kind(body) {
            Syntax::Binary(Binary::Or { .. }, ..) | Syntax::Conditional { .. } => format!("({text})"),
            _ => text,
        }
    }

    /// Whether one of these is asked to be there, so that what has none is left out on purpose.
    fn is_there_asked(&self, ids: &[Id]) -> bool {
        let tree = self.tree;
        tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Binary(Binary::NotEqual, left, right) => {
                let is_nil = |id: Id| matches!(tree.kind(id), Syntax::Nil);
                is_nil(*right) && ids.contains(left) || is_nil(*left) && ids.contains(right)
            }
            _ => false,
        })
    }

    /// Whether the expression names something, as a field or in brackets.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let is_name = |text: &str| text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        self.tree.nodes.iter().any(|node| matches!(&node.kind, Syntax::Text(text) if is_name(text)))
    }
}

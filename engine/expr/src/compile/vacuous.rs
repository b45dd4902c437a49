//! What is true of every element of a list that has none. `all(x.claims, .class == "local")` is true of whatever has no claims, and whoever
//! forbids something of claims does not mean those.

use super::Compiler;
use crate::ast::{Binary, Id, Kind as Syntax, Unary};

impl<'s> Compiler<'s> {
    /// Notes that something is asked of every element of a list that may be missing.
    pub(super) fn note_of_all(&mut self, list: Id) {
        if self.strict || self.is_asked(list) {
            return;
        }
        let Syntax::Member { base, .. } = self.tree.kind(list) else { return };
        let object = self.form_of(*base).and_then(|form| form.object());
        let (Some(object), Some(name)) = (object, self.last_name(list)) else { return };
        // Of lists only those that Kubernetes requires have an element.
        if self.schema.object(object).fields.get(name).is_some_and(|field| !field.required) {
            self.of_all.push(list);
        }
    }

    /// Warns of `all(list, .name == "x")`, where the rule is true because of it, and would be so of an empty list.
    pub(super) fn warn_of_vacuous(&mut self) {
        let lists = std::mem::take(&mut self.of_all);
        if lists.is_empty() {
            return;
        }
        for (question, list) in self.true_of_all(&lists) {
            let shown = self.shown(list);
            if self.is_emptiness_asked(&shown) {
                continue;
            }
            let message = format!(
                "`{shown}` may be empty, and this is true of it then: write `{shown} != nil && {}` to leave out what has none",
                self.shown(question)
            );
            self.warn(self.at(question), message);
            break;
        }
    }

    /// Whether a condition asks for something, and not for its absence: nothing is without whatever one likes.
    pub(super) fn asks_for_something(&self, condition: Id) -> bool {
        let is_nothing = |id: Id| match self.tree.kind(id) {
            Syntax::Nil | Syntax::Bool(false) => true,
            Syntax::Array(elements) => elements.is_empty(),
            Syntax::Text(text) => text.is_empty(),
            _ => false,
        };
        match self.tree.kind(condition) {
            Syntax::Predicate(body) => self.asks_for_something(*body),
            Syntax::Binary(Binary::And { .. } | Binary::Or { .. }, one, other) => {
                self.asks_for_something(*one) && self.asks_for_something(*other)
            }
            Syntax::Binary(Binary::Equal, one, other) => !is_nothing(*one) && !is_nothing(*other),
            Syntax::Binary(operator, ..) => matches!(
                operator,
                Binary::In
                    | Binary::StartsWith
                    | Binary::EndsWith
                    | Binary::Contains
                    | Binary::Matches
                    | Binary::Less
                    | Binary::LessOrEqual
                    | Binary::Greater
                    | Binary::GreaterOrEqual
            ),
            Syntax::Unary(Unary::Not { .. }, _) => false,
            Syntax::Builtin { name: "any", .. } | Syntax::Member { .. } => true,
            _ => false,
        }
    }
}

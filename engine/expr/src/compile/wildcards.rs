//! Lists in which `*` stands for everything. Who asks whether `"secrets"` is in one lets pass whoever writes `*`, which is more.

use super::{Compiler, Typed};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    facts::Segment,
    types::Type,
};

/// Stands for everything.
const ALL: &str = "*";

impl<'s> Compiler<'s> {
    /// Warns of `"secrets" in .resources`, and of `any(.verbs, # == "get")`, where the rule is true because of it and does not ask for `*`.
    pub(super) fn warn_of_wildcard(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let tree = self.tree;
        let (name, list, texts) = match (operator, tree.kind(left_id), tree.kind(right_id)) {
            (Binary::In, Syntax::Text(_), _) if right.known.kind.element() == Type::TEXT => {
                (self.last_name(right_id), Some(right_id), std::slice::from_ref(&left_id))
            }
            (Binary::In, Syntax::Pointer(""), Syntax::Array(elements)) if left.known.kind == Type::TEXT => {
                (self.list_of_item(), None, &elements[..])
            }
            (Binary::Equal, Syntax::Pointer(""), Syntax::Text(_)) if left.known.kind == Type::TEXT => {
                (self.list_of_item(), None, std::slice::from_ref(&right_id))
            }
            _ => return,
        };
        let Some(name) = name.filter(|name| self.schema.has_wildcard(name)).map(str::to_owned) else { return };
        let all = format!("{ALL:?}");
        let shown: Vec<String> = texts.iter().map(|text| self.shown(*text)).collect();
        if self.strict || shown.contains(&all) || self.is_asked_for_all(&name) || !self.is_claimed(left_id, right_id) {
            return;
        }
        let asked = format!("# in [{}, {all}]", shown.join(", "));
        let advice = match list {
            Some(list) => format!("any({}, {asked})", self.shown(list)),
            None => asked,
        };
        let message =
            format!("{all} in `{name}` stands for everything, and this rule does not ask for it: write `{advice}`");
        self.warn(at, message);
    }

    /// The name of the field whose elements the innermost predicate goes through.
    fn list_of_item(&self) -> Option<&str> {
        match &self.scopes.last()?.item.origin.as_ref()?.path[..] {
            [.., Segment::Field(name), Segment::Each] => Some(name),
            _ => None,
        }
    }

    /// Whether lists of this name are asked for `*` anywhere in the expression.
    fn is_asked_for_all(&self, name: &str) -> bool {
        let tree = self.tree;
        let is_all = |id: Id| matches!(tree.kind(id), Syntax::Text(text) if text.as_ref() == ALL);
        let is_named = |id: Id| self.last_name(id) == Some(name);
        tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Binary(Binary::In, left, right) => is_all(*left) && is_named(*right),
            Syntax::Builtin { name: "any", arguments } => {
                let [list, body] = arguments[..] else { return false };
                is_named(list) && self.has(body, is_all)
            }
            _ => false,
        })
    }
}

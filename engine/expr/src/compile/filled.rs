//! Lists that Kubernetes fills in where they are empty, by what else is there: a NetworkPolicy without `policyTypes` is one for Ingress. Who
//! asks a file whether `"Ingress"` is in one hears no.

use super::Compiler;
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    print::written,
    schema::ObjectId,
};

/// How many different lists are told. Nobody names more in one expression.
const MAX_LISTS: usize = 16;

impl<'s> Compiler<'s> {
    /// Notes that a list is read that may be filled in later.
    pub(super) fn note_filled(&mut self, id: Id, object: Option<ObjectId>) {
        let (Some(name), Some(object)) = (self.last_name(id), object) else { return };
        let filled = self.schema.filled_list(&self.schema.object(object).name, name);
        self.filled.extend(filled.filter(|_| !self.strict).map(|filled| (id, filled)));
    }

    /// Warns of `"Ingress" in .policyTypes`, and of `any(.policyTypes, # == "Ingress")`, where the expression does not ask whether the list
    /// is empty.
    pub(super) fn warn_of_filled(&mut self) {
        let mut seen: Vec<String> = Vec::new();
        for (list, filled) in std::mem::take(&mut self.filled) {
            let shown = self.shown(list);
            if seen.len() == MAX_LISTS || seen.contains(&shown) {
                continue;
            }
            seen.push(shown.clone());
            if self.is_emptiness_asked(&shown) {
                continue;
            }
            let nodes = (0..self.tree.nodes.len() as u32).map(Id);
            let asked = nodes.filter_map(|id| self.asked_of_filled(id, list)).max_by_key(|(id, ..)| id.0);
            let Some((asked, word, is_positive)) = asked else { continue };
            let Some((_, field)) = filled.texts.iter().find(|(text, _)| *text == word) else { continue };
            let other = field.and_then(|field| Some(format!("{}{field}", shown.strip_suffix(filled.list)?)));
            let condition = written(self.tree, asked);
            let advice = match (is_positive, &other) {
                (true, None) => format!("({condition} || {shown} == nil)"),
                (true, Some(other)) => format!("({condition} || {shown} == nil && {other} != nil)"),
                (false, None) => format!("({condition} && {shown} != nil)"),
                (false, Some(other)) => format!("({condition} && ({shown} != nil || {other} == nil))"),
            };
            let told = match &other {
                None => format!("Kubernetes puts {word:?} into it then"),
                Some(other) => format!("Kubernetes puts {word:?} into it then if there is `{other}`"),
            };
            let message = format!("`{shown}` may be missing in a file, and {told}: write `{advice}`");
            self.warn(self.at(list), message);
        }
    }

    /// The question about a list that a node is, if it is one: the node, the text that is looked for, and whether it is asked to be there.
    fn asked_of_filled(&self, id: Id, list: Id) -> Option<(Id, &'s str, bool)> {
        let tree = self.tree;
        match tree.kind(id) {
            Syntax::Binary(Binary::In, text, haystack) if *haystack == list => match tree.kind(*text) {
                Syntax::Text(text) => Some((id, text.as_ref(), true)),
                _ => None,
            },
            // `x not in y`, which has the place of its operator.
            Syntax::Unary(Unary::Not { word: true }, inner) if self.at(id) == self.at(*inner) => {
                self.asked_of_filled(*inner, list).map(|(_, text, is_positive)| (id, text, !is_positive))
            }
            Syntax::Builtin { name: name @ ("any" | "none"), arguments } if arguments.first() == Some(&list) => {
                let text = self.first_text(*arguments.get(1)?)?;
                Some((id, text, *name == "any"))
            }
            _ => None,
        }
    }

    fn first_text(&self, id: Id) -> Option<&'s str> {
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            if let Syntax::Text(text) = self.tree.kind(id) {
                return Some(text.as_ref());
            }
            self.tree.kind(id).each_child(|child| rest.push(child));
        }
        None
    }

    /// Whether a list is asked whether there is anything in it.
    pub(super) fn is_emptiness_asked(&self, shown: &str) -> bool {
        let tree = self.tree;
        tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Binary(Binary::Equal | Binary::NotEqual, left, right) => {
                let is_nothing = |id: Id| match tree.kind(id) {
                    Syntax::Nil => true,
                    Syntax::Array(elements) => elements.is_empty(),
                    _ => false,
                };
                is_nothing(*right) && self.shown(*left) == shown || is_nothing(*left) && self.shown(*right) == shown
            }
            Syntax::Binary(Binary::Coalesce, left, _) => self.shown(*left) == shown,
            Syntax::Builtin { name: "len", arguments } => {
                arguments.first().is_some_and(|list| self.shown(*list) == shown)
            }
            _ => false,
        })
    }
}

//! Lists of which only a part is asked: the first element, where others do the same, and one list of several that hold the same, such as the
//! containers of a pod without those that run before them. Who knows that gets around such a rule.

use super::{Compiler, Typed};
use crate::{
    ast::{Id, Kind as Syntax},
    habits::MAX_SHOWN,
    print::written,
    schema::{ObjectId, Siblings},
};

impl<'s> Compiler<'s> {
    /// Notes that one of several objects is chosen by its place.
    pub(super) fn note_index(&mut self, id: Id, (list, base): (Id, &Typed<'s>), index: Id) {
        let is_number = matches!(self.tree.kind(index), Syntax::Integer(_));
        let is_ranked = self.last_name(list).is_some_and(|name| self.schema.is_ranked(name));
        if is_number && !self.strict && !is_ranked && base.known.element().form.object().is_some() {
            self.indexed.push((id, list));
        }
    }

    /// Notes that a list is read beside which there are others of the same.
    pub(super) fn note_siblings(&mut self, id: Id, name: &str, object: Option<ObjectId>) {
        let Some(object) = object.filter(|_| !self.strict) else { return };
        let is_meant =
            |siblings: &&Siblings| siblings.list == name && self.schema.object(object).name == siblings.object;
        self.beside.extend(self.schema.siblings().iter().find(is_meant).map(|siblings| (id, siblings)));
    }

    /// Warns of `spec.containers[0].tty`, which says nothing of the second container.
    pub(super) fn warn_of_indices(&mut self) {
        let mut told: Vec<String> = Vec::new();
        for (id, list) in std::mem::take(&mut self.indexed) {
            let (one, all) = (self.shown(id), self.shown(list));
            if told.contains(&one) || self.is_emptiness_asked(&all) || self.is_of_status(list) {
                continue;
            }
            let advice = self.asked_of_each(id, &one, &all);
            let meant =
                if one.ends_with("[0]") { format!(", or `first({all})` to mean that one") } else { String::new() };
            self.warn(
                self.at(id),
                format!("`{one}` is one of them alone, and there may be more: write `{advice}`{meant}"),
            );
            told.push(one);
        }
    }

    /// What is asked of one element, asked of each. Only its form where that says more.
    fn asked_of_each(&self, id: Id, one: &str, all: &str) -> String {
        let form = || format!("any({all}, …)");
        let Some((question, truth)) = self.question_about(id) else { return form() };
        let text = written(self.tree, question);
        let field = format!("{one}.");
        let is_told = text.matches(&field).count() == 1 && text.chars().count() <= MAX_SHOWN;
        // The element of a predicate around it would be another one in there.
        if !is_told || self.items_in(question) != self.items_in(id) {
            return form();
        }
        let predicate = if truth { "any" } else { "all" };
        format!("{predicate}({all}, {})", text.replacen(&field, ".", 1))
    }

    /// How often the element of the predicate around something is named in it.
    fn items_in(&self, id: Id) -> usize {
        let (mut rest, mut items) = (vec![id], 0);
        while let Some(id) = rest.pop() {
            match self.tree.kind(id) {
                Syntax::Pointer(_) => items += 1,
                // There it is another one.
                Syntax::Predicate(_) => {}
                kind => kind.each_child(|child| rest.push(child)),
            }
        }
        items
    }

    /// Warns of `any(spec.containers, .securityContext.privileged)`, which says nothing of init containers.
    pub(super) fn warn_of_siblings(&mut self) {
        let lists = std::mem::take(&mut self.beside);
        if lists.is_empty() {
            return;
        }
        let ids: Vec<Id> = lists.iter().map(|(id, _)| *id).collect();
        for (question, list, _) in self.asked_of_lists(&ids) {
            let Some((_, siblings)) = lists.iter().find(|(id, _)| *id == list) else { continue };
            let is_other = |name: &&str| self.is_named(name) || self.has_root(siblings.element);
            if siblings.others.iter().any(is_other) || !siblings.fields.iter().any(|field| self.is_named(field)) {
                continue;
            }
            let (shown, whole) = (self.shown(list), written(self.tree, question));
            let Some(base) = shown.strip_suffix(siblings.list) else { continue };
            let others = siblings.others.iter().map(|other| format!("{base}{other}"));
            let all: Vec<String> = std::iter::once(shown.clone()).chain(others).collect();
            let together = format!("concat({})", all.join(", "));
            let whole = match whole.matches(&shown).count() {
                1 if whole.chars().count() <= MAX_SHOWN => whole.replacen(&shown, &together, 1),
                _ => format!("any({together}, …)"),
            };
            let message = format!(
                "`{shown}` {}, and this rule says nothing of those: write `{whole}`, or ask `{}`, which is each of them",
                siblings.what, siblings.element
            );
            self.warn(self.at(list), message);
            break;
        }
    }

    /// Whether a root is read anywhere.
    fn has_root(&self, name: &str) -> bool {
        self.tree.nodes.iter().any(|node| matches!(node.kind, Syntax::Identifier(root) if root == name))
    }
}

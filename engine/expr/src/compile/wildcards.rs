//! Lists in which a text stands for everything, or for more than one thing: `*` in the rules of a role, `*/exec`, `ALL` of capabilities. Who asks
//! whether `"secrets"` is in one lets pass whoever writes `*`, which is more.

use super::{Compiler, Typed};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    facts::Segment,
    schema::Wildcard,
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Warns of `"secrets" in .resources`, and of `any(.verbs, # == "get")`, where the rule is true because of it and does not ask for `*`; and
    /// of `"NET_RAW" not in .drop`, where it is true because of that.
    pub(super) fn warn_of_wildcard(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let tree = self.tree;
        if let (Binary::Equal | Binary::NotEqual, Syntax::Array(elements)) = (operator, tree.kind(right_id)) {
            return self.warn_of_exactly(at, operator, left_id, elements);
        }
        let (name, list, asked) = match (operator, tree.kind(left_id), tree.kind(right_id)) {
            (Binary::In, Syntax::Text(_), _) if right.known.kind.element() == Type::TEXT => {
                (self.last_name(right_id), Some(right_id), vec![left_id])
            }
            (Binary::In, Syntax::Pointer(""), Syntax::Member { .. }) if right.known.kind.element() == Type::TEXT => {
                return self.warn_of_each(at, left_id, right_id);
            }
            (Binary::In, Syntax::Pointer(""), Syntax::Array(elements)) if left.known.kind == Type::TEXT => {
                (self.list_of_item(), None, elements.clone())
            }
            (Binary::Equal, Syntax::Pointer(""), Syntax::Text(_)) if left.known.kind == Type::TEXT => {
                (self.list_of_item(), None, vec![right_id])
            }
            _ => return,
        };
        let Some(wildcard) = name.and_then(|name| self.schema.wildcard(name)) else { return };
        let name = wildcard.list;
        let Some(texts) = asked.iter().map(|id| self.text_at(*id)).collect::<Option<Vec<&str>>>() else { return };
        if self.tells_meant(at, wildcard, &texts) {
            return;
        }
        if self.strict || self.is_claimed(left_id, right_id) == wildcard.takes_away || texts.contains(&wildcard.all) {
            return self.warn_of_parts(at, wildcard, list, &texts, (left_id, right_id));
        }
        let mut more = wildcard.of(&texts, self.is_of_hook(list));
        more.retain(|text| !self.is_asked_of(name, text));
        // Whoever asks for everything has seen to what stands for it, but for parts of it.
        if self.is_asked_of(name, wildcard.all) && more.iter().all(|text| !text.contains('/')) {
            return;
        }
        self.tell_wildcard(at, wildcard, list, &texts, &more);
    }

    /// Warns of `.verbs == ["*"]`, which is not true of whoever has something beside it.
    fn warn_of_exactly(&mut self, at: u32, operator: Binary, list: Id, elements: &[Id]) {
        let Some(wildcard) = self.last_name(list).and_then(|name| self.schema.wildcard(name)) else { return };
        let [element] = elements else { return };
        if self.strict || self.text_at(*element) != Some(wildcard.all) {
            return;
        }
        let (all, list) = (wildcard.all, self.shown(list));
        let not = if operator == Binary::Equal { "" } else { "not " };
        let message = format!("who has something beside {all:?} has everything too: write `{all:?} {not}in {list}`");
        self.warn(at, message);
    }

    /// Warns of `any(["get", "list"], # in .verbs)`, which says nothing of `*`.
    fn warn_of_each(&mut self, at: u32, item: Id, list: Id) {
        let Some(wildcard) = self.last_name(list).and_then(|name| self.schema.wildcard(name)) else { return };
        let Some(Syntax::Array(elements)) = self.scopes.last().map(|scope| self.tree.kind(scope.collection)) else {
            return;
        };
        let Some(texts) = elements.iter().map(|id| self.text_at(*id)).collect::<Option<Vec<&str>>>() else { return };
        let all = wildcard.all;
        if self.tells_meant(at, wildcard, &texts) {
            return;
        }
        if self.strict
            || texts.contains(&all)
            || self.is_claimed(item, list) == wildcard.takes_away
            || self.is_asked_of(wildcard.list, all)
        {
            return;
        }
        if wildcard.takes_away {
            let (name, list) = (wildcard.list, self.shown(list));
            let message = format!(
                "{all:?} in `{name}` stands for everything, and this rule does not ask for it: write `{all:?} not in {list} && …` before it"
            );
            return self.warn(at, message);
        }
        let more = wildcard.of(&texts, self.is_of_hook(Some(list)));
        self.tell_wildcard(at, wildcard, Some(list), &texts, &more);
    }

    /// Warns of `"Secret" in .resources`, where there are names in small letters.
    fn tells_meant(&mut self, at: u32, wildcard: &'static Wildcard, texts: &[&str]) -> bool {
        let meant = texts.iter().find_map(|text| Some((text, (wildcard.meant)(text)?)));
        let Some((text, (because, meant))) = meant.filter(|_| !self.strict) else { return false };
        // Whoever asks for both knows.
        if texts.contains(&&*meant) || self.is_asked_of(wildcard.list, &meant) {
            return false;
        }
        self.warn(at, format!("{text:?} {because}: put `{meant:?}` in its place"));
        true
    }

    /// Warns of `# in ["pods/exec", "*"]`, which says nothing of `*/exec`.
    fn warn_of_parts(
        &mut self,
        at: u32,
        wildcard: &'static Wildcard,
        list: Option<Id>,
        texts: &[&str],
        (left_id, right_id): (Id, Id),
    ) {
        if self.strict || wildcard.takes_away || !self.is_claimed(left_id, right_id) {
            return;
        }
        let mut more = wildcard.of(texts, self.is_of_hook(list));
        more.retain(|text| text.contains('/') && !self.is_asked_of(wildcard.list, text));
        self.tell_wildcard(at, wildcard, list, texts, &more);
    }

    fn tell_wildcard(
        &mut self,
        at: u32,
        wildcard: &'static Wildcard,
        list: Option<Id>,
        texts: &[&str],
        more: &[String],
    ) {
        if more.is_empty() {
            return;
        }
        let name = wildcard.list;
        let quoted = |text: &str| format!("{text:?}");
        let all: Vec<String> =
            texts.iter().map(|text| quoted(text)).chain(more.iter().map(|text| quoted(text))).collect();
        let asked = format!("# in [{}]", all.join(", "));
        let advice = match list {
            Some(list) => {
                let any = if self.is_negated(at) { "none" } else { "any" };
                format!("{any}({}, {asked})", self.shown(list))
            }
            None => asked,
        };
        let more: Vec<String> = more.iter().map(|text| quoted(text)).collect();
        let told = match &more[..] {
            [one] if *one == quoted(wildcard.all) => format!("{one} in `{name}` stands for everything"),
            [one] => format!("{one} in `{name}` stands for it too"),
            [others @ .., last] => format!("{} and {last} in `{name}` stand for it too", others.join(", ")),
            [] => return,
        };
        let them = if more.len() > 1 { "them" } else { "it" };
        let message = format!("{told}, and this rule does not ask for {them}: write `{advice}`");
        self.warn(at, message);
    }

    /// Whether a list is one of the rules by which requests are chosen, where parts of things are not meant with them.
    fn is_of_hook(&self, list: Option<Id>) -> bool {
        let (list, outer) = match list {
            Some(list) => (list, self.scopes.len()),
            None => match self.scopes.last() {
                Some(scope) => (scope.collection, self.scopes.len() - 1),
                None => return false,
            },
        };
        let Syntax::Member { base, .. } = self.tree.kind(list) else { return false };
        let form = match self.tree.kind(*base) {
            Syntax::Pointer("") => outer.checked_sub(1).map(|outer| self.scopes[outer].item.form.clone()),
            _ => self.form_of(*base),
        };
        let object = form.and_then(|form| form.object());
        object.is_some_and(|id| self.schema.object(id).fields.contains_key("operations"))
    }

    fn text_at(&self, id: Id) -> Option<&'s str> {
        match self.tree.kind(id) {
            Syntax::Text(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// The name of the field whose elements the innermost predicate goes through.
    pub(super) fn list_of_item(&self) -> Option<&str> {
        match &self.scopes.last()?.item.origin.as_ref()?.path[..] {
            [.., Segment::Field(name), Segment::Each] => Some(name),
            _ => None,
        }
    }

    /// Whether lists of this name are asked for a text anywhere in the expression.
    fn is_asked_of(&self, name: &str, text: &str) -> bool {
        let tree = self.tree;
        let is_text = |id: Id| self.text_at(id) == Some(text);
        let is_named = |id: Id| self.last_name(id) == Some(name);
        tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Binary(Binary::In, left, right) => is_text(*left) && is_named(*right),
            Syntax::Builtin { name: "any" | "none" | "all", arguments } => {
                let [list, body] = arguments[..] else { return false };
                is_named(list) && self.has(body, is_text)
            }
            _ => false,
        })
    }
}

impl Wildcard {
    /// The texts that stand for one of these too, and are not among them. Where parts are apart, `*` does not stand for them.
    fn of(&self, texts: &[&str], parts_are_apart: bool) -> Vec<String> {
        let all = self.all;
        let mut more = Vec::new();
        // Nor does it stand for parts, which have a text of their own that stands for all of them.
        if parts_are_apart && self.has_parts && texts.contains(&all) {
            more.push(format!("{all}/{all}"));
        }
        for text in texts.iter().filter(|text| !text.contains(all)) {
            match text.split_once('/').filter(|_| self.has_parts) {
                Some((whole, part)) if parts_are_apart => {
                    more.extend([format!("{whole}/{all}"), format!("{all}/{part}"), format!("{all}/{all}")]);
                }
                Some((_, part)) => more.extend([format!("{all}/{part}"), all.to_owned()]),
                None if parts_are_apart && self.has_parts => more.extend([all.to_owned(), format!("{all}/{all}")]),
                None => more.push(all.to_owned()),
            }
        }
        let mut seen: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        more.retain(|text| {
            !seen.contains(text) && {
                seen.push(text.clone());
                true
            }
        });
        more
    }
}

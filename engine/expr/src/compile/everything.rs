//! What stands for everything although it does not say so: a field that is left out, such as the key of a toleration, a list that is empty, such
//! as the peers of a rule of a NetworkPolicy, and a network that is all addresses of one kind. Who looks for one value passes over it.

use super::{Compiler, Typed, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    habits::MAX_SHOWN,
    print::written,
    schema::ObjectId,
};

/// All addresses of IPv4, and of IPv6.
const ALL_ADDRESSES: [&str; 2] = ["0.0.0.0/0", "::/0"];

impl<'s> Compiler<'s> {
    /// Warns of `.key == "a"` where a key that is left out stands for every key.
    pub(super) fn warn_of_everything(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let is_text = matches!(operator, Binary::StartsWith | Binary::EndsWith | Binary::Contains | Binary::Matches);
        if self.strict || !is_text && !matches!(operator, Binary::Equal | Binary::In) || self.is_negated(at) {
            return;
        }
        let is_constant = |id: Id| matches!(self.tree.kind(id), Syntax::Text(_) | Syntax::Array(_));
        let (id, field) = match (is_constant(left_id), is_constant(right_id)) {
            (false, true) => (left_id, left),
            (true, false) if operator == Binary::Equal => (right_id, right),
            _ => return,
        };
        // What is missing is that too.
        let is_empty = |id: Id| matches!(self.tree.kind(id), Syntax::Text(text) if text.is_empty());
        if is_empty(left_id) || is_empty(right_id) {
            return;
        }
        let Some(is_both_ways) = self.stands_for_all(id).filter(|_| field.known.may_be_nil) else { return };
        if self.is_asked(id) || !is_both_ways && !self.is_claimed(left_id, right_id) {
            return;
        }
        let (text, sign) = (self.shown(id), name_of(operator));
        let (one, other) = (self.shown(left_id), self.shown(right_id));
        let message = format!(
            "`{text}` may be missing, and stands for everything then, which this rule does not ask for: write \
             `({text} == nil || {one} {sign} {other})`, or `{text} != nil && {one} {sign} {other}` to leave out what has none"
        );
        self.warn(field.op.at, message);
    }

    /// Whether whoever looks for a value that is not there must ask too, if a field stands for everything where it is missing.
    fn stands_for_all(&self, id: Id) -> Option<bool> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let name = self.last_name(id).filter(|name| self.schema.all_without(None, name).is_some())?;
        let object = self.form_of(*base)?.object()?;
        self.schema.all_without(Some(&self.schema.object(object).name), name)
    }

    /// Warns of `.tolerationSeconds > 600`, where one that is left out is for ever.
    pub(super) fn warn_of_unbounded(
        &mut self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let (id, field, other) = match operator {
            Binary::Greater | Binary::GreaterOrEqual => (left_id, left, right),
            Binary::Less | Binary::LessOrEqual => (right_id, right, left),
            _ => return,
        };
        if self.strict || !field.known.may_be_nil || !self.is_fixed(&other.op) || self.is_asked(id) {
            return;
        }
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return };
        let Some(name) = self.last_name(id).filter(|name| self.schema.is_unbounded(None, name)) else { return };
        let object = self.form_of(*base).and_then(|form| form.object());
        let is_meant = |object| self.schema.is_unbounded(Some(&self.schema.object(object).name), name);
        if !object.is_some_and(is_meant) || !self.is_claimed(left_id, right_id) {
            return;
        }
        let (text, sign) = (self.shown(id), name_of(operator));
        let compared = format!("{} {sign} {}", self.shown(left_id), self.shown(right_id));
        let asked = self.within(&[id], format!("({text} == nil || {compared})"));
        let message = format!(
            "`{text}` may be missing, and has no bound then, which this rule does not ask for: write `{asked}`, or \
             `{text} != nil && {compared}` to leave out what has none"
        );
        self.warn(field.op.at, message);
    }

    /// Warns of `.cidr == "0.0.0.0/0"`, which says nothing of `::/0`.
    pub(super) fn warn_of_all_addresses(&mut self, at: u32, operator: Binary, left_id: Id, right_id: Id) {
        let [own, other] = ALL_ADDRESSES;
        let tree = self.tree;
        let is_own = |id: Id| matches!(tree.kind(id), Syntax::Text(text) if text.as_ref() == own);
        let advice = match (operator, tree.kind(right_id)) {
            (Binary::Equal, _) if is_own(right_id) => format!("{} in [{own:?}, {other:?}]", self.shown(left_id)),
            (Binary::Equal, _) if is_own(left_id) => format!("{} in [{own:?}, {other:?}]", self.shown(right_id)),
            (Binary::In, Syntax::Array(elements)) if elements.iter().any(|id| is_own(*id)) => {
                let shown: Vec<String> = elements.iter().map(|element| self.shown(*element)).collect();
                format!("{} in [{}, {other:?}]", self.shown(left_id), shown.join(", "))
            }
            (Binary::In, _) if is_own(left_id) => {
                format!("any({}, # in [{own:?}, {other:?}])", self.shown(right_id))
            }
            _ => return,
        };
        let is_other = |id: Id| matches!(tree.kind(id), Syntax::Text(text) if text.as_ref().contains(other));
        let ids = (0..tree.nodes.len() as u32).map(Id);
        if self.strict || ids.into_iter().any(is_other) || !self.is_claimed(left_id, right_id) {
            return;
        }
        let message = format!(
            "{own:?} is all addresses of IPv4, and {other:?} all of IPv6, which this rule does not ask for: write `{advice}`"
        );
        self.warn(at, message);
    }

    /// Notes that a list is read that stands for everything where it is empty.
    pub(super) fn note_open_list(&mut self, id: Id, name: &str, object: Option<ObjectId>) {
        if let (false, Some(object), Some(_)) = (self.strict, object, self.schema.open_list(None, name)) {
            let all = self.schema.open_list(Some(&self.schema.object(object).name), name);
            self.open_lists.extend(all.map(|all| (id, all)));
        }
    }

    /// Warns of `any(.to, …)`, where no peer at all means every peer: what is looked for is let through too.
    pub(super) fn warn_of_open_lists(&mut self) {
        let lists = std::mem::take(&mut self.open_lists);
        if lists.is_empty() {
            return;
        }
        let ids: Vec<Id> = lists.iter().map(|(id, _)| *id).collect();
        for (asked, list, is_positive) in self.asked_of_lists(&ids) {
            let (shown, whole) = (self.shown(list), written(self.tree, asked));
            let Some((_, all)) = lists.iter().find(|(id, _)| *id == list) else { continue };
            if self.is_emptiness_asked(&shown) {
                continue;
            }
            let whole = if whole.chars().count() > MAX_SHOWN { "…".to_owned() } else { whole };
            let advice = match is_positive {
                true => format!(
                    "write `({shown} == nil || {whole})`, or `{shown} != nil && {whole}` to leave out what has none"
                ),
                false => format!("write `({shown} != nil && {whole})`"),
            };
            let message = format!(
                "`{shown}` may be empty, and stands for {all} then, which this rule does not ask for: {advice}"
            );
            self.warn(self.at(list), message);
        }
    }
}

//! What stands for everything although it does not say so: a field that is left out, such as the key of a toleration, and a network that is all
//! addresses of one kind. Who looks for one value passes over it.

use super::{Compiler, Typed, operators::name_of};
use crate::ast::{Binary, Id, Kind as Syntax};

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
        if !field.known.may_be_nil || !self.stands_for_all(id) || self.is_asked(id) {
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

    /// Whether a field stands for everything where it is missing.
    fn stands_for_all(&self, id: Id) -> bool {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return false };
        let Some(name) = self.last_name(id).filter(|name| self.schema.is_all_without(None, name)) else { return false };
        let Some(object) = self.form_of(*base).and_then(|form| form.object()) else { return false };
        self.schema.is_all_without(Some(&self.schema.object(object).name), name)
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
}

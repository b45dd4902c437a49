//! Objects that are one of several things, and say which by the field that they have: a volume has `csi`, or `hostPath`, and none of the others.
//! What is asked below one of these fields is asked of whatever is another thing too, where it is missing.

use super::{Compiler, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    habits::MAX_SHOWN,
};

impl<'s> Compiler<'s> {
    /// Warns of `any(spec.volumes, .csi.driver != "a")`, which is true of a volume that is no CSI volume at all.
    pub(super) fn warn_of_other_sort(&mut self, at: u32, operator: Binary, left: Id, right: Id) {
        if self.strict {
            return;
        }
        for (id, other, is_left) in [(left, right, true), (right, left, false)] {
            let Some(sort) = self.sort_above(id) else { continue };
            let Some(truth) = self.relation_without(operator, None, other, is_left) else { continue };
            if self.is_present(sort) || self.is_asked(sort) || !self.is_decided(left, right, truth) {
                continue;
            }
            let sign =
                if self.is_negated(at) { format!("not {}", name_of(operator)) } else { name_of(operator).into() };
            let relation = format!("{} {sign} {}", self.shown(left), self.shown(right));
            let relation = if relation.chars().count() > MAX_SHOWN { "…".to_owned() } else { relation };
            let sort_text = self.shown(sort);
            let (both, either) =
                (format!("{sort_text} != nil && {relation}"), format!("({sort_text} == nil || {relation})"));
            // In a negation it is the other way round.
            let (without, with) = if truth || self.is_negated(at) { (both, either) } else { (either, both) };
            self.warn(
                self.at(id),
                format!(
                    "`{sort_text}` is missing where there is another thing in its place, and the rule is true of all those: write \
                     `{without}` to leave them out, or `{with}` to mean them too"
                ),
            );
            return;
        }
    }

    /// The field above another one that says which of several things its object is.
    fn sort_above(&self, id: Id) -> Option<Id> {
        let mut node = id;
        loop {
            node = match self.tree.kind(node) {
                Syntax::Member { base, .. } => *base,
                Syntax::Chain(inner) => *inner,
                _ => return None,
            };
            let Syntax::Member { base, .. } = self.tree.kind(node) else { continue };
            let Some(name) = self.last_name(node) else { continue };
            let is_sort = |id| self.schema.is_sort(&self.schema.object(id).name, name);
            let form = self.form_of(*base);
            if form.is_some_and(|form| form.alternatives().iter().any(|form| form.object().is_some_and(is_sort))) {
                return Some(node);
            }
        }
    }
}

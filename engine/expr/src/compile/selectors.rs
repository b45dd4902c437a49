//! Label selectors. One without labels may still select few things, by expressions, and one with some of an object's labels selects it.

use super::{Compiler, Typed};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    types::Type,
};

/// The labels that a selector asks for, and what it asks for beside them.
const LABELS: &str = "matchLabels";
const EXPRESSIONS: &str = "matchExpressions";

impl<'s> Compiler<'s> {
    /// Warns of `selector.matchLabels == nil`, which is true of a selector that has expressions.
    pub(super) fn warn_of_half_selector(&mut self, at: u32, operator: Binary, id: Id) {
        let Some(selector) = self.selector_of(id) else { return };
        let ids = || (0..self.tree.nodes.len() as u32).map(Id);
        let is_asked = ids().any(|id| self.last_name(id) == Some(EXPRESSIONS));
        let shown = self.shown(id);
        // Whoever reads the labels for more than this asks for something else.
        let is_read = |other: &Id| {
            matches!(self.tree.kind(*other), Syntax::Member { .. })
                && self.last_name(*other) == Some(LABELS)
                && self.shown(*other) == shown
        };
        if self.strict || is_asked || ids().filter(is_read).count() > 1 {
            return;
        }
        let (selector, sign) = (self.shown(selector), if operator == Binary::Equal { "==" } else { "!=" });
        let message = format!(
            "`{selector}` may have `{EXPRESSIONS}` alone, and selects few things then: write `{selector} {sign} {{}}` to ask \
             whether it selects everything"
        );
        self.warn(at, message);
    }

    /// What labels of a selector are a field of.
    fn selector_of(&self, id: Id) -> Option<Id> {
        if self.last_name(id) != Some(LABELS) {
            return None;
        }
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let object = self.form_of(*base)?.object()?;
        self.schema.object(object).fields.contains_key(EXPRESSIONS).then_some(*base)
    }

    /// Warns of `selector == labels`: whoever has more labels is selected too. Whether it did.
    pub(super) fn warn_of_equal_labels(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> bool {
        let is_map = |typed: &Typed<'s>| typed.known.kind == Type::MAP;
        if self.strict || !matches!(operator, Binary::Equal | Binary::NotEqual) || !is_map(left) || !is_map(right) {
            return false;
        }
        let is_labels = |id: Id| self.last_name(id) == Some("labels");
        let selector = |id: Id| match self.last_name(id)? {
            "selector" => Some(id),
            _ => self.selector_of(id),
        };
        let (selector, labels) = match (selector(left_id), selector(right_id)) {
            (Some(selector), None) if is_labels(right_id) => (selector, right_id),
            (None, Some(selector)) if is_labels(left_id) => (selector, left_id),
            _ => return false,
        };
        let not = if operator == Binary::NotEqual { "not " } else { "" };
        let message = format!(
            "a selector selects whatever has its labels, also if it has others too: write `{not}selects({}, {})`",
            self.shown(selector),
            self.shown(labels)
        );
        self.warn(at, message);
        true
    }
}

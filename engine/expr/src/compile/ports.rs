//! Ports, which are told by their number or by their name. Who asks for a number says nothing of names, nor of ranges.

use super::{Compiler, Typed, guards::without_default, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    print::written,
    types::Type,
};

/// The field that says where a range of ports ends that begins with another field.
const END: &str = "endPort";

impl<'s> Compiler<'s> {
    /// Warns of `.targetPort == 22`, where the port may be told by its name. `id` is the port.
    pub(super) fn warn_of_port(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
        id: Id,
    ) {
        let (other_id, other) = if id == left_id { (right_id, right) } else { (left_id, left) };
        let field = if id == left_id { left } else { right };
        // Of what something else counts for that is told first.
        if self.is_number(id) || self.is_text(id) || self.is_name_known(id) || self.fallback(id).is_some() {
            return;
        }
        let is_numbers = match self.tree.kind(other_id) {
            Syntax::Integer(_) => true,
            Syntax::Array(elements) => {
                !elements.is_empty() && elements.iter().all(|id| matches!(self.tree.kind(*id), Syntax::Integer(_)))
            }
            _ => false,
        };
        let is_equal = operator != Binary::NotEqual && !self.is_negated(at);
        if !is_numbers {
            if other.known.kind == Type::INT && operator != Binary::In {
                self.warn_of_compared_port(at, is_equal, id, other_id);
            }
            return;
        }
        let sign = match operator {
            Binary::In if !is_equal => "not in",
            operator => name_of(operator),
        };
        let whole = |text: &str| match id == left_id {
            true => format!("{text} {sign} {}", self.shown(other_id)),
            false => format!("{} {sign} {text}", self.shown(other_id)),
        };
        let (named, text) = match self.way(id) {
            Some(_) => (String::new(), self.shown(id)),
            // Of what is put together nobody knows further on what it is, unless it has a name.
            None => (format!("let port = {}; ", written(self.tree, id)), "port".to_owned()),
        };
        let advice = match (is_equal, self.range_of_ports(id), self.tree.kind(other_id)) {
            (true, Some(end), Syntax::Integer(number)) => format!(
                "({text} == nil || type({text}) == \"string\" || {} || {text} < {number} && {end} >= {number})",
                whole(&text)
            ),
            (true, ..) => format!("{named}({} || type({text}) == \"string\")", whole(&text)),
            (false, ..) => format!("{named}(type({text}) == \"string\" || {})", whole(&text)),
        };
        let range = if self.range_of_ports(id).is_some() && is_equal {
            ", missing for all ports, or the first of a range"
        } else {
            ""
        };
        let message = format!(
            "`{}` may be the name of a port{range}, which this says nothing of: write `{advice}` to ask for those too, or \
             `{named}type({text}) == \"int\" && {}` to leave them out",
            self.shown(id),
            whole(&text)
        );
        self.warn(field.op.at, message);
    }

    /// Warns of `.containerPort == probe.port`, where the one is a number and the other may be a name.
    fn warn_of_compared_port(&mut self, at: u32, is_equal: bool, id: Id, number: Id) {
        let Syntax::Member { base, .. } = self.tree.kind(number) else { return };
        let object = self.form_of(*base).and_then(|form| form.object());
        let has_name = object.is_some_and(|id| self.schema.object(id).fields.contains_key("name"));
        let (text, number_text) = (self.shown(id), self.shown(number));
        let (Some(field), true) = (self.last_name(number), has_name) else { return };
        let Some(base) = number_text.strip_suffix(field) else { return };
        // What is beside a port is called by a name of its own, and the port is one of something else.
        let is_beside = |id: Id| {
            let text = self.shown(id);
            matches!(self.tree.kind(id), Syntax::Member { .. })
                && self.last_name(id).is_some_and(|name| text.strip_suffix(name) == Some(base))
        };
        if self.has(id, is_beside) {
            let sign = if is_equal { "==" } else { "!=" };
            let (named, port) = match self.way(id) {
                Some(_) => (String::new(), text.clone()),
                None => (format!("let port = {}; ", written(self.tree, id)), "port".to_owned()),
            };
            let message = format!(
                "`{text}` may be the name of a port, which is no number: write `{named}type({port}) == \"int\" && {number_text} {sign} {port}` \
                 to leave out what is told by its name"
            );
            return self.warn(at, message);
        }
        let sign = if is_equal { "in" } else { "not in" };
        let message = format!(
            "`{text}` may be the name of a port, which is no number: write `{text} {sign} [{number_text}, {base}name]` for both"
        );
        self.warn(at, message);
    }

    /// Where the range ends that a port begins, if it can be one.
    fn range_of_ports(&self, id: Id) -> Option<String> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let object = self.form_of(*base)?.object()?;
        let has_end = self.schema.object(object).fields.contains_key(END);
        let text = self.shown(id);
        let base = text.strip_suffix(self.last_name(id)?)?;
        has_end.then(|| format!("{base}{END}"))
    }

    /// Whether the expression asks what something is, or compares it with a name.
    fn is_name_known(&self, id: Id) -> bool {
        let tree = self.tree;
        let text = self.shown(without_default(tree, id));
        let is_same = |other: Id| {
            let other = without_default(tree, other);
            matches!(tree.kind(other), Syntax::Member { .. } | Syntax::Identifier(_) | Syntax::Pointer(_))
                && self.shown(other) == text
        };
        let is_name = |id: Id| matches!(tree.kind(id), Syntax::Text(_));
        let has_name = |id: Id| match tree.kind(id) {
            Syntax::Array(elements) => elements.iter().any(|element| is_name(*element)),
            _ => is_name(id),
        };
        tree.nodes.iter().any(|node| match &node.kind {
            Syntax::Builtin { name: "type" | "string", arguments } => arguments.iter().any(|id| is_same(*id)),
            Syntax::Binary(Binary::Equal | Binary::NotEqual | Binary::In, left, right) => {
                is_same(*left) && has_name(*right) || is_same(*right) && has_name(*left)
            }
            _ => false,
        })
    }

    /// Warns of `.port.number == 22`, where the port may be told by another field.
    pub(super) fn warn_of_other_field(
        &mut self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        if self.strict || !matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In) {
            return;
        }
        let is_constant =
            |id: Id| matches!(self.tree.kind(id), Syntax::Integer(_) | Syntax::Text(_) | Syntax::Array(_));
        let (id, field) = match (is_constant(left_id), is_constant(right_id)) {
            (false, true) => (left_id, left),
            (true, false) => (right_id, right),
            _ => return,
        };
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return };
        let Some(name) = self.last_name(id).filter(|name| self.schema.is_either_field(name)) else { return };
        let Some(object) = self.form_of(*base).and_then(|form| form.object()) else { return };
        let Some(other) = self.schema.other_field(&self.schema.object(object).name, name) else { return };
        let base = self.shown(*base);
        let is_other = |id: Id| matches!(self.tree.kind(id), Syntax::Member { base: of, .. } if self.last_name(id) == Some(other) && self.shown(*of) == base);
        let mut ids = (0..self.tree.nodes.len() as u32).map(Id);
        if !field.known.may_be_nil || self.is_asked(id) || ids.any(is_other) {
            return;
        }
        let (text, sign) = (self.shown(id), name_of(operator));
        let whole = format!("{} {sign} {}", self.shown(left_id), self.shown(right_id));
        let other = if base.is_empty() {
            format!(".{other}")
        } else {
            format!("{}{other}", text.strip_suffix(name).unwrap_or_default())
        };
        let message = format!(
            "there may be `{other}` in the place of `{text}`, which this says nothing of: write `({whole} || {other} != nil)` to ask for \
             those too, or `{text} != nil && {whole}` to leave them out"
        );
        self.warn(field.op.at, message);
    }
}

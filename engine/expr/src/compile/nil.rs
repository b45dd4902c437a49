//! What may be missing. A rule that compiles cannot fail because something is: where nothing can be done with nil, and where an
//! answer without a value would be a hole in the rule, its author has to say what is meant.

use super::{
    Compiler, Typed,
    form::{Form, Member},
    operators::name_of,
};
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    error::Error,
    print::{written, written_operand},
    program::{Constant, Kind, Op},
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Refuses an operand that may be missing. `whole` shows the operation with something else in place of the operand, and
    /// `default` is for values of which nothing is known.
    pub(super) fn require(
        &self,
        id: Id,
        operand: &Typed<'s>,
        default: &str,
        whole: impl Fn(&str) -> String,
    ) -> Result<(), Error> {
        if self.strict || !operand.known.may_be_nil || operand.known.kind.is_nil() {
            return Ok(());
        }
        let default = match operand.known.kind {
            Type::TEXT => "\"\"",
            Type::INT => self.default_of(id).unwrap_or("0"),
            Type::FLOAT => "0",
            Type::QUANTITY => "\"0\"",
            Type::VERSION => "semver(\"0\")",
            Type::DURATION => "duration(\"0s\")",
            kind if kind.is_array() => "[]",
            kind if kind.is_map() => "{}",
            _ => default,
        };
        Err(self.missing(id, operand, default, whole))
    }

    /// Refuses to add what may be missing of some element: those that have none are left out before.
    pub(super) fn require_summand(&self, list: Id, id: Id, body: &Typed<'s>) -> Result<(), Error> {
        if self.strict || !body.known.may_be_nil || body.known.kind.is_nil() {
            return Ok(());
        }
        let (list, text) = (self.shown(list), self.shown(id));
        let default = match body.known.kind {
            Type::QUANTITY => "\"0\"",
            _ => self.default_of(id).unwrap_or("0"),
        };
        let message = format!(
            "`{text}` may be missing: write `sum({list}, {text} ?? {default})` to give it a value, or \
             `sum(filter({list}, {text} != nil), {text})` to leave out what has none"
        );
        Err(self.error(body.op.at, message))
    }

    /// Says that an operand may be missing, with this in its place.
    pub(super) fn missing(&self, id: Id, operand: &Typed<'s>, default: &str, whole: impl Fn(&str) -> String) -> Error {
        let text = self.shown(id);
        if self.dividing.contains(&id) {
            return self.missing_divisor(id, operand, &whole(&text));
        }
        let given = self.with_fallback(id);
        let replaced = whole(&format!("{given} ?? {default}"));
        if default.contains("1970") {
            // A date that is long ago has passed, which is seldom meant of what has none.
            let message = format!(
                "`{text}` may be missing: write `{text} != nil && …` to leave out what has none, or `{replaced}` to take it for long ago"
            );
            return self.error(operand.op.at, message);
        }
        if given == text && self.is_compared_with_itself(id, &text) {
            // What is missing is not what is made of another value.
            return self.error(
                operand.op.at,
                format!("`{text}` may be missing: write `{text} != nil && …` to leave out what has none"),
            );
        }
        let asked = match given == text {
            true => format!("{text} != nil && …"),
            false => format!("let x = {given}; x != nil && …"),
        };
        let message = format!(
            "`{text}` may be missing: write `{replaced}` to give it a value, or `{asked}` to leave out what has none"
        );
        self.error(operand.op.at, message)
    }

    /// Whether something is compared with what is made of it: `x != lower(x)`.
    fn is_compared_with_itself(&self, id: Id, text: &str) -> bool {
        let is_it = |one: Id, other: Id| one != id && self.is_within(id, other) && self.shown(one) == text;
        self.tree.nodes.iter().any(|node| match node.kind {
            Syntax::Binary(Binary::Equal | Binary::NotEqual, left, right) => is_it(left, right) || is_it(right, left),
            _ => false,
        })
    }

    /// Something that is read, with what counts where it is missing.
    fn with_fallback(&self, id: Id) -> String {
        let text = self.shown(id);
        match self.fallback(id) {
            Some(instead) => format!("{text} ?? {instead}"),
            None => text,
        }
    }

    /// Refuses `x < 5` where `x` may be missing: the answer would be false, and whoever leaves the field out would pass.
    pub(super) fn require_order(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let (id, operand, other) = match operator {
            Binary::Less | Binary::LessOrEqual => (left_id, left, right),
            Binary::Greater | Binary::GreaterOrEqual => (right_id, right, left),
            _ => return Ok(()),
        };
        if self.strict || !operand.known.may_be_nil || !self.is_fixed(&other.op) || operand.known.kind.is_nil() {
            return Ok(());
        }
        let (text, sign) = (self.shown(id), name_of(operator));
        let (left_text, right_text) = (self.shown(left_id), self.shown(right_id));
        if let Some(advice) = self.order_meant(operator, (left_id, left), (right_id, right)) {
            let message = format!("`{text}` may be missing, and texts are compared letter by letter: write `{advice}`");
            return Err(self.error(operand.op.at, message));
        }
        let default = match other.known.kind {
            _ if operand.known.kind == Type::QUANTITY => "\"0\"",
            _ if operand.known.kind == Type::VERSION => "semver(\"0\")",
            Type::TEXT => "\"\"",
            Type::DURATION => "duration(\"0s\")",
            Type::TIME => "now()",
            _ if operand.known.kind == Type::INT => self.default_of(id).unwrap_or("0"),
            _ => "0",
        };
        let is_written = matches!(self.tree.kind(id), Syntax::Binary(Binary::Coalesce, ..));
        let given = if is_written { written(self.tree, id) } else { self.with_fallback(id) };
        let is_coalesce = given != text;
        let value = format!("({given} ?? {default})");
        let replaced =
            if id == left_id { format!("{value} {sign} {right_text}") } else { format!("{left_text} {sign} {value}") };
        let replaced = self.within(&[id], replaced);
        let asked = if is_coalesce {
            // Of what is put together nobody knows further on that it is there, unless it has a name.
            let compared =
                if id == left_id { format!("x {sign} {right_text}") } else { format!("{left_text} {sign} x") };
            let asked = format!("let x = {given}; x != nil && {compared}");
            let root = self.tree.kind(self.tree.root);
            let is_whole = matches!(root, Syntax::Binary(_, left, right) if (*left, *right) == (left_id, right_id));
            if is_whole { asked } else { format!("({asked})") }
        } else {
            format!("{text} != nil && {left_text} {sign} {right_text}")
        };
        let replaced = match self.is_of_all(id) {
            true => format!("`{replaced}` to take it for {default}, or "),
            // A kind that has no such field would count as what it is taken for.
            false => String::new(),
        };
        let message = format!(
            "`{text}` may be missing, and what is missing is not less than anything: write {replaced}`{asked}` to leave out what has none"
        );
        Err(self.error(operand.op.at, message))
    }

    /// Warns of a relation whose answer is another one for what is missing than for what Kubernetes takes it for: `replicas == 1` is false
    /// where there is no such field, and an order with something that is read is false, whatever that is.
    pub(super) fn warn_of_default(
        &mut self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        if self.strict || !is_equality && !operator.is_ordering() {
            return;
        }
        let default_of = |id: Id, typed: &Typed<'s>| {
            let is_doubtful = typed.known.may_be_nil && typed.known.kind == Type::INT && !self.is_asked(id);
            self.default_of(id).filter(|_| is_doubtful && self.is_of_all(id))
        };
        let defaults = (default_of(left_id, left), default_of(right_id, right));
        let number = |typed: &Typed<'s>, default: Option<&str>| match &typed.op.kind {
            Kind::Constant(Constant::Int(number)) => Some(*number),
            _ => default.and_then(|default| default.parse().ok()),
        };
        let is_told = match (number(left, defaults.0), number(right, defaults.1)) {
            _ if defaults == (None, None) => return,
            (Some(one), Some(other)) if defaults.0.is_none() || defaults.1.is_none() => {
                holds(operator, one, other) != Some(operator == Binary::NotEqual)
            }
            // Of the same field of two objects, such as of what was there before, one may be missing because there is no object.
            _ => {
                let is_fixed = self.is_fixed(&left.op) || self.is_fixed(&right.op);
                !is_equality && !is_fixed && self.last_name(left_id) != self.last_name(right_id)
            }
        };
        if !is_told {
            return;
        }
        let (id, default) = match defaults {
            (Some(default), _) => (left_id, default),
            (None, default) => (right_id, default.unwrap_or_default()),
        };
        let value = |id: Id, default: Option<&str>| match default {
            Some(default) => format!("({} ?? {default})", self.shown(id)),
            None => self.shown(id),
        };
        let (one, other, sign) = (value(left_id, defaults.0), value(right_id, defaults.1), name_of(operator));
        let (text, left_text, right_text) = (self.shown(id), self.shown(left_id), self.shown(right_id));
        let at = if id == left_id { left.op.at } else { right.op.at };
        let defaulted =
            [(left_id, defaults.0), (right_id, defaults.1)].into_iter().filter(|(_, default)| default.is_some());
        let defaulted: Vec<Id> = defaulted.map(|(id, _)| id).collect();
        let replaced = self.within(&defaulted, format!("{one} {sign} {other}"));
        let message = format!(
            "`{text}` may be missing, and Kubernetes takes it for {default} then, which this rule does not: write `{replaced}` \
             to take it for {default}, or `{text} != nil && {left_text} {sign} {right_text}` to leave out what has none"
        );
        self.warn(at, message);
    }

    /// A condition on fields that are given a value, behind the question whether there is what they are fields of: without a probe nobody waits
    /// 0 seconds for it.
    pub(super) fn within(&self, fields: &[Id], condition: String) -> String {
        let mut bases: Vec<String> =
            fields.iter().filter_map(|field| self.doubtful_base(*field)).map(|base| self.shown(base)).collect();
        bases.dedup();
        bases.iter().map(|base| format!("{base} != nil && ")).collect::<String>() + &condition
    }

    /// What something is a field of, if that may be missing itself and means nothing then.
    fn doubtful_base(&self, id: Id) -> Option<Id> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        let Syntax::Member { base: owner, property, .. } = self.tree.kind(*base) else { return None };
        let Syntax::Text(name) = self.tree.kind(*property) else { return None };
        let is_object = self.form_of(*base)?.object().is_some();
        let is_doubtful =
            matches!(self.form_of(*owner)?.member(self.schema, name), Member::Read { required: false, .. });
        let is_known = self.schema.is_implied(name) || self.is_present(*base) || self.is_asked(*base);
        (is_object && is_doubtful && !is_known).then_some(*base)
    }

    /// What is known of the value at the end of a path.
    pub(super) fn form_of(&self, id: Id) -> Option<Form<'s>> {
        // A chain of names may be of any length.
        let (mut names, mut node) = (Vec::new(), id);
        while let Syntax::Member { base, property, .. } = self.tree.kind(node) {
            let Syntax::Text(name) = self.tree.kind(*property) else { return None };
            names.push(name.as_ref());
            node = *base;
        }
        let mut form = match self.tree.kind(node) {
            Syntax::Identifier(name) => match self.variable(name) {
                Some(variable) => variable.known.form.clone(),
                None => Form::shaped(&self.schema.root(name)?.shape),
            },
            Syntax::Pointer("") => self.scopes.last()?.item.form.clone(),
            _ => return None,
        };
        for name in names.into_iter().rev() {
            form = match form.member(self.schema, name) {
                Member::Read { form, .. } => form,
                Member::None | Member::Computed { .. } => return None,
            };
        }
        Some(form)
    }

    /// Warns of `x == y`, and of `x in ys`, where both may be missing: then they are equal, and whoever leaves both out is refused.
    pub(super) fn warn_of_nothing_alike(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        if !self.strict && operator == Binary::Equal && self.is_found_alike((left_id, left), (right_id, right)) {
            let (left, right) = (self.shown(left_id), self.shown(right_id));
            let message = format!(
                "`{left}` and `{right}` may both be missing, and then this is found although it says nothing: write \
                 `{left} != nil && {left} == {right}` to look for what has both"
            );
            return self.warn(at, message);
        }
        self.warn_of_no_range(at, operator, (left_id, left), right_id);
        let is_equal = operator == Binary::Equal && right.known.may_be_nil && !self.is_asked(right_id);
        let is_listed = matches!(self.tree.kind(right_id), Syntax::Array(_));
        let is_in = operator == Binary::In && right.known.has_nil && !is_listed;
        if self.strict || !is_equal && !is_in || !left.known.may_be_nil || self.is_asked(left_id) {
            return;
        }
        if is_in {
            if self.is_claimed(left_id, right_id) {
                let (needle, list) = (self.shown(left_id), self.shown(right_id));
                let message = format!(
                    "`{needle}` may be missing, and so may elements of `{list}`, and then it is one of them: write \
                     `{needle} != nil && {needle} in {list}` to leave out what has none"
                );
                self.warn(at, message);
            }
            return;
        }
        let (Some(one), Some(other)) = (self.way(left_id), self.way(right_id)) else { return };
        // What was not there before and is not there now is the same.
        if one.ends_like(&other) || !self.is_claimed(left_id, right_id) {
            return;
        }
        let (left, right) = (self.shown(left_id), self.shown(right_id));
        let message = format!(
            "`{left}` and `{right}` may both be missing, and then they are equal: write `{left} != nil && {left} == {right}` \
             to leave out what has neither"
        );
        self.warn(at, message);
    }

    /// Warns of `x not in 1..5` where `x` may be missing: what is missing is in no range, and whoever leaves it out is refused.
    fn warn_of_no_range(&mut self, at: u32, operator: Binary, (left_id, left): (Id, &Typed<'s>), right_id: Id) {
        let is_range = matches!(self.tree.kind(right_id), Syntax::Binary(Binary::Range, ..));
        let is_in = operator == Binary::In && is_range && left.known.may_be_nil && !self.strict;
        if !is_in || self.is_asked(left_id) || self.is_claimed(left_id, right_id) {
            return;
        }
        let text = self.shown(left_id);
        let whole = match self.is_negated(at) {
            true => format!("{text} not in {}", written(self.tree, right_id)),
            false => "…".to_owned(),
        };
        let message = format!(
            "`{text}` may be missing, and is in no range then, so that this is true: write `{text} != nil && {whole}` to leave out what has \
             none, or `({text} == nil || {whole})` if it must be there"
        );
        self.warn(left.op.at, message);
    }

    /// Whether a field of what was looked up is compared with something else, and both may be missing or empty. The same field of both
    /// objects may well be missing from both, if they are told to be alike by something else too.
    fn is_found_alike(&self, left: (Id, &Typed<'s>), right: (Id, &Typed<'s>)) -> bool {
        let Some(scope) = self.scopes.last().filter(|scope| scope.looked_up) else { return false };
        let may_be_none = |(id, typed): (Id, &Typed<'s>)| {
            (typed.known.may_be_nil || self.is_collection(&typed.known)) && !self.is_asked(id) && !self.is_present(id)
        };
        if !may_be_none(left) || !may_be_none(right) {
            return false;
        }
        let (Some(one), Some(other)) = (self.way(left.0), self.way(right.0)) else { return false };
        let level = self.scopes.len();
        match (one.is_of_item(level), other.is_of_item(level)) {
            (true, false) | (false, true) => {}
            _ => return false,
        }
        let is_same_field = self.last_name(left.0) == self.last_name(right.0);
        !is_same_field || scope.body.is_none_or(|body| self.is_sole_likeness(body, left.0, right.0))
    }

    /// Whether no other part of a condition says that something is so.
    fn is_sole_likeness(&self, body: Id, left: Id, right: Id) -> bool {
        let mut rest = vec![body];
        while let Some(id) = rest.pop() {
            match self.tree.kind(id) {
                Syntax::Predicate(inner) => rest.push(*inner),
                Syntax::Binary(Binary::And { .. }, one, other) => rest.extend([*one, *other]),
                Syntax::Binary(Binary::Equal, one, other) if (*one, *other) == (left, right) => {}
                Syntax::Binary(Binary::NotEqual, ..) | Syntax::Unary(Unary::Not { .. }, _) => {}
                _ => return false,
            }
        }
        true
    }

    /// Whether something comes from a call of the host.
    pub(super) fn is_looked_up(&self, id: Id) -> bool {
        let mut node = id;
        loop {
            node = match self.tree.kind(node) {
                Syntax::Call { callee, .. } => return matches!(self.tree.kind(*callee), Syntax::Member { .. }),
                Syntax::Chain(inner) => *inner,
                Syntax::Member { base, .. } => *base,
                Syntax::Builtin { name: "filter" | "find" | "first" | "last" | "concat", arguments } => {
                    match arguments.first() {
                        Some(argument) => *argument,
                        None => return false,
                    }
                }
                Syntax::Identifier(name) => match self.variable(name) {
                    // A value comes before whatever names it.
                    Some(variable) if variable.value.0 < node.0 => variable.value,
                    _ => return false,
                },
                _ => return false,
            };
        }
    }

    /// Refuses `x == ""` where `x` may be missing: what is missing is not "", and whoever leaves the field out would pass.
    pub(super) fn require_text(
        &self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let is_empty = |op: &Op| matches!(&op.kind, Kind::Constant(Constant::Text(text)) if text.is_empty());
        let has_empty = |op: &Op| match &op.kind {
            Kind::Array(elements) => {
                let is_nil = |op: &Op| matches!(op.kind, Kind::Constant(Constant::Nil));
                elements.iter().any(is_empty) && !elements.iter().any(is_nil)
            }
            _ => false,
        };
        let (id, operand) = match operator {
            Binary::Equal | Binary::NotEqual if is_empty(&right.op) => (left_id, left),
            Binary::Equal | Binary::NotEqual if is_empty(&left.op) => (right_id, right),
            Binary::In if has_empty(&right.op) => (left_id, left),
            _ => return Ok(()),
        };
        // What is worked out of a text the host knows more about.
        let is_computed = matches!(operand.op.kind, Kind::Computed { of_text: true, .. });
        let is_text = operand.known.may_be(Type::TEXT) && !is_computed;
        if self.strict || !operand.known.may_be_nil || !is_text || self.is_asked(id) {
            return Ok(());
        }
        let (text, other) = (self.shown(id), self.shown(if id == left_id { right_id } else { left_id }));
        let value = format!("({text} ?? \"\")");
        let advice = match operator {
            Binary::In => {
                let not = if self.is_negated(at) { "not " } else { "" };
                format!("is not \"\": write `{value} {not}in {other}` to take it for \"\"")
            }
            Binary::Equal => format!(
                "is not \"\": write `{text} == nil` to ask whether it is missing, or `{value} == \"\"` to ask whether it is missing or empty"
            ),
            _ => format!(
                "is not \"\" either: write `{value} != \"\"` to ask whether there is a text, or `{text} != nil` to let an empty one count"
            ),
        };
        Err(self.error(operand.op.at, format!("`{text}` may be missing, and what is missing {advice}")))
    }

    /// Refuses `x != 0` where `x` may be missing: what is missing is not 0, and whoever leaves the field out would be refused.
    pub(super) fn require_number(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let (id, operand) = match operator {
            Binary::NotEqual if is_zero(&right.op) => (left_id, left),
            Binary::NotEqual if is_zero(&left.op) => (right_id, right),
            _ => return Ok(()),
        };
        let is_read = matches!(self.tree.kind(id), Syntax::Member { .. } | Syntax::Identifier(_) | Syntax::Pointer(_));
        let is_doubtful = operand.known.may_be_nil && operand.known.kind.is_number() && is_read;
        if self.strict || !is_doubtful || self.is_asked(id) || self.default_of(id).is_some() {
            return Ok(());
        }
        let text = self.shown(id);
        let message = format!(
            "`{text}` may be missing, and what is missing is not 0 either: write `({text} ?? 0) != 0` to take it for 0, \
             or `{text} != nil` to ask only whether it is there"
        );
        Err(self.error(operand.op.at, message))
    }

    /// Whether it is the operator of `x not in y`.
    pub(super) fn is_negated(&self, operator: u32) -> bool {
        self.negated.contains(&operator)
    }

    /// What a number counts as where it is missing, if the host has said so.
    pub(super) fn default_of(&self, id: Id) -> Option<&'static str> {
        let name = self.last_name(id)?;
        if self.is_of_status(id) {
            return None;
        }
        let own = match self.tree.kind(id) {
            Syntax::Member { base, .. } => self.last_name(*base),
            _ => None,
        };
        own.and_then(|own| self.schema.default_of(&format!("{own}.{name}"))).or_else(|| self.schema.default_of(name))
    }

    /// Whether something is a part of a status: what is there is told, and nobody decides what it is without it.
    pub(super) fn is_of_status(&self, id: Id) -> bool {
        let mut node = id;
        while let Syntax::Member { base, .. } = self.tree.kind(node) {
            if self.last_name(*base) == Some("status") {
                return true;
            }
            node = *base;
        }
        false
    }

    /// A part of the expression, as it would be written inside another one.
    pub(super) fn shown(&self, id: Id) -> String {
        written_operand(self.tree, id)
    }

    /// Whether a value depends on nothing that is read.
    pub(super) fn is_fixed(&self, op: &Op) -> bool {
        match &op.kind {
            Kind::Constant(_) => true,
            Kind::Variable(variable) => self.fixed[usize::from(*variable)],
            Kind::Negate(operand) | Kind::Quantity(operand) => self.is_fixed(operand),
            Kind::Arithmetic { first, rest } => self.is_fixed(first) && rest.iter().all(|(.., op)| self.is_fixed(op)),
            Kind::Builtin { arguments, .. } => arguments.iter().all(|op| self.is_fixed(op)),
            _ => false,
        }
    }

    /// Notes whether the variable that is declared next depends on nothing that is read.
    pub(super) fn note_fixed(&mut self, value: &Op) {
        let is_fixed = self.is_fixed(value);
        self.fixed.push(is_fixed);
    }
}

fn is_zero(op: &Op) -> bool {
    matches!(&op.kind, Kind::Constant(Constant::Int(0)))
}

/// Whether a relation holds between two numbers. Nothing for other operators.
pub(super) fn holds<T: PartialOrd>(operator: Binary, one: T, other: T) -> Option<bool> {
    Some(match operator {
        Binary::Equal => one == other,
        Binary::NotEqual => one != other,
        Binary::Less => one < other,
        Binary::LessOrEqual => one <= other,
        Binary::Greater => one > other,
        Binary::GreaterOrEqual => one >= other,
        _ => return None,
    })
}

//! What may be missing. A rule that compiles cannot fail because something is: where nothing can be done with nil, and where an
//! answer without a value would be a hole in the rule, its author has to say what is meant.

use super::{Compiler, Typed, operators::name_of};
use crate::{
    ast::{Binary, Id},
    error::Error,
    print::written_operand,
    program::{Kind, Op},
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
            Type::INT | Type::FLOAT => "0",
            Type::QUANTITY => "\"0\"",
            Type::VERSION => "semver(\"0\")",
            Type::DURATION => "duration(\"0s\")",
            kind if kind.is_array() => "[]",
            kind if kind.is_map() => "{}",
            _ => default,
        };
        Err(self.missing(id, operand, default, whole))
    }

    /// Says that an operand may be missing, with this in its place.
    pub(super) fn missing(&self, id: Id, operand: &Typed<'s>, default: &str, whole: impl Fn(&str) -> String) -> Error {
        let text = self.shown(id);
        let replaced = whole(&format!("{text} ?? {default}"));
        let message = format!(
            "`{text}` may be missing: write `{replaced}` to give it a value, or `{text} != nil && …` to leave out what has none"
        );
        self.error(operand.op.at, message)
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
        let default = match other.known.kind {
            _ if operand.known.kind == Type::QUANTITY => "\"0\"",
            _ if operand.known.kind == Type::VERSION => "semver(\"0\")",
            Type::TEXT => "\"\"",
            Type::DURATION => "duration(\"0s\")",
            Type::TIME => "now()",
            _ => "0",
        };
        let value = format!("({text} ?? {default})");
        let replaced =
            if id == left_id { format!("{value} {sign} {right_text}") } else { format!("{left_text} {sign} {value}") };
        let message = format!(
            "`{text}` may be missing, and what is missing is not less than anything: write `{replaced}` to take it for {default}, \
             or `{text} != nil && {left_text} {sign} {right_text}` to leave out what has none"
        );
        Err(self.error(operand.op.at, message))
    }

    /// A part of the expression, as it would be written inside another one.
    pub(super) fn shown(&self, id: Id) -> String {
        written_operand(self.tree, id)
    }

    /// Whether a value depends on nothing that is read.
    fn is_fixed(&self, op: &Op) -> bool {
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

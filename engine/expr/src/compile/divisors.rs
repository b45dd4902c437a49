//! What is divided by. It must be there, and must not be 0: the remainder by 0 and a part of an amount fail, and any other quotient says nothing.

use super::{Compiler, Typed, guards::number_of, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    error::Error,
    print::written,
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Notes what a divisor is read from, so that nobody is told to take a missing one for 0: `x / quantity(y)`.
    pub(super) fn note_divisor(&mut self, operator: Binary, divisor: Id) {
        if !matches!(operator, Binary::Divide | Binary::Modulo) {
            return;
        }
        match self.tree.kind(divisor) {
            Syntax::Builtin { name: "int" | "float", arguments } => self.dividing.extend(arguments.first()),
            Syntax::Call { arguments, .. } => self.dividing.extend(arguments.first().map(|argument| argument.value)),
            _ => {}
        }
    }

    /// Refuses to divide by what may be missing, and by 0. Whatever it would be taken for, the quotient would say nothing.
    pub(super) fn require_divisor(
        &self,
        operator: Binary,
        dividend: Type,
        id: Id,
        divisor: &Typed<'s>,
    ) -> Result<(), Error> {
        if self.strict || !matches!(operator, Binary::Divide | Binary::Modulo) {
            return Ok(());
        }
        let fails = operator == Binary::Modulo || dividend == Type::QUANTITY && divisor.known.kind != Type::QUANTITY;
        let at = divisor.op.at;
        let zero = zero_of(divisor.known.kind);
        if self.is_zero(id) {
            return Err(self.error(at, "nothing can be divided by 0"));
        }
        if divisor.known.may_be_nil && !divisor.known.kind.is_nil() {
            let text = self.shown(id);
            let message = match (self.default_of(id), self.way(id)) {
                (Some(_), _) if !fails => return Ok(()),
                (Some(default), _) => {
                    let (value, sign) = (format!("({text} ?? {default})"), name_of(operator));
                    format!("`{text}` may be missing, and may be 0: write `{value} > 0 && … {sign} {value}`")
                }
                (None, Some(_)) => format!(
                    "`{text}` may be missing, and nothing can be divided by that: write `{text} > {zero} && …` before it"
                ),
                (None, None) => {
                    let value = written(self.tree, id);
                    format!(
                        "`{text}` may be missing, and nothing can be divided by that: write `let x = {value}; x > {zero} && …`, \
                         and divide by `x`"
                    )
                }
            };
            return Err(self.error(at, message));
        }
        if self.is_not_zero(id) {
            return Ok(());
        }
        if let Some((value, asked)) = self.taken_for_zero(id, zero) {
            let message =
                format!("`{value}` may be missing, and nothing can be divided by 0: write `{asked} && …` before it");
            return Err(self.error(at, message));
        }
        if !fails {
            return Ok(());
        }
        let text = self.shown(id);
        let message =
            format!("`{text}` may be 0, and nothing can be divided by that: write `{text} > {zero} && …` before it");
        Err(self.error(at, message))
    }

    /// Says that something may be missing from which a divisor is read.
    pub(super) fn missing_divisor(&self, id: Id, operand: &Typed<'s>, divisor: &str) -> Error {
        let text = self.shown(id);
        let zero = if divisor.starts_with("quantity") { "\"0\"" } else { "0" };
        let message = format!(
            "`{text}` may be missing, and nothing can be divided by that: write `{text} != nil && {divisor} > {zero} && …` before it"
        );
        self.error(operand.op.at, message)
    }

    /// What is taken for 0 where it is missing, and how to ask for it: `x ?? 0`, `quantity(x ?? "0")`.
    fn taken_for_zero(&self, id: Id, zero: &str) -> Option<(String, String)> {
        let tree = self.tree;
        let (function, value) = match tree.kind(id) {
            Syntax::Builtin { name: name @ ("int" | "float"), arguments } => (Some(*name), *arguments.first()?),
            Syntax::Call { callee, arguments } if let Syntax::Identifier(name) = tree.kind(*callee) => {
                (Some(*name), arguments.first()?.value)
            }
            _ => (None, id),
        };
        let Syntax::Binary(Binary::Coalesce, first, default) = tree.kind(value) else { return None };
        let is_zero = number_of(tree, *default) == Some(0.0);
        if !is_zero || self.is_present(*first) {
            return None;
        }
        let text = self.shown(*first);
        let asked = match function {
            Some(function) => format!("{text} != nil && {function}({text}) > {zero}"),
            None => format!("{text} > {zero}"),
        };
        Some((text, asked))
    }

    /// Whether it is written to be 0.
    fn is_zero(&self, id: Id) -> bool {
        let value = match self.tree.kind(id) {
            Syntax::Identifier(name) => self.variable(name).map_or(id, |variable| variable.value),
            _ => id,
        };
        number_of(self.tree, value) == Some(0.0)
    }
}

/// 0, as it is written beside a value of a type.
fn zero_of(kind: Type) -> &'static str {
    if kind == Type::QUANTITY { "\"0\"" } else { "0" }
}

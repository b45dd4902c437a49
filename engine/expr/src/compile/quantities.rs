//! Amounts of Kubernetes in expressions. A field that is one is compared and counted as an amount, never as text, and so is a text
//! beside it that is written in the rule.

use super::{Compiler, Typed, form::Form, known::Known};
use crate::{
    ast::Binary,
    error::Error,
    program::{Constant, Kind, Op},
    types::Type,
    value::{Amount, Quantity},
};

impl<'s> Compiler<'s> {
    /// The operands of a relation, as amounts if one of them is one.
    pub(super) fn as_quantities(
        &self,
        operator: Binary,
        left: Typed<'s>,
        right: Typed<'s>,
    ) -> Result<(Typed<'s>, Typed<'s>), Error> {
        let compares = operator.is_ordering() || matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In);
        if self.strict || !compares {
            return Ok((left, right));
        }
        self.refuse_unclear(operator, &left, &right)?;
        self.refuse_unclear(operator, &right, &left)?;
        let is_quantity = |typed: &Typed<'_>| typed.known.kind == Type::QUANTITY;
        if !is_quantity(&left) && !is_quantity(&right) {
            return Ok((left, right));
        }
        Ok((self.as_quantity(left)?, self.as_quantity(right)?))
    }

    /// An operand as an amount. What is not known turns out when it runs.
    pub(super) fn as_quantity(&self, typed: Typed<'s>) -> Result<Typed<'s>, Error> {
        let at = typed.op.at;
        let kind = typed.known.kind;
        match typed.op.kind {
            Kind::Constant(Constant::Text(text)) => self.constant_quantity(at, &text),
            Kind::Constant(Constant::Int(number)) => {
                Err(self.error(at, format!("a quantity is compared with a quantity: write `\"{number}\"`")))
            }
            Kind::Constant(Constant::Float(number)) => {
                Err(self.error(at, format!("a quantity is compared with a quantity: write `\"{number}\"`")))
            }
            Kind::Array(elements) => {
                let elements: Result<Vec<Op>, Error> = Vec::from(elements)
                    .into_iter()
                    .map(|op| self.as_quantity(Typed { op, known: Known::unknown() }).map(|typed| typed.op))
                    .collect();
                let known = Known::of(Type::QUANTITY.array());
                Ok(Typed { op: Op { kind: Kind::Array(elements?.into()), at }, known })
            }
            op if kind == Type::QUANTITY || typed.known.has_quantities() => {
                let op = Op { kind: op, at };
                Ok(Typed { op: Op { kind: Kind::Quantity(op.into()), at }, known: typed.known })
            }
            op if kind.is_unknown() || kind.is_nil() => Ok(Typed { op: Op { kind: op, at }, known: typed.known }),
            _ => Err(self.error(
                at,
                format!("a quantity is compared with a quantity, and this is {kind}: write `quantity(…)` around it"),
            )),
        }
    }

    fn constant_quantity(&self, at: u32, text: &str) -> Result<Typed<'s>, Error> {
        let Some(amount) = Amount::parse(text) else {
            let hint = if text.is_empty() { ": what is missing is `nil`" } else { "" };
            let message = format!("{text:?} is no quantity such as \"100m\", \"2\" or \"1Gi\"{hint}");
            return Err(self.error(at, message));
        };
        let constant = Constant::Quantity(Quantity { amount, text: None });
        Ok(self.constant(at, constant, Type::QUANTITY))
    }

    /// Refuses to compare what may be an amount, and may be a text, with a text.
    fn refuse_unclear(&self, operator: Binary, typed: &Typed<'s>, other: &Typed<'s>) -> Result<(), Error> {
        let forms = typed.known.form.alternatives();
        let is_unclear = forms.len() > 1 && forms.iter().any(|form| matches!(form, Form::Plain(Type::QUANTITY)));
        // A text that is no amount is compared with the text that stands for a missing one: `(x ?? "") == ""`.
        let is_clear = match &other.op.kind {
            Kind::Constant(Constant::Nil) => true,
            Kind::Constant(Constant::Text(text)) => !operator.is_ordering() && Amount::parse(text).is_none(),
            _ => false,
        };
        if !is_unclear || is_clear {
            return Ok(());
        }
        Err(self.error(typed.op.at, "this may be a quantity or a text: write `?? \"0\"`, or `quantity(…)` around it"))
    }

    /// What is known of `quantity ?? "0"` and the like: a text that is an amount stands for one.
    pub(super) fn quantity_of_either(&self, known: Known<'s>, one: &Typed<'s>, other: &Typed<'s>) -> Known<'s> {
        let is_amount = |typed: &Typed<'_>| match &typed.op.kind {
            Kind::Constant(Constant::Text(text)) => Amount::parse(text).is_some(),
            Kind::Constant(Constant::Nil) => true,
            _ => typed.known.kind == Type::QUANTITY,
        };
        let is_quantity = one.known.kind == Type::QUANTITY || other.known.kind == Type::QUANTITY;
        if self.strict || !is_quantity || !is_amount(one) || !is_amount(other) {
            return known;
        }
        Known { kind: Type::QUANTITY, form: Form::Plain(Type::QUANTITY), ..known }
    }
}

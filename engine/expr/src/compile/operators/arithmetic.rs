//! Sums, products and powers: what they can be made of, and the operation for a chain of them.

use super::{Link, name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    compile::{Compiler, Typed, known::Known},
    error::Error,
    program::{Arithmetic, Kind, Op},
    types::Type,
};

impl<'s> Compiler<'s> {
    #[inline(never)]
    pub(super) fn arithmetic(&mut self, first: Id, links: &[Link]) -> Result<Typed<'s>, Error> {
        let mut left_id = first;
        for (operator, at, right_id) in links {
            self.refuse_unquoted_key(left_id, *operator, *at, *right_id)?;
            left_id = *right_id;
        }
        let first_id = first;
        let mut left = self.value(first)?;
        self.refuse_hidden(first, &left)?;
        let mut known = left.known.clone();
        let mut rest = Vec::with_capacity(links.len());
        for (index, (operator, at, right_id)) in links.iter().enumerate() {
            let dividing = self.dividing.len();
            self.note_divisor(*operator, *right_id);
            let mut right = self.value(*right_id)?;
            self.dividing.truncate(dividing);
            self.refuse_hidden(*right_id, &right)?;
            // A text that is no date yet is missing only after that.
            if is_unread(known.kind, right.known.kind) && !self.strict {
                return Err(self.mismatch(*at, *operator, (first_id, &known), (*right_id, &right.known)));
            }
            // Lists are put together by a function, whatever may be missing.
            if *operator == Binary::Add && !self.strict && (known.kind.is_array() || right.known.kind.is_array()) {
                return Err(self.mismatch(*at, *operator, (first_id, &known), (*right_id, &right.known)));
            }
            let sign = name_of(*operator);
            let is_text = *operator == Binary::Add && (known.kind == Type::TEXT || right.known.kind == Type::TEXT);
            if index == 0 {
                let whole = |left: &str| format!("{left} {sign} {}", self.shown(*right_id));
                self.refuse_either_summand(is_text, first_id, &left, whole)?;
            }
            let before = if index == 0 { self.shown(first_id) } else { "…".to_owned() };
            self.refuse_either_summand(is_text, *right_id, &right, |right| format!("{before} {sign} {right}"))?;
            if index == 0 {
                let nothing = match self.tree.kind(*right_id) {
                    Syntax::Text(_) if *operator == Binary::Add => "\"\"",
                    _ => "0",
                };
                let whole = |left: &str| format!("({left}) {} {}", name_of(*operator), self.shown(*right_id));
                self.require(first_id, &left, nothing, whole)?;
                self.refuse_unclear_amount(&left)?;
            }
            self.require_divisor(*operator, known.kind, *right_id, &right)?;
            let nothing = if known.kind == Type::TEXT && *operator == Binary::Add { "\"\"" } else { "0" };
            self.require(*right_id, &right, nothing, |right| format!("… {} ({right})", name_of(*operator)))?;
            self.refuse_unclear_amount(&right)?;
            if !self.strict && matches!(operator, Binary::Add | Binary::Subtract) {
                if known.kind == Type::QUANTITY {
                    right = self.as_quantity(*right_id, right)?;
                } else if right.known.kind == Type::QUANTITY && index == 0 {
                    left = self.as_quantity(first_id, left)?;
                    known = left.known.clone();
                }
            }
            let Some(kind) = arithmetic_type(*operator, known.kind, right.known.kind) else {
                return Err(self.mismatch(*at, *operator, (first_id, &known), (*right_id, &right.known)));
            };
            known = Known { may_be_nil: false, ..Known::of(kind) };
            rest.push((arithmetic_of(*operator), *at, quantified(right)));
        }
        let at = links[links.len() - 1].1;
        let first = quantified(left).into();
        Ok(Typed { op: Op { kind: Kind::Arithmetic { first, rest: rest.into() }, at }, known })
    }
}

/// An operand of arithmetic, as an amount if it is one.
fn quantified(operand: Typed<'_>) -> Op {
    let at = operand.op.at;
    match operand.op.kind {
        kind @ Kind::Quantity(_) => Op { kind, at },
        kind if operand.known.kind == Type::QUANTITY => Op { kind: Kind::Quantity(Op { kind, at }.into()), at },
        kind => Op { kind, at },
    }
}

/// Whether a text stands beside a time or a duration, and has to be read as one first.
fn is_unread(left: Type, right: Type) -> bool {
    let is_of_time = |kind: Type| matches!(kind, Type::TIME | Type::DURATION);
    left == Type::TEXT && is_of_time(right) || is_of_time(left) && right == Type::TEXT
}

/// The type of a sum, a difference and so on; none if it can never be.
fn arithmetic_type(operator: Binary, left: Type, right: Type) -> Option<Type> {
    let numbers = left.is_number() && right.is_number();
    match operator {
        Binary::Add => match (left, right) {
            _ if numbers => Some(left.promote(right)),
            (Type::TEXT, Type::TEXT) => Some(Type::TEXT),
            (Type::TIME, Type::DURATION) | (Type::DURATION, Type::TIME) => Some(Type::TIME),
            (Type::DURATION, Type::DURATION) => Some(Type::DURATION),
            (Type::QUANTITY, Type::QUANTITY) => Some(Type::QUANTITY),
            // Nothing else can be added to an amount.
            (Type::QUANTITY, other) | (other, Type::QUANTITY) if other.is_unknown() => Some(Type::QUANTITY),
            _ => {
                let kinds = [Type::INT, Type::FLOAT, Type::TEXT, Type::TIME, Type::DURATION, Type::QUANTITY];
                fits_some(left, right, &kinds, Type::UNKNOWN)
            }
        },
        Binary::Subtract => match (left, right) {
            _ if numbers => Some(left.promote(right)),
            (Type::TIME, Type::TIME) | (Type::DURATION, Type::DURATION) => Some(Type::DURATION),
            (Type::TIME, Type::DURATION) => Some(Type::TIME),
            (Type::QUANTITY, Type::QUANTITY) => Some(Type::QUANTITY),
            (Type::QUANTITY, other) | (other, Type::QUANTITY) if other.is_unknown() => Some(Type::QUANTITY),
            _ => {
                let kinds = [Type::INT, Type::FLOAT, Type::TIME, Type::DURATION, Type::QUANTITY];
                fits_some(left, right, &kinds, Type::UNKNOWN)
            }
        },
        Binary::Multiply => match (left, right) {
            _ if numbers => Some(left.promote(right)),
            (Type::DURATION, Type::DURATION) => Some(Type::DURATION),
            (Type::DURATION, other) | (other, Type::DURATION) if other.is_number() => Some(Type::DURATION),
            (Type::QUANTITY, other) | (other, Type::QUANTITY) if other.is_number() => Some(Type::QUANTITY),
            _ => fits_some(left, right, &[Type::INT, Type::FLOAT, Type::DURATION], Type::UNKNOWN),
        },
        Binary::Modulo => match (left, right) {
            (Type::INT, Type::INT) => Some(Type::INT),
            _ => fits_some(left, right, &[Type::INT], Type::INT),
        },
        Binary::Divide if left == Type::QUANTITY => match right {
            Type::QUANTITY => Some(Type::FLOAT),
            _ if right.is_number() => Some(Type::QUANTITY),
            _ => None,
        },
        _ if numbers => Some(Type::FLOAT),
        _ => fits_some(left, right, &[Type::INT, Type::FLOAT], Type::FLOAT),
    }
}

fn fits_some(left: Type, right: Type, kinds: &[Type], result: Type) -> Option<Type> {
    left.may_fit(right, |kind| kinds.contains(&kind)).then_some(result)
}

fn arithmetic_of(operator: Binary) -> Arithmetic {
    match operator {
        Binary::Add => Arithmetic::Add,
        Binary::Subtract => Arithmetic::Subtract,
        Binary::Multiply => Arithmetic::Multiply,
        Binary::Divide => Arithmetic::Divide,
        Binary::Modulo => Arithmetic::Modulo,
        _ => Arithmetic::Power,
    }
}

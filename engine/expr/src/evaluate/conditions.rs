//! Operations where a bool is asked for. Rules are made of little else, so the answer stays in a register, without a
//! value in between.

use portal_document::Node;

use crate::{
    evaluate::{Evaluation, Frame, Stopped, follow},
    operators,
    program::{Connected, Constant, Kind, Missing, Op, Predicate, TextRelation},
    value::Value,
};

/// Longer texts are paid for when they are compared.
const MAX_FREE_TEXT: usize = 64;

impl<'a> Evaluation<'a, '_> {
    /// Runs an operation that should be a bool. If it is none, the place of whoever asks is to blame.
    #[inline]
    pub(super) fn truth(&self, op: &'a Op, frame: &Frame<'a>, asker: u32) -> Result<bool, Stopped> {
        self.step(op)?;
        self.condition(op, frame, asker)
    }

    #[inline]
    pub(super) fn truth_of(&self, value: Value<'a>, asker: u32) -> Result<bool, Stopped> {
        self.machine.truth(value).map_err(|failure| self.fail(failure, asker))
    }

    /// The same, after the step is paid.
    pub(super) fn condition(&self, op: &'a Op, frame: &Frame<'a>, asker: u32) -> Result<bool, Stopped> {
        let fail = |failure| self.fail(failure, op.at);
        match &op.kind {
            Kind::And(connected) => self.connect(connected, frame, asker, false),
            Kind::Or(connected) => self.connect(connected, frame, asker, true),
            Kind::Not(operand) => Ok(!self.truth(operand, frame, op.at)?),
            Kind::Equal { left, right, negated } => Ok(self.equal(op, left, right, frame)? != *negated),
            Kind::Compare { comparison, left, right } => {
                let (left, right) = (self.operand(left, frame)?, self.operand(right, frame)?);
                operators::compare(self.machine, *comparison, left, right).map_err(fail)
            }
            Kind::In { needle, haystack } => {
                let (needle, haystack) = (self.operand(needle, frame)?, self.operand(haystack, frame)?);
                operators::contained(self.machine, needle, haystack).map_err(fail)
            }
            Kind::InTexts { needle, texts } => match self.operand(needle, frame)? {
                Value::Text(needle) => Ok(texts.iter().any(|text| **text == *needle)),
                _ => Ok(false),
            },
            Kind::Matches { subject, pattern } => {
                let (subject, pattern) = (self.operand(subject, frame)?, self.operand(pattern, frame)?);
                operators::matches(self.machine, subject, pattern).map_err(fail)
            }
            Kind::MatchesConstant { subject, regex } => {
                let subject = self.operand(subject, frame)?;
                operators::matches_regex(self.machine, subject, regex).map_err(fail)
            }
            Kind::Text { relation, subject, part } => {
                let (subject, part) = (self.operand(subject, frame)?, self.operand(part, frame)?);
                match relation {
                    TextRelation::Contains => operators::contains(self.machine, subject, part),
                    TextRelation::StartsWith => operators::starts_with(self.machine, subject, part),
                    TextRelation::EndsWith => operators::ends_with(self.machine, subject, part),
                }
                .map_err(fail)
            }
            Kind::Predicate { predicate: Predicate::Any, collection, body, .. } => {
                self.some(op.at, collection, body.as_deref(), frame, true)
            }
            Kind::Predicate { predicate: Predicate::None, collection, body, .. } => {
                Ok(!self.some(op.at, collection, body.as_deref(), frame, true)?)
            }
            Kind::Predicate { predicate: Predicate::All, collection, body, .. } => {
                Ok(!self.some(op.at, collection, body.as_deref(), frame, false)?)
            }
            _ => {
                let value = self.value(op, frame)?;
                self.truth_of(value, asker)
            }
        }
    }

    /// `&&` and `||`: the first operand that decides is the answer.
    fn connect(
        &self,
        connected: &'a Connected,
        frame: &Frame<'a>,
        asker: u32,
        deciding: bool,
    ) -> Result<bool, Stopped> {
        let Some((last, others)) = connected.operands.split_last() else { return Ok(!deciding) };
        for (operand, at) in others.iter().zip(&connected.operators) {
            if self.truth(operand, frame, *at)? == deciding {
                return Ok(deciding);
            }
        }
        self.truth(last, frame, asker)
    }

    #[inline]
    fn equal(&self, op: &'a Op, left: &'a Op, right: &'a Op, frame: &Frame<'a>) -> Result<bool, Stopped> {
        // What most comparisons are: a field of the object or of an element with something that is known.
        if let (Kind::Path { base, keys, missing: Missing::Nil }, Kind::Constant(constant)) = (&left.kind, &right.kind)
            && let Some(Value::Node(node)) = self.place(base, frame)
        {
            self.machine.step(3).map_err(|failure| self.fail(failure, op.at))?;
            if let Some(equal) = is(follow(node, keys), constant) {
                return Ok(equal);
            }
        }
        let (left, right) = (self.operand(left, frame)?, self.operand(right, frame)?);
        operators::equal(self.machine, left, right).map_err(|failure| self.fail(failure, op.at))
    }
}

/// Whether a field that may be missing is the same as a constant. Nothing for constants that take more than a look.
#[inline]
fn is(node: Option<Node<'_>>, constant: &Constant) -> Option<bool> {
    let Some(node) = node else { return Some(*constant == Constant::Nil) };
    match constant {
        Constant::Nil => Some(node.is_null()),
        Constant::Bool(expected) => Some(node.as_bool() == Some(*expected)),
        Constant::Text(expected) if expected.len() < MAX_FREE_TEXT => Some(node.as_str() == Some(expected)),
        _ => None,
    }
}

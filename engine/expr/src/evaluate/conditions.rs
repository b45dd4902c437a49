//! Operations where a bool is asked for. Rules are made of little else, so the answer stays in a register, without a
//! value in between.

use portal_document::Node;

use crate::{
    evaluate::{Evaluation, Frame, Stopped},
    operators::{self, Comparison},
    program::{Connected, Constant, Kind, Missing, Op, Predicate, TextRelation},
    regex::Regex,
    value::{Value, version::Range},
};

/// Longer texts are paid for when they are compared.
const MAX_FREE_TEXT: usize = 64;

impl<'a> Evaluation<'a, '_> {
    /// Runs an operation that should be a bool. If it is none, the error points at `asker`.
    #[inline]
    pub(super) fn truth(&self, op: &'a Op, frame: &Frame<'a>, asker: u32) -> Result<bool, Stopped> {
        self.step(op)?;
        self.condition(op, frame, asker)
    }

    #[inline]
    pub(super) fn truth_of(&self, value: Value<'a>, asker: u32) -> Result<bool, Stopped> {
        self.machine.truth(value).map_err(|failure| self.fail(failure, asker))
    }

    /// The same, after the step is paid. Each operation has a function of its own, so that none pays for what another has
    /// to save.
    pub(super) fn condition(&self, op: &'a Op, frame: &Frame<'a>, asker: u32) -> Result<bool, Stopped> {
        match &op.kind {
            Kind::And(connected) => self.connect(connected, frame, asker, false),
            Kind::Or(connected) => self.connect(connected, frame, asker, true),
            Kind::Not(operand) => self.not(op, operand, frame),
            Kind::Equal { left, right, negated } => self.equal(op, left, right, *negated, frame),
            Kind::Empty { operand, negated } => self.empty(operand, *negated, frame),
            Kind::Compare { comparison, left, right } => self.compare(op, *comparison, left, right, frame),
            Kind::In { needle, haystack } => self.contained(op, needle, haystack, frame),
            Kind::InTexts { needle, texts, or_nil } => self.in_texts(needle, texts, *or_nil, frame),
            Kind::InRange { needle, range } => self.in_range(op, needle, range, frame),
            Kind::Matches { subject, pattern } => self.matches(op, subject, pattern, frame),
            Kind::MatchesConstant { subject, regex } => self.matches_constant(op, subject, regex, frame),
            Kind::Text { relation, subject, part } => self.text(op, *relation, subject, part, frame),
            Kind::Predicate { predicate: Predicate::Any, collection, body, .. } => {
                self.some(op.at, collection, body.as_deref(), frame, true)
            }
            Kind::Predicate { predicate: Predicate::None, collection, body, .. } => {
                Ok(!self.some(op.at, collection, body.as_deref(), frame, true)?)
            }
            Kind::Predicate { predicate: Predicate::All, collection, body, .. } => {
                Ok(!self.some(op.at, collection, body.as_deref(), frame, false)?)
            }
            _ => self.truth_of_value(op, frame, asker),
        }
    }

    #[inline(never)]
    fn truth_of_value(&self, op: &'a Op, frame: &Frame<'a>, asker: u32) -> Result<bool, Stopped> {
        let value = self.value(op, frame)?;
        self.truth_of(value, asker)
    }

    #[inline(never)]
    fn not(&self, op: &'a Op, operand: &'a Op, frame: &Frame<'a>) -> Result<bool, Stopped> {
        Ok(!self.truth(operand, frame, op.at)?)
    }

    /// Whether a list or a map is missing or empty, which is the same to Kubernetes.
    #[inline(never)]
    fn empty(&self, operand: &'a Op, negated: bool, frame: &Frame<'a>) -> Result<bool, Stopped> {
        Ok(self.operand(operand, frame)?.is_empty() != negated)
    }

    #[inline(never)]
    fn compare(
        &self,
        op: &'a Op,
        comparison: Comparison,
        left: &'a Op,
        right: &'a Op,
        frame: &Frame<'a>,
    ) -> Result<bool, Stopped> {
        let (left, right) = (self.operand(left, frame)?, self.operand(right, frame)?);
        operators::compare(self.machine, comparison, left, right).map_err(|failure| self.fail(failure, op.at))
    }

    #[inline(never)]
    fn contained(&self, op: &'a Op, needle: &'a Op, haystack: &'a Op, frame: &Frame<'a>) -> Result<bool, Stopped> {
        let (needle, haystack) = (self.operand(needle, frame)?, self.operand(haystack, frame)?);
        operators::contained(self.machine, needle, haystack).map_err(|failure| self.fail(failure, op.at))
    }

    #[inline(never)]
    fn in_texts(&self, needle: &'a Op, texts: &[Box<str>], or_nil: bool, frame: &Frame<'a>) -> Result<bool, Stopped> {
        match self.operand(needle, frame)? {
            Value::Text(needle) => Ok(texts.iter().any(|text| **text == *needle)),
            needle => Ok(or_nil && needle.is_nil()),
        }
    }

    #[inline(never)]
    fn in_range(&self, op: &'a Op, needle: &'a Op, range: &Range, frame: &Frame<'a>) -> Result<bool, Stopped> {
        let needle = self.operand(needle, frame)?;
        operators::in_range(self.machine, needle, range).map_err(|failure| self.fail(failure, op.at))
    }

    #[inline(never)]
    fn matches(&self, op: &'a Op, subject: &'a Op, pattern: &'a Op, frame: &Frame<'a>) -> Result<bool, Stopped> {
        let (subject, pattern) = (self.operand(subject, frame)?, self.operand(pattern, frame)?);
        operators::matches(self.machine, subject, pattern).map_err(|failure| self.fail(failure, op.at))
    }

    #[inline(never)]
    fn matches_constant(&self, op: &'a Op, subject: &'a Op, regex: &Regex, frame: &Frame<'a>) -> Result<bool, Stopped> {
        let subject = self.operand(subject, frame)?;
        operators::matches_regex(self.machine, subject, regex).map_err(|failure| self.fail(failure, op.at))
    }

    #[inline(never)]
    fn text(
        &self,
        op: &'a Op,
        relation: TextRelation,
        subject: &'a Op,
        part: &'a Op,
        frame: &Frame<'a>,
    ) -> Result<bool, Stopped> {
        let (subject, part) = (self.operand(subject, frame)?, self.operand(part, frame)?);
        match relation {
            TextRelation::Contains => operators::contains(self.machine, subject, part),
            TextRelation::StartsWith => operators::starts_with(self.machine, subject, part),
            TextRelation::EndsWith => operators::ends_with(self.machine, subject, part),
        }
        .map_err(|failure| self.fail(failure, op.at))
    }

    /// `&&` and `||`: the first operand that decides is the answer.
    #[inline(never)]
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

    #[inline(never)]
    fn equal(
        &self,
        op: &'a Op,
        left: &'a Op,
        right: &'a Op,
        negated: bool,
        frame: &Frame<'a>,
    ) -> Result<bool, Stopped> {
        // What most comparisons are: a field of the object or of an element with something that is known.
        if let (
            Kind::Path { base, keys, missing: missing @ (Missing::Nil | Missing::NilOrEmpty) },
            Kind::Constant(constant),
        ) = (&left.kind, &right.kind)
            && let Some(Value::Node(node)) = self.place(base, frame)
            && let Ok(found) = node.follow(keys)
            && let Some(equal) = is(found.filter(|found| !missing.includes(*found)), constant)
        {
            self.machine.step(3).map_err(|failure| self.fail(failure, op.at))?;
            return Ok(equal != negated);
        }
        self.equal_values(op, left, right, negated, frame)
    }

    #[inline(never)]
    fn equal_values(
        &self,
        op: &'a Op,
        left: &'a Op,
        right: &'a Op,
        negated: bool,
        frame: &Frame<'a>,
    ) -> Result<bool, Stopped> {
        let (left, right) = (self.operand(left, frame)?, self.operand(right, frame)?);
        let equal = operators::equal(self.machine, left, right).map_err(|failure| self.fail(failure, op.at))?;
        Ok(equal != negated)
    }
}

/// Whether a field that may be missing is the same as a constant. Nothing for constants that take more than a look.
#[inline]
fn is(node: Option<Node<'_>>, constant: &Constant) -> Option<bool> {
    let Some(node) = node else { return Some(matches!(constant, Constant::Nil)) };
    match constant {
        Constant::Nil => Some(node.is_null()),
        Constant::Bool(expected) => Some(node.as_bool() == Some(*expected)),
        Constant::Text(expected) if expected.len() < MAX_FREE_TEXT => Some(node.as_str() == Some(expected)),
        _ => None,
    }
}

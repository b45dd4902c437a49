//! Runs a program. A walk over the tree of operations: values are copied, nothing is allocated unless the expression makes
//! text, lists or maps.

mod predicates;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use bumpalo::Bump;
use portal_document::Node;

use crate::{
    builtins,
    error::{Error, Phase},
    host::Host,
    limits::Limits,
    machine::{Failure, Machine},
    operators,
    program::{Arithmetic, Connected, Constant, Kind, Missing, Op, Program, TextRelation},
    value::{Keys, Moment, Value, map::Duplicates},
};

/// What a predicate's body sees.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    item: Value<'a>,
    index: i64,
    accumulator: Value<'a>,
}

/// Why a value did not come about.
pub(crate) enum Stop {
    /// A `?.` met nil: the chain around it is nil.
    Nil,
    /// A failure, and where.
    Failed(Failure, u32),
}

pub(crate) type Outcome<'a> = Result<Value<'a>, Stop>;

/// One evaluation.
pub(crate) struct Evaluation<'a, 'm> {
    pub(crate) host: &'a dyn Host,
    pub(crate) machine: &'m Machine<'a>,
    /// What `let` declared, written when the declaration is evaluated.
    variables: Vec<Cell<Value<'a>>>,
}

impl Program {
    /// Evaluates the program. What it makes lives in the arena.
    pub fn evaluate<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Bump,
        limits: &Limits,
        now: Moment,
    ) -> Result<Value<'a>, Error> {
        let machine = Machine::new(arena, limits, now, self.strict);
        let evaluation = Evaluation::new(self, host, &machine);
        evaluation.run(&self.root, &Frame::OUTSIDE).or_else(|stop| match stop {
            Stop::Nil => Ok(Value::Nil),
            Stop::Failed(failure, at) => Err(Error::at(Phase::Run, &self.source, at, failure.to_string())),
        })
    }
}

impl<'a> Frame<'a> {
    /// Outside of every predicate. The compiler refuses `#` there.
    pub(crate) const OUTSIDE: Self = Self { item: Value::Nil, index: 0, accumulator: Value::Nil };

    pub(crate) fn of(item: Value<'a>, index: i64) -> Self {
        Self { item, index, accumulator: Value::Nil }
    }
}

impl Constant {
    #[inline]
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Nil => Value::Nil,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

impl<'a, 'm> Evaluation<'a, 'm> {
    pub(crate) fn new(program: &'a Program, host: &'a dyn Host, machine: &'m Machine<'a>) -> Self {
        let variables = program.variables.iter().map(|_| Cell::new(Value::Nil)).collect();
        Self { host, machine, variables }
    }

    pub(crate) fn run(&self, op: &'a Op, frame: &Frame<'a>) -> Outcome<'a> {
        let at = op.at;
        let fail = |failure| Stop::Failed(failure, at);
        self.machine.step(1).map_err(fail)?;
        match &op.kind {
            Kind::Constant(constant) => Ok(constant.value()),
            Kind::Root(slot) => Ok(self.host.root(*slot)),
            Kind::Environment => Ok(self.host.environment()),
            Kind::Variable(variable) => Ok(self.variables[usize::from(*variable)].get()),
            Kind::Item => Ok(frame.item),
            Kind::Index => Ok(Value::Int(frame.index)),
            Kind::Accumulator => Ok(frame.accumulator),
            Kind::Path { base, keys, missing } => {
                let value = match self.run(base, frame)? {
                    Value::Node(node) => {
                        let found = keys.iter().try_fold(node, |node: Node<'a>, key| node.get(key));
                        found.map_or(Value::Nil, Value::from_node)
                    }
                    other => keys
                        .iter()
                        .try_fold(other, |value, key| operators::fetch_key(self.machine, value, key))
                        .map_err(fail)?,
                };
                Ok(missing.or(value))
            }
            Kind::Computed { base, field, missing, .. } => match self.run(base, frame)? {
                Value::Nil => Ok(missing.or(Value::Nil)),
                value => Ok(missing.or(self.host.computed(*field, value, self.machine).map_err(fail)?)),
            },
            Kind::Field { base, key, optional } => match self.run(base, frame)? {
                Value::Nil if *optional => Err(Stop::Nil),
                value => operators::fetch_key(self.machine, value, key).map_err(fail),
            },
            Kind::Fetch { base, property, optional } => {
                let base = self.run(base, frame)?;
                if *optional && base.is_nil() {
                    return Err(Stop::Nil);
                }
                let property = self.run(property, frame)?;
                operators::fetch(self.machine, base, property).map_err(fail)
            }
            Kind::Chain(inner) => match self.run(inner, frame) {
                Err(Stop::Nil) => Ok(Value::Nil),
                outcome => outcome,
            },
            Kind::Slice { base, from, to } => {
                let base = self.run(base, frame)?;
                let to = to.as_ref().map(|to| self.run(to, frame)).transpose()?;
                let from = from.as_ref().map(|from| self.run(from, frame)).transpose()?;
                operators::slice(self.machine, base, from, to).map_err(fail)
            }
            Kind::Not(operand) => {
                let value = self.run(operand, frame)?;
                Ok(Value::Bool(!self.machine.truth(value).map_err(fail)?))
            }
            Kind::Negate(operand) => operators::negate(self.run(operand, frame)?).map_err(fail),
            Kind::And(operands) => self.connect(operands, frame, false),
            Kind::Or(operands) => self.connect(operands, frame, true),
            Kind::Equal { left, right, negated } => {
                let (left, right) = (self.run(left, frame)?, self.run(right, frame)?);
                Ok(Value::Bool(operators::equal(self.machine, left, right).map_err(fail)? != *negated))
            }
            Kind::Compare { comparison, left, right } => {
                let (left, right) = (self.run(left, frame)?, self.run(right, frame)?);
                operators::compare(self.machine, *comparison, left, right).map(Value::Bool).map_err(fail)
            }
            Kind::Arithmetic { first, rest } => {
                let mut value = self.run(first, frame)?;
                for (operator, at, operand) in rest {
                    let operand = self.run(operand, frame)?;
                    value = self.arithmetic(*operator, value, operand).map_err(|failure| Stop::Failed(failure, *at))?;
                }
                Ok(value)
            }
            Kind::In { needle, haystack } => {
                let (needle, haystack) = (self.run(needle, frame)?, self.run(haystack, frame)?);
                operators::contained(self.machine, needle, haystack).map(Value::Bool).map_err(fail)
            }
            Kind::InTexts { needle, texts } => {
                let found = match self.run(needle, frame)? {
                    Value::Text(needle) => texts.iter().any(|text| **text == *needle),
                    _ => false,
                };
                Ok(Value::Bool(found))
            }
            Kind::Matches { subject, pattern } => {
                let (subject, pattern) = (self.run(subject, frame)?, self.run(pattern, frame)?);
                operators::matches(self.machine, subject, pattern).map(Value::Bool).map_err(fail)
            }
            Kind::MatchesConstant { subject, regex } => {
                let subject = self.run(subject, frame)?;
                operators::matches_regex(self.machine, subject, regex).map(Value::Bool).map_err(fail)
            }
            Kind::Text { relation, subject, part } => {
                let (subject, part) = (self.run(subject, frame)?, self.run(part, frame)?);
                let relation = match relation {
                    TextRelation::Contains => operators::contains,
                    TextRelation::StartsWith => operators::starts_with,
                    TextRelation::EndsWith => operators::ends_with,
                };
                relation(self.machine, subject, part).map(Value::Bool).map_err(fail)
            }
            Kind::Range { first, last } => {
                let (first, last) = (self.run(first, frame)?, self.run(last, frame)?);
                operators::range(self.machine, first, last).map_err(fail)
            }
            Kind::Coalesce { first, second } => match self.run(first, frame) {
                Ok(Value::Nil) => self.run(second, frame),
                outcome => outcome,
            },
            Kind::Conditional { condition, yes, no } => {
                let condition = self.run(condition, frame)?;
                let chosen = if self.machine.truth(condition).map_err(fail)? { yes } else { no };
                self.run(chosen, frame)
            }
            Kind::Let { variable, value, body } => {
                let value = self.run(value, frame)?;
                self.variables[usize::from(*variable)].set(value);
                self.run(body, frame)
            }
            Kind::Sequence(ops) => ops.iter().try_fold(Value::Nil, |_, op| self.run(op, frame)),
            Kind::Array(ops) => {
                let mut values = self.machine.buffer();
                for op in ops {
                    values.push(self.run(op, frame)?).map_err(fail)?;
                }
                self.machine.count_elements(ops.len() as u64).map_err(fail)?;
                Ok(Value::List(values.finish()))
            }
            Kind::Map(pairs) => {
                let mut entries = self.machine.buffer();
                for (key, value) in pairs {
                    let key = self.run(key, frame)?;
                    if !matches!(key, Value::Text(_)) {
                        return Err(fail(Failure::new(format!("a key of a map must be a string, got {}", key.kind()))));
                    }
                    entries.push((key, self.run(value, frame)?)).map_err(fail)?;
                }
                self.machine.count_elements(pairs.len() as u64).map_err(fail)?;
                self.machine.sort_map(entries.finish(), Keys::Text, Duplicates::First).map_err(fail)
            }
            Kind::Builtin { builtin, arguments } => {
                self.with_arguments(arguments, frame, |arguments| builtin.call(self.machine, arguments).map_err(fail))
            }
            Kind::Predicate { predicate, collection, body, extra } => {
                self.predicate(op.at, *predicate, collection, body.as_deref(), extra.as_deref(), frame)
            }
            Kind::Method { base, name, arguments, optional } => {
                // The arguments come first, as in Go.
                self.with_arguments(arguments, frame, |arguments| match self.run(base, frame)? {
                    Value::Nil if *optional => Err(Stop::Nil),
                    base => builtins::method(self.machine, base, name, arguments).map_err(fail),
                })
            }
            Kind::Uncallable { callee, arguments } => self.with_arguments(arguments, frame, |_| {
                let callee = self.run(callee, frame)?;
                Err(fail(Failure::new(format!("a value that is {} cannot be called", callee.kind()))))
            }),
            Kind::Call { site, arguments } => self.with_arguments(arguments, frame, |arguments| {
                self.host.call(*site as usize, arguments, self.machine).map_err(fail)
            }),
        }
    }

    /// `&&` and `||`: the first operand that decides is the answer, and the last one is not looked at, as in Go.
    fn connect(&self, connected: &'a Connected, frame: &Frame<'a>, deciding: bool) -> Outcome<'a> {
        let Some((last, others)) = connected.operands.split_last() else { return Ok(Value::Bool(!deciding)) };
        for (operand, at) in others.iter().zip(&connected.operators) {
            let value = self.run(operand, frame)?;
            let truth = self.machine.truth(value).map_err(|failure| Stop::Failed(failure, *at))?;
            if truth == deciding {
                return Ok(Value::Bool(deciding));
            }
        }
        match self.run(last, frame)? {
            Value::Nil if !self.machine.is_strict() => Ok(Value::Bool(false)),
            value => Ok(value),
        }
    }

    fn arithmetic(&self, operator: Arithmetic, left: Value<'a>, right: Value<'a>) -> Result<Value<'a>, Failure> {
        match operator {
            Arithmetic::Add => operators::add(self.machine, left, right),
            Arithmetic::Subtract => operators::subtract(self.machine, left, right),
            Arithmetic::Multiply => operators::multiply(left, right),
            Arithmetic::Divide => operators::divide(left, right),
            Arithmetic::Modulo => operators::modulo(left, right),
            Arithmetic::Power => operators::power(left, right),
        }
    }

    /// Evaluates arguments, of which there are few, on the stack.
    fn with_arguments(
        &self,
        ops: &'a [Op],
        frame: &Frame<'a>,
        then: impl FnOnce(&[Value<'a>]) -> Outcome<'a>,
    ) -> Outcome<'a> {
        const FEW: usize = 4;
        let mut few = [Value::Nil; FEW];
        if ops.len() <= FEW {
            for (place, op) in few.iter_mut().zip(ops) {
                *place = self.run(op, frame)?;
            }
            return then(&few[..ops.len()]);
        }
        let mut many = self.machine.buffer();
        for op in ops {
            many.push(self.run(op, frame)?).map_err(|failure| Stop::Failed(failure, op.at))?;
        }
        then(many.finish())
    }
}

impl Missing {
    #[inline]
    fn or(self, value: Value<'_>) -> Value<'_> {
        match (self, value) {
            (Self::EmptyList, Value::Nil) => Value::EMPTY,
            (Self::EmptyMap, Value::Nil) => Value::EMPTY_MAP,
            (_, value) => value,
        }
    }
}

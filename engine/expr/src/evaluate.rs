//! Runs a program. A walk over the tree of operations: values are copied, nothing is allocated unless the expression makes
//! text, lists or maps.

mod conditions;
mod predicates;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use bumpalo::Bump;
use portal_document::{Key, NoObject, Node};

use crate::{
    builtins,
    error::{Error, Phase},
    host::Host,
    limits::Limits,
    machine::{Failure, Machine},
    operators,
    program::{Arithmetic, Connected, Constant, Kind, Missing, Op, Predicate, Program},
    schema::ComputedId,
    value::{Keys, Moment, Value, map::Duplicates},
};

/// What a predicate's body sees.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    item: Value<'a>,
    index: i64,
    accumulator: Value<'a>,
}

/// No value came about. The evaluation knows why: a reason in every result would keep bools out of registers.
pub(crate) struct Stopped;

/// Why a value did not come about.
enum Reason {
    /// A `?.` met nil: the chain around it is nil.
    Nil,
    /// A failure, and where.
    Failed(Failure, u32),
}

pub(crate) type Outcome<'a> = Result<Value<'a>, Stopped>;

/// One evaluation.
pub(crate) struct Evaluation<'a, 'm> {
    pub(crate) host: &'a dyn Host,
    pub(crate) machine: &'m Machine<'a>,
    /// What `let` declared, written when the declaration is evaluated.
    variables: &'a [Cell<Value<'a>>],
    /// Why it stopped, if it did.
    reason: Cell<Option<Reason>>,
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
        let error = |failure: Failure, at| Error::at(Phase::Run, &self.source, at, failure.to_string());
        let evaluation = Evaluation::new(self, host, &machine).map_err(|failure| error(failure, self.root.at))?;
        let stopped = |Stopped| match evaluation.reason.take() {
            Some(Reason::Failed(failure, at)) => Err(error(failure, at)),
            Some(Reason::Nil) | None => Ok(Value::Nil),
        };
        if self.root.kind.is_condition() {
            // Apart from other values: a bool that is moved as a part of one takes as long as many operations.
            return match evaluation.truth(&self.root, &Frame::OUTSIDE, self.root.at) {
                Ok(truth) => Ok(Value::Bool(truth)),
                Err(reason) => stopped(reason),
            };
        }
        evaluation.run(&self.root, &Frame::OUTSIDE).or_else(stopped)
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
            Self::Quantity(quantity) => Value::Quantity(quantity),
            Self::Version(version) => Value::Version(version),
            Self::Network(network) => Value::Network(network),
        }
    }
}

impl<'a, 'm> Evaluation<'a, 'm> {
    pub(crate) fn new(program: &'a Program, host: &'a dyn Host, machine: &'m Machine<'a>) -> Result<Self, Failure> {
        let variables = match program.variables.len() {
            0 => &mut [],
            count => machine.fill(count, Value::Nil)?,
        };
        let variables = Cell::from_mut(variables).as_slice_of_cells();
        Ok(Self { host, machine, variables, reason: Cell::new(None) })
    }

    #[cold]
    fn fail(&self, failure: Failure, at: u32) -> Stopped {
        self.reason.set(Some(Reason::Failed(failure, at)));
        Stopped
    }

    /// Skips the chain around.
    fn skip(&self) -> Stopped {
        self.reason.set(Some(Reason::Nil));
        Stopped
    }

    /// Runs an operation.
    #[inline]
    pub(crate) fn run(&self, op: &'a Op, frame: &Frame<'a>) -> Outcome<'a> {
        self.step(op)?;
        if op.kind.is_condition() { self.condition(op, frame, op.at).map(Value::Bool) } else { self.value(op, frame) }
    }

    /// Runs an operation that is likely to be a leaf or a path, without a detour if it is one.
    #[inline(always)]
    fn operand(&self, op: &'a Op, frame: &Frame<'a>) -> Outcome<'a> {
        self.step(op)?;
        match &op.kind {
            Kind::Constant(constant) => Ok(constant.value()),
            Kind::Path { base, keys, missing } => match self.place(base, frame) {
                Some(Value::Node(node)) => self.follow(op, node, keys, *missing),
                _ => self.path(op, base, keys, *missing, frame),
            },
            Kind::Computed { base, field, name, of_text, missing } => {
                self.computed(op, base, (*field, name, *of_text), *missing, frame)
            }
            Kind::Coalesce { first, second, of_empty } => self.coalesce(first, second, *of_empty, frame),
            _ => match self.place(op, frame) {
                Some(value) => Ok(value),
                None => self.value(op, frame),
            },
        }
    }

    /// A field that the host computes. nil has no such field.
    #[inline(never)]
    fn computed(
        &self,
        op: &'a Op,
        base: &'a Op,
        (field, name, of_text): (ComputedId, &'a str, bool),
        missing: Missing,
        frame: &Frame<'a>,
    ) -> Outcome<'a> {
        self.step(base)?;
        let base = match &base.kind {
            Kind::Path { base: below, keys, missing } => match self.place(below, frame) {
                Some(Value::Node(node)) => self.follow(base, node, keys, *missing)?,
                _ => self.path(base, below, keys, *missing, frame)?,
            },
            _ => self.value(base, frame)?,
        };
        match base {
            Value::Nil => Ok(missing.or(Value::Nil)),
            value => {
                let computed = match value {
                    Value::Text(_) if of_text => self.host.computed(field, value, self.machine),
                    Value::Node(_) if !of_text => self.host.computed(field, value, self.machine),
                    _ => operators::fetch(self.machine, value, Value::Text(name)),
                };
                computed.map(|value| missing.or(value)).map_err(|failure| self.fail(failure, op.at))
            }
        }
    }

    /// What is at hand: a root, or the element that a predicate is at.
    #[inline(always)]
    fn place(&self, op: &Op, frame: &Frame<'a>) -> Option<Value<'a>> {
        match &op.kind {
            Kind::Item => Some(frame.item),
            Kind::Root(slot) => Some(self.host.root(*slot)),
            _ => None,
        }
    }

    #[inline(always)]
    fn step(&self, op: &Op) -> Result<(), Stopped> {
        self.machine.step(1).map_err(|failure| self.fail(failure, op.at))
    }

    #[inline(never)]
    fn path(&self, op: &'a Op, base: &'a Op, keys: &'a [Key], missing: Missing, frame: &Frame<'a>) -> Outcome<'a> {
        self.step(base)?;
        let base = match self.place(base, frame) {
            Some(value) => value,
            None => self.value(base, frame)?,
        };
        match base {
            Value::Node(node) => self.follow(op, node, keys, missing),
            other => self.fetch_all(op, other, keys, missing),
        }
    }

    /// What keys lead to, below a place in a document.
    #[inline(always)]
    fn follow(&self, op: &'a Op, node: Node<'a>, keys: &'a [Key], missing: Missing) -> Outcome<'a> {
        match node.follow(keys) {
            Ok(found) => Ok(missing.or(found.map_or(Value::Nil, Value::from_node))),
            // Goes the way once more, for an error that says which value has no fields.
            Err(NoObject) => self.fetch_all(op, Value::Node(node), keys, missing),
        }
    }

    #[inline(never)]
    fn fetch_all(&self, op: &'a Op, base: Value<'a>, keys: &'a [Key], missing: Missing) -> Outcome<'a> {
        keys.iter()
            .try_fold(base, |value, key| operators::fetch_key(self.machine, value, key))
            .map(|value| missing.or(value))
            .map_err(|failure| self.fail(failure, op.at))
    }

    /// Runs an operation whose step is paid.
    fn value(&self, op: &'a Op, frame: &Frame<'a>) -> Outcome<'a> {
        let at = op.at;
        let fail = |failure| self.fail(failure, at);
        match &op.kind {
            Kind::Not(_)
            | Kind::Equal { .. }
            | Kind::Empty { .. }
            | Kind::Compare { .. }
            | Kind::In { .. }
            | Kind::InTexts { .. }
            | Kind::InRange { .. }
            | Kind::Matches { .. }
            | Kind::MatchesConstant { .. }
            | Kind::Text { .. }
            | Kind::Predicate { predicate: Predicate::Any | Predicate::All | Predicate::None, .. } => {
                self.condition(op, frame, at).map(Value::Bool)
            }
            Kind::Constant(constant) => Ok(constant.value()),
            Kind::Root(slot) => Ok(self.host.root(*slot)),
            Kind::Environment => Ok(self.host.environment()),
            Kind::Variable(variable) => Ok(self.variables[usize::from(*variable)].get()),
            Kind::Item => Ok(frame.item),
            Kind::Index => Ok(Value::Int(frame.index)),
            Kind::Accumulator => Ok(frame.accumulator),
            Kind::Path { base, keys, missing } => self.path(op, base, keys, *missing, frame),
            Kind::Computed { base, field, name, of_text, missing } => {
                self.computed(op, base, (*field, name, *of_text), *missing, frame)
            }
            Kind::Field { base, key, optional } => match self.run(base, frame)? {
                Value::Nil if *optional => Err(self.skip()),
                value => operators::fetch_key(self.machine, value, key).map_err(fail),
            },
            Kind::Fetch { base, property, optional } => {
                let base = self.run(base, frame)?;
                if *optional && base.is_nil() {
                    return Err(self.skip());
                }
                let property = self.run(property, frame)?;
                operators::fetch(self.machine, base, property).map_err(fail)
            }
            Kind::Chain(inner) => self.run(inner, frame).or_else(|Stopped| match self.reason.take() {
                Some(Reason::Nil) => Ok(Value::Nil),
                reason => {
                    self.reason.set(reason);
                    Err(Stopped)
                }
            }),
            Kind::Slice { base, from, to } => {
                let base = self.run(base, frame)?;
                let to = to.as_ref().map(|to| self.run(to, frame)).transpose()?;
                let from = from.as_ref().map(|from| self.run(from, frame)).transpose()?;
                operators::slice(self.machine, base, from, to).map_err(fail)
            }
            Kind::Negate(operand) => operators::negate(self.run(operand, frame)?).map_err(fail),
            Kind::And(operands) => self.connect_values(operands, frame, false),
            Kind::Or(operands) => self.connect_values(operands, frame, true),
            Kind::Arithmetic { first, rest } => {
                let mut value = self.run(first, frame)?;
                for (operator, at, operand) in rest {
                    let operand = self.run(operand, frame)?;
                    value = self.arithmetic(*operator, value, operand).map_err(|failure| self.fail(failure, *at))?;
                }
                Ok(value)
            }
            Kind::Range { first, last } => {
                let (first, last) = (self.run(first, frame)?, self.run(last, frame)?);
                operators::range(self.machine, first, last).map_err(fail)
            }
            Kind::Coalesce { first, second, of_empty } => self.coalesce(first, second, *of_empty, frame),
            Kind::OrEmpty { operand, missing } => Ok(missing.or(self.run(operand, frame)?)),
            Kind::Quantity(operand) => operators::quantity(self.machine, self.operand(operand, frame)?).map_err(fail),
            Kind::Conditional { condition, yes, no } => {
                let chosen = if self.truth(condition, frame, at)? { yes } else { no };
                self.run(chosen, frame)
            }
            Kind::Let { variable, value, body } => {
                let value = self.run(value, frame)?;
                self.variables[usize::from(*variable)].set(value);
                self.run(body, frame)
            }
            Kind::Sequence(ops) => ops.iter().try_fold(Value::Nil, |_, op| self.run(op, frame)),
            Kind::Array(ops) => {
                let values = self.machine.fill(ops.len(), Value::Nil).map_err(fail)?;
                for (place, op) in values.iter_mut().zip(ops) {
                    *place = self.run(op, frame)?;
                }
                self.machine.count_elements(ops.len() as u64).map_err(fail)?;
                Ok(Value::List(values))
            }
            Kind::Map(pairs) => {
                let mut entries = self.machine.buffer();
                for (key, value) in pairs {
                    let key = self.run(key, frame)?;
                    entries.push((key, self.run(value, frame)?)).map_err(fail)?;
                }
                let entries = entries.finish();
                // Go looks at the keys when it has everything, so that a mistake in a value comes first.
                if let Some((key, _)) = entries.iter().find(|(key, _)| !matches!(key, Value::Text(_))) {
                    return Err(fail(Failure::new(format!("a key of a map must be a string, got {}", key.kind()))));
                }
                self.machine.count_elements(pairs.len() as u64).map_err(fail)?;
                self.machine.sort_map(entries, Keys::Text, Duplicates::First).map_err(fail)
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
                    Value::Nil if *optional => Err(self.skip()),
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

    #[inline(never)]
    fn coalesce(&self, first: &'a Op, second: &'a Op, of_empty: bool, frame: &Frame<'a>) -> Outcome<'a> {
        match self.operand(first, frame) {
            Ok(value) if value.is_nil() || of_empty && value.is_empty() => self.operand(second, frame),
            outcome => outcome,
        }
    }

    /// `&&` and `||`: the first operand that decides is the answer, and the last one is not looked at, as in Go.
    fn connect_values(&self, connected: &'a Connected, frame: &Frame<'a>, deciding: bool) -> Outcome<'a> {
        let Some((last, others)) = connected.operands.split_last() else { return Ok(Value::Bool(!deciding)) };
        for (operand, at) in others.iter().zip(&connected.operators) {
            if self.truth(operand, frame, *at)? == deciding {
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
            Arithmetic::Multiply => operators::multiply(self.machine, left, right),
            Arithmetic::Divide => operators::divide(self.machine, left, right),
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
            many.push(self.run(op, frame)?).map_err(|failure| self.fail(failure, op.at))?;
        }
        then(many.finish())
    }
}

impl Missing {
    /// Whether a value that is there counts as none.
    #[inline]
    pub(crate) fn includes(self, node: Node<'_>) -> bool {
        self == Self::NilOrEmpty && node.as_str() == Some("")
    }

    #[inline]
    pub(crate) fn or(self, value: Value<'_>) -> Value<'_> {
        match (self, value) {
            (Self::EmptyList, Value::Nil) => Value::EMPTY,
            (Self::EmptyMap, Value::Nil) => Value::EMPTY_MAP,
            (Self::NilOrEmpty, Value::Text("")) => Value::Nil,
            (_, value) => value,
        }
    }
}

//! The values that an operation was made of, as far as they say something to whoever wrote the object.

use super::{Doubt, Explanation, Facts, Observation, Place, Seen, behind, doubted};
use crate::{
    program::{Kind, Op},
    value::Value,
};

/// More missing values than these in `a ?? b ?? c` explain nothing.
const MAX_MISSING: usize = 2;

/// Functions that only read a value in another way: what they were given says more than what they made of it.
pub(super) const READING: [&str; 20] = [
    "quantity",
    "int",
    "float",
    "string",
    "date",
    "duration",
    "lower",
    "upper",
    "trim",
    "trimPrefix",
    "trimSuffix",
    "replace",
    "split",
    "splitAfter",
    "hasPrefix",
    "hasSuffix",
    "fromJSON",
    "toJSON",
    "fromBase64",
    "toBase64",
];

impl<'a> Explanation<'a, '_> {
    pub(super) fn observe_all(&mut self, ops: impl IntoIterator<Item = &'a Op>, place: Place<'_, 'a>) -> Facts<'a> {
        let mut facts = Vec::new();
        for op in ops {
            facts.extend(self.observe(op, place));
        }
        facts
    }

    /// The value of an operation, or those that it was made of where they say more.
    pub(super) fn observe(&mut self, op: &'a Op, place: Place<'_, 'a>) -> Facts<'a> {
        let op = self.behind_names(op);
        if !self.step() || self.is_constant(op, place) {
            return Vec::new();
        }
        match &op.kind {
            Kind::Coalesce { .. } => self.observe_taken(op, place),
            Kind::Conditional { condition, yes, no } => {
                let chosen = self.truth(condition, place).unwrap_or_default();
                let decisive = self.observe(if chosen { yes } else { no }, place);
                behind(decisive, self.explain(condition, chosen, place))
            }
            Kind::Let { variable, value, body } => {
                self.declare(*variable, value, place);
                self.observe(body, place)
            }
            Kind::Sequence(ops) => ops.last().map(|last| self.observe(last, place)).unwrap_or_default(),
            Kind::Not(_) => self.explain_value(op, place),
            kind if kind.is_condition() => self.explain_value(op, place),
            Kind::Negate(operand) => self.observe(operand, place),
            Kind::Arithmetic { first, rest } => {
                let operands = std::iter::once(&**first).chain(rest.iter().map(|(.., operand)| operand));
                self.observe_all(operands, place)
            }
            Kind::Array(elements) => self.observe_all(elements, place),
            Kind::Map(entries) => self.observe_all(entries.iter().map(|(_, value)| value), place),
            Kind::Range { first, last } => self.observe_all([&**first, last], place),
            Kind::Slice { base, .. } => self.observe(base, place),
            Kind::Method { base, arguments, .. } => self.observe_all(std::iter::once(&**base).chain(arguments), place),
            Kind::Builtin { builtin, arguments } if READING.contains(&builtin.name) => {
                self.observe_all(arguments, place)
            }
            Kind::Builtin { builtin, arguments: list }
                if let ("len", [list], Some(Value::Int(0))) = (builtin.name, &**list, self.value(op, place)) =>
            {
                self.presence(list, true, place)
            }
            Kind::Fetch { base, .. } if self.is_reading(base) => self.observe(base, place),
            _ => self.observe_itself(op, place),
        }
    }

    fn explain_value(&mut self, op: &'a Op, place: Place<'_, 'a>) -> Facts<'a> {
        let truth = self.truth(op, place).unwrap_or_default();
        self.explain(op, truth, place)
    }

    fn observe_itself(&mut self, op: &'a Op, place: Place<'_, 'a>) -> Facts<'a> {
        if let Some(facts) = self.explain_unset(op, place) {
            return facts;
        }
        // What is not there has no fields: that is what there is to tell, and what asked for it.
        if let Some((call, arguments)) = self.absent(op, place)
            && let Some(subject) = self.describe(call, place)
        {
            let absent = Observation { seen: Seen::Found, ..Observation::field(subject, Value::Nil) };
            return std::iter::once(absent).chain(self.observe_all(arguments, place)).collect();
        }
        let Some(value) = self.value(op, place) else { return Vec::new() };
        if let Some(subject) = self.describe(op, place) {
            let seen = if self.is_found(op) { Seen::Found } else { Seen::Field };
            return vec![Observation { seen, ..Observation::field(subject, value) }];
        }
        match &op.kind {
            Kind::Builtin { arguments, .. } | Kind::Call { arguments, .. } => self.observe_all(arguments, place),
            Kind::Predicate { collection, .. } => self.observe(collection, place),
            _ => Vec::new(),
        }
    }

    /// What was not set of what a lookup was to find. That nothing is called so, or selected, would say something else.
    pub(super) fn explain_unset(&mut self, op: &'a Op, place: Place<'_, 'a>) -> Option<Facts<'a>> {
        let op = self.behind_names(op);
        let (call, arguments) = match &op.kind {
            Kind::Call { arguments, .. } if self.is_found(op) => (op, &**arguments),
            _ => self.absent(op, place)?,
        };
        if !self.value(call, place)?.is_empty() {
            return None;
        }
        let is_unset =
            |op: &&'a Op| !self.is_constant(op, place) && self.value(op, place).is_some_and(|value| value.is_nil());
        let unset: Vec<&'a Op> = arguments.iter().filter(is_unset).collect();
        Some(self.observe_all(unset, place)).filter(|facts| !facts.is_empty())
    }

    /// What `??` took. Where that is a constant, or nothing was there at all, what was missing says more.
    fn observe_taken(&mut self, op: &'a Op, place: Place<'_, 'a>) -> Facts<'a> {
        let (mut operands, mut rest) = (Vec::new(), vec![op]);
        while let Some(op) = rest.pop() {
            match &self.behind_names(op).kind {
                Kind::Coalesce { first, second, .. } => rest.extend([&**second, first]),
                _ => operands.push(op),
            }
        }
        let default = operands.iter().find(|op| self.is_constant(op, place)).and_then(|op| self.value(op, place));
        operands.retain(|op| !self.is_constant(op, place));
        let is_there = |op: &&&'a Op| self.value(op, place).is_some_and(|value| !value.is_empty());
        if let Some(taken) = operands.iter().find(is_there) {
            return self.observe(taken, place);
        }
        let is_too_much = operands.len() > MAX_MISSING;
        let mut facts = self.observe_all(operands, place);
        // What says nothing by itself is as good as none.
        let default =
            default.filter(|value| !value.is_empty() && !matches!(value, Value::Text("") | Value::Bool(false)));
        if let Some(last) = facts.last_mut().filter(|fact| fact.value.is_nil() && fact.seen == Seen::Field) {
            last.counts_as = default;
        }
        if is_too_much { doubted(facts, Doubt::LeftOut) } else { facts }
    }
}

//! Says what made an expression true: the values that its comparisons saw. It evaluates again, so nobody pays for it who
//! does not ask.

use bumpalo::Bump;

use crate::{
    evaluate::{Evaluation, Frame},
    host::Host,
    limits::Limits,
    machine::Machine,
    program::{Connected, Constant, Kind, Op, Predicate, Program},
    value::{Moment, Value},
};

/// A value that an expression saw.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// What it is the value of, as the expression calls it: `spec.containers[1].image`.
    pub subject: String,
    /// The value.
    pub value: Value<'a>,
}

/// More would not be read.
const MAX_OBSERVATIONS: usize = 8;

/// What the elements of the predicate around are called.
#[derive(Clone, Copy)]
struct Place<'p, 'a> {
    frame: &'p Frame<'a>,
    item: Option<&'p str>,
}

struct Explanation<'a, 'm> {
    program: &'a Program,
    evaluation: Evaluation<'a, 'm>,
    observations: Vec<Observation<'a>>,
}

impl Program {
    /// The observations that made the program true. Empty if it is not true.
    pub fn explain<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Bump,
        limits: &Limits,
        now: Moment,
    ) -> Vec<Observation<'a>> {
        let machine = Machine::new(arena, limits, now, self.strict);
        let Ok(evaluation) = Evaluation::new(self, host, &machine) else { return Vec::new() };
        let mut explanation = Explanation { program: self, evaluation, observations: Vec::new() };
        let place = Place { frame: &Frame::OUTSIDE, item: None };
        if explanation.truth(&self.root, place) == Some(true) {
            explanation.explain(&self.root, true, place);
        }
        explanation.observations
    }
}

impl<'a> Explanation<'a, '_> {
    fn value(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<Value<'a>> {
        self.evaluation.run(op, place.frame).ok()
    }

    fn truth(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<bool> {
        match self.value(op, place)? {
            Value::Bool(truth) => Some(truth),
            Value::Nil => Some(false),
            _ => None,
        }
    }

    /// Explains why an operation is true, or why it is false.
    fn explain(&mut self, op: &'a Op, truth: bool, place: Place<'_, 'a>) {
        if self.observations.len() >= MAX_OBSERVATIONS {
            return;
        }
        match &op.kind {
            Kind::Not(operand) => self.explain(operand, !truth, place),
            Kind::Chain(inner) => self.explain(inner, truth, place),
            // One operand decides, or all together.
            Kind::Or(connected) => self.explain_connected(connected, truth, truth, place),
            Kind::And(connected) => self.explain_connected(connected, truth, !truth, place),
            Kind::Conditional { condition, yes, no } => {
                let chosen = self.truth(condition, place).unwrap_or_default();
                self.explain(condition, chosen, place);
                self.explain(if chosen { yes } else { no }, truth, place);
            }
            Kind::Let { variable: _, value, body } => {
                // The evaluation that found the whole to be true has set the variable.
                let _ = self.value(value, place);
                self.explain(body, truth, place);
            }
            Kind::Empty { operand, .. } => self.observe_presence(operand, place),
            Kind::Equal { left, right, .. } | Kind::Compare { left, right, .. } => {
                self.observe_all(&[left, right], place)
            }
            Kind::In { needle, haystack } => self.observe_all(&[needle, haystack], place),
            Kind::InTexts { needle, .. } => self.observe_all(&[needle], place),
            Kind::Matches { subject, pattern } => self.observe_all(&[subject, pattern], place),
            Kind::MatchesConstant { subject, .. } => self.observe_all(&[subject], place),
            Kind::Text { subject, part, .. } => self.observe_all(&[subject, part], place),
            Kind::Predicate { predicate, collection, body: Some(body), .. } => {
                self.explain_predicate(*predicate, collection, body, truth, place);
            }
            _ => self.observe(op, place),
        }
    }

    fn explain_connected(&mut self, connected: &'a Connected, truth: bool, one_decides: bool, place: Place<'_, 'a>) {
        for operand in &connected.operands {
            if !one_decides || self.truth(operand, place) == Some(truth) {
                self.explain(operand, truth, place);
                if one_decides {
                    return;
                }
            }
        }
    }

    /// The first element that decides, or the collection where all of them do.
    fn explain_predicate(
        &mut self,
        predicate: Predicate,
        collection: &'a Op,
        body: &'a Op,
        truth: bool,
        place: Place<'_, 'a>,
    ) {
        let deciding = match (predicate, truth) {
            (Predicate::Any, true) | (Predicate::None, false) => true,
            (Predicate::All, false) => false,
            _ => return self.observe(collection, place),
        };
        let elements = self.value(collection, place).and_then(Value::sequence);
        let name = self.describe(collection, place);
        for (index, item) in (0..).zip(elements.into_iter().flat_map(|elements| elements.iter())) {
            let frame = Frame::of(item, index);
            // An element of a list that the expression itself writes down has a name of its own.
            let written = match &collection.kind {
                Kind::Array(written) => written.get(index as usize),
                _ => None,
            };
            let item_name = written.map_or_else(|| format!("{name}[{index}]"), |element| self.describe(element, place));
            let inner = Place { frame: &frame, item: Some(&item_name) };
            if self.truth(body, inner) == Some(deciding) {
                return self.explain(body, deciding, inner);
            }
        }
    }

    fn observe_all(&mut self, ops: &[&'a Op], place: Place<'_, 'a>) {
        for op in ops {
            self.observe(op, place);
        }
    }

    fn observe(&mut self, op: &'a Op, place: Place<'_, 'a>) {
        if is_constant(op) || self.observations.len() >= MAX_OBSERVATIONS {
            return;
        }
        if let Some(value) = self.value(op, place) {
            let subject = self.describe(op, place);
            self.observations.push(Observation { subject, value });
        }
    }

    /// A list or a map of nothing is as good as none.
    fn observe_presence(&mut self, op: &'a Op, place: Place<'_, 'a>) {
        self.observe(op, place);
        if let Some(observation) = self.observations.last_mut()
            && observation.value.is_empty()
        {
            observation.value = Value::Nil;
        }
    }

    /// What an operation is called.
    fn describe(&self, op: &Op, place: Place<'_, 'a>) -> String {
        match &op.kind {
            Kind::Root(slot) => {
                let name = self.program.roots.iter().find(|(root, _)| root == slot);
                name.map(|(_, name)| name.to_string()).unwrap_or_default()
            }
            Kind::Variable(variable) => self.program.variables[usize::from(*variable)].to_string(),
            Kind::Item => place.item.unwrap_or("#").to_owned(),
            Kind::Index => "#index".to_owned(),
            Kind::Accumulator => "#acc".to_owned(),
            Kind::Path { base, keys, .. } => {
                let mut text = self.describe(base, place);
                for key in keys {
                    push_field(&mut text, key.text());
                }
                text
            }
            Kind::Field { base, key, .. } => {
                let mut text = self.describe(base, place);
                push_field(&mut text, key.text());
                text
            }
            Kind::Computed { base, name, .. } => format!("{}.{name}", self.describe(base, place)),
            Kind::Fetch { base, property, .. } => {
                format!("{}[{}]", self.describe(base, place), self.describe(property, place))
            }
            Kind::Chain(inner) | Kind::Quantity(inner) => self.describe(inner, place),
            Kind::OrEmpty { operand, .. } => self.describe(operand, place),
            Kind::Coalesce { .. } => format!("({})", self.describe_alternatives(op, place)),
            Kind::Constant(Constant::Nil) => "nil".to_owned(),
            Kind::Constant(Constant::Bool(value)) => value.to_string(),
            Kind::Constant(Constant::Int(value)) => value.to_string(),
            Kind::Constant(Constant::Float(value)) => value.to_string(),
            Kind::Constant(Constant::Text(text)) => format!("{text:?}"),
            Kind::Builtin { builtin, arguments } => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.describe(argument, place)).collect();
                format!("{}({})", builtin.name, arguments.join(", "))
            }
            // The kind that is asked for, without the function and its arguments: `len(pods)`.
            Kind::Call { site, .. } => match self.program.calls.get(*site as usize) {
                Some(call) if !call.names.is_empty() => call.names.join("."),
                _ => "the value".to_owned(),
            },
            _ => "the value".to_owned(),
        }
    }

    /// `a ?? b ?? c`, which needs no parentheses inside.
    fn describe_alternatives(&self, op: &Op, place: Place<'_, 'a>) -> String {
        match &op.kind {
            Kind::Coalesce { first, second, .. } => {
                format!("{} ?? {}", self.describe_alternatives(first, place), self.describe(second, place))
            }
            _ => self.describe(op, place),
        }
    }
}

/// `.name`, or `["…"]` for names that are no words.
fn push_field(text: &mut String, name: &str) {
    let is_word = name.chars().all(|character| character.is_alphanumeric() || character == '_');
    if is_word {
        text.push('.');
        text.push_str(name);
    } else {
        text.push_str(&format!("[{name:?}]"));
    }
}

/// Whether an operation has the same value always, so that there is nothing to observe.
fn is_constant(op: &Op) -> bool {
    match &op.kind {
        Kind::Constant(_) => true,
        Kind::Array(elements) => elements.iter().all(is_constant),
        _ => false,
    }
}

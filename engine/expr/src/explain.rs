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
    /// Whether it is what a call of the host found, rather than a field.
    pub is_found: bool,
    /// Whether it is missing and passed for being something else: most objects do.
    is_weak: bool,
}

/// More would not be read.
const MAX_OBSERVATIONS: usize = 3;

/// No more than these are looked at.
const MAX_CANDIDATES: usize = 16;

/// The longest description of a part of an expression. What is longer explains nothing.
const MAX_DESCRIPTION: usize = 80;

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
    /// What each variable stands for, if that is said shortly. Asked once for each: variables of variables could grow without end.
    variables: Vec<Option<&'a Op>>,
}

impl Program {
    /// The observations that made the program true, the decisive one first. Empty if it is not true.
    pub fn explain<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Bump,
        limits: &Limits,
        now: Moment,
    ) -> Vec<Observation<'a>> {
        let machine = Machine::new(arena, limits, now, self.strict);
        let Ok(evaluation) = Evaluation::new(self, host, &machine) else { return Vec::new() };
        let variables = vec![None; self.variables.len()];
        let mut explanation = Explanation { program: self, evaluation, observations: Vec::new(), variables };
        let place = Place { frame: &Frame::OUTSIDE, item: None };
        if explanation.truth(&self.root, place) == Some(true) {
            explanation.explain(&self.root, true, place);
        }
        let mut observations = explanation.observations;
        if observations.iter().any(|observation| !observation.is_weak) {
            observations.retain(|observation| !observation.is_weak);
        }
        observations.truncate(MAX_OBSERVATIONS);
        observations
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
        if self.observations.len() >= MAX_CANDIDATES {
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
            Kind::Let { variable, value, body } => {
                // The evaluation that found the whole to be true has set the variable.
                let _ = self.value(value, place);
                self.variables[usize::from(*variable)] = self.is_short(value, place).then_some(value);
                self.explain(body, truth, place);
            }
            Kind::Empty { operand, .. } => self.observe_presence(operand, place),
            Kind::Equal { left, right, negated } => {
                let seen = self.observations.len();
                self.observe_all(&[left, right], place);
                if *negated == truth {
                    for observation in &mut self.observations[seen..] {
                        observation.is_weak = observation.value.is_nil();
                    }
                }
            }
            Kind::Compare { left, right, .. } => self.observe_all(&[left, right], place),
            Kind::In { needle, haystack } => self.observe_all(&[needle, haystack], place),
            Kind::InTexts { needle, .. } | Kind::InRange { needle, .. } => self.observe_all(&[needle], place),
            Kind::Matches { subject, pattern } => self.observe_all(&[subject, pattern], place),
            Kind::MatchesConstant { subject, .. } => self.observe_all(&[subject], place),
            Kind::Text { subject, part, .. } => self.observe_all(&[subject, part], place),
            Kind::Predicate { predicate, collection, body: Some(body), .. } => {
                self.explain_predicate(*predicate, collection, body, truth, place);
            }
            // What was asked about says more than the answer.
            Kind::Builtin { builtin, arguments } if builtin.asks() || builtin.name == "glob" => {
                self.observe_all(&arguments.iter().collect::<Vec<_>>(), place);
            }
            _ => self.observe(op, place),
        }
    }

    /// One operand explains it, or all do. Of all the last comes first: those before it are what had to be so for it to matter.
    fn explain_connected(&mut self, connected: &'a Connected, truth: bool, one_decides: bool, place: Place<'_, 'a>) {
        if !one_decides {
            return connected.operands.iter().rev().for_each(|operand| self.explain(operand, truth, place));
        }
        let deciding = connected.operands.iter().find(|operand| self.truth(operand, place) == Some(truth));
        if let Some(operand) = deciding {
            self.explain(operand, truth, place);
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
        let name = self.describe_list(collection, place);
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
        let op = self.taken(op, place);
        if is_constant(op) || self.observations.len() >= MAX_CANDIDATES {
            return;
        }
        let Some(value) = self.value(op, place) else { return };
        let subject = self.describe(op, place);
        if !self.observations.iter().any(|observation| observation.subject == subject) {
            self.observations.push(Observation { subject, value, is_found: self.is_found(op), is_weak: false });
        }
    }

    /// What is behind a variable, what was read as something else, and what `??` took. Where that is a constant, what was missing says more.
    fn taken(&self, op: &'a Op, place: Place<'_, 'a>) -> &'a Op {
        match &op.kind {
            Kind::Quantity(inner) | Kind::OrEmpty { operand: inner, .. } | Kind::Chain(inner) => {
                self.taken(inner, place)
            }
            Kind::Builtin { builtin, arguments } if let (true, [text]) = (builtin.reads_text(), &arguments[..]) => {
                self.taken(text, place)
            }
            Kind::Variable(variable) => match self.variables[usize::from(*variable)] {
                Some(value) => self.taken(value, place),
                None => op,
            },
            Kind::Coalesce { first, second, of_empty } => {
                let is_missing = |value: Value<'a>| value.is_nil() || *of_empty && value.is_empty();
                let takes_second = self.value(first, place).is_some_and(is_missing) && !is_constant(second);
                self.taken(if takes_second { second } else { first }, place)
            }
            _ => op,
        }
    }

    fn is_short(&self, op: &'a Op, place: Place<'_, 'a>) -> bool {
        !matches!(op.kind, Kind::Predicate { .. } | Kind::Conditional { .. } | Kind::Array(_) | Kind::Map(_))
            && self.describe(op, place).len() <= MAX_DESCRIPTION
    }

    fn is_found(&self, op: &Op) -> bool {
        matches!(&op.kind, Kind::Call { site, .. } if self.program.calls.get(*site as usize).is_some_and(|call| call.root.is_some()))
    }

    /// A list or a map of nothing is as good as none.
    fn observe_presence(&mut self, op: &'a Op, place: Place<'_, 'a>) {
        self.observe(op, place);
        if let Some(observation) = self.observations.last_mut()
            && observation.value.is_empty()
            && !observation.is_found
        {
            observation.value = Value::Nil;
        }
    }

    /// What an operation is called.
    fn describe(&self, op: &'a Op, place: Place<'_, 'a>) -> String {
        let op = self.taken(op, place);
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
                format!("{}[{}]", self.describe_list(base, place), self.describe(property, place))
            }
            Kind::Constant(Constant::Nil) => "nil".to_owned(),
            Kind::Constant(Constant::Bool(value)) => value.to_string(),
            Kind::Constant(Constant::Int(value)) => value.to_string(),
            Kind::Constant(Constant::Float(value)) => value.to_string(),
            Kind::Constant(Constant::Text(text)) => format!("{text:?}"),
            Kind::Builtin { builtin, arguments } => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.describe(argument, place)).collect();
                format!("{}({})", builtin.name, arguments.join(", "))
            }
            Kind::Call { site, arguments } => self.describe_call(op, *site, arguments, place),
            Kind::Predicate { predicate, collection, .. } => {
                format!("{}({}, …)", predicate.name(), self.describe(collection, place))
            }
            Kind::Arithmetic { first, rest } => {
                rest.iter().fold(self.describe(first, place), |text, (operator, _, operand)| {
                    format!("{text} {} {}", operator.sign(), self.describe(operand, place))
                })
            }
            Kind::Slice { base, .. } => format!("{}[…]", self.describe(base, place)),
            Kind::Array(_) => "[…]".to_owned(),
            Kind::Map(_) => "{…}".to_owned(),
            Kind::Method { base, name, .. } => format!("{}.{name}()", self.describe(base, place)),
            Kind::Negate(operand) => format!("-{}", self.describe(operand, place)),
            _ => "the value".to_owned(),
        }
    }

    /// What a list is called whose elements are: what a call found is known by its kind alone.
    fn describe_list(&self, op: &'a Op, place: Place<'_, 'a>) -> String {
        match &self.taken(op, place).kind {
            Kind::Call { site, .. }
                if let Some(call) = self.program.calls.get(*site as usize)
                    && !call.names.is_empty() =>
            {
                call.names.join(".")
            }
            _ => self.describe(op, place),
        }
    }

    /// What a call of the host asks for: `services["shop/web"]`, `pods in shop`.
    fn describe_call(&self, op: &'a Op, site: u32, arguments: &'a [Op], place: Place<'_, 'a>) -> String {
        let Some(call) = self.program.calls.get(site as usize) else { return "the value".to_owned() };
        if call.names.is_empty() {
            let arguments: Vec<String> = arguments.iter().map(|argument| self.describe(argument, place)).collect();
            return format!("{}({})", call.name, arguments.join(", "));
        }
        let texts: Vec<&str> = arguments
            .iter()
            .filter_map(|argument| match self.value(argument, place) {
                Some(Value::Text(text)) => Some(text),
                _ => None,
            })
            .collect();
        let names = call.names.join(".");
        let is_list = self.value(op, place).is_some_and(|value| value.sequence().is_some());
        match &texts[..] {
            [] => names,
            ["*"] if is_list => format!("{names} in all namespaces"),
            [namespace, ..] if is_list => format!("{names} in {namespace}"),
            texts => format!("{names}[{:?}]", texts.join("/")),
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
        Kind::Map(pairs) => pairs.iter().all(|(key, value)| is_constant(key) && is_constant(value)),
        Kind::Builtin { builtin, arguments } => builtin.name != "now" && arguments.iter().all(is_constant),
        _ => false,
    }
}

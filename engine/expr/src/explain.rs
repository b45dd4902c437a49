//! Says what made an expression true: the values that decided, for the person whose object it is about. It evaluates again, so nobody
//! pays for it who does not ask.
//!
//! Of conditions that must all hold the last one decides: those before it say when it matters. What any object passes, such as
//! `os != "windows"` without an `os`, is left out where something else is told. A variable, an element of a list that was put together
//! and a function that only reads a value are told as what they stand for.

mod describe;
mod elements;
mod observe;
mod quantify;
#[cfg(test)]
mod tests;

pub(crate) use self::describe::field_of;

use std::cell::Cell;

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
    /// What it is the value of, as the host calls it, or as the expression does: `spec.containers[1].image`.
    pub subject: String,
    /// The value.
    pub value: Value<'a>,
    /// How it was seen.
    pub seen: Seen,
    /// Whether it only had to be so for another one to matter, and most objects are so: it is worth telling if the others say no more
    /// than which object it is.
    pub is_aside: bool,
    /// What it was taken for, because it is missing.
    pub counts_as: Option<Value<'a>>,
    doubt: Doubt,
}

/// How a value was seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// It is a field, or made of some.
    Field,
    /// A call of the host found it.
    Found,
    /// A call of the host found it, and nothing in it is what was looked for.
    NoneFits,
}

/// Whether a value only had to be something else. Most are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Doubt {
    None,
    /// It is something else.
    Other,
    /// It is missing, and had to be another truth: `x != true` is how people require something.
    Required,
    /// It is missing, and had to be another text: `x != "windows"` is how people leave something out.
    LeftOut,
    /// It is a text that has not what was looked for in it.
    Unlike,
}

/// What is told of a part of an expression, the decisive observation first.
type Facts<'a> = Vec<Observation<'a>>;

/// No more than these are looked at.
const MAX_OBSERVATIONS: usize = 16;

/// How many parts of an expression are looked at, so that variables of variables come to an end.
const MAX_STEPS: usize = 4_000;

/// What the elements of the predicate around are called.
#[derive(Clone, Copy)]
struct Place<'p, 'a> {
    frame: &'p Frame<'a>,
    item: Option<&'p Item>,
}

/// What an element is called.
#[derive(Clone, Debug)]
enum Item {
    Named(String),
    /// It is written in the expression, so that there is nothing to tell of it.
    Written(String),
    /// The key of an entry of a map.
    Key(String),
    /// An entry of a map, as a list of its key and its value.
    Pair {
        map: String,
        key: String,
    },
}

/// What a variable stands for.
#[derive(Clone, Debug)]
enum Meaning<'a> {
    Unknown,
    /// An operation that means the same everywhere.
    Op(&'a Op),
    /// A part of an element, which is called so.
    Named(String),
    /// What a lookup was to find that was made for an element. It is called so, and is not there.
    Absent(String),
}

struct Explanation<'a, 'm> {
    program: &'a Program,
    evaluation: Evaluation<'a, 'm>,
    variables: Vec<Meaning<'a>>,
    steps: Cell<usize>,
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
        let variables = vec![Meaning::Unknown; self.variables.len()];
        let mut explanation = Explanation { program: self, evaluation, variables, steps: Cell::new(MAX_STEPS) };
        match explanation.truth(&self.root, Place::OUTSIDE) {
            Some(true) => told(explanation.explain(&self.root, true, Place::OUTSIDE)),
            _ => Vec::new(),
        }
    }
}

impl Place<'_, '_> {
    const OUTSIDE: Place<'static, 'static> = Place { frame: &Frame::OUTSIDE, item: None };
}

impl<'a> Observation<'a> {
    fn field(subject: String, value: Value<'a>) -> Self {
        Self { subject, value, seen: Seen::Field, is_aside: false, counts_as: None, doubt: Doubt::None }
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

    /// Whether there is time to look at one more part.
    fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    /// Why an operation is true, or why it is false.
    fn explain(&mut self, op: &'a Op, truth: bool, place: Place<'_, 'a>) -> Facts<'a> {
        if !self.step() {
            return Vec::new();
        }
        match &op.kind {
            Kind::Not(operand) => self.explain(operand, !truth, place),
            Kind::Chain(inner) => self.explain(inner, truth, place),
            // One operand decides, or all together.
            Kind::Or(connected) if truth => self.explain_one(connected, truth, place),
            Kind::And(connected) if !truth => self.explain_one(connected, truth, place),
            Kind::Or(connected) | Kind::And(connected) => self.explain_all(connected, truth, place),
            Kind::Conditional { condition, yes, no } => {
                let chosen = self.truth(condition, place).unwrap_or_default();
                let decisive = self.explain(if chosen { yes } else { no }, truth, place);
                behind(decisive, self.explain(condition, chosen, place))
            }
            Kind::Let { variable, value, body } => {
                self.declare(*variable, value, place);
                self.explain(body, truth, place)
            }
            Kind::Variable(variable) => match self.variables[usize::from(*variable)] {
                Meaning::Op(value) => self.explain(value, truth, Place::OUTSIDE),
                _ => self.observe(op, place),
            },
            Kind::Empty { operand, negated } => self.presence(operand, truth != *negated, place),
            Kind::Equal { left, right, negated } => self.explain_equal(left, right, truth != *negated, place),
            Kind::Compare { left, right, .. } => match self.explain_number(left, right, place) {
                Some(facts) => facts,
                None => self.observe_all([&**left, right], place),
            },
            Kind::In { needle, haystack } => self.explain_in(needle, haystack, truth, place),
            Kind::InTexts { needle, .. } | Kind::InRange { needle, .. } => {
                let facts = self.observe(needle, place);
                if truth { facts } else { doubted(facts, Doubt::LeftOut) }
            }
            Kind::Matches { subject, pattern: part } | Kind::Text { subject, part, .. } => {
                unlike(self.observe_all([&**subject, part], place), truth)
            }
            Kind::MatchesConstant { subject, .. } => unlike(self.observe(subject, place), truth),
            Kind::Predicate { predicate, collection, body: Some(body), .. } => {
                self.explain_predicate(*predicate, (collection, body), truth, op, place)
            }
            // What was asked about says more than the answer.
            Kind::Builtin { builtin, arguments } if builtin.asks() || builtin.name == "glob" => {
                unlike(self.observe_all(arguments, place), truth)
            }
            Kind::Call { site, arguments } if !self.is_lookup(*site) => self.observe_all(arguments, place),
            _ => self.observe(op, place),
        }
    }

    /// Notes what a variable stands for. The evaluation that found the whole to be true may have set it to something else since.
    fn declare(&mut self, variable: u16, value: &'a Op, place: Place<'_, 'a>) {
        let found = self.value(value, place);
        self.variables[usize::from(variable)] = if place.item.is_none() || self.is_constant(value, place) {
            Meaning::Op(value)
        } else {
            let is_absent = found.is_some_and(|found| found.is_nil()) && self.is_found(self.behind_names(value));
            let meaning = if is_absent { Meaning::Absent } else { Meaning::Named };
            self.describe(value, place).map_or(Meaning::Unknown, meaning)
        };
    }

    /// Every operand by itself made it so.
    fn explain_one(&mut self, connected: &'a Connected, truth: bool, place: Place<'_, 'a>) -> Facts<'a> {
        let mut all: Vec<Facts<'a>> = Vec::new();
        for operand in &connected.operands {
            // The evaluation ended with the first one: nothing is looked up that it did not look up.
            if !all.is_empty() && self.looks_up(operand) {
                break;
            }
            if self.truth(operand, place) == Some(truth) {
                all.push(self.explain(operand, truth, place));
            }
            if all.len() >= MAX_OBSERVATIONS {
                break;
            }
        }
        each(all)
    }

    /// All operands together made it so. The last comes first: those before it are what had to be so for it to matter.
    fn explain_all(&mut self, connected: &'a Connected, truth: bool, place: Place<'_, 'a>) -> Facts<'a> {
        let mut facts: Facts<'a> = Vec::new();
        for operand in connected.operands.iter().rev() {
            if facts.len() >= MAX_OBSERVATIONS {
                break;
            }
            let before = self.explain(operand, truth, place);
            facts = behind(facts, before);
        }
        facts
    }

    fn explain_equal(&mut self, left: &'a Op, right: &'a Op, is_equal: bool, place: Place<'_, 'a>) -> Facts<'a> {
        if let Some(facts) = self.explain_number(left, right, place) {
            return facts;
        }
        for (one, other) in [(left, right), (right, left)] {
            if is_nothing(other) {
                return self.presence(one, is_equal, place);
            }
        }
        let facts = self.observe_all([left, right], place);
        let is_bool = |op: &Op| matches!(op.kind, Kind::Constant(Constant::Bool(_)));
        match is_equal || !(self.is_constant(left, place) || self.is_constant(right, place)) {
            true => facts,
            false => doubted(facts, if is_bool(left) || is_bool(right) { Doubt::Required } else { Doubt::LeftOut }),
        }
    }

    /// Why something is there, or is not.
    fn presence(&mut self, op: &'a Op, is_missing: bool, place: Place<'_, 'a>) -> Facts<'a> {
        let op = self.behind_names(op);
        match &op.kind {
            Kind::Predicate {
                predicate: Predicate::Filter | Predicate::Find, collection, body: Some(body), ..
            } => match is_missing {
                true => self.explain_none((collection, body), place),
                false => self.explain_some((collection, body), true, place),
            },
            Kind::Predicate { predicate: Predicate::Map, collection, .. } => {
                self.presence(collection, is_missing, place)
            }
            _ => {
                let mut facts = self.observe(op, place);
                for fact in &mut facts {
                    // A list or a map of nothing is as good as none, unless somebody has written it.
                    let is_written = matches!(fact.value, Value::Node(_));
                    if is_missing && fact.value.is_empty() && fact.seen == Seen::Field && !is_written {
                        fact.value = Value::Nil;
                    }
                }
                facts
            }
        }
    }
}

/// What is told in the end: each thing once, nothing as a whole of which a part is told, and no key of which the value is.
fn told(facts: Facts<'_>) -> Facts<'_> {
    let subjects: Vec<String> = facts.iter().map(|fact| fact.subject.clone()).collect();
    let is_part = |part: &str, whole: &str| part.strip_prefix(whole).is_some_and(|rest| rest.starts_with(['.', '[']));
    let mut told: Facts<'_> = Vec::new();
    for fact in facts {
        let entry = match (fact.subject.strip_prefix(elements::KEY_OF), fact.value) {
            (Some(map), Value::Text(key)) => Some(field_of(map, key)),
            _ => None,
        };
        let is_told = |part: &String| is_part(part, &fact.subject) || entry.as_ref() == Some(part);
        let has_part = subjects.iter().any(is_told);
        if !has_part && !told.iter().any(|known| known.subject == fact.subject) {
            told.push(fact);
        }
    }
    told.truncate(MAX_OBSERVATIONS);
    told
}

/// What decided, and behind it what had to be so for it to matter. What most objects pass matters to nobody.
fn behind<'a>(decisive: Facts<'a>, before: Facts<'a>) -> Facts<'a> {
    if decisive.is_empty() {
        return before;
    }
    let is = |facts: &Facts<'a>, doubt| facts.iter().all(|fact| fact.doubt == doubt);
    if is(&decisive, Doubt::LeftOut) && !before.is_empty() && is(&before, Doubt::Required) {
        return before;
    }
    // Beside what is there and only had to be something else, such as a name, what is missing may be what matters.
    let is_other = |fact: &Observation<'a>| fact.is_aside || matches!(fact.doubt, Doubt::Other | Doubt::Unlike);
    let keeps_left_out = decisive.iter().all(is_other);
    let before = before.into_iter().filter(|fact| fact.doubt != Doubt::LeftOut || keeps_left_out);
    let is_aside = |fact: &Observation<'a>| fact.is_aside || !matches!(fact.doubt, Doubt::None | Doubt::Unlike);
    let before = before.map(|fact| Observation { is_aside: is_aside(&fact), ..fact });
    decisive.into_iter().chain(before).collect()
}

/// What is told of several things, each of which is enough: the decisive observation of each, and all of them if there is but one.
fn each(mut all: Vec<Facts<'_>>) -> Facts<'_> {
    let mut subjects: Vec<String> = Vec::new();
    all.retain(|facts| match facts.first() {
        Some(first) if !subjects.contains(&first.subject) => {
            subjects.push(first.subject.clone());
            true
        }
        _ => false,
    });
    match all.len() {
        1 => all.into_iter().flatten().collect(),
        _ => all.into_iter().filter_map(|facts| facts.into_iter().next()).collect(),
    }
}

/// Of values that only had to be something else, what those are that are missing.
fn doubted(mut facts: Facts<'_>, missing: Doubt) -> Facts<'_> {
    for fact in facts.iter_mut().filter(|fact| fact.seen == Seen::Field) {
        fact.doubt = if fact.value.is_nil() { missing } else { Doubt::Other };
    }
    facts
}

/// Of texts that something was looked for in, what those are that have it not.
fn unlike(mut facts: Facts<'_>, is_like: bool) -> Facts<'_> {
    let texts = facts.iter_mut().filter(|fact| fact.seen == Seen::Field && matches!(fact.value, Value::Text(_)));
    texts.filter(|_| !is_like).for_each(|fact| fact.doubt = Doubt::Unlike);
    facts
}

/// Whether an operand says that the other one is to be missing, or to be there.
fn is_nothing(op: &Op) -> bool {
    match &op.kind {
        Kind::Constant(Constant::Nil) => true,
        Kind::Array(elements) => elements.is_empty(),
        Kind::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

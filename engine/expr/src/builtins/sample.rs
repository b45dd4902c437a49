//! Expressions for the tests of values: parsed like any other, and evaluated as they stand, without the compiler, which
//! would refuse most of what must fail when it runs. `doc('…')` is a document.

use std::cell::Cell;

use bumpalo::Bump;
use portal_document::{Document, Key, Options};

use super::{find, find_ours, method};
use crate::{
    ast::{Binary, Id, Kind, Tree, Unary},
    limits::Limits,
    machine::{Failure, Machine},
    operators::{self, Comparison},
    parse::parse,
    value::{Keys, Moment, Value, map::Duplicates},
};

/// Checks lines of `expression => value` or `expression => error: message`.
#[track_caller]
pub(crate) fn check(table: &str) {
    check_with(table, &Limits::default(), true);
}

#[track_caller]
pub(crate) fn check_with(table: &str, limits: &Limits, strict: bool) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (source, expected) = line.split_once(" => ").expect("a line has an arrow");
        let found = answer(source, limits, strict);
        if found != expected.trim() {
            wrong.push(format!("{source} => {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The value of an expression, or its error, as a line.
pub(crate) fn answer(source: &str, limits: &Limits, strict: bool) -> String {
    answer_over(&documents(source), source, limits, strict)
}

/// The same, with documents that are not written in the expression.
pub(crate) fn answer_over(documents: &[Document], source: &str, limits: &Limits, strict: bool) -> String {
    let arena = Bump::new();
    let machine = Machine::new(&arena, limits, Moment::new(1_791_000_000, 500_000_000), strict);
    match evaluate(&machine, documents, source) {
        Ok(value) => show(value),
        Err(failure) => format!("error: {failure}"),
    }
}

/// The documents of an expression, in order.
pub(crate) fn documents(source: &str) -> Vec<Document> {
    let json = source.split("doc('").skip(1).filter_map(|rest| rest.split("')").next());
    json.map(|json| Document::parse(json.as_bytes(), &Options::default()).expect("a document of a test is JSON"))
        .collect()
}

pub(crate) fn evaluate<'a>(
    machine: &Machine<'a>,
    documents: &'a [Document],
    source: &str,
) -> Result<Value<'a>, Failure> {
    let tree = parse(source).expect("an expression of a test");
    Walk { machine, documents, next: Cell::new(0), tree: &tree }.value(tree.root)
}

struct Walk<'m, 'a, 't> {
    machine: &'m Machine<'a>,
    documents: &'a [Document],
    /// The document that comes next.
    next: Cell<usize>,
    tree: &'t Tree<'t>,
}

impl<'a> Walk<'_, 'a, '_> {
    fn value(&self, id: Id) -> Result<Value<'a>, Failure> {
        let machine = self.machine;
        match self.tree.kind(id) {
            Kind::Nil => Ok(Value::Nil),
            Kind::Bool(value) => Ok(Value::Bool(*value)),
            Kind::Integer(number) => Ok(Value::Int(*number)),
            Kind::Float(number) => Ok(Value::Float(*number)),
            Kind::Text(text) => machine.text(text).map(Value::Text),
            Kind::Bytes(bytes) => {
                let place = machine.fill(bytes.len(), 0)?;
                place.copy_from_slice(bytes);
                Ok(Value::Bytes(place))
            }
            Kind::Array(items) => {
                machine.count_elements(items.len() as u64)?;
                machine.list(&self.values(items)?)
            }
            Kind::Map(pairs) => {
                let mut entries = machine.buffer();
                for (key, value) in pairs {
                    entries.push((self.value(*key)?, self.value(*value)?))?;
                }
                machine.count_elements(pairs.len() as u64)?;
                machine.sort_map(entries.finish(), Keys::Text, Duplicates::First)
            }
            Kind::Unary(Unary::Minus, operand) => operators::negate(self.value(*operand)?),
            Kind::Binary(operator, left, right) => self.binary(*operator, self.value(*left)?, self.value(*right)?),
            Kind::Member { base, property, .. } => {
                let base = self.value(*base)?;
                match self.tree.kind(*property) {
                    Kind::Text(name) => operators::fetch_key(machine, base, &Key::new(name)),
                    _ => operators::fetch(machine, base, self.value(*property)?),
                }
            }
            Kind::Slice { base, from, to } => {
                let bound = |bound: &Option<Id>| bound.map(|bound| self.value(bound)).transpose();
                operators::slice(machine, self.value(*base)?, bound(from)?, bound(to)?)
            }
            Kind::Builtin { name, arguments } => {
                find(name).expect("the parser knows it").call(machine, &self.values(arguments)?)
            }
            Kind::Call { callee, arguments } => {
                let arguments: Vec<_> = arguments.iter().map(|argument| argument.value).collect();
                match self.tree.kind(*callee) {
                    Kind::Identifier("doc") => {
                        let document = &self.documents[self.next.replace(self.next.get() + 1)];
                        Ok(Value::from_node(document.root()))
                    }
                    Kind::Identifier(name) if let Some(builtin) = find_ours(name) => {
                        builtin.call(machine, &self.values(&arguments)?)
                    }
                    Kind::Member { base, property, .. } => match self.tree.kind(*property) {
                        Kind::Text(name) => method(machine, self.value(*base)?, name, &self.values(&arguments)?),
                        other => panic!("{other:?}"),
                    },
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn values(&self, ids: &[Id]) -> Result<Vec<Value<'a>>, Failure> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    fn binary(&self, operator: Binary, left: Value<'a>, right: Value<'a>) -> Result<Value<'a>, Failure> {
        let machine = self.machine;
        let compare = |comparison| operators::compare(machine, comparison, left, right).map(Value::Bool);
        match operator {
            Binary::Equal => operators::equal(machine, left, right).map(Value::Bool),
            Binary::NotEqual => operators::equal(machine, left, right).map(|same| Value::Bool(!same)),
            Binary::Less => compare(Comparison::Less),
            Binary::Greater => compare(Comparison::Greater),
            Binary::LessOrEqual => compare(Comparison::LessOrEqual),
            Binary::GreaterOrEqual => compare(Comparison::GreaterOrEqual),
            Binary::Add => operators::add(machine, left, right),
            Binary::Subtract => operators::subtract(machine, left, right),
            Binary::Multiply => operators::multiply(self.machine, left, right),
            Binary::Divide => operators::divide(self.machine, left, right),
            Binary::Modulo => operators::modulo(left, right),
            Binary::Power { .. } => operators::power(left, right),
            Binary::Range => operators::range(machine, left, right),
            Binary::In => operators::contained(machine, left, right).map(Value::Bool),
            Binary::Matches => operators::matches(machine, left, right).map(Value::Bool),
            Binary::Contains => operators::contains(machine, left, right).map(Value::Bool),
            Binary::StartsWith => operators::starts_with(machine, left, right).map(Value::Bool),
            Binary::EndsWith => operators::ends_with(machine, left, right).map(Value::Bool),
            Binary::Or { .. } | Binary::And { .. } | Binary::Coalesce => panic!("{operator:?} is the evaluator's"),
        }
    }
}

/// A value as a test writes it.
fn show(value: Value<'_>) -> String {
    if let Some(items) = value.sequence() {
        let items: Vec<_> = items.iter().map(show).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(entries) = value.entries() {
        let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{}: {}", show(*key), show(*value))).collect();
        return format!("{{{}}}", entries.join(", "));
    }
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => format!("{text:?}"),
        Value::Time(time) => time.rfc3339(),
        Value::Duration(nanoseconds) => format!("{nanoseconds}ns"),
        Value::Zone(zone) => zone.name().to_owned(),
        Value::Quantity(quantity) => quantity.to_string(),
        Value::Version(version) => version.to_string(),
        Value::Network(network) => network.to_string(),
        _ => "nil".to_owned(),
    }
}

//! What conditions have found to be there, so that it is not in doubt behind them: `x != nil && x < 5`.

use std::rc::Rc;

use super::{Compiler, nil::holds};
use crate::{
    ast::{Binary, Id, Kind as Syntax, Tree, Unary},
    builtins::{self, Builtin},
    value::Amount,
};

/// A way from a name or an element down to a value.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Way<'s> {
    from: From<'s>,
    steps: Vec<Step<'s>>,
}

#[derive(Debug, Eq, PartialEq)]
enum From<'s> {
    Name(&'s str),
    /// The element of the predicate that is so many levels inside.
    Item(usize),
    /// What no way leads to, as it is written, so many levels inside.
    Written(usize, String),
}

/// What is known of every element of a list, because others were left out: the way down from the element.
#[derive(Clone, Debug)]
pub(super) struct Found<'s>(Rc<[Step<'s>]>);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step<'s> {
    Field(&'s str),
    Index(i64),
    /// No further, and it is no text.
    Number,
    /// No further, and it is no number.
    Text,
    /// No further, and it is not 0.
    NotZero,
}

/// What a condition asks whether it is there.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Asked<'s> {
    Way(Way<'s>),
    /// What no way leads to, as it is written: `labels[#]`.
    Shown(String),
}

/// A condition, and how it turned out.
type Supposed = (Id, bool);

impl Found<'_> {
    /// Whether it says that the element itself is there.
    pub(super) fn is_there(&self) -> bool {
        !self.0.last().is_some_and(|step| step.is_of_value())
    }
}

impl Step<'_> {
    /// Whether it leads no further, and says something of the value.
    fn is_of_value(self) -> bool {
        matches!(self, Step::Number | Step::Text | Step::NotZero)
    }
}

impl<'s> Way<'s> {
    /// Says something of what is there, if anything is.
    fn with(mut self, step: Step<'s>) -> Self {
        self.steps.push(step);
        self
    }

    /// Whether it says that something is there, and not only what it is.
    fn is_there(&self) -> bool {
        !self.steps.last().is_some_and(|step| step.is_of_value())
    }

    /// Whether it begins with the element of the predicate that is so many levels inside.
    pub(super) fn is_of_item(&self, level: usize) -> bool {
        self.from == From::Item(level)
    }

    /// Whether it leads to the same field as another one, of the same object as it was before, or by a shorter name.
    pub(super) fn ends_like(&self, other: &Self) -> bool {
        let are_named = matches!((&self.from, &other.from), (From::Name(_), From::Name(_)));
        are_named && (self.steps.ends_with(&other.steps) || other.steps.ends_with(&self.steps))
    }
}

impl<'s> Compiler<'s> {
    /// Compiles something that is evaluated only if conditions turned out so, and therefore knows what is there.
    pub(super) fn given<T>(&mut self, conditions: &[Supposed], compile: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.present.len();
        conditions.iter().for_each(|(condition, truth)| self.suppose(*condition, *truth));
        let compiled = compile(self);
        self.present.truncate(mark);
        compiled
    }

    /// Notes what is there if a condition turned out so.
    pub(super) fn suppose(&mut self, condition: Id, truth: bool) {
        if self.strict {
            return;
        }
        let tree = self.tree;
        let mut conditions = vec![(condition, truth)];
        while let Some((id, truth)) = conditions.pop() {
            match tree.kind(id) {
                Syntax::Unary(Unary::Not { .. }, inner) => conditions.push((*inner, !truth)),
                Syntax::Chain(inner) | Syntax::Predicate(inner) => conditions.push((*inner, truth)),
                Syntax::Binary(Binary::And { .. }, left, right) if truth => {
                    conditions.extend([(*left, true), (*right, true)]);
                }
                Syntax::Binary(Binary::Or { .. }, left, right) if !truth => {
                    conditions.extend([(*left, false), (*right, false)]);
                }
                Syntax::Binary(operator, left, right) => self.suppose_relation(*operator, *left, *right, truth),
                Syntax::Identifier(name) if truth => {
                    self.add_present(id);
                    conditions.extend(self.condition_of(name));
                }
                Syntax::Member { .. } | Syntax::Pointer(_) if truth => self.add_present(id),
                // `isSemver(x)` and the like say no of what is missing.
                Syntax::Call { callee, arguments } if truth && self.asks(*callee) => {
                    arguments.iter().for_each(|argument| self.add_present(argument.value));
                }
                _ => {}
            }
        }
    }

    /// Whether a function asks if something can be read.
    fn asks(&self, callee: Id) -> bool {
        let Syntax::Identifier(name) = self.tree.kind(callee) else { return false };
        let is_ours = self.variable(name).is_none() && self.schema.function(name).is_none();
        is_ours && builtins::find_ours(name).is_some_and(Builtin::asks)
    }

    /// The condition that a variable stands for, if what it says can be said here too.
    fn condition_of(&self, name: &str) -> Option<Supposed> {
        let variable = self.variable(name)?;
        (variable.level == self.scopes.len()).then_some((variable.value, true))
    }

    fn suppose_relation(&mut self, operator: Binary, left: Id, right: Id, truth: bool) {
        let tree = self.tree;
        match operator {
            Binary::Equal | Binary::NotEqual => {
                let is_equal = truth == (operator == Binary::Equal);
                for (one, other) in [(left, right), (right, left)] {
                    if !self.may_be_missing(one, other, is_equal) {
                        self.add_present(without_default(tree, one));
                    }
                    if let Syntax::Text(name) = tree.kind(other) {
                        self.add_type(one, name, is_equal);
                    }
                    // `xs != nil` and `xs != []` say of a list that it has an element.
                    if !is_equal && self.empty_tests.contains(&one) {
                        self.add_filled(one);
                    }
                }
            }
            // What is missing is neither more nor less than anything.
            _ if operator.is_ordering() && truth => {
                self.add_present(left);
                self.add_present(right);
            }
            Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith if truth => {
                self.add_present(left);
                self.add_present(right);
            }
            Binary::In if truth => {
                if let (Syntax::Text(key), Some(mut way)) = (tree.kind(left), self.way(right)) {
                    way.steps.push(Step::Field(key));
                    self.present.push(way);
                }
                if let Syntax::Array(elements) = tree.kind(right)
                    && elements.iter().all(|element| same_literal(&Syntax::Nil, tree.kind(*element)) == Some(false))
                {
                    self.add_present(left);
                }
            }
            _ => {}
        }
        if operator.is_ordering() || matches!(operator, Binary::Equal | Binary::NotEqual) {
            self.suppose_length(operator, left, right, truth);
            self.suppose_number(operator, left, right, truth);
        }
    }

    /// Whether `one == other` could have turned out so with a value that is missing. Knows literals, and `x ?? literal`.
    fn may_be_missing(&self, one: Id, other: Id, is_equal: bool) -> bool {
        let tree = self.tree;
        let missing = match tree.kind(one) {
            Syntax::Binary(Binary::Coalesce, _, default) => tree.kind(*default),
            _ => &Syntax::Nil,
        };
        let is_none = matches!(missing, Syntax::Nil) && self.is_nothing_of(one, other);
        same_literal(missing, tree.kind(other)).is_none_or(|is_same| (is_same || is_none) == is_equal)
    }

    /// Notes that a list has an element if `len(x) > 0`, `count(…) != 0` and the like turned out so.
    fn suppose_length(&mut self, operator: Binary, left: Id, right: Id, truth: bool) {
        let tree = self.tree;
        for (one, other, is_left) in [(left, right, true), (right, left, false)] {
            let (Syntax::Builtin { name: "len", arguments }, Syntax::Integer(number)) =
                (tree.kind(one), tree.kind(other))
            else {
                continue;
            };
            let (a, b) = if is_left { (0, *number) } else { (*number, 0) };
            let Some(holds_for_none) = holds(operator, a, b) else { continue };
            if let ([list], true) = (&arguments[..], holds_for_none != truth) {
                self.add_filled(*list);
            }
        }
    }

    /// Notes what is not 0 if `x > 0`, `(x ?? 0) != 0` and the like turned out so, and that it is there if its default would not do.
    fn suppose_number(&mut self, operator: Binary, left: Id, right: Id, truth: bool) {
        let tree = self.tree;
        for (one, other, is_left) in [(left, right, true), (right, left, false)] {
            let (None, Some(bound)) = (number_of(tree, one), number_of(tree, other)) else { continue };
            let excludes = |number: f64| {
                let (a, b) = if is_left { (number, bound) } else { (bound, number) };
                holds(operator, a, b).is_some_and(|holds| holds != truth)
            };
            let value = without_default(tree, one);
            if excludes(0.0) {
                let ways = [self.way_or_written(one), self.way_or_written(value)];
                self.present.extend(ways.map(|way| way.with(Step::NotZero)));
            }
            if let Syntax::Binary(Binary::Coalesce, _, default) = tree.kind(one)
                && number_of(tree, *default).is_some_and(excludes)
            {
                self.add_present(value);
            }
        }
    }

    fn way_or_written(&self, id: Id) -> Way<'s> {
        self.way(id).unwrap_or_else(|| {
            let level = if self.has_item(id) { self.scopes.len() } else { 0 };
            Way { from: From::Written(level, self.shown(id)), steps: Vec::new() }
        })
    }

    /// Whether something speaks of the element of a predicate.
    pub(super) fn has_item(&self, id: Id) -> bool {
        self.has(id, |id| matches!(self.tree.kind(id), Syntax::Pointer(_)))
    }

    /// Whether a part of something is such.
    pub(super) fn has(&self, id: Id, is_such: impl Fn(Id) -> bool) -> bool {
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            if is_such(id) {
                return true;
            }
            self.tree.kind(id).each_child(|child| rest.push(child));
        }
        false
    }

    /// Whether something is known not to be 0, if it is there.
    pub(super) fn is_not_zero(&self, id: Id) -> bool {
        let tree = self.tree;
        if let Some(number) = number_of(tree, id) {
            return number != 0.0;
        }
        if self.present.contains(&self.way_or_written(id).with(Step::NotZero)) {
            return true;
        }
        match tree.kind(id) {
            Syntax::Binary(Binary::Coalesce, first, second) => {
                self.is_not_zero(*first) && (self.is_present(*first) || self.is_not_zero(*second))
            }
            Syntax::Identifier(name) => self.variable(name).is_some_and(|variable| self.is_counted(variable.value)),
            _ => self.is_counted(id),
        }
    }

    /// Whether something is a number other than 0, or the length of a list that has an element.
    fn is_counted(&self, id: Id) -> bool {
        match self.tree.kind(id) {
            Syntax::Builtin { name: "len", arguments } => {
                let filled = arguments.first().and_then(|list| self.way(*list)).map(|way| way.with(Step::Index(0)));
                filled.is_some_and(|filled| self.present.contains(&filled))
            }
            _ => number_of(self.tree, id).is_some_and(|number| number != 0.0),
        }
    }

    /// Notes what conditions ask whether it is there, in whatever order they stand: `x == "" || x == nil`.
    pub(super) fn note_asked(&mut self, conditions: &[Id]) {
        if self.strict {
            return;
        }
        for condition in conditions {
            let asked = self.asked_by(*condition);
            self.asked.extend(asked);
        }
    }

    fn asked_by(&self, condition: Id) -> Option<Asked<'s>> {
        let tree = self.tree;
        match tree.kind(condition) {
            Syntax::Unary(Unary::Not { .. }, inner) => self.asked_by(*inner),
            Syntax::Identifier(name) => self.condition_of(name).and_then(|(value, _)| self.asked_by(value)),
            Syntax::Binary(Binary::Equal | Binary::NotEqual, left, right) => match (left, right) {
                _ if self.is_nothing_of(*left, *right) => Some(self.asked_of(*left)),
                _ if self.is_nothing_of(*right, *left) => Some(self.asked_of(*right)),
                _ => None,
            },
            Syntax::Binary(Binary::In, left, right) => match (tree.kind(*left), self.way(*right)) {
                (Syntax::Text(key), Some(mut way)) => {
                    way.steps.push(Step::Field(key));
                    Some(Asked::Way(way))
                }
                (_, Some(_)) => Some(Asked::Shown(format!("{}[{}]", self.shown(*right), self.shown(*left)))),
                (_, None) => None,
            },
            _ => None,
        }
    }

    fn asked_of(&self, id: Id) -> Asked<'s> {
        self.way(id).map_or_else(|| Asked::Shown(self.shown(id)), Asked::Way)
    }

    /// Whether the conditions around something ask whether it is there.
    pub(super) fn is_asked(&self, id: Id) -> bool {
        !self.asked.is_empty()
            && match self.way(id) {
                Some(way) => self.asked.contains(&Asked::Way(way)),
                None => {
                    let mut asked = self.asked.iter();
                    asked.any(|asked| matches!(asked, Asked::Shown(_)))
                        && self.asked.contains(&Asked::Shown(self.shown(id)))
                }
            }
    }

    /// Whether conditions ask for this very thing, and not only for something in it.
    pub(super) fn is_asked_exactly(&self, id: Id) -> bool {
        self.is_asked(id) || self.way(id).is_some_and(|way| self.present.contains(&way))
    }

    fn add_present(&mut self, id: Id) {
        // What reads as something where it is missing says nothing of what it is a field of.
        if !self.is_defaulted(id) {
            self.present.extend(self.way(id));
        }
    }

    /// Notes whether something is a number or a text, if its type is compared with one of these.
    fn add_type(&mut self, type_of: Id, name: &str, is_equal: bool) {
        let Syntax::Builtin { name: "type", arguments } = self.tree.kind(type_of) else { return };
        let Some(way) = arguments.first().and_then(|argument| self.way(*argument)) else { return };
        let step = match (name, is_equal) {
            ("int", true) | ("string", false) => Step::Number,
            ("string", true) | ("int", false) => Step::Text,
            _ => return,
        };
        self.present.push(way.with(step));
        if is_equal {
            arguments.iter().for_each(|argument| self.add_present(*argument));
        }
    }

    /// Whether something was found to be no text.
    pub(super) fn is_number(&self, id: Id) -> bool {
        self.is_found(id, Step::Number)
    }

    /// Whether something was found to be no number.
    pub(super) fn is_text(&self, id: Id) -> bool {
        self.is_found(id, Step::Text)
    }

    fn is_found(&self, id: Id, step: Step<'s>) -> bool {
        self.way(without_default(self.tree, id)).is_some_and(|way| self.present.contains(&way.with(step)))
    }

    /// Notes that a list has a first and a last element.
    fn add_filled(&mut self, list: Id) {
        for index in [0, -1] {
            self.present.extend(self.way(list).map(|mut way| {
                way.steps.push(Step::Index(index));
                way
            }));
        }
    }

    /// What a condition says of the element of the predicate that it is the body of, if it turns out to be true.
    pub(super) fn supposed_of_item(&mut self, body: Id) -> Vec<Found<'s>> {
        let mark = self.present.len();
        self.suppose(body, true);
        let item = From::Item(self.scopes.len());
        self.present.drain(mark..).filter(|way| way.from == item).map(|way| Found(way.steps.into())).collect()
    }

    /// Notes what is known of each element of the list that the innermost predicate goes through.
    pub(super) fn add_found(&mut self, found: &[Found<'s>]) {
        let level = self.scopes.len();
        let way = |found: &Found<'s>| Way { from: From::Item(level), steps: found.0.to_vec() };
        self.present.extend(found.iter().map(way));
    }

    /// Whether something was found to be there. What has a field or an element is there too.
    pub(super) fn is_present(&self, id: Id) -> bool {
        !self.present.is_empty()
            && self.way(id).is_some_and(|way| {
                let leads_there = |known: &Way<'s>| known.from == way.from && known.steps.starts_with(&way.steps);
                self.present.iter().any(|known| known.is_there() && leads_there(known))
            })
    }

    pub(super) fn way(&self, id: Id) -> Option<Way<'s>> {
        let tree = self.tree;
        let mut steps = Vec::new();
        let mut node = id;
        let from = loop {
            match tree.kind(node) {
                Syntax::Member { base, property, .. } => {
                    steps.push(match tree.kind(*property) {
                        Syntax::Text(name) => Step::Field(name.as_ref()),
                        Syntax::Integer(index) => Step::Index(*index),
                        Syntax::Unary(Unary::Minus, index) => match tree.kind(*index) {
                            Syntax::Integer(index) => Step::Index(-*index),
                            _ => return None,
                        },
                        _ => return None,
                    });
                    node = *base;
                }
                Syntax::Builtin { name, arguments } if let ("first" | "last", [list]) = (*name, &arguments[..]) => {
                    steps.push(Step::Index(if *name == "first" { 0 } else { -1 }));
                    node = *list;
                }
                Syntax::Chain(inner) => node = *inner,
                Syntax::Identifier(name) => break From::Name(name),
                Syntax::Pointer("") => break From::Item(self.scopes.len()),
                _ => return None,
            }
        };
        steps.reverse();
        Some(Way { from, steps })
    }
}

/// What `x ?? default` is about.
pub(super) fn without_default(tree: &Tree<'_>, id: Id) -> Id {
    match tree.kind(id) {
        Syntax::Binary(Binary::Coalesce, first, _) => *first,
        _ => id,
    }
}

/// The number that is written, also as an amount, as far as its order with 0 and other numbers of the same expression goes.
pub(super) fn number_of(tree: &Tree<'_>, id: Id) -> Option<f64> {
    match tree.kind(id) {
        Syntax::Integer(number) => Some(*number as f64),
        Syntax::Float(number) => Some(*number),
        Syntax::Text(text) => Amount::parse(text).map(|amount| amount.ratio(Amount::of_int(1))),
        Syntax::Unary(Unary::Minus, inner) => number_of(tree, *inner).map(|number| -number),
        _ => None,
    }
}

/// Whether two literals are equal. Nothing if one of them is no literal.
pub(super) fn same_literal(one: &Syntax<'_>, other: &Syntax<'_>) -> Option<bool> {
    let is_literal = |kind: &Syntax<'_>| {
        matches!(kind, Syntax::Nil | Syntax::Bool(_) | Syntax::Integer(_) | Syntax::Float(_) | Syntax::Text(_))
    };
    if !is_literal(one) || !is_literal(other) {
        return None;
    }
    Some(match (one, other) {
        (Syntax::Nil, Syntax::Nil) => true,
        (Syntax::Bool(one), Syntax::Bool(other)) => one == other,
        (Syntax::Integer(one), Syntax::Integer(other)) => one == other,
        (Syntax::Float(one), Syntax::Float(other)) => one == other,
        (Syntax::Integer(int), Syntax::Float(float)) | (Syntax::Float(float), Syntax::Integer(int)) => {
            *int as f64 == *float
        }
        (Syntax::Text(one), Syntax::Text(other)) => one.as_ref() == other.as_ref(),
        _ => false,
    })
}

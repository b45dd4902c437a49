//! By which of its parts an expression is true: the questions that it asks, and the answers that make it so.

use std::collections::HashSet;

use super::{Compiler, nil::holds};
use crate::ast::{Binary, Id, Kind as Syntax, Unary};

/// A part of an expression, and how it must turn out.
#[derive(Clone, Copy)]
struct Step {
    id: Id,
    truth: bool,
    /// The part around it that is true or false, if it is none itself: `len(x) > 0` around `x`. And how that must turn out.
    question: (Id, bool),
}

impl<'s> Compiler<'s> {
    /// Whether the expression may be true because of what is between these two, such as that they are equal or one is in the other, rather
    /// than because that is not so.
    pub(super) fn is_claimed(&self, left: Id, right: Id) -> bool {
        self.is_decided(left, right, true)
    }

    /// Whether the expression may be true because what is asked of these two is so, or because it is not.
    pub(super) fn is_decided(&self, left: Id, right: Id, by: bool) -> bool {
        let mut is_found = false;
        self.each_decisive(false, |step, _| {
            let kind = self.tree.kind(step.id);
            is_found |=
                matches!(kind, Syntax::Binary(_, one, other) if (*one, *other) == (left, right)) && step.truth == by;
        });
        is_found
    }

    /// Whether the expression may be true because a part of it turns out so.
    pub(super) fn is_so(&self, id: Id, truth: bool) -> bool {
        let mut is_found = false;
        self.each_decisive(false, |step, _| is_found |= step.id == id && step.truth == truth);
        is_found
    }

    /// The questions about some lists that an empty one answers so that the expression is not true because of it: the question, the list, and
    /// whether the answer must be yes.
    pub(super) fn asked_of_lists(&self, lists: &[Id]) -> Vec<(Id, Id, bool)> {
        let mut asked: Vec<(Id, Id, bool)> = Vec::new();
        self.each_decisive(true, |Step { id, truth, question }, declared| {
            let (list, (question, answer)) = match self.tree.kind(id) {
                Syntax::Binary(Binary::In, _, list) if truth => (*list, (id, truth)),
                Syntax::Builtin { name, arguments } => match (*name, arguments.first()) {
                    ("any", Some(list)) if truth => (*list, (id, truth)),
                    ("all" | "none", Some(list)) if !truth => (*list, (id, truth)),
                    // It is no question by itself, but whether something is left.
                    ("filter" | "find" | "count", Some(list)) if truth && question.0 != id => (*list, question),
                    _ => return,
                },
                _ => return,
            };
            asked.extend(self.list_behind(list, lists, declared).map(|list| (question, list, answer)));
        });
        asked
    }

    /// What is asked of all elements of some lists, and the list, where the expression is true because it turns out so.
    pub(super) fn true_of_all(&self, lists: &[Id]) -> Vec<(Id, Id)> {
        let mut asked: Vec<(Id, Id)> = Vec::new();
        self.each_decisive(false, |Step { id, truth, .. }, _| {
            if let (Syntax::Builtin { name: "all", arguments }, true) = (self.tree.kind(id), truth)
                && let [list, condition] = arguments[..]
                && lists.contains(&list)
                && self.asks_for_something(condition)
            {
                asked.push((id, list));
            }
        });
        asked
    }

    /// The innermost question that something is asked in, and how it must turn out.
    pub(super) fn question_about(&self, id: Id) -> Option<(Id, bool)> {
        let mut found = None;
        self.each_decisive(true, |step, _| {
            let part = match self.tree.kind(step.id) {
                Syntax::Binary(Binary::And { .. } | Binary::Or { .. }, ..) => return,
                Syntax::Binary(..) | Syntax::Member { .. } | Syntax::Chain(_) => step.id,
                Syntax::Builtin { name: "any" | "all" | "none", arguments } if !arguments.is_empty() => arguments[0],
                _ => return,
            };
            if self.is_within(id, part) {
                found = Some((step.id, step.truth));
            }
        });
        found
    }

    /// Whether something is a part of something else.
    pub(super) fn is_within(&self, id: Id, whole: Id) -> bool {
        let mut rest = vec![whole];
        while let Some(node) = rest.pop() {
            if node == id {
                return true;
            }
            self.tree.kind(node).each_child(|child| rest.push(child));
        }
        false
    }

    /// Goes through the parts by which the expression is true, with what is declared before each. `is_of_all`: also those that decide only together
    /// with the same of all other elements of a list.
    fn each_decisive(&self, is_of_all: bool, mut visit: impl FnMut(Step, &[(&'s str, Id)])) {
        let tree = self.tree;
        let own = |id: Id, truth: bool| Step { id, truth, question: (id, truth) };
        let mut declared: Vec<(&'s str, Id)> = Vec::new();
        let (mut rest, mut seen) = (vec![own(tree.root, true)], HashSet::new());
        while let Some(step) = rest.pop() {
            let Step { id, truth, question } = step;
            // A variable may be named as often as one likes, also by others.
            if !seen.insert((id.0, truth)) {
                continue;
            }
            visit(step, &declared);
            match tree.kind(id) {
                Syntax::Binary(Binary::And { .. } | Binary::Or { .. }, one, other) => {
                    rest.extend([own(*other, truth), own(*one, truth)]);
                }
                Syntax::Unary(Unary::Not { .. }, inner) => rest.push(own(*inner, !truth)),
                Syntax::Binary(operator, one, other) => {
                    let filled = self.is_filled_if(*operator, *one, *other, truth);
                    rest.extend(filled.map(|(list, truth_of)| Step {
                        id: list,
                        truth: truth_of,
                        question: (id, truth),
                    }));
                }
                Syntax::Let { name, value, body } => {
                    declared.push((name, *value));
                    rest.push(own(*body, truth));
                }
                Syntax::Identifier(name) => {
                    let value = declared.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value);
                    let question = |value: Id| if question.0 == id { (value, truth) } else { question };
                    rest.extend(value.map(|value| Step { id: value, truth, question: question(value) }));
                }
                Syntax::Conditional { yes, no, .. } => rest.extend([own(*no, truth), own(*yes, truth)]),
                Syntax::Predicate(body) => rest.push(own(*body, truth)),
                Syntax::Builtin { name, arguments } => {
                    let of_body = match *name {
                        "all" if truth && !is_of_all => continue,
                        "any" | "all" | "filter" | "find" | "count" => truth,
                        "none" => !truth,
                        _ => continue,
                    };
                    rest.extend(arguments.get(1).map(|body| own(*body, of_body)));
                }
                _ => {}
            }
        }
    }

    /// Which of some lists one is made of, so that it is empty where that is.
    fn list_behind(&self, list: Id, lists: &[Id], declared: &[(&str, Id)]) -> Option<Id> {
        let mut list = list;
        while !lists.contains(&list) {
            list = match self.tree.kind(list) {
                Syntax::Builtin { name: "filter" | "map" | "flatten" | "uniq" | "sort", arguments } => {
                    *arguments.first()?
                }
                Syntax::Identifier(name) => {
                    // A value comes before whatever names it.
                    let is_meant = |(known, value): &&(&str, Id)| known == name && value.0 < list.0;
                    declared.iter().rev().find(is_meant)?.1
                }
                _ => return None,
            };
        }
        Some(list)
    }

    /// What has an element, or is there, if `len(x) > 0`, `count(…) != 0`, `find(…) != nil` and the like turn out so, and whether it has one.
    pub(super) fn is_filled_if(&self, operator: Binary, left: Id, right: Id, truth: bool) -> Option<(Id, bool)> {
        let tree = self.tree;
        let list = |id: Id| match tree.kind(id) {
            Syntax::Builtin { name: "len", arguments } => arguments.first().copied(),
            Syntax::Builtin { name: "count" | "find" | "filter", .. } | Syntax::Identifier(_) => Some(id),
            _ => None,
        };
        let (one, other, is_left) =
            list(left).map(|list| (list, right, true)).or_else(|| Some((list(right)?, left, false)))?;
        let for_none = match tree.kind(other) {
            Syntax::Nil => holds(operator, 0, 0),
            Syntax::Array(elements) if elements.is_empty() => holds(operator, 0, 0),
            Syntax::Integer(number) if is_left => holds(operator, 0, *number),
            Syntax::Integer(number) => holds(operator, *number, 0),
            _ => None,
        };
        for_none.map(|for_none| (one, for_none != truth))
    }
}

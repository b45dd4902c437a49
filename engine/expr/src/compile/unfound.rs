//! Lookups that an expression is true for because they find nothing, although nobody knows what was looked for:
//! `cluster.secrets.byName(ns, x) == nil` where `x` may be missing.

use super::{Compiler, nil::holds};
use crate::{
    ast::{Argument, Binary, Id, Kind as Syntax, Unary},
    facts::Unfound,
    print::written,
};

/// How deep conditions are looked into. Nobody writes more by hand.
const MAX_DEPTH: usize = 16;

/// An argument of a call that may be missing, and that nobody asks for.
pub(super) struct Unsure {
    value: Id,
    site: usize,
    index: usize,
}

/// What is known where a condition is looked at.
#[derive(Clone, Copy)]
struct At<'a, 's> {
    /// What was declared around it, by its name, and within how many predicates.
    variables: &'a [(&'s str, Id, usize)],
    /// How many predicates are around it.
    level: usize,
    depth: usize,
}

impl<'s> Compiler<'s> {
    /// Notes the arguments of the call at a site which may be missing. Where conditions ask for what an argument is a field of, the field is
    /// taken to be there: the schema of Kubernetes says of hardly any name that it is required.
    pub(super) fn note_unsure(&mut self, site: usize, arguments: &[Argument<'s>], doubtful: &[(usize, usize)]) {
        for (position, index) in doubtful {
            let Some(value) = arguments.get(*position).map(|argument| argument.value) else { continue };
            let is_asked = self.is_asked(value) || self.base_of(value).is_some_and(|base| self.is_asked_exactly(base));
            // What is worked out is missing only if its author has thought of that.
            if !self.strict && !is_asked && self.way(value).is_some() {
                self.unsure.push(Unsure { value, site, index: *index });
            }
        }
    }

    /// What something is a field of.
    fn base_of(&self, id: Id) -> Option<Id> {
        match self.tree.kind(id) {
            Syntax::Member { base, .. } => Some(*base),
            Syntax::Chain(inner) => self.base_of(*inner),
            _ => None,
        }
    }

    /// The lookups that make the expression true by finding nothing.
    pub(super) fn unfound(&self) -> Vec<Unfound> {
        let mut found = Vec::new();
        if !self.unsure.is_empty() {
            self.unfound_in(self.tree.root, true, At { variables: &[], level: 0, depth: 0 }, &mut found);
        }
        found
    }

    /// Looks at a condition that helps the expression to be true if it turns out so.
    fn unfound_in(&self, id: Id, truth: bool, at: At<'_, 's>, found: &mut Vec<Unfound>) {
        if at.depth > MAX_DEPTH {
            return;
        }
        let at = At { depth: at.depth + 1, ..at };
        match self.tree.kind(id) {
            Syntax::Chain(inner) => self.unfound_in(*inner, truth, at, found),
            Syntax::Unary(Unary::Not { .. }, inner) => {
                // What is written out is the whole condition, with its `not`.
                let before = found.len();
                self.unfound_in(*inner, !truth, at, found);
                for unfound in &mut found[before..] {
                    if unfound.condition == written(self.tree, *inner) {
                        unfound.condition = written(self.tree, id);
                    }
                }
            }
            Syntax::Binary(Binary::And { .. } | Binary::Or { .. }, left, right) => {
                self.unfound_in(*left, truth, at, found);
                self.unfound_in(*right, truth, at, found);
            }
            Syntax::Conditional { yes, no, .. } => {
                self.unfound_in(*yes, truth, at, found);
                self.unfound_in(*no, truth, at, found);
            }
            Syntax::Let { name, value, body } => {
                let variables = [at.variables, &[(*name, *value, at.level)]].concat();
                self.unfound_in(*body, truth, At { variables: &variables, ..at }, found);
            }
            Syntax::Identifier(_) => {
                if let Some(value) = self.declared_as(id, at) {
                    self.unfound_in(value, truth, at, found);
                }
            }
            Syntax::Binary(operator, left, right) => {
                for (one, other, is_left) in [(left, right, true), (right, left, false)] {
                    if let Some(subject) = self.emptied(*operator, *one, *other, is_left, truth) {
                        self.add_unfound(id, subject, at, found);
                    }
                }
            }
            Syntax::Builtin { name: name @ ("any" | "all" | "none"), arguments } => {
                let [list, predicate] = arguments[..] else { return };
                // Of no elements, all are so, and none is.
                if truth == (*name != "any") {
                    self.add_unfound(id, list, at, found);
                }
                if let Syntax::Predicate(body) = self.tree.kind(predicate) {
                    self.unfound_in(*body, truth == (*name != "none"), At { level: at.level + 1, ..at }, found);
                }
            }
            _ => {}
        }
    }

    /// What a relation turns out so for, if it is nothing: `x == nil`, `len(x) < 1`.
    fn emptied(&self, operator: Binary, one: Id, other: Id, is_left: bool, truth: bool) -> Option<Id> {
        match (self.tree.kind(one), self.tree.kind(other)) {
            (_, Syntax::Nil) => match operator {
                Binary::Equal => truth.then_some(one),
                Binary::NotEqual => (!truth).then_some(one),
                _ => None,
            },
            // What is not there is not equal to any value.
            (Syntax::Member { .. }, Syntax::Text(_) | Syntax::Integer(_) | Syntax::Bool(_)) => match operator {
                Binary::NotEqual => truth.then_some(one),
                Binary::Equal => (!truth).then_some(one),
                _ => None,
            },
            (Syntax::Builtin { name: "len" | "count", arguments }, Syntax::Integer(number)) => {
                let (left, right) = if is_left { (0, *number) } else { (*number, 0) };
                let holds = holds(operator, left, right)?;
                arguments.first().copied().filter(|_| holds == truth)
            }
            _ => None,
        }
    }

    /// Adds the lookup that something comes from, if what it looks for may be missing.
    fn add_unfound(&self, condition: Id, subject: Id, at: At<'_, 's>, found: &mut Vec<Unfound>) {
        let Some(call) = self.lookup_behind(subject, at) else { return };
        let Syntax::Call { arguments, .. } = self.tree.kind(call) else { return };
        for argument in arguments {
            let Some(unsure) = self.unsure.iter().find(|unsure| unsure.value == argument.value) else { continue };
            let place = self.error(self.at(unsure.value), "");
            found.push(Unfound {
                site: unsure.site,
                argument: unsure.index,
                subject: self.shown(unsure.value),
                condition: written(self.tree, condition),
                line: place.line,
                column: place.column,
            });
        }
    }

    /// The call that something comes from, and is nothing without.
    fn lookup_behind(&self, id: Id, at: At<'_, 's>) -> Option<Id> {
        let mut node = id;
        loop {
            node = match self.tree.kind(node) {
                Syntax::Call { .. } => return Some(node),
                Syntax::Chain(inner) => *inner,
                Syntax::Member { base, .. } => *base,
                Syntax::Builtin { name: "filter" | "map" | "find" | "first" | "last" | "flatten", arguments } => {
                    *arguments.first()?
                }
                Syntax::Identifier(_) => self.declared_as(node, at)?,
                _ => return None,
            };
        }
    }

    /// What a name was declared as, if what it says can be said here too. A value comes before whatever names it.
    fn declared_as(&self, id: Id, at: At<'_, 's>) -> Option<Id> {
        let Syntax::Identifier(name) = self.tree.kind(id) else { return None };
        let is_meant =
            |(declared, value, level): &&(&str, Id, usize)| declared == name && value.0 < id.0 && *level == at.level;
        at.variables.iter().rev().find(is_meant).map(|(_, value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Pod;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let program = Pod::new().compile(source).expect(source);
        let found: Vec<String> = program
            .facts()
            .unfound
            .iter()
            .map(|unfound| format!("{} != nil && {}", unfound.subject, unfound.condition))
            .collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn what_is_true_because_nothing_was_looked_for_is_known() {
        let by_ref = "cluster.any(\"pods\").byRef(\"a\", object.ref)";
        let list = "cluster.pods.list(\"a\", object.selector)";
        for condition in [
            format!("{by_ref} == nil"),
            format!("nil == {by_ref}"),
            format!("not ({by_ref} != nil)"),
            format!("{by_ref}.metadata.labels == nil"),
        ] {
            check(&condition, &[&format!("object.ref != nil && {condition}")]);
        }
        for condition in [
            format!("len({list}) == 0"),
            format!("1 > len({list})"),
            format!("none({list}, .a)"),
            format!("all({list}, .a)"),
            format!("not any({list}, .a)"),
            format!("len(filter({list}, .a)) == 0"),
        ] {
            check(&condition, &[&format!("object.selector != nil && {condition}")]);
        }
        check(&format!("let p = {by_ref}; container.privileged && p == nil"), &["object.ref != nil && p == nil"]);
        check(
            "any(container.ports, len(cluster.pods.list('a', .selector)) == 0)",
            &[".selector != nil && len(cluster.pods.list(\"a\", .selector)) == 0"],
        );
    }

    #[test]
    fn what_is_true_of_what_was_found_or_is_asked_for_is_not_told() {
        let by_ref = "cluster.any('pods').byRef('a', object.ref)";
        check(&format!("{by_ref} != nil"), &[]);
        check(&format!("{by_ref}.a == 'b'"), &[]);
        check(&format!("object.ref != nil && {by_ref} == nil"), &[]);
        check(&format!("{by_ref} == nil && object.ref != nil"), &[]);
        check("object.a != nil && len(cluster.pods.list('a', object.a.b)) == 0", &[]);
        check("len(cluster.pods.list('a', object.selector ?? {b: 'c'})) == 0", &[]);
        check("len(cluster.pods.list('a', object.selector)) > 0", &[]);
        check("len(cluster.pods.list('a')) == 0", &[]);
    }
}

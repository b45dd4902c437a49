//! What an expression is true for because it is missing: `container.livenessProbe == nil`. Where something can never be there, the
//! host has to say so.

use super::Compiler;
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    facts::Absence,
};

/// How deep conditions are looked into. Nobody writes more by hand.
const MAX_DEPTH: usize = 16;

impl<'s> Compiler<'s> {
    /// What makes the whole expression true by being missing, whatever else is asked of its root. What is asked of other roots, and
    /// what says what something is not, goes along with it.
    pub(super) fn absences(&self) -> Vec<Absence> {
        let mut variables = Vec::new();
        let mut node = self.tree.root;
        while let Syntax::Let { name, value, body } = self.tree.kind(node) {
            variables.push((*name, *value));
            node = *body;
        }
        if self.strict { Vec::new() } else { self.absences_of(node, true, &variables, 0) }
    }

    fn absences_of(&self, id: Id, truth: bool, variables: &[(&'s str, Id)], depth: usize) -> Vec<Absence> {
        let below = |id: Id, truth: bool| self.absences_of(id, truth, variables, depth + 1);
        match self.tree.kind(id) {
            _ if depth > MAX_DEPTH => Vec::new(),
            Syntax::Unary(Unary::Not { .. }, inner) => below(*inner, !truth),
            Syntax::Chain(inner) => below(*inner, truth),
            Syntax::Binary(operator @ (Binary::And { .. } | Binary::Or { .. }), left, right) => {
                let (one, other) = (below(*left, truth), below(*right, truth));
                let are_all_needed = matches!(operator, Binary::And { .. }) == truth;
                let lets = |found: &[Absence], beside: Id| {
                    found.iter().all(|absence| self.goes_along(beside, truth, &absence.root, variables, depth))
                };
                let (keeps_one, keeps_other) = match are_all_needed {
                    true => (!other.is_empty() || lets(&one, *right), !one.is_empty() || lets(&other, *left)),
                    false => (true, true),
                };
                let kept = [(one, keeps_one), (other, keeps_other)].into_iter().filter(|(_, is_kept)| *is_kept);
                kept.flat_map(|(found, _)| found).collect()
            }
            Syntax::Binary(operator @ (Binary::Equal | Binary::NotEqual), left, right) => {
                let subject = match (self.tree.kind(*left), self.tree.kind(*right)) {
                    (_, Syntax::Nil) => *left,
                    (Syntax::Nil, _) => *right,
                    _ => return Vec::new(),
                };
                let is_missing = (*operator == Binary::Equal) == truth;
                self.absence(subject, None, variables).filter(|_| is_missing).into_iter().collect()
            }
            Syntax::Binary(Binary::In, key, map) if !truth => match self.tree.kind(*key) {
                Syntax::Text(key) => self.absence(*map, Some(key), variables).into_iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Whether a condition is likely to hold for something of which nothing but its name is known: it is about something else, or says
    /// what the thing is not.
    fn goes_along(&self, id: Id, truth: bool, root: &str, variables: &[(&'s str, Id)], depth: usize) -> bool {
        if !self.names(id, root, variables) {
            return true;
        }
        let below = |id: Id, truth: bool| self.goes_along(id, truth, root, variables, depth + 1);
        match self.tree.kind(id) {
            _ if depth > MAX_DEPTH => false,
            Syntax::Unary(Unary::Not { .. }, inner) => below(*inner, !truth),
            Syntax::Binary(Binary::And { .. } | Binary::Or { .. }, left, right) => {
                below(*left, truth) && below(*right, truth)
            }
            Syntax::Binary(Binary::Equal, ..) => !truth,
            Syntax::Binary(Binary::NotEqual, left, right) => {
                truth && [left, right].into_iter().all(|side| !matches!(self.tree.kind(*side), Syntax::Nil))
            }
            Syntax::Binary(
                Binary::In | Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith,
                ..,
            ) => !truth,
            _ => false,
        }
    }

    /// Whether a part of the expression names a root.
    fn names(&self, id: Id, root: &str, variables: &[(&'s str, Id)]) -> bool {
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            match self.tree.kind(id) {
                Syntax::Identifier(name) if *name == root => return true,
                Syntax::Identifier(name) => rest.extend(value_of(name, id, variables)),
                kind => kind.each_child(|child| rest.push(child)),
            }
        }
        false
    }

    /// The way to something that is asked for, below a root.
    fn absence(&self, id: Id, key: Option<&str>, variables: &[(&'s str, Id)]) -> Option<Absence> {
        let mut fields: Vec<String> = key.map(str::to_owned).into_iter().collect();
        let mut node = id;
        let root = loop {
            match self.tree.kind(node) {
                Syntax::Member { base, property, method: false, .. } => {
                    let Syntax::Text(name) = self.tree.kind(*property) else { return None };
                    fields.push(name.as_ref().to_owned());
                    node = *base;
                }
                Syntax::Chain(inner) => node = *inner,
                Syntax::Identifier(name) => match value_of(name, node, variables) {
                    Some(value) => node = value,
                    None => break (*name).to_owned(),
                },
                _ => return None,
            }
        };
        fields.reverse();
        let place = self.error(self.at(id), "");
        (!fields.is_empty()).then_some(Absence { root, fields, line: place.line, column: place.column })
    }
}

/// What a name was declared as. A value comes before whatever names it.
fn value_of(name: &str, used: Id, variables: &[(&str, Id)]) -> Option<Id> {
    variables.iter().rev().find(|(declared, value)| *declared == name && value.0 < used.0).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use crate::testing::Pod;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let program = Pod::new().compile(source).expect(source);
        let absences: Vec<String> = program.facts().absences.iter().map(|absence| absence.fields.join(".")).collect();
        assert_eq!(absences, expected, "{source}");
    }

    #[test]
    fn what_is_true_of_anything_that_lacks_a_field_is_known() {
        check("container.image == nil", &["image"]);
        check("nil == container.labels.app", &["labels.app"]);
        check("not (container.image != nil)", &["image"]);
        check("\"app\" not in container.labels", &["labels.app"]);
        check("container.image == nil || container.args == nil", &["image", "args"]);
        check("container.image == nil && container.labels == nil", &["image", "labels"]);
        check("object.kind == 'a' && container.image == nil", &["image"]);
        check("container.name != 'a' && container.image == nil", &["image"]);
        check("container.image == nil && not (container.name startsWith 'a')", &["image"]);
        check("let i = container.image; i == nil", &["image"]);
    }

    #[test]
    fn what_asks_for_more_of_the_same_root_is_true_of_less() {
        check("container.image != nil", &[]);
        check("container.privileged && container.image == nil", &[]);
        check("container.image == nil && container.args != nil", &[]);
        check("container.name == 'a' && container.image == nil", &[]);
        check("container.image == nil ? container.privileged : false", &[]);
        check("any(spec.containers, .image == nil)", &[]);
        check("not (container.image == nil)", &[]);
    }
}

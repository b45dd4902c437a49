//! Warns where a value may be missing and nil is an error, unless the expression has asked before.

use super::{Compiler, Typed, known::Known};
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    print::print_node,
    program::{Kind, Op},
    types::Type,
};

/// A way from a name or an element down to a value.
#[derive(Eq, PartialEq)]
pub(super) struct Way<'s> {
    from: From<'s>,
    names: Vec<&'s str>,
}

#[derive(Eq, PartialEq)]
enum From<'s> {
    Name(&'s str),
    /// The element of the predicate that is so many levels inside.
    Item(usize),
}

impl<'s> Compiler<'s> {
    /// Says that a value may be missing where nil is an error. The default is for values of which nothing is known.
    pub(super) fn warn_of_nil(&mut self, id: Id, operand: &Op, known: &Known<'s>, default: &str) {
        if self.strict || !known.may_be_nil || !is_read(operand) || self.is_present(id) {
            return;
        }
        let text = print_node(self.tree, id);
        let default = match known.kind {
            Type::TEXT if !default.starts_with('\'') => "''",
            Type::INT | Type::FLOAT => "0",
            kind if kind.is_array() => "[]",
            kind if kind.is_map() => "{}",
            _ => default,
        };
        let message = format!(
            "`{text}` may be missing, and then this fails: write `({text} ?? {default})` if that is what you mean"
        );
        self.warn(operand.at, message);
    }

    /// Compiles something that is evaluated only if conditions turned out so, and therefore knows what is there.
    pub(super) fn given<T>(&mut self, conditions: &[(Id, bool)], compile: impl FnOnce(&mut Self) -> T) -> T {
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
                Syntax::Chain(inner) => conditions.push((*inner, truth)),
                Syntax::Binary(operator, left, right) => match operator {
                    Binary::And { .. } if truth => conditions.extend([(*left, true), (*right, true)]),
                    Binary::Or { .. } if !truth => conditions.extend([(*left, false), (*right, false)]),
                    Binary::Equal | Binary::NotEqual => {
                        let is_equal = truth == (*operator == Binary::Equal);
                        for (one, other) in [(left, right), (right, left)] {
                            let is_there = match tree.kind(*other) {
                                Syntax::Nil => !is_equal,
                                Syntax::Bool(_) | Syntax::Integer(_) | Syntax::Float(_) | Syntax::Text(_) => is_equal,
                                _ => false,
                            };
                            if is_there {
                                self.present.extend(self.way(*one));
                            }
                        }
                    }
                    // Whatever the answer was: with an operand that is nil the comparison would have failed.
                    _ if operator.is_ordering() => {
                        let (left, right) = (self.way(*left), self.way(*right));
                        self.present.extend(left.into_iter().chain(right));
                    }
                    Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith if truth => {
                        self.present.extend(self.way(*left));
                    }
                    Binary::In if truth => {
                        if let (Syntax::Text(key), Some(mut way)) = (tree.kind(*left), self.way(*right)) {
                            way.names.push(key);
                            self.present.push(way);
                        }
                    }
                    _ => {}
                },
                Syntax::Identifier(_) | Syntax::Member { .. } | Syntax::Pointer(_) if truth => {
                    self.present.extend(self.way(id));
                }
                _ => {}
            }
        }
    }

    /// Whether something was found to be there. What has a field is there too.
    fn is_present(&self, id: Id) -> bool {
        !self.present.is_empty()
            && self.way(id).is_some_and(|way| {
                self.present.iter().any(|known| known.from == way.from && known.names.starts_with(&way.names))
            })
    }

    fn way(&self, id: Id) -> Option<Way<'s>> {
        let tree = self.tree;
        let mut names = Vec::new();
        let mut node = id;
        let from = loop {
            match tree.kind(node) {
                Syntax::Member { base, property, .. } => {
                    let Syntax::Text(name) = tree.kind(*property) else { return None };
                    names.push(name.as_ref());
                    node = *base;
                }
                Syntax::Chain(inner) => node = *inner,
                Syntax::Identifier(name) => break From::Name(name),
                Syntax::Pointer("") => break From::Item(self.scopes.len()),
                _ => return None,
            }
        };
        names.reverse();
        Some(Way { from, names })
    }
}

impl<'s> Typed<'s> {
    /// What a variable is known to be. Only what is read somewhere may be missing.
    pub(super) fn into_variable(self) -> (Op, Known<'s>) {
        let may_be_nil = self.known.may_be_nil && is_read(&self.op);
        (self.op, Known { may_be_nil, ..self.known })
    }
}

/// Whether a value is read somewhere, where it may be missing.
fn is_read(op: &Op) -> bool {
    matches!(op.kind, Kind::Path { .. } | Kind::Computed { .. } | Kind::Item | Kind::Fetch { .. } | Kind::Variable(_))
}

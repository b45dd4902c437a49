//! Patterns where none work. Whoever compares a name with `"team-*"` means every name that begins so, and gets a comparison letter by
//! letter that is never true. Only fields are looked at of which no text has such signs: elsewhere a `*` may be just that.

use super::{Compiler, Typed, form::Form, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    error::Error,
    facts::Compared,
    program::{Constant, Kind, Op},
    schema::Shape,
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Refuses a pattern that is compared letter by letter with what never has such signs.
    pub(super) fn check_pattern(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        let (id, subject, other) = match (texts(&left.op).is_empty(), texts(&right.op).is_empty()) {
            (true, false) => (left_id, left, right),
            (false, true) if is_equality => (right_id, right, left),
            _ => return Ok(()),
        };
        let patterns = texts(&other.op);
        if self.strict || !patterns.iter().any(|text| text.contains(['*', '?'])) || !self.is_unpatterned(id) {
            return Ok(());
        }
        let value = match subject.known.may_be_nil {
            true => format!("{} ?? \"\"", self.shown(id)),
            false => self.shown(id),
        };
        let Some(advice) = self.meant(at, operator, id, &value, &patterns) else { return Ok(()) };
        let because = match operator {
            Binary::Matches => "in a regular expression `*` repeats the sign before it".to_owned(),
            _ => format!("`{}` knows no patterns, and this never has a `*` or a `?` in it", name_of(operator)),
        };
        let message = format!("{because}: write `{advice}`");
        if subject.known.kind == Type::TEXT {
            return Err(self.error(other.op.at, message));
        }
        self.warn(other.op.at, message);
        Ok(())
    }

    /// What is meant by an operator beside these patterns. Nothing if it may be right.
    fn meant(&self, at: u32, operator: Binary, id: Id, value: &str, patterns: &[&str]) -> Option<String> {
        let text = self.shown(id);
        let plain = |part: &str| !part.contains(['*', '?']) && !part.is_empty();
        let first = patterns.first()?;
        let whole = |pattern: String| format!("glob({value}, {pattern:?})");
        Some(match operator {
            Binary::StartsWith => match first.trim_end_matches('*') {
                part if plain(part) => format!("{text} startsWith {part:?}"),
                part => whole(format!("{part}*")),
            },
            Binary::EndsWith => match first.trim_start_matches('*') {
                part if plain(part) => format!("{text} endsWith {part:?}"),
                part => whole(format!("*{part}")),
            },
            Binary::Contains => match first.trim_matches('*') {
                part if plain(part) => format!("{text} contains {part:?}"),
                part => whole(format!("*{part}*")),
            },
            Binary::Matches if is_glob(first) => whole((*first).to_owned()),
            Binary::Equal | Binary::NotEqual => {
                let alternatives: Vec<&str> = first.split('|').map(str::trim).collect();
                self.globs(value, &alternatives, operator == Binary::NotEqual)
            }
            Binary::In => self.globs(value, patterns, self.is_negated(at)),
            _ => return None,
        })
    }

    /// Whether a text is one of several patterns, or none of them.
    fn globs(&self, value: &str, patterns: &[&str], is_negated: bool) -> String {
        let not = if is_negated { "not " } else { "" };
        match patterns {
            [only] => format!("{not}glob({value}, {only:?})"),
            // `#` would be another element in there.
            _ if value.starts_with(['.', '#']) => {
                let each: Vec<String> = patterns.iter().map(|pattern| format!("glob({value}, {pattern:?})")).collect();
                format!("{not}({})", each.join(" || "))
            }
            _ => {
                let predicate = if is_negated { "none" } else { "any" };
                format!("{predicate}({patterns:?}, glob({value}, #))")
            }
        }
    }

    /// What may be meant by a regular expression that is none.
    pub(super) fn glob_meant(&self, subject: Id, pattern: &str) -> String {
        if !pattern.starts_with('*') {
            return String::new();
        }
        format!(": a pattern in which `*` stands for anything is written `glob({}, {pattern:?})`", self.shown(subject))
    }

    /// Whether no text that something may be has a `*` or a `?` in it.
    fn is_unpatterned(&self, id: Id) -> bool {
        let name_of = |id: Id| match self.tree.kind(id) {
            Syntax::Member { property, .. } => match self.tree.kind(*property) {
                Syntax::Text(name) => Some(name.as_ref()),
                _ => None,
            },
            Syntax::Identifier(name) => Some(*name),
            _ => None,
        };
        match self.tree.kind(id) {
            Syntax::Chain(inner) => self.is_unpatterned(*inner),
            Syntax::Binary(Binary::Coalesce, first, _) => self.is_unpatterned(*first),
            Syntax::Builtin { name: "lower" | "upper" | "trim", arguments } => {
                arguments.first().is_some_and(|first| self.is_unpatterned(*first))
            }
            Syntax::Identifier(name) => self.variable(name).is_some_and(|variable| self.is_unpatterned(variable.value)),
            Syntax::Member { base, .. } => match name_of(*base).filter(|base| self.schema.is_text_map(base)) {
                Some(map) => self.schema.is_unpatterned(map),
                None => name_of(id).is_some_and(|field| self.schema.is_unpatterned(field)),
            },
            _ => false,
        }
    }

    /// Notes what a text with computed fields, or one of those fields, is compared with: the host knows what it can never be.
    pub(super) fn note_compared(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        if self.strict {
            return;
        }
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        for (id, subject, other) in [(left_id, left, right), (right_id, right, left)] {
            let field = match (&subject.op.kind, &subject.known.form) {
                (Kind::Computed { field, of_text: true, .. }, _) => Some(*field),
                (_, Form::Shaped(Shape::TextWith(_))) => None,
                _ => continue,
            };
            if id == right_id && !is_equality {
                continue;
            }
            let negated = operator == Binary::In && self.is_negated(at);
            let operator = if negated { "not in" } else { name_of(operator) };
            let may_be_nil = subject.known.may_be_nil && !self.is_asked(id);
            let (subject, place) = (self.shown(id), self.error(at, ""));
            let compared = texts(&other.op).into_iter().map(|text| Compared {
                field,
                subject: subject.clone(),
                operator,
                text: text.to_owned(),
                may_be_nil,
                line: place.line,
                column: place.column,
            });
            let compared: Vec<Compared> = compared.collect();
            self.facts.compared.extend(compared);
        }
    }
}

/// The texts that something is compared with.
fn texts(op: &Op) -> Vec<&str> {
    fn of(op: &Op) -> Option<&str> {
        match &op.kind {
            Kind::Constant(Constant::Text(text)) => Some(text),
            _ => None,
        }
    }
    match &op.kind {
        Kind::Array(elements) => elements.iter().filter_map(of).collect(),
        _ => of(op).into_iter().collect(),
    }
}

/// Whether a pattern has a `*` behind a plain sign, and nothing that only regular expressions have.
fn is_glob(pattern: &str) -> bool {
    let is_regex = pattern.contains(['^', '$', '[', ']', '(', ')', '{', '}', '+', '|', '\\', '?']);
    let follows_sign = pattern.match_indices('*').any(|(at, _)| !pattern[..at].ends_with('.'));
    !is_regex && follows_sign
}

#[cfg(test)]
mod tests {
    use super::is_glob;

    #[test]
    fn a_glob_is_told_from_a_regular_expression() {
        for (pattern, expected) in [
            ("system:serviceaccount:*:deployer", true),
            ("test-*", true),
            ("registry.example.com/*", true),
            ("^test-*", false),
            ("test-.*", false),
            ("(a|b)*", false),
        ] {
            assert_eq!(is_glob(pattern), expected, "{pattern}");
        }
    }
}

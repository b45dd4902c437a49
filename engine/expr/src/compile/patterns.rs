//! Patterns where none work. Whoever compares a name with `"team-*"` means every name that begins so, and gets a comparison letter by
//! letter that is never true. Only fields are looked at of which no text has such signs: elsewhere a `*` may be just that.

use super::{Compiler, Typed, form::Form, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    builtins::Builtin,
    error::Error,
    facts::{Compared, Relation},
    program::{Constant, Kind, Op},
    schema::Shape,
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Refuses a pattern that is compared letter by letter with what never has such signs.
    pub(super) fn check_pattern(
        &self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Result<(), Error> {
        if self.strict || !(has_pattern(&left.op) || has_pattern(&right.op)) {
            return Ok(());
        }
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        let (id, subject, other) = match (texts(&left.op).is_empty(), texts(&right.op).is_empty()) {
            (true, false) => (left_id, left, right),
            (false, true) if is_equality => (right_id, right, left),
            _ => return Ok(()),
        };
        // By its name alone nobody knows what a field of an unknown kind may be.
        if subject.known.kind != Type::TEXT || !self.is_unpatterned(id) {
            return Ok(());
        }
        let Some(advice) = self.meant(at, operator, (id, subject), &other.op) else { return Ok(()) };
        let because = match operator {
            Binary::Matches => "in a regular expression `*` repeats the sign before it".to_owned(),
            _ => format!("`{}` knows no patterns, and this never has a `*` or a `?` in it", name_of(operator)),
        };
        Err(self.error(other.op.at, format!("{because}: write `{advice}`")))
    }

    /// What is meant by an operator beside patterns. Nothing if it may be right.
    fn meant(&self, at: u32, operator: Binary, (id, subject): (Id, &Typed<'s>), other: &Op) -> Option<String> {
        let patterns = texts(other);
        let text = self.shown(id);
        let is_negated = operator == Binary::NotEqual || self.is_negated(at);
        let not = if is_negated { "not " } else { "" };
        let value = if subject.known.may_be_nil { format!("{text} ?? \"\"") } else { text.clone() };
        let plain = |part: &str| !part.contains(['*', '?']) && !part.is_empty();
        let first = patterns.first()?;
        let whole = |pattern: &str| format!("{not}glob({value}, {pattern:?})");
        if patterns.iter().any(|pattern| pattern.chars().all(|letter| letter == '*')) {
            // Anything is meant, and not nothing. A `*` alone may also be a name, such as that of all users.
            let is_asked_for = patterns.len() == 1 && subject.known.may_be_nil && self.is_in_text_map(id);
            let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In);
            let sign = if is_negated { "==" } else { "!=" };
            return (is_asked_for && is_equality && has_only_texts(other)).then(|| format!("{text} {sign} nil"));
        }
        Some(match operator {
            Binary::StartsWith => match first.trim_end_matches('*') {
                part if plain(part) => format!("{text} {not}startsWith {part:?}"),
                part => whole(&format!("{part}*")),
            },
            Binary::EndsWith => match first.trim_start_matches('*') {
                part if plain(part) => format!("{text} {not}endsWith {part:?}"),
                part => whole(&format!("*{part}")),
            },
            Binary::Contains => match first.trim_matches('*') {
                part if plain(part) => format!("{text} {not}contains {part:?}"),
                part => whole(&format!("*{part}*")),
            },
            Binary::Matches if is_glob(first) => whole(first),
            Binary::Equal | Binary::NotEqual if text_of(other).is_some() => {
                let alternatives: Vec<&str> = first.split('|').map(str::trim).collect();
                self.globs(id, &value, &alternatives, is_negated)
            }
            Binary::In if has_only_texts(other) => self.globs(id, &value, &patterns, is_negated),
            // What else is in the list stays there.
            Binary::In => {
                let pattern = patterns.iter().find(|pattern| pattern.contains(['*', '?']))?;
                let joined = if is_negated { "&&" } else { "||" };
                format!("… {joined} {}", whole(pattern))
            }
            _ => return None,
        })
    }

    /// Whether a text is one of several patterns, or none of them.
    fn globs(&self, id: Id, value: &str, patterns: &[&str], is_negated: bool) -> String {
        let not = if is_negated { "not " } else { "" };
        match patterns {
            [only] => format!("{not}glob({value}, {only:?})"),
            // `#` would be another element in there.
            _ if self.has_element(id) => {
                let each: Vec<String> = patterns.iter().map(|pattern| format!("glob({value}, {pattern:?})")).collect();
                format!("{not}({})", each.join(" || "))
            }
            _ => {
                let predicate = if is_negated { "none" } else { "any" };
                format!("{predicate}({patterns:?}, glob({value}, #))")
            }
        }
    }

    /// Whether something is made of the element that the predicate around it looks at.
    fn has_element(&self, id: Id) -> bool {
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            match self.tree.kind(id) {
                Syntax::Pointer(_) => return true,
                // What `#` is in there is another element.
                Syntax::Predicate(_) => {}
                kind => kind.each_child(|child| rest.push(child)),
            }
        }
        false
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
        match self.tree.kind(id) {
            Syntax::Chain(inner) => self.is_unpatterned(*inner),
            Syntax::Binary(Binary::Coalesce, first, _) => self.is_unpatterned(*first),
            Syntax::Builtin { name: "lower" | "upper" | "trim", arguments } => {
                arguments.first().is_some_and(|first| self.is_unpatterned(*first))
            }
            Syntax::Identifier(name) => self.variable(name).is_some_and(|variable| self.is_unpatterned(variable.value)),
            Syntax::Member { .. } => match self.text_map_around(id) {
                Some(map) => self.schema.is_unpatterned(map),
                None => self.last_name(id).is_some_and(|field| self.schema.is_unpatterned(field)),
            },
            _ => false,
        }
    }

    /// Whether something is a value of a map of texts, such as a label.
    fn is_in_text_map(&self, id: Id) -> bool {
        match self.tree.kind(id) {
            Syntax::Chain(inner) => self.is_in_text_map(*inner),
            _ => self.text_map_around(id).is_some(),
        }
    }

    /// The name of the map of texts that something is a value of.
    fn text_map_around(&self, id: Id) -> Option<&'s str> {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return None };
        self.last_name(*base).filter(|base| self.schema.is_text_map(base))
    }

    /// The name that a path ends with.
    pub(super) fn last_name(&self, id: Id) -> Option<&'s str> {
        match self.tree.kind(id) {
            Syntax::Member { property, .. } => match self.tree.kind(*property) {
                Syntax::Text(name) => Some(name.as_ref()),
                _ => None,
            },
            Syntax::Identifier(name) => Some(*name),
            _ => None,
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
        if self.strict || !self.schema.notes_compared() {
            return;
        }
        let relation = match operator {
            Binary::Equal | Binary::NotEqual => Relation::Equal,
            Binary::In => Relation::In,
            Binary::StartsWith => Relation::StartsWith,
            _ => Relation::Other,
        };
        for (id, subject, other) in [(left_id, left, right), (right_id, right, left)] {
            let field = match (&subject.op.kind, &subject.known.form) {
                (Kind::Computed { field, of_text: true, .. }, _) => Some(*field),
                (_, Form::Shaped(Shape::TextWith(_))) => None,
                _ => continue,
            };
            let texts = texts(&other.op);
            if texts.is_empty() || id == right_id && relation != Relation::Equal {
                continue;
            }
            self.compared.push(Compared {
                field,
                subject: self.shown(id),
                relation,
                is_negated: operator == Binary::NotEqual || self.is_negated(at),
                texts: texts.into_iter().map(Box::from).collect(),
                may_be_nil: subject.known.may_be_nil && !self.is_asked(id),
                at,
            });
        }
    }
}

impl<'s> Compiler<'s> {
    /// Notes that a text that has computed fields is compared with a pattern that asks for its beginning, or for its end.
    pub(super) fn note_glob(&mut self, at: u32, builtin: &Builtin, arguments: &[Id], typed: &[Typed<'s>]) {
        let ([text, pattern], "glob") = (typed, builtin.name) else { return };
        if self.strict || !self.schema.notes_compared() || !matches!(text.known.form, Form::Shaped(Shape::TextWith(_)))
        {
            return;
        }
        let Some(pattern) = text_of(&pattern.op) else { return };
        let (relation, part) = match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
            (Some(beginning), None) => (Relation::StartsWith, beginning),
            (None, Some(end)) => (Relation::Other, end),
            _ => return,
        };
        if part.contains(['*', '?']) {
            return;
        }
        self.compared.push(Compared {
            field: None,
            subject: self.shown(arguments[0]),
            relation,
            is_negated: false,
            texts: [Box::from(part)].into(),
            may_be_nil: false,
            at,
        });
    }

    /// Notes that a text that has computed fields is taken apart by hand. What is between the same signs may be another part of it.
    pub(super) fn note_split(&mut self, at: u32, builtin: &Builtin, arguments: &[Id], typed: &[Typed<'s>]) {
        let ([text, sign], "split") = (typed, builtin.name) else { return };
        if self.strict || !self.schema.notes_compared() || !matches!(text.known.form, Form::Shaped(Shape::TextWith(_)))
        {
            return;
        }
        let Some(sign) = text_of(&sign.op) else { return };
        // Of what a path has behind its first part nothing is said.
        let is_first = |id: &Id| match self.tree.kind(*id) {
            Syntax::Member { base, property, .. } => {
                self.at(*base) == at && matches!(self.tree.kind(*property), Syntax::Integer(0))
            }
            _ => false,
        };
        if sign == "/" && !(0..self.tree.nodes.len() as u32).map(Id).any(|id| is_first(&id)) {
            return;
        }
        self.compared.push(Compared {
            field: None,
            subject: self.shown(arguments[0]),
            relation: Relation::Split,
            is_negated: false,
            texts: [Box::from(sign)].into(),
            may_be_nil: false,
            at,
        });
    }
}

/// A text that is written in the expression.
fn text_of(op: &Op) -> Option<&str> {
    match &op.kind {
        Kind::Constant(Constant::Text(text)) => Some(text),
        _ => None,
    }
}

/// The texts that something is compared with.
pub(super) fn texts(op: &Op) -> Vec<&str> {
    match &op.kind {
        Kind::Array(elements) => elements.iter().filter_map(text_of).collect(),
        _ => text_of(op).into_iter().collect(),
    }
}

/// Whether one of the texts that something is compared with looks like a pattern.
fn has_pattern(op: &Op) -> bool {
    let is_pattern = |op: &Op| text_of(op).is_some_and(|text| text.contains(['*', '?']));
    match &op.kind {
        Kind::Array(elements) => elements.iter().any(is_pattern),
        _ => is_pattern(op),
    }
}

/// Whether something is compared with texts of the expression, and with nothing else.
fn has_only_texts(op: &Op) -> bool {
    match &op.kind {
        Kind::Array(elements) => elements.iter().all(|element| text_of(element).is_some()),
        _ => text_of(op).is_some(),
    }
}

/// Whether each `*` of a pattern is behind a plain sign, and nothing is in it that only regular expressions have.
fn is_glob(pattern: &str) -> bool {
    let is_regex = pattern.contains(['^', '$', '[', ']', '(', ')', '{', '}', '+', '|', '\\', '?']);
    let follows_sign = pattern.match_indices('*').all(|(at, _)| !pattern[..at].ends_with('.'));
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
            (".*nginx*", false),
            ("(a|b)*", false),
        ] {
            assert_eq!(is_glob(pattern), expected, "{pattern}");
        }
    }
}

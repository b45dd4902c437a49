//! Mistakes that can be seen by constants alone: a call that fails whatever is judged, and a text that is compared as if it were a
//! number, a version or a length of time.

use super::{Compiler, Typed, operators::name_of};
use crate::{
    Arena, Limits, Moment,
    ast::{Binary, Id, Kind as Syntax},
    builtins::Builtin,
    error::Error,
    habits,
    machine::{Failure, Machine},
    program::{Constant, Kind, Op},
    types::Type,
    value::{Amount, Value},
};

/// What finding out whether a call fails may take. A call that takes more is left to the evaluation.
const LIMITS: Limits = Limits { fuel: 10_000, elements: 1_000, bytes: 64 << 10 };

/// What a text looks like that should not be compared letter by letter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Look {
    Number,
    Version,
    Duration,
    Quantity,
}

impl<'s> Compiler<'s> {
    /// Refuses a builtin that fails on its constant arguments, and so would fail every time.
    pub(super) fn refuse_failing(&self, op: &Op) -> Result<(), Error> {
        let Kind::Builtin { builtin, arguments } = &op.kind else { return Ok(()) };
        if self.strict {
            return Ok(());
        }
        let arena = Arena::new();
        let machine = Machine::new(&arena, &LIMITS, Moment::default(), false);
        let Some(Err(failure)) = constant(&machine, op, false) else { return Ok(()) };
        if failure.exceeded().is_some() {
            return Ok(());
        }
        let hint = match arguments.last().map(|argument| &argument.kind) {
            Some(Kind::Constant(Constant::Text(text))) => habits::constant(builtin.name, text),
            _ => String::new(),
        };
        let separator = if hint.is_empty() { "" } else { ": " };
        Err(self.error(op.at, format!("this always fails, because {failure}{separator}{hint}")))
    }

    /// Refuses `int(x ?? "")`, which fails wherever `x` is missing.
    pub(super) fn refuse_failing_default(&self, builtin: &Builtin, arguments: &[Id], op: &Op) -> Result<(), Error> {
        let Some(mut id) = arguments.first().copied().filter(|_| !self.strict) else { return Ok(()) };
        let Some(readable) = builtin.readable() else { return Ok(()) };
        let (first, second) = loop {
            id = match self.tree.kind(id) {
                Syntax::Binary(Binary::Coalesce, first, second) => break (*first, *second),
                Syntax::Chain(inner) => *inner,
                Syntax::Builtin { arguments, .. } if !arguments.is_empty() => arguments[0],
                _ => return Ok(()),
            };
        };
        let text = self.shown(first);
        // Whoever asks for it elsewhere may have seen to it.
        let is_other = |other: &Id| *other != first && self.shown(*other) == text;
        if !matches!(self.tree.kind(first), Syntax::Member { .. }) || self.members().any(|other| is_other(&other)) {
            return Ok(());
        }
        let arena = Arena::new();
        let machine = Machine::new(&arena, &LIMITS, Moment::default(), false);
        let Some(Err(failure)) = constant(&machine, op, true) else { return Ok(()) };
        if failure.exceeded().is_some() {
            return Ok(());
        }
        let message = format!(
            "this fails where `{text}` is missing, because {failure}: write `?? {readable}` in the place of `?? {}`, or \
             `{text} != nil && …` to leave out what has none",
            self.shown(second)
        );
        Err(self.error(op.at, message))
    }

    /// The fields that are read, wherever.
    pub(super) fn members(&self) -> impl Iterator<Item = Id> {
        let ids = (0..self.tree.nodes.len() as u32).map(Id);
        ids.filter(|id| matches!(self.tree.kind(*id), Syntax::Member { .. }))
    }

    /// Refuses a pattern where the text belongs: `glob("prod-*", name)`.
    pub(super) fn refuse_swapped(&self, builtin: &Builtin, arguments: &[Id], op: &Op) -> Result<(), Error> {
        let [first, second] = arguments else { return Ok(()) };
        let is_constant = |id: &Id| matches!(self.tree.kind(*id), Syntax::Text(_));
        let is_pattern = |id: &Id| match self.tree.kind(*id) {
            Syntax::Text(text) => text.contains(['*', '?']),
            // The element of a list of patterns.
            Syntax::Pointer("") => self.scopes.last().is_some_and(|scope| scope.has_patterns),
            _ => false,
        };
        if builtin.name != "glob" || !is_pattern(first) || is_constant(second) {
            return Ok(());
        }
        let (pattern, text) = (self.shown(*first), self.shown(*second));
        Err(self.error(op.at, format!("the pattern of `glob` comes last: write `glob({text}, {pattern})`")))
    }

    /// Warns of `glob(x, "a-{b,c}")` and `glob(x, "a-[bc]")`: of all signs only `*` and `?` mean something else than themselves.
    pub(super) fn warn_of_pattern_classes(&mut self, at: u32, builtin: &Builtin, arguments: &[Id]) {
        let ([text, pattern], "glob", false) = (arguments, builtin.name, self.strict) else { return };
        let Syntax::Text(pattern) = self.tree.kind(*pattern) else { return };
        let text = self.shown(*text);
        let alternatives = match alternatives(pattern) {
            Some(alternatives) => alternatives,
            None if pattern.contains('|') => pattern.split('|').map(|part| part.trim().to_owned()).collect(),
            None if pattern.split_once('[').is_some_and(|(_, rest)| rest.contains(']')) => {
                let regex = regex_of(pattern);
                let message =
                    format!("`[` and `]` stand for themselves in a pattern: write `{text} matches {regex:?}`");
                return self.warn(at, message);
            }
            None => return,
        };
        let alternatives: Vec<String> = alternatives.iter().map(|pattern| format!("{pattern:?}")).collect();
        let message = format!(
            "a pattern has no alternatives, and what stands for them elsewhere stands for itself: write `any([{}], glob({text}, #))`",
            alternatives.join(", ")
        );
        self.warn(at, message);
    }

    /// Warns of an order of texts that is not the order of what they say.
    pub(super) fn warn_of_letters(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        if self.strict || !operator.is_ordering() {
            return;
        }
        let constant_of = |typed: &Typed<'s>, other: &Typed<'s>| match &typed.op.kind {
            Kind::Constant(Constant::Text(text)) if other.known.may_be(Type::TEXT) => look_of(text),
            _ => None,
        };
        let Some(look) = constant_of(left, right).or_else(|| constant_of(right, left)) else { return };
        let (left, right, sign) = (self.shown(left_id), self.shown(right_id), name_of(operator));
        let called = |function: &str| format!("write `{function}({left}) {sign} {function}({right})`");
        let (example, way_out) = match look {
            Look::Number => ("\"9\" is more than \"10\"", called("float")),
            Look::Duration => ("\"9s\" is more than \"30s\"", called("duration")),
            Look::Quantity => ("\"9Mi\" is more than \"1Gi\"", called("quantity")),
            Look::Version => ("\"1.9\" is more than \"1.20\"", called("semver")),
        };
        self.warn(at, format!("texts are compared letter by letter, so that {example}: {way_out}"));
    }

    /// What is meant by an order of a text that may be missing, and is a version or a date by what it is compared with.
    pub(super) fn order_meant(
        &self,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) -> Option<String> {
        let sign = name_of(operator);
        let meant = |id: Id, typed: &Typed<'s>, other: Id, other_typed: &Typed<'s>| {
            if typed.known.kind != Type::TEXT {
                return None;
            }
            let (text, other) = (self.shown(id), self.shown(other));
            match &other_typed.op.kind {
                Kind::Constant(Constant::Text(constant)) if look_of(constant) == Some(Look::Version) => {
                    Some((format!("isSemver({text})"), format!("semver({text})"), format!("semver({other})")))
                }
                _ if other_typed.known.kind == Type::TIME => {
                    Some((format!("{text} != nil"), format!("date({text})"), other))
                }
                _ => None,
            }
        };
        if let Some((asked, one, other)) = meant(left_id, left, right_id, right) {
            return Some(format!("{asked} && {one} {sign} {other}"));
        }
        let (asked, one, other) = meant(right_id, right, left_id, left)?;
        Some(format!("{asked} && {other} {sign} {one}"))
    }

    /// What a text in quotes is meant to be beside a value that is no text.
    pub(super) fn unquoted_constant(&self, text: Id, beside: Type) -> Option<String> {
        let Syntax::Text(text_value) = self.tree.kind(text) else { return None };
        let is_meant = match beside {
            Type::BOOL => matches!(text_value.as_ref(), "true" | "false"),
            Type::INT | Type::FLOAT => text_value.parse::<f64>().is_ok_and(f64::is_finite),
            _ => false,
        };
        let is_raw = self.source[self.at(text) as usize..].starts_with('`');
        let quotes = if is_raw { "what is in backticks is text, " } else { "" };
        is_meant.then(|| format!(": {quotes}write `{text_value}` without quotes"))
    }
}

/// The value of an operation that depends on nothing, or how it fails. None if it depends on something. Where everything is missing, what stands in
/// for it counts.
fn constant<'a>(machine: &Machine<'a>, op: &'a Op, is_missing: bool) -> Option<Result<Value<'a>, Failure>> {
    let values = |ops: &'a [Op]| -> Option<Result<Vec<Value<'a>>, Failure>> {
        ops.iter().map(|op| constant(machine, op, is_missing)).collect()
    };
    match &op.kind {
        Kind::Constant(constant) => Some(Ok(constant.value())),
        Kind::Coalesce { second, .. } if is_missing => constant(machine, second, is_missing),
        Kind::Array(elements) => Some(values(elements)?.and_then(|values| machine.list(&values))),
        Kind::Builtin { builtin, arguments } if builtin.name != "now" => {
            Some(values(arguments)?.and_then(|values| builtin.call(machine, &values)))
        }
        _ => None,
    }
}

fn look_of(text: &str) -> Option<Look> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let parts: Vec<&str> = bare.split('.').collect();
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(text) {
        return Some(Look::Number);
    }
    // `1.2.3-rc.1` and the like.
    let begins_with_digits = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    if parts.len() > 1 && is_digits(parts[0]) && begins_with_digits(parts[1]) && text.parse::<f64>().is_err()
        || parts.len() == 2 && parts.iter().copied().all(is_digits)
    {
        return Some(Look::Version);
    }
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    if !begins_with_digits(text) {
        return None;
    }
    match unit {
        "s" | "h" | "ms" | "us" | "ns" => Some(Look::Duration),
        _ if Amount::parse(text).is_some() => Some(Look::Quantity),
        _ if habits::in_hours(text).is_some() => Some(Look::Duration),
        _ => None,
    }
}

/// The patterns that one with braces stands for elsewhere: `a-{b,c}`.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let (before, rest) = pattern.split_once('{')?;
    let (inside, behind) = rest.split_once('}').filter(|(inside, _)| inside.contains(','))?;
    Some(inside.split(',').map(|part| format!("{before}{}{behind}", part.trim())).collect())
}

/// A pattern with classes as a regular expression.
fn regex_of(pattern: &str) -> String {
    let mut regex = String::from("^");
    let mut is_class = false;
    for letter in pattern.chars() {
        match letter {
            '[' | ']' => is_class = letter == '[',
            '*' if !is_class => regex.push('.'),
            '.' | '+' | '(' | ')' | '|' | '^' | '$' | '\\' if !is_class => regex.push('\\'),
            _ => {}
        }
        match letter {
            '?' if !is_class => regex.push('.'),
            '!' if regex.ends_with('[') => regex.push('^'),
            letter => regex.push(letter),
        }
    }
    regex + "$"
}

#[cfg(test)]
mod tests {
    use super::{Look, look_of};

    #[test]
    fn a_text_is_taken_for_what_it_looks_like() {
        for (text, expected) in [
            ("10", Some(Look::Number)),
            ("1.20", Some(Look::Version)),
            ("v1.2.3", Some(Look::Version)),
            ("1.2.3-rc.1", Some(Look::Version)),
            ("30s", Some(Look::Duration)),
            ("30d", Some(Look::Duration)),
            ("500m", Some(Look::Quantity)),
            ("1Gi", Some(Look::Quantity)),
            ("2026-01-31", None),
            ("2026-01-31T12:00:00.5Z", None),
            ("abc", None),
            ("v", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(look_of(text), expected, "{text}");
        }
    }
}

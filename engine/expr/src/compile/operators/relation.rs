//! What relates two values, such as `==`, `in` and `matches`: whether it can, and the operation for it.

use crate::{
    ast::{Binary, Id, Kind as Syntax},
    compile::{Compiler, Typed, known::Known},
    error::Error,
    operators::Comparison,
    program::{Constant, Kind, Op, TextRelation},
    regex::Regex,
    types::Type,
    value::Network,
};

impl<'s> Compiler<'s> {
    pub(super) fn relation(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, Typed<'s>),
        (right_id, right): (Id, Typed<'s>),
    ) -> Result<Typed<'s>, Error> {
        if operator == Binary::In {
            self.check_in(at, (left_id, &left.known), (right_id, &right.known))?;
        } else if !relation_fits(operator, left.known.kind, right.known.kind) {
            // A pattern that is wrong is told even if what it is matched with is wrong too.
            self.regex_of(at, operator, left_id, &right.op)?;
            return Err(self.mismatch(at, operator, (left_id, &left.known), (right_id, &right.known)));
        }
        let regex = self.regex_of(at, operator, left_id, &right.op)?;
        let range = self.range_of(left.known.kind, &right.op)?;
        let (left, right) = (Box::new(left.op), Box::new(right.op));
        let kind = match operator {
            Binary::Equal => Kind::Equal { left, right, negated: false },
            Binary::NotEqual => Kind::Equal { left, right, negated: true },
            Binary::Less => Kind::Compare { comparison: Comparison::Less, left, right },
            Binary::Greater => Kind::Compare { comparison: Comparison::Greater, left, right },
            Binary::LessOrEqual => Kind::Compare { comparison: Comparison::LessOrEqual, left, right },
            Binary::GreaterOrEqual => Kind::Compare { comparison: Comparison::GreaterOrEqual, left, right },
            Binary::In => match (range, texts_of(&right)) {
                (Some(range), _) => Kind::InRange { needle: left, range: range.into() },
                (None, Some((texts, or_nil))) => Kind::InTexts { needle: left, texts, or_nil },
                (None, None) => Kind::In { needle: left, haystack: right },
            },
            Binary::Matches => match regex {
                Some(regex) => Kind::MatchesConstant { subject: left, regex: regex.into() },
                None => Kind::Matches { subject: left, pattern: right },
            },
            Binary::Contains => Kind::Text { relation: TextRelation::Contains, subject: left, part: right },
            Binary::StartsWith => Kind::Text { relation: TextRelation::StartsWith, subject: left, part: right },
            Binary::EndsWith => Kind::Text { relation: TextRelation::EndsWith, subject: left, part: right },
            _ => Kind::Range { first: left, last: right },
        };
        let result = if operator == Binary::Range { Type::INT.array() } else { Type::BOOL };
        Ok(Typed { op: Op { kind, at }, known: Known::of(result) })
    }

    fn regex_of(&self, at: u32, operator: Binary, subject: Id, pattern: &Op) -> Result<Option<Regex>, Error> {
        match (&pattern.kind, operator) {
            (Kind::Constant(Constant::Text(pattern)), Binary::Matches) => {
                Regex::new(pattern).map(Some).map_err(|message| {
                    let hint = if self.strict { String::new() } else { self.glob_meant(subject, pattern) };
                    self.error(at, format!("{message}{hint}"))
                })
            }
            _ => Ok(None),
        }
    }

    fn check_in(
        &self,
        at: u32,
        (needle_id, needle): (Id, &Known<'s>),
        (haystack_id, haystack): (Id, &Known<'s>),
    ) -> Result<(), Error> {
        let (needle_kind, kind) = (needle.kind, haystack.kind);
        if kind.is_map() {
            if needle_kind.is_unknown() || needle_kind.is_assignable(kind.key()) {
                return Ok(());
            }
            return Err(self
                .error(at, format!("a {needle_kind} can never be a key of this map, whose keys are {}", kind.key())));
        }
        let is_address = matches!(needle_kind, Type::TEXT | Type::NETWORK | Type::NIL) || needle_kind.is_unknown();
        if kind == Type::NETWORK && is_address || kind == Type::TEXT && needle_kind == Type::VERSION {
            return Ok(());
        }
        if kind.is_array() {
            if needle_kind.is_comparable(kind.element()) || kind.element() == Type::NETWORK && is_address {
                return Ok(());
            }
            let hint = self
                .asked_of_each_in(at, (needle_id, needle_kind), (haystack_id, kind))
                .or_else(|| self.asked_of_list(needle_id, needle_kind, haystack_id, &haystack.form.element()));
            let hint = hint.filter(|_| !self.strict).unwrap_or_default();
            let article = if needle_kind == Type::INT || needle_kind.is_array() { "an" } else { "a" };
            return Err(self.error(at, format!("{article} {needle_kind} can never be in an {kind}{hint}")));
        }
        if kind.is_unknown() || needle_kind.is_unknown() && kind == Type::TEXT && self.strict {
            return Ok(());
        }
        if kind == Type::TEXT {
            let (needle, haystack) = (self.shown(needle_id), self.shown(haystack_id));
            let is_address = |text: &str| Network::parse_address(text).or_else(|| Network::parse(text)).is_some();
            let ours = match self.tree.kind(needle_id) {
                Syntax::Text(text) if is_address(text) => format!("for a network write `{needle} in cidr({haystack})`"),
                _ => self
                    .list_meant(&needle, haystack_id)
                    .unwrap_or_else(|| format!("for text write `{haystack} contains {needle}`")),
            };
            let message = format!("`in` looks for an element of a list or a key of a map: {ours}");
            return Err(self.error(at, message));
        }
        Err(self.mismatch(at, Binary::In, (needle_id, needle), (haystack_id, haystack)))
    }
}

fn relation_fits(operator: Binary, left: Type, right: Type) -> bool {
    let both = |kind| left == kind && right == kind;
    let numbers = left.is_number() && right.is_number();
    let is_text = |kind| kind == Type::TEXT;
    match operator {
        Binary::Equal | Binary::NotEqual => left.is_comparable(right),
        Binary::Matches => {
            (left == Type::TEXT || left == Type::BYTES) && right == Type::TEXT || left.may_fit(right, is_text)
        }
        Binary::Contains | Binary::StartsWith | Binary::EndsWith => both(Type::TEXT) || left.may_fit(right, is_text),
        Binary::Range => both(Type::INT) || left.may_fit(right, |kind| kind == Type::INT),
        _ => {
            numbers
                || both(Type::TEXT)
                || both(Type::TIME)
                || both(Type::DURATION)
                || both(Type::QUANTITY)
                || both(Type::VERSION)
                || left.may_fit(right, |kind| {
                    kind.is_number()
                        || matches!(kind, Type::TEXT | Type::TIME | Type::DURATION | Type::QUANTITY | Type::VERSION)
                })
        }
    }
}

/// The texts of an array of nothing but constant texts and nil, and whether there is a nil.
fn texts_of(haystack: &Op) -> Option<(Box<[Box<str>]>, bool)> {
    let Kind::Array(elements) = &haystack.kind else { return None };
    let is_nil = |element: &Op| matches!(element.kind, Kind::Constant(Constant::Nil));
    let texts = elements.iter().filter(|element| !is_nil(element)).map(|element| match &element.kind {
        Kind::Constant(Constant::Text(text)) => Some(text.clone()),
        _ => None,
    });
    Some((texts.collect::<Option<_>>()?, elements.iter().any(is_nil)))
}

//! Texts that stand for something else. A quantity, a version or a network is compared with nothing but others of its kind, and a
//! text beside it that is written in the rule is read as one, once, when the rule is loaded.

#[cfg(test)]
mod tests;

use super::{Compiler, Typed, form::Form, known::Known};
use crate::{
    ast::{Binary, Id},
    builtins,
    error::Error,
    program::{Constant, Kind, Op},
    types::Type,
    value::{Amount, Network, Quantity, Version, version::Range},
};

/// What a text is read as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reading {
    Quantity,
    Version,
    Network,
}

impl Reading {
    const ALL: [Reading; 3] = [Reading::Quantity, Reading::Version, Reading::Network];

    fn of(kind: Type) -> Option<Reading> {
        Reading::ALL.into_iter().find(|reading| reading.kind() == kind)
    }

    fn kind(self) -> Type {
        match self {
            Reading::Quantity => Type::QUANTITY,
            Reading::Version => Type::VERSION,
            Reading::Network => Type::NETWORK,
        }
    }

    /// The function that reads a text so.
    fn function(self) -> &'static str {
        match self {
            Reading::Quantity => "quantity",
            Reading::Version => "semver",
            Reading::Network => "cidr",
        }
    }

    /// Texts that can be read so.
    fn examples(self) -> &'static str {
        match self {
            Reading::Quantity => "\"100m\", \"2\" or \"1Gi\"",
            Reading::Version => "\"1.2.3\" or \"v1.27\"",
            Reading::Network => "\"10.0.0.0/8\"",
        }
    }

    fn reads(self, text: &str) -> bool {
        match self {
            Reading::Quantity => Amount::parse(text).is_some(),
            Reading::Version => Version::parse(text).is_some(),
            Reading::Network => Network::parse(text).is_some(),
        }
    }
}

impl<'s> Compiler<'s> {
    /// The operands of a relation, both read as what one of them is.
    pub(super) fn read_alike(
        &self,
        operator: Binary,
        (left_id, left): (Id, Typed<'s>),
        (right_id, right): (Id, Typed<'s>),
    ) -> Result<(Typed<'s>, Typed<'s>), Error> {
        let compares = operator.is_ordering() || matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In);
        if self.strict || !compares {
            return Ok((left, right));
        }
        self.refuse_unclear(operator, &left, &right)?;
        self.refuse_unclear(operator, &right, &left)?;
        if operator == Binary::In {
            if has_networks(&right) {
                return Ok((self.address(left)?, self.read_as(Reading::Network, right_id, right)?));
            }
            // A version is in a range, which is a text.
            if left.known.kind == Type::VERSION && right.known.kind == Type::TEXT {
                return Ok((left, right));
            }
        }
        match Reading::of(left.known.kind).or_else(|| Reading::of(right.known.kind)) {
            Some(reading) => Ok((self.read_as(reading, left_id, left)?, self.read_as(reading, right_id, right)?)),
            None => Ok((left, right)),
        }
    }

    /// Warns of `x not in cidr("10.0.0.0/8")`, which is true of whatever has no address at all.
    pub(super) fn warn_of_no_address(
        &mut self,
        at: u32,
        (left_id, left): (Id, &Typed<'s>),
        (right_id, right): (Id, &Typed<'s>),
    ) {
        let is_doubtful = left.known.may_be_nil && !left.known.kind.is_nil() && !self.is_asked(left_id);
        if self.strict || !is_doubtful || !self.is_negated(at) || !has_networks(right) {
            return;
        }
        let (text, networks) = (self.shown(left_id), self.shown(right_id));
        let message = format!(
            "`{text}` may be missing, and is in no network then, so that this is true: write `{text} != nil && {text} not in {networks}` to leave \
             out what has none, or `({text} == nil || {text} not in {networks})` to mean that too"
        );
        self.warn(left.op.at, message);
    }

    /// An operand as an amount. What is not known turns out when it runs.
    pub(super) fn as_quantity(&self, id: Id, typed: Typed<'s>) -> Result<Typed<'s>, Error> {
        self.read_as(Reading::Quantity, id, typed)
    }

    fn read_as(&self, reading: Reading, id: Id, typed: Typed<'s>) -> Result<Typed<'s>, Error> {
        let at = typed.op.at;
        let kind = typed.known.kind;
        let name = reading.kind();
        match typed.op.kind {
            Kind::Constant(Constant::Text(text)) => self.constant_reading(reading, at, &text),
            Kind::Constant(Constant::Int(_) | Constant::Float(_)) => {
                let written = self.number_at(at);
                Err(self.error(at, format!("a {name} is compared with a {name}: write `\"{written}\"`")))
            }
            Kind::Array(elements) => {
                let elements: Result<Vec<Op>, Error> = Vec::from(elements)
                    .into_iter()
                    .map(|op| self.read_as(reading, id, Typed { op, known: Known::unknown() }).map(|typed| typed.op))
                    .collect();
                let known = Known::of(reading.kind().array());
                Ok(Typed { op: Op { kind: Kind::Array(elements?.into()), at }, known })
            }
            op if reading == Reading::Quantity && (kind == Type::QUANTITY || typed.known.has_quantities()) => {
                let op = Op { kind: op, at };
                Ok(Typed { op: Op { kind: Kind::Quantity(op.into()), at }, known: typed.known })
            }
            // What stands for something of which nothing is known is read with it.
            Kind::Coalesce { first, second, of_empty } if kind.is_unknown() && is_text(&second) => {
                let default = Typed { op: *second, known: Known::of(Type::TEXT) };
                let second = self.read_as(reading, id, default)?.op.into();
                Ok(Typed { op: Op { kind: Kind::Coalesce { first, second, of_empty }, at }, known: typed.known })
            }
            op if kind == reading.kind() || kind.is_unknown() || kind.is_nil() || is_list_of(reading, &typed.known) => {
                Ok(Typed { op: Op { kind: op, at }, known: typed.known })
            }
            _ if kind.is_array() => {
                let (list, function) = (self.shown(id), reading.function());
                let hint = format!("write `any({list}, {function}(#) == …)`");
                Err(self.error(at, format!("a {name} is compared with a {name}, and this is {kind}: {hint}")))
            }
            _ => {
                let function = reading.function();
                let hint = format!("write `{function}(…)` around it");
                Err(self.error(at, format!("a {name} is compared with a {name}, and this is {kind}: {hint}")))
            }
        }
    }

    /// What is asked whether it is in a network. What may be anything turns out when it runs.
    fn address(&self, typed: Typed<'s>) -> Result<Typed<'s>, Error> {
        let (at, kind) = (typed.op.at, typed.known.kind);
        match &typed.op.kind {
            Kind::Constant(Constant::Text(text)) if let Some(address) = Network::parse_address(text) => {
                Ok(self.constant(at, Constant::Network(address.constant()), Type::NETWORK))
            }
            Kind::Constant(Constant::Text(text)) if !text.contains('/') => {
                Err(self.error(at, format!("{text:?} is no address such as \"10.0.0.1\"")))
            }
            Kind::Constant(Constant::Text(text)) => self.constant_reading(Reading::Network, at, text),
            _ if matches!(kind, Type::TEXT | Type::NETWORK) || kind.is_unknown() || kind.is_nil() => Ok(typed),
            _ => Err(self.error(at, format!("an address is text such as \"10.0.0.1\", and this is {kind}"))),
        }
    }

    /// A text of the rule as what it says.
    fn constant_reading(&self, reading: Reading, at: u32, text: &str) -> Result<Typed<'s>, Error> {
        let constant = match reading {
            Reading::Quantity => Amount::parse(text).map(|amount| Constant::Quantity(Quantity { amount, text: None })),
            Reading::Version => match Version::parse(text).map(Version::constant) {
                Some(None) => return Ok(self.version_at(at, text)),
                version => version.flatten().map(Constant::Version),
            },
            Reading::Network => match Network::parse(text) {
                Some(network) if network.says_more() => {
                    let address = text.split('/').next().unwrap_or_default();
                    let single = if address.contains(':') { 128 } else { 32 };
                    let network = network.constant();
                    let message = format!(
                        "{text:?} says more than a network: write \"{network}\", or \"{address}/{single}\" for one address"
                    );
                    return Err(self.error(at, message));
                }
                network => network.map(|network| Constant::Network(network.constant())),
            },
        };
        match constant {
            Some(constant) => Ok(self.constant(at, constant, reading.kind())),
            None => {
                let (name, examples) = (reading.kind(), reading.examples());
                let hint = if text.is_empty() {
                    ": what is missing is `nil`"
                } else if reading == Reading::Version && Range::parse(text).is_ok() {
                    ": a range stands behind `in`"
                } else {
                    ""
                };
                Err(self.error(at, format!("{text:?} is no {name} such as {examples}{hint}")))
            }
        }
    }

    /// A pre-release of the rule. It borrows from its text, so that it is read whenever it is needed.
    fn version_at(&self, at: u32, text: &str) -> Typed<'s> {
        let text = Op { kind: Kind::Constant(Constant::Text(text.into())), at };
        match builtins::find_ours(Reading::Version.function()) {
            Some(builtin) => {
                let kind = Kind::Builtin { builtin, arguments: [text].into() };
                Typed { op: Op { kind, at }, known: Known::of(Type::VERSION) }
            }
            None => Typed { op: text, known: Known::of(Type::TEXT) },
        }
    }

    /// A call of `semver` or `cidr` with constants, as what it gives.
    pub(super) fn read_constants(&self, call: Typed<'s>) -> Result<Typed<'s>, Error> {
        let Kind::Builtin { builtin, arguments } = &call.op.kind else { return Ok(call) };
        let reading = match builtin.name {
            "semver" => Reading::Version,
            "cidr" => Reading::Network,
            _ => return Ok(call),
        };
        let text_of = |op: &Op| match &op.kind {
            Kind::Constant(Constant::Text(text)) => Some((op.at, text.clone())),
            _ => None,
        };
        match &arguments[..] {
            [argument] if let Some((at, text)) = text_of(argument) => self.constant_reading(reading, at, &text),
            [Op { kind: Kind::Array(elements), at }]
                if let Some(texts) = elements.iter().map(text_of).collect::<Option<Vec<_>>>() =>
            {
                let read =
                    |(at, text): (u32, Box<str>)| self.constant_reading(reading, at, &text).map(|typed| typed.op);
                let elements: Vec<Op> = texts.into_iter().map(read).collect::<Result<_, _>>()?;
                Ok(Typed { op: Op { kind: Kind::Array(elements.into()), at: *at }, known: call.known })
            }
            _ => Ok(call),
        }
    }

    /// The range that a version is asked for, if it is known.
    pub(super) fn range_of(&self, needle: Type, haystack: &Op) -> Result<Option<Range>, Error> {
        match &haystack.kind {
            Kind::Constant(Constant::Text(text)) if needle == Type::VERSION => {
                let wrong = |problem| self.error(haystack.at, format!("{text:?} is no range of versions: {problem}"));
                Range::parse(text).map(Some).map_err(wrong)
            }
            _ => Ok(None),
        }
    }

    /// A number as it is written: `1.20` is another version than `1.2`.
    fn number_at(&self, at: u32) -> &'s str {
        let rest = &self.source[at as usize..];
        let is_part = |character: char| character.is_ascii_alphanumeric() || "._".contains(character);
        &rest[..rest.find(|character| !is_part(character)).unwrap_or(rest.len())]
    }

    /// Refuses to compare what may be an amount, a version or a network, and may be a text, with a text.
    fn refuse_unclear(&self, operator: Binary, typed: &Typed<'s>, other: &Typed<'s>) -> Result<(), Error> {
        let Some(reading) = unclear(typed) else { return Ok(()) };
        // A text that is no amount is compared with the text that stands for a missing one: `(x ?? "") == ""`.
        let is_clear = match &other.op.kind {
            Kind::Constant(Constant::Nil) => true,
            Kind::Constant(Constant::Text(text)) => !operator.is_ordering() && !reading.reads(text),
            _ => false,
        };
        if is_clear { Ok(()) } else { Err(self.unclear(reading, typed)) }
    }

    /// Refuses to count with what may be an amount, and may be something else: what is missing would be no amount when it runs.
    pub(super) fn refuse_unclear_amount(&self, typed: &Typed<'s>) -> Result<(), Error> {
        match unclear(typed) {
            Some(Reading::Quantity) if !self.strict => Err(self.unclear(Reading::Quantity, typed)),
            _ => Ok(()),
        }
    }

    fn unclear(&self, reading: Reading, typed: &Typed<'s>) -> Error {
        let (name, function) = (reading.kind(), reading.function());
        let forms = typed.known.form.alternatives().iter().filter(|form| !matches!(form, Form::Nil));
        let other = match forms.map(Form::kind).find(|kind| *kind != name) {
            Some(Type::TEXT) => "a text".to_owned(),
            None => "something else".to_owned(),
            Some(kind) if kind.is_unknown() => "something else".to_owned(),
            Some(kind) if kind.to_string().starts_with(['a', 'i']) => format!("an {kind}"),
            Some(kind) => format!("a {kind}"),
        };
        let default = if reading == Reading::Quantity { "write `?? \"0\"`, or" } else { "write" };
        self.error(typed.op.at, format!("this may be a {name} or {other}: {default} `{function}(…)` around it"))
    }

    /// What is known of `quantity ?? "0"` and the like: a text that is an amount stands for one, and so does a number, as in manifests.
    pub(super) fn quantity_of_either(&self, known: Known<'s>, one: &Typed<'s>, other: &Typed<'s>) -> Known<'s> {
        let is_amount = |typed: &Typed<'_>| match &typed.op.kind {
            Kind::Constant(Constant::Text(text)) => Amount::parse(text).is_some(),
            Kind::Constant(Constant::Float(number)) => Amount::of_float(*number).is_some(),
            Kind::Constant(Constant::Nil | Constant::Int(_)) => true,
            _ => typed.known.kind == Type::QUANTITY,
        };
        let is_quantity = one.known.kind == Type::QUANTITY || other.known.kind == Type::QUANTITY;
        if self.strict || !is_quantity || !is_amount(one) || !is_amount(other) {
            return known;
        }
        Known { kind: Type::QUANTITY, form: Form::Plain(Type::QUANTITY), ..known }
    }
}

fn is_text(op: &Op) -> bool {
    matches!(op.kind, Kind::Constant(Constant::Text(_)))
}

/// What something may be read as that may also be something else.
fn unclear(typed: &Typed<'_>) -> Option<Reading> {
    let forms = || typed.known.form.alternatives().iter().filter(|form| !matches!(form, Form::Nil));
    let is_read = |reading: &Reading| forms().any(|form| matches!(form, Form::Plain(kind) if *kind == reading.kind()));
    Reading::ALL.into_iter().find(is_read).filter(|_| forms().count() > 1)
}

fn is_list_of(reading: Reading, known: &Known<'_>) -> bool {
    known.kind.is_array() && matches!(known.form.element(), Form::Plain(kind) if kind == reading.kind())
}

/// Whether something is a network, or a list in which there is one.
fn has_networks(typed: &Typed<'_>) -> bool {
    let is_network = |form: &Form<'_>| matches!(form, Form::Plain(Type::NETWORK));
    typed.known.kind == Type::NETWORK
        || typed.known.kind.is_array() && typed.known.form.element().alternatives().iter().any(is_network)
}

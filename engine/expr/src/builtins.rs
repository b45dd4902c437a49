//! The functions of the language: one row each, with what the compiler checks, what runs, and what the reference page
//! says.

mod check;
mod convert;
#[cfg(test)]
mod hostile;
mod list;
mod map;
mod number;
mod ours;
#[cfg(test)]
pub(crate) mod sample;
mod table;
mod text;
mod time;

use std::{fmt, sync::LazyLock};

use self::check::Check;
pub(crate) use self::{
    check::Refusal,
    convert::show,
    ours::OURS,
    table::builtins,
    time::{METHODS, method, signature},
};
use crate::{
    machine::{Failure, Machine},
    program::{Missing, Predicate},
    types::Type,
    value::{Value, sequence::Sequence},
};

/// A function of the language.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    /// How it is called, for people.
    pub(crate) signature: &'static str,
    /// One line for the reference page.
    pub(crate) about: &'static str,
    /// An expression that shows it, and what that is.
    pub(crate) example: (&'static str, &'static str),
    check: Check,
    /// What is known of the fields of its result.
    pub(crate) gives: Gives,
    pub(crate) run: Run,
}

/// How the result is made from the arguments, so that what is known of their fields is known of the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Gives {
    /// Something else: its type says everything.
    Type,
    /// A list of elements of the first argument.
    Elements,
    /// An element of the first argument, or nil.
    Element,
    /// An element, or a field, of the first argument, or nil.
    Member,
    /// A list of the elements of all arguments.
    AllElements,
    /// A list of what is in the lists in the first argument.
    Flat,
    /// A list of keys and values of the first argument, each two in a list.
    Pairs,
    /// A map of the second elements of the elements of the first argument.
    Paired,
    /// A map of lists of elements of the first argument.
    Groups,
    /// A list of what the body returns.
    Bodies,
    /// What the body returns, or what it began with.
    Reduced,
}

/// The part of the reference page that a function is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Group {
    Predicate,
    Text,
    Number,
    List,
    Map,
    Conversion,
    Time,
    /// Of rules alone: expr-lang does not have them.
    Kubernetes,
}

impl Group {
    /// The default that a warning suggests for an argument of these functions that may be nil.
    pub(crate) fn nothing(self) -> &'static str {
        match self {
            Group::Text | Group::Time => "\"\"",
            Group::Predicate | Group::List => "[]",
            Group::Map => "{}",
            Group::Number => "0",
            Group::Conversion => "\"0\"",
            Group::Kubernetes => "\"\"",
        }
    }
}

/// What runs a function.
pub(crate) enum Run {
    /// The evaluator: its second argument is an expression that is evaluated for each element.
    Predicate(Predicate),
    /// A plain function of its arguments.
    Function(Function),
}

/// A plain function. Arguments have been counted by the compiler.
pub(crate) type Function = for<'a> fn(&Machine<'a>, &[Value<'a>]) -> Result<Value<'a>, Failure>;

static BY_NAME: LazyLock<Vec<&'static Builtin>> = LazyLock::new(|| {
    let mut rows: Vec<_> = builtins().collect();
    rows.sort_by_key(|builtin| builtin.name);
    rows
});

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    let place = BY_NAME.binary_search_by_key(&name, |builtin| builtin.name).ok()?;
    Some(BY_NAME[place])
}

/// The function of a name that rules have beside those of expr-lang.
pub(crate) fn find_ours(name: &str) -> Option<&'static Builtin> {
    OURS.iter().find(|builtin| builtin.name == name)
}

/// The names of the functions that rules have beside those of expr-lang.
pub(crate) fn our_names() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|builtin| builtin.name)
}

/// The names of all functions of expr-lang.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    builtins().map(|builtin| builtin.name)
}

impl Builtin {
    /// The type that a call returns, or why it can never work. A predicate's body counts as an argument: its type is what
    /// it returns.
    pub(crate) fn check(&self, types: &[Type]) -> Result<Type, Refusal> {
        self.check.result(self.name, types)
    }

    /// Whether it knows what to do with an argument that is nil, and says so of nil.
    pub(crate) fn takes_nil(&self, argument: usize) -> bool {
        match self.name {
            "string" | "type" | "toJSON" | "first" | "last" => true,
            _ if self.asks() => true,
            "get" => argument == 0,
            _ => false,
        }
    }

    /// Whether it asks if something can be read. Of nil the answer is no.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.name, "isQuantity" | "isSemver" | "isCIDR" | "isIP")
    }

    /// Whether it gives what a text says, so that whoever sees the text sees the value.
    pub(crate) fn reads_text(&self) -> bool {
        matches!(self.name, "quantity" | "semver" | "cidr")
    }

    /// What errors suggest in the place of a text that may be missing, where the empty one could not be read.
    pub(crate) fn readable(&self) -> Option<&'static str> {
        match self.name {
            "int" | "float" | "quantity" | "semver" => Some("\"0\""),
            "duration" => Some("\"0s\""),
            "date" => Some("\"1970-01-01\""),
            "timezone" => Some("\"UTC\""),
            "fromJSON" => Some("\"null\""),
            // In no network is nothing.
            "cidr" => Some("[]"),
            _ => None,
        }
    }

    /// What a function of lists or maps takes for an argument that is missing, in rules.
    pub(crate) fn takes_nil_for(&self, argument: usize, kind: Type) -> Option<Missing> {
        let is_first = argument == 0;
        match (self.group, self.name) {
            (_, "first" | "last" | "get") => None,
            (Group::Map, "fromPairs") => Some(Missing::EmptyList),
            (Group::Map, _) if is_first => Some(Missing::EmptyMap),
            (Group::List, "concat") => Some(Missing::EmptyList),
            (Group::List, _) | (Group::Text, "join") if is_first => Some(Missing::EmptyList),
            (Group::Number, "max" | "min" | "mean" | "median") if kind.is_array() => Some(Missing::EmptyList),
            _ => None,
        }
    }

    /// Whether it fails if an element of a list is missing.
    pub(crate) fn needs_every_element(&self) -> bool {
        matches!(self.name, "max" | "min" | "mean" | "median" | "join" | "cidr")
    }

    /// Whether it puts elements in order, for which it must know that they are amounts.
    pub(crate) fn compares(&self) -> bool {
        matches!(self.name, "max" | "min" | "sort")
    }

    /// Whether it may give nil for arguments that are there.
    pub(crate) fn may_give_nil(&self, kinds: &[Type]) -> bool {
        match self.name {
            "first" | "last" | "get" | "fromJSON" | "fromYAML" => true,
            // Of an empty list there is no largest.
            "max" | "min" => kinds.iter().any(|kind| kind.is_array() || kind.is_unknown()),
            _ => false,
        }
    }

    /// Calls it, unless it is the evaluator that runs it.
    #[inline]
    pub(crate) fn call<'a>(&self, machine: &Machine<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
        match self.run {
            Run::Function(function) => function(machine, arguments),
            Run::Predicate(_) => Err(Failure::new(format!("{} is run by the evaluator", self.name))),
        }
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

fn text_of<'a>(value: Value<'a>) -> Result<&'a str, Failure> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(Failure::expected("a string", value)),
    }
}

fn integer_of(value: Value<'_>) -> Result<i64, Failure> {
    match value {
        Value::Int(number) => Ok(number),
        _ => Err(Failure::expected("an int", value)),
    }
}

fn list_of<'a>(value: Value<'a>) -> Result<Sequence<'a>, Failure> {
    value.sequence().ok_or_else(|| Failure::expected("an array", value))
}

/// Text for a message: not much of it.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse::parse, testing::Pod};

    #[test]
    fn each_function_is_found_by_its_name() {
        for builtin in builtins() {
            assert!(std::ptr::eq(find(builtin.name).expect(builtin.name), builtin));
        }
        for builtin in builtins().chain(OURS) {
            assert!(builtin.signature.starts_with(&format!("{}(", builtin.name)));
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn the_example_of_a_function_has_the_value_that_it_says() {
        let pod = Pod::new();
        for builtin in builtins().chain(OURS) {
            let (example, value) = builtin.example;
            assert!(example.contains(builtin.name));
            let (found, expected) = (pod.evaluate(example), pod.evaluate(value));
            assert_eq!(found, expected, "{example}");
        }
    }

    #[test]
    fn the_grammar_takes_a_predicate_where_the_table_does() {
        for builtin in builtins() {
            // Only a predicate may be a sequence in braces.
            let source = format!("{}(list, {{let x = #; x}})", builtin.name);
            let parsed = parse(&source);
            assert_eq!(parsed.is_ok(), matches!(builtin.run, Run::Predicate(_)), "{source}");
        }
    }
}

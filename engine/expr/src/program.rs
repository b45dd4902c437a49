//! A compiled expression: a tree of operations with everything looked up that can be looked up before there is a value.

use portal_document::Key;

use crate::{
    builtins::Builtin,
    facts::{Compared, Facts},
    operators::Comparison,
    regex::Regex,
    schema::{ComputedId, FunctionId, Slot},
    value::{Network, Quantity, Version, version::Range},
    warning::Warning,
};

/// A compiled expression. It can be evaluated any number of times, by any number of threads.
#[derive(Debug)]
pub struct Program {
    pub(crate) source: Box<str>,
    pub(crate) root: Op,
    /// The variables that `let` declares, by their numbers.
    pub(crate) variables: Box<[Box<str>]>,
    /// The roots that are named, for telling what was seen.
    pub(crate) roots: Box<[(Slot, Box<str>)]>,
    pub(crate) calls: Box<[CallSite]>,
    pub(crate) strict: bool,
    pub(crate) facts: Facts,
    /// What texts with computed fields are compared with, until somebody takes it.
    pub(crate) compared: Vec<Compared>,
    pub(crate) warnings: Vec<Warning>,
    /// The declarations that a condition begins with.
    pub(crate) declarations: Box<str>,
}

/// A place in the expression that calls the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallSite {
    /// The function.
    pub function: FunctionId,
    /// What it is called.
    pub name: String,
    /// The names between the root and the function: `["pods"]` in `cluster.pods.list(…)`.
    pub names: Vec<String>,
    /// The names of which one is meant: `["pods", "nodes"]` in `cluster.any("pods", "nodes").byRef(…)`, behind all other names.
    pub among: Vec<Written>,
    /// The root that the call begins with; none for a plain function.
    pub root: Option<Slot>,
    /// The line of the call, from 1.
    pub line: u32,
    /// The column of the call in characters, from 1.
    pub column: u32,
}

/// A text of the expression, and where it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its column in characters, from 1.
    pub column: u32,
}

/// An operation, and the byte offset that its failures point at.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) at: u32,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Constant(Constant),
    /// A root as a whole.
    Root(Slot),
    /// `$env`, in strict mode.
    Environment,
    Variable(u16),
    /// `#`
    Item,
    /// `#index`
    Index,
    /// `#acc`
    Accumulator,
    /// Fields below a base, where nil has every field. `missing` is what a missing last field is.
    Path {
        base: Box<Op>,
        keys: Box<[Key]>,
        missing: Missing,
    },
    /// A field that the host computes, where the base is what it is computed from. Of anything else it is read.
    Computed {
        base: Box<Op>,
        field: ComputedId,
        name: Box<str>,
        /// Whether it is a field of text, rather than of an object.
        of_text: bool,
        missing: Missing,
    },
    /// `.name` as in Go: an error on nil. With `optional` a nil base skips the chain.
    Field {
        base: Box<Op>,
        key: Key,
        optional: bool,
    },
    /// `[…]`
    Fetch {
        base: Box<Op>,
        property: Box<Op>,
        optional: bool,
    },
    /// What is nil when a `?.` inside meets nil.
    Chain(Box<Op>),
    Slice {
        base: Box<Op>,
        from: Option<Box<Op>>,
        to: Option<Box<Op>>,
    },
    Not(Box<Op>),
    Negate(Box<Op>),
    And(Connected),
    Or(Connected),
    Equal {
        left: Box<Op>,
        right: Box<Op>,
        negated: bool,
    },
    /// Whether a list or a map is missing or empty.
    Empty {
        operand: Box<Op>,
        negated: bool,
    },
    Compare {
        comparison: Comparison,
        left: Box<Op>,
        right: Box<Op>,
    },
    /// Operators of one precedence, from left to right.
    Arithmetic {
        first: Box<Op>,
        rest: Box<[(Arithmetic, u32, Op)]>,
    },
    In {
        needle: Box<Op>,
        haystack: Box<Op>,
    },
    /// `in` with a list of text that is known, and of nil.
    InTexts {
        needle: Box<Op>,
        texts: Box<[Box<str>]>,
        or_nil: bool,
    },
    /// `in` a range of versions that is known.
    InRange {
        needle: Box<Op>,
        range: Box<Range>,
    },
    Matches {
        subject: Box<Op>,
        pattern: Box<Op>,
    },
    MatchesConstant {
        subject: Box<Op>,
        regex: Box<Regex>,
    },
    Text {
        relation: TextRelation,
        subject: Box<Op>,
        part: Box<Op>,
    },
    Range {
        first: Box<Op>,
        last: Box<Op>,
    },
    /// `??`, which takes an empty list or map for nothing with `of_empty`.
    Coalesce {
        first: Box<Op>,
        second: Box<Op>,
        of_empty: bool,
    },
    /// What a function of lists or maps takes for a value that is missing.
    OrEmpty {
        operand: Box<Op>,
        missing: Missing,
    },
    /// A value of the schema as the quantity that it is.
    Quantity(Box<Op>),
    Conditional {
        condition: Box<Op>,
        yes: Box<Op>,
        no: Box<Op>,
    },
    Let {
        variable: u16,
        value: Box<Op>,
        body: Box<Op>,
    },
    Sequence(Box<[Op]>),
    Array(Box<[Op]>),
    Map(Box<[(Op, Op)]>),
    Builtin {
        builtin: &'static Builtin,
        arguments: Box<[Op]>,
    },
    Predicate {
        predicate: Predicate,
        collection: Box<Op>,
        body: Option<Box<Op>>,
        extra: Option<Box<Op>>,
    },
    /// A method of a time or a duration.
    Method {
        base: Box<Op>,
        name: Box<str>,
        arguments: Box<[Op]>,
        optional: bool,
    },
    /// A call of something that is no function, which fails as late as in Go.
    Uncallable {
        callee: Box<Op>,
        arguments: Box<[Op]>,
    },
    /// A call of the host, by the number of its site.
    Call {
        site: u32,
        arguments: Box<[Op]>,
    },
}

/// The operands of `&&` or `||`, and the places of the operators between them.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) operands: Box<[Op]>,
    pub(crate) operators: Box<[u32]>,
}

/// A value that is known.
#[derive(Clone, Debug)]
pub(crate) enum Constant {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    Quantity(Quantity<'static>),
    Version(Version<'static>),
    Network(Network<'static>),
}

/// The value of a field that is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Missing {
    Nil,
    /// nil, as which an empty text counts too.
    NilOrEmpty,
    EmptyList,
    EmptyMap,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TextRelation {
    Contains,
    StartsWith,
    EndsWith,
}

/// The builtins that run a body for each element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Predicate {
    All,
    None,
    Any,
    One,
    Filter,
    Map,
    Count,
    Sum,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    GroupBy,
    SortBy,
    Reduce,
}

impl Predicate {
    /// How it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Predicate::All => "all",
            Predicate::None => "none",
            Predicate::Any => "any",
            Predicate::One => "one",
            Predicate::Filter => "filter",
            Predicate::Map => "map",
            Predicate::Count => "count",
            Predicate::Sum => "sum",
            Predicate::Find => "find",
            Predicate::FindIndex => "findIndex",
            Predicate::FindLast => "findLast",
            Predicate::FindLastIndex => "findLastIndex",
            Predicate::GroupBy => "groupBy",
            Predicate::SortBy => "sortBy",
            Predicate::Reduce => "reduce",
        }
    }
}

impl Op {
    /// Calls `visit` with what the operation works with.
    pub(crate) fn each_child<'o>(&'o self, mut visit: impl FnMut(&'o Op)) {
        match &self.kind {
            Kind::Constant(_)
            | Kind::Root(_)
            | Kind::Environment
            | Kind::Variable(_)
            | Kind::Item
            | Kind::Index
            | Kind::Accumulator => {}
            Kind::Path { base: inner, .. }
            | Kind::Computed { base: inner, .. }
            | Kind::Field { base: inner, .. }
            | Kind::Chain(inner)
            | Kind::Not(inner)
            | Kind::Negate(inner)
            | Kind::Empty { operand: inner, .. }
            | Kind::InTexts { needle: inner, .. }
            | Kind::InRange { needle: inner, .. }
            | Kind::MatchesConstant { subject: inner, .. }
            | Kind::OrEmpty { operand: inner, .. }
            | Kind::Quantity(inner) => visit(inner),
            Kind::Fetch { base: one, property: other, .. }
            | Kind::Equal { left: one, right: other, .. }
            | Kind::Compare { left: one, right: other, .. }
            | Kind::In { needle: one, haystack: other }
            | Kind::Matches { subject: one, pattern: other }
            | Kind::Text { subject: one, part: other, .. }
            | Kind::Range { first: one, last: other }
            | Kind::Coalesce { first: one, second: other, .. }
            | Kind::Let { value: one, body: other, .. } => [one, other].into_iter().for_each(|op| visit(op)),
            Kind::Slice { base, from, to } => {
                [Some(base), from.as_ref(), to.as_ref()].into_iter().flatten().for_each(|op| visit(op))
            }
            Kind::And(connected) | Kind::Or(connected) => connected.operands.iter().for_each(visit),
            Kind::Arithmetic { first, rest } => {
                visit(first);
                rest.iter().for_each(|(.., operand)| visit(operand));
            }
            Kind::Conditional { condition, yes, no } => [condition, yes, no].into_iter().for_each(|op| visit(op)),
            Kind::Sequence(ops)
            | Kind::Array(ops)
            | Kind::Builtin { arguments: ops, .. }
            | Kind::Call { arguments: ops, .. } => {
                ops.iter().for_each(visit);
            }
            Kind::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).for_each(visit),
            Kind::Predicate { collection, body, extra, .. } => {
                [Some(collection), body.as_ref(), extra.as_ref()].into_iter().flatten().for_each(|op| visit(op));
            }
            Kind::Method { base: first, arguments, .. } | Kind::Uncallable { callee: first, arguments } => {
                visit(first);
                arguments.iter().for_each(visit);
            }
        }
    }
}

impl Kind {
    /// Whether the answer is a bool, whatever the operands are.
    #[inline]
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            Kind::Not(_)
            | Kind::Equal { .. }
            | Kind::Empty { .. }
            | Kind::Compare { .. }
            | Kind::In { .. }
            | Kind::InTexts { .. }
            | Kind::InRange { .. }
            | Kind::Matches { .. }
            | Kind::MatchesConstant { .. }
            | Kind::Text { .. }
            | Kind::Predicate { predicate: Predicate::Any | Predicate::All | Predicate::None, .. } => true,
            Kind::And(connected) | Kind::Or(connected) => connected.is_condition(),
            _ => false,
        }
    }
}

impl Connected {
    /// All but the last operand have to be bools anyway.
    fn is_condition(&self) -> bool {
        self.operands.last().is_some_and(|last| last.kind.is_condition())
    }
}

impl Program {
    /// The text that was compiled.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The variables that a condition declares before anything else, as text in one line. Another expression behind it can use them.
    pub fn declarations(&self) -> &str {
        &self.declarations
    }

    /// What is known about the program without running it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What texts with computed fields, and those fields, are compared with, if the schema wants that. It is needed once, and is not
    /// kept with the program.
    pub fn take_compared(&mut self) -> Vec<Compared> {
        std::mem::take(&mut self.compared)
    }

    /// What may be a mistake although it compiles.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Where the program calls the host. A host is told the place in this list.
    pub fn calls(&self) -> &[CallSite] {
        &self.calls
    }
}

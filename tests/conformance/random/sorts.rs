//! Sorts: what an expression is meant to give, so that most of them can be evaluated.

use serde_json::Value;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sort {
    Any,
    Nil,
    Bool,
    Int,
    Float,
    /// An int or a float.
    Number,
    Text,
    Bytes,
    /// A list of anything.
    List,
    Ints,
    Numbers,
    Texts,
    Maps,
    Lists,
    Map,
    Time,
    Duration,
    Zone,
    // What only some functions take. Literals, mostly.
    /// Lists of a key and a value.
    Pairs,
    /// Maps of at most one entry: the order of more is random in Go.
    OneEntry,
    /// An int that is not large, for what repeats or shifts.
    Small,
    Json,
    Base64,
    NumberText,
    DurationText,
    DateText,
    Layout,
    ZoneName,
    Order,
    /// A regular expression.
    Pattern,
    /// The body of a predicate.
    Body,
}

/// The sorts that a plain value can have.
pub(super) const PLAIN: [Sort; 10] = [
    Sort::Bool,
    Sort::Int,
    Sort::Float,
    Sort::Text,
    Sort::List,
    Sort::Ints,
    Sort::Texts,
    Sort::Map,
    Sort::Maps,
    Sort::Any,
];

impl Sort {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() => Self::Int,
            Value::Number(_) => Self::Float,
            Value::String(_) => Self::Text,
            Value::Array(elements) => {
                let is = |sort: Self| elements.iter().all(|element| sort.takes(Self::of(element)));
                let lists = [Self::Ints, Self::Numbers, Self::Texts, Self::Maps, Self::Lists];
                let fits = lists.into_iter().find(|list| is(list.element()));
                fits.filter(|_| !elements.is_empty()).unwrap_or(Self::List)
            }
            Value::Object(_) => Self::Map,
        }
    }

    /// Whether an expression of another sort can stand where one of this sort is wanted.
    pub(super) fn takes(self, other: Self) -> bool {
        match self {
            Self::Any => true,
            Self::Number => matches!(other, Self::Number | Self::Int | Self::Float),
            Self::Numbers => matches!(other, Self::Numbers | Self::Ints),
            Self::List => other.is_list(),
            _ => self == other,
        }
    }

    pub(super) fn is_list(self) -> bool {
        use Sort::{Ints, List, Lists, Maps, Numbers, Pairs, Texts};
        matches!(self, List | Ints | Numbers | Texts | Maps | Lists | Pairs)
    }

    /// What a list of this sort holds.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Ints => Self::Int,
            Self::Numbers => Self::Number,
            Self::Texts => Self::Text,
            Self::Maps => Self::Map,
            Self::Lists => Self::List,
            _ => Self::Any,
        }
    }
}

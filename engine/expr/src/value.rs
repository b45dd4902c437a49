//! What an expression works with. Values are copied freely: they borrow from the program, from documents, and from an
//! arena that lives as long as the evaluation.

pub(crate) mod amount;
pub(crate) mod map;
pub(crate) mod network;
pub(crate) mod sequence;
pub(crate) mod time;
pub(crate) mod version;

use std::cmp::Ordering;

use portal_document::{Node, View};

pub use self::{
    amount::{Amount, Quantity},
    map::{Entry, Keys, Map},
    network::Network,
    time::{Moment, Time, Zone},
    version::Version,
};

/// A value during an evaluation.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Bytes, from `b"…"`.
    Bytes(&'a [u8]),
    /// An array or an object of a document. Other values of a document become values when they are read.
    Node(Node<'a>),
    /// A list that the expression made.
    List(&'a [Value<'a>]),
    /// The whole numbers of `first..last`, both included; none if `first` is greater.
    Range {
        /// The first number.
        first: i64,
        /// The last number.
        last: i64,
    },
    /// A map that the expression made.
    Map(Map<'a>),
    /// A moment in a time zone.
    Time(&'a Time<'a>),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A time zone.
    Zone(&'a Zone<'a>),
    /// An amount as Kubernetes writes it.
    Quantity(&'a Quantity<'a>),
    /// A version.
    Version(&'a Version<'a>),
    /// A network, or an address.
    Network(&'a Network<'a>),
}

impl<'a> Value<'a> {
    /// A list without elements.
    pub const EMPTY: Value<'static> = Value::List(&[]);

    /// A map without entries.
    pub const EMPTY_MAP: Value<'static> = Value::Map(Map::EMPTY);

    /// The value of a document's node.
    #[inline]
    pub fn from_node(node: Node<'a>) -> Value<'a> {
        if node.is_container() {
            return Value::Node(node);
        }
        match node.view() {
            View::Null => Value::Nil,
            View::Bool(value) => Value::Bool(value),
            View::Int(value) => Value::Int(value),
            View::Float(value) => Value::Float(value),
            View::Str(value) => Value::Text(value),
            View::Array(_) | View::Object(_) => Value::Node(node),
        }
    }

    /// Whether there is nothing.
    #[inline]
    pub fn is_nil(self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Whether it is nil, or a list or a map of nothing.
    pub(crate) fn is_empty(self) -> bool {
        self.is_nil()
            || self.sequence().is_some_and(|sequence| sequence.len() == 0)
            || self.fields().is_some_and(|fields| fields.len() == 0)
    }

    /// What messages call it, and [`type`](crate::builtins) for most values.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Node(node) if node.as_object().is_some() => "map",
            Value::Node(_) | Value::List(_) | Value::Range { .. } => "array",
            Value::Map(_) => "map",
            Value::Time(_) => "time",
            Value::Duration(_) => "duration",
            Value::Zone(_) => "timezone",
            Value::Quantity(_) => "quantity",
            Value::Version(_) => "version",
            Value::Network(_) => "network",
        }
    }

    /// Whether it can be the key of a map. Lists, maps and bytes cannot.
    pub(crate) fn is_key(self) -> bool {
        !matches!(self, Value::Bytes(_) | Value::Node(_) | Value::List(_) | Value::Range { .. } | Value::Map(_))
    }

    /// The order of keys in a map. An int is never the same key as a float, and all that cannot be keys are the same.
    pub(crate) fn compare_keys(self, other: Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(&b),
            // Zero has two signs and is one key.
            (Value::Float(a), Value::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
            (Value::Time(a), Value::Time(b)) => a.moment.cmp(&b.moment),
            (Value::Duration(a), Value::Duration(b)) => a.cmp(&b),
            (Value::Zone(a), Value::Zone(b)) => a.name().cmp(b.name()),
            (Value::Quantity(a), Value::Quantity(b)) => a.amount.cmp(&b.amount),
            (Value::Version(a), Value::Version(b)) => a.order(b),
            (Value::Network(a), Value::Network(b)) => a.order(b),
            _ => self.key_rank().cmp(&other.key_rank()),
        }
    }

    fn key_rank(self) -> u8 {
        match self {
            Value::Nil => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Float(_) => 3,
            Value::Text(_) => 4,
            Value::Time(_) => 5,
            Value::Duration(_) => 6,
            Value::Zone(_) => 7,
            Value::Quantity(_) => 8,
            Value::Version(_) => 9,
            Value::Network(_) => 10,
            Value::Bytes(_) | Value::Node(_) | Value::List(_) | Value::Range { .. } | Value::Map(_) => 11,
        }
    }
}

impl<'a> From<Node<'a>> for Value<'a> {
    fn from(node: Node<'a>) -> Value<'a> {
        Value::from_node(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Failure;

    #[test]
    fn a_value_takes_three_words_and_so_does_a_result() {
        assert_eq!(size_of::<Value<'_>>(), 24);
        assert_eq!(size_of::<Result<Value<'_>, Failure>>(), 24);
    }

    #[track_caller]
    fn check(a: Value<'_>, b: Value<'_>, expected: Ordering) {
        assert_eq!(a.compare_keys(b), expected);
        assert_eq!(b.compare_keys(a), expected.reverse());
    }

    #[test]
    fn keys_have_a_total_order() {
        check(Value::Text("a"), Value::Text("b"), Ordering::Less);
        check(Value::Int(1), Value::Float(1.0), Ordering::Less);
        check(Value::Float(0.0), Value::Float(-0.0), Ordering::Equal);
        check(Value::Float(f64::NAN), Value::Float(f64::NAN), Ordering::Equal);
        check(Value::Nil, Value::Bool(false), Ordering::Less);
        check(Value::Int(1), Value::Duration(1), Ordering::Less);
        check(Value::Text(""), Value::Nil, Ordering::Greater);
    }
}

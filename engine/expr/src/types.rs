//! What the compiler knows of a value before it is there, as far as Go's checker knows it without an environment.

use std::fmt;

/// A type. Small and copied freely: arrays of arrays are a depth and what lies at the bottom.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Type {
    base: Base,
    /// How many arrays are around the base.
    depth: u8,
}

/// A type that is no array of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Base {
    /// Nothing is known: a name, a field, the result of a call.
    Unknown,
    /// Known to be anything: an element of an array of whatever, a value of a map.
    Any,
    Nil,
    Bool,
    Int,
    Float,
    Text,
    /// An array of bytes, which fits no other array.
    Bytes,
    /// An array of texts, which fits no other array: what `split` returns.
    Texts,
    /// A map with text for keys.
    Map,
    /// A map with anything for keys: what `fromPairs` returns.
    AnyKeyMap,
    /// A map from anything to arrays: what `groupBy` returns.
    Groups,
    Time,
    Duration,
    Zone,
    /// An amount as Kubernetes writes it.
    Quantity,
    Version,
    /// A network, or an address.
    Network,
    Function,
    /// A type of the schema.
    Object(u32),
}

impl Type {
    pub(crate) const UNKNOWN: Type = Type::of(Base::Unknown);
    pub(crate) const ANY: Type = Type::of(Base::Any);
    pub(crate) const NIL: Type = Type::of(Base::Nil);
    pub(crate) const BOOL: Type = Type::of(Base::Bool);
    pub(crate) const INT: Type = Type::of(Base::Int);
    pub(crate) const FLOAT: Type = Type::of(Base::Float);
    pub(crate) const TEXT: Type = Type::of(Base::Text);
    pub(crate) const BYTES: Type = Type::of(Base::Bytes);
    pub(crate) const TEXTS: Type = Type::of(Base::Texts);
    pub(crate) const MAP: Type = Type::of(Base::Map);
    pub(crate) const ANY_KEY_MAP: Type = Type::of(Base::AnyKeyMap);
    pub(crate) const GROUPS: Type = Type::of(Base::Groups);
    pub(crate) const TIME: Type = Type::of(Base::Time);
    pub(crate) const DURATION: Type = Type::of(Base::Duration);
    pub(crate) const ZONE: Type = Type::of(Base::Zone);
    pub(crate) const QUANTITY: Type = Type::of(Base::Quantity);
    pub(crate) const VERSION: Type = Type::of(Base::Version);
    pub(crate) const NETWORK: Type = Type::of(Base::Network);
    pub(crate) const FUNCTION: Type = Type::of(Base::Function);
    /// An array of whatever.
    pub(crate) const ARRAY: Type = Type { base: Base::Any, depth: 1 };

    const fn of(base: Base) -> Type {
        Type { base, depth: 0 }
    }

    /// The type with a number in the schema.
    pub(crate) const fn object(number: u32) -> Type {
        Type::of(Base::Object(number))
    }

    /// The number in the schema, if it has one.
    pub(crate) fn as_object(self) -> Option<u32> {
        match self {
            Type { base: Base::Object(number), depth: 0 } => Some(number),
            _ => None,
        }
    }

    /// An array of this.
    pub(crate) const fn array(self) -> Type {
        Type { base: self.base, depth: self.depth.saturating_add(1) }
    }

    /// What an array has for elements, or a map for values. Unknown if it is neither.
    pub(crate) fn element(self) -> Type {
        match self {
            Type { base, depth: 1.. } => Type { base, depth: self.depth - 1 },
            Type::BYTES => Type::INT,
            Type::TEXTS => Type::TEXT,
            Type::MAP | Type::ANY_KEY_MAP => Type::ANY,
            Type::GROUPS => Type::ARRAY,
            _ => Type::UNKNOWN,
        }
    }

    /// What a map has for keys. Unknown if it is no map.
    pub(crate) fn key(self) -> Type {
        match self {
            _ if self.depth > 0 => Type::UNKNOWN,
            Type::MAP | Type { base: Base::Object(_), .. } => Type::TEXT,
            Type::ANY_KEY_MAP | Type::GROUPS => Type::ANY,
            _ => Type::UNKNOWN,
        }
    }

    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Type::UNKNOWN | Type::ANY)
    }

    pub(crate) fn is_nil(self) -> bool {
        self == Type::NIL
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Type::INT | Type::FLOAT)
    }

    pub(crate) fn is_array(self) -> bool {
        self.depth > 0 || matches!(self, Type::BYTES | Type::TEXTS)
    }

    pub(crate) fn is_map(self) -> bool {
        matches!(self, Type::MAP | Type::ANY_KEY_MAP | Type::GROUPS) || self.as_object().is_some()
    }

    /// Whether a value of this type can be put where one of the other is wanted. Says no where too little is known.
    pub(crate) fn is_assignable(self, to: Type) -> bool {
        match (self, to) {
            (Type::NIL, Type::ANY | Type::FUNCTION) => true,
            (Type::NIL, _) => to.is_map() || to.is_array(),
            (Type::UNKNOWN, _) | (_, Type::UNKNOWN) => false,
            (_, Type::ANY) => true,
            // Go's arrays of different elements have one type, but for those of bytes and texts.
            _ if self.depth > 0 && to.depth > 0 => true,
            _ => self == to,
        }
    }

    /// Whether `==` between these could ever be true.
    pub(crate) fn is_comparable(self, to: Type) -> bool {
        self.is_unknown()
            || to.is_unknown()
            || self.is_nil()
            || to.is_nil()
            || self.is_number() && to.is_number()
            || self.is_array() && to.is_array()
            // What is known of objects does not change what they are: one may equal a map, or what less is known of.
            || (self.as_object().is_some() || to.as_object().is_some()) && self.is_map() && to.is_map()
            || self.is_assignable(to)
    }

    /// Whether one is unknown and the other is too or passes the check: it may turn out to fit.
    pub(crate) fn may_fit(self, to: Type, check: impl Fn(Type) -> bool) -> bool {
        match (self.is_unknown(), to.is_unknown()) {
            (true, true) => true,
            (true, false) => check(to),
            (false, true) => check(self),
            (false, false) => false,
        }
    }

    /// The type of a sum, difference or product of two numbers.
    pub(crate) fn promote(self, other: Type) -> Type {
        match (self, other) {
            (Type::INT, Type::INT) => Type::INT,
            _ => Type::FLOAT,
        }
    }
}

impl fmt::Display for Type {
    /// The name that messages use, which is the word of `type()` where that has one.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.depth > 0 {
            return match self.element() {
                element if element.is_unknown() => formatter.write_str("array"),
                element => write!(formatter, "array of {element}"),
            };
        }
        formatter.write_str(match self.base {
            Base::Unknown | Base::Any => "unknown",
            Base::Nil => "nil",
            Base::Bool => "bool",
            Base::Int => "int",
            Base::Float => "float",
            Base::Text => "string",
            Base::Bytes => "bytes",
            Base::Texts => "array of string",
            Base::Map | Base::AnyKeyMap | Base::Groups => "map",
            Base::Time => "time",
            Base::Duration => "duration",
            Base::Zone => "timezone",
            Base::Quantity => "quantity",
            Base::Version => "version",
            Base::Network => "network",
            Base::Function => "function",
            Base::Object(_) => "object",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_small() {
        assert!(size_of::<Type>() <= 12);
    }

    #[track_caller]
    fn check_assignable(from: Type, to: Type, expected: bool) {
        assert_eq!(from.is_assignable(to), expected, "{from:?} to {to:?}");
    }

    #[test]
    fn what_is_assignable_is_what_go_assigns() {
        check_assignable(Type::INT, Type::INT, true);
        check_assignable(Type::INT, Type::FLOAT, false);
        check_assignable(Type::INT, Type::ANY, true);
        check_assignable(Type::INT, Type::UNKNOWN, false);
        check_assignable(Type::UNKNOWN, Type::ANY, false);
        check_assignable(Type::NIL, Type::ANY, true);
        check_assignable(Type::NIL, Type::MAP, true);
        check_assignable(Type::NIL, Type::INT.array(), true);
        check_assignable(Type::NIL, Type::TEXT, false);
        check_assignable(Type::INT.array(), Type::TEXT.array(), true);
        check_assignable(Type::TEXTS, Type::ARRAY, false);
        check_assignable(Type::MAP, Type::ANY_KEY_MAP, false);
    }

    #[track_caller]
    fn check_comparable(a: Type, b: Type, expected: bool) {
        assert_eq!(a.is_comparable(b), expected, "{a:?} with {b:?}");
    }

    #[test]
    fn what_is_comparable_is_what_go_compares() {
        check_comparable(Type::INT, Type::FLOAT, true);
        check_comparable(Type::INT, Type::TEXT, false);
        check_comparable(Type::INT, Type::NIL, true);
        check_comparable(Type::INT, Type::ANY, true);
        check_comparable(Type::TEXTS, Type::INT.array(), true);
        check_comparable(Type::BYTES, Type::TEXT, false);
        check_comparable(Type::MAP, Type::ANY_KEY_MAP, false);
        check_comparable(Type::DURATION, Type::INT, false);
        check_comparable(Type::TIME, Type::TIME, true);
    }

    #[test]
    fn an_object_may_equal_a_map_and_any_other_object() {
        check_comparable(Type::object(1), Type::object(2), true);
        check_comparable(Type::object(1), Type::MAP, true);
        check_comparable(Type::GROUPS, Type::object(1), true);
        check_comparable(Type::object(1), Type::TEXT, false);
        check_comparable(Type::object(1), Type::MAP.array(), false);
    }

    #[test]
    fn an_array_knows_its_elements() {
        assert_eq!(Type::INT.array().array().element(), Type::INT.array());
        assert_eq!(Type::ARRAY.element(), Type::ANY);
        assert_eq!(Type::UNKNOWN.array().element(), Type::UNKNOWN);
        assert_eq!(Type::GROUPS.element(), Type::ARRAY);
        assert_eq!(Type::BYTES.element(), Type::INT);
    }
}

//! Why an evaluation stopped. Without a place: the evaluator knows which node it was at.

use std::{borrow::Cow, fmt};

use crate::value::Value;

/// An error during an evaluation. One word, because every operation may return it.
#[derive(Clone, Debug)]
pub struct Failure(Box<Cause>);

/// A budget that an evaluation can use up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// Steps.
    Fuel,
    /// Elements of lists and maps.
    Elements,
    /// Bytes of text, lists and maps.
    Bytes,
    /// Lists and maps within each other.
    Depth,
}

#[derive(Clone, Debug)]
enum Cause {
    Limit(Limit, u64),
    Message(Cow<'static, str>),
}

impl Failure {
    /// A failure in words: lower case, no full stop.
    #[cold]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Failure {
        Failure(Box::new(Cause::Message(message.into())))
    }

    /// A budget is used up, of which there was so much.
    #[cold]
    pub(crate) fn limit(limit: Limit, allowed: u64) -> Failure {
        Failure(Box::new(Cause::Limit(limit, allowed)))
    }

    /// A value of the wrong kind.
    #[cold]
    pub(crate) fn expected(what: &str, found: Value<'_>) -> Failure {
        Failure::new(format!("expected {what}, got {}", found.kind()))
    }

    /// A value that is neither true nor false, where one that is must be. Whoever asks for it means to ask whether it is there.
    #[cold]
    pub(crate) fn not_bool(found: Value<'_>) -> Failure {
        Failure::new(format!("expected a bool, got {}: ask whether it is there by `!= nil` or `== nil`", found.kind()))
    }

    /// A number of arguments that the compiler should have refused.
    #[cold]
    pub(crate) fn arguments() -> Failure {
        Failure::new("wrong number of arguments")
    }

    /// The budget that is used up, if that is the reason.
    pub fn exceeded(&self) -> Option<Limit> {
        match *self.0 {
            Cause::Limit(limit, _) => Some(limit),
            Cause::Message(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Cause::Limit(Limit::Fuel, allowed) => {
                write!(formatter, "out of fuel: an evaluation may take {allowed} steps")
            }
            Cause::Limit(Limit::Elements, allowed) => {
                write!(formatter, "too many elements: an evaluation may make fewer than {allowed}")
            }
            Cause::Limit(Limit::Bytes, allowed) => {
                write!(formatter, "out of memory: an evaluation may make {allowed} bytes of text, lists and maps")
            }
            Cause::Limit(Limit::Depth, allowed) => {
                write!(formatter, "too deep: lists and maps may lie {allowed} deep in each other here")
            }
            Cause::Message(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

//! Who answers when an expression asks for a root, a computed field, or a function that is not a builtin.

use std::borrow::Cow;

use crate::{
    machine::{Failure, Machine},
    schema::{ComputedId, Slot},
    value::Value,
};

/// The other side of a [`Schema`](crate::Schema) while an expression is evaluated. Nothing here may block.
pub trait Host {
    /// The value of a root. Asked each time that the expression names it, so it should be at hand.
    fn root(&self, slot: Slot) -> Value<'_>;

    /// What a root is called in what people are told. Nothing for the name that expressions have for it; an empty name for a root
    /// whose fields stand for themselves.
    fn root_name(&self, slot: Slot) -> Option<Cow<'_, str>> {
        let _ = slot;
        None
    }

    /// A computed field of a value. The base is never nil.
    fn computed<'a>(&'a self, field: ComputedId, base: Value<'a>, machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        let _ = (base, machine);
        Err(Failure::new(format!("the host knows no computed field {}", field.0)))
    }

    /// Calls the function of a call site, by its place in [`Program::calls`](crate::Program::calls). Arguments that were
    /// left out are nil.
    fn call<'a>(&'a self, site: usize, arguments: &[Value<'a>], machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        let _ = (arguments, machine);
        Err(Failure::new(format!("the host knows no function at site {site}")))
    }

    /// What a call asks for, in what people are told: one of several names, of which only the host knows which was meant. Nothing if
    /// it asks for nothing that has a name.
    fn call_name(&self, site: usize, arguments: &[Value<'_>]) -> Option<String> {
        let _ = (site, arguments);
        None
    }

    /// `$env`: all roots as one value. Only strict programs ask for it.
    fn environment(&self) -> Value<'_> {
        Value::Nil
    }
}

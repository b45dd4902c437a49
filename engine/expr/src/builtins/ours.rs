//! The functions that rules have beside those of expr-lang. Strict mode has none of them.

use super::{
    Builtin, Gives, Group, Run,
    check::{Check, Parameter},
};
use crate::{
    machine::{Failure, Machine},
    operators,
    types::Type,
    value::Value,
};

pub(crate) static OURS: &[Builtin] = &[Builtin {
    name: "quantity",
    group: Group::Kubernetes,
    signature: "quantity(text)",
    about: "the amount that a text or a number says, as Kubernetes writes it: it is compared and added by its value",
    example: ("quantity(\"1Gi\") > quantity(\"1G\")", "true"),
    check: Check::Parameters(&[Parameter::Any], 0, Type::QUANTITY),
    gives: Gives::Type,
    run: Run::Function(quantity),
}];

fn quantity<'a>(machine: &Machine<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    match arguments {
        [value] if value.sequence().is_none() => operators::quantity(machine, *value),
        [value] => Err(Failure::expected("text or a number", *value)),
        _ => Err(Failure::arguments()),
    }
}

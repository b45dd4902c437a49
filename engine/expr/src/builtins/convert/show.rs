//! Values as text for people, in the form that Go's `%v` has: `[1 2]`, `map[a:1]`, `<nil>`.

use super::{super::time, float};
use crate::{
    machine::{Failure, Machine, Text, deeper},
    value::Value,
};

pub(super) fn write<'a>(
    machine: &Machine<'a>,
    text: &mut Text<'_, 'a>,
    value: Value<'a>,
    depth: u32,
) -> Result<(), Failure> {
    machine.step(1)?;
    if let Some(items) = value.sequence() {
        let depth = deeper(depth)?;
        text.push("[")?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push(" ")?;
            }
            write(machine, text, item, depth)?;
        }
        return text.push("]");
    }
    if let Some(fields) = value.fields() {
        let depth = deeper(depth)?;
        text.push("map[")?;
        for (index, (key, value)) in fields.sorted(machine)?.iter().enumerate() {
            if index > 0 {
                text.push(" ")?;
            }
            write(machine, text, *key, depth)?;
            text.push(":")?;
            write(machine, text, *value, depth)?;
        }
        return text.push("]");
    }
    match value {
        Value::Bool(value) => text.push(if value { "true" } else { "false" }),
        Value::Int(number) => text.format(format_args!("{number}")),
        Value::Float(number) => float::write(text, number),
        Value::Text(value) => text.push(value),
        Value::Time(value) => time::write_time(text, value),
        Value::Duration(nanoseconds) => time::write_duration(text, nanoseconds),
        Value::Zone(zone) => text.push(zone.name()),
        Value::Quantity(quantity) => text.format(format_args!("{quantity}")),
        Value::Version(version) => text.format(format_args!("{version}")),
        Value::Network(network) => text.format(format_args!("{network}")),
        _ => text.push("<nil>"),
    }
}

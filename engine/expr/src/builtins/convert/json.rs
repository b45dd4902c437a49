//! Values as JSON, in the form of Go's encoder: indented by two spaces, keys in order, safe inside of HTML.

use super::{super::time, base64, float};
use crate::{
    machine::{Failure, Machine, Text, deeper},
    value::{Keys, Value},
};

pub(super) fn write<'a>(
    machine: &Machine<'a>,
    text: &mut Text<'_, 'a>,
    value: Value<'a>,
    depth: u32,
) -> Result<(), Failure> {
    machine.step(1)?;
    match value {
        Value::Nil => return text.push("null"),
        Value::Bool(value) => return text.push(if value { "true" } else { "false" }),
        Value::Int(number) | Value::Duration(number) => return text.format(format_args!("{number}")),
        Value::Float(number) => return float::write_json(text, number),
        Value::Text(value) => return write_text(text, value),
        Value::Bytes(bytes) => {
            text.push("\"")?;
            base64::encode(text, bytes)?;
            return text.push("\"");
        }
        Value::Time(value) => {
            text.push("\"")?;
            time::write_json_time(text, value)?;
            return text.push("\"");
        }
        // Nothing of it can be seen.
        Value::Zone(_) => return text.push("{}"),
        Value::Quantity(quantity) => return text.format(format_args!("\"{quantity}\"")),
        Value::Version(version) => return text.format(format_args!("\"{version}\"")),
        Value::Network(network) => return text.format(format_args!("\"{network}\"")),
        Value::Node(_) | Value::List(_) | Value::Range { .. } | Value::Map(_) => {}
    }
    let inside = deeper(depth)?;
    if let Some(items) = value.sequence() {
        text.push("[")?;
        for (index, item) in items.iter().enumerate() {
            new_line(text, index, inside)?;
            write(machine, text, item, inside)?;
        }
        return close(text, items.len(), depth, "]");
    }
    let Some(fields) = value.fields() else { return Ok(()) };
    if fields.keys() != Keys::Text {
        return Err(Failure::new("a map with keys other than strings has no form in JSON"));
    }
    text.push("{")?;
    for (index, (key, value)) in fields.sorted(machine)?.iter().enumerate() {
        new_line(text, index, inside)?;
        if let Value::Text(key) = key {
            write_text(text, key)?;
        }
        text.push(": ")?;
        write(machine, text, *value, inside)?;
    }
    close(text, fields.len(), depth, "}")
}

fn new_line(text: &mut Text<'_, '_>, index: usize, depth: u32) -> Result<(), Failure> {
    text.push(if index > 0 { ",\n" } else { "\n" })?;
    (0..depth).try_for_each(|_| text.push("  "))
}

fn close(text: &mut Text<'_, '_>, length: usize, depth: u32, bracket: &str) -> Result<(), Failure> {
    if length > 0 {
        text.push("\n")?;
        (0..depth).try_for_each(|_| text.push("  "))?;
    }
    text.push(bracket)
}

/// Writes text in quotes. What could end a script in a page is escaped too.
fn write_text(text: &mut Text<'_, '_>, value: &str) -> Result<(), Failure> {
    text.push("\"")?;
    let mut start = 0;
    for (at, character) in value.char_indices() {
        let escape = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\0'..'\u{20}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => "",
            _ => continue,
        };
        text.push(&value[start..at])?;
        if escape.is_empty() {
            text.format(format_args!("\\u{:04x}", u32::from(character)))?;
        } else {
            text.push(escape)?;
        }
        start = at + character.len_utf8();
    }
    text.push(&value[start..])?;
    text.push("\"")
}

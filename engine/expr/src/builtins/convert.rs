//! From one kind of value to another.

mod base64;
mod float;
mod json;
mod parse_json;
mod show;

use super::{quoted, text_of};
use crate::{
    machine::{Failure, Machine},
    operators::truncate_float,
    value::Value,
};

type Arguments<'v, 'a> = &'v [Value<'a>];
type Answer<'a> = Result<Value<'a>, Failure>;

pub(super) fn int<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    match arguments {
        [Value::Int(number) | Value::Duration(number)] => Ok(Value::Int(*number)),
        [Value::Float(number)] => Ok(Value::Int(truncate_float(*number))),
        [Value::Text(text)] => {
            machine.step_bytes(text.len())?;
            text.parse().map(Value::Int).map_err(|_| Failure::new(format!("{} is not an int", quoted(text))))
        }
        [other] => Err(Failure::expected("a number or a string", *other)),
        _ => Err(Failure::arguments()),
    }
}

pub(super) fn float<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    match arguments {
        [Value::Int(number)] => Ok(Value::Float(*number as f64)),
        [Value::Float(number)] => Ok(Value::Float(*number)),
        [Value::Text(text)] => {
            machine.step_bytes(text.len())?;
            let number = float::parse(text);
            number.map(Value::Float).ok_or_else(|| Failure::new(format!("{} is not a float", quoted(text))))
        }
        [other] => Err(Failure::expected("a number or a string", *other)),
        _ => Err(Failure::arguments()),
    }
}

/// `type`: the word for a value's kind; times have the names of their Go types.
pub(super) fn type_of<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    Ok(Value::Text(match value {
        Value::Bytes(_) => "array",
        Value::Time(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::Zone(_) => "time.Location",
        _ => value.kind(),
    }))
}

pub(super) fn string<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    show(machine, *value).map(Value::Text)
}

/// A value as `string` shows it. Text is shown as it is.
pub(crate) fn show<'a>(machine: &Machine<'a>, value: Value<'a>) -> Result<&'a str, Failure> {
    if let Value::Text(text) = value {
        return Ok(text);
    }
    let mut text = machine.writer();
    show::write(machine, &mut text, value, 0)?;
    text.finish()
}

pub(super) fn to_json<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let mut text = machine.writer();
    json::write(machine, &mut text, *value, 0)?;
    text.finish().map(Value::Text)
}

pub(super) fn from_json<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text] = arguments else { return Err(Failure::arguments()) };
    parse_json::parse(machine, text_of(*text)?)
}

pub(super) fn to_base64<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text] = arguments else { return Err(Failure::arguments()) };
    let mut encoded = machine.writer();
    base64::encode(&mut encoded, text_of(*text)?.as_bytes())?;
    encoded.finish().map(Value::Text)
}

pub(super) fn from_base64<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text] = arguments else { return Err(Failure::arguments()) };
    let text = text_of(*text)?;
    let mut decoded = machine.buffer();
    base64::decode(&mut decoded, text.as_bytes())?;
    match std::str::from_utf8(decoded.finish()) {
        Ok(text) => Ok(Value::Text(text)),
        Err(_) => Err(Failure::new("the bytes in this base64 are not text")),
    }
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn numbers_come_from_numbers_and_text() {
        check(
            r#"
            int(1.9) => 1
            int(-1.9) => -1
            int("42") => 42
            int("+7") => 7
            int(" 7") => error: " 7" is not an int
            int("1_000") => error: "1_000" is not an int
            int("0x1F") => error: "0x1F" is not an int
            int("") => error: "" is not an int
            int("9223372036854775808") => error: "9223372036854775808" is not an int
            int(1e300) => -9223372036854775808
            int(duration("1s")) => 1000000000
            int(nil) => error: expected a number or a string, got nil
            int(true) => error: expected a number or a string, got bool
            float(1) => 1.0
            float("1.5") => 1.5
            float("1e3") => 1000.0
            float(".5") => 0.5
            float("1_000.5") => 1000.5
            float("_1") => error: "_1" is not a float
            float("-inf") => -inf
            float("NaN") => NaN
            float("1e999") => error: "1e999" is not a float
            float("") => error: "" is not a float
            float(nil) => error: expected a number or a string, got nil
            float(duration("1s")) => error: expected a number or a string, got duration
            "#,
        );
    }

    #[test]
    fn every_value_is_shown_as_go_shows_it() {
        check(
            r#"
            string(nil) => "<nil>"
            string(true) => "true"
            string(5) => "5"
            string(1.0) => "1"
            string(0.1) => "0.1"
            string(100000.0) => "100000"
            string(1000000.0) => "1e+06"
            string(1e21) => "1e+21"
            string(6.518515124270356e91) => "6.518515124270356e+91"
            string(0.0001) => "0.0001"
            string(0.00001) => "1e-05"
            string(123456789.5) => "1.234567895e+08"
            string("a b") => "a b"
            string(["a", 1, nil, [2]]) => "[a 1 <nil> [2]]"
            string({b: 1, a: ["x"]}) => "map[a:[x] b:1]"
            string(b"ab") => "[97 98]"
            string(1..3) => "[1 2 3]"
            string(fromPairs([[2, "b"], [1, "a"]])) => "map[1:a 2:b]"
            string(doc('{"b":[1,2.5,null],"a":{"x":"y"}}')) => "map[a:map[x:y] b:[1 2.5 <nil>]]"
            string(duration("90m")) => "1h30m0s"
            string(duration("1500ms")) => "1.5s"
            string(duration("-1500us")) => "-1.5ms"
            string(date("2026-01-02T03:04:05.6Z")) => "2026-01-02 03:04:05.6 +0000 UTC"
            string(date("2026-01-02T03:04:05+02:00")) => "2026-01-02 03:04:05 +0200 +0200"
            type(nil) => "nil"
            type(true) => "bool"
            type(1) => "int"
            type(1.5) => "float"
            type("a") => "string"
            type([1]) => "array"
            type(b"a") => "array"
            type(1..2) => "array"
            type({a: 1}) => "map"
            type(doc('{}')) => "map"
            type(doc('[]')) => "array"
            type(duration("1s")) => "time.Duration"
            type(date("2026-01-01")) => "time.Time"
            type(timezone("UTC")) => "time.Location"
            "#,
        );
    }

    #[test]
    fn json_is_indented_and_safe_in_html() {
        check(
            r#"
            toJSON(nil) => "null"
            toJSON([]) => "[]"
            toJSON({}) => "{}"
            toJSON([1, 2.5, "a", nil, true]) => "[\n  1,\n  2.5,\n  \"a\",\n  null,\n  true\n]"
            toJSON({b: [1], a: {}}) => "{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}"
            toJSON("<&>\"\\\u2028\t\u0001é") => "\"\\u003c\\u0026\\u003e\\\"\\\\\\u2028\\t\\u0001é\""
            toJSON(1e20) => "100000000000000000000"
            toJSON(1e21) => "1e+21"
            toJSON(0.000001) => "0.000001"
            toJSON(0.0000001) => "1e-7"
            toJSON(100.0) => "100"
            toJSON(float("NaN")) => error: NaN has no form in JSON
            toJSON(b"abc") => "\"YWJj\""
            toJSON(1..2) => "[\n  1,\n  2\n]"
            toJSON(fromPairs([["a", 1]])) => error: a map with keys other than strings has no form in JSON
            toJSON(duration("1s")) => "1000000000"
            toJSON(date("2026-01-02T03:04:05.5+02:00")) => "\"2026-01-02T03:04:05.5+02:00\""
            toJSON(doc('{"b":1,"a":[{"x":1.0}]}')) => "{\n  \"a\": [\n    {\n      \"x\": 1\n    }\n  ],\n  \"b\": 1\n}"
            "#,
        );
    }

    #[test]
    fn json_is_read_with_floats_for_numbers() {
        check(
            r#"
            fromJSON("{\"a\": [1, -2.5e3, \"x\", null, true]}") => {"a": [1.0, -2500.0, "x", nil, true]}
            fromJSON(" 5 ") => 5.0
            fromJSON("\"\\u00e9\\ud83d\\ude00\\ud800x\\n\"") => "é😀�x\n"
            fromJSON("{\"a\": 1, \"a\": 2}") => {"a": 2.0}
            fromJSON("[1,]") => error: unexpected ']' at byte 3 of this JSON
            fromJSON("{\"a\"}") => error: unexpected '}' at byte 4 of this JSON
            fromJSON("01") => error: unexpected '1' at byte 1 of this JSON
            fromJSON("1e999") => error: the number at byte 0 of this JSON is too large
            fromJSON("") => error: this JSON ends too early
            fromJSON("nul") => error: this JSON ends too early
            fromJSON("[1] 2") => error: unexpected '2' at byte 4 of this JSON
            fromJSON("\"a") => error: this JSON ends too early
            fromJSON("\"\\x\"") => error: unexpected 'x' at byte 2 of this JSON
            fromJSON(nil) => error: expected a string, got nil
            "#,
        );
    }

    #[test]
    fn base64_is_padded() {
        check(
            r#"
            toBase64("abc") => "YWJj"
            toBase64("ab") => "YWI="
            toBase64("a") => "YQ=="
            toBase64("") => ""
            toBase64(1) => error: expected a string, got int
            fromBase64("YWJj") => "abc"
            fromBase64("YWI=") => "ab"
            fromBase64("YQ==") => "a"
            fromBase64("Y\nQ\n==") => "a"
            fromBase64("") => ""
            fromBase64("YWI") => error: no base64 at byte 3
            fromBase64("YQ=") => error: no base64 at byte 3
            fromBase64("YQ==YQ==") => error: no base64 at byte 4
            fromBase64("Y*==") => error: no base64 at byte 1
            fromBase64("/w==") => error: the bytes in this base64 are not text
            "#,
        );
    }
}

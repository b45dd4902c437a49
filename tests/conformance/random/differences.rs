//! The differences from the real expr-lang that random expressions meet, each with its reason and the signs of it.

use serde_json::Value;

/// The reason of a difference, and whether an expression and both answers have its signs.
type Difference = (&'static str, fn(&str, &Value, &Value) -> bool);

/// The first that fits counts.
const DIFFERENCES: [Difference; 17] = [
    ("a part of a text that cuts a character in two", |_, _, ours| says(ours, "cuts a character of the text in two")),
    ("base64 of bytes that are no text", |_, _, ours| says(ours, "the bytes in this base64 are not text")),
    ("predicates over a map, which Go takes as long as no element is looked at", |_, real, ours| {
        real["phase"] != "compile" && says(ours, "expected an array, got map")
    }),
    ("nil as an argument of a method, which is a zero in Go", |expression, _, ours| {
        has_any(expression, &METHODS) && says(ours, "expected") && says(ours, "got nil")
    }),
    ("ints of the environment as arguments of a method, which Go does not take", |_, real, _| {
        says(real, "reflect: Call using int64") || says(real, "reflect: Call using uint8")
    }),
    ("arguments too many, which Go does not count where it checks nothing", |_, real, ours| {
        real["phase"] != "compile" && says(ours, "wrong number of arguments")
    }),
    ("findIndex that finds nothing, which Go takes for an int", |expression, real, _| {
        has_any(expression, &["findIndex(", "findLastIndex("]) && says(real, "interface {} is nil, not int")
    }),
    ("a timezone behind an operator, which is no timezone any more in Go", |expression, real, _| {
        let is_apart = says(real, "time.Location") || real["val"].to_string().contains("\"time.Location\"");
        expression.contains("timezone(") && is_apart
    }),
    ("dates further off than AddDate goes", |_, _, ours| says(ours, "too far from now for AddDate")),
    ("a name in a time, where Go looks for a field of its struct", |_, real, ours| {
        real["phase"] != "compile" && says(ours, "`in` does not work between") && says(ours, "time")
    }),
    ("an element in the last argument of a predicate, where Go has none", |expression, real, _| {
        has_any(expression, &["sortBy(", "reduce("]) && says(real, "index out of range")
    }),
    ("a timezone as text, which is all that is inside of it in Go", |expression, _, _| {
        expression.contains("timezone(") && has_any(expression, &["string(", "toJSON("])
    }),
    ("pairs, which are of a type of their own in Go and equal no other list", |expression, real, _| {
        expression.contains("toPairs(")
            && (has_any(expression, &["==", "!=", " in ", "uniq(", "sort("]) || says(real, "unaddressable array"))
    }),
    ("lists that are nil in Go and empty here", |expression, _, _| {
        has_any(expression, &["groupBy(", "split(", "splitAfter(", "concat(", "sort("])
            && has_any(expression, &["?.", "??", "==", "!=", " in ", "toJSON("])
    }),
    ("findLast within an expression, which leaves a value on Go's stack", |expression, _, _| {
        expression.match_indices("findLast").any(|(at, _)| at > "::".len())
    }),
    ("months and days of the week, which are ints here", |expression, _, _| {
        has_any(expression, &[".Month()", ".Weekday()"])
    }),
    ("ints of methods, which are of another type than others in Go", |expression, real, ours| {
        has_any(expression, &LONG) && (real["phase"] == "compile") != (ours["phase"] == "compile")
    }),
];

/// The methods that have arguments.
const METHODS: [&str; 9] =
    [".Format(", ".Add(", ".AddDate(", ".Sub(", ".Before(", ".After(", ".Equal(", ".Compare(", ".In("];

/// The methods whose ints are of Go's type `int64`.
const LONG: [&str; 7] =
    [".Unix()", ".UnixMilli()", ".UnixMicro()", ".UnixNano()", ".Milliseconds()", ".Microseconds()", ".Nanoseconds()"];

fn has_any(expression: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| expression.contains(part))
}

fn says(answer: &Value, message: &str) -> bool {
    answer["err"].as_str().is_some_and(|error| error.contains(message))
}

/// Why two answers differ, if that is known.
pub(super) fn reason(expression: &str, real: &Value, ours: &Value) -> Option<&'static str> {
    DIFFERENCES.iter().find(|(_, fits)| fits(expression, real, ours)).map(|(reason, _)| *reason)
}

//! What people read when a rule is violated: the rule's own words, with expressions in them.

mod foreign;

use std::fmt::Write as _;

use portal_expr::{Arena, Error, Limits, Moment, Schema, Value};

use crate::{
    evaluate::host::{MessageHost, RuleHost},
    language::{self, Expression, ExpressionEngine},
};

/// The message of a rule, ready to be filled in.
#[derive(Debug, Default)]
pub(crate) struct Message {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Words(String),
    Expression(Inserted),
}

/// An expression in a message.
#[derive(Debug)]
struct Inserted {
    expression: Box<dyn Expression>,
    /// How many of its calls belong to what the rule declares. They come first.
    declared_calls: usize,
}

/// Why a message cannot be used.
#[derive(Debug)]
pub(crate) enum MessageError {
    /// A `{{` without its `}}`, at this byte.
    Open(usize),
    /// There are too many expressions in it.
    Crowded,
    /// An expression is wrong.
    Expression(Error),
}

/// A message is read in a terminal. What is longer tells less.
const MAX_MESSAGE: usize = 2048;

/// The longest value that is shown.
const MAX_VALUE: usize = 256;

/// How many expressions a message may have. Each may take as long as a rule.
pub(crate) const MAX_EXPRESSIONS: usize = 16;

impl Message {
    /// Compiles a message. Its expressions can use the variables that the rule declares; some of them may have been compiled with it.
    pub(crate) fn compile(
        text: &str,
        inserted: Vec<Option<Box<dyn Expression>>>,
        declarations: &str,
        schema: &Schema,
        engine: &dyn ExpressionEngine,
    ) -> Result<Message, MessageError> {
        if text.matches("{{").count() > MAX_EXPRESSIONS {
            return Err(MessageError::Crowded);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        let mut inserted = inserted.into_iter();
        while let Some(open) = rest.find("{{") {
            let offset = text.len() - rest.len() + open;
            let inside = &rest[open + 2..];
            let close = end_of_expression(inside).ok_or(MessageError::Open(offset))?;
            if open > 0 {
                parts.push(Part::Words(rest[..open].to_owned()));
            }
            let expression = match inserted.next().flatten() {
                Some(expression) => Inserted { expression, declared_calls: 0 },
                None => {
                    compile_behind(declarations, &inside[..close], schema, engine).map_err(MessageError::Expression)?
                }
            };
            parts.push(Part::Expression(expression));
            rest = &inside[close + 2..];
        }
        if !rest.is_empty() {
            parts.push(Part::Words(rest.to_owned()));
        }
        Ok(Message { parts })
    }

    pub(crate) fn expressions(&self) -> impl Iterator<Item = &dyn Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Words(_) => None,
            Part::Expression(inserted) => Some(&*inserted.expression),
        })
    }

    /// What is wrong with it if another language would fill something in that this one shows as it stands.
    pub(crate) fn unfilled(
        &self,
        declarations: &str,
        schema: &Schema,
        engine: &dyn ExpressionEngine,
    ) -> Option<String> {
        let is_expression = |source: &str| compile_behind(declarations, source, schema, engine).is_ok();
        self.parts.iter().find_map(|part| match part {
            Part::Words(words) => foreign::unfilled(words, is_expression),
            Part::Expression(_) => None,
        })
    }

    /// Whether it looks something up by itself.
    pub(crate) fn looks_up(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Words(_) => false,
            Part::Expression(inserted) => {
                inserted.expression.calls().iter().skip(inserted.declared_calls).any(|call| call.root.is_some())
            }
        })
    }

    /// Fills the message in. An expression that fails is shown as such: the violation stays one. What the last
    /// panic said comes back too.
    pub(crate) fn render(&self, rule: &RuleHost<'_>, limits: &Limits, now: Moment) -> (String, Option<String>) {
        let mut message = String::new();
        let mut panic = None;
        for part in &self.parts {
            match part {
                Part::Words(words) => message.push_str(words),
                Part::Expression(Inserted { expression, .. }) => {
                    let (host, arena) = (MessageHost { rule, calls: expression.calls() }, Arena::new());
                    let value = || {
                        expression.evaluate(&host, &arena, limits, now).map(|value| shorten(&show(value), MAX_VALUE))
                    };
                    match language::guard(value) {
                        Ok(Ok(value)) => message.push_str(&value),
                        Ok(Err(_)) => message.push('?'),
                        Err(told) => {
                            message.push('?');
                            panic = Some(told);
                        }
                    }
                }
            }
        }
        (shorten(&harmless(&message), MAX_MESSAGE), panic)
    }
}

/// The texts of a message's expressions, up to what is wrong with it.
pub(crate) fn expressions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{").filter(|_| found.len() < MAX_EXPRESSIONS) {
        let inside = &rest[open + 2..];
        let Some(close) = end_of_expression(inside) else { break };
        found.push(&inside[..close]);
        rest = &inside[close + 2..];
    }
    found
}

/// Compiles an expression that may use variables. One that uses none is compiled without them, so that nobody works them out.
fn compile_behind(
    declarations: &str,
    source: &str,
    schema: &Schema,
    engine: &dyn ExpressionEngine,
) -> Result<Inserted, Error> {
    // Compiled without them, an expression that uses one would fail first, and an error takes long to put into words.
    let names = declarations.split("let ").skip(1).filter_map(|declared| declared.split([' ', '=']).next());
    let uses_one = names.filter(|name| !name.is_empty()).any(|name| source.contains(name));
    let alone = (!uses_one).then(|| engine.compile(source, schema));
    match alone {
        None | Some(Err(_)) if !declarations.is_empty() => {
            // The declarations are a line of their own, which nobody wrote.
            let compiled = engine.compile(&format!("{declarations}\n{source}"), schema);
            let expression = compiled.map_err(|error| Error { line: error.line.saturating_sub(1).max(1), ..error })?;
            let declared_calls = match expression.calls() {
                [] => 0,
                _ => engine.compile(&format!("{declarations}true"), schema)?.calls().len(),
            };
            Ok(Inserted { expression, declared_calls })
        }
        alone => {
            let compiled = alone.unwrap_or_else(|| engine.compile(source, schema));
            compiled.map(|expression| Inserted { expression, declared_calls: 0 })
        }
    }
}

/// Where an expression ends: at the first `}}` that is neither in a text nor the end of a map.
fn end_of_expression(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut maps) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' | b'`' => at += length_of_text(&bytes[at + 1..], *byte).unwrap_or_default(),
            b'{' => maps += 1,
            b'}' if maps > 0 => maps -= 1,
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The length of what follows a quote, up to the quote that closes it. Nothing if no quote closes it: then it opens no text.
fn length_of_text(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            // A text in backquotes has no escapes.
            b'\\' if quote != b'`' => at += 1,
            byte if *byte == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// A value as people know it from manifests: text as it is, lists and maps as JSON.
pub(crate) fn show(value: Value<'_>) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Text(text) => text.to_owned(),
        Value::Node(_) | Value::List(_) | Value::Map(_) | Value::Range { .. } => json(value, 0),
        other => other.to_string(),
    }
}

/// Values that are nested deeper are left out: their text would be cut off anyway.
const MAX_DEPTH: usize = 16;

fn json(value: Value<'_>, depth: usize) -> String {
    if depth == MAX_DEPTH {
        return "…".to_owned();
    }
    // Of each text, list and map only as much is written as can be shown at all.
    match value {
        Value::Nil => "null".to_owned(),
        Value::Text(text) => serde_json::Value::from(shorten(text, MAX_VALUE)).to_string(),
        value => {
            if let Some(entries) = value.entries() {
                let entries = entries.into_iter().take(MAX_VALUE);
                let entries = entries.map(|(key, value)| format!("{:?}:{}", show(key), json(value, depth + 1)));
                return format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
            }
            match value.elements() {
                Some(elements) => {
                    let elements = elements.take(MAX_VALUE).map(|element| json(element, depth + 1));
                    format!("[{}]", elements.collect::<Vec<_>>().join(","))
                }
                None => value.to_string(),
            }
        }
    }
}

/// The text up to a length, with a sign if there was more.
pub(crate) fn shorten(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Values come from anybody, and terminals obey control characters.
pub fn harmless(text: &str) -> String {
    text.chars().fold(String::new(), |mut harmless, character| {
        let replaced = character.is_control() && character != '\n';
        let _ = write!(harmless, "{}", if replaced { char::REPLACEMENT_CHARACTER } else { character });
        harmless
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(end_of_expression(text).map(|end| &text[..end]), expected);
    }

    #[test]
    fn an_expression_ends_where_no_text_and_no_map_is_open() {
        check(" a }} b }}", Some(" a "));
        check(" '}}' }}", Some(" '}}' "));
        check(r#" "\"}}" + '\'}}' + `\` }}"#, Some(r#" "\"}}" + '\'}}' + `\` "#));
        check(" {a: {b: 1}}.a.b }}", Some(" {a: {b: 1}}.a.b "));
        check(" é + '}}é' }}", Some(" é + '}}é' "));
        check(" a }", None);
        check("", None);
        // A quote that nothing closes is for the parser to complain about.
        check(" it's }} here", Some(" it's "));
    }
}

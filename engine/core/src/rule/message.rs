//! What people read when a rule is violated: the rule's own words, with expressions in them.

use std::fmt::Write as _;

use portal_expr::{Arena, Error, Host, Limits, Moment, Schema, Value};

use crate::engine::{self, Expression, ExpressionEngine};

/// The message of a rule, ready to be filled in.
#[derive(Debug, Default)]
pub(crate) struct Message {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Words(String),
    Expression(Box<dyn Expression>),
}

/// Why a message cannot be used.
#[derive(Debug)]
pub(crate) enum MessageError {
    /// A `{{` without its `}}`, at this byte.
    Open(usize),
    /// An expression is wrong.
    Expression(Error),
}

/// A message is read in a terminal. What is longer tells less.
const MAX_MESSAGE: usize = 2048;

/// The longest value that is shown.
const MAX_VALUE: usize = 256;

impl Message {
    pub(crate) fn compile(text: &str, schema: &Schema, engine: &dyn ExpressionEngine) -> Result<Message, MessageError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let offset = text.len() - rest.len() + open;
            let inside = &rest[open + 2..];
            let close = inside.find("}}").ok_or(MessageError::Open(offset))?;
            if open > 0 {
                parts.push(Part::Words(rest[..open].to_owned()));
            }
            let expression = engine.compile(&inside[..close], schema);
            parts.push(Part::Expression(expression.map_err(MessageError::Expression)?));
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
            Part::Expression(expression) => Some(&**expression),
        })
    }

    /// Fills the message in. An expression that fails is shown as such: the violation stays one.
    pub(crate) fn render(&self, host: &dyn Host, limits: &Limits, now: Moment) -> String {
        let mut message = String::new();
        for part in &self.parts {
            match part {
                Part::Words(words) => message.push_str(words),
                Part::Expression(expression) => {
                    let arena = Arena::new();
                    match engine::evaluate(&**expression, host, &arena, limits, now) {
                        Ok(Value::Nil) => message.push_str("nil"),
                        Ok(value) => message.push_str(&shorten(&value.to_string(), MAX_VALUE)),
                        Err(_) => message.push('?'),
                    }
                }
            }
        }
        shorten(&harmless(&message), MAX_MESSAGE)
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

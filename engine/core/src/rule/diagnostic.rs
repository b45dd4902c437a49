//! What is wrong with a rule, for the person who wrote it.

use std::fmt;

use crate::rule::source::{Origin, RuleId};

/// Something that is wrong with a rule, or that may be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Diagnostic {
    /// The rule, if it has a name.
    pub rule: Option<RuleId>,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether the rule can be used nevertheless.
    pub level: Level,
    /// The field that is wrong.
    pub field: Vec<Step>,
    /// What is wrong, and the way out: one line, lower case, no full stop.
    pub message: String,
    /// The line of the expression with a caret, if it is about an expression.
    pub excerpt: Option<Excerpt>,
    /// Whether a kind is missing that may be served later.
    pub awaits_kind: bool,
}

/// Whether a rule can be used nevertheless.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    /// It cannot.
    Error,
    /// It can, and may not do what was meant.
    Warning,
}

/// One step on the way to a field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// The field of this name.
    Field(String),
    /// The element at this place.
    Index(usize),
}

/// A place in an expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Excerpt {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The message, the line and the caret, as the language shows them.
    pub text: String,
    /// Whether the expression is in order as far as it goes, and ends too early.
    pub ends_early: bool,
}

/// A way, as documents know it.
pub(crate) fn document_steps(way: &[Step]) -> Vec<portal_document::Step<'_>> {
    let steps = way.iter().map(|step| match step {
        Step::Field(name) => portal_document::Step::Field(name),
        Step::Index(index) => portal_document::Step::Index(*index),
    });
    steps.collect()
}

impl Diagnostic {
    /// The field as people write it: `spec.match.gvk[0].kind`.
    pub fn field_name(&self) -> String {
        let mut name = String::new();
        for step in &self.field {
            match step {
                Step::Field(field) if name.is_empty() => name.push_str(field),
                Step::Field(field) => {
                    name.push('.');
                    name.push_str(field);
                }
                Step::Index(index) => name.push_str(&format!("[{index}]")),
            }
        }
        name
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rule) = &self.rule {
            write!(formatter, "rule {rule}: ")?;
        }
        let field = self.field_name();
        if !field.is_empty() {
            write!(formatter, "{field}: ")?;
        }
        match &self.excerpt {
            Some(excerpt) => formatter.write_str(&excerpt.text),
            None => formatter.write_str(&self.message),
        }
    }
}

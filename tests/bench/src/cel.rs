//! The `cel` crate's side of the race. Contexts are built beforehand.

use std::collections::HashMap;

use cel::{Context, Program, Value};
use serde_json::Value as Json;

use crate::rules::Rule;

/// A context with every root.
pub fn context(environment: &Json) -> Context<'static, 'static> {
    let mut context = Context::default();
    for (name, root) in environment.as_object().expect("an environment is an object") {
        context.add_variable_from_value(name, value(root));
    }
    context
}

/// Compiles a rule.
pub fn compile(rule: &Rule) -> Program {
    Program::compile(rule.cel).unwrap_or_else(|error| panic!("{}: {error}", rule.name))
}

/// Whether a rule is violated.
pub fn evaluate(program: &Program, context: &Context<'_, '_>) -> bool {
    match program.execute(context) {
        Ok(Value::Bool(verdict)) => verdict,
        other => panic!("no verdict but {other:?}"),
    }
}

/// Whole numbers are ints, as in Kubernetes; the crate's own conversion makes unsigned ones of them.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number.as_i64().map_or_else(|| number.as_f64().into(), Value::Int),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(elements) => Value::from(elements.iter().map(value).collect::<Vec<_>>()),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (key.clone(), value(field)));
            Value::from(fields.collect::<HashMap<_, _>>())
        }
    }
}

//! What the schemas of all kinds need beyond what the types say.

use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Validations in CEL, each with a message that tells the way out.
pub(crate) fn must(rules: &[(&str, &str)]) -> Value {
    rules.iter().map(|(rule, message)| validation(rule, message)).collect()
}

/// Adds a validation to a part of a schema that has some.
pub(crate) fn add_validation(part: Option<&mut Value>, rule: &str, message: &str) {
    let rules = part.and_then(|part| part.get_mut("x-kubernetes-validations")).and_then(Value::as_array_mut);
    rules.expect("the part has validations").push(validation(rule, message));
}

fn validation(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// The default of a field that is switched on.
pub(crate) fn yes() -> bool {
    true
}

/// A label selector. The schema that comes with its type has no limits and takes any operator.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that the object has to have.",
                "type": "object",
                "maxProperties": 64,
                "additionalProperties": { "type": "string", "maxLength": 63 },
            },
            "matchExpressions": {
                "description": "Further conditions on its labels. All of them have to hold.",
                "type": "array",
                "maxItems": 32,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "A condition on a label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "description": "The key of the label.",
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 317,
                        },
                        "operator": {
                            "description": "How the label relates to the values.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "The values, for `In` and `NotIn`.",
                            "type": "array",
                            "maxItems": 64,
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string", "maxLength": 63 },
                        },
                    },
                    "x-kubernetes-validations": must(&[
                        (
                            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                            "In and NotIn need `values`: add them, or use Exists or DoesNotExist",
                        ),
                        (
                            "self.operator in ['In', 'NotIn'] || !has(self.values) || size(self.values) == 0",
                            "Exists and DoesNotExist take no `values`: remove them, or use In or NotIn",
                        ),
                    ]),
                },
            },
        },
    })
}

/// Makes a schema what people would write: an optional field is left out rather than null, a description is a paragraph
/// of sentences rather than lines of source, and a number has no format that says less than its limits.
pub(crate) fn tidy(schema: &mut Schema) {
    let mut transform = RecursiveTransform(|schema: &mut Schema| {
        let Some(object) = schema.as_object_mut() else { return };
        if let Some(Value::Array(types)) = object.get("type") {
            let some = types.iter().find(|name| *name != "null").cloned();
            object.insert("type".to_owned(), some.expect("a type besides null"));
        }
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        if let Some(Value::String(description)) = object.get_mut("description") {
            let paragraphs = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
            *description = paragraphs.collect::<Vec<_>>().join("\n\n");
        }
        if object.get("format").is_some_and(|format| format != "date-time") {
            object.remove("format");
        }
    });
    transform.transform(schema);
}

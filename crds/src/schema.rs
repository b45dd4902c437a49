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

/// The name of an object: a Secret, a ConfigMap and the like.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 253,
        "x-kubernetes-validations": must(&[(
            "self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",
            "write the name of an object: a-z, 0-9, - and ., with a letter or digit at both ends",
        )]),
    })
}

/// Names of objects, in any order.
pub(crate) fn object_names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "set",
        "items": object_name(generator),
    })
}

/// The conditions of an object. The schema that comes with their type has no limits.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "Something that holds, or does not.",
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "description": "What the condition is about.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 316,
                },
                "status": {
                    "description": "Whether it holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Why, in a word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                },
                "message": {
                    "description": "Why, in a sentence.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "When `status` last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the object that the condition is about.",
                    "type": "integer",
                },
            },
        },
    })
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// Every part of a schema with its path.
    fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
        visit(path, schema);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), field, visit);
        }
        for (part, sign) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[part].is_object() {
                walk(&format!("{path}{sign}"), &schema[part], visit);
            }
        }
    }

    /// What is wrong with the parts of a kind's schema.
    fn check(kind: &str, wrong_of: fn(&str, &Value) -> Option<&'static str>) {
        let definitions = crate::definitions();
        let definition = definitions.iter().find(|definition| definition.spec.names.kind == kind).unwrap();
        let schema = definition.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        let mut wrong = Vec::new();
        walk(kind, &serde_json::to_value(schema).unwrap(), &mut |path, part| {
            wrong.extend(wrong_of(path, part).map(|what| format!("{path}: {what}")));
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn is_null_anywhere(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(values) => values.iter().any(is_null_anywhere),
            Value::Object(fields) => fields.values().any(is_null_anywhere),
            _ => false,
        }
    }

    #[test]
    fn nothing_may_be_null_and_every_field_is_described() {
        for kind in ["PortalInstance", "PortalClusterRule", "PortalRule"] {
            check(kind, |path, part| {
                let description = part["description"].as_str().unwrap_or_default();
                // Elements and values are described where their list or map is.
                let is_field = !path.ends_with("[]") && !path.ends_with("{}");
                if part.get("nullable").is_some() || is_null_anywhere(part.get("default").unwrap_or(&Value::Bool(true)))
                {
                    return Some("it may be null");
                }
                if part.get("type").is_none() && part.get("x-kubernetes-int-or-string").is_none() {
                    return Some("it has no type");
                }
                (is_field && !description.ends_with('.')).then_some("it is not described")
            });
        }
    }

    #[test]
    fn everything_in_an_instance_is_bounded() {
        check("PortalInstance", |_, part| {
            let has = |name: &str| part.get(name).is_some();
            match part["type"].as_str() {
                Some("string") if has("enum") || part["format"] == "date-time" => None,
                Some("string") => (!has("maxLength")).then_some("it has no longest text"),
                Some("array") if !has("x-kubernetes-list-type") => Some("it does not say how lists are merged"),
                Some("array") => (!has("maxItems")).then_some("it may have any number of elements"),
                Some("object") if has("additionalProperties") => {
                    (!has("maxProperties")).then_some("it may have any number of entries")
                }
                Some("object") => (!has("properties")).then_some("it has no fields"),
                _ => None,
            }
        });
    }

    #[test]
    fn every_validation_says_the_way_out() {
        for kind in ["PortalInstance", "PortalClusterRule", "PortalRule"] {
            check(kind, |_, part| {
                let rules = part["x-kubernetes-validations"].as_array().into_iter().flatten();
                let mut messages = rules.map(|rule| rule["message"].as_str().unwrap_or_default());
                messages.any(|message| message.is_empty() || message.ends_with('.')).then_some("it has no message")
            });
        }
    }
}

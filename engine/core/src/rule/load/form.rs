//! The form that a rule must have: what a structural schema says, taken apart once and not for each rule.

use std::sync::LazyLock;

use serde_json::Value;

/// What a schema says of one value.
#[derive(Debug)]
pub(super) struct Form {
    /// The type, as the schema calls it.
    pub(super) expected: String,
    /// The fields that are known, in the order of their names.
    pub(super) properties: Vec<(String, Form)>,
    /// The form of all other fields, if there may be any.
    pub(super) additional: Option<Box<Form>>,
    pub(super) required: Vec<String>,
    pub(super) max_properties: Option<u64>,
    /// The form of each element of a list.
    pub(super) items: Option<Box<Form>>,
    pub(super) min_items: u64,
    pub(super) max_items: Option<u64>,
    pub(super) min_length: usize,
    pub(super) max_length: Option<u64>,
    /// The texts of which the value is one.
    pub(super) words: Option<Vec<String>>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
}

/// What is said of elements of which nothing is said.
pub(super) static ANYTHING: LazyLock<Form> = LazyLock::new(|| Form::of(&Value::Null));

impl Form {
    pub(super) fn of(schema: &Value) -> Form {
        let texts = |name: &str| {
            let listed = schema[name].as_array()?;
            Some(listed.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        let properties: Vec<(String, Form)> =
            properties.map(|(name, schema)| (name.clone(), Form::of(schema))).collect();
        let boxed = |name: &str| schema.get(name).map(|schema| Box::new(Form::of(schema)));
        Form {
            expected: schema["type"].as_str().unwrap_or("object").to_owned(),
            properties,
            additional: boxed("additionalProperties"),
            required: texts("required").unwrap_or_default(),
            max_properties: schema["maxProperties"].as_u64(),
            items: boxed("items"),
            min_items: schema["minItems"].as_u64().unwrap_or_default(),
            max_items: schema["maxItems"].as_u64(),
            min_length: schema["minLength"].as_u64().unwrap_or_default() as usize,
            max_length: schema["maxLength"].as_u64(),
            words: texts("enum"),
            minimum: schema["minimum"].as_f64(),
            maximum: schema["maximum"].as_f64(),
        }
    }

    /// The form of a field, if there may be one of this name.
    pub(super) fn field(&self, name: &str) -> Option<&Form> {
        let known = self.properties.iter().find(|(known, _)| known == name);
        known.map(|(_, form)| form).or(self.additional.as_deref())
    }
}

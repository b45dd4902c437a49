//! Whether what is there is what should be there.

use serde_json::{Map, Value};

use crate::names::MANAGER;
use crate::object::Object;

/// The form in which the API server keeps something that we wanted in another form.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// What was applied.
    pub wanted: Value,
    /// What the API server made of it.
    pub stored: Value,
}

/// Whether every field that we would apply has the value that we would apply. What others have added counts for nothing, but a list is
/// compared as a whole: one that has grown is another one.
pub fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| covers(found.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted))
        }
        // The API server leaves out what is empty.
        (Value::Null, wanted) => is_empty(wanted),
        (found, wanted) => found == wanted,
    }
}

/// Whether a child is as it should be: field by field, or in the form that the API server once gave to just this wish.
pub fn is_as_wanted(found: &Object, wanted: &Object, form: Option<&Form>) -> bool {
    let in_its_form = |form: &Form| form.wanted == wanted.value && form.stored == essence(&found.value);
    let is_covered = covers(&found.value, &wanted.value) && !has_leftovers(owned(found), &found.value, &wanted.value);
    is_covered || form.is_some_and(in_its_form)
}

/// The fields that we have applied, as the API server notes them.
fn owned(found: &Object) -> &Value {
    let entries = found.value["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.into_iter().find(|entry| entry["manager"] == MANAGER).map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

/// Whether there is a field that we once applied and would not apply any more. It goes when the rest is applied without it.
fn has_leftovers(owned: &Value, found: &Value, wanted: &Value) -> bool {
    let Some(fields) = owned.as_object() else { return false };
    if fields.is_empty() {
        // What is inside is not told: it is one value.
        return found.is_object() && found != wanted && !(is_empty(found) && is_empty(wanted));
    }
    fields.iter().any(|(name, inner)| {
        let (found, wanted) = match name.split_once(':') {
            Some(("f", name)) => (found.get(name), wanted.get(name)),
            Some(("k", keys)) => (element(found, keys), element(wanted, keys)),
            // The whole itself, or an element of a list of words, which is compared as a whole.
            _ => return false,
        };
        match (found, wanted) {
            (Some(found), Some(wanted)) => has_leftovers(inner, found, wanted),
            (Some(found), None) => !is_empty(found),
            (None, _) => false,
        }
    })
}

/// The element of a list that has these values in these fields.
fn element<'a>(list: &'a Value, keys: &str) -> Option<&'a Value> {
    let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
    list.as_array()?.iter().find(|element| keys.iter().all(|(key, value)| element[key] == *value))
}

/// The form to remember of what the API server answered, if it is not what was wanted.
pub fn form_of(answer: &Object, wanted: &Object) -> Option<Form> {
    (!is_as_wanted(answer, wanted, None)).then(|| Form { wanted: wanted.value.clone(), stored: essence(&answer.value) })
}

/// An object without what changes by itself.
fn essence(value: &Value) -> Value {
    let mut fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| ["name", "namespace", "labels", "ownerReferences"].contains(&name.as_str()));
    }
    Value::Object(fields)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(found: Value, wanted: Value, expected: bool) {
        assert_eq!(covers(&found, &wanted), expected, "{found} {wanted}");
    }

    #[test]
    fn what_others_have_added_counts_for_nothing_and_what_they_changed_does() {
        check(json!({"a": 1, "b": 2}), json!({"a": 1}), true);
        check(json!({"a": 2, "b": 2}), json!({"a": 1}), false);
        check(json!({"a": [{"x": 1, "y": 1}]}), json!({"a": [{"x": 1}]}), true);
        check(json!({"a": [{"x": 1}, {"x": 2}]}), json!({"a": [{"x": 1}]}), false);
        check(json!({"a": []}), json!({"a": [1]}), false);
    }

    #[test]
    fn what_is_empty_may_be_left_out() {
        check(json!({}), json!({"a": {}, "b": [], "c": "", "d": false, "e": null}), true);
        check(json!({}), json!({"a": {"b": 0}}), false);
        check(json!({"a": true}), json!({"a": false}), false);
    }

    #[test]
    fn a_field_that_we_applied_and_do_not_want_any_more_is_no_field_of_others() {
        let object = |value| Object::from_value(crate::object::Kind::Deployment, value);
        let fields = json!({ "f:spec": {
            "f:nodeSelector": {},
            "f:containers": { "k:{\"name\":\"engine\"}": { ".": {}, "f:name": {}, "f:image": {}, "f:tty": {} } },
        } });
        let managed = json!([{ "manager": MANAGER, "fieldsV1": fields }]);
        let found = object(json!({
            "metadata": { "name": "a", "managedFields": managed },
            "spec": {
                "nodeSelector": { "a": "b" },
                "containers": [{ "name": "engine", "image": "x", "tty": true, "filledIn": 1 }],
                "ofOthers": 1,
            },
        }));
        let check = |spec: Value, expected: bool| {
            let wanted = object(json!({ "metadata": { "name": "a" }, "spec": spec }));
            assert_eq!(is_as_wanted(&found, &wanted, None), expected, "{spec}");
        };
        let engine = json!([{ "name": "engine", "image": "x", "tty": true }]);
        check(json!({ "nodeSelector": { "a": "b" }, "containers": engine }), true);
        check(json!({ "containers": engine }), false);
        check(json!({ "nodeSelector": {}, "containers": engine }), false);
        check(json!({ "nodeSelector": { "a": "b" }, "containers": [{ "name": "engine", "image": "x" }] }), false);
    }

    #[test]
    fn a_form_counts_for_the_wish_that_it_was_made_from_and_as_long_as_nobody_changes_it() {
        let object = |value| Object::from_value(crate::object::Kind::Service, value);
        let wanted = object(json!({"metadata": {"name": "a"}, "spec": {"cpu": "1000m"}}));
        let answer = object(json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"cpu": "1"}}));
        let form = form_of(&answer, &wanted);
        assert!(!is_as_wanted(&answer, &wanted, None));
        assert!(is_as_wanted(&answer, &wanted, form.as_ref()));
        let changed = object(json!({"metadata": {"name": "a"}, "spec": {"cpu": "2"}}));
        assert!(!is_as_wanted(&changed, &wanted, form.as_ref()));
        let other = object(json!({"metadata": {"name": "a"}, "spec": {"cpu": "1001m"}}));
        assert!(!is_as_wanted(&answer, &other, form.as_ref()));
    }
}

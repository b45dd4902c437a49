//! Tables for people from the schemas of the custom resources.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::generate::definition::definition;

/// Kubernetes' own types, by a field that gives them away: what a table calls them, so that their fields are listed once or never.
const FOREIGN: [(&str, &str); 2] = [("matchExpressions", "label selector"), ("lastTransitionTime", "condition")];

/// The tables of the fields of a rule.
pub(crate) fn rule_schema() -> anyhow::Result<String> {
    let definition = definition("PortalClusterRule")?;
    let spec = &schema(&definition)["properties"]["spec"];
    let mut text = String::new();
    section(&mut text, "spec", spec);
    let selector = &spec["properties"]["match"]["properties"]["labelSelector"];
    text.push_str("\n## Label selectors\n\nAs everywhere in Kubernetes.\n\n");
    table(&mut text, selector);
    nested(&mut text, "selector", selector);
    text.push('\n');
    Ok(text)
}

/// What a kind of rule has besides the fields of a rule.
pub(crate) fn rule_page(kind: &str) -> anyhow::Result<String> {
    let definition = definition(kind)?;
    let mut text = head(&definition);
    let shared: Vec<_> = messages(&self::definition("PortalClusterRule")?);
    let own: Vec<_> = messages(&definition).into_iter().filter(|message| !shared.contains(message)).collect();
    if !own.is_empty() {
        text.push_str("\n## What is refused besides\n\n");
        own.iter().for_each(|message| item(&mut text, message));
    }
    section(&mut text, "status", &schema(&definition)["properties"]["status"]);
    text.push('\n');
    Ok(text)
}

/// Everything about an instance.
pub(crate) fn instance_page() -> anyhow::Result<String> {
    let definition = definition("PortalInstance")?;
    let schema = schema(&definition);
    let mut text = head(&definition);
    text.push_str("\n## Names\n\nThe API server refuses other names, and says:\n\n");
    validations(schema).for_each(|message| item(&mut text, &message));
    section(&mut text, "spec", &schema["properties"]["spec"]);
    section(&mut text, "status", &schema["properties"]["status"]);
    text.push('\n');
    Ok(text)
}

/// What a kind is called, and what kubectl shows of it.
fn head(definition: &Value) -> String {
    let (names, version) = (&definition["spec"]["names"], &definition["spec"]["versions"][0]);
    let mut text = format!(
        "\n{}\n\n| what | value |\n| --- | --- |\n",
        schema(definition)["description"].as_str().unwrap_or_default()
    );
    let api_version = format!("{}/{}", word(&definition["spec"]["group"]), word(&version["name"]));
    for (what, value) in [
        ("`apiVersion`", api_version),
        ("`kind`", word(&names["kind"])),
        ("scope", word(&definition["spec"]["scope"])),
        ("for kubectl", format!("{}, {}", word(&names["plural"]), word(&names["shortNames"]))),
        ("with the other kinds", word(&names["categories"])),
    ] {
        let _ = writeln!(text, "| {what} | {value} |");
    }
    text.push_str("\n## Columns\n\n| column | shows | with |\n| --- | --- | --- |\n");
    for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
        let with = if column["priority"] == 1 { "`--output wide`" } else { "" };
        let _ = writeln!(text, "| {} | {} | {with} |", word(&column["name"]), word(&column["description"]));
    }
    text
}

fn schema(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// An object with its fields, then the objects in it.
fn section(text: &mut String, path: &str, schema: &Value) {
    let _ = write!(text, "\n## {path}\n\n{}\n\n", word(&schema["description"]));
    table(text, schema);
    nested(text, path, schema);
}

fn nested(text: &mut String, path: &str, schema: &Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let (object, name) = if field["items"]["properties"].is_object() {
            (&field["items"], format!("{name}[]"))
        } else {
            (field, name.clone())
        };
        if object["properties"].is_object() && foreign(object).is_none() {
            section(text, &format!("{path}.{name}"), object);
        }
    }
}

fn table(text: &mut String, schema: &Value) {
    text.push_str("| field | type | default | limits | meaning |\n| --- | --- | --- | --- | --- |\n");
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let default = if required.contains(&Value::from(name.as_str())) {
            "required".to_owned()
        } else if field["properties"].is_object() {
            // Its own section has the defaults of its fields.
            String::new()
        } else {
            field.get("default").map(|value| format!("`{value}`")).unwrap_or_default()
        };
        let _ = writeln!(
            text,
            "| `{name}` | {} | {default} | {} | {} |",
            type_of(field),
            limits(field).join(", "),
            word(&field["description"]).replace('|', "\\|")
        );
    }
    // An object has a section of its own, with its own checks.
    let fields = schema["properties"].as_object().into_iter().flat_map(|fields| fields.values());
    let plain = fields.filter(|field| !field["properties"].is_object());
    let mut checks: Vec<_> = validations(schema).chain(plain.flat_map(all_validations)).collect();
    let mut seen = BTreeSet::new();
    checks.retain(|check| seen.insert(check.clone()));
    if !checks.is_empty() {
        text.push_str("\nThe API server refuses the rest, and says:\n\n");
        checks.iter().for_each(|message| item(text, message));
    }
}

fn item(text: &mut String, message: &str) {
    let _ = writeln!(text, "- {message}");
}

fn type_of(field: &Value) -> String {
    if let Some(name) = foreign(field) {
        return name.to_owned();
    }
    if let Some(values) = field["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", word(value))).collect::<Vec<_>>().join(", ");
    }
    if field["x-kubernetes-int-or-string"] == true {
        return "amount".to_owned();
    }
    match field["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&field["items"])),
        Some("object") if field["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&field["additionalProperties"]))
        }
        _ if field["format"] == "date-time" => "time".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    }
}

fn foreign(schema: &Value) -> Option<&'static str> {
    let fields = schema["properties"].as_object()?;
    FOREIGN.iter().find(|(field, _)| fields.contains_key(*field)).map(|(_, name)| *name)
}

fn limits(field: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    for (low, high, unit) in [
        ("minItems", "maxItems", "items"),
        ("minProperties", "maxProperties", "entries"),
        ("minLength", "maxLength", "characters"),
        ("minimum", "maximum", ""),
    ] {
        let text = match (field.get(low), field.get(high)) {
            (Some(low), Some(high)) => format!("{low} to {high} {unit}"),
            (None, Some(high)) => format!("at most {high} {unit}"),
            (Some(low), None) => format!("at least {low} {unit}"),
            (None, None) => continue,
        };
        limits.push(text.trim_end().to_owned());
    }
    if field["x-kubernetes-list-type"] == "set" {
        limits.push("no duplicates".to_owned());
    }
    for (part, each) in [("items", "each"), ("additionalProperties", "each value")] {
        if field[part].is_object() {
            limits.extend(self::limits(&field[part]).iter().map(|limit| format!("{each} {limit}")));
        }
    }
    limits
}

fn validations(schema: &Value) -> impl Iterator<Item = String> {
    schema["x-kubernetes-validations"].as_array().into_iter().flatten().map(|validation| word(&validation["message"]))
}

/// The messages of the validations of a field, and of its elements or values unless they have a section of their own.
fn all_validations(field: &Value) -> Vec<String> {
    let inside = ["items", "additionalProperties"].map(|part| &field[part]);
    let inside = inside.into_iter().filter(|part| !part["properties"].is_object());
    validations(field).chain(inside.flat_map(validations)).collect()
}

/// The messages of all validations in a schema, at any depth.
fn messages(value: &Value) -> Vec<String> {
    let inside: Vec<&Value> = match value {
        Value::Array(values) => values.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => return Vec::new(),
    };
    validations(value).chain(inside.into_iter().flat_map(messages)).collect()
}

/// A text without its quotes, or the texts of a list.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(word).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

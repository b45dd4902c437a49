//! The types of all kinds, from the documents in which the API server describes them. The reader of the table says what its lines mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use portal_test_kit::{Cluster, Size};
use serde_json::Value;

use super::{check, get, groups, is_newest, list, path_of, text};

/// Written as text or as a number, so that nothing but its name tells what it is.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// What the API server says of types, and how the table calls them.
#[derive(Default)]
struct Described {
    schemas: BTreeMap<String, Value>,
    names: BTreeMap<String, String>,
}

#[test]
fn the_table_of_fields_is_what_the_api_server_says() {
    let cluster = Cluster::shared(Size::Core);
    let mut described = Described::default();
    // The types of kinds, by `apiVersion` and `kind`.
    let mut kinds: BTreeMap<(String, String), String> = BTreeMap::new();
    for (group, versions) in groups(cluster) {
        for version in versions {
            let path = path_of(&group, &version);
            let served = get(cluster, &format!("/{path}"));
            let document = get(cluster, &format!("/openapi/v3/{path}"));
            let schemas = document["components"]["schemas"].as_object().unwrap();
            for resource in list(&served["resources"]).filter(|resource| !text(&resource["name"]).contains('/')) {
                let kind = text(&resource["kind"]);
                let is_kind = |schema: &Value| {
                    list(&schema["x-kubernetes-group-version-kind"])
                        .any(|gvk| gvk["group"] == *group && gvk["version"] == *version && gvk["kind"] == *kind)
                };
                let found = schemas.iter().find(|(_, schema)| is_kind(schema) && has_fields(schema));
                if let Some((full, _)) = found {
                    kinds.insert((text(&served["groupVersion"]).to_owned(), kind.to_owned()), full.clone());
                }
            }
            described.schemas.extend(schemas.clone());
        }
    }
    described.name(kinds.values());
    if is_newest() {
        check("engine/core/src/context/fields.txt", &described.table(&kinds));
    }
}

fn has_fields(schema: &Value) -> bool {
    !schema["properties"].is_null()
}

/// The type that a schema refers to, by its full name.
fn reference(schema: &Value) -> Option<&str> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    reference.and_then(|reference| reference.rsplit('/').next())
}

/// Everything that a schema refers to, however deep.
fn references(schema: &Value, found: &mut Vec<String>) {
    found.extend(reference(schema).map(str::to_owned));
    let properties = schema["properties"].as_object().into_iter().flat_map(|properties| properties.values());
    properties
        .chain([&schema["items"], &schema["additionalProperties"]])
        .filter(|inner| inner.is_object())
        .for_each(|inner| references(inner, found));
}

/// The last so many parts of a full name.
fn ending(full: &str, parts: usize) -> String {
    let mut parts: Vec<&str> = full.rsplit('.').take(parts).collect();
    parts.reverse();
    parts.join("/")
}

impl Described {
    /// Names every type that can be reached from these. What shares its name with another has its group and version too.
    fn name<'a>(&mut self, from: impl Iterator<Item = &'a String>) {
        let mut open: Vec<String> = from.cloned().collect();
        let mut reached = BTreeSet::new();
        while let Some(full) = open.pop() {
            let schema = &self.schemas[&full];
            if has_fields(schema) && reached.insert(full) {
                references(schema, &mut open);
            }
        }
        for full in &reached {
            let is_shared = reached.iter().any(|other| other != full && ending(other, 1) == ending(full, 1));
            self.names.insert(full.clone(), ending(full, if is_shared { 3 } else { 1 }));
        }
        let names: BTreeSet<&String> = self.names.values().collect();
        assert_eq!(names.len(), self.names.len(), "two types have one name: {:?}", self.names);
    }

    fn table(&self, kinds: &BTreeMap<(String, String), String>) -> String {
        let mut table = String::new();
        let kinds: BTreeSet<String> = kinds
            .iter()
            .map(|((api_version, kind), full)| format!("{api_version} {kind} = {}\n", self.names[full]))
            .collect();
        table.extend(kinds);
        let types: BTreeMap<&String, &String> = self.names.iter().map(|(full, name)| (name, full)).collect();
        for (name, full) in types {
            writeln!(table, "{name}").unwrap();
            let schema = &self.schemas[full];
            let fields: BTreeMap<&String, &Value> = schema["properties"].as_object().unwrap().iter().collect();
            for (field, inner) in fields {
                let mark = if list(&schema["required"]).any(|name| name == field) { "!" } else { "" };
                writeln!(table, "  {field}{mark} {}", self.shape(inner)).unwrap();
            }
        }
        table
    }

    /// What a field is, in the words of the table.
    fn shape(&self, schema: &Value) -> String {
        if let Some(full) = reference(schema) {
            return match self.names.get(full) {
                _ if full == QUANTITY => "quantity".to_owned(),
                Some(name) => name.clone(),
                None => self.shape(&self.schemas[full]),
            };
        }
        match text(&schema["type"]) {
            _ if !schema["oneOf"].is_null() => "any".to_owned(),
            "array" => format!("[{}]", self.shape(&schema["items"])),
            "object" if !schema["additionalProperties"].is_null() => {
                format!("{{{}}}", self.shape(&schema["additionalProperties"]))
            }
            "string" if !schema["enum"].is_null() => {
                let words: Vec<&str> = list(&schema["enum"]).map(text).collect();
                assert!(words.iter().all(|word| !word.contains(['|', ')', '\n'])), "the table cannot say {words:?}");
                format!("text({})", words.join("|"))
            }
            "string" => "text".to_owned(),
            "integer" => "int".to_owned(),
            "boolean" => "bool".to_owned(),
            "number" => "float".to_owned(),
            _ => "any".to_owned(),
        }
    }
}

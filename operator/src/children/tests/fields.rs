//! What each field of an instance does: it is set alone, and what differs is shown.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect_file;
use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    layers::Layers,
    requirements::Requirements,
    rule::{compile::compile, load::load, source::Origin as RuleOrigin},
};
use portal_crds::{InstanceSpec, PortalInstance};
use portal_document::{Options, from_yaml};
use serde_json::{Value, json};

use super::{every_field, instance, operator};
use crate::children::{
    children,
    flags::{FLAGS, Origin},
    webhook::Around,
    webhook_configuration, webhook_settings,
};
use crate::instance::Instance;
use crate::permissions::Permissions;

/// A rule that judges what is in namespaces.
const RULE: &str = "name: pods\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostNetwork";

/// Fields whose other value leaves nothing else to see.
const OTHERWISE: [(&str, Value); 1] = [("admission.enabled", Value::Bool(false))];

/// Fields that have one value only.
const ALONE: [&str; 1] = ["engine"];

/// Lines of everything that an instance leads to, by object.
type Lines = BTreeMap<String, BTreeSet<String>>;

#[test]
fn each_field_does_what_it_says() {
    let mut text = String::new();
    for (path, value, effect) in effects() {
        text.push_str(&format!("{path}: {value}\n"));
        effect.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    expect_file!["fields.txt"].assert_eq(&text);
}

#[test]
fn each_flag_follows_its_field() {
    let effects = effects();
    for flag in FLAGS {
        let Origin::Field(field) = flag.origin else { continue };
        let is_of = |path: &str| field == path || field.starts_with(&format!("{path}."));
        let (_, _, effect) = effects.iter().find(|(path, ..)| is_of(path)).unwrap_or_else(|| panic!("{field}"));
        let does_not_exist_yet = ["network", "actions"].contains(&flag.name);
        let is_told = effect.iter().any(|line| {
            line.contains(&format!("args: --{}=", flag.name)) || line.ends_with(&format!("args: --{}", flag.name))
        });
        // Without admission no layer is left that exists, and there is no Deployment to be told.
        let is_told = is_told || effect.contains(&"- Deployment portal-default".to_owned());
        assert_eq!(is_told, !does_not_exist_yet, "{field}: {effect:?}");
    }
}

/// Each field with its other value, and what differs then.
fn effects() -> Vec<(String, Value, Vec<String>)> {
    let usual = lines(&instance(json!({})));
    let effect = |(path, spec): (String, Value)| {
        let value = spec.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default();
        (path, value, differences(&usual, &lines(&instance(spec))))
    };
    each_field_alone().into_iter().map(effect).collect()
}

/// Each field, and a spec in which it alone is said, with another value than it has anyway.
pub(crate) fn each_field_alone() -> Vec<(String, Value)> {
    let every = every_field();
    let defaults = serde_json::to_value(InstanceSpec::default()).unwrap();
    let mut specs = Vec::new();
    for path in fields(&defaults) {
        let pointer = format!("/{}", path.replace('.', "/"));
        let otherwise = OTHERWISE.iter().find(|(other, _)| *other == path).map(|(_, value)| value);
        let value = otherwise.or_else(|| every["spec"].pointer(&pointer));
        let value = value.unwrap_or_else(|| panic!("every-field.json says nothing of {path}")).clone();
        assert_ne!(defaults.pointer(&pointer), Some(&value), "{path} is set to what it is anyway");
        let spec = path.rsplit('.').fold(value, |spec, name| json!({ name: spec }));
        specs.push((path, spec));
    }
    specs
}

/// The fields of an instance that can be set alone: those of parts that have defaults, and whole parts that have none.
fn fields(defaults: &Value) -> BTreeSet<String> {
    let definition = serde_json::to_value(<PortalInstance as kube::CustomResourceExt>::crd()).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut found = BTreeSet::new();
    collect(schema, Some(defaults), "", &mut found);
    ALONE.iter().for_each(|field| assert!(found.remove(*field), "{field}"));
    found
}

fn collect(schema: &Value, defaults: Option<&Value>, path: &str, found: &mut BTreeSet<String>) {
    match (schema["properties"].as_object(), defaults) {
        (Some(properties), Some(defaults)) => {
            for (name, schema) in properties {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(schema, defaults.get(name), &path, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

fn lines(instance: &Instance) -> Lines {
    let settings = webhook_settings(
        instance,
        &Around { instances: &[], operator: &operator(), ca_bundle: b"PEM", namespace_uid: "namespace-uid" },
    );
    let configuration = webhook_configuration(&requirements(), &settings);
    let children = children(instance, &Permissions::default(), &operator());
    let mut lines = Lines::new();
    for object in children.iter().chain([&configuration]) {
        let name = format!("{} {}", object.key.kind, object.key.name);
        flatten("", &object.value, lines.entry(name).or_default());
    }
    lines
}

fn requirements() -> Requirements {
    let documents = from_yaml(RULE, &Options::default()).unwrap();
    let origin = RuleOrigin::File { path: "rule.yaml".to_owned(), line: 1 };
    let source = load(documents[0].document.root(), origin, Vec::new()).unwrap();
    let (rules, _) = compile(&[source], Kinds::builtin(), &ExprEngine);
    Requirements::of(&rules, Layers { admission: true, ..Layers::default() })
}

/// A line for each value. Items of lists are told by their name, or stand for themselves.
fn flatten(path: &str, value: &Value, lines: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, lines);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let name = ["name", "alert", "mountPath"].iter().find_map(|key| item[key].as_str().map(str::to_owned));
                match item {
                    Value::Object(_) => {
                        flatten(&format!("{path}[{}]", name.unwrap_or_else(|| number.to_string())), item, lines);
                    }
                    item => flatten(path, item, lines),
                }
            }
        }
        Value::String(text) => drop(lines.insert(format!("{path}: {text}"))),
        value => drop(lines.insert(format!("{path}: {value}"))),
    }
}

fn differences(before: &Lines, after: &Lines) -> Vec<String> {
    let mut differences = Vec::new();
    let objects: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for object in objects {
        match (before.get(object), after.get(object)) {
            (Some(before), Some(after)) => {
                let mut lines: Vec<String> =
                    before.difference(after).map(|line| format!("- {object} {}", shortened(line, after))).collect();
                lines.extend(after.difference(before).map(|line| format!("+ {object} {}", shortened(line, before))));
                lines.dedup();
                differences.append(&mut lines);
            }
            (Some(_), None) => differences.push(format!("- {object}")),
            _ => differences.push(format!("+ {object}")),
        }
    }
    differences
}

/// A line, or the item of a list that it belongs to, if the other side has nothing of that.
fn shortened<'l>(line: &'l str, other: &BTreeSet<String>) -> &'l str {
    let items = line.match_indices(']').map(|(end, _)| &line[..=end]);
    let mut whole = items.filter(|item| !other.iter().any(|line| line.starts_with(item)));
    whole.next().unwrap_or(line)
}

//! The tables of Kubernetes' kinds and of the fields of pods are what its API server says. `PORTAL_UPDATE=1` writes them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use portal_test_kit::{Cluster, Size, kubernetes, repository};
use serde_json::Value;

/// The types that rules reach from their roots.
const ROOTS: [&str; 4] = [
    "io.k8s.api.core.v1.Container",
    "io.k8s.api.core.v1.PodSpec",
    "io.k8s.api.core.v1.PodSecurityContext",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
];

const CONTAINER: &str = "io.k8s.api.core.v1.Container";

/// A container that comes later has the fields of others and one more: to a rule they are of one type.
const EPHEMERAL_CONTAINER: &str = "io.k8s.api.core.v1.EphemeralContainer";

/// How a kind is served.
#[derive(Default)]
struct Served {
    versions: Vec<String>,
    namespaced: bool,
    subresources: BTreeSet<String>,
}

fn get(cluster: &Cluster, path: &str) -> Value {
    serde_json::from_str(&cluster.kubectl(&["get", "--raw", path]).unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Compares with a file that is committed. The tables are those of one version.
#[track_caller]
fn check(file: &str, generated: &str) {
    let path = repository().join(file);
    if std::env::var_os("PORTAL_UPDATE").is_some() {
        return std::fs::write(path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    let hint = "run `PORTAL_UPDATE=1 make test SUITE=core`";
    assert!(committed == generated, "{file} is not what the API server says: {hint}");
}

fn is_newest() -> bool {
    kubernetes::Version::chosen().unwrap().text() == kubernetes::DEFAULT_VERSION
}

#[test]
fn the_table_of_kinds_is_what_the_api_server_serves() {
    let cluster = Cluster::shared(Size::Core);
    let mut groups: Vec<(String, Vec<String>)> = vec![(String::new(), vec!["/api/v1".to_owned()])];
    let others = get(cluster, "/apis");
    for group in list(&others["groups"]).filter(|group| text(&group["name"]) != "portal.io") {
        let versions = list(&group["versions"]).map(|version| format!("/apis/{}", text(&version["groupVersion"])));
        groups.push((text(&group["name"]).to_owned(), versions.collect()));
    }
    let mut lines = BTreeSet::new();
    for (group, versions) in groups {
        // By kind and plural.
        let mut kinds: BTreeMap<(String, String), Served> = BTreeMap::new();
        for path in versions {
            let served = get(cluster, &path);
            let version = path.rsplit('/').next().unwrap().to_owned();
            for resource in list(&served["resources"]).filter(|resource| !text(&resource["name"]).contains('/')) {
                let plural = text(&resource["name"]).to_owned();
                let namespaced = resource["namespaced"].as_bool().unwrap();
                let entry = kinds.entry((text(&resource["kind"]).to_owned(), plural.clone())).or_default();
                entry.versions.push(version.clone());
                entry.namespaced = namespaced;
                let below = list(&served["resources"]).filter_map(|other| text(&other["name"]).split_once('/'));
                entry.subresources.extend(below.filter(|(of, _)| *of == plural).map(|(_, name)| name.to_owned()));
            }
        }
        for ((kind, plural), Served { versions, namespaced, subresources }) in kinds {
            let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
            let subresources = or_none(subresources.into_iter().collect::<Vec<_>>().join(","));
            let scope = if namespaced { "namespaced" } else { "cluster" };
            let group = or_none(group.clone());
            lines.insert(format!("{group} {kind} {plural} {} {scope} {subresources}\n", versions.join(",")));
        }
    }
    if is_newest() {
        check("engine/core/src/kinds/builtin.txt", &lines.into_iter().collect::<String>());
    }
}

#[test]
fn the_table_of_fields_is_what_the_api_server_says() {
    let cluster = Cluster::shared(Size::Core);
    let described = get(cluster, "/openapi/v3/api/v1");
    let schemas = &described["components"]["schemas"];
    let mut types: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut open: VecDeque<String> = ROOTS.map(str::to_owned).into();
    while let Some(full) = open.pop_front() {
        let name = full.rsplit('.').next().unwrap().to_owned();
        if types.contains_key(&name) {
            continue;
        }
        let also = if full == CONTAINER { &schemas[EPHEMERAL_CONTAINER] } else { &Value::Null };
        let properties = [also, &schemas[&full]].into_iter().filter_map(|schema| schema["properties"].as_object());
        let fields = properties.flatten().map(|(field, schema)| (field.clone(), shape(schema, schemas, &mut open)));
        let fields = fields.collect();
        types.insert(name, fields);
    }
    let mut table = String::new();
    for (name, fields) in types {
        writeln!(table, "{name}").unwrap();
        for (field, shape) in fields {
            writeln!(table, "  {field} {shape}").unwrap();
        }
    }
    if is_newest() {
        check("engine/core/src/context/fields.txt", &table);
    }
}

/// What a field is, in the words of the table. Types that it leads to are put on the list.
fn shape(schema: &Value, schemas: &Value, open: &mut VecDeque<String>) -> String {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(full) = reference.and_then(|reference| reference.rsplit('/').next()) {
        if schemas[full]["properties"].is_null() {
            return shape(&schemas[full], schemas, open);
        }
        let full = if full == EPHEMERAL_CONTAINER { CONTAINER } else { full };
        open.push_back(full.to_owned());
        return full.rsplit('.').next().unwrap().to_owned();
    }
    match text(&schema["type"]) {
        _ if !schema["oneOf"].is_null() => "any".to_owned(),
        "array" => format!("[{}]", shape(&schema["items"], schemas, open)),
        "object" if !schema["additionalProperties"].is_null() => {
            format!("{{{}}}", shape(&schema["additionalProperties"], schemas, open))
        }
        "string" => "text".to_owned(),
        "integer" => "int".to_owned(),
        "boolean" => "bool".to_owned(),
        "number" => "float".to_owned(),
        _ => "any".to_owned(),
    }
}

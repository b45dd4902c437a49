//! The objects of the bench: those that rules are raced on, and pods by the thousand.

mod managed_fields;
mod pods;

use portal_core::context::image::Image;
use portal_document::{Options, Path, from_yaml};
use serde_json::{Map, Value, json};

pub use pods::{crowd, pods};

const FILES: [&str; 4] = [
    include_str!("../objects/api.yaml"),
    include_str!("../objects/pinned.yaml"),
    include_str!("../objects/agent.yaml"),
    include_str!("../objects/deployment.yaml"),
];

/// The objects that rules are raced on, as JSON: four of about 3 KB, which pass or violate different rules, and a pod of 11 KB.
pub fn objects() -> Vec<String> {
    let options = Options::default();
    let files = FILES.iter().map(|yaml| from_yaml(yaml, &options).expect("the bench's own files are YAML"));
    let mut objects: Vec<String> = files.map(|documents| documents[0].document.to_json()).collect();
    objects.extend(pods(1));
    objects
}

/// A pod as people write them in YAML, with a name of its own. Two of a hundred violate a rule.
pub fn manifest(number: usize) -> String {
    let pod = FILES[0].replacen("x2x7q", &format!("{number:05}"), 1);
    match number % 100 {
        0 => pod.replacen("allowPrivilegeEscalation: false", "privileged: true", 1),
        1 => pod.replacen("runAsUser: 1000", "runAsUser: 0", 1),
        _ => pod,
    }
}

/// What caches leave out of objects.
pub fn cache_drops() -> [Path; 2] {
    ["metadata.managedFields", r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#]
        .map(|path| Path::parse(path).expect("these are paths"))
}

/// The same contexts as ours, as the environments that other languages take: that of the object, and one for each
/// container.
pub fn environments(object: &str) -> (Value, Vec<Value>) {
    let object: Value = serde_json::from_str(object).expect("the bench's own objects are JSON");
    let spec = object.pointer("/spec/template/spec").unwrap_or(&object["spec"]).clone();
    let mut roots = Map::new();
    roots.insert("metadata".to_owned(), object["metadata"].clone());
    roots.insert("securityContext".to_owned(), spec.get("securityContext").cloned().unwrap_or_else(|| json!({})));
    let containers = ["containers", "initContainers", "ephemeralContainers"].map(|key| spec.get(key).cloned());
    let containers = containers.into_iter().flatten().filter_map(|list| list.as_array().cloned()).flatten();
    roots.insert("spec".to_owned(), spec.clone());
    roots.insert("object".to_owned(), object);
    let per_container = containers.map(|container| {
        let mut roots = roots.clone();
        roots.insert(
            "image".to_owned(),
            image(container["image"].as_str().expect("the bench's containers have images")),
        );
        roots.insert("container".to_owned(), container);
        Value::Object(roots)
    });
    (Value::Object(roots.clone()), per_container.collect())
}

fn image(reference: &str) -> Value {
    let image = Image(reference);
    let mut parts = json!({"registry": image.registry(), "name": image.name()});
    for (name, part) in [("tag", image.tag()), ("sha256", image.sha256())] {
        if let Some(part) = part {
            parts[name] = json!(part);
        }
    }
    parts
}

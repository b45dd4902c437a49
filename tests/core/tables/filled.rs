//! What the API server fills in where fields are left out, from what it makes of objects that leave them out. A field is in the table if
//! it is filled in with the same value wherever it was left out: objects that differ in everything else show what depends on that.

use std::collections::BTreeMap;
use std::fs;

use portal_test_kit::{Cluster, Size, repository};
use serde_json::{Map, Value};

use super::{check, is_newest, text};

/// Fields that every object has, and that say nothing of it.
const OTHERS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Objects whose fields are filled in although they are left out as a whole: those that rules take for empty then.
const IMPLIED: [&str; 8] =
    ["spec", "template", "jobTemplate", "securityContext", "resources", "strategy", "updateStrategy", "rollingUpdate"];

/// The fields of types, and the types of kinds by `apiVersion` and `kind`, as the table has them.
struct Types<'t> {
    fields: BTreeMap<&'t str, Vec<(&'t str, &'t str)>>,
    kinds: BTreeMap<&'t str, &'t str>,
}

/// What became of fields that were left out.
type Seen = BTreeMap<String, Vec<Option<Value>>>;

#[test]
fn the_table_of_what_is_filled_in_is_what_the_api_server_fills_in() {
    let cluster = Cluster::shared(Size::Core);
    let table = fs::read_to_string(repository().join("engine/core/src/context/fields.txt")).unwrap();
    let types = Types::read(&table);
    let mut seen = Seen::new();
    let create = |dry_run: &str| -> Vec<Value> {
        let arguments = ["create", dry_run, "--output", "json", "--filename", "-"];
        let said = cluster.kubectl_with_input(&arguments, include_str!("filled.yaml")).unwrap();
        serde_json::Deserializer::from_str(&said).into_iter().map(Result::unwrap).collect()
    };
    // The one is what is sent, the other what the API server makes of it.
    let (sent, made) = (create("--dry-run=client"), create("--dry-run=server"));
    assert_eq!(sent.len(), made.len());
    for (sent, made) in sent.iter().zip(&made) {
        let kind = format!("{} {}", text(&sent["apiVersion"]), text(&sent["kind"]));
        types.compare(types.kinds[&*kind], sent, made, &mut seen);
    }
    let mut lines = String::new();
    for (field, values) in seen {
        if let Some(value) = values[0].clone().filter(|_| values.iter().all(|value| *value == values[0])) {
            lines.push_str(&format!("{field} {value}\n"));
        }
    }
    if is_newest() {
        check("engine/core/src/context/filled.txt", &lines);
    }
}

impl<'t> Types<'t> {
    fn read(table: &'t str) -> Types<'t> {
        let (mut fields, mut kinds) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        let mut owner = "";
        for line in table.lines() {
            if let Some((kind, name)) = line.split_once(" = ") {
                kinds.insert(kind, name);
            } else if let Some((field, shape)) = line.trim_start().split_once(' ') {
                fields.entry(owner).or_default().push((field.trim_end_matches('!'), shape));
            } else {
                owner = line;
            }
        }
        Types { fields, kinds }
    }

    fn compare(&self, name: &str, sent: &Value, made: &Value, seen: &mut Seen) {
        for (field, shape) in self.fields.get(name).into_iter().flatten().filter(|(field, _)| !OTHERS.contains(field)) {
            let (sent, made) = (&sent[field], &made[field]);
            let element = shape.strip_prefix('[').and_then(|shape| shape.strip_suffix(']'));
            if let Some(element) = element {
                let pairs = sent.as_array().into_iter().flatten().zip(made.as_array().into_iter().flatten());
                pairs.for_each(|(sent, made)| self.compare(element, sent, made, seen));
            } else if self.fields.contains_key(shape) {
                let value = Some(made.clone()).filter(|made| made.as_object().is_some_and(Map::is_empty));
                if sent.is_null() {
                    seen.entry(format!("{name}.{field}")).or_default().push(value);
                }
                if IMPLIED.contains(field) || sent.is_object() {
                    let none = Value::Object(Map::new());
                    self.compare(shape, if sent.is_object() { sent } else { &none }, made, seen);
                }
            } else if sent.is_null() && ["text", "int", "bool"].contains(&shape.split('(').next().unwrap_or_default()) {
                let value = Some(made.clone()).filter(|value| !value.is_null() && value.as_str() != Some(""));
                seen.entry(format!("{name}.{field}")).or_default().push(value);
            }
        }
    }
}

//! The managed fields of an object, as the API server keeps them: a tree of who set what, half of a pod's size.

use serde_json::{Map, Value, json};

/// An entry that owns these parts of an object.
pub(super) fn entry(manager: &str, time: &str, subresource: Option<&str>, owned: &Value) -> Value {
    let mut entry = json!({
        "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields(owned, false), "manager": manager,
        "operation": "Update", "time": time,
    });
    if let Some(subresource) = subresource {
        entry["subresource"] = json!(subresource);
    }
    entry
}

fn fields(value: &Value, with_self: bool) -> Value {
    let mut tree = Map::new();
    match value {
        Value::Object(members) => {
            tree.extend(members.iter().map(|(key, member)| (format!("f:{key}"), fields(member, true))));
        }
        Value::Array(elements) => {
            // What admission adds for the service account is nobody's.
            let elements = elements.iter().filter(|element| !element["name"].to_string().contains("kube-api-access"));
            tree.extend(elements.filter_map(|element| Some((key(element)?, fields(element, true)))));
        }
        _ => {}
    }
    if with_self && !tree.is_empty() {
        tree.insert(".".to_owned(), json!({}));
    }
    Value::Object(tree)
}

/// Elements of most lists of Kubernetes are known by one of these fields. Other lists are owned as a whole.
fn key(element: &Value) -> Option<String> {
    let by =
        ["uid", "mountPath", "containerPort", "name", "type", "ip"].into_iter().find(|by| element.get(by).is_some())?;
    Some(format!("k:{}", json!({by: element[by]})))
}

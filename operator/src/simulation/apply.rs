//! Server-side apply, as far as the operator's objects need it: who owns which fields, what is merged, and what goes.

use serde_json::{Map, Value, json};

use crate::names::MANAGER;

/// Maps that are one value to server-side apply.
const ATOMIC: [&str; 7] =
    ["nodeSelector", "selector", "labelSelector", "namespaceSelector", "objectSelector", "podSelector", "fieldRef"];

/// By which fields the elements of a list are told apart. None for a list that is one value.
fn keys_of(name: &str, element: &Value) -> Option<&'static [&'static str]> {
    Some(match name {
        "containers" | "env" | "volumes" | "imagePullSecrets" | "webhooks" | "matchConditions" | "groups" => &["name"],
        "ports" if element.get("containerPort").is_some() => &["containerPort", "protocol"],
        "ports" => &["port", "protocol"],
        "volumeMounts" => &["mountPath"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        "ownerReferences" => &["uid"],
        _ => return None,
    })
}

/// The name of an element in `fieldsV1`.
fn element_name(keys: &[&str], element: &Value) -> String {
    let fields: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), element[*key].clone())).collect();
    format!("k:{}", Value::Object(fields))
}

/// The fields of an object that is applied, as `fieldsV1` tells them.
pub(super) fn fields_of(object: &Value) -> Value {
    let mut said = object.clone();
    let fields = said.as_object_mut().expect("an object");
    fields.retain(|name, _| !["apiVersion", "kind"].contains(&name.as_str()));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !["name", "namespace"].contains(&name.as_str()));
    }
    fields_in("", &said)
}

fn fields_in(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) if !ATOMIC.contains(&name) => {
            fields.iter().map(|(name, value)| (format!("f:{name}"), fields_in(name, value))).collect()
        }
        Value::Array(elements) => match elements.first().and_then(|first| keys_of(name, first)) {
            Some(keys) => {
                let told = elements.iter().map(|element| {
                    let mut fields = fields_in("", element);
                    fields["."] = json!({});
                    (element_name(keys, element), fields)
                });
                told.collect()
            }
            None => json!({}),
        },
        _ => json!({}),
    }
}

/// The fields that the operator owns.
pub(super) fn owned(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|entry| entry["manager"] == MANAGER)
        .map(|entry| entry["fieldsV1"].clone())
        .next()
        .unwrap_or(json!({}))
}

pub(super) fn set_owned(object: &mut Value, fields: Value) {
    object["metadata"]["managedFields"] = json!([{ "manager": MANAGER, "operation": "Apply", "fieldsV1": fields }]);
}

/// What is there after something was applied with force.
pub(super) fn apply(found: &Value, wanted: &Value) -> Value {
    let (before, after) = (owned(found), fields_of(wanted));
    let mut result = found.clone();
    remove("", &mut result, &before, &after);
    merge("", &mut result, wanted);
    set_owned(&mut result, after);
    result
}

/// Removes what was owned and is not said any more.
fn remove(name: &str, value: &mut Value, before: &Value, after: &Value) {
    for (field, inner) in before.as_object().into_iter().flatten() {
        let is_leaf = inner.as_object().is_none_or(Map::is_empty);
        match (field.strip_prefix("f:"), value.as_object_mut()) {
            (Some(field_name), Some(fields)) => {
                let Some(found) = fields.get_mut(field_name) else { continue };
                match after.get(field) {
                    Some(after) => remove(field_name, found, inner, after),
                    None if is_leaf => drop(fields.remove(field_name)),
                    None => {
                        remove(field_name, found, inner, &json!({}));
                        if found.as_object().is_some_and(Map::is_empty) || found.as_array().is_some_and(Vec::is_empty) {
                            fields.remove(field_name);
                        }
                    }
                }
            }
            _ => {
                let Some(elements) = value.as_array_mut().filter(|_| field.starts_with("k:")) else { continue };
                let place = elements.iter().position(|element| {
                    keys_of(name, element).is_some_and(|keys| element_name(keys, element) == *field)
                });
                match (place, after.get(field)) {
                    (Some(place), Some(after)) => remove("", &mut elements[place], inner, after),
                    (Some(place), None) => drop(elements.remove(place)),
                    (None, _) => {}
                }
            }
        }
    }
}

fn merge(name: &str, found: &mut Value, wanted: &Value) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) if !ATOMIC.contains(&name) => {
            for (name, wanted) in wanted {
                merge(name, found.entry(name.clone()).or_insert(Value::Null), wanted);
            }
        }
        (Value::Array(found), Value::Array(wanted)) => {
            let Some(keys) = wanted.first().and_then(|first| keys_of(name, first)) else {
                *found = wanted.clone();
                return;
            };
            let mut others = std::mem::take(found);
            for wanted in wanted {
                let is_same = |other: &Value| keys.iter().all(|key| other[*key] == wanted[*key]);
                let mut element = match others.iter().position(is_same) {
                    Some(place) => others.remove(place),
                    None => json!({}),
                };
                merge("", &mut element, wanted);
                found.push(element);
            }
            found.extend(others);
        }
        (found, wanted) => *found = wanted.clone(),
    }
}

/// What the operator owns after somebody else has written: what they changed is theirs.
pub(super) fn left_of(name: &str, owned: &Value, before: &Value, after: &Value) -> Value {
    let Some(fields) = owned.as_object().filter(|fields| !fields.is_empty()) else { return owned.clone() };
    let mut left = Map::new();
    for (field, inner) in fields {
        let (found, found_after) = match field.strip_prefix("f:") {
            Some(name) => (before.get(name), after.get(name)),
            None => {
                let element = |value: &Value| {
                    let fits = |element: &&Value| {
                        keys_of(name, element).is_some_and(|keys| element_name(keys, element) == *field)
                    };
                    value.as_array().and_then(|elements| elements.iter().find(fits).cloned())
                };
                let (was, is) = (element(before), element(after));
                if field == "." || (was.is_some() && is.is_some()) {
                    let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
                    left.insert(field.clone(), left_of("", inner, &was, &is));
                }
                continue;
            }
        };
        let is_leaf = inner.as_object().is_none_or(Map::is_empty);
        match (found, found_after) {
            (Some(was), Some(is)) if !is_leaf => {
                let name = field.trim_start_matches("f:");
                left.insert(field.clone(), left_of(name, inner, was, is));
            }
            (Some(was), Some(is)) if was == is => drop(left.insert(field.clone(), inner.clone())),
            _ => {}
        }
    }
    Value::Object(left)
}

/// What the API server fills in.
pub(super) fn fill_in(kind: crate::object::Kind, value: &mut Value) {
    use crate::object::Kind;
    let default = |value: &mut Value, name: &str, filled: Value| {
        if value[name].is_null() {
            value[name] = filled;
        }
    };
    match kind {
        Kind::Deployment => {
            default(&mut value["spec"], "progressDeadlineSeconds", json!(600));
            default(&mut value["spec"], "revisionHistoryLimit", json!(10));
            let pod = &mut value["spec"]["template"]["spec"];
            default(pod, "restartPolicy", json!("Always"));
            default(pod, "schedulerName", json!("default-scheduler"));
            default(pod, "dnsPolicy", json!("ClusterFirst"));
            let account = pod["serviceAccountName"].clone();
            pod["serviceAccount"] = account;
            for container in pod["containers"].as_array_mut().into_iter().flatten() {
                default(container, "terminationMessagePath", json!("/dev/termination-log"));
                for probe in ["readinessProbe", "livenessProbe"] {
                    default(&mut container[probe], "successThreshold", json!(1));
                    default(&mut container[probe]["httpGet"], "scheme", json!("HTTP"));
                }
                for variable in container["env"].as_array_mut().into_iter().flatten() {
                    default(&mut variable["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
                }
            }
            for volume in pod["volumes"].as_array_mut().into_iter().flatten() {
                for source in ["secret", "configMap", "projected"] {
                    if !volume[source].is_null() {
                        default(&mut volume[source], "defaultMode", json!(420));
                    } else {
                        volume.as_object_mut().expect("an object").remove(source);
                    }
                }
            }
        }
        // As the definition says: nobody has seen a new one.
        Kind::PortalInstance => default(value, "status", json!({ "observedGeneration": -1 })),
        Kind::Service => {
            let spec = &mut value["spec"];
            default(spec, "clusterIP", json!("10.0.0.1"));
            default(spec, "sessionAffinity", json!("None"));
            default(spec, "internalTrafficPolicy", json!("Cluster"));
            default(spec, "ipFamilyPolicy", json!("SingleStack"));
        }
        Kind::ValidatingWebhookConfiguration => {
            for entry in value["webhooks"].as_array_mut().into_iter().flatten() {
                for (name, filled) in [
                    ("failurePolicy", json!("Fail")),
                    ("matchPolicy", json!("Equivalent")),
                    ("namespaceSelector", json!({})),
                    ("objectSelector", json!({})),
                    ("timeoutSeconds", json!(10)),
                ] {
                    default(entry, name, filled);
                }
            }
        }
        _ => {}
    }
}

//! AdmissionReviews: the one that webhooks are raced with, and those that somebody makes to hurt.

use serde_json::{Value, json};

use crate::objects::pods;

/// A review that somebody made to hurt.
pub struct Hostile {
    /// What is in it.
    pub name: &'static str,
    /// The whole body.
    pub body: String,
}

/// The largest body that the engine takes, and a little less.
const LARGEST: usize = (7 << 20) - 1024;

/// Lists and objects within each other that the API server takes, and a little less.
const DEEPEST: usize = 9_900;

/// A pod that the strictest rules let in, as a client creates it.
pub fn created_pod() -> Value {
    let mut pod: Value = pods(1).next().and_then(|pod| serde_json::from_str(&pod).ok()).expect("it is JSON");
    for list in ["containers", "initContainers"] {
        let containers = pod["spec"][list].as_array_mut().expect("it has both");
        for container in containers {
            container["securityContext"]["allowPrivilegeEscalation"] = json!(false);
            container["securityContext"]["capabilities"] = json!({"drop": ["ALL"]});
        }
    }
    let proxy = &mut pod["spec"]["containers"][1];
    proxy["args"] =
        json!(["--config-path", "/etc/envoy/envoy.yaml", "--service-cluster", "checkout", "--log-level", "warning"]);
    proxy["env"] = ["metadata.name", "metadata.namespace", "spec.serviceAccountName", "status.podIP"]
        .map(|path| {
            let name = path.replace('.', "_").to_uppercase();
            json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
        })
        .into();
    proxy["ports"] = json!([
        {"containerPort": 15001, "name": "proxy", "protocol": "TCP"}, {"containerPort": 15021, "name": "health", "protocol": "TCP"},
    ]);
    proxy["readinessProbe"] = json!({
        "failureThreshold": 30, "httpGet": {"path": "/healthz/ready", "port": 15021, "scheme": "HTTP"},
        "initialDelaySeconds": 1, "periodSeconds": 2, "successThreshold": 1, "timeoutSeconds": 3,
    });
    for name in ["serviceAccount", "serviceAccountName"] {
        pod["spec"][name] = json!("default");
    }
    remove(&mut pod, &["status"]);
    remove(&mut pod["spec"], &["nodeName"]);
    remove(
        &mut pod["metadata"],
        &["creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "uid"],
    );
    pod
}

/// The review of that pod, as the API server sends it.
pub fn review() -> Value {
    let made: Value = pods(1).next().and_then(|pod| serde_json::from_str(&pod).ok()).expect("it is JSON");
    let mut pod = created_pod();
    for name in ["creationTimestamp", "generation", "uid"] {
        pod["metadata"][name] = made["metadata"][name].clone();
    }
    pod["metadata"]["namespace"] = json!("default");
    // Who made it. Nothing is running yet that the others would tell of.
    pod["metadata"]["managedFields"] = json!([made["metadata"]["managedFields"][0]]);
    pod["status"] = json!({"phase": "Pending", "qosClass": "Burstable"});
    let name = pod["metadata"]["name"].clone();
    envelope("CREATE", ("Pod", "pods"), &name, &pod, &Value::Null)
}

/// What somebody may send who wants to take memory: as large as the engine takes, each small thing as often as it fits.
pub fn hostile() -> Vec<Hostile> {
    let texts = (0..).map(|number: u64| format!("\"{number:x}\""));
    let keys = (0..).map(|number: u64| format!("\"{number:x}\":0"));
    let values = (0..).map(|number: u64| format!("\"{number:x}\":\"\""));
    let named = (0..).map(|number: u64| format!(r#"{{"name":"c{number:x}"}}"#));
    // As the API server sends containers of which nobody has said more than their name and image.
    let filled = (0..).map(|number: u64| {
        format!(
            r#"{{"name":"c{number:x}","image":"a","resources":{{}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}}"#
        )
    });
    let again = |text: &'static str| std::iter::repeat_with(move || text.to_owned());
    let deep = format!("{}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
    let deep = std::iter::repeat_with(move || deep.clone());
    let pod = ("Pod", "pods");
    [
        ("small objects", update(pod, "spec", list("x", again(r#"{"a":1}"#)))),
        ("small objects with text", update(pod, "spec", list("x", again(r#"{"name":"a"}"#)))),
        ("numbers", update(pod, "spec", list("x", again("1")))),
        ("empty lists", update(pod, "spec", list("x", again("[]")))),
        ("texts, each another", update(pod, "spec", list("x", texts))),
        ("keys, each another", update(pod, "spec", entries(keys))),
        ("lists in lists", update(pod, "spec", list("x", deep))),
        ("containers with a name", update(pod, "spec", list("containers", named))),
        ("containers as the API server fills them", update(pod, "spec", list("containers", filled))),
        ("a Secret with many keys", update(("Secret", "secrets"), "data", entries(values))),
    ]
    .map(|(name, body)| Hostile { name, body })
    .into()
}

/// What is repeated, and what is around it.
struct Repeated<I> {
    before: String,
    elements: I,
    after: &'static str,
}

/// A list of some elements, as the one field of an object.
fn list<I: Iterator<Item = String>>(name: &str, elements: I) -> Repeated<I> {
    Repeated { before: format!("{{\"{name}\":["), elements, after: "]}" }
}

/// An object of some entries.
fn entries<I: Iterator<Item = String>>(elements: I) -> Repeated<I> {
    Repeated { before: "{".to_owned(), elements, after: "}" }
}

/// An update of an object, in which both its versions have as much of something as fits.
fn update(kind: (&str, &str), field: &str, repeated: Repeated<impl Iterator<Item = String>>) -> String {
    const PLACE: &str = "\"PLACE\"";
    // With what has to be left out before rules see the object.
    let object = json!({
        "apiVersion": "v1", "kind": kind.0,
        "metadata": {"name": "hostile", "namespace": "default", "managedFields": [{"manager": "kubectl"}]},
        field: "PLACE",
    });
    let around = envelope("UPDATE", kind, &json!("hostile"), &object, &object).to_string();
    let room = (LARGEST - around.len()) / 2;
    let Repeated { before: mut text, elements, after } = repeated;
    let empty = text.len();
    for element in elements {
        if text.len() + element.len() + 1 + after.len() > room {
            break;
        }
        if text.len() > empty {
            text.push(',');
        }
        text.push_str(&element);
    }
    text.push_str(after);
    around.replace(PLACE, &text)
}

/// A review about an object of a kind and its resource.
fn envelope(
    operation: &str,
    (kind, resource): (&str, &str),
    name: &Value,
    object: &Value,
    old_object: &Value,
) -> Value {
    let kind = json!({"group": "", "version": "v1", "kind": kind});
    let resource = json!({"group": "", "version": "v1", "resource": resource});
    let options = if operation == "CREATE" { "CreateOptions" } else { "UpdateOptions" };
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": name, "namespace": "default", "operation": operation,
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "5f1d7a52-93c8-4b0e-a6d4-0c2be1f7a983",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id": ["JTI=7d0c1b9e-2f5a-4c38-8e61-b4a9d3f20c75"]},
            },
            "object": object, "oldObject": old_object, "dryRun": false,
            "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

fn remove(object: &mut Value, names: &[&str]) {
    let object = object.as_object_mut().expect("it is an object");
    object.retain(|name, _| !names.contains(&&**name));
}

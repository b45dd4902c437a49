//! Objects that violated rules before the rules were there: work on them goes on, and nobody makes them worse.

use serde_json::{Value, json};

use super::judging::Guarded;
use super::{config_map, pod};
use crate::core::eventually;

const RULES: &str = r#"
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
message: "container {{ container.name }} is privileged"
---
name: latest
match: {gvk: [{kind: Pod}]}
rule: container.image.tag == "latest"
---
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
---
name: memory
match: {gvk: [{kind: Pod}]}
rule: container.resources.limits.memory > "1Gi"
---
name: locked
match: {gvk: [{kind: ConfigMap}]}
rule: object.data.locked == "yes" && request.userInfo.username != "admin"
message: "{{ request.userInfo.username }} may not touch it"
"#;

/// What is told about a container that was privileged before.
const AS_BEFORE: &str = "Warning: privileged, as before this change: container app is privileged";

/// A cluster in which objects violate rules that come after them.
fn guarded() -> Guarded {
    let cluster = Guarded::prepare(&[]);
    let privileged = json!([{"name": "app", "image": "acme.io/app:1", "securityContext": {"privileged": true}}]);
    let mut ending = pod("ending", json!({"containers": privileged}));
    ending["metadata"]["finalizers"] = json!(["acme.io/hold"]);
    let sized = json!({"limits": {"memory": "256Mi"}, "requests": {"memory": "128Mi"}});
    let sized = pod("sized", json!({"containers": [{"name": "app", "image": "acme.io/app:1", "resources": sized}]}));
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": privileged},
        }},
    });
    let mut locked = config_map("locked");
    locked["data"] = json!({"locked": "yes"});
    for object in [pod("old", json!({"containers": privileged})), ending, sized, deployment, locked] {
        let create = ["--namespace", "shop", "create", "--filename", "-"];
        cluster.kubectl_with_input(&create, &object.to_string()).unwrap();
    }
    let guarded = Guarded::guard(cluster, RULES, &[], &[]);
    guarded.wait_until_refused("shop");
    guarded
}

/// `kubectl patch` of an object in `shop`.
#[track_caller]
fn patch(guarded: &Guarded, object: &str, flags: &[&str], patch: &Value, is_allowed: bool, said: &[&str]) {
    let patch = patch.to_string();
    let arguments = [&["--namespace", "shop", "patch", object, "--patch", &patch][..], flags].concat();
    guarded.check(&arguments, "", is_allowed, said);
}

#[test]
fn what_violates_already_can_be_worked_on_and_not_made_worse() {
    let guarded = guarded();
    containers_are_told_apart(&guarded);
    who_asks_is_never_what_it_was_before(&guarded);
    an_object_that_is_being_deleted_is_no_exception(&guarded);
}

fn containers_are_told_apart(guarded: &Guarded) {
    let debug = ["--namespace", "shop", "debug", "old", "--image=acme.io/debug:1"];
    let debug = |flags: &[&'static str]| [&debug[..], flags].concat();
    guarded.check(&debug(&["--container=look"]), "", true, &[AS_BEFORE]);
    let refused = ["privileged: container break is privileged", "(Forbidden)"];
    guarded.check(&debug(&["--container=break", "--profile=sysadmin"]), "", false, &refused);
    let latest = ["--namespace", "shop", "debug", "old", "--image=acme.io/debug", "--container=late"];
    guarded.check(&latest, "", false, &["latest: container late: image.tag is \"latest\""]);

    // Another container in what makes pods, which runs beside the one that violates.
    let sidecar = |name: &str, context: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": "acme.io/side:1", "securityContext": context}]}}}});
    patch(guarded, "deployment/web", &[], &sidecar("side", json!({})), true, &[AS_BEFORE]);
    let refused = ["privileged: container bad is privileged"];
    patch(guarded, "deployment/web", &[], &sidecar("bad", json!({"privileged": true})), false, &refused);
    // It becomes good, and cannot go back.
    patch(guarded, "deployment/web", &[], &sidecar("app", json!({"privileged": false})), true, &[]);
    let refused = ["privileged: container app is privileged"];
    patch(guarded, "deployment/web", &[], &sidecar("app", json!({"privileged": true})), false, &refused);

    // A pod of which more is asked while it is there.
    let resize =
        |memory: &str| json!({"spec": {"containers": [{"name": "app", "resources": {"limits": {"memory": memory}}}]}});
    patch(guarded, "pod/sized", &["--subresource=resize"], &resize("512Mi"), true, &[]);
    let refused = ["memory: container app: resources.limits.memory is \"2Gi\"", "(Forbidden)"];
    patch(guarded, "pod/sized", &["--subresource=resize"], &resize("2Gi"), false, &refused);
}

fn who_asks_is_never_what_it_was_before(guarded: &Guarded) {
    let label = |user: &'static str| {
        let label = json!({"metadata": {"labels": {"by": user}}});
        let flags = ["--as", user, "--as-group=system:masters"];
        (label, if user == "admin" { Vec::new() } else { flags.to_vec() })
    };
    let (as_jane, flags) = label("jane");
    patch(guarded, "configmap/locked", &flags, &as_jane, false, &["locked: jane may not touch it"]);
    let (as_admin, flags) = label("admin");
    patch(guarded, "configmap/locked", &flags, &as_admin, true, &[]);
}

/// What keeps it can go, and nothing gets worse meanwhile.
fn an_object_that_is_being_deleted_is_no_exception(guarded: &Guarded) {
    guarded.check(&["--namespace", "shop", "delete", "pod", "ending", "--wait=false"], "", true, &[]);
    let image = |tag: &str| json!({"spec": {"containers": [{"name": "app", "image": format!("acme.io/app{tag}")}]}});
    patch(guarded, "pod/ending", &[], &image(""), false, &["latest: container app: image.tag is \"latest\""]);
    patch(guarded, "pod/ending", &[], &json!({"metadata": {"labels": {"a": "b"}}}), true, &[AS_BEFORE]);
    let free = json!({"metadata": {"finalizers": null}});
    patch(guarded, "pod/ending", &["--type=merge"], &free, true, &[AS_BEFORE]);
    eventually("it is gone", || guarded.cluster.kubectl(&["--namespace", "shop", "get", "pod", "ending"]).is_err());
}

//! What a real API server takes and sends on: the deepest and the largest objects, repeated keys, and both failure policies.

use serde_json::{Value, json};

use super::judging::{Files, Guarded};
use super::{config_map, pod};
use crate::core::eventually;
use crate::engine::definition;

const RULES: &str = r#"
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
---
name: large
match: {gvk: [{group: acme.io, kind: Widget}]}
rule: object.spec.size > 3
---
name: number
match: {gvk: [{kind: ConfigMap}], names: [number]}
rule: int(object.data.number ?? "0") > 3
"#;

/// Sends a body as it is.
#[track_caller]
fn send(guarded: &Guarded, path: &str, body: &str, is_allowed: bool, said: &[&str]) {
    guarded.check(&["create", "--raw", path, "--filename", "-"], body, is_allowed, said);
}

const WIDGETS: &str = "/apis/acme.io/v1/namespaces/shop/widgets";
const PODS: &str = "/api/v1/namespaces/shop/pods";

#[test]
fn whatever_the_api_server_takes_is_judged_and_both_failure_policies_do_what_they_say() {
    let definitions = [definition("widgets", "Widget")];
    let guarded = Guarded::guard(Guarded::prepare(&definitions), RULES, &definitions, &[]);
    guarded.wait_until_refused("shop");
    whatever_the_api_server_takes_is_judged(&guarded);
    both_failure_policies_do_what_they_say(guarded);
}

fn whatever_the_api_server_takes_is_judged(guarded: &Guarded) {
    let widget = |name: &str, size: u8, more: &str| {
        format!(
            r#"{{"apiVersion":"acme.io/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"size":{size},"more":{more}}}}}"#
        )
    };
    let dry = format!("{WIDGETS}?dryRun=All");
    // As deep as it takes: the object, its spec, and what is in it.
    for levels in [128, 1_000, 9_900] {
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        send(guarded, &dry, &widget("deep", 1, &nested), true, &[]);
        send(guarded, &dry, &widget("deep", 5, &nested), false, &["large: spec.size is 5"]);
    }
    // As large as it takes, and beside a former self as large as it stores.
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    send(guarded, &dry, &widget("large", 1, &text(3_000_000)), true, &[]);
    send(guarded, &dry, &widget("large", 5, &text(3_000_000)), false, &["large: spec.size is 5"]);
    send(guarded, WIDGETS, &widget("stored", 1, &text(1_000_000)), true, &[]);
    let version = ["--namespace=shop", "get", "widget", "stored", "--output=jsonpath={.metadata.resourceVersion}"];
    let stored = format!("stored\",\"resourceVersion\":\"{}", guarded.cluster.kubectl(&version).unwrap());
    let update = ["replace", "--raw", &format!("{WIDGETS}/stored?dryRun=All"), "--filename", "-"];
    guarded.check(&update, &widget(&stored, 1, &text(3_000_000)), true, &[]);
    guarded.check(&update, &widget(&stored, 5, &text(3_000_000)), false, &["large: spec.size is 5"]);

    // A key that comes twice: what is judged is what would be stored.
    let twice = |first: &str, last: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"twice"}},"spec":{{"hostNetwork":{first},"containers":[{{"name":"app","image":"acme.io/app:1"}}],"hostNetwork":{last}}}}}"#
        )
    };
    let warned = "duplicate field \"spec.hostNetwork\"";
    send(guarded, PODS, &twice("false", "true"), false, &["host-network: spec.hostNetwork is true"]);
    send(guarded, PODS, &twice("true", "false"), true, &[warned]);
    let stored = guarded.cluster.kubectl(&["--namespace=shop", "get", "pod", "twice", "--output=json"]).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_ne!(stored["spec"]["hostNetwork"], true);
    // Two specs are laid over each other by the API server, and judged so.
    let specs = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"two"},"spec":{"hostNetwork":true},"spec":{"containers":[{"name":"app","image":"acme.io/app:1"}]}}"#;
    send(guarded, PODS, specs, false, &["host-network: spec.hostNetwork is true"]);
    // In what no type is known of, the last one counts there too.
    let size = |first: u8, last: u8| widget("sizes", first, &format!("1,\"size\":{last}"));
    send(guarded, &dry, &size(1, 5), false, &["large: spec.size is 5"]);
    send(guarded, &dry, &size(5, 1), true, &["duplicate field"]);
    assert_eq!(guarded.engine().get("/readyz").unwrap().0, 200);
}

fn both_failure_policies_do_what_they_say(guarded: Guarded) {
    let mut number = config_map("number");
    number["data"] = json!({"number": "many"});
    let fails = "number could not be evaluated: 1:1: \"many\" is not an int";
    let (good, bad) = (pod("good", json!({})), pod("bad", json!({"hostNetwork": true})));
    guarded.create("shop", &number, false, &[fails]);

    // The engine fails open: what it cannot evaluate is let in, what it can is judged.
    let again = |guarded: Guarded, change: &dyn Fn(&Files), is_ready: bool, flags: &[&str]| {
        let Guarded { cluster, judging } = guarded;
        let (files, port) = judging.stop();
        change(&files);
        let kubeconfig = cluster.kubeconfig();
        let judging = match is_ready {
            true => files.judge(Some(port), &kubeconfig, flags),
            false => files.judge_soon(Some(port), &kubeconfig, flags),
        };
        Guarded { cluster, judging }
    };
    let guarded = again(guarded, &|_| {}, true, &["--fail-open"]);
    guarded.create("shop", &number, true, &[&format!("Warning: {fails}")]);
    guarded.create("shop", &bad, false, &["host-network: spec.hostNetwork is true"]);

    // A replica without its rules gives no answer, and the API server tells why.
    let hide = |files: &Files| std::fs::rename(files.path("rules"), files.path("later")).unwrap();
    let guarded = again(guarded, &hide, false, &["--fail-open"]);
    let not_loaded = "this replica has not loaded its rules yet";
    eventually("it listens", || {
        let create = ["--namespace=shop", "create", "--filename", "-"];
        let output = guarded.kubectl(&create, &good.to_string());
        assert!(!output.status.success(), "nothing is let in unjudged");
        String::from_utf8_lossy(&output.stderr).contains(not_loaded)
    });
    // The API server fails open: it lets in what nobody answers for.
    guarded.configure_for("later", &["--fail-open"]);
    eventually("the configuration fails open", || {
        guarded.kubectl(&["--namespace=shop", "create", "--filename", "-"], &good.to_string()).status.success()
    });
    // A refusal is an answer.
    let show = |files: &Files| std::fs::rename(files.path("later"), files.path("rules")).unwrap();
    let guarded = again(guarded, &show, true, &[]);
    guarded.create("shop", &bad, false, &["host-network: spec.hostNetwork is true"]);
    let mut other = number.clone();
    other["metadata"]["name"] = json!("number");
    guarded.create("bank", &other, false, &[fails]);
    // Nobody is there at all.
    let Guarded { cluster, judging } = guarded;
    judging.stop();
    cluster.kubectl_with_input(&["--namespace=bank", "create", "--filename", "-"], &bad.to_string()).unwrap();
}

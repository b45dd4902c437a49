//! Which requests come to the engine, and in which form: seen from the API server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::judging::Guarded;
use super::pod;
use crate::core::eventually;
use crate::engine::definition;

const RULES: &str = r#"
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
---
name: names
match: {gvk: [{kind: Pod}], names: [batch-*]}
rule: container.image.tag == "latest"
message: "{{ metadata.name startsWith 'batch-' }} {{ len(metadata.name) > len('batch-') }}"
---
name: of-one-version
match: {gvk: [{group: acme.io, version: v1, kind: Widget}]}
rule: object.apiVersion == "acme.io/v1" && object.spec.size > 3
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: shop}
spec:
  match: {gvk: [{kind: Service}]}
  rule: object.spec.type == "NodePort"
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own-pods, namespace: shop}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: spec.hostPID
"#;

fn service(name: &str, kind: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}]}})
}

/// A kind that is served in two versions, of which the second is stored.
fn widgets() -> Value {
    let mut widgets = definition("widgets", "Widget");
    let mut second = widgets["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    widgets["spec"]["versions"][0]["storage"] = json!(false);
    widgets["spec"]["versions"].as_array_mut().unwrap().push(second);
    widgets
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_come_by_their_kind_version_and_namespace_and_no_other_way() {
    let definitions = [widgets()];
    let guarded = Guarded::guard(Guarded::prepare(&definitions), RULES, &definitions, &[]);
    guarded.wait_until_refused("shop");

    // A rule for one version sees what is written in another: the API server converts it.
    let widget = |version: &str, size: i64| json!({"apiVersion": format!("acme.io/{version}"), "kind": "Widget", "metadata": {"name": format!("{version}-{size}")}, "spec": {"size": size}});
    for version in ["v1", "v2"] {
        guarded.create("shop", &widget(version, 1), true, &[]);
        guarded.create("shop", &widget(version, 5), false, &["of-one-version: "]);
        let grow = [
            "--namespace",
            "shop",
            "patch",
            &format!("widgets.{version}.acme.io/{version}-1"),
            "--type=merge",
            "--patch",
            r#"{"spec":{"size":9}}"#,
        ];
        guarded.check(&grow, "", false, &["of-one-version: "]);
    }

    // A name that the API server makes up is there before rules are asked.
    let mut batch = pod("", json!({"containers": [{"name": "app", "image": "acme.io/app"}]}));
    batch["metadata"] = json!({"generateName": "batch-"});
    guarded.create("shop", &batch, false, &["names: true true"]);
    batch["metadata"] = json!({"generateName": "other-"});
    guarded.create("shop", &batch, true, &[]);

    // A rule of a namespace is for requests of that namespace.
    guarded.create("shop", &service("one", "NodePort"), false, &["shop/own: spec.type is \"NodePort\""]);
    guarded.create("bank", &service("one", "NodePort"), true, &[]);
    guarded.create("shop", &pod("pid", json!({"hostPID": true})), false, &["shop/own-pods: spec.hostPID is true"]);
    guarded.create("bank", &pod("pid", json!({"hostPID": true})), true, &[]);
    // Both ask at once where both are for it; the API server shows one of them.
    let both = pod("both", json!({"hostPID": true, "hostNetwork": true}));
    guarded.create("shop", &both, false, &["is true", "(Forbidden)"]);

    // In the configuration: entries for rules of namespaces select those and nothing else.
    let configuration: Value = serde_json::from_str(
        &guarded
            .cluster
            .kubectl(&["get", "validatingwebhookconfiguration", "portal-default", "--output=json"])
            .unwrap(),
    )
    .unwrap();
    let entries = configuration["webhooks"].as_array().unwrap();
    let begins = |entry: &Value, with: &str| entry["name"].as_str().unwrap().starts_with(with);
    let for_rules = entries.iter().filter(|entry| !begins(entry, "own-rules"));
    let (namespaced, others): (Vec<&Value>, Vec<&Value>) =
        for_rules.partition(|entry| begins(entry, "namespace-rules"));
    assert_eq!((namespaced.len(), others.len()), (1, 2), "{configuration:#}");
    let selector =
        json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}]});
    assert_eq!(namespaced[0]["namespaceSelector"], selector);
    let resources = |entries: &[&Value]| -> BTreeSet<String> {
        let rules = entries.iter().flat_map(|entry| entry["rules"].as_array().unwrap());
        rules
            .flat_map(|rule| rule["resources"].as_array().unwrap())
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    assert!(resources(&namespaced).contains("services") && !resources(&others).contains("services"));

    // In the API server's record: no entry for rules of a namespace said anything about a request of another one.
    let events = guarded.cluster.audit_events().await.unwrap();
    let answered = |namespace: &str| -> BTreeSet<String> {
        let events = events.iter().filter(|event| event.object_ref.namespace == namespace);
        events.flat_map(|event| event.annotations.keys().cloned()).filter(|key| key.contains("portal.io/")).collect()
    };
    assert_eq!(
        answered("shop"),
        [
            "namespace-rules-1.default.portal.io/denied-by",
            "rules-v1.default.portal.io/denied-by",
            "rules.default.portal.io/denied-by"
        ]
        .map(str::to_owned)
        .into()
    );
    assert_eq!(answered("bank"), BTreeSet::new());

    // With nobody there to answer, what only the rules of `shop` are about goes on elsewhere.
    let Guarded { cluster, judging } = guarded;
    judging.stop();
    let create = |namespace: &str, object: &Value| {
        cluster.kubectl_with_input(&["--namespace", namespace, "create", "--filename", "-"], &object.to_string())
    };
    let refused = |namespace: &str, object: &Value| create(namespace, object).unwrap_err().to_string();
    let unanswered = "failed calling webhook \"namespace-rules-1.default.portal.io\"";
    assert!(refused("shop", &service("two", "ClusterIP")).contains(unanswered));
    create("bank", &service("two", "ClusterIP")).unwrap();
    // What the rules of the cluster are about does not.
    assert!(refused("bank", &pod("two", json!({}))).contains("failed calling webhook \"rules.default.portal.io\""));
}

#[test]
fn a_rule_for_one_version_goes_on_when_its_kind_gets_another() {
    let first = [definition("widgets", "Widget")];
    let guarded = Guarded::guard(Guarded::prepare(&first), RULES, &first, &[]);
    guarded.wait_until_refused("shop");
    let large = |version: &str| {
        let object = json!({
            "apiVersion": format!("acme.io/{version}"), "kind": "Widget", "metadata": {"name": "large"}, "spec": {"size": 5},
        });
        let create = ["--namespace", "shop", "create", "--dry-run=server", "--filename", "-"];
        guarded.kubectl(&create, &object.to_string())
    };
    let is_refused =
        |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).contains("of-one-version: ");
    eventually("the rule refuses", || is_refused(&large("v1")));
    // The configuration stays as it was made: whoever makes it comes later than the engine, which sees the new version at once.
    crate::engine::apply(&guarded.cluster, &widgets());
    eventually("the second version is served", || {
        let output = large("v2");
        !String::from_utf8_lossy(&output.stderr).contains("no matches for kind")
    });
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_secs(3) {
        for version in ["v1", "v2"] {
            let output = large(version);
            assert!(is_refused(&output), "{version}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

//! The two kinds of rule on a real API server: what it takes, what it refuses, what it fills in, what people see.

use std::sync::OnceLock;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt as _, Resource, ResourceExt as _};
use portal_crds::{EnforcementAction, Operation, PortalClusterRule, PortalRule, RuleSpec, Severity};
use portal_test_kit::{Cluster, Size, repository};
use serde_json::{Value, json};

use super::eventually;

/// The shared cluster, with the committed definitions installed.
pub(super) fn cluster() -> &'static Cluster {
    static INSTALLED: OnceLock<&Cluster> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let cluster = Cluster::shared(Size::Core);
        let folder = repository().join("crds/yaml");
        let folder = folder.to_str().unwrap();
        cluster.kubectl(&["apply", "--filename", folder]).unwrap();
        cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "--filename", folder]).unwrap();
        eventually("the kinds are served", || cluster.kubectl(&["get", "portal,pcr,prule"]).is_ok());
        cluster
    })
}

/// The smallest rule of a kind.
fn rule<K: Resource<DynamicType = ()>>(name: &str) -> Value {
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": name },
        "spec": { "match": { "gvk": [{ "kind": "Pod" }] }, "rule": "container.securityContext.privileged == true" },
    })
}

fn cluster_rules(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &PortalClusterRule::api_resource())
}

fn rules(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &PortalRule::api_resource())
}

async fn create(api: &Api<DynamicObject>, rule: &Value) -> kube::Result<DynamicObject> {
    api.create(&PostParams::default(), &serde_json::from_value(rule.clone()).unwrap()).await
}

/// The smallest rule with one more field is refused with a message that has this in it, for each row.
async fn check_refused<K: Resource<DynamicType = ()>>(api: &Api<DynamicObject>, rows: &[(&str, Value, &str)]) {
    let mut wrong = Vec::new();
    for (field, value, expected) in rows {
        let mut rule = rule::<K>("malformed");
        rule["spec"][field] = value.clone();
        match create(api, &rule).await {
            Err(kube::Error::Api(status)) if status.code == 422 && status.message.contains(expected) => {}
            Err(error) => wrong.push(format!("{field}: {value}\n  expected: {expected}\n  but got: {error}")),
            Ok(_) => {
                api.delete("malformed", &Default::default()).await.unwrap();
                wrong.push(format!("{field}: {value}\n  expected: {expected}\n  but it was accepted"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn matching(field: &str, value: Value) -> Value {
    let mut matching = json!({ "gvk": [{ "kind": "Pod" }] });
    matching[field] = value;
    matching
}

#[tokio::test]
async fn a_malformed_rule_is_refused_with_the_way_out() {
    let api = cluster_rules(cluster().client().await);
    let action = |action: Value| json!([action]);
    let exception = |exception: Value| json!([exception]);
    let gvk = |gvk: Value| json!({ "gvk": [gvk] });
    check_refused::<PortalClusterRule>(
        &api,
        &[
            ("rule", Value::Null, "spec.rule: Required value"),
            ("rule", json!(""), "spec.rule: Invalid value"),
            ("rule", json!("x".repeat(65_537)), "spec.rule: Too long"),
            ("severity", json!("urgent"), r#"supported values: "critical", "high", "medium", "low", "info""#),
            ("enforcementAction", json!("block"), r#"supported values: "deny", "warn", "dryrun""#),
            ("mode", json!([]), "spec.mode"),
            ("mode", json!(["audit", "audit"]), "spec.mode[1]: Duplicate value"),
            ("mode", json!(["network"]), r#"supported values: "admission", "audit""#),
            ("enabled", json!("yes"), "spec.enabled: Invalid value"),
            ("message", json!("x".repeat(4097)), "spec.message: Too long"),
            ("match", Value::Null, "spec.match: Required value"),
            ("match", json!({}), "spec.match.gvk: Required value"),
            ("match", json!({ "gvk": [] }), "spec.match.gvk: Invalid value"),
            ("match", gvk(json!({ "kind": "pods" })), "write the kind as a manifest does: `Pod`, not `pods`"),
            ("match", gvk(json!({ "kind": "*" })), "name those of the core group one by one"),
            (
                "match",
                gvk(json!({ "group": "a.io", "kind": "*", "podTemplate": "spec" })),
                "name the kind that `podTemplate`",
            ),
            (
                "match",
                gvk(json!({ "group": "a.io", "kind": "A", "podTemplate": "a[0]" })),
                "names of fields with dots between",
            ),
            ("match", gvk(json!({ "kind": "Pod", "version": "apps/v1" })), "write the version alone"),
            ("match", gvk(json!({ "kind": "Pod", "group": "apps/v1" })), "`apps`, not `apps/v1`"),
            (
                "match",
                matching("operations", json!(["PATCH"])),
                r#"supported values: "CREATE", "UPDATE", "DELETE", "CONNECT""#,
            ),
            ("match", matching("operations", json!(["CONNECT"])), "name them in `subresources`"),
            ("match", matching("subresources", json!(["pods/exec"])), "`exec`, not `pods/exec`"),
            ("match", matching("names", json!([""])), "spec.match.names[0]: Invalid value"),
            (
                "match",
                matching("labelSelector", json!({ "matchExpressions": [{ "key": "a", "operator": "In" }] })),
                "In and NotIn need `values`",
            ),
            (
                "match",
                matching("labelSelector", json!({ "matchExpressions": [{ "key": "a", "operator": "Is" }] })),
                r#"supported values: "In", "NotIn", "Exists", "DoesNotExist""#,
            ),
            (
                "match",
                matching(
                    "namespaceSelector",
                    json!({ "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] }),
                ),
                "Exists and DoesNotExist take no `values`",
            ),
            ("actions", action(json!({})), "spec.actions[0].type: Required value"),
            ("actions", action(json!({ "type": "page" })), r#""evict", "patch-networkpolicy", "revoke-sa-token""#),
            (
                "actions",
                action(json!({ "type": "evict", "key": "a" })),
                "`key` and `value` belong to label and annotate",
            ),
            ("actions", action(json!({ "type": "label", "key": "a" })), "label and annotate need `key` and `value`"),
            (
                "actions",
                action(json!({ "type": "label", "key": "a", "value": "two words" })),
                "shorten it, or use annotate",
            ),
            (
                "actions",
                action(json!({ "type": "annotate", "key": "a/b/c", "value": "" })),
                "write a key that Kubernetes takes",
            ),
            ("actions", action(json!({ "type": "evict", "template": "a" })), "belong to alertmanager"),
            ("actions", action(json!({ "type": "alertmanager", "deadline": "5m" })), "belong to evict"),
            ("actions", action(json!({ "type": "evict", "deadline": "soon" })), "write a duration such as `30s`"),
            ("actions", action(json!({ "type": "evict", "gracePeriodSeconds": -1 })), "gracePeriodSeconds"),
            ("actions", action(json!({ "type": "evict", "allowDns": true })), "belong to patch-networkpolicy"),
            ("actions", action(json!({ "type": "evict", "undo": true })), "can be undone: remove `undo`"),
            ("actions", action(json!({ "type": "evict", "rateLimit": "5 per minute" })), "such as `5/min`"),
            (
                "actions",
                action(json!({ "type": "patch-networkpolicy", "allow": [{ "direction": "egress" }] })),
                "say with whom",
            ),
            (
                "actions",
                action(json!({
                    "type": "patch-networkpolicy",
                    "allow": [{ "direction": "egress", "podSelector": {}, "ports": [{ "port": 0 }] }],
                })),
                "ports[0].port",
            ),
            ("exceptions", exception(json!({ "reason": "a" })), "name `namespaces` or `names`"),
            ("exceptions", exception(json!({ "names": ["a"] })), "spec.exceptions[0].reason: Required value"),
            (
                "exceptions",
                exception(json!({ "names": ["a"], "reason": "a", "until": "2027-02-30" })),
                "write a day that exists",
            ),
            (
                "exceptions",
                exception(json!({ "names": ["a"], "reason": "a", "until": "2027-01-31T12:00:00" })),
                "a moment with its zone",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_action_on_a_front_that_the_mode_leaves_out_is_refused() {
    let api = cluster_rules(cluster().client().await);
    let mut rule = rule::<PortalClusterRule>("left-out");
    rule["spec"]["mode"] = json!(["admission"]);
    rule["spec"]["actions"] = json!([{ "type": "evict", "on": ["audit"] }]);
    let error = create(&api, &rule).await.unwrap_err().to_string();
    assert!(error.contains("names a front that `mode` leaves out"), "{error}");
}

#[tokio::test]
async fn a_namespaced_rule_that_speaks_of_namespaces_is_refused() {
    let cluster = cluster();
    let namespace = cluster.namespace("own").await;
    check_refused::<PortalRule>(
        &rules(cluster.client().await, &namespace.name),
        &[
            ("match", matching("namespaces", json!({ "include": ["a"] })), "a PortalRule sees its own namespace only"),
            ("match", matching("namespaceSelector", json!({})), "or use a PortalClusterRule"),
            ("exceptions", json!([{ "namespaces": ["a"], "reason": "a" }]), "give `names`, or use a PortalClusterRule"),
            ("rule", json!(""), "spec.rule: Invalid value"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_rule_that_uses_every_field_is_accepted_and_read_back_whole() {
    let api = cluster_rules(cluster().client().await);
    let mut rule = rule::<PortalClusterRule>("every-field");
    rule["spec"] = json!({
        "enabled": false,
        "severity": "critical",
        "mode": ["admission", "audit"],
        "enforcementAction": "dryrun",
        "match": {
            "gvk": [{ "group": "apps", "version": "v1", "kind": "Deployment" }],
            "operations": ["CREATE", "CONNECT"],
            "subresources": ["scale"],
            "namespaces": { "include": ["team-*"], "exclude": ["team-?"] },
            "namespaceSelector": { "matchLabels": { "stage": "production" } },
            "labelSelector": { "matchExpressions": [{ "key": "app", "operator": "In", "values": ["api"] }] },
            "names": ["api-*"],
            "podControllers": false,
        },
        "rule": "object.spec.replicas < 2",
        "message": "{{ metadata.name }} has one replica",
        "alert": "few-replicas",
        "actions": [
            { "type": "alertmanager", "template": "a", "labels": { "team": "a" }, "annotations": { "runbook": "b" } },
            { "type": "label", "key": "example.com/quarantine", "value": "yes", "on": ["audit"], "undo": true },
            { "type": "annotate", "key": "note", "value": "two words", "rateLimit": "5/min" },
            { "type": "evict", "gracePeriodSeconds": 0, "deadline": "1h30m", "on": ["audit", "network"] },
            {
                "type": "patch-networkpolicy",
                "allowDns": true,
                "allow": [{
                    "direction": "ingress",
                    "namespaceSelector": { "matchLabels": { "team": "forensics" } },
                    "podSelector": {},
                    "ports": [{ "port": 443, "protocol": "UDP" }],
                }],
            },
            { "type": "revoke-sa-token" },
        ],
        "exceptions": [
            { "namespaces": ["legacy-*"], "names": ["old"], "until": "2027-01-31", "reason": "goes away" },
            { "names": ["older"], "until": "2028-02-29T12:00:00+01:00", "reason": "goes away too" },
        ],
    });
    let stored = create(&api, &rule).await.unwrap();
    assert_eq!(stored.data["spec"], rule["spec"]);
    let spec: RuleSpec = serde_json::from_value(stored.data["spec"].clone()).unwrap();
    assert_eq!(serde_json::to_value(spec).unwrap(), rule["spec"]);
}

#[tokio::test]
async fn the_api_server_fills_in_the_defaults_that_the_types_have() {
    let cluster = cluster();
    let namespace = cluster.namespace("defaults").await;
    let sent = rule::<PortalRule>("smallest");
    let stored = create(&rules(cluster.client().await, &namespace.name), &sent).await.unwrap();
    assert_eq!(
        stored.data["spec"],
        json!({
            "enabled": true,
            "severity": "medium",
            "enforcementAction": "deny",
            "match": {
                "gvk": [{ "group": "", "version": "*", "kind": "Pod" }],
                "operations": ["CREATE", "UPDATE"],
                "podControllers": true,
            },
            "rule": "container.securityContext.privileged == true",
        })
    );
    let typed: Api<PortalRule> = namespace.api(cluster.client().await);
    let read = typed.get("smallest").await.unwrap();
    let own: RuleSpec = serde_json::from_value(sent["spec"].clone()).unwrap();
    assert_eq!(*read.spec, own);
    assert_eq!((read.spec.severity, read.spec.enforcement_action), (Severity::Medium, EnforcementAction::Deny));
    assert_eq!(read.spec.matching.operations, [Operation::Create, Operation::Update]);
    assert_eq!(read.status.unwrap(), Default::default());
}

#[tokio::test]
async fn only_the_status_subresource_writes_the_status() {
    let cluster = cluster();
    let namespace = cluster.namespace("status").await;
    let api = rules(cluster.client().await, &namespace.name);
    let mut sent = rule::<PortalRule>("one");
    sent["status"] = json!({ "observedGeneration": 7, "violationCount": 7 });
    let created = create(&api, &sent).await.unwrap();
    // Nobody has seen the rule: tools that compare generations must not take it for ready.
    assert_eq!(created.data["status"], json!({ "observedGeneration": -1 }));

    let params = PatchParams::default();
    let status = Patch::Merge(json!({ "spec": { "severity": "low" }, "status": { "observedGeneration": 1 } }));
    let written = api.patch_status("one", &params, &status).await.unwrap();
    assert_eq!(written.data["status"], json!({ "observedGeneration": 1 }));
    assert_eq!(written.data["spec"]["severity"], "medium");
    assert_eq!(written.metadata.generation, Some(1));

    let both = Patch::Merge(json!({ "spec": { "severity": "high" }, "status": { "observedGeneration": 7 } }));
    let written = api.patch("one", &params, &both).await.unwrap();
    assert_eq!(written.data["status"], json!({ "observedGeneration": 1 }));
    assert_eq!(written.data["spec"]["severity"], "high");
    assert_eq!(written.metadata.generation, Some(2));
}

#[tokio::test]
async fn kubectl_shows_what_people_ask_first() {
    let cluster = cluster();
    let namespace = cluster.namespace("columns").await;
    let api = rules(cluster.client().await, &namespace.name);
    create(&api, &rule::<PortalRule>("one")).await.unwrap();
    let status = json!({ "status": {
        "observedGeneration": 1,
        "mode": "admission,audit",
        "violationCount": 3,
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Running",
            "message": "every replica runs it",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    api.patch_status("one", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    // The age is left out: it changes while the test runs.
    let columns = |arguments: &[&str], age: usize| -> Vec<Vec<String>> {
        let table = namespace.kubectl(arguments).unwrap();
        let rows = table.lines().map(|line| {
            let mut cells: Vec<String> =
                line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
            cells.remove(age);
            cells
        });
        rows.collect()
    };
    let heads = ["NAME", "READY", "MODE", "ACTION", "SEVERITY", "VIOLATIONS"];
    let cells = ["one", "True", "admission,audit", "deny", "medium", "3"];
    assert_eq!(columns(&["get", "prule"], 6), [heads.to_vec(), cells.to_vec()]);
    let wide_heads = ["REASON", "MESSAGE", "RULE"];
    let wide_cells = ["Running", "every replica runs it", "container.securityContext.privileged == true"];
    assert_eq!(
        columns(&["get", "prule", "--output=wide"], 6),
        [[&heads[..], &wide_heads].concat(), [&cells[..], &wide_cells].concat()]
    );
}

#[tokio::test]
async fn rules_are_found_by_their_short_names_and_their_category() {
    let cluster = cluster();
    let namespace = cluster.namespace("names").await;
    let client = cluster.client().await;
    let stored = create(&cluster_rules(client.clone()), &rule::<PortalClusterRule>("by-name")).await.unwrap();
    create(&rules(client, &namespace.name), &rule::<PortalRule>("by-name")).await.unwrap();
    assert_eq!(stored.name_any(), "by-name");
    let get = |what: &str| namespace.kubectl(&["get", what, "--output=name"]).unwrap();
    let own = "portalrule.portal.io/by-name\n";
    assert_eq!(get("pcr/by-name"), "portalclusterrule.portal.io/by-name\n");
    assert_eq!(get("prule"), own);
    let all = get("portal-all");
    assert!(all.contains("portalclusterrule.portal.io/by-name\n") && all.ends_with(own), "{all}");
}

#[test]
fn kubectl_explains_the_fields() {
    // The API server publishes the descriptions a moment after it serves the kinds.
    eventually("kubectl explains a field by its comment", || {
        let text = cluster().kubectl(&["explain", "pcr.spec.match.podControllers"]);
        text.is_ok_and(|text| text.contains("Whether a rule for Pod also judges what makes pods"))
    });
}

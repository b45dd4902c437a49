//! `PortalInstance` on a real API server: what it takes, what it refuses, what it fills in, what people see.

use std::collections::BTreeSet;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt as _};
use portal_crds::{InstanceSpec, PortalClusterRule, PortalInstance};
use serde_json::{Value, json};

use super::rules::cluster;

fn instances(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &PortalInstance::api_resource())
}

fn instance(name: &str, spec: &Value) -> DynamicObject {
    let object = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": { "name": name }, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

async fn create(api: &Api<DynamicObject>, name: &str, spec: &Value) -> kube::Result<DynamicObject> {
    api.create(&PostParams::default(), &instance(name, spec)).await
}

/// What the API server says to an instance that it would not take, a line for each cause. Empty: it would take it.
async fn refusal(api: &Api<DynamicObject>, name: &str, spec: &Value) -> Vec<String> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let status = match api.create(&params, &instance(name, spec)).await {
        Ok(_) => return Vec::new(),
        Err(kube::Error::Api(status)) => status,
        Err(error) => panic!("{error}"),
    };
    let causes = status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
    // When types or words are wrong, CEL is not asked, and a cause without a field says so.
    let mut lines: Vec<String> = causes
        .iter()
        .filter(|cause| cause.field != "<nil>")
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    if lines.is_empty() {
        lines.push(status.message.clone());
    }
    lines
}

/// The schema of the kind.
fn schema() -> Value {
    let definition = serde_json::to_value(PortalInstance::crd()).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Every part of a schema with its path: names of fields, `0` for an element, `*` for a value.
fn walk(path: &[&str], schema: &Value, visit: &mut dyn FnMut(&[&str], &Value)) {
    visit(path, schema);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(&[path, &[name]].concat(), field, visit);
    }
    for (part, step) in [("items", "0"), ("additionalProperties", "*")] {
        if schema[part].is_object() {
            walk(&[path, &[step]].concat(), &schema[part], visit);
        }
    }
}

/// The messages of all validations in CEL.
fn messages(schema: &Value) -> BTreeSet<String> {
    let mut messages = BTreeSet::new();
    walk(&[], schema, &mut |_, part| {
        let rules = part["x-kubernetes-validations"].as_array().into_iter().flatten();
        messages.extend(rules.map(|rule| rule["message"].as_str().unwrap().to_owned()));
    });
    messages
}

/// A value in the middle of objects and lists.
fn within(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, step| match *step {
        "0" => json!([value]),
        "*" => json!({ "a": value }),
        name => json!({ name: value }),
    })
}

#[tokio::test]
async fn an_instance_that_would_break_is_refused_with_the_way_out() {
    let api = instances(cluster().client().await);
    const NAME: &str = "write the name of an object: a-z, 0-9, - and ., with a letter or digit at both ends";
    const AMOUNT: &str = "write an amount as for a container: `500m`, `1`, `64Mi` or `1Gi`";
    const LABELS: &str = "write labels that Kubernetes takes, such as `example.com/team: payments`: a key with a domain and a \
                          slash if you like, then, as in the value, at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit \
                          at both ends";
    let rows: Vec<(Value, &str, String)> = [
        (
            json!({ "admission": { "replicas": 1 } }),
            "spec.admission",
            "with one replica that fails closed, every request that rules judge is refused while the pod restarts: set `replicas` to 2 \
             or more, or `failClosed: false`",
        ),
        (
            json!({ "admission": { "enabled": false } }),
            "spec",
            "every layer is switched off, and the instance would do nothing: switch `admission`, `audit` or `network` on, or delete the \
             instance",
        ),
        (
            json!({ "audit": { "resources": { "requests": { "cpu": 1 } } } }),
            "spec",
            "`audit.resources` and `network.resources` are for layers that run by themselves: set `mode: split`, or use `resources`",
        ),
        (
            json!({ "namespace": "kube-system" }),
            "spec.namespace",
            "the engine needs a namespace of its own, because rules do not judge what is in it: use `portal-system`",
        ),
        (
            json!({ "namespace": "portal_system" }),
            "spec.namespace",
            "write the name of a namespace: a-z, 0-9 and -, with a letter or digit at both ends",
        ),
        (
            json!({ "admission": { "excludeNamespaces": ["team-*"] } }),
            "spec.admission.excludeNamespaces",
            "write the names of namespaces; for patterns use `match.namespaces.exclude` of a rule, for labels `namespaceSelector`",
        ),
        (
            json!({ "admission": { "port": 8080 } }),
            "spec.admission.port",
            "the pods have health and metrics on port 8080: use another one",
        ),
        (json!({ "admission": { "clients": { "configMap": "A" } } }), "spec.admission.clients.configMap", NAME),
        (
            json!({ "audit": { "resync": "1s" } }),
            "spec.audit.resync",
            "write a duration of 30s or more, such as `10m` or `1h30m`",
        ),
        (
            json!({ "actions": { "enabled": true } }),
            "spec.actions",
            "actions are switched on and none is allowed: name them in `allowed`, or set `enabled: false`",
        ),
        (
            json!({ "certificates": { "source": "Secret" } }),
            "spec.certificates",
            "`source: Secret` needs the name of the Secret: add `secretName`",
        ),
        (
            json!({ "certificates": { "source": "CertManager" } }),
            "spec.certificates",
            "`source: CertManager` needs an issuer: add `issuerRef`",
        ),
        (
            json!({ "certificates": { "issuerRef": { "name": "a" } } }),
            "spec.certificates",
            "`issuerRef` is for `source: CertManager`: remove it, or change `source`",
        ),
        (
            json!({ "certificates": { "caBundle": "a" } }),
            "spec.certificates",
            "the operator issues certificates itself: remove `secretName` and `caBundle`, or set `source` to CertManager or Secret",
        ),
        (
            json!({ "certificates": { "leafDays": 365 } }),
            "spec.certificates",
            "a certificate cannot live longer than its authority: make `leafDays` smaller than `authorityDays`",
        ),
        (
            json!({ "rbac": { "allowedResources": [{ "group": "*", "resource": "pods" }] } }),
            "spec.rbac.allowedResources[0].group",
            "write the group alone, without the version: `apps`, not `apps/v1`; the core group is empty, and `*` is never granted",
        ),
        (
            json!({ "rbac": { "deniedResources": [{ "resource": "Pod" }] } }),
            "spec.rbac.deniedResources[0].resource",
            "write the plural as in a role: `configmaps` or `pods/log`; `*` is never granted",
        ),
        (
            json!({ "watchedGvks": [{ "kind": "pods" }] }),
            "spec.watchedGvks[0].kind",
            "write the kind as a manifest does: `Pod`, not `pods`",
        ),
        (
            json!({ "watchedGvks": [{ "group": "apps/v1", "kind": "Deployment" }] }),
            "spec.watchedGvks[0].group",
            "write the group alone, without the version: `apps`, not `apps/v1`; the core group is empty",
        ),
        (
            json!({ "image": "registry.example/portal v1" }),
            "spec.image",
            "write the image as for a container: `registry.example/portal:v1`, or with a digest behind `@`",
        ),
        (json!({ "imagePullSecrets": ["two words"] }), "spec.imagePullSecrets[0]", NAME),
        (
            json!({ "log": "loud" }),
            "spec.log",
            "write a level (error, warn, info, debug, trace), or module=level with commas between",
        ),
        (json!({ "resources": { "limits": { "memory": "1GB" } } }), "spec.resources.limits[memory]", AMOUNT),
        (json!({ "resources": { "limits": { "memory": -1 } } }), "spec.resources.limits[memory]", AMOUNT),
        (
            json!({ "resources": { "requests": { "cpu": "1500m" }, "limits": { "cpu": 1 } } }),
            "spec.resources",
            "a pod cannot ask for more than it may take: make `requests` smaller, or `limits` larger",
        ),
        (json!({ "scheduling": { "nodeSelector": { "a b": "" } } }), "spec.scheduling.nodeSelector", LABELS),
        (
            json!({ "scheduling": { "tolerations": [{ "operator": "Equal" }] } }),
            "spec.scheduling.tolerations[0]",
            "without `key` every taint is meant, which needs `operator: Exists`: add one of them",
        ),
        (
            json!({ "scheduling": { "tolerations": [{ "key": "a", "operator": "Exists", "value": "b" }] } }),
            "spec.scheduling.tolerations[0]",
            "`Exists` takes no `value`: remove it, or use Equal",
        ),
        (json!({ "pods": { "labels": { "a": "two words" } } }), "spec.pods.labels", LABELS),
        (
            json!({ "pods": { "labels": { "app.kubernetes.io/name": "a" } } }),
            "spec.pods.labels",
            "labels that begin with `portal.io/` or `app.kubernetes.io/` are Portal's own: use another prefix",
        ),
        (
            json!({ "pods": { "annotations": { "portal.io/a": "b" } } }),
            "spec.pods.annotations",
            "annotations that begin with `portal.io/` are Portal's own: use another prefix",
        ),
        (
            json!({ "pods": { "annotations": { "a//b": "" } } }),
            "spec.pods.annotations",
            "write keys that Kubernetes takes, such as `example.com/team`: a domain and a slash if you like, then at most 63 letters, \
             digits, `-`, `_` and `.`",
        ),
        (
            json!({ "sinks": { "alertmanager": { "urls": ["alertmanager:9093"] } } }),
            "spec.sinks.alertmanager.urls[0]",
            "write an address such as `http://alertmanager.monitoring:9093`",
        ),
        (
            json!({ "ruleSelector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } }),
            "spec.ruleSelector.matchExpressions[0]",
            "In and NotIn need `values`: add them, or use Exists or DoesNotExist",
        ),
        (
            json!({ "monitoring": { "runbookUrl": "docs.example.org/a/" } }),
            "spec.monitoring.runbookUrl",
            "write the address of a page without `#`, such as `https://docs.example.org/portal/operator/alerts/`",
        ),
        (
            json!({ "namespaceSelector": { "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] } }),
            "spec.namespaceSelector.matchExpressions[0]",
            "Exists and DoesNotExist take no `values`: remove them, or use In or NotIn",
        ),
    ]
    .into_iter()
    .map(|(spec, field, message)| (spec, field, message.to_owned()))
    .collect();
    let mut wrong = Vec::new();
    for (spec, field, message) in &rows {
        let refusal = refusal(&api, "refused", spec).await;
        let is_told = |line: &String| line.starts_with(&format!("{field}: ")) && line.ends_with(message.as_str());
        if refusal.len() != 1 || !refusal.iter().all(is_told) {
            wrong.push(format!("{spec}\n  expected: {field}: {message}\n  but got: {refusal:#?}"));
        }
    }
    let long = "a".repeat(41);
    let of_names =
        "other objects are named after the instance: use up to 40 of a-z, 0-9 and -, beginning with a letter";
    let of_others = "objects of another instance may have this name: use one that does not end with -admission, -audit, -network, \
                     -actions, -pods, -issued or -replicas";
    let names = [(long.as_str(), of_names), ("1st", of_names), ("a.b", of_names)];
    let taken = ["a-admission", "a-audit", "a-network", "a-actions", "a-pods", "a-issued", "a-replicas"];
    for (name, message) in names.into_iter().chain(taken.map(|name| (name, of_others))) {
        let refusal = refusal(&api, name, &json!({})).await;
        if !(refusal.len() == 1 && refusal[0].ends_with(message)) {
            wrong.push(format!("{name}: {refusal:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Each validation is tried here, or is one of a rule, whose actions network checks have too.
    let mut untried = messages(&schema());
    let definition = serde_json::to_value(PortalClusterRule::crd()).unwrap();
    let of_rules = messages(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    untried.retain(|message| !of_rules.contains(message) && !rows.iter().any(|(_, _, tried)| tried == message));
    let immutable = "the namespace of an instance cannot be changed: delete the instance and make another one";
    assert_eq!(untried.into_iter().collect::<Vec<_>>(), [of_others, of_names, immutable]);
}

#[tokio::test]
async fn every_limit_and_every_word_of_an_instance_is_held() {
    let api = instances(cluster().client().await);
    let schema = schema();
    // What is beyond each limit, with the words that the API server has for it.
    let mut beyond: Vec<(Vec<String>, Value, &str)> = Vec::new();
    walk(&[], &schema["properties"]["spec"], &mut |path, part| {
        let mut add =
            |value: Value, words| beyond.push((path.iter().map(|step| (*step).to_owned()).collect(), value, words));
        let number = |name: &str| part[name].as_f64().map(|number| number as i64);
        if part.get("enum").is_some() {
            add(json!("nonsense"), "Unsupported value: \"nonsense\"");
        }
        if let Some(most) = number("maximum") {
            add(json!(most + 1), "should be less than or equal to");
        }
        if let Some(least) = number("minimum") {
            add(json!(least - 1), "should be greater than or equal to");
        }
        if let Some(most) = number("maxLength") {
            add(json!("a".repeat(most as usize + 1)), "may not be more than");
        }
        if number("minLength").is_some_and(|least| least > 0) {
            add(json!(""), "should be at least");
        }
        if let Some(most) = number("maxItems") {
            add(Value::Array((0..=most).map(Value::from).collect()), "must have at most");
        }
        if let Some(most) = number("maxProperties") {
            add((0..=most).map(|number| (format!("a{number}"), json!(""))).collect(), "must have at most");
        }
        if part["type"] == "boolean" {
            add(json!("yes"), "must be of type boolean");
        }
    });
    assert!(beyond.len() > 150, "{}", beyond.len());
    let mut wrong = Vec::new();
    for (path, value, words) in &beyond {
        let steps: Vec<&str> = path.iter().map(String::as_str).collect();
        let refusal = refusal(&api, "beyond", &within(&steps, value.clone())).await;
        let field: String = steps.iter().fold("spec".to_owned(), |field, step| match *step {
            "0" => field + "[0]",
            "*" => field + ".a",
            name => field + "." + name,
        });
        if !refusal.iter().any(|line| line.starts_with(&format!("{field}: ")) && line.contains(words)) {
            wrong.push(format!("{field}: expected `{words}`, but got {refusal:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn instances_that_come_to_mind_are_accepted() {
    let api = instances(cluster().client().await);
    let mut wrong = Vec::new();
    for spec in [
        json!({ "admission": { "replicas": 1, "failClosed": false } }),
        json!({ "admission": { "replicas": 1, "enabled": false }, "audit": { "enabled": true } }),
        json!({ "admission": { "maxEnforcement": "warn" } }),
        // `audit:` with nothing behind it.
        json!({ "audit": null, "namespace": null }),
        json!({ "mode": "split", "audit": { "enabled": true, "resources": { "limits": { "memory": "1Gi" } } } }),
        json!({ "resources": { "requests": { "cpu": "0.5", "memory": 134217728 }, "limits": { "cpu": 1, "memory": "1e9" } } }),
        json!({ "image": "registry.example:5000/team/portal@sha256:0123" }),
        json!({ "log": "warn,portal_cluster::rules=debug" }),
        json!({ "certificates": { "source": "CertManager", "issuerRef": { "name": "letsencrypt", "kind": "ClusterIssuer" } } }),
        json!({ "certificates": { "source": "Secret", "secretName": "own.tls", "caBundle": "-----BEGIN CERTIFICATE-----" } }),
        json!({ "scheduling": {
            "nodeSelector": { "kubernetes.io/os": "linux", "pool": "" },
            "tolerations": [{ "operator": "Exists" }, { "key": "pool", "value": "system", "effect": "NoExecute" }],
        } }),
        json!({ "pods": { "annotations": { "linkerd.io/inject": "enabled" }, "labels": { "team": "platform" } } }),
        json!({ "actions": { "enabled": true, "allowed": ["evict"] } }),
        json!({ "rbac": { "authorCheck": "None", "allowedResources": [{ "resource": "secrets" }] } }),
        json!({ "sinks": { "stdout": "none", "policyReport": { "api": "None" } } }),
        json!({ "ruleSelector": {}, "namespaceSelector": { "matchLabels": { "team": "payments" } } }),
    ] {
        let refusal = refusal(&api, "a-1", &spec).await;
        if !refusal.is_empty() {
            wrong.push(format!("{spec}: {refusal:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_instance_without_a_spec_has_every_default() {
    let cluster = cluster();
    let api: Api<PortalInstance> = Api::all(cluster.client().await);
    let head = "{apiVersion: portal.io/v1alpha1, kind: PortalInstance, metadata: {name: ";
    for (name, end) in [
        ("without-spec", "}}"),
        ("with-empty-spec", "}, spec: {}}"),
        (
            "with-empty-parts",
            "}, spec: {admission: {}, audit: {}, network: {}, certificates: {}, sinks: {policyReport: {}}}}",
        ),
    ] {
        let text = format!("{head}{name}{end}");
        let applied = cluster.kubectl_with_input(&["apply", "--filename", "-"], &text).unwrap();
        assert_eq!(applied, format!("portalinstance.portal.io/{name} created\n"));
        let read = api.get(name).await.unwrap();
        assert_eq!(read.spec.0, InstanceSpec::default(), "{name}");
        // Nobody has seen the instance: tools that compare generations must not take it for ready.
        assert_eq!(read.status.unwrap(), Default::default());
        let raw: Value =
            serde_json::from_str(&cluster.kubectl(&["get", "portal", name, "--output=json"]).unwrap()).unwrap();
        assert_eq!(raw["spec"], json!(InstanceSpec::default()));
        assert_eq!(raw["status"], json!({ "observedGeneration": -1 }));
    }
}

/// An instance that uses every field.
fn every_field() -> Value {
    let selector = |key: &str| {
        json!({
            "matchLabels": { "team": "payments" },
            "matchExpressions": [{ "key": key, "operator": "In", "values": ["a"] }],
        })
    };
    let resources = json!({ "requests": { "cpu": "100m" }, "limits": { "memory": "1Gi" } });
    json!({
        "namespace": "other",
        "mode": "split",
        "ruleSelector": selector("rules"),
        "namespaceSelector": selector("namespaces"),
        "bootstrapRules": { "configMaps": ["rules"] },
        "rulesPerNamespace": 7,
        "engine": "expr",
        "admission": {
            "enabled": true, "replicas": 3, "failClosed": false, "maxEnforcement": "dryrun", "timeoutSeconds": 7,
            "existingViolations": "deny", "excludeNamespaces": ["legacy"], "hostNetwork": true, "port": 9443,
            "clients": { "configMap": "clients", "name": "api" }, "ruleSteps": 7000, "connections": 77, "memoryMib": 77,
            "drainSeconds": 7,
        },
        "audit": { "enabled": true, "replicas": 1, "workers": 7, "resync": "7m", "resources": resources },
        "network": {
            "enabled": true, "replicas": 1, "resources": resources,
            "checks": [{
                "name": "a", "enabled": false, "severity": "low", "alert": "b", "excludeNamespaces": ["c"],
                "actions": [{ "type": "evict" }],
            }],
        },
        "lookups": { "maxDependencies": 7000, "reevaluations": 7, "windowSeconds": 7 },
        "actions": {
            "enabled": true, "allowed": ["evict", "patch-networkpolicy"], "namespaced": true, "dryRun": true,
            "idempotencyEntries": 7000,
        },
        "rbac": {
            "mode": "Manual", "authorCheck": "None",
            "allowedResources": [{ "group": "", "resource": "secrets" }],
            "deniedResources": [{ "group": "apps", "resource": "deployments/scale" }],
        },
        "watchedGvks": [{ "group": "apps", "kind": "Deployment" }],
        "certificates": {
            "source": "CertManager", "secretName": "tls", "caBundle": "a", "authorityDays": 77, "leafDays": 7,
            "issuerRef": { "name": "a", "kind": "ClusterIssuer", "group": "b.io" },
        },
        "sinks": {
            "alertmanager": { "urls": ["https://am.example:9093/prefix"], "secretRef": { "name": "credentials" } },
            "policyReport": { "api": "openreports.io", "passes": true },
            "stdout": "none",
        },
        "monitoring": { "serviceMonitor": true, "prometheusRule": true, "runbookUrl": "https://docs.example.org/a/" },
        "networkPolicy": true,
        "image": "a/b:c",
        "imagePullPolicy": "Never",
        "imagePullSecrets": ["pull"],
        "resources": resources,
        "scheduling": {
            "spread": "Required",
            "nodeSelector": { "kubernetes.io/os": "linux" },
            "tolerations": [{
                "key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 7,
            }],
            "priorityClassName": "system-cluster-critical",
        },
        "pods": { "labels": { "a": "b" }, "annotations": { "c": "d" } },
        "log": "debug",
    })
}

#[tokio::test]
async fn an_instance_that_uses_every_field_is_accepted_and_read_back_whole() {
    let sent = every_field();
    // What a rule's actions take is tried with rules.
    let mut unused = Vec::new();
    walk(&[], &schema()["properties"]["spec"], &mut |path, _| {
        let pointer: String = path.iter().map(|step| format!("/{step}")).collect();
        if !path.contains(&"*")
            && !pointer.starts_with("/network/checks/0/actions/0/")
            && sent.pointer(&pointer).is_none()
        {
            unused.push(pointer);
        }
    });
    assert_eq!(unused, Vec::<String>::new());

    let api = instances(cluster().client().await);
    let typed: PortalInstance = serde_json::from_value(json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalInstance", "metadata": { "name": "every-field" }, "spec": sent,
    }))
    .unwrap();
    assert_ne!(typed.spec.0, InstanceSpec::default());
    let own = serde_json::to_value(&typed).unwrap();
    assert_eq!(own["spec"], sent);
    let stored = create(&api, "every-field", &own["spec"]).await.unwrap();
    assert_eq!(stored.data["spec"], sent);
    let read: InstanceSpec = serde_json::from_value(stored.data["spec"].clone()).unwrap();
    assert_eq!(read, typed.spec.0);
}

#[tokio::test]
async fn the_namespace_of_an_instance_cannot_be_changed() {
    let api = instances(cluster().client().await);
    create(&api, "stays", &json!({ "namespace": "one" })).await.unwrap();
    let change = |namespace: Value| Patch::Merge(json!({ "spec": { "namespace": namespace } }));
    // Removing it would mean the default.
    for namespace in [json!("two"), Value::Null] {
        let error = api.patch("stays", &PatchParams::default(), &change(namespace)).await.unwrap_err().to_string();
        let expected = "the namespace of an instance cannot be changed: delete the instance and make another one";
        assert!(error.contains(expected), "{error}");
    }
    api.patch("stays", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "log": "debug" } }))).await.unwrap();
}

#[tokio::test]
async fn only_the_status_subresource_writes_the_status_of_an_instance() {
    let api = instances(cluster().client().await);
    let mut sent = instance("two-writers", &json!({}));
    sent.data["status"] = json!({ "observedGeneration": 7, "replicas": "2/2" });
    let created = api.create(&PostParams::default(), &sent).await.unwrap();
    assert_eq!(created.data["status"], json!({ "observedGeneration": -1 }));
    let both = Patch::Merge(json!({ "spec": { "log": "debug" }, "status": {
        "observedGeneration": 1,
        "engines": [{ "name": "portal" }],
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "Waiting", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    } }));
    let written = api.patch_status("two-writers", &PatchParams::default(), &both).await.unwrap();
    assert_eq!(written.data["spec"]["log"], Value::Null);
    assert_eq!(written.metadata.generation, Some(1));
    let read: PortalInstance = written.try_parse().unwrap();
    let status = read.status.unwrap();
    assert_eq!(
        (status.observed_generation, status.engines[0].name.as_str(), status.engines[0].replicas),
        (1, "portal", 0)
    );
    let wrong = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "Degraded", "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } });
    let error =
        api.patch_status("two-writers", &PatchParams::default(), &Patch::Merge(wrong)).await.unwrap_err().to_string();
    assert!(error.contains(r#"supported values: "True", "False", "Unknown""#), "{error}");
}

#[tokio::test]
async fn kubectl_tells_in_a_line_whether_an_instance_works() {
    let cluster = cluster();
    let api = instances(cluster.client().await);
    create(&api, "columns", &json!({})).await.unwrap();
    let status = json!({ "status": {
        "observedGeneration": 1,
        "replicas": "1/2",
        "enforcing": "no",
        "operatorVersion": "0.1.0",
        "rules": { "total": 4, "loaded": 3, "refused": 1 },
        "conditions": [{
            "type": "Ready",
            "status": "False",
            "reason": "WaitingForProbe",
            "message": "the API server has not reached the engine yet",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    api.patch_status("columns", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    // The age is left out: it changes while the test runs.
    let columns = |arguments: &[&str]| -> Vec<Vec<String>> {
        let table = cluster.kubectl(arguments).unwrap();
        let rows = table.lines().map(|line| {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned);
            cells.enumerate().filter(|(place, _)| *place != 6).map(|(_, cell)| cell).collect()
        });
        rows.collect()
    };
    let heads = ["NAME", "READY", "MODE", "REPLICAS", "ENFORCING", "REASON"];
    let cells = ["columns", "False", "combined", "1/2", "no", "WaitingForProbe"];
    assert_eq!(columns(&["get", "portal", "columns"]), [heads.to_vec(), cells.to_vec()]);
    let wide_heads = ["RULES", "VERSION", "MESSAGE"];
    let wide_cells = ["3", "0.1.0", "the API server has not reached the engine yet"];
    assert_eq!(
        columns(&["get", "portal", "columns", "--output=wide"]),
        [[&heads[..], &wide_heads].concat(), [&cells[..], &wide_cells].concat()]
    );
    // The short name means instances and nothing else. Those of all kinds are found by their category.
    let instances = cluster.kubectl(&["get", "portal", "--output=name"]).unwrap();
    assert!(instances.lines().all(|line| line.starts_with("portalinstance.portal.io/")), "{instances}");
    assert!(
        cluster
            .kubectl(&["get", "portal-all", "--output=name"])
            .unwrap()
            .contains("portalinstance.portal.io/columns\n")
    );
}

//! `portal engine --admission` behind a real API server, with `kubectl` as the client.

mod asking;
mod cases;
mod corpus;
mod existing;
mod flow;
mod judging;
mod load;
mod lockout;
mod lookups;
mod routing;
mod served;

use serde_json::{Value, json};

use self::judging::Guarded;
use super::definition;
use crate::core::eventually;

const RULES: &str = r#"
name: privileged
match: {gvk: [{kind: Pod}]}
rule: container.securityContext.privileged
message: "container {{ container.name }} is privileged"
---
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
---
name: latest
enforcementAction: warn
match: {gvk: [{kind: Pod}]}
rule: container.image.tag == "latest"
---
name: no-team
enforcementAction: dryrun
match: {gvk: [{kind: ConfigMap}]}
rule: metadata.labels.team == nil
---
name: keep
match: {gvk: [{kind: ConfigMap}], operations: [DELETE], names: [keep-*]}
rule: "true"
message: this one stays
---
name: no-exec
match: {gvk: [{kind: Pod}], operations: [CONNECT], subresources: [exec]}
rule: request.userInfo.username == "admin"
message: nobody looks into pods
---
name: few
match: {gvk: [{group: apps, kind: Deployment}], operations: [UPDATE], subresources: [scale]}
rule: object.spec.replicas > 3
---
name: secrets
match: {gvk: [{kind: Secret}]}
rule: '"password" in object.data'
message: "the password is {{ object.data.password }}"
---
name: owned
match: {gvk: [{kind: Namespace}], operations: [UPDATE]}
rule: metadata.labels.env == "prod" && metadata.labels.owner == nil
---
name: widgets
match: {gvk: [{group: acme.io, kind: Widget}]}
rule: object.spec.size > 3
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: shop}
spec:
  match: {gvk: [{kind: Service}]}
  rule: object.spec.type == "NodePort"
"#;

/// A cluster that is guarded by the rules above.
fn guarded(flags: &[&str]) -> Guarded {
    let definitions = [definition("widgets", "Widget")];
    let flags = [&["--decision-log=all"], flags].concat();
    let guarded = Guarded::guard(Guarded::prepare(&definitions), RULES, &definitions, &flags);
    guarded.wait_until_refused("bank");
    guarded
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "acme.io/app:1"}]},
    });
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[test]
fn rules_decide_what_enters_a_cluster() {
    let guarded = guarded(&[]);
    let privileged = json!([{"name": "app", "image": "acme.io/app:1", "securityContext": {"privileged": true}}]);
    let bad = |name| pod(name, json!({"hostNetwork": true, "containers": privileged}));
    let refused = [
        "2 rules refuse this:",
        "- privileged: container app is privileged (container app: securityContext.privileged is true)",
        "- host-network: spec.hostNetwork is true",
        "(Forbidden)",
    ];
    guarded.create("shop", &pod("good", json!({})), true, &[]);
    guarded.create("shop", &bad("bad"), false, &refused);
    let dry = ["--namespace", "shop", "create", "--dry-run=server", "--filename", "-"];
    guarded.check(&dry, &bad("bad").to_string(), false, &refused);
    let latest = pod("latest", json!({"containers": [{"name": "app", "image": "acme.io/app"}]}));
    guarded.create("shop", &latest, true, &["Warning: latest: container app: image.tag is \"latest\""]);
    guarded.create("shop", &config_map("no-team"), true, &[]);
    assert_eq!(guarded.engine().metric(r#"portal_rule_evaluations_total{result="violated",rule="no-team"}"#), 1);

    // What makes pods is told about its template.
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": privileged},
        }},
    });
    guarded.create("shop", &deployment, false, &["privileged: container app is privileged"]);
    let mut good = deployment.clone();
    good["spec"]["template"]["spec"]["containers"] = json!([{"name": "app", "image": "acme.io/app:1"}]);
    guarded.create("shop", &good, true, &[]);
    let scale =
        |replicas: &str| ["--namespace", "shop", "scale", "deployment/web", "--replicas", replicas].map(str::to_owned);
    let scale = |replicas: &str, is_allowed, said: &[&str]| {
        let words = scale(replicas);
        guarded.check(&words.each_ref().map(String::as_str), "", is_allowed, said);
    };
    scale("2", true, &[]);
    scale("5", false, &["few: spec.replicas is 5"]);

    // Objects of a custom kind, removal, and connecting.
    let widget = |name: &str, size: i64| json!({"apiVersion": "acme.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}});
    guarded.create("shop", &widget("small", 1), true, &[]);
    guarded.create("shop", &widget("large", 5), false, &["widgets: spec.size is 5"]);
    guarded.create("shop", &config_map("keep-me"), true, &[]);
    guarded.check(&["--namespace", "shop", "delete", "configmap", "keep-me"], "", false, &["keep: this one stays"]);
    guarded.check(&["--namespace", "shop", "delete", "configmap", "no-team"], "", true, &[]);
    // All of them at once, of which the request names none.
    let all = ["delete", "--raw", "/api/v1/namespaces/shop/configmaps"];
    guarded.check(&all, "", false, &["keep: this one stays"]);
    guarded.check(
        &["--namespace", "shop", "exec", "good", "--", "id"],
        "",
        false,
        &["no-exec: nobody looks into pods"],
    );

    // A container that comes later.
    let added = json!([{"name": "debug", "image": "acme.io/debug:1", "securityContext": {"privileged": true}}]);
    let path = "/api/v1/namespaces/shop/pods/good/ephemeralcontainers";
    let mut running: Value =
        serde_json::from_str(&guarded.cluster.kubectl(&["get", "--raw", "/api/v1/namespaces/shop/pods/good"]).unwrap())
            .unwrap();
    running["spec"]["ephemeralContainers"] = added;
    let replace = ["replace", "--raw", path, "--filename", "-"];
    guarded.check(&replace, &running.to_string(), false, &["privileged: container debug is privileged"]);
    running["spec"]["ephemeralContainers"][0]["securityContext"] = json!({});
    guarded.check(&replace, &running.to_string(), true, &[]);

    // A rule of a namespace is for that namespace, and no request of another one is even sent for it.
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    guarded.create("shop", &service, false, &["shop/own: spec.type is \"NodePort\""]);
    guarded.create("bank", &service, true, &[]);
    assert!(!guarded.engine().log().contains(r#""resource":"services","namespace":"bank""#));

    // What nobody may see.
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    guarded.create("shop", &secret, false, &["secrets: the password is ***"]);
    let metrics = guarded.engine().get("/metrics").unwrap().1;
    for text in [guarded.engine().log(), metrics] {
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"));
    }

    // Namespaces that are left alone, and one that passes rules by.
    guarded.create("portal-system", &config_map("keep-it"), true, &[]);
    guarded.check(&["annotate", "namespace", "legacy", "portal.io/bypass=true"], "", true, &[]);
    let legacy = ["--namespace", "legacy", "create", "--filename", "-"];
    eventually("the annotation is known", || guarded.kubectl(&legacy, &bad("bad").to_string()).status.success());
    assert!(guarded.engine().metric(r#"portal_admission_bypass_total{namespace="legacy"}"#) >= 1);
    assert!(guarded.engine().log().contains("Rules were passed by"));
    guarded.check(&["annotate", "namespace", "legacy", "portal.io/bypass-"], "", true, &[]);
    eventually("rules are back", || !guarded.kubectl(&legacy, &bad("again").to_string()).status.success());
    // What was let in there violates, and may be changed where the rules do not look.
    let label = ["--namespace", "legacy", "label", "pod", "bad", "team=a"];
    guarded.check(&label, "", true, &["Warning: privileged, as before this change: container app is privileged"]);
    let image = r#"{"spec": {"containers": [{"name": "app", "image": "acme.io/app:2"}]}}"#;
    guarded.check(
        &["--namespace", "legacy", "patch", "pod", "bad", "--patch", image],
        "",
        true,
        &["as before this change"],
    );

    // The way out, whatever the rules say.
    guarded.check(&["delete", "validatingwebhookconfiguration", "portal-default"], "", true, &[]);
    eventually("nothing is refused", || {
        guarded
            .kubectl(&["--namespace", "shop", "create", "--filename", "-"], &bad("free").to_string())
            .status
            .success()
    });
}

#[test]
fn an_instance_caps_its_rules_and_a_replica_answers_until_its_end() {
    let guarded = guarded(&["--existing-violations=deny"]);
    let bad = pod("bad", json!({"hostNetwork": true}));
    guarded.create("shop", &bad, false, &["host-network: spec.hostNetwork is true"]);
    // While it ends it says that it is not ready, and still answers.
    guarded.engine().signal("-TERM");
    eventually("it is not ready", || guarded.engine().get("/readyz").is_some_and(|(code, _)| code == 503));
    guarded.create("shop", &bad, false, &["host-network: spec.hostNetwork is true"]);
    assert_ne!(guarded.engine().get("/readyz").map(|(code, _)| code), Some(200));
    let Guarded { cluster, judging } = guarded;
    let (files, port) = judging.stop();
    // Nobody is there, and what rules may refuse is refused.
    let create = |object: &Value| {
        cluster.kubectl_with_input(&["--namespace", "shop", "create", "--filename", "-"], &object.to_string())
    };
    assert!(create(&pod("good", json!({}))).unwrap_err().to_string().contains("failed calling webhook"));
    // What can only be recorded is let in.
    create(&config_map("no-team")).unwrap();
    let judging = files.judge(Some(port), &cluster.kubeconfig(), &["--max-enforcement=warn"]);
    create(&bad).unwrap();
    assert_eq!(judging.engine.metric(r#"portal_admission_requests_total{decision="warned"}"#), 1);

    // Namespaces that the instance does not serve are left alone. One that is to become one of the others is judged as such.
    let (files, port) = judging.stop();
    let _judging = files.judge(Some(port), &cluster.kubeconfig(), &["--namespace-selector=env=prod"]);
    create(&pod("elsewhere", json!({"hostNetwork": true}))).unwrap();
    let label = |name: &str| cluster.kubectl(&["label", "namespace", "shop", name, "--overwrite"]);
    label("env=test").unwrap();
    let refused = label("env=prod").unwrap_err().to_string();
    assert!(refused.contains("owned: metadata.labels.owner is not set"), "{refused}");
    label("owner=jane").unwrap();
    label("env=prod").unwrap();
    eventually("the namespace is served", || create(&pod("again", json!({"hostNetwork": true}))).is_err());
}

//! `portal check --live`: what rules look up is what a real cluster has, with the files laid over it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use portal_test_kit::fault_proxy::{Fault, FaultProxy, Requests, Verb};
use portal_test_kit::{Cluster, Size};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{apply, definition};
use crate::core::eventually;

/// Every Deployment has a PodDisruptionBudget that selects its pods.
const BUDGETS: &str = r#"
name: budget
match: {gvk: [{group: apps, kind: Deployment}]}
rule: 'none(cluster.poddisruptionbudgets.list(metadata.namespace), selects(#.spec.selector, object.spec.template.metadata.labels))'
message: no PodDisruptionBudget
"#;

/// No host is used by two Ingresses.
const HOSTS: &str = r#"
name: host
match: {gvk: [{group: networking.k8s.io, kind: Ingress}]}
rule: 'any(consistentCluster.ingresses.list("*"), (#.metadata.name != metadata.name || #.metadata.namespace != metadata.namespace) && any(#.spec.rules ?? [], #.host != nil && #.host == "shop.example"))'
message: the host is taken
"#;

/// Asks for nothing but the object itself.
const PLAIN: &str = r#"
name: replicas
match: {gvk: [{group: apps, kind: Deployment}]}
rule: (object.spec.replicas ?? 1) > 3
"#;

/// The cluster of all tests here. Each has namespaces and users of its own.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(Size::Core).unwrap())
}

fn namespace(name: &str) {
    cluster().kubectl(&["create", "namespace", name]).unwrap();
}

/// Lets somebody do this to all objects of these kinds.
fn allow(user: &str, verbs: &str, resources: &str) {
    let (verbs, resources) = (format!("--verb={verbs}"), format!("--resource={resources}"));
    cluster().kubectl(&["create", "clusterrole", user, &verbs, &resources]).unwrap();
    let (role, subject) = (format!("--clusterrole={user}"), format!("--user={user}"));
    cluster().kubectl(&["create", "clusterrolebinding", user, &role, &subject]).unwrap();
}

fn deployment(namespace: &str, name: &str, replicas: u32) -> String {
    let labels = json!({ "app": name });
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "a:1" }] } },
        },
    });
    object.to_string()
}

fn budget(namespace: &str, name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": app } } },
    })
}

fn ingress(namespace: &str, name: &str, host: &str) -> Value {
    let service = json!({ "name": "web", "port": { "number": 80 } });
    let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": { "service": service } }]);
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "rules": [{ "host": host, "http": { "paths": paths } }] },
    })
}

/// Rules and objects in a folder, each file by its text.
fn files(rules: &str, objects: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules.yaml"), rules).unwrap();
    fs::create_dir(folder.path().join("objects")).unwrap();
    for (number, object) in objects.iter().enumerate() {
        fs::write(folder.path().join(format!("objects/{number}.yaml")), object).unwrap();
    }
    folder
}

/// The same for a cluster whose own objects are judged.
fn run_on_cluster(kubeconfig: &Path, folder: &TempDir) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_portal"))
        .args(["check", "--live", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--rules")
        .arg(folder.path().join("rules.yaml"))
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// The exit code and what is printed, with `FOLDER` and `KUBECONFIG` for the paths. What rules saw and where they failed is left out.
fn run(kubeconfig: &Path, folder: &TempDir) -> (i32, String) {
    let path = |name: &str| folder.path().join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_portal"))
        .args(["check", "--live", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--rules")
        .arg(path("rules.yaml"))
        .arg(path("objects"))
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(kubeconfig.to_str().unwrap(), "KUBECONFIG");
    let text = text.replace(folder.path().to_str().unwrap(), "FOLDER");
    let lines = text.lines().filter(|line| !line.starts_with(" |") && !line.starts_with("    "));
    (output.status.code().unwrap(), lines.map(|line| format!("{line}\n")).collect())
}

#[track_caller]
fn check(kubeconfig: &Path, folder: &TempDir, code: i32, expected: &str) {
    let (actual, text) = run(kubeconfig, folder);
    assert_eq!((actual, text.trim_end()), (code, expected.trim()));
}

/// What somebody has asked for, each as a verb and a resource, in order. What is about no resource is discovery.
async fn asked(user: &str) -> Vec<String> {
    let events = cluster().audit_events().await.unwrap();
    let own = events.iter().filter(|event| event.user() == user && !event.object_ref.resource.is_empty());
    let mut asked: Vec<String> = own.map(|event| format!("{} {}", event.verb, event.object_ref.resource)).collect();
    asked.sort();
    asked
}

#[tokio::test]
async fn a_deployment_needs_a_budget_in_the_cluster_and_each_kind_is_listed_once() {
    namespace("budgets");
    allow("budgets", "list", "poddisruptionbudgets.policy");
    let kubeconfig = cluster().kubeconfig_as("budgets", &[]);
    let other = BUDGETS.replace("name: budget", "name: budget-too");
    let objects = [deployment("budgets", "web", 1), deployment("budgets", "api", 1)];
    let folder = files(&format!("{BUDGETS}---{other}---{PLAIN}"), &[&objects[0], &objects[1]]);
    apply(cluster(), &budget("budgets", "api", "api"));
    let told = "FOLDER/objects/0.yaml:1 Deployment budgets/web\n  deny   budget (medium): no PodDisruptionBudget\n";
    eventually("the rights are known", || run(&kubeconfig, &folder).1.starts_with(told));
    let before = asked("budgets").await.len();
    let (code, text) = run(&kubeconfig, &folder);
    assert!(code == 1 && text.ends_with("2 violations (2 deny) in 2 objects, 3 rules\n"), "{text}");
    // Two rules and two objects need it. The right to watch is not needed.
    assert_eq!(asked("budgets").await.len(), before + 1);
    assert!(asked("budgets").await.iter().all(|asked| asked == "list poddisruptionbudgets"));
    apply(cluster(), &budget("budgets", "web", "web"));
    check(&kubeconfig, &folder, 0, "0 violations in 2 objects, 3 rules");
}

#[tokio::test]
async fn files_win_over_the_cluster_and_see_each_other() {
    namespace("laid");
    apply(cluster(), &budget("laid", "web", "web"));
    let (web, api) = (deployment("laid", "web", 1), deployment("laid", "api", 1));
    // The file takes the budget from one and gives it to the other.
    let moved = budget("laid", "web", "api").to_string();
    let folder = files(BUDGETS, &[&web, &api, &moved]);
    let told = "FOLDER/objects/0.yaml:1 Deployment laid/web\n  deny   budget (medium): no PodDisruptionBudget\n";
    let (code, text) = run(&cluster().kubeconfig(), &folder);
    assert!(code == 1 && text.starts_with(told), "{text}");
    assert!(text.ends_with("1 violation (1 deny) in 3 objects, 1 rule\n"), "{text}");
    // What is found by its name is the file's too.
    let by_name = r#"
name: largest
match: {gvk: [{group: apps, kind: Deployment}]}
rule: '(object.spec.replicas ?? 1) > int(cluster.configmaps.byName(metadata.namespace, "limits").data.replicas ?? "0")'
"#;
    let limits = |replicas: &str| {
        let (metadata, data) = (json!({ "name": "limits", "namespace": "laid" }), json!({ "replicas": replicas }));
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
    };
    apply(cluster(), &limits("2"));
    let large = deployment("laid", "web", 5);
    assert_eq!(run(&cluster().kubeconfig(), &files(by_name, &[&large])).0, 1);
    let raised = limits("9").to_string();
    let folder = files(by_name, &[&large, &raised]);
    check(&cluster().kubeconfig(), &folder, 0, "0 violations in 2 objects, 1 rule");
}

#[tokio::test]
async fn a_custom_kind_is_known_from_the_cluster_or_from_a_file() {
    namespace("custom");
    let rule = r#"
name: quota
match: {gvk: [{group: acme.io, kind: Gadget}]}
rule: cluster.quotas.byName(metadata.namespace, metadata.name) == nil
message: no quota
"#;
    let object = |kind: &str, name: &str| json!({ "apiVersion": "acme.io/v1", "kind": kind, "metadata": { "name": name, "namespace": "custom" } });
    let gadget = object("Gadget", "one").to_string();
    apply(cluster(), &definition("gadgets", "Gadget"));
    eventually("the kind is served", || cluster().kubectl(&["get", "gadgets.acme.io"]).is_ok());
    let folder = files(rule, &[&gadget]);
    let (code, text) = run(&cluster().kubeconfig(), &folder);
    assert_eq!(code, 2);
    assert!(text.contains("rule quota: rule: 1:9: no kind is served as `quotas`"), "{text}");
    assert!(
        text.contains(
            "\ninstall its CustomResourceDefinition in the cluster, or check the definition along with the files\n"
        ),
        "{text}"
    );
    // Whatever only a file defines has no objects in the cluster, but may have some in files.
    let quotas = definition("quotas", "Quota").to_string();
    let told = "FOLDER/objects/0.yaml:1 Gadget custom/one\n  deny   quota (medium): no quota\n";
    let (code, text) = run(&cluster().kubeconfig(), &files(rule, &[&gadget, &quotas]));
    assert!(code == 1 && text.starts_with(told), "{text}");
    let quota = object("Quota", "one");
    let folder = files(rule, &[&gadget, &quotas, &quota.to_string()]);
    check(&cluster().kubeconfig(), &folder, 0, "0 violations in 3 objects, 1 rule");

    apply(cluster(), &definition("quotas", "Quota"));
    eventually("the kind is served", || cluster().kubectl(&["get", "quotas.acme.io"]).is_ok());
    let folder = files(rule, &[&gadget]);
    assert_eq!(run(&cluster().kubeconfig(), &folder).0, 1);
    apply(cluster(), &quota);
    check(&cluster().kubeconfig(), &folder, 0, "0 violations in 1 object, 1 rule");
}

#[tokio::test]
async fn a_consistent_lookup_is_read_from_the_api_server_once_for_all_objects() {
    namespace("fresh");
    allow("fresh", "list", "ingresses.networking.k8s.io");
    let kubeconfig = cluster().kubeconfig_as("fresh", &[]);
    let objects = ["one", "two", "three"].map(|name| ingress("fresh", name, "other.example").to_string());
    let folder = files(HOSTS, &objects.each_ref().map(String::as_str));
    eventually("the rights are known", || run(&kubeconfig, &folder).0 == 0);
    apply(cluster(), &ingress("fresh", "taken", "shop.example"));
    let before = asked("fresh").await.len();
    let (code, text) = run(&kubeconfig, &folder);
    assert!(code == 1 && text.ends_with("3 violations (3 deny) in 3 objects, 1 rule\n"), "{text}");
    let lists = asked("fresh").await.len() - before;
    // Workers that ask at the same moment do not wait for each other.
    assert!((1..=3).contains(&lists), "{lists}");
    // The file takes the host from the object that has it.
    let moved = ingress("fresh", "taken", "other.example").to_string();
    check(&kubeconfig, &files(HOSTS, &[&objects[0], &moved]), 0, "0 violations in 2 objects, 1 rule");
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_fails_its_rules_alone() {
    namespace("few-rights");
    allow("few-rights", "list", "configmaps");
    let kubeconfig = cluster().kubeconfig_as("few-rights", &[]);
    let maps = "name: maps\nmatch: {gvk: [{group: apps, kind: Deployment}]}\n\
                rule: 'len(cluster.configmaps.list(\"few-rights\", {\"a\": \"b\"})) == 0'\nmessage: no map\n";
    let folder = files(
        &format!("{BUDGETS}---\n{maps}---{PLAIN}---{HOSTS}"),
        &[&deployment("few-rights", "web", 5), &ingress("few-rights", "web", "a").to_string()],
    );
    let expected = "\
FOLDER/objects/0.yaml:1 Deployment few-rights/web
  deny   maps (medium): no map
  deny   replicas (medium): spec.replicas is 5
error: FOLDER/objects/0.yaml:1: Deployment few-rights/web: rule budget: 1:35: poddisruptionbudgets could not be read: not allowed to list poddisruptionbudgets.v1.policy: grant the verb `list` to this ServiceAccount
error: FOLDER/objects/1.yaml:1: Ingress few-rights/web: rule host: 1:33: ingresses could not be read: not allowed to list ingresses: grant the verb `list` to this ServiceAccount
2 violations (2 deny) in 2 objects, 4 rules, 2 errors";
    eventually("the rights are known", || run(&kubeconfig, &folder).1.contains("no map"));
    check(&kubeconfig, &folder, 2, expected);
}

#[tokio::test]
async fn who_may_list_a_namespace_alone_has_its_rules_judged() {
    namespace("own");
    cluster().kubectl(&["-n", "own", "create", "role", "own", "--verb=list", "--resource=configmaps"]).unwrap();
    cluster().kubectl(&["-n", "own", "create", "rolebinding", "own", "--role=own", "--user=own"]).unwrap();
    let rule = |name: &str, namespace: &str| {
        format!(
            "name: {name}\nmatch: {{gvk: [{{group: apps, kind: Deployment}}]}}\n\
             rule: 'len(cluster.configmaps.list({namespace})) < 0'\n"
        )
    };
    let folder =
        files(&[rule("here", "\"own\""), rule("everywhere", "\"*\"")].join("---\n"), &[&deployment("own", "web", 1)]);
    let expected = "\
error: FOLDER/objects/0.yaml:1: Deployment own/web: rule everywhere: 1:24: configmaps could not be read: not allowed to list configmaps.v1: grant the verb `list` to this ServiceAccount
0 violations in 1 object, 2 rules, 1 error";
    let kubeconfig = cluster().kubeconfig_as("own", &[]);
    eventually("the rights are known", || run(&kubeconfig, &folder).1.matches("error:").count() == 1);
    check(&kubeconfig, &folder, 2, expected);
}

#[tokio::test]
async fn namespaces_have_the_labels_of_the_cluster_and_are_never_made_up() {
    namespace("labelled");
    let rule = "name: large\nrule: (object.spec.replicas ?? 1) > 3\n\
                match: {gvk: [{group: apps, kind: Deployment}], namespaceSelector: {matchLabels: {tier: gold}}}\n";
    let kubeconfig = cluster().kubeconfig();
    let folder = files(rule, &[&deployment("labelled", "web", 5)]);
    check(&kubeconfig, &folder, 0, "0 violations in 1 object, 1 rule");
    cluster().kubectl(&["label", "namespace", "labelled", "tier=gold"]).unwrap();
    assert_eq!(run(&kubeconfig, &folder).0, 1);

    let nowhere = deployment("nowhere", "web", 5);
    let expected = "\
error: FOLDER/objects/0.yaml:1: Deployment nowhere/web: rule large: namespace nowhere could not be read: nowhere is neither in the cluster nor in a file: create it, or check it along with the files
0 violations in 1 object, 1 rule, 1 error";
    check(&kubeconfig, &files(rule, &[&nowhere]), 2, expected);
    let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "nowhere", "labels": { "tier": "gold" } } });
    assert_eq!(run(&kubeconfig, &files(rule, &[&nowhere, &made.to_string()])).0, 1);
}

#[tokio::test]
async fn an_object_without_a_namespace_is_where_kubectl_would_make_it() {
    namespace("context");
    apply(cluster(), &budget("context", "web", "web"));
    let kubeconfig = cluster().kubeconfig_as("context", &["system:masters"]);
    let folder =
        files(BUDGETS, &[&deployment("context", "web", 1).replace(r#""namespace":"context""#, r#""labels":{}"#)]);
    let (code, text) = run(&kubeconfig, &folder);
    assert!(code == 1 && text.contains("Deployment default/web"), "{text}");
    let set = ["config", "set-context", "--current", "--namespace=context"];
    let mut kubectl = cluster().kubectl_command();
    assert!(kubectl.env("KUBECONFIG", &kubeconfig).args(set).status().unwrap().success());
    check(&kubeconfig, &folder, 0, "0 violations in 1 object, 1 rule");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_reached_or_asked_is_told() {
    let proxy = FaultProxy::start(cluster(), 8).await.unwrap();
    let client = proxy.client("check", "check", &["system:masters"]).unwrap();
    let folder = files(BUDGETS, &[&deployment("unreachable", "web", 1)]);
    let refused = proxy.inject(Fault::Refuse.on(Requests::all()));
    let (code, text) = run(client.kubeconfig(), &folder);
    drop(refused);
    assert_eq!(code, 2);
    assert!(text.starts_with("error: KUBECONFIG: the cluster cannot be reached: "), "{text}");
    assert!(
        text.ends_with(
            "; check the `server` of the kubeconfig, and the way to it\n0 violations in 0 objects, 0 rules, 1 error\n"
        ),
        "{text}"
    );

    let kubeconfig = folder.path().join("stale");
    let server = cluster().kubectl(&["config", "view", "--output=jsonpath={.clusters[0].cluster.server}"]).unwrap();
    let text = json!({
        "current-context": "main",
        "contexts": [{ "name": "main", "context": { "cluster": "main", "user": "main" } }],
        "clusters": [{ "name": "main", "cluster": { "server": server, "insecure-skip-tls-verify": true } }],
        "users": [{ "name": "main", "user": { "token": "wrong" } }],
    });
    fs::write(&kubeconfig, text.to_string()).unwrap();
    let expected = "\
error: KUBECONFIG: the cluster does not say what it serves: the API server does not know who asks to get /apis: the credentials are wrong or too old
0 violations in 0 objects, 0 rules, 1 error";
    check(&kubeconfig, &folder, 2, expected);
    check(
        &folder.path().join("missing"),
        &folder,
        2,
        "error: KUBECONFIG: this kubeconfig cannot be used: failed to read kubeconfig from '\"KUBECONFIG\"': No such file or directory (os error 2)\n0 violations in 0 objects, 0 rules, 1 error",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_listed_in_time_is_named_and_what_passes_is_tried_again() {
    let proxy = FaultProxy::start(cluster(), 9).await.unwrap();
    let client = proxy.client("check", "check", &["system:masters"]).unwrap();
    let deployment = deployment("slow", "web", 5);
    let folder = files(&format!("{BUDGETS}---{PLAIN}"), &[&deployment]);
    let lists = || Requests::of("poddisruptionbudgets").verbs(&[Verb::List]);
    let once = proxy.inject(Fault::CutBefore.on(lists()).next(1));
    let (code, text) = run(client.kubeconfig(), &folder);
    assert!(code == 1 && text.contains("no PodDisruptionBudget"), "{text}");
    assert_eq!(once.hits(), 1);
    let never = Fault::Delay(Duration::from_secs(3600));
    let _cached = proxy.inject(never.clone().on(lists()));
    let _fresh = proxy.inject(never.on(Requests::of("ingresses").verbs(&[Verb::List])));
    let folder =
        files(&format!("{BUDGETS}---{PLAIN}---{HOSTS}"), &[&deployment, &ingress("slow", "web", "a").to_string()]);
    let begin = Instant::now();
    let (code, text) = run(client.kubeconfig(), &folder);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    let expected = "\
FOLDER/objects/0.yaml:1 Deployment slow/web
  deny   replicas (medium): spec.replicas is 5
error: FOLDER/objects/0.yaml:1: Deployment slow/web: rule budget: 1:35: poddisruptionbudgets could not be read: poddisruptionbudgets.v1.policy could not be listed in time: the API server has not answered
error: FOLDER/objects/1.yaml:1: Ingress slow/web: rule host: 1:33: ingresses could not be read: the API server has not answered in time
1 violation (1 deny) in 2 objects, 3 rules, 2 errors";
    assert_eq!((code, text.trim_end()), (2, expected));
}

/// The same object, made by another one.
fn made_by(owner: &Value, kind: &str, mut object: Value) -> Value {
    let (api_version, uid, name) = (&owner["apiVersion"], &owner["metadata"]["uid"], &owner["metadata"]["name"]);
    let reference = json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true });
    object["metadata"]["ownerReferences"] = json!([reference]);
    object
}

#[tokio::test]
async fn without_files_the_objects_of_the_cluster_are_judged() {
    namespace("existing");
    let own = |kind: &str, group: &str, expression: &str| {
        json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalRule",
            "metadata": { "name": kind.to_lowercase(), "namespace": "existing" },
            "spec": { "match": { "gvk": [{ "group": group, "kind": kind }] }, "rule": expression, "message": "it is wrong" },
        })
        .to_string()
    };
    for (name, replicas) in [("web", 5), ("api", 1)] {
        apply(cluster(), &serde_json::from_str(&deployment("existing", name, replicas)).unwrap());
    }
    let folder = files(&own("Deployment", "apps", "object.spec.replicas > 3"), &[]);
    let told = "cluster Deployment existing/web\n  deny   existing/deployment (medium): it is wrong\n         ";
    let (code, text) = run_on_cluster(&cluster().kubeconfig(), &folder);
    assert!(code == 1 && text.starts_with(told), "{text}");
    assert!(text.ends_with("1 violation (1 deny) in 2 objects, 1 rule\n"), "{text}");
    // Who may not list them is told so, and that is no success.
    let (code, text) = run_on_cluster(&cluster().kubeconfig_as("nobody", &[]), &folder);
    assert!(code == 2, "{text}");
    assert!(
        text.starts_with("error: cluster: deployments.apps are not judged: not allowed to list deployments.v1.apps"),
        "{text}"
    );

    // A pod is told of under what made it, and an old ReplicaSet not at all.
    cluster().kubectl(&["--namespace=existing", "create", "serviceaccount", "default"]).unwrap();
    let get = |kind: &str, name: &str| -> Value {
        let text = cluster().kubectl(&["--namespace=existing", "get", kind, name, "--output=json"]).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let bad = json!({ "containers": [{ "name": "a", "image": "a:1", "securityContext": { "privileged": true } }] });
    let mut maker: Value = serde_json::from_str(&deployment("existing", "maker", 1)).unwrap();
    maker["spec"]["template"]["spec"] = bad.clone();
    apply(cluster(), &maker);
    let mut set = maker.clone();
    set["kind"] = json!("ReplicaSet");
    apply(cluster(), &made_by(&get("deployment", "maker"), "Deployment", set));
    let pod = |name: &str| {
        let metadata = json!({ "name": name, "namespace": "existing", "labels": { "app": "maker" } });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": bad })
    };
    apply(cluster(), &made_by(&get("replicaset", "maker"), "ReplicaSet", pod("made")));
    apply(cluster(), &pod("alone"));
    let folder = files(&own("Pod", "", "container.securityContext.privileged == true"), &[]);
    let (code, text) = run_on_cluster(&cluster().kubeconfig(), &folder);
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("cluster ")).collect();
    assert_eq!((code, titles), (1, vec!["cluster Deployment existing/maker", "cluster Pod existing/alone"]), "{text}");
    assert!(text.ends_with("2 violations (2 deny) in 6 objects, 1 rule\n"), "{text}");
}

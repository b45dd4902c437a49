//! Rules that see the rest of the cluster, on a real API server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::config_map;
use super::judging::{Files, Guarded};
use crate::core::eventually;
use crate::engine::webhook::{ACCOUNT, account};
use crate::engine::{apply, cluster, condition, definition, get, rule, wait_for};

const RULES: &str = r#"
name: has-budget
match: {gvk: [{group: apps, kind: Deployment}]}
rule: none(cluster.poddisruptionbudgets.list(metadata.namespace), selects(.spec.selector, object.spec.template.metadata.labels))
message: "no PodDisruptionBudget selects {{ metadata.name }}"
---
name: sees-itself
enforcementAction: warn
match: {gvk: [{group: apps, kind: Deployment}], operations: [CREATE, UPDATE]}
rule: cluster.deployments.byName(metadata.namespace, metadata.name).spec.replicas == 7
---
name: listed-with-others
enforcementAction: warn
match: {gvk: [{kind: ConfigMap}], operations: [CREATE, UPDATE, DELETE]}
rule: |
  let counted = cluster.configmaps.list(metadata.namespace, {role: "counted"});
  len(counted) > 1
message: "there are {{ len(counted) }}"
---
name: unique-hosts
match: {gvk: [{group: networking.k8s.io, kind: Ingress}]}
rule: |
  let hosts = map(object.spec.rules, .host ?? "");
  let others = filter(consistentCluster.ingresses.list("*"), .metadata.uid != object.metadata.uid);
  any(others, any(.spec.rules, (.host ?? "") in hosts))
message: "a host of {{ hosts | join(', ') }} is taken"
---
name: allowed-registries
match: {gvk: [{kind: Pod}], podControllers: false}
rule: container.image.registry not in split(cluster.consistent.configmaps.byName("policy", "registries").data.allowed ?? "", ",")
message: "{{ container.image.registry }} is not allowed"
---
name: target-exists
match: {gvk: [{group: autoscaling, kind: HorizontalPodAutoscaler}]}
rule: cluster.any("deployments", "statefulsets").byRef(metadata.namespace, object.spec.scaleTargetRef) == nil
message: "there is no {{ object.spec.scaleTargetRef.name }}"
---
name: owner-exists
match: {gvk: [{kind: ConfigMap}]}
rule: 'any(metadata.ownerReferences, cluster.consistent.any("deployments").byRef(metadata.namespace, #) == nil)'
message: "an owner is gone"
---
name: widgets
match: {gvk: [{kind: Service}]}
rule: cluster.widgets.byName(metadata.namespace, metadata.name).spec.size > 3
message: "the widget is too large"
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: shop}
spec:
  match: {gvk: [{kind: ServiceAccount}]}
  rule: len(cluster.secrets.list(object.metadata.annotations["look-in"] ?? metadata.namespace)) > 0
  message: "there are secrets"
"#;

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "acme.io/app:1"}]},
        }},
    })
}

fn ingress(name: &str, host: &str) -> Value {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
        "spec": {"rules": [{"host": host, "http": {"paths": paths}}]},
    })
}

fn budget(name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    })
}

fn counted(name: &str) -> Value {
    let mut config_map = config_map(name);
    config_map["metadata"]["labels"] = json!({"role": "counted"});
    config_map
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
}

fn widget(version: &str, size: u32) -> Value {
    json!({
        "apiVersion": format!("acme.io/{version}"), "kind": "Widget",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"size": size},
    })
}

/// A cluster that is guarded by the rules above, once all of them are in force.
fn guarded() -> Guarded {
    let definitions = [definition("widgets", "Widget")];
    let prepared = Guarded::prepare(&definitions);
    let guarded = Guarded::guard(prepared, RULES, &definitions, &["--decision-log=all"]);
    // Ready is what waits for the objects.
    assert_eq!(guarded.engine().metric(r#"portal_rules{state="active"}"#), 9, "{}", guarded.engine().log());
    let dry = ["--namespace", "shop", "create", "--dry-run=server", "--filename", "-"];
    let probe = deployment("probe", 1).to_string();
    eventually("the webhook is called", || !guarded.kubectl(&dry, &probe).status.success());
    guarded
}

#[test]
fn rules_see_the_rest_of_the_cluster_and_what_is_being_written() {
    let guarded = guarded();
    let shop = |object: &Value, is_allowed, said: &[&str]| guarded.create("shop", object, is_allowed, said);

    // What is missing is known as soon as it is there.
    shop(&deployment("web", 1), false, &["has-budget: no PodDisruptionBudget selects web"]);
    shop(&budget("web"), true, &[]);
    let create = ["--namespace", "shop", "create", "--filename", "-"];
    let dry = ["--namespace", "shop", "create", "--dry-run=server", "--filename", "-"];
    eventually("the budget is seen", || guarded.kubectl(&create, &deployment("web", 1).to_string()).status.success());
    guarded.check(&["--namespace", "shop", "delete", "pdb", "web"], "", true, &[]);
    let again = deployment("again", 1);
    eventually("it is gone again", || {
        let said = guarded.kubectl(&dry, &again.to_string());
        String::from_utf8_lossy(&said.stderr).contains("no PodDisruptionBudget selects again")
    });

    // An object that is being written is seen as it will be, and one that is being deleted is gone.
    shop(&budget("seven"), true, &[]);
    eventually("the budget is seen", || {
        let said =
            guarded.kubectl(&["--namespace", "shop", "create", "--filename", "-"], &deployment("seven", 7).to_string());
        String::from_utf8_lossy(&said.stderr).contains("Warning: sees-itself")
    });
    let scale = r#"{"spec":{"replicas":6}}"#;
    let patch = |patch: &str, said: &[&str]| {
        guarded.check(&["--namespace", "shop", "patch", "deployment", "seven", "--patch", patch], "", true, said);
    };
    patch(scale, &[]);
    patch(r#"{"spec":{"replicas":7}}"#, &["Warning: sees-itself"]);
    shop(&counted("one"), true, &[]);
    let two = counted("two").to_string();
    eventually("the first is seen", || {
        String::from_utf8_lossy(&guarded.kubectl(&dry, &two).stderr).contains("there are 2")
    });
    shop(&counted("two"), true, &["Warning: listed-with-others: there are 2"]);
    // The one that is changed is counted once.
    guarded.check(&["--namespace", "shop", "label", "configmap", "two", "a=b"], "", true, &["there are 2"]);
    // With a label less it is one of them no more.
    guarded.check(&["--namespace", "shop", "label", "configmap", "two", "role-"], "", true, &[]);
    guarded.check(&["--namespace", "shop", "delete", "configmap", "one"], "", true, &[]);

    // References, by kind and name, and by the uid if they have one.
    let scaler = |name: &str, target: &str| {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": target});
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
            "spec": {"maxReplicas": 3, "scaleTargetRef": target},
        })
    };
    shop(&scaler("lost", "nobody"), false, &["target-exists: there is no nobody"]);
    shop(&scaler("good", "seven"), true, &[]);
    let uid = ["--namespace=shop", "get", "deployment", "seven", "--output=jsonpath={.metadata.uid}"];
    let uid = guarded.cluster.kubectl(&uid).unwrap();
    let owned = |name: &str, uid: &str| {
        let mut owned = config_map(name);
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "seven", "uid": uid});
        owned["metadata"]["ownerReferences"] = json!([owner]);
        owned
    };
    shop(&owned("owned", uid.trim()), true, &[]);
    shop(&owned("orphan", "00000000-0000-0000-0000-000000000000"), false, &["owner-exists: an owner is gone"]);

    // The objects of a custom kind.
    apply(&guarded.cluster, &widget("v1", 5));
    eventually("the widget is seen", || {
        let said = guarded.kubectl(&dry, &service("web").to_string());
        String::from_utf8_lossy(&said.stderr).contains("widgets: the widget is too large")
    });

    // Of Secrets nothing but their keys is in the process, which knows those of one namespace alone.
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hunter2"}});
    guarded.create("shop", &secret, true, &[]);
    let account = |name: &str, annotations: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "annotations": annotations}});
    eventually("the secret is seen", || {
        let said = guarded.kubectl(&dry, &account("a", json!({})).to_string());
        String::from_utf8_lossy(&said.stderr).contains("shop/own: there are secrets")
    });
    let outside = ["shop/own could not be evaluated", "a PortalRule sees its own namespace only", "`bank`"];
    shop(&account("b", json!({"look-in": "bank"})), false, &outside);
    shop(&account("c", json!({"look-in": "*"})), false, &["a PortalRule sees its own namespace only"]);
    assert_eq!(guarded.engine().metric(r#"portal_cache_objects{watch="secrets.v1 in shop"}"#), 1);
    let metrics = guarded.engine().get("/metrics").unwrap().1;
    assert!(
        !metrics.contains(r#"watch="secrets.v1""#)
            && metrics.contains(r#"portal_cache_bytes{watch="deployments.v1.apps"}"#)
    );
}

#[test]
fn what_is_read_afresh_is_true_at_once() {
    let guarded = guarded();
    let shop = |object: &Value, is_allowed, said: &[&str]| guarded.create("shop", object, is_allowed, said);
    let pod = super::pod("web", json!({}));
    shop(&pod, false, &["allowed-registries: acme.io is not allowed"]);
    guarded.cluster.kubectl(&["create", "namespace", "policy"]).unwrap();
    let allowed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "registries", "namespace": "policy"}, "data": {"allowed": "acme.io"}});
    apply(&guarded.cluster, &allowed);
    // No cache has to hear of it first.
    shop(&pod, true, &[]);
    // An object that violates may be changed where the rule does not look, which asks about the object before as well.
    guarded.check(&["--namespace", "policy", "delete", "configmap", "registries"], "", true, &[]);
    let label = ["--namespace", "shop", "label", "pod", "web", "a=b"];
    guarded.check(&label, "", true, &["Warning: allowed-registries, as before this change"]);

    for number in 0..20 {
        shop(&ingress(&format!("first-{number}"), &format!("{number}.acme.io")), true, &[]);
        let other = ingress("second", &format!("{number}.acme.io"));
        guarded.create("bank", &other, false, &["unique-hosts: a host of", "is taken"]);
    }
    // It may be changed itself.
    guarded.check(&["--namespace", "shop", "label", "ingress", "first-1", "a=b"], "", true, &[]);

    // Of those that race at least one wins, and whatever slipped through can be seen.
    let race = |round: usize| {
        let results = std::thread::scope(|scope| {
            let create = |number: usize| {
                let object = ingress(&format!("race-{round}-{number}"), &format!("race-{round}.acme.io")).to_string();
                guarded.kubectl(&["--namespace", "shop", "create", "--filename", "-"], &object).status.success()
            };
            let tries: Vec<_> = (0..4).map(|number| scope.spawn(move || create(number))).collect();
            tries.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        results.into_iter().filter(|is_there| *is_there).count()
    };
    for round in 0..3 {
        let winners = race(round);
        assert!(winners >= 1);
        let late = ingress("late", &format!("race-{round}.acme.io"));
        guarded.create("bank", &late, false, &["is taken"]);
    }
    assert!(guarded.engine().metric(r#"portal_fresh_reads_total{result="answered"}"#) > 20);
}

#[test]
fn kinds_that_rules_look_up_come_and_go() {
    let cluster = cluster();
    cluster.kubectl(&["create", "namespace", "shop"]).unwrap();
    apply(&cluster, &rule("alone", crate::engine::GOOD));
    let judging = Files::new("").judge(None, &cluster.kubeconfig(), &["--rules-from-cluster"]);
    let engine = &judging.engine;
    let objects = |watch: &str| engine.metric(&format!("portal_cache_objects{{watch={watch:?}}}"));
    let is_active = |name: &str| {
        let rule = get(&cluster, name);
        let own = &rule["status"]["instances"][0];
        let reason = own["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "Active");
        reason.and_then(|reason| reason["reason"].as_str()).unwrap_or_default().to_owned()
    };
    // Nothing is sent to the engine, so that a rule that is in force says that.
    let is_in_force = |name: &str| matches!(&*is_active(name), "NotRouted" | "Active");
    assert!(!engine.get("/metrics").unwrap().1.contains("services.v1"));

    apply(&cluster, &rule("asks", "cluster.services.byName(metadata.namespace, metadata.name) == nil"));
    eventually("it is in force", || is_in_force("asks"));
    assert_eq!(objects("services.v1"), 1, "the API server's own");
    // Two rules need one kind, which has one watch.
    apply(&cluster, &rule("asks-too", "cluster.services.byName(metadata.namespace, 'other') == nil"));
    eventually("it is in force", || is_in_force("asks-too"));

    // A kind that comes later, in a version that goes.
    apply(&cluster, &rule("widgets", "cluster.widgets.byName(metadata.namespace, 'web').spec.size > 3"));
    eventually("it waits for the kind", || is_active("widgets") == "KindNotServed");
    let mut widgets = definition("widgets", "Widget");
    apply(&cluster, &widgets);
    eventually("it is in force", || is_in_force("widgets"));
    apply(&cluster, &widget("v1", 1));
    eventually("the widget is seen", || objects("widgets.v1.acme.io") == 1);
    let mut second = widgets["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    widgets["spec"]["versions"].as_array_mut().unwrap().push(second);
    apply(&cluster, &widgets);
    eventually("the other version is preferred", || engine.get("/metrics").unwrap().1.contains("widgets.v2.acme.io"));
    eventually("its objects are there", || objects("widgets.v2.acme.io") == 1);
    widgets["spec"]["versions"][0]["served"] = json!(false);
    apply(&cluster, &widgets);
    apply(&cluster, &widget("v2", 2));
    assert!(is_in_force("widgets"));
    cluster.kubectl(&["delete", "customresourcedefinition", "widgets.acme.io"]).unwrap();
    eventually("it waits again", || is_active("widgets") == "KindNotServed");
    widgets["spec"]["versions"][0]["served"] = json!(true);
    apply(&cluster, &widgets);
    eventually("it is in force again", || is_in_force("widgets"));
    assert!(engine.get("/readyz").is_some_and(|(code, _)| code == 200));
    wait_for(&cluster, "asks", "False");
}

#[test]
fn what_an_engine_may_not_see_keeps_one_rule_waiting_and_nothing_else() {
    let cluster = cluster();
    for namespace in ["shop", "bank"] {
        cluster.kubectl(&["create", "namespace", namespace]).unwrap();
    }
    let kubeconfig = account(&cluster);
    apply(&cluster, &rule("alone", crate::engine::GOOD));
    apply(&cluster, &rule("asks", "cluster.services.byName(metadata.namespace, metadata.name) == nil"));
    let own = json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalRule", "metadata": {"name": "own", "namespace": "shop"},
        "spec": {"match": {"gvk": [{"kind": "Pod"}]}, "rule": "len(cluster.services.list(metadata.namespace)) > 3"},
    });
    apply(&cluster, &own);
    // Ready all the same, and soon: what is refused is not waited for.
    let judging = Files::new("").judge(None, &kubeconfig, &["--rules-from-cluster"]);
    let engine = &judging.engine;
    let state = |state: &str| engine.metric(&format!("portal_rules{{state={state:?}}}"));
    eventually("the others are in force", || (state("active"), state("syncing")) == (1, 2));
    let said = wait_for(&cluster, "asks", "False");
    let told = said["status"].to_string();
    assert!(told.contains("PermissionPending") && told.contains("grant the verb `watch`"), "{said:#}");
    assert!(engine.part("watch services.v1").contains("not allowed"), "{}", engine.get("/readyz?verbose").unwrap().1);

    // A right in one namespace is enough for what asks there.
    let grant = |arguments: &[&str]| cluster.kubectl(arguments).unwrap();
    let reads = ["--verb=get,list,watch", "--resource=services"];
    let user = format!("--user={ACCOUNT}");
    grant(&["--namespace=shop", "create", "role", "reads", reads[0], reads[1]]);
    grant(&["--namespace=shop", "create", "rolebinding", "reads", "--role=reads", &user]);
    eventually("the rule of the namespace is in force", || (state("active"), state("syncing")) == (2, 1));
    grant(&["create", "clusterrole", "reads", reads[0], reads[1]]);
    grant(&["create", "clusterrolebinding", "reads", "--clusterrole=reads", &user]);
    eventually("all are in force", || (state("active"), state("syncing")) == (3, 0));

    // A right that is taken away later makes the rule fail: nobody knows what it would see.
    let review = |uid: &str| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": uid, "operation": "CREATE", "namespace": "bank", "name": "web",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "bank"},
                "spec": {"containers": [{"name": "app", "image": "acme.io/app:1"}]}},
        }})
    };
    let ask = |uid: &str| {
        let answer = judging.caller().review(review(uid).to_string()).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    assert!(ask("1").contains(r#""message":"asks: "#), "{}", ask("1"));
    cluster.kubectl(&["delete", "clusterrolebinding", "reads"]).unwrap();
    cluster.kubectl(&["delete", "rolebinding", "--namespace=shop", "reads"]).unwrap();
    // The watch that runs goes on until the API server ends it.
    cluster.restart_api_server().unwrap();
    eventually("the rule fails", || {
        let answer = ask("2");
        answer.contains("asks could not be evaluated")
            && answer.contains("services could not be read: not allowed to watch")
    });
    let conditions: BTreeSet<String> =
        ["alone", "asks"].iter().map(|name| condition(&get(&cluster, name)["status"], "Ready").to_owned()).collect();
    assert_eq!(conditions, BTreeSet::from(["False".to_owned()]));
    assert!(engine.get("/readyz").is_some_and(|(code, _)| code == 200));
}

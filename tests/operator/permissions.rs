//! What engines may do follows from the rules: granted with a rule, gone with it, and refused with what to apply.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Installation, cluster};

impl Installation {
    /// Applies a rule for Pods that looks something up. Returns the warnings.
    fn look_up(&self, name: &str, expression: &str) -> String {
        let rule = json!({
            "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
            "metadata": { "name": name, "labels": { "served-by": self.name } },
            "spec": { "match": { "gvk": [{ "kind": "Pod" }] }, "rule": expression },
        });
        let mut child = self.cluster.kubectl_command();
        let mut child =
            child.args(["apply", "--filename=-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(rule.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    /// A condition of a rule in this instance.
    fn of_rule(&self, kind: &str, rule: &str, condition: &str) -> Value {
        let work = self.work();
        let rule = self.cluster.kubectl(&["--namespace", &work, "get", kind, rule, "--output=json"]).unwrap();
        let rule: Value = serde_json::from_str(&rule).unwrap();
        let conditions = rule["status"]["instances"][0]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|found| found["type"] == condition).unwrap_or_default()
    }

    /// Whether the engine may list something, in a namespace or in the whole cluster.
    fn may_list(&self, resource: &str, namespace: Option<&str>) -> bool {
        let account = format!("--as=system:serviceaccount:{}:{}", self.engine(), self.child());
        let place = namespace.map_or("--all-namespaces".to_owned(), |namespace| format!("--namespace={namespace}"));
        // It ends with an error to say no.
        let said = self.cluster.kubectl(&["auth", "can-i", "list", resource, &account, &place]);
        said.is_ok_and(|said| said.trim() == "yes")
    }
}

#[test]
fn a_right_comes_with_a_rule_and_goes_with_it() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "granted", json!({}));
    installation.ready();
    assert!(!installation.may_list("ingressclasses.networking.k8s.io", None));
    let rule = "granted-classes";
    assert_eq!(installation.look_up(rule, "len(cluster.ingressclasses.list()) > 100"), "");
    installation.eventually("the rule is active", || {
        installation.of_rule("pcr", rule, "Active")["status"] == "True"
            && installation.of_rule("pcr", rule, "PermissionGranted")["status"] == "True"
    });
    assert!(installation.may_list("ingressclasses.networking.k8s.io", None));
    installation.says("RBACReady", "True InSync");
    let role = cluster.kubectl(&["get", "clusterrole", &installation.child(), "--output=json"]).unwrap();
    let role: Value = serde_json::from_str(&role).unwrap();
    let because = &role["metadata"]["annotations"]["portal.io/because"];
    assert_eq!(*because, json!("ingressclasses.networking.k8s.io: granted-classes\n"));
    assert!(!role["rules"].to_string().contains('*'), "{role}");

    // What is there is explained as it is, and what a further rule would change is marked.
    let more = tempfile::NamedTempFile::new().unwrap();
    let further =
        "name: more\nmatch: {gvk: [{kind: Pod}]}\nrule: len(cluster.limitranges.list(metadata.namespace)) > 9\n";
    std::fs::write(more.path(), further).unwrap();
    let explain = cluster
        .command(env!("CARGO_BIN_EXE_portal"))
        .args(["explain", "permissions", "--live", "granted", "--rules"])
        .arg(more.path())
        .output()
        .unwrap();
    let said = String::from_utf8([explain.stdout, explain.stderr].concat()).unwrap();
    for line in ["  get, list, watch   ingressclasses.networking.k8s.io", "+ get, list, watch   limitranges"] {
        assert!(said.contains(line), "{said}");
    }

    // A rule of a namespace is granted there alone.
    let work = installation.work();
    installation.apply_object(&json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalRule",
        "metadata": { "name": "quotas", "namespace": work, "labels": { "served-by": "granted" } },
        "spec": { "match": { "gvk": [{ "kind": "Pod" }] }, "rule": "len(cluster.resourcequotas.list(metadata.namespace)) > 100" },
    }));
    installation.eventually("the rule of the namespace is active", || {
        installation.of_rule("prule", "quotas", "Active")["status"] == "True"
    });
    assert!(installation.may_list("resourcequotas", Some(&work)));
    assert!(!installation.may_list("resourcequotas", None));

    cluster.kubectl(&["delete", "pcr", rule]).unwrap();
    cluster.kubectl(&["--namespace", &work, "delete", "prule", "quotas"]).unwrap();
    installation.eventually("the rights are gone", || {
        !installation.may_list("ingressclasses.networking.k8s.io", None)
            && !installation.may_list("resourcequotas", Some(&work))
    });
    let left = cluster.kubectl(&["--namespace", &work, "get", "roles,rolebindings", "--output=name"]).unwrap();
    assert_eq!(left, "");
}

#[test]
fn a_rule_that_needs_more_than_can_be_granted_says_what_to_apply_and_others_go_on() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "needy", json!({}));
    installation.ready();
    installation.refuse_bad();
    let told = installation.look_up("needy-secrets", "len(cluster.secrets.list(metadata.namespace)) > 100");
    let warned = "PermissionGranted says what to apply: get, list, watch secrets in the whole cluster";
    assert!(told.contains(warned), "{told}");
    let condition = |name: &str| installation.of_rule("pcr", "needy-secrets", name);
    installation.eventually("it is told", || condition("PermissionGranted")["status"] == "False");
    installation.says("RBACReady", "False PermissionRefused");
    assert!(installation.message("RBACReady").contains("rule needy-secrets: get, list, watch secrets"));
    installation.eventually("an Event tells of it", || {
        let described = cluster.kubectl(&["describe", "portal", "needy"]).unwrap();
        let events = described.split_once("\nEvents:").map(|(_, events)| events.to_owned()).unwrap_or_default();
        let mut lines = events.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.any(|line| {
            line.starts_with("Warning PermissionRefused") && line.contains("rule needy-secrets: get, list, watch")
        })
    });
    assert!(installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad")));
    installation.eventually("others are granted", || {
        installation.of_rule("pcr", "needy", "PermissionGranted")["status"] == "True"
    });
    installation.eventually("it is not active", || condition("Active")["reason"] == "PermissionPending");
    // The instance works.
    installation.says("Ready", "True Ready");

    // What is told can be applied as it is, and then the rule comes alive by itself.
    let told = condition("PermissionGranted")["message"].as_str().unwrap().to_owned();
    let (sentence, manifests) = told.split_once('\n').unwrap();
    assert!(sentence.contains("get, list, watch secrets in the whole cluster"), "{told}");
    let command = sentence.split('`').find_map(|part| part.strip_prefix("kubectl ")).unwrap();
    let command: Vec<String> = command.split(' ').map(|word| word.replace('\'', "")).collect();
    cluster.kubectl(&command.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    cluster.kubectl_with_input(&["apply", "--filename=-"], manifests).unwrap();
    installation.eventually("it is granted", || condition("PermissionGranted")["status"] == "True");
    installation.eventually("the rule is active", || condition("Active")["status"] == "True");
    assert!(installation.may_list("secrets", None));

    // The ceiling sinks, and what was granted goes at once.
    cluster.kubectl(&["delete", "clusterrole", "portal-ceiling-needy-secrets"]).unwrap();
    installation.eventually("nobody may list Secrets", || !installation.may_list("secrets", None));
    installation.eventually("it is told again", || condition("PermissionGranted")["status"] == "False");
    cluster.kubectl(&["delete", "pcr", "needy-secrets"]).unwrap();
    installation.says("RBACReady", "True InSync");
}

#[test]
fn whoever_grants_by_hand_is_told_what_and_waited_for() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "byhand", json!({ "rbac": { "mode": "Manual" } }));
    installation.ready();
    installation.look_up("byhand-classes", "len(cluster.ingressclasses.list()) > 100");
    let condition = |name: &str| installation.of_rule("pcr", "byhand-classes", name);
    installation.eventually("it is told", || condition("PermissionGranted")["status"] == "False");
    assert!(!installation.may_list("ingressclasses.networking.k8s.io", None));
    let told = condition("PermissionGranted")["message"].as_str().unwrap().to_owned();
    let (_, manifests) = told.split_once('\n').unwrap();
    cluster.kubectl_with_input(&["apply", "--filename=-"], manifests).unwrap();
    installation.eventually("the rule is active", || {
        condition("PermissionGranted")["status"] == "True" && condition("Active")["status"] == "True"
    });
    cluster.kubectl_with_input(&["delete", "--filename=-"], manifests).unwrap();
    cluster.kubectl(&["delete", "pcr", "byhand-classes"]).unwrap();
}

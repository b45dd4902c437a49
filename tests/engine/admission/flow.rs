//! Changes of the rules while requests flow through the API server: no request is lost or judged wrongly, and the replica stays ready.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::judging::Guarded;
use super::pod;
use crate::core::eventually;
use crate::engine::{apply, create, definition, rule, rules_api};

const RULES: &str = r#"
name: host-network
match: {gvk: [{kind: Pod}]}
rule: spec.hostNetwork
"#;

/// How many requests and looks at readiness there were while something else was done.
#[derive(Debug, Default)]
struct Flowed {
    requests: u64,
    looks: u64,
}

/// Does something while requests flow: good pods, which must be let in, and bad ones, which must be refused by the rule.
fn while_requests_flow(guarded: &Guarded, change: impl FnOnce()) -> Flowed {
    let is_over = AtomicBool::new(false);
    let kubeconfig = guarded.cluster.kubeconfig();
    std::thread::scope(|scope| {
        let requests = scope.spawn(|| runtime().block_on(ask(&kubeconfig, &is_over)));
        let looks = scope.spawn(|| guarded.engine().stays_ready_while(|| !is_over.load(Ordering::Relaxed)));
        // Both end, whatever becomes of the change.
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(change));
        is_over.store(true, Ordering::Relaxed);
        let flowed = Flowed { requests: requests.join().unwrap(), looks: looks.join().unwrap() };
        if let Err(panic) = changed {
            std::panic::resume_unwind(panic);
        }
        flowed
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn client(kubeconfig: &std::path::Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // What goes wrong is to be seen.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

async fn ask(kubeconfig: &std::path::Path, is_over: &AtomicBool) -> u64 {
    let pods: Api<Pod> = Api::namespaced(client(kubeconfig).await, "shop");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let made = |name: &str, spec: Value| serde_json::from_value::<Pod>(pod(name, spec)).unwrap();
    let (good, bad) = (made("good", json!({})), made("bad", json!({"hostNetwork": true})));
    let mut requests = 0;
    while !is_over.load(Ordering::Relaxed) {
        if let Err(error) = pods.create(&dry, &good).await {
            panic!("request {requests}: a good pod is refused: {error}");
        }
        match pods.create(&dry, &bad).await {
            Err(kube::Error::Api(status)) if status.message.contains("host-network: spec.hostNetwork is true") => {}
            other => panic!("request {requests}: a bad pod is not refused by the rule: {other:?}"),
        }
        requests += 2;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    requests
}

#[test]
fn rules_come_and_go_while_requests_flow() {
    let flags = ["--rules-from-cluster", "--decision-log=off"];
    let guarded = Guarded::guard(Guarded::prepare(&[]), RULES, &[], &flags);
    guarded.wait_until_refused("shop");
    rules_for_kinds_that_did_not_exist(&guarded);
    a_thousand_rules_that_are_wrong(&guarded);
}

fn rules_for_kinds_that_did_not_exist(guarded: &Guarded) {
    const KINDS: usize = 2;
    let flowed = while_requests_flow(guarded, || {
        for number in 0..KINDS {
            let (plural, kind) = (format!("gadgets{number}"), format!("Gadget{number}"));
            let definition = definition(&plural, &kind);
            let files = guarded.judging.files();
            // The rule comes before its kind, or after it.
            let rule = format!(
                "name: {plural}\nmatch: {{gvk: [{{group: acme.io, kind: {kind}}}]}}\nrule: object.spec.size > 3\n"
            );
            if number % 2 == 0 {
                files.write_rules(&format!("{plural}.yaml"), &rule);
            }
            apply(&guarded.cluster, &definition);
            files.write_rules(&format!("{plural}.yaml"), &rule);
            fs::write(files.path(&format!("definitions/{plural}.yaml")), definition.to_string()).unwrap();
            guarded.configure(&[]);
            let gadget = |size: u8| {
                let gadget = json!({"apiVersion": "acme.io/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"size": size}});
                let create = ["--namespace", "shop", "create", "--dry-run=server", "--filename", "-"];
                guarded.kubectl(&create, &gadget.to_string())
            };
            eventually("the rule for the new kind refuses", || {
                let output = gadget(5);
                String::from_utf8_lossy(&output.stderr).contains(&format!("{plural}: spec.size is 5"))
            });
            assert!(gadget(1).status.success());
        }
        // And go again.
        for number in 0..KINDS {
            let plural = format!("gadgets{number}");
            fs::remove_file(guarded.judging.files().path(&format!("rules/{plural}.yaml"))).unwrap();
            fs::remove_file(guarded.judging.files().path(&format!("definitions/{plural}.yaml"))).unwrap();
        }
        guarded.configure(&[]);
        for number in 0..KINDS {
            guarded.cluster.kubectl(&["delete", "crd", &format!("gadgets{number}.acme.io"), "--wait=false"]).unwrap();
        }
        eventually("only the first rule is left", || guarded.engine().metric(r#"portal_rules{state="active"}"#) == 1);
    });
    println!("{flowed:?}");
    assert!(flowed.requests > 50 && flowed.looks > 50, "{flowed:?}");
}

/// A rule that cannot be used, or cannot be evaluated, each in another way.
fn bad_rule(number: usize) -> Value {
    let mut bad = match number % 10 {
        // Mistakes.
        0 => rule("", "contaner.image == 'x'"),
        1 => rule("", "spec.hostNetwork ||"),
        2 => rule("", "container.securityContext.runAsUser < 1000"),
        3 => rule("", &format!("{}true{}", "(".repeat(500), ")".repeat(500))),
        // What no rule may be about.
        4 => json!({"spec": {"match": {"gvk": [{"group": "coordination.k8s.io", "kind": "Lease"}]}, "rule": "true"}}),
        5 => json!({"spec": {"match": {"gvk": [{"kind": "Event"}]}, "rule": "true"}}),
        // Kinds that nobody serves.
        6 => json!({"spec": {"match": {"gvk": [{"group": "wgpolicyk8s.io", "kind": "*"}]}, "rule": "true"}}),
        7 => json!({"spec": {"match": {"gvk": [{"group": "acme.io", "kind": "Nothing"}]}, "rule": "true"}}),
        // What can be used, and fails for each of the pods.
        8 => rule("", "int(metadata.name) > 1"),
        _ => rule("", "duration(metadata.name) > duration(\"1s\")"),
    };
    bad["apiVersion"] = json!("portal.io/v1alpha1");
    bad["kind"] = json!("PortalClusterRule");
    bad["metadata"] = json!({"name": format!("bad-{number}")});
    bad["spec"]["enforcementAction"] = json!("dryrun");
    bad
}

fn a_thousand_rules_that_are_wrong(guarded: &Guarded) {
    const BAD: usize = 1000;
    let how = DeleteParams::default();
    let states = || {
        let state = |state: &str| guarded.engine().metric(&format!("portal_rules{{state=\"{state}\"}}"));
        [state("active"), state("refused"), state("waiting")]
    };
    let flowed = while_requests_flow(guarded, || {
        runtime().block_on(async {
            let rules = rules_api(client(&guarded.cluster.kubeconfig()).await);
            for numbers in (0..BAD).collect::<Vec<_>>().chunks(20) {
                futures_util::future::join_all(numbers.iter().map(|number| create(&rules, bad_rule(*number)))).await;
            }
            let tenth = BAD as i64 / 10;
            eventually("all are seen", || states().iter().sum::<i64>() == BAD as i64 + 1);
            assert_eq!(states(), [1 + 2 * tenth, 6 * tenth, 2 * tenth]);
            // One by one: all at once would take longer than a request may, on a machine that is busy.
            for names in (0..BAD).map(|number| format!("bad-{number}")).collect::<Vec<_>>().chunks(20) {
                let delete = |name| rules.delete(name, &how);
                let deleted = futures_util::future::join_all(names.iter().map(String::as_str).map(delete)).await;
                deleted.into_iter().for_each(|deleted| drop(deleted.unwrap()));
            }
            eventually("they are gone", || states() == [1, 0, 0]);
        });
    });
    println!("{flowed:?}");
    assert!(flowed.requests > 50 && flowed.looks > 50, "{flowed:?}");
}

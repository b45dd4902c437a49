//! Requests that go on while something changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use portal_test_kit::Cluster;
use serde_json::json;
use std::sync::Arc;

use super::{Installation, cluster};

/// Somebody who creates ConfigMaps all the time, without storing them. They are let in, or all refused by the rule.
pub(super) struct Load {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<(usize, Vec<String>)>,
}

impl Load {
    /// Of good ones.
    pub(super) fn start(cluster: &'static Cluster, namespace: String) -> Load {
        Load::of(cluster, namespace, None)
    }

    /// Of those that the rule of an installation refuses.
    pub(super) fn of_bad(cluster: &'static Cluster, namespace: String) -> Load {
        Load::of(cluster, namespace, Some("it is bad"))
    }

    fn of(cluster: &'static Cluster, namespace: String, refusal: Option<&'static str>) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&is_over);
        let task = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let api: Api<ConfigMap> = Api::namespaced(cluster.client().await, &namespace);
                let labels = refusal.map(|_| BTreeMap::from([("bad".to_owned(), String::new())]));
                let metadata = ObjectMeta { name: Some("load".to_owned()), labels, ..ObjectMeta::default() };
                let object = ConfigMap { metadata, ..ConfigMap::default() };
                let parameters = PostParams { dry_run: true, ..PostParams::default() };
                let (mut count, mut failures) = (0, Vec::new());
                while !end.load(Ordering::Relaxed) {
                    count += 1;
                    match (api.create(&parameters, &object).await, refusal) {
                        (Ok(_), Some(_)) => failures.push("a bad one was let in".to_owned()),
                        (Err(error), None) => failures.push(error.to_string()),
                        (Err(error), Some(refusal)) if !error.to_string().contains(refusal) => {
                            failures.push(error.to_string());
                        }
                        _ => {}
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                (count, failures)
            })
        });
        Load { is_over, task }
    }

    /// Every request was answered.
    #[track_caller]
    pub(super) fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let (count, failures) = self.task.join().unwrap();
        assert!(failures.is_empty(), "{} of {count} failed: {:#?}", failures.len(), failures.first());
        assert!(count > 50, "{count} requests are no load");
    }
}

#[test]
fn no_request_fails_while_every_pod_is_replaced() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "rolling", json!({ "admission": { "replicas": 3 } }));
    installation.ready();
    installation.refuse_bad();
    let load = Load::start(cluster, installation.work());
    let before = installation.kubectl(&["get", "pods", "--output=name"]);
    // What an upgrade does: another template.
    installation
        .apply(json!({ "admission": { "replicas": 3 }, "pods": { "annotations": { "example.org/round": "2" } } }));
    installation.eventually("every pod is another one", || {
        let after = installation.kubectl(&["get", "pods", "--output=name"]);
        after.lines().count() == 3 && after.lines().all(|pod| !before.contains(pod))
    });
    installation.ready();
    load.end();
}

#[test]
fn no_request_fails_while_an_instance_is_deleted_and_nothing_is_left() {
    let (cluster, _operator) = cluster();
    let installation = Installation::new(cluster, "deleted", json!({}));
    installation.ready();
    installation.refuse_bad();
    let load = Load::start(cluster, installation.work());
    let started = Instant::now();
    cluster.kubectl(&["delete", "portal", "deleted", "--cascade=foreground", "--timeout=120s"]).unwrap();
    assert!(installation.create_bad().is_ok());
    load.end();
    assert!(started.elapsed() >= Duration::from_secs(5), "engines went before all API servers could know");
    installation.nothing_is_left();
    // Rules are the users', and stay; and nothing says that they are in force.
    installation.eventually("the rule is as a new one", || {
        let rule = cluster.kubectl(&["get", "portalclusterrule", "deleted", "--output=jsonpath={.status}"]).unwrap();
        rule == r#"{"observedGeneration":-1}"#
    });
}

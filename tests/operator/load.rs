//! Requests that go on while something changes.

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

/// Somebody who creates ConfigMaps all the time, without storing them.
struct Load {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<(usize, Vec<String>)>,
}

impl Load {
    fn start(cluster: &'static Cluster, namespace: String) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&is_over);
        let task = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let api: Api<ConfigMap> = Api::namespaced(cluster.client().await, &namespace);
                let metadata = ObjectMeta { name: Some("load".to_owned()), ..ObjectMeta::default() };
                let object = ConfigMap { metadata, ..ConfigMap::default() };
                let parameters = PostParams { dry_run: true, ..PostParams::default() };
                let (mut count, mut failures) = (0, Vec::new());
                while !end.load(Ordering::Relaxed) {
                    count += 1;
                    if let Err(error) = api.create(&parameters, &object).await {
                        failures.push(error.to_string());
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
    fn end(self) {
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
    let selector = "--selector=portal.io/instance=deleted";
    let kinds = "deployments,services,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,configmaps,pods";
    installation.eventually("nothing is left", || {
        let namespaced = cluster.kubectl(&["get", kinds, "--all-namespaces", selector, "--output=name"]).unwrap();
        let kinds = "clusterroles,clusterrolebindings,validatingwebhookconfigurations";
        namespaced.is_empty() && cluster.kubectl(&["get", kinds, selector, "--output=name"]).unwrap().is_empty()
    });
    // Rules are the users', and stay.
    cluster.kubectl(&["get", "portalclusterrule", "deleted"]).unwrap();
}

//! Size *control*: controllers and the scheduler act on what is stored.

mod install;

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use portal_test_kit::{Cluster, Size};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.org/web:1}]}
";

#[tokio::test]
async fn a_deployment_becomes_a_replica_set_and_pods() {
    let cluster = Cluster::shared(Size::Control);
    let client = cluster.client().await;
    let namespace = cluster.namespace("deployment").await;
    namespace.apply(DEPLOYMENT).unwrap();
    let replica_sets: Api<ReplicaSet> = namespace.api(client.clone());
    let pods: Api<Pod> = namespace.api(client);
    let deadline = Instant::now() + Duration::from_secs(30);
    let found = loop {
        let found = pods.list(&ListParams::default()).await.unwrap().items;
        if found.len() == 2 || Instant::now() > deadline {
            break found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(found.len(), 2);
    let replica_set = &replica_sets.list(&ListParams::default()).await.unwrap().items[0];
    for pod in &found {
        let owner = &pod.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((owner.kind.as_str(), &owner.uid), ("ReplicaSet", replica_set.metadata.uid.as_ref().unwrap()));
    }
}

#[tokio::test]
async fn what_a_deleted_owner_leaves_is_collected() {
    let cluster = Cluster::shared(Size::Control);
    let namespace = cluster.namespace("collected").await;
    namespace.apply(DEPLOYMENT).unwrap();
    namespace.kubectl(&["wait", "--for=create", "replicasets", "--selector=app=web", "--timeout=30s"]).unwrap();
    namespace.kubectl(&["delete", "deployment", "web", "--cascade=foreground", "--timeout=30s"]).unwrap();
    assert_eq!(namespace.kubectl(&["get", "replicasets", "--output=name"]).unwrap(), "");
}

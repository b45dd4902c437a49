//! What controllers make of the roles that are installed.

use portal_operator::names::{OPERATOR, account};
use portal_test_kit::{Cluster, Size, repository};

use crate::core::install::{apply, client_of, generate, may};

/// Waits until an account may do something.
async fn wait_until_may(client: &kube::Client, verb: &str, resource: &str, namespace: &str) {
    for _ in 0..600 {
        if may(client, verb, resource, namespace).await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{verb} {resource} in `{namespace}` is still not allowed");
}

#[tokio::test]
async fn administrators_raise_the_ceiling_by_a_label() {
    let cluster = Cluster::shared(Size::Control);
    apply(cluster, &generate(&["install", "--image", "registry.example/portal:v1"]));
    let operator = client_of(cluster, &account("portal-operator", OPERATOR)).await;
    wait_until_may(&operator, "list", "pods", "").await;
    assert!(!may(&operator, "create", "pods/eviction", "").await);
    apply(cluster, &generate(&["action-roles"]));
    wait_until_may(&operator, "create", "pods/eviction", "").await;
    assert!(!may(&operator, "get", "secrets", "").await, "no action reads Secrets");

    // Whoever applies the manifest again takes nothing away.
    apply(cluster, &generate(&["install", "--image", "registry.example/portal:v1"]));
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(may(&operator, "create", "pods/eviction", "").await);

    cluster.kubectl(&["delete", "clusterrole", "portal:action-evict"]).unwrap();
    for _ in 0..600 {
        if !may(&operator, "create", "pods/eviction", "").await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the right stays although its role is gone");
}

#[tokio::test]
async fn people_write_rules_of_their_namespace_and_see_the_others() {
    let cluster = Cluster::shared(Size::Control);
    let folder = repository().join("crds/yaml");
    cluster.kubectl(&["apply", "--server-side", "--filename", folder.to_str().unwrap()]).unwrap();
    apply(cluster, &generate(&["install", "--image", "registry.example/portal:v1"]));
    let namespace = cluster.namespace("people").await;
    namespace.kubectl(&["create", "rolebinding", "edit", "--clusterrole=edit", "--user=jane"]).unwrap();
    cluster.kubectl(&["create", "clusterrolebinding", "people-view", "--clusterrole=view", "--user=john"]).unwrap();
    let jane = cluster.client_as("jane", &["system:authenticated"]).await;
    let john = cluster.client_as("john", &["system:authenticated"]).await;
    wait_until_may(&jane, "create", "portalrules.portal.io", &namespace.name).await;
    wait_until_may(&john, "list", "portalinstances.portal.io", "").await;
    for (client, verb, resource, place, expected) in [
        (&jane, "delete", "portalrules.portal.io", namespace.name.as_str(), true),
        (&jane, "get", "portalrules.portal.io", namespace.name.as_str(), true),
        (&jane, "create", "portalrules.portal.io", "default", false),
        (&jane, "patch", "portalrules.portal.io/status", namespace.name.as_str(), false),
        (&jane, "create", "portalclusterrules.portal.io", "", false),
        (&jane, "bypass", "portalinstances.portal.io", "", false),
        (&john, "watch", "portalclusterrules.portal.io", "", true),
        (&john, "create", "portalrules.portal.io", "default", false),
        (&john, "patch", "portalinstances.portal.io", "", false),
        (&john, "bypass", "portalinstances.portal.io", "", false),
    ] {
        assert_eq!(may(client, verb, resource, place).await, expected, "{verb} {resource} in `{place}`");
    }
}

//! Size *full*: pods run on a node.

use std::process::Stdio;
use std::time::{Duration, Instant};

use portal_test_kit::cache::Cache;
use portal_test_kit::certificates::Authority;
use portal_test_kit::image::{self, RESPONDER_IMAGE};
use portal_test_kit::{Cluster, Namespace, Size, prepare};
use serde_json::json;

use crate::core::{eventually, keeper, processes_of};

/// The shared cluster, with the images that these tests use on its node.
fn cluster() -> &'static Cluster {
    static IMAGES: std::sync::Once = std::sync::Once::new();
    let cluster = Cluster::shared(Size::Full);
    IMAGES.call_once(|| {
        let cache = Cache::open().unwrap();
        cluster.import_image(&image::find(&cache, "responder").unwrap()).unwrap();
        cluster.import_image(&prepare::portal_image(&cache).unwrap()).unwrap();
    });
    cluster
}

/// A pod that serves, and a Service that leads to it.
fn server(namespace: &Namespace<'_>, arguments: &[&str], port: u16) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "server", "labels": {"app": "server"}},
        "spec": {
            "containers": [{
                "name": "server", "image": RESPONDER_IMAGE, "imagePullPolicy": "Never", "args": arguments,
                "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
            }],
            "volumes": [{"name": "tls", "secret": {"secretName": "tls", "optional": true}}],
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": port}]},
    });
    namespace.apply(&pod.to_string()).unwrap();
    namespace.apply(&service.to_string()).unwrap();
    namespace.kubectl(&["wait", "--for=condition=Ready", "pod/server", "--timeout=60s"]).unwrap();
}

/// Runs a pod to its end and returns what it wrote.
fn run_to_end(namespace: &Namespace<'_>, image: &str, arguments: &[&str]) -> String {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "once"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "once", "image": image, "imagePullPolicy": "Never", "args": arguments,
                "securityContext": {
                    "runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                },
            }],
        },
    });
    namespace.apply(&pod.to_string()).unwrap();
    namespace.kubectl(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/once", "--timeout=60s"]).unwrap();
    namespace.kubectl(&["logs", "once"]).unwrap()
}

#[tokio::test]
async fn the_image_that_users_get_runs_with_no_rights_and_its_log_is_read() {
    let namespace = cluster().namespace("image").await;
    let log = run_to_end(&namespace, image::PORTAL_IMAGE, &["version"]);
    let version = env!("CARGO_PKG_VERSION");
    assert!(log.starts_with(&format!("portal {version} (commit ")), "{log}");
    assert!(log.ends_with("-unknown-linux-musl)\n"), "{log}");
}

#[tokio::test]
async fn a_pod_reaches_another_through_a_service() {
    let namespace = cluster().namespace("service").await;
    server(&namespace, &["serve", "--http", ":8080"], 8080);
    let address = namespace.kubectl(&["get", "service", "server", "--output=jsonpath={.spec.clusterIP}"]).unwrap();
    let url = format!("http://{address}/");
    let log = run_to_end(&namespace, RESPONDER_IMAGE, &["call", &url, "--repeat", "3", "--interval", "500ms"]);
    assert_eq!(log.lines().last(), Some("200 responder server"), "{log}");
    let served = namespace.kubectl(&["logs", "server"]).unwrap();
    assert!(served.contains("GET / 200"), "{served}");
}

#[tokio::test]
async fn the_api_server_calls_a_webhook_that_is_served_in_the_cluster() {
    let cluster = cluster();
    let namespace = cluster.namespace("webhook").await;
    let authority = Authority::new("webhook-test").unwrap();
    let host = format!("server.{}.svc", namespace.name);
    let pair = authority.server(&host, &[&host]).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key},
    });
    namespace.apply(&secret.to_string()).unwrap();
    let arguments = ["serve", "--http", ":8080", "--tls", ":8443", "--cert", "/tls/tls.crt", "--key", "/tls/tls.key"];
    server(&namespace, &arguments, 8443);
    let answer = json!({"allowed": false, "message": "told to refuse", "code": 403}).to_string();
    let call = ["exec", "server", "--", "/responder", "call", "--method", "PUT", "--data"];
    namespace.kubectl(&[&call[..], &[&answer, "http://127.0.0.1:8080/answer"]].concat()).unwrap();

    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace.name},
        "webhooks": [{
            "name": "server.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            "clientConfig": {
                "service": {"namespace": namespace.name, "name": "server", "path": "/review", "port": 80},
                "caBundle": k8s_openapi::ByteString(authority.pair().certificate.into_bytes()),
            },
        }],
    });
    namespace.apply(&configuration.to_string()).unwrap();

    // The API server learns of the configuration by a watch, so the first tries may slip through.
    let deadline = Instant::now() + Duration::from_secs(30);
    let refusal = loop {
        match namespace.kubectl(&["create", "configmap", "refused"]) {
            Err(error) => break error.to_string(),
            Ok(_) => namespace.kubectl(&["delete", "configmap", "refused"]).unwrap(),
        };
        assert!(Instant::now() < deadline, "the webhook was never called");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(
        refusal.contains(r#"admission webhook "server.example.org" denied the request: told to refuse"#),
        "{refusal}"
    );
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &namespace.name]).unwrap();
    let log = namespace.kubectl(&["logs", "server"]).unwrap();
    // The protocol that the API server uses for webhooks behind Services; over HTTP/2 this would not be the real path.
    assert!(log.lines().any(|line| line.contains("/review 200") && line.contains("HTTP/1.1")), "{log}");
}

#[test]
fn nothing_of_a_full_cluster_is_outside_its_namespaces() {
    let folder = cluster().logs().parent().unwrap().to_owned();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(folder.to_str().unwrap()), "{mounts}");
    let devices = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    assert!(!devices.contains("pods0") && !devices.contains("node0"), "{devices}");
}

/// The cgroups that carry this name, in every hierarchy.
fn cgroups_of(id: &str) -> Vec<String> {
    let output = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-maxdepth", "2", "-name", &format!("portal-{id}")])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_full_cluster_leaves_nothing_that_the_next_start_does_not_clean() {
    let (mut keeper, state) = keeper(Size::Full, Stdio::piped());
    let id = state.id();
    assert!(!cgroups_of(&id).is_empty());
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    eventually("the kernel ends everything in the namespaces", || processes_of(state.root()).is_empty());
    Cluster::start(Size::Core).unwrap();
    assert!(!state.root().exists());
    assert_eq!(cgroups_of(&id), Vec::<String>::new());
}

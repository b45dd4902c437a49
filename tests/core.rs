//! Size *core*: etcd and a real API server.

pub(crate) mod children;
mod definitions;
mod fault_proxy;
pub(crate) mod install;
mod instances;
mod lease;
mod roles;
mod rules;
pub(crate) mod tables;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use portal_test_kit::cache::Cache;
use portal_test_kit::held::{Server, kit_binary};
use portal_test_kit::state::State;
use portal_test_kit::{Cluster, Namespace, Size, kubernetes};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), "value".to_owned())])),
        ..ConfigMap::default()
    }
}

/// A role of the test's own: the ones that Kubernetes ships are filled in by a controller, which *core* has not.
fn allow_writing(namespace: &Namespace<'_>, whom: &str) {
    namespace.kubectl(&["create", "role", "writer", "--verb=create,delete", "--resource=configmaps"]).unwrap();
    namespace.kubectl(&["create", "rolebinding", "writer", "--role=writer", whom]).unwrap();
}

#[tokio::test]
async fn the_api_server_stores_what_it_is_sent() {
    let cluster = Cluster::shared(Size::Core);
    let client = cluster.client().await;
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, format!("v{}", kubernetes::Version::chosen().unwrap().text()));

    let namespace = cluster.namespace("stores").await;
    let config_maps: Api<ConfigMap> = namespace.api(client);
    config_maps.create(&PostParams::default(), &config_map("one")).await.unwrap();
    assert_eq!(config_maps.get("one").await.unwrap().data.unwrap()["key"], "value");
}

#[tokio::test]
async fn kubectl_talks_to_the_same_cluster() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("kubectl").await;
    let applied =
        namespace.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {key: value}}").unwrap();
    assert_eq!(applied, "configmap/one created\n");
    assert_eq!(namespace.kubectl(&["get", "configmap", "one", "--output=jsonpath={.data.key}"]).unwrap(), "value");
    let error = namespace.kubectl(&["get", "configmap", "two"]).unwrap_err().to_string();
    assert!(error.contains(r#"configmaps "two" not found"#), "{error}");
}

#[tokio::test]
async fn a_user_without_rights_is_refused_and_one_in_a_bound_group_is_not() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("refused").await;
    let stranger: Api<ConfigMap> = namespace.api(cluster.client_as("jane", &["strangers"]).await);
    match stranger.create(&PostParams::default(), &config_map("one")).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 403);
            assert!(
                status.message.contains(r#"User "jane" cannot create resource "configmaps""#),
                "{}",
                status.message
            );
        }
        other => panic!("jane may not create anything, but got {other:?}"),
    }

    allow_writing(&namespace, "--group=writers");
    let writer: Api<ConfigMap> = namespace.api(cluster.client_as("john", &["readers", "writers"]).await);
    // The authorizer learns of a new binding by a watch, so the first try may come too early.
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Err(error) = writer.create(&PostParams::default(), &config_map("one")).await {
        assert!(Instant::now() < deadline, "john is in a group that may write, but: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_audit_log_names_who_wrote_what() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("audit").await;
    allow_writing(&namespace, "--user=jane");
    let config_maps: Api<ConfigMap> = namespace.api(cluster.client_as("jane", &[]).await);
    let deadline = Instant::now() + Duration::from_secs(10);
    while config_maps.create(&PostParams::default(), &config_map("one")).await.is_err() {
        assert!(Instant::now() < deadline, "jane was given the right to write");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    config_maps.delete("one", &DeleteParams::default()).await.unwrap();

    let events = cluster.audit_events().await.unwrap();
    let writes: Vec<String> = events
        .iter()
        .filter(|event| event.object_ref.namespace == namespace.name && event.is_write() && event.code() < 300)
        .map(|event| format!("{} {} {}/{}", event.user(), event.verb, event.object_ref.resource, event.object_ref.name))
        .collect();
    assert_eq!(
        writes,
        [
            "admin create roles/writer",
            "admin create rolebindings/writer",
            "jane create configmaps/one",
            "jane delete configmaps/one"
        ]
    );
    let sent = events.iter().find(|event| event.object_ref.name == "one" && event.verb == "create").unwrap();
    assert_eq!(sent.request_object.as_ref().unwrap()["data"]["key"], "value");
}

#[tokio::test]
async fn two_clusters_run_side_by_side_without_seeing_each_other() {
    let shared = Cluster::shared(Size::Core);
    let other = Cluster::start(Size::Core).unwrap();
    other.kubectl(&["create", "namespace", "only-here"]).unwrap();
    assert!(other.kubectl(&["get", "namespace", "only-here"]).is_ok());
    assert!(shared.kubectl(&["get", "namespace", "only-here"]).is_err());
    let folder = other.logs().parent().unwrap().to_owned();
    other.stop().unwrap();
    assert!(!folder.exists(), "a stopped cluster leaves nothing behind");
    assert!(shared.kubectl(&["get", "namespaces"]).is_ok());
}

/// The processes whose command line names this folder.
pub(crate) fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(folder) {
            found.push(command);
        }
    }
    found
}

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a keeper as a test would, and waits until its cluster is ready.
pub(crate) fn keeper(size: Size, input: Stdio) -> (std::process::Child, State) {
    use std::io::BufRead as _;
    let mut child = Command::new(kit_binary().unwrap())
        .args(["keep", &size.to_string()])
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let report: serde_json::Value = serde_json::from_str(&line).unwrap();
    (child, State::at(report["ready"].as_str().unwrap()))
}

#[test]
fn a_cluster_ends_with_a_test_process_that_is_killed() {
    // Another program plays the test process: it holds the other end of the keeper's pipe, and is killed the hard way.
    let mut holder = Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn().unwrap();
    let (mut keeper, state) = keeper(Size::Core, Stdio::from(holder.stdout.take().unwrap()));
    assert!(processes_of(state.root()).len() >= 2);
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("the keeper ends when its pipe closes", || keeper.try_wait().unwrap().is_some());
    assert_eq!(processes_of(state.root()), Vec::<String>::new());
    assert!(!state.root().exists());
}

#[test]
fn what_a_killed_keeper_leaves_is_cleaned_by_the_next_start() {
    let (mut keeper, state) = keeper(Size::Core, Stdio::piped());
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    eventually("the kernel ends the components of a killed keeper", || processes_of(state.root()).is_empty());
    Cluster::start(Size::Core).unwrap();
    assert!(!state.root().exists());
}

#[test]
fn a_taken_port_is_refused_with_the_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut keeper = Command::new(kit_binary().unwrap())
        .args(["keep", "core", "--port", &port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe stays open until the answer is there: a keeper whose pipe closes ends without a word.
    let pipe = keeper.stdin.take();
    let report = std::io::read_to_string(keeper.stdout.take().unwrap()).unwrap();
    drop(pipe);
    keeper.wait().unwrap();
    let expected =
        format!("port {port} cannot be used (Address already in use (os error 98)): choose another with PORT=…");
    assert!(report.contains(&expected), "{report}");
}

#[test]
fn a_go_program_runs_on_a_port_of_its_own_and_ends_with_the_test() {
    let cache = Cache::open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let program = portal_test_kit::responder();
    let start = |log: &str| {
        Server::start(&cache, &program, &folder.path().join(log), |port| {
            vec!["serve".to_owned(), "--http".to_owned(), format!("127.0.0.1:{port}")]
        })
        .unwrap()
    };
    let (one, other) = (start("one.log"), start("other.log"));
    assert_ne!(one.address, other.address);
    let address = one.address.to_string();
    let ask = || {
        Command::new(program.find(&cache).unwrap())
            .args(["call", &format!("http://{address}/healthz")])
            .output()
            .unwrap()
    };
    assert_eq!(String::from_utf8_lossy(&ask().stdout).trim(), "200 ok");
    one.stop().unwrap();
    assert!(!ask().status.success(), "a stopped server does not answer");
}

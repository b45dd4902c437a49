//! The tables of Kubernetes' kinds and of their fields are what its API server says. `PORTAL_UPDATE=1` writes them.

mod fields;
mod filled;
mod pointers;

use std::collections::{BTreeMap, BTreeSet};

use portal_test_kit::{Cluster, Size, kubernetes, repository};
use serde_json::Value;

/// How a kind is served.
#[derive(Default)]
struct Served {
    versions: Vec<String>,
    namespaced: bool,
    subresources: BTreeSet<String>,
}

fn get(cluster: &Cluster, path: &str) -> Value {
    serde_json::from_str(&cluster.kubectl(&["get", "--raw", path]).unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Groups that other tests bring to the shared cluster.
const FOREIGN: [&str; 3] = ["openreports.io", "portal.io", "wgpolicyk8s.io"];

/// The groups that Kubernetes itself serves, with their versions, the preferred one first.
fn groups(cluster: &Cluster) -> Vec<(String, Vec<String>)> {
    let mut groups = vec![(String::new(), vec!["v1".to_owned()])];
    let others = get(cluster, "/apis");
    for group in list(&others["groups"]).filter(|group| !FOREIGN.contains(&text(&group["name"]))) {
        let versions = list(&group["versions"]).map(|version| text(&version["version"]).to_owned());
        groups.push((text(&group["name"]).to_owned(), versions.collect()));
    }
    groups
}

/// Where a version of a group is served.
fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Compares with a file that is committed. The tables are those of one version.
#[track_caller]
fn check(file: &str, generated: &str) {
    let path = repository().join(file);
    if std::env::var_os("PORTAL_UPDATE").is_some() {
        return std::fs::write(path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    let hint = "run `PORTAL_UPDATE=1 make test SUITE=core`";
    assert!(committed == generated, "{file} is not what the API server says: {hint}");
}

/// Whether the cluster is of the release that the tables are of.
pub(crate) fn is_newest() -> bool {
    kubernetes::Version::chosen().unwrap().text() == kubernetes::DEFAULT_VERSION
}

#[test]
fn the_table_of_kinds_is_what_the_api_server_serves() {
    let cluster = Cluster::shared(Size::Core);
    let mut lines = BTreeSet::new();
    for (group, versions) in groups(cluster) {
        // By kind and plural.
        let mut kinds: BTreeMap<(String, String), Served> = BTreeMap::new();
        for version in versions {
            let served = get(cluster, &format!("/{}", path_of(&group, &version)));
            for resource in list(&served["resources"]).filter(|resource| !text(&resource["name"]).contains('/')) {
                let plural = text(&resource["name"]).to_owned();
                let namespaced = resource["namespaced"].as_bool().unwrap();
                let entry = kinds.entry((text(&resource["kind"]).to_owned(), plural.clone())).or_default();
                entry.versions.push(version.clone());
                entry.namespaced = namespaced;
                let below = list(&served["resources"]).filter_map(|other| text(&other["name"]).split_once('/'));
                entry.subresources.extend(below.filter(|(of, _)| *of == plural).map(|(_, name)| name.to_owned()));
            }
        }
        for ((kind, plural), Served { versions, namespaced, subresources }) in kinds {
            let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
            let subresources = or_none(subresources.into_iter().collect::<Vec<_>>().join(","));
            let scope = if namespaced { "namespaced" } else { "cluster" };
            let group = or_none(group.clone());
            lines.insert(format!("{group} {kind} {plural} {} {scope} {subresources}\n", versions.join(",")));
        }
    }
    if is_newest() {
        check("engine/core/src/kinds/builtin.txt", &lines.into_iter().collect::<String>());
    }
}

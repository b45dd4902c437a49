//! What the API server serves, asked in both ways.

use portal_cluster::kinds::{discover, discover_each};
use portal_core::kinds::{Kind, Kinds};
use portal_test_kit::{Cluster, Size};

use crate::core::{eventually, tables::is_newest};

/// Kinds without what others may have installed.
fn of_kubernetes(kinds: &Kinds) -> Vec<Kind> {
    kinds.iter().filter(|kind| Kinds::builtin().get(&kind.group, &kind.kind).is_some()).cloned().collect()
}

#[tokio::test]
async fn both_ways_of_discovery_tell_what_the_table_says() {
    let client = Cluster::shared(Size::Core).client().await;
    let at_once = of_kubernetes(&discover(&client, None).await.unwrap());
    let one_by_one = of_kubernetes(&discover_each(&client, None).await.unwrap());
    let sorted = |kinds: Vec<Kind>| {
        let kinds = kinds.into_iter().map(|mut kind| {
            kind.subresources.sort();
            kind
        });
        kinds.collect::<Vec<_>>()
    };
    let at_once = sorted(at_once);
    assert!(at_once.len() > 50, "{}", at_once.len());
    assert_eq!(at_once, sorted(one_by_one));
    if is_newest() {
        assert_eq!(at_once, sorted(Kinds::builtin().iter().cloned().collect()));
    }
}

/// A group whose server is gone, as when its pod restarts.
const BROKEN: &str = "
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.broken.example.com}
spec:
  group: broken.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: default, name: nobody}
";

#[tokio::test]
async fn a_group_whose_server_does_not_answer_keeps_its_kinds() {
    let cluster = Cluster::start(Size::Core).unwrap();
    let client = cluster.client().await;
    cluster.kubectl_with_input(&["apply", "--filename", "-"], BROKEN).unwrap();
    eventually("the group is listed", || {
        cluster.kubectl(&["get", "--raw", "/apis"]).is_ok_and(|groups| groups.contains("broken.example.com"))
    });
    let widget = Kind {
        group: "broken.example.com".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        versions: vec!["v1".to_owned()],
        namespaced: true,
        subresources: Vec::new(),
    };
    let mut kinds = [Kinds::new([widget.clone()]), Kinds::new([widget.clone()])];
    for _ in 0..2 {
        let at_once = discover(&client, Some(&kinds[0])).await.unwrap();
        let one_by_one = discover_each(&client, Some(&kinds[1])).await.unwrap();
        kinds = [at_once, one_by_one];
        for kinds in &kinds {
            assert_eq!(kinds.get(&widget.group, &widget.kind).map(|kind| &**kind), Some(&widget));
            assert!(kinds.iter().count() > 50);
        }
    }
}

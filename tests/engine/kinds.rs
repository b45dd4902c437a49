//! What the API server serves, asked in both ways.

use portal_core::kinds::{Kind, Kinds};
use portal_engine::kinds::{discover, discover_each};
use portal_test_kit::{Cluster, Size};

/// Kinds without what others may have installed.
fn of_kubernetes(kinds: &Kinds) -> Vec<Kind> {
    kinds.iter().filter(|kind| Kinds::builtin().get(&kind.group, &kind.kind).is_some()).cloned().collect()
}

#[tokio::test]
async fn both_ways_of_discovery_tell_what_the_table_says() {
    let client = Cluster::shared(Size::Core).client().await;
    let at_once = of_kubernetes(&discover(&client, None).await.unwrap());
    let one_by_one = of_kubernetes(&discover_each(&client).await.unwrap());
    let sorted = |kinds: Vec<Kind>| {
        let kinds = kinds.into_iter().map(|mut kind| {
            kind.subresources.sort();
            kind
        });
        kinds.collect::<Vec<_>>()
    };
    let at_once = sorted(at_once);
    assert!(at_once.len() > 60, "{}", at_once.len());
    assert_eq!(at_once, sorted(one_by_one));
    let table = sorted(Kinds::builtin().iter().cloned().collect());
    assert_eq!(at_once, table);
}

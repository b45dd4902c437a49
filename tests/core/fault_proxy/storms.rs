//! What the proxy does at random, and how far a seed repeats it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use portal_test_kit::fault_proxy::Storm;
use portal_test_kit::share;
use tokio::time::timeout;

use super::{config_map, create, fixture, names};

/// What a proxy with this seed decides for a fixed history.
async fn decisions(seed: u64) -> Vec<String> {
    let fixture = fixture("decisions", seed).await;
    let longest = Duration::from_millis(10);
    // Whether an event comes before the client leaves its watch is not the seed's.
    let storm = Storm { requests: 0.5, events: 0.0, partitions: false, longest, ..Storm::default() };
    let _storm = fixture.proxy.storm(storm);
    let mut config = fixture.jane.config();
    config.default_retry = false;
    let api: Api<ConfigMap> = fixture.namespace.api(Client::try_from(config).unwrap());
    for _ in 0..10 {
        let _ = create(&api, "one").await;
        let _ = api.list(&ListParams::default().match_any()).await;
        let _ = api.get("one").await;
        let _ = api.replace("one", &PostParams::default(), &config_map("one")).await;
        let _ = api.watch(&WatchParams::default().timeout(1), "0").await;
        let _ = api.delete("one", &DeleteParams::default()).await;
    }
    let mut decisions: Vec<String> = fixture.proxy.log().iter().map(|entry| entry.decision()).collect();
    // Stale reads name the revision, which is the cluster's and not the seed's.
    for decision in &mut decisions {
        if let Some(end) = decision.find(" as of revision") {
            decision.truncate(end);
        }
    }
    decisions
}

#[tokio::test]
async fn the_same_seed_decides_alike_for_the_same_history() {
    let (one, again, other) = (decisions(8).await, decisions(8).await, decisions(9).await);
    assert_eq!(one.len(), 60);
    assert_eq!(one, again);
    assert_ne!(one, other);
    for fault in ["delayed", "cut before", "answer lost", "answered 409", "answered 500"] {
        assert!(one.iter().any(|decision| decision.contains(fault)), "{fault} is not in {one:#?}");
    }
}

#[tokio::test]
async fn a_watcher_that_came_through_a_storm_knows_what_is_stored() {
    for seed in share::seeds(3, 40) {
        let fixture = fixture("storm", seed).await;
        let storm = fixture.proxy.storm(Storm { longest: Duration::from_millis(50), ..Storm::default() });
        let writes = async {
            for round in 0..60 {
                let name = format!("name-{}", round % 7);
                let _ = create(&fixture.through, &name).await;
                let _ = fixture.through.delete(&format!("name-{}", (round * 3) % 7), &DeleteParams::default()).await;
            }
            drop(storm);
            fixture.proxy.passed_on().await;
            create(&fixture.direct, "last").await.unwrap();
        };
        let watches = async {
            let mut known = BTreeSet::new();
            let mut watcher = pin!(watcher(fixture.through.clone(), watcher::Config::default()));
            // In a list, names come that sort behind the last one.
            let mut is_listing = true;
            while is_listing || !known.contains("last") {
                match watcher.next().await.unwrap() {
                    Ok(watcher::Event::Init) => {
                        is_listing = true;
                        known.clear();
                    }
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                        known.insert(object.metadata.name.unwrap());
                    }
                    Ok(watcher::Event::Delete(object)) => {
                        known.remove(&object.metadata.name.unwrap());
                    }
                    Ok(watcher::Event::InitDone) => is_listing = false,
                    Err(_) => {}
                }
            }
            known
        };
        let ((), known) = timeout(Duration::from_secs(60), async { tokio::join!(writes, watches) }).await.unwrap();
        assert_eq!(known, names(&fixture.direct, &ListParams::default()).await, "seed {seed}");
        assert!(fixture.proxy.log().iter().any(|entry| entry.event.is_some()), "events were hit too");
    }
}

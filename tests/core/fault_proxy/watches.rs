//! What the proxy does to watches, as kube's client and kube's watcher see it.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use portal_test_kit::audit_log::AuditEvent;
use portal_test_kit::fault_proxy::{Answer, Fault, Requests, Verb};
use portal_test_kit::{Cluster, Size};
use tokio::time::timeout;

use super::{A_WHILE, PATIENCE, config_map, config_maps, create, fixture, next, until, watch};
use crate::core::tables::is_newest;

/// Follows a kube watcher until it knows this object, as it should without help.
async fn follow(watcher: &mut (impl Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin), wanted: &str) {
    let followed = timeout(PATIENCE, async {
        while let Some(event) = watcher.next().await {
            // Errors are part of the test: the watcher goes on after them.
            if let Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) = event
                && object.metadata.name.as_deref() == Some(wanted)
            {
                return;
            }
        }
    });
    followed.await.unwrap_or_else(|_| panic!("the watcher never heard of {wanted}"));
}

/// Follows a kube watcher until it knows the state at its start.
async fn follow_start(watcher: &mut (impl Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin)) {
    while !matches!(timeout(PATIENCE, watcher.next()).await, Ok(Some(Ok(watcher::Event::InitDone)))) {}
}

#[tokio::test]
async fn events_are_dropped_doubled_and_delayed() {
    let fixture = fixture("events", 1).await;
    let (mut proxied, mut direct) = (watch(&fixture.through).await, watch(&fixture.direct).await);
    // The watches are open: faults meet the events of watches that began before them.
    let _dropped = fixture.proxy.inject(Fault::DropEvent.on(config_maps().name("two")).next(1));
    let _doubled = fixture.proxy.inject(Fault::DuplicateEvent.on(config_maps().name("three")));
    let delayed = fixture.proxy.inject(Fault::DelayEvent(A_WHILE).on(config_maps().name("four")));
    for name in ["one", "two", "three", "four"] {
        create(&fixture.direct, name).await.unwrap();
    }
    fixture.direct.delete("two", &DeleteParams::default()).await.unwrap();
    for expected in ["added one", "added two", "added three", "added four", "deleted two"] {
        assert_eq!(next(&mut direct).await.unwrap(), expected);
    }
    for expected in ["added one", "added three", "added three"] {
        assert_eq!(next(&mut proxied).await.unwrap(), expected);
    }
    delayed.hit(1).await;
    for expected in ["added four", "deleted two"] {
        assert_eq!(next(&mut proxied).await.unwrap(), expected);
    }
    let log: Vec<String> =
        fixture.proxy.log().iter().filter(|entry| entry.event.is_some()).map(|entry| entry.decision()).collect();
    let expected = [
        "jane watch ADDED configmaps/two #0: dropped",
        "jane watch ADDED configmaps/three #0: doubled",
        "jane watch ADDED configmaps/four #0: delayed by 300ms",
    ];
    assert_eq!(log, expected);
}

#[tokio::test]
async fn a_watch_that_is_cut_is_resumed_without_a_list() {
    let fixture = fixture("resumed", 1).await;
    let mut raw = watch(&fixture.other("john")).await;
    let mut watcher = pin!(watcher(fixture.through.clone(), watcher::Config::default()));
    follow_start(&mut watcher).await;
    let cut = fixture.proxy.inject(Fault::CutStream.on(config_maps()).after(2).next(2));
    create(&fixture.direct, "one").await.unwrap();
    follow(&mut watcher, "one").await;
    assert_eq!(next(&mut raw).await.unwrap(), "added one");
    create(&fixture.direct, "two").await.unwrap();
    follow(&mut watcher, "two").await;
    assert_eq!(next(&mut raw).await, None);
    assert_eq!(cut.hits(), 2);
    drop(cut);

    // The same at a moment of the test's choice, without an event.
    fixture.proxy.cut(&Requests::all().from("jane"));
    create(&fixture.direct, "three").await.unwrap();
    follow(&mut watcher, "three").await;
    let janes = fixture.proxy.log().into_iter().filter(|entry| entry.client == "jane");
    let verbs: Vec<Verb> = janes.filter(|entry| entry.event.is_none()).map(|entry| entry.verb).collect();
    assert_eq!(verbs, [Verb::List, Verb::Watch, Verb::Watch, Verb::Watch]);
}

#[tokio::test]
async fn a_watcher_lists_again_when_its_version_expired() {
    let fixture = fixture("expired", 1).await;
    let mut watcher = pin!(watcher(fixture.through.clone(), watcher::Config::default()));
    follow_start(&mut watcher).await;

    // In the stream, where an event would have come.
    let in_stream = fixture.proxy.inject(Fault::ExpireStream.on(config_maps()).next(1));
    create(&fixture.direct, "one").await.unwrap();
    follow(&mut watcher, "one").await;
    assert_eq!((in_stream.hits(), fixture.count(Verb::List)), (1, 2));

    // When the watch begins: as its first event, and as the status of the answer. After the latter kube's watcher asks
    // for the same version again and does not list, so with a fault that stays it would never get on.
    for (name, fault) in [("two", Fault::Expire), ("three", Fault::Answer(Answer::EXPIRED))] {
        let at_begin = fixture.proxy.inject(fault.on(config_maps().verbs(&[Verb::Watch])).next(1));
        fixture.proxy.cut(&config_maps().verbs(&[Verb::Watch]));
        create(&fixture.direct, name).await.unwrap();
        follow(&mut watcher, name).await;
        assert_eq!((at_begin.hits(), fixture.count(Verb::List)), (1, 3));
    }

    let mut raw = watch(&fixture.through).await;
    let _fault = fixture.proxy.inject(Fault::ExpireStream.on(config_maps()));
    create(&fixture.direct, "last").await.unwrap();
    assert_eq!(next(&mut raw).await.unwrap(), "error 410");
    assert_eq!(next(&mut raw).await, None);
}

#[tokio::test]
async fn large_lists_and_watches_that_begin_with_a_list_pass_whole() {
    let fixture = fixture("large", 1).await;
    let mut large = config_map("large");
    large.data = Some(BTreeMap::from([("key".to_owned(), "x".repeat(900_000))]));
    for name in ["one", "two", "three"] {
        large.metadata.name = Some(name.to_owned());
        fixture.through.create(&PostParams::default(), &large).await.unwrap();
    }
    let list = async |api: &Api<ConfigMap>| api.list(&ListParams::default()).await.unwrap();
    assert_eq!(list(&fixture.through).await.items, list(&fixture.direct).await.items);
    let config = watcher::Config::default();
    // In 1.33 a watch begins with a list only where it is switched on.
    let config = if is_newest() { config.streaming_lists() } else { config };
    let mut watcher = pin!(watcher(fixture.through.clone(), config));
    for name in ["one", "three", "two"] {
        follow(&mut watcher, name).await;
    }
    create(&fixture.direct, "four").await.unwrap();
    follow(&mut watcher, "four").await;
}

#[tokio::test]
async fn a_stream_ends_at_the_server_when_the_client_leaves_and_when_the_proxy_does() {
    let cluster = Cluster::shared(Size::Core);
    let fixture = fixture("leaving", 1).await;
    let ended = async |client: &str| {
        let events = cluster.audit_events().await.unwrap();
        // A watch is written down when it begins and when it ends.
        let of_client = |event: &&AuditEvent| event.verb == "watch" && event.client() == Some(client);
        events.iter().filter(of_client).filter(|event| event.object_ref.namespace == fixture.namespace.name).count()
            == 2
    };
    let leaving = watch(&fixture.other("leaving")).await;
    let staying = watch(&fixture.other("staying")).await;
    drop(leaving);
    until("the watch ends with its client", async || ended("leaving").await).await;
    assert!(!ended("staying").await);
    let config = fixture.jane.config();
    drop(fixture.proxy);
    until("the watch ends with the proxy", async || ended("staying").await).await;
    assert!(Client::try_from(config).unwrap().apiserver_version().await.is_err());
    drop(staying);
}

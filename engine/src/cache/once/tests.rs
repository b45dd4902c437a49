//! What can be listed is at hand, and what cannot is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use portal_core::kinds::{Kind, Kinds};
use serde_json::{Value, json};

use super::*;
use crate::{cache::store::Seen, testing::api::ApiServer};

/// A page of ConfigMaps with these namespaces and names.
fn page(objects: &[(&str, &str)], next: &str) -> (u16, String) {
    let item = |(namespace, name): &(&str, &str)| json!({ "metadata": { "namespace": namespace, "name": name } });
    let items: Vec<Value> = objects.iter().map(item).collect();
    let list = json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "continue": next }, "items": items });
    (200, list.to_string())
}

fn refusal(code: u16) -> (u16, String) {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": code });
    (code, status.to_string())
}

fn kind() -> &'static Arc<Kind> {
    Kinds::builtin().get("", "ConfigMap").unwrap()
}

/// What is known of these places after they were listed, a line each, and how many requests that took.
async fn listed(api: ApiServer, places: &[Option<&str>]) -> (Vec<String>, usize) {
    let source = |place: &Option<&str>| Source { kind: Arc::clone(kind()), namespace: place.map(str::to_owned) };
    let deadline = Instant::now() + Duration::from_secs(30);
    let caches = list_once(&api.client(), places.iter().map(source), deadline).await;
    let seen = places.iter().map(|place| match caches.get(kind(), *place).unwrap().now() {
        Seen::Moment(moment) => format!("{} objects", moment.len()),
        Seen::NotSynced => "not synced".to_owned(),
        Seen::Refused(reason) => reason,
    });
    (seen.collect(), api.asked().len())
}

#[tokio::test]
async fn pages_are_read_to_the_end_and_a_namespace_is_part_of_everything() {
    let api = || {
        ApiServer::new(|path| match path.contains("continue=more") {
            true => page(&[("b", "two"), ("c", "three")], ""),
            false => page(&[("a", "one")], "more"),
        })
    };
    assert_eq!(listed(api(), &[None, Some("b")]).await, (vec!["3 objects".to_owned(); 2], 2));
    // No namespace can be called so, and the path would be that of something else.
    assert_eq!(listed(api(), &[Some("b/c")]).await, (vec!["0 objects".to_owned()], 0));
}

#[tokio::test]
async fn who_may_not_list_everything_may_list_a_namespace() {
    let api = ApiServer::new(|path| match path.contains("/namespaces/a/") {
        true => page(&[("a", "one")], ""),
        false => refusal(403),
    });
    let refused =
        |place: &str| format!("not allowed to list configmaps.v1{place}: grant the verb `list` to this ServiceAccount");
    let expected = vec![refused(""), "1 objects".to_owned(), refused(" in b")];
    assert_eq!(listed(api, &[None, Some("a"), Some("b")]).await, (expected, 3));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_begins_anew() {
    let number = AtomicUsize::new(0);
    let api = ApiServer::new(move |path| {
        let number = number.fetch_add(1, SeqCst);
        assert_eq!(path.contains("continue="), number == 1);
        match number {
            0 => page(&[("a", "gone")], "more"),
            1 => refusal(410),
            2 => refusal(500),
            _ => page(&[("a", "one"), ("a", "two")], ""),
        }
    });
    assert_eq!(listed(api, &[None]).await, (vec!["2 objects".to_owned()], 4));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_listed_in_time_is_refused_and_not_empty() {
    let silent = ApiServer::saying(200, "").silent();
    let expected = "configmaps.v1 could not be listed in time: the API server has not answered";
    assert_eq!(listed(silent, &[None]).await, (vec![expected.to_owned()], 1));
    // A part of the objects is not the objects.
    let half = ApiServer::new(|path| match path.contains("continue=") {
        true => refusal(503),
        false => page(&[("a", "one")], "more"),
    });
    let expected = "configmaps.v1 could not be listed in time: could not list configmaps.v1: no (503)";
    assert_eq!(listed(half, &[None]).await.0, [expected]);
}

//! Events of a watch, and how they become what a store has: as a feed does it, where no feed is around.

use std::error::Error;
use std::pin::pin;

use futures_util::TryStreamExt as _;
use http::Request;
use kube::Client;
use kube::core::{ObjectMeta, WatchEvent};
use portal_cluster::watch::{Form, Watched, identity, read_event};
use portal_core::object::Object;
use portal_document::{Interning, Node, Options};
use portal_engine::cache::store::Store;

use super::pods;

/// A pod as caches have it.
#[derive(Clone, Debug)]
pub(super) struct Cached(Object<'static>);

/// A streaming list of all pods.
pub(super) const LIST: &str = "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=290";

/// The last change. Whoever sees it has seen them all.
pub(super) const END: &str = r#"{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"the-end","namespace":"default","resourceVersion":"1000000001"}}}"#;

/// A pod after its status has changed, in one of many ways.
pub(super) fn changed(pod: &str, version: u32) -> String {
    let version_before = text_behind(pod, r#""resourceVersion":""#);
    let pod = pod.replacen(version_before, &format!("{}", 1_000_000_000 + version), 1);
    pod.replace(r#""restartCount":0"#, &format!(r#""restartCount":{version}"#))
}

/// What is between a sign and the next quotation mark.
pub(super) fn text_behind<'a>(pod: &'a str, sign: &str) -> &'a str {
    let rest = pod.split_once(sign).map_or("", |(_, rest)| rest);
    rest.split_once('"').map_or("", |(text, _)| text)
}

/// The namespace and the name of a pod.
pub(super) fn name_of(pod: &str) -> (String, String) {
    // The names of other things are before and behind those of the pod itself.
    let rest = pod.split_once(r#","name":""#);
    let (mut name, mut rest) = rest.map_or(("", ""), |(_, rest)| rest.split_once('"').unwrap_or_default());
    while let Some((_, next)) = rest.split_once(r#","name":""#).filter(|_| !rest.starts_with(r#","namespace":""#)) {
        (name, rest) = next.split_once('"').unwrap_or_default();
    }
    (text_behind(rest, r#","namespace":""#).to_owned(), name.to_owned())
}

/// A store with all pods that a streaming list has.
pub(super) async fn fill(client: &Client) -> Result<Store, Box<dyn Error>> {
    let mut store = Store::default();
    store.begin_list();
    let mut events = pin!(client.request_events(Request::get(LIST).body(Vec::new())?).await?);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(pod) => list(&mut store, pod),
            WatchEvent::Bookmark(_) => {
                store.end_list();
                return Ok(store);
            }
            other => return Err(format!("there was {other:?} in a list").into()),
        }
    }
    Err("the list had no end".into())
}

/// Takes a pod of a list.
pub(super) fn list(store: &mut Store, pod: Watched<Cached>) {
    let (namespace, name, object) = read(pod);
    store.list(namespace.as_deref(), &name, object);
}

/// Takes an event after the list, from its bytes.
pub(super) fn take(store: &mut Store, line: &str) {
    let event = read_event(line.as_bytes()).and_then(Result::ok);
    match event.expect("the bench's own events can be read") {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
            let (namespace, name, object) = read(pod);
            store.apply(namespace.as_deref(), &name, object);
        }
        WatchEvent::Deleted(pod) => {
            let Watched::<Cached> { metadata, .. } = pod;
            store.delete(metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default());
        }
        other => panic!("there was {other:?} among changes"),
    }
}

fn read(pod: Watched<Cached>) -> (Option<String>, String, Result<Object<'static>, String>) {
    let Watched { metadata, form } = pod;
    let object = form.map(|Cached(object)| object.with_type(pods(), "v1", Interning::Add));
    (metadata.namespace, metadata.name.unwrap_or_default(), object.map_err(|error| error.to_string()))
}

impl Form for Cached {
    fn read(json: &[u8]) -> Result<Cached, portal_document::Error> {
        Object::parse(json, pods(), &Options { well_formed: true, ..Options::default() }).map(Cached)
    }

    fn root(&self) -> Node<'_> {
        self.0.root()
    }

    fn metadata(&self) -> ObjectMeta {
        identity(self.root())
    }
}

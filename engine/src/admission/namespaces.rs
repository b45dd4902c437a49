//! Namespaces as they are now: for the bypass, and for rules and instances that select namespaces by their labels.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use portal_cluster::{
    health::{Health, Part},
    names::is_name,
    watch::explain,
};
use portal_core::{
    kinds::{Kind, Kinds},
    object::Object,
};
use portal_document::{Node, Options};
use tokio::sync::Semaphore;

use crate::cache::keeper::Caches;

/// What is known of namespaces. A clone knows the same.
#[derive(Clone)]
pub struct Namespaces {
    client: Client,
    health: Health,
    caches: Caches,
    /// Whoever reads takes a part of it.
    reads: Arc<Semaphore>,
}

/// How many direct reads there are at a time. Whoever asks may have made the names up.
const READS: usize = 16;

/// How long a direct read may take. A request waits for it, and has more to do afterwards.
const READ_DEADLINE: Duration = Duration::from_secs(1);

impl Namespaces {
    /// The namespaces that are cached, and what the client reads of others.
    pub fn new(client: Client, health: Health, caches: Caches) -> Namespaces {
        Namespaces { client, health, caches, reads: Arc::new(Semaphore::new(READS)) }
    }

    /// Whether the watch tells of every change, as far as anyone knows.
    pub fn are_followed(&self) -> bool {
        self.health.is_well(&Part::Namespaces)
    }

    /// A namespace. One that the watch has not told of yet is read from the API server: it may have been made a moment ago. An error is
    /// for people, and never means that the namespace has no labels.
    pub async fn get(&self, name: &str) -> Result<Arc<Object<'static>>, String> {
        let known = self.caches.get(kind(), None).and_then(|namespaces| namespaces.moment());
        match known.as_ref().and_then(|known| known.get(None, name)) {
            Some(found) => Ok(Arc::clone(found)),
            None => self.read(name).await,
        }
    }

    /// A namespace as the API server has it.
    pub async fn read(&self, name: &str) -> Result<Arc<Object<'static>>, String> {
        // It becomes part of a path, and whoever asks may have made it up: what is no name may lead to something else.
        if !is_name(name) {
            return Err(format!("{name:?} is no name of a namespace"));
        }
        let path = format!("/api/v1/namespaces/{name}");
        let request = Request::get(&path).body(Vec::new()).map_err(|error| error.to_string())?;
        let answer = async {
            // An error would say that it was closed, and nobody does that.
            let _permit = self.reads.acquire().await;
            self.client.request_text(request).await
        };
        let answer = tokio::time::timeout(READ_DEADLINE, answer).await;
        let text = answer
            .map_err(|_| format!("could not get namespace {name}: no answer within {READ_DEADLINE:?}"))?
            .map_err(|error| explain("get", &format!("namespace {name}"), &error))?;
        let namespace = Object::parse(text.as_bytes(), kind(), &Options::default())
            .map_err(|error| format!("namespace {name} cannot be read: {error}"))?;
        let found = namespace.root().get_str("metadata").and_then(|metadata| metadata.get_str("name"));
        // Whatever stands between the engine and the API server may say something else.
        match found.and_then(Node::as_str) {
            Some(found) if found == name => Ok(Arc::new(namespace)),
            _ => Err(format!("could not get namespace {name}: the answer is no namespace of that name")),
        }
    }
}

/// The kind Namespace, which every API server serves.
fn kind() -> &'static Kind {
    Kinds::builtin().get("", "Namespace").expect("the table of Kubernetes has it")
}

#[cfg(test)]
pub(super) mod tests {
    use futures_util::future::join_all;
    use portal_cluster::{
        metrics::{Metrics, Registry},
        runtime::Runtime,
    };
    use tokio::time::{Instant, sleep, timeout};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        cache::{
            feed::{self, Source},
            store::Store,
        },
        metrics::EngineMetrics,
        testing::api::ApiServer,
    };

    /// Namespaces of which the watch has told these. Of the others nothing is known but what the API server says.
    pub(in crate::admission) fn knowing(told: &[&str], health: &Health, api: &ApiServer) -> Namespaces {
        let mut store = Store::default();
        for json in told {
            let namespace = Object::parse(json.as_bytes(), kind(), &Options::default()).unwrap();
            let name =
                namespace.root().get_str("metadata").unwrap().get_str("name").unwrap().as_str().unwrap().to_owned();
            store.list(None, &name, Ok(namespace));
        }
        store.end_list();
        Namespaces::new(api.client(), health.clone(), Caches::showing(kind(), &store))
    }

    /// Asks for a namespace that the watch does not know. Returns what came of it, and the paths that were asked for.
    async fn get(name: &str, status: u16, body: &str) -> (Result<String, String>, Vec<String>) {
        let api = ApiServer::saying(status, body);
        let found = knowing(&[], &Health::default(), &api).get(name).await;
        (found.map(|namespace| namespace.root().to_json()), api.asked())
    }

    #[tokio::test]
    async fn a_namespace_that_is_not_known_yet_is_read() {
        let (found, asked) = get("shop", 200, r#"{"metadata":{"name":"shop","labels":{"a":"b"}}}"#).await;
        assert!(found.unwrap().contains(r#""a":"b""#));
        assert_eq!(asked, ["/api/v1/namespaces/shop"]);
    }

    #[tokio::test]
    async fn whatever_else_is_answered_is_an_error_and_no_namespace_without_labels() {
        let forbidden =
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}"#;
        for (status, body) in
            [(403, forbidden), (404, forbidden), (500, ""), (200, ""), (200, "{"), (200, "{}"), (302, "{}")]
        {
            let (found, _) = get("shop", status, body).await;
            assert!(found.is_err(), "{status} {body}: {found:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_name_leads_nowhere() {
        let long = "a".repeat(64);
        for name in ["shop/secrets/s", "..", "../nodes/a", "shop?x", "shop#", "Shop", "%73hop", "a b", "\0", &long] {
            let (found, asked) = get(name, 200, r#"{"metadata":{"name":"shop"}}"#).await;
            assert_eq!(found.unwrap_err(), format!("{name:?} is no name of a namespace"));
            assert!(asked.is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn once_the_watch_is_cut_what_it_told_is_known_and_not_followed() {
        // It begins, and does not go on.
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"message":"no streaming"}"#;
        let api = ApiServer::new(|path| match path.contains("watch=true") {
            true if path.contains("sendInitialEvents") => (422, status.to_owned()),
            false => (200, r#"{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"shop"}}]}"#.to_owned()),
            true => (500, String::new()),
        });
        let registry = Registry::new();
        let runtime = Runtime {
            client: api.client(),
            health: Health::default(),
            metrics: Metrics::register(&registry),
            shutdown: CancellationToken::new(),
        };
        let (store, source) = (Store::default(), Source { kind: Arc::new(kind().clone()), namespace: None });
        let namespaces = Namespaces::new(api.client(), runtime.health.clone(), Caches::showing(kind(), &store));
        let watching =
            feed::follow(source, store, runtime.clone(), EngineMetrics::register(&registry), Arc::default(), None);
        assert!(!namespaces.are_followed());
        let _ = timeout(Duration::from_secs(1), watching).await;
        let asked = api.asked().len();
        assert!(namespaces.get("shop").await.is_ok());
        assert_eq!(api.asked().len(), asked);
        assert!(!namespaces.are_followed(), "{}", runtime.health.report());
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_names_are_made_up_a_few_are_read_at_a_time() {
        let namespace = |path: &str| {
            let name = path.rsplit('/').next().unwrap();
            (200, format!(r#"{{"metadata":{{"name":"{name}"}}}}"#))
        };
        let api = ApiServer::new(namespace).silent();
        let namespaces = knowing(&[], &Health::default(), &api);
        let names: Vec<String> = (0..3 * READS).map(|number| format!("made-up-{number}")).collect();
        let reads = join_all(names.iter().map(|name| namespaces.read(name)));
        let answer = async {
            // The clock goes on when nothing else does.
            sleep(READ_DEADLINE / 2).await;
            assert_eq!(api.asked().len(), READS);
            api.answers.add_permits(names.len());
        };
        let (found, ()) = tokio::join!(reads, answer);
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        assert_eq!((api.asked().len(), api.most_at_once()), (names.len(), READS));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_others_to_be_read_waits_no_longer_than_they_do() {
        let api = ApiServer::saying(200, r#"{"metadata":{"name":"shop"}}"#).silent();
        let namespaces = knowing(&[], &Health::default(), &api);
        let began = Instant::now();
        let found = join_all((0..3 * READS).map(|_| namespaces.read("shop"))).await;
        assert!(began.elapsed() < 2 * READ_DEADLINE);
        let late = "could not get namespace shop: no answer within 1s";
        assert!(found.iter().all(|found| found.as_ref().is_err_and(|error| error == late)), "{found:?}");
        // Those who gave up leave their places to others.
        api.answers.add_permits(1);
        assert!(namespaces.read("shop").await.is_ok());
    }
}

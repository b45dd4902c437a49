//! Reads of the API server that a rule asks for, because what is cached may be a moment old.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, core::Status};
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use portal_cluster::{names::is_name, watch::explain};
use portal_core::{
    kinds::Kind,
    lookup::{Filter, Query},
    object::Object,
    selector::{Requirement, Selector, Test},
};
use portal_document::{Interning, Options};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until, timeout_at},
};

use super::answers::FreshAnswer;
use crate::metrics::{EngineMetrics, FreshRead};

#[cfg(test)]
mod tests;

/// Reads what rules ask for. A clone shares its bounds.
#[derive(Clone)]
pub struct Fresh {
    client: Client,
    metrics: EngineMetrics,
    /// Whoever reads takes a part of it.
    reads: Arc<Semaphore>,
    rate: Arc<Mutex<Rate>>,
}

/// How many reads may begin. Written by whoever begins one.
#[derive(Debug)]
struct Rate {
    /// When the next read could begin if there had been as many as there may be.
    next: Instant,
}

/// A page of a list, with its objects as they were sent.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

/// How many reads there are at a time.
const READS: usize = 16;

/// How many reads may begin in a second, in the long run.
const PER_SECOND: u32 = 100;

/// How many may begin at once after a quiet time.
const BURST: u32 = 200;

/// How many objects a page of a list has.
const PAGE: usize = 500;

/// How many pages are read. A rule that needs more objects asks what is cached.
const PAGES: usize = 20;

/// How many bytes an answer may have.
const MAX_ANSWER: usize = 32 << 20;

impl Fresh {
    /// Reads by this client.
    pub fn new(client: Client, metrics: EngineMetrics) -> Fresh {
        let rate = Rate { next: Instant::now() };
        Fresh { client, metrics, reads: Arc::new(Semaphore::new(READS)), rate: Arc::new(Mutex::new(rate)) }
    }

    /// Reads what was asked, all at the same time. What is not there by the deadline is an error.
    pub async fn read(&self, queries: impl IntoIterator<Item = Query>, deadline: Instant) -> Vec<(Query, FreshAnswer)> {
        let reads = queries.into_iter().map(|query| async move {
            let answer = self.answer(&query, deadline).await;
            (query, answer)
        });
        stream::iter(reads).buffer_unordered(READS).collect().await
    }

    async fn answer(&self, query: &Query, deadline: Instant) -> FreshAnswer {
        let now = Instant::now();
        let begin = self.rate.lock().unwrap_or_else(PoisonError::into_inner).begin(now);
        if begin >= deadline && now < deadline {
            self.metrics.fresh_reads.at(&FreshRead::Refused).inc();
            return Err(format!("rules ask the API server for more than {PER_SECOND} fresh answers in a second"));
        }
        let read = async {
            sleep_until(begin).await;
            // An error would say that it was closed, and nobody does that.
            let _permit = self.reads.acquire().await;
            self.fetch(query).await
        };
        let (answer, result) = match timeout_at(deadline, read).await {
            Ok(Ok(found)) => (Ok(found), FreshRead::Answered),
            Ok(Err(reason)) => (Err(reason), FreshRead::Failed),
            Err(_) => (Err("the API server has not answered in time".to_owned()), FreshRead::Late),
        };
        self.metrics.fresh_reads.at(&result).inc();
        answer
    }

    async fn fetch(&self, query: &Query) -> FreshAnswer {
        let Some(path) = path(&query.kind, query.namespace.as_deref()) else { return Ok(Vec::new()) };
        match &query.filter {
            Filter::Name(name) => Ok(self.get(&query.kind, &path, name).await?.into_iter().map(Arc::new).collect()),
            Filter::Labels(selector) => self.list(&query.kind, &path, selector).await,
        }
    }

    async fn get(&self, kind: &Kind, path: &str, name: &str) -> Result<Option<Object<'static>>, String> {
        let Some(segment) = segment(name) else { return Ok(None) };
        match self.text(&format!("{path}/{segment}")).await {
            Ok(text) => read(kind, text.as_bytes()).map(Some),
            // The kind may be gone as well, which does not mean that the object is not there.
            Err(kube::Error::Api(status)) if is_absent(&status, name) => Ok(None),
            Err(error) => Err(explain("get", &kind.plural, &error)),
        }
    }

    async fn list(&self, kind: &Kind, path: &str, selector: &Selector) -> FreshAnswer {
        let labels = label_selector(selector);
        let (mut found, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let page = format!("{path}?limit={PAGE}&labelSelector={}&continue={}", encode(&labels), encode(&next));
            let text = self.text(&page).await.map_err(|error| explain("list", &kind.plural, &error))?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| format!("no list came: {error}"))?;
            for item in page.items {
                let object = read(kind, item.get().as_bytes())?;
                let labels = object.root().get_str("metadata").and_then(|metadata| metadata.get_str("labels"));
                if selector.matches(labels) {
                    found.push(Arc::new(object));
                }
            }
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(found);
            }
        }
        let most = PAGE * PAGES;
        Err(format!("there are more than {most} {}: ask `cluster` for them, which has them at hand", kind.plural))
    }

    async fn text(&self, path: &str) -> kube::Result<String> {
        let request = Request::get(path).body(kube::client::Body::empty()).map_err(kube::Error::HttpError)?;
        let response = self.client.send(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(kube::Error::Service)?.to_bytes();
        if status.is_success() {
            return String::from_utf8(body.into()).map_err(|error| kube::Error::Service(error.into()));
        }
        let answer = serde_json::from_slice::<Status>(&body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            Status { code: status.as_u16(), message: text, ..Status::default() }
        });
        Err(kube::Error::Api(answer.boxed()))
    }
}

impl Rate {
    /// When a read that is asked for now may begin.
    fn begin(&mut self, now: Instant) -> Instant {
        let step = Duration::from_secs(1) / PER_SECOND;
        // Who did not read for a while may read more at once, and no more than a burst.
        self.next = self.next.max(now.checked_sub(step * BURST).unwrap_or(now));
        self.next += step;
        self.next.max(now)
    }
}

/// Where objects of a kind are. None if nothing can be there: a rule may ask for a namespace that no namespace can be called.
fn path(kind: &Kind, namespace: Option<&str>) -> Option<String> {
    let version = kind.versions.first()?;
    let mut path = match &*kind.group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    if let Some(namespace) = namespace {
        if !is_name(namespace) {
            return None;
        }
        let _ = write!(path, "/namespaces/{namespace}");
    }
    Some(format!("{path}/{}", kind.plural))
}

/// A name as a part of a path. None if nothing can be called so: a rule makes names of what anybody writes.
fn segment(name: &str) -> Option<String> {
    let is_name = !matches!(name, "" | "." | "..") && name.len() <= 253 && !name.contains(['/', '%']);
    is_name.then(|| encode(name).to_string())
}

/// Whether the API server says that there is no object of a name.
fn is_absent(status: &Status, name: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// What the API server can be asked of a selector. What no label can be is left out: it would change what the rest means, and whatever comes is
/// compared with the selector.
fn label_selector(selector: &Selector) -> String {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    let written = |requirement: &Requirement| {
        let key = &requirement.key;
        let list = |values: &std::collections::BTreeSet<String>| {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            values.iter().all(|value| is_plain(value) && !value.contains('/')).then(|| values.join(","))
        };
        if key.is_empty() || !is_plain(key) {
            return None;
        }
        Some(match &requirement.test {
            Test::In(values) => format!("{key} in ({})", list(values)?),
            Test::NotIn(values) => format!("{key} notin ({})", list(values)?),
            Test::Exists => key.clone(),
            Test::DoesNotExist => format!("!{key}"),
        })
    };
    let written: Vec<String> = selector.requirements().filter_map(written).collect();
    written.join(",")
}

/// A text as a part of a URL.
fn encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

fn read(kind: &Kind, json: &[u8]) -> Result<Object<'static>, String> {
    // It goes with the request.
    let options = Options { interning: Interning::LookUpOnly, ..Options::default() };
    let version = kind.versions.first().map_or("", String::as_str);
    let object = Object::parse(json, kind, &options).map_err(|error| format!("an object cannot be read: {error}"))?;
    Ok(object.with_type(kind, version, options.interning))
}

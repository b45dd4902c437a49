//! One request, from its head to its answer.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::DefaultBodyLimit,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use serde_json::json;
use tower_service::Service as _;
use tracing::error;

use super::{
    body::{Outcome, Reading, Whole, discard},
    connection::{Connection, Phase},
    connections::Connections,
    refusal::Refusal,
    tls::Peer,
};

/// What answers the requests of one connection.
#[derive(Clone)]
pub(super) struct Answering {
    pub(super) router: Router,
    pub(super) peer: Peer,
    pub(super) connection: Arc<Connection>,
    pub(super) connections: Arc<Connections>,
}

/// The most of a refusal in words. None is longer.
const MAX_WORDS: usize = 64 << 10;

/// Frees what a request holds when it is answered, or when nobody waits for the answer any more.
struct Held<'a>(&'a Answering);

impl Answering {
    /// Answers a request.
    pub(super) async fn answer(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        self.connection.enter(Phase::Decision);
        let held = Held(&self);
        let reading = Arc::new(Reading::default());
        let (method, wants_json) = (request.method().clone(), wants_json(request.headers()));
        let mut response = self.call(request, &reading).await;

        let Outcome { refusal, leftovers } = std::mem::take(&mut *reading.outcome());
        // Whatever the handler has made of a body that it did not get.
        if let Some(refusal) = refusal {
            response = refusal.into_response();
        }
        if let Some(refusal) = response.extensions().get::<Refusal>() {
            self.connections.metrics.requests_refused.at(&refusal.reason()).inc();
        }
        if response.status().is_success() {
            self.connection.becomes_known();
        }
        let mut response = with_words(response, &method);
        if wants_json && !response.status().is_success() {
            response = as_status(response).await;
        }
        if self.connections.is_closing() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // What is left of the body of a connection that ends is dropped, which ends it after the answer.
        if let Some(leftovers) = leftovers.filter(|_| !response.headers().contains_key(header::CONNECTION)) {
            self.connection.leftovers_begin();
            let limit = self.connections.limits.body_bytes;
            tokio::spawn(discard(leftovers, Arc::clone(&self.connection), limit));
        }
        drop(held);
        self.connection.enter(Phase::Answer);
        Ok(response)
    }

    /// Calls the router. A panic costs the request that it happened in.
    async fn call(&self, request: Request<Incoming>, reading: &Arc<Reading>) -> Response {
        let uri = request.uri().clone();
        let (mut parts, incoming) = request.into_parts();
        parts.extensions.insert(self.peer.clone());
        let body = if incoming.is_end_stream() {
            Body::empty()
        } else {
            let (reading, connection) = (Arc::clone(reading), Arc::clone(&self.connection));
            Body::new(Whole::new(incoming, reading, connection, Arc::clone(&self.connections)))
        };
        let mut request = Request::from_parts(parts, body);
        // The limit of the router would be another one, and has other words.
        DefaultBodyLimit::disable().apply(&mut request);
        let mut router = self.router.clone();
        let answering = async { router.call(request).await };
        match AssertUnwindSafe(answering).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => {
                // What was said with the panic is in the log already, by the hook of the process.
                error!(path = uri.path(), "A request ended in a panic");
                Refusal::Panic.into_response()
            }
        }
    }
}

/// Says in words what an answer without a body means, where routers give such answers.
fn with_words(response: Response, method: &Method) -> Response {
    if response.body().size_hint().exact() != Some(0) {
        return response;
    }
    let words = match response.status() {
        StatusCode::NOT_FOUND => "there is nothing at this path\n".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => {
            let allowed = response.headers().get(header::ALLOW).and_then(|allowed| allowed.to_str().ok());
            format!("this path takes {}, not {method}\n", allowed.unwrap_or("other methods"))
        }
        _ => return response,
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Response::from_parts(parts, Body::from(words))
}

/// Whether the client asks for JSON, as the API server does and people do not.
fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("application/json"))
}

/// The same refusal in the form of Kubernetes. Of a text the API server shows nothing to whoever made the request, but a word for its code.
async fn as_status(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    // Words are short, and in memory.
    let words = axum::body::to_bytes(body, MAX_WORDS).await.unwrap_or_default();
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": String::from_utf8_lossy(&words).trim_end(),
        "code": parts.status.as_u16(),
    });
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(status.to_string()))
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.connections.free(&self.0.connection);
    }
}

//! Takes requests of one client and passes them on in the client's name, with the faults that were decided on.

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Limited, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::fault::{Answer, Fault};
use super::request::Subject;
use super::shared::{Cut, Shared};
use super::{stale, stream};

/// Whom a listener speaks for.
#[derive(Debug)]
pub(super) struct Identity {
    /// The name that the test gave to the client.
    pub(super) client: Arc<str>,
    /// What tells the API server who it is.
    pub(super) headers: HeaderMap,
}

/// What a request is once its body is read, so that it can be sent at any time.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
}

/// More than the API server takes.
const MAX_BODY: usize = 8 << 20;

/// Headers that belong to a connection, and those that only the proxy may set.
const OWN_HEADERS: [HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

impl Identity {
    pub(super) fn new(client: &str, user: &str, groups: &[&str]) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", HeaderValue::from_str(user)?);
        for group in groups {
            headers.append("x-remote-group", HeaderValue::from_str(group)?);
        }
        // Two clients may have the same user, as replicas do. The record of requests tells them apart by this.
        headers.insert("x-remote-extra-client", HeaderValue::from_str(client)?);
        Ok(Self { client: client.into(), headers })
    }
}

/// Serves one client until it is dropped.
pub(super) async fn serve(listener: TcpListener, identity: Arc<Identity>, shared: Arc<Shared>) {
    // Dropped with this future, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(connection(stream, Arc::clone(&identity), Arc::clone(&shared)));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, identity: Arc<Identity>, shared: Arc<Shared>) {
    // Events are small, and must not wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&identity), Arc::clone(&shared)));
    // An error is a client that left, or a cut.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    identity: Arc<Identity>,
    shared: Arc<Shared>,
) -> Result<Response<UnsyncBoxBody<Bytes, Cut>>, Cut> {
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    let mut subject = Subject::of_request(Arc::clone(&identity.client), request.method(), uri.path(), query);
    let outgoing = outgoing(&identity, request).await?;
    subject.body = outgoing.body.clone();
    // Open before the decision: a partition that begins in between cuts it.
    let open = shared.open(subject);
    let decision = shared.decide(open.subject());
    let response = tokio::select! {
        () = open.is_cut() => return Err(Cut),
        response = respond(&shared, open.subject(), decision.faults, outgoing) => response?,
    };
    if let Some(number) = decision.entry {
        let warnings = response.headers().get_all(header::WARNING).iter().filter_map(|value| value.to_str().ok());
        let warnings = warnings.map(str::to_owned).collect();
        shared.decisions().log.answered(number, response.status().as_u16(), warnings);
    }
    let (mut parts, body) = response.into_parts();
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, HeaderName::from_static("keep-alive")] {
        parts.headers.remove(name);
    }
    let is_json =
        parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    Ok(Response::from_parts(parts, stream::pass(open, body, is_json)))
}

async fn respond(
    shared: &Arc<Shared>,
    subject: &Subject,
    faults: Vec<Fault>,
    outgoing: Outgoing,
) -> Result<Response<Body>, Cut> {
    let mut instead = None;
    let mut is_held = false;
    for fault in faults {
        match fault {
            Fault::Delay(duration) => tokio::time::sleep(duration).await,
            Fault::Silence => shared.until_heard(subject).await?,
            Fault::CutBefore | Fault::Refuse => return Err(Cut),
            Fault::Answer(answer) => return Ok(answer.response()),
            Fault::Expire => return Ok(json_response(200, error_event(&Answer::EXPIRED))),
            Fault::Late(duration) => {
                let upstream = shared.upstream.clone();
                // Nobody waits for how it ends.
                shared.later(duration, async move { drop(upstream.send(outgoing.request()).await) });
                return Err(Cut);
            }
            Fault::Stale(revision) => {
                if let Some(response) = stale::read(shared, subject, &outgoing, revision).await {
                    return Ok(response);
                }
            }
            Fault::CutAfter => instead = Some(Err(Cut)),
            Fault::AnswerAfter(answer) => instead = Some(Ok(answer.response())),
            Fault::Hold => is_held = true,
            Fault::DropEvent
            | Fault::DuplicateEvent
            | Fault::DelayEvent(_)
            | Fault::CutStream
            | Fault::ExpireStream => {
                unreachable!("events meet these, not requests")
            }
        }
    }
    // A partition may have begun while the request waited, and again while it was answered.
    shared.until_heard(subject).await?;
    let response = send(shared, outgoing).await?;
    if is_held {
        shared.hold();
        std::future::pending::<()>().await;
    }
    shared.until_heard(subject).await?;
    instead.unwrap_or(Ok(response))
}

/// Passes a request on. An API server that cannot be reached is as good as a cut connection.
pub(super) async fn send(shared: &Shared, outgoing: Outgoing) -> Result<Response<Body>, Cut> {
    shared.upstream.send(outgoing.request()).await.map_err(|error| {
        eprintln!("the fault proxy could not pass on a request: {error}");
        Cut
    })
}

/// The request that the API server gets.
async fn outgoing(identity: &Identity, request: Request<Incoming>) -> Result<Outgoing, Cut> {
    let (mut parts, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| Cut)?.to_bytes();
    for name in OWN_HEADERS {
        parts.headers.remove(name);
    }
    let claims: Vec<HeaderName> =
        parts.headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in claims {
        parts.headers.remove(name);
    }
    parts.headers.extend(identity.headers.clone());
    Ok(Outgoing { parts, body })
}

impl Outgoing {
    pub(super) fn request(self) -> Request<Body> {
        Request::from_parts(self.parts, Body::from(self.body))
    }

    /// The same with another path and query.
    pub(super) fn to(&self, uri: Uri) -> Self {
        let mut other = self.clone();
        other.parts.uri = uri;
        other
    }
}

impl Answer {
    fn response(&self) -> Response<Body> {
        let mut response = json_response(self.status, self.body());
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// What a watch says when it cannot go on.
pub(super) fn error_event(answer: &Answer) -> Value {
    json!({"type": "ERROR", "object": answer.body()})
}

pub(super) fn json_response(status: u16, body: Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(format!("{body}\n").into_bytes()))
        .expect("a status of ours is a valid one")
}

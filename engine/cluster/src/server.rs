//! The one listener for people and machines that look after a process.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::{
    Router,
    extract::{Query, State},
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{net::TcpListener, runtime::Handle};
use tokio_util::sync::CancellationToken;

use crate::{
    health::Health,
    metrics::{self, Metrics, Registry},
};

/// What there is to tell.
#[derive(Clone, Debug)]
pub struct Served {
    /// How the parts are.
    pub health: Health,
    /// What the process counts.
    pub metrics: Metrics,
    /// Everything that is counted, by whichever table.
    pub registry: Registry,
}

/// How long those who have begun to ask may take at the end. A request that never becomes whole must not keep the process.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Answers until the end.
pub async fn serve(listener: TcpListener, served: Served, shutdown: CancellationToken) {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .with_state(served);
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let too_late = async {
        shutdown.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        ended = server.into_future() => if let Err(error) = ended {
            tracing::error!(%error, "The listener ended");
        },
        () = too_late => {}
    }
}

/// Binds the listener, so that an address that is taken is told before anything starts.
/// Returns its address too, with the port that the system chose if `address` has port 0.
pub async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Lets the process have as many files open as the system allows. What it is given at first is often as few as a webhook has connections.
pub fn open_more_files() {
    let limit = getrlimit(Resource::Nofile);
    let more = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, more)
    {
        tracing::warn!(%error, limit = limit.current, "The limit of open files stays as it is");
    }
}

async fn ready(State(served): State<Served>, Query(query): Query<HashMap<String, String>>) -> impl IntoResponse {
    let is_ready = served.health.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // As Kubernetes' own programs do: the reasons come unasked when it is not ready.
    let text = if is_ready && !query.contains_key("verbose") { "ok\n".to_owned() } else { served.health.report() };
    (status, text)
}

async fn metrics_text(State(served): State<Served>) -> impl IntoResponse {
    let tasks = Handle::current().metrics().num_alive_tasks();
    served.metrics.tasks.set(tasks as i64);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::text(&served.registry))
}

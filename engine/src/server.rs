//! The one listener for people and machines that look after the engine.

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
use tokio::{net::TcpListener, runtime::Handle};

use crate::{health::Health, metrics::Metrics, run::Shutdown};

/// How long those who have begun to ask may take at the end. A request that never becomes whole must not keep the engine.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Shared {
    health: Health,
    metrics: Metrics,
}

/// Answers until the end.
pub(crate) async fn serve(listener: TcpListener, health: Health, metrics: Metrics, mut shutdown: Shutdown) {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .with_state(Shared { health, metrics });
    let mut told = shutdown.clone();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move { told.wait().await });
    let too_late = async {
        shutdown.wait().await;
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
/// Also where that is, if any port was asked for.
pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn ready(State(shared): State<Shared>, Query(query): Query<HashMap<String, String>>) -> impl IntoResponse {
    let is_ready = shared.health.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // As Kubernetes' own programs do: the reasons come unasked when it is not ready.
    let text = if is_ready && !query.contains_key("verbose") { "ok\n".to_owned() } else { shared.health.report() };
    (status, text)
}

async fn metrics_text(State(shared): State<Shared>) -> impl IntoResponse {
    let tasks = Handle::current().metrics().num_alive_tasks();
    shared.metrics.tasks.with_label_values(&[] as &[&str]).set(tasks as i64);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], shared.metrics.text())
}

//! Who may ask the webhook, and in which form.

use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, Method, header},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
};

use super::{refusal::Refusal, tls::Peer};

/// The paths of a router for the API server alone, if clients are asked who they are, and for JSON. Paths beside them stay as they are.
/// The router has one at least.
pub fn for_api_server(router: Router) -> Router {
    router.route_layer(from_fn(check))
}

async fn check(request: Request, next: Next) -> Response {
    match refusal(&request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(request: &Request) -> Option<Refusal> {
    match request.extensions().get() {
        Some(Peer::Anyone | Peer::ApiServer) => {}
        // Without an answer to who it is, it is nobody.
        Some(Peer::Unknown) | None => return Some(Refusal::NoCertificate),
        Some(Peer::Stranger(reason)) => return Some(Refusal::WrongCertificate(reason.clone())),
    }
    // Other methods have no body, and are told so by the router.
    if request.method() != Method::POST {
        return None;
    }
    let found = request.headers().get(header::CONTENT_TYPE).map_or(&b"not named"[..], HeaderValue::as_bytes);
    let kind = found.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_json = kind.trim_ascii().eq_ignore_ascii_case(b"application/json");
    (!is_json).then(|| Refusal::NotJson { found: String::from_utf8_lossy(found).into_owned() })
}

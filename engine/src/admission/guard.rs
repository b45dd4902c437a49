//! Who may ask the webhook, and in which form.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};

use super::{refusal::Refusal, tls::Peer};

/// The body of a request that only the API server may make: JSON, from a client that is the API server if clients are asked who they
/// are. A handler that takes it is not called for anything else, and of that no body is read.
#[derive(Clone, Debug)]
pub struct FromApiServer(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for FromApiServer {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if let Some(refusal) = refusal(&request) {
            return Err(refusal.into_response());
        }
        // What the server says about a body that it cannot give takes the place of the words here.
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| rejection.into_response())?;
        Ok(FromApiServer(bytes))
    }
}

fn refusal(request: &Request) -> Option<Refusal> {
    match request.extensions().get() {
        Some(Peer::Anyone | Peer::ApiServer) => {}
        // Without an answer to who it is, it is nobody.
        Some(Peer::Unknown) | None => return Some(Refusal::NoCertificate),
        Some(Peer::Stranger(reason)) => return Some(Refusal::WrongCertificate(reason.clone())),
    }
    let found = request.headers().get(header::CONTENT_TYPE).map_or(&b"not named"[..], HeaderValue::as_bytes);
    let kind = found.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_json = kind.trim_ascii().eq_ignore_ascii_case(b"application/json");
    (!is_json).then(|| Refusal::NotJson { found: String::from_utf8_lossy(found).into_owned() })
}

//! What is said to whom no decision is given. Each answer is for people: the API server shows it to whoever made the request.

use std::sync::Arc;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::metrics::RefusedRequest;

/// Why a request is answered without a decision.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("the body is larger than {limit} bytes, which no review of what the API server takes can be")]
    TooLarge { limit: usize },
    #[error("the body was not there in time")]
    TooSlow,
    #[error("the body ended before its end")]
    Broken,
    #[error("the bodies of other requests hold all memory that there is for them: try again")]
    NoMemory,
    #[error(
        "a client certificate is needed here: the API server shows one if its --admission-control-config-file names a kubeconfig \
         that has one for this webhook"
    )]
    NoCertificate,
    #[error("{0}")]
    WrongCertificate(Arc<str>),
    #[error("the body has to be application/json, and is {found}")]
    NotJson { found: String },
    #[error("the request could not be decided because of a mistake in Portal: the log of the engine has more")]
    Panic,
}

impl Refusal {
    /// The word that it is counted by.
    pub(super) fn reason(&self) -> RefusedRequest {
        match self {
            Refusal::TooLarge { .. } => RefusedRequest::TooLarge,
            Refusal::TooSlow => RefusedRequest::TooSlow,
            Refusal::Broken => RefusedRequest::Broken,
            Refusal::NoMemory => RefusedRequest::NoMemory,
            Refusal::NoCertificate => RefusedRequest::NoCertificate,
            Refusal::WrongCertificate(_) => RefusedRequest::WrongCertificate,
            Refusal::NotJson { .. } => RefusedRequest::NotJson,
            Refusal::Panic => RefusedRequest::Panic,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Refusal::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Refusal::Broken => StatusCode::BAD_REQUEST,
            Refusal::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::NoCertificate => StatusCode::UNAUTHORIZED,
            Refusal::WrongCertificate(_) => StatusCode::FORBIDDEN,
            Refusal::NotJson { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::Panic => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the connection is of no more use. What a client is was decided when it came: it may be somebody else if it comes again.
    fn ends_connection(&self) -> bool {
        matches!(self, Refusal::TooSlow | Refusal::Broken | Refusal::NoCertificate | Refusal::WrongCertificate(_))
    }
}

impl IntoResponse for Refusal {
    /// The answer carries the refusal as an extension, by which the server counts it.
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        if matches!(self, Refusal::NoMemory) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.ends_connection() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

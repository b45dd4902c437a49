//! Sends messages to one address, and nowhere else: what the address answers leads to no other.

use std::time::Duration;

use axum::body::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use tokio::net::TcpStream;

use super::{
    credentials::{self, Credentials},
    receiver::Outcome,
};
use crate::{
    client::{Tls, speak},
    metrics::AlertFailure,
};

/// An address of Alertmanager.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Address {
    is_tls: bool,
    host: String,
    port: u16,
    /// The path of its API, behind a prefix if there is one.
    path: String,
}

/// The way to an address. It keeps its connection.
pub(super) struct Way {
    address: Address,
    credentials: Credentials,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// What the authority's file said when the connection was made.
    authority: Option<Vec<u8>>,
    /// Why the last message was not taken.
    failure: Option<String>,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is none.
    #[error("`{0}` is no address: write one such as `http://alertmanager.monitoring:9093`")]
    Form(String),
    /// It has a name or a password in it.
    #[error("an address of Alertmanager has credentials in it: put them into the Secret of the credentials")]
    Credentials,
    /// It has a query.
    #[error("`{0}` has a query: leave it out")]
    Query(String),
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{0}")]
    Credentials(#[from] credentials::Error),
    #[error("{0} is no name that a certificate can have")]
    Name(String),
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    #[error("its certificate is not accepted: {0}")]
    Handshake(std::io::Error),
    #[error("the connection broke: {0}")]
    Http(#[from] hyper::Error),
    #[error("no answer within {TIMEOUT:?}")]
    TooLate,
    #[error("it answered {status}: {text}")]
    Refused { status: u16, text: String },
    #[error("it answered {status}: {text}")]
    Busy { status: u16, text: String, after: Option<Duration> },
    #[error("it answered {status}: {text}")]
    Server { status: u16, text: String },
    #[error("it answered {0}: redirections are not followed, write down where it leads to")]
    Redirected(u16),
    #[error("it answered {status}: {text}; are address and credentials right?")]
    Unexpected { status: u16, text: String },
    #[error("its answer was cut off")]
    Cut,
}

/// How long a message may take, with its answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// The most of an answer that is read. Nothing but an error has one.
const MAX_ANSWER: usize = 64 << 10;

/// The most of it that is shown.
const MAX_SHOWN: usize = 300;

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        let form = || AddressError::Form(text.to_owned());
        if text.contains('@') {
            return Err(AddressError::Credentials);
        }
        let uri: Uri = text.parse().map_err(|_| form())?;
        if uri.query().is_some() || text.contains('#') {
            return Err(AddressError::Query(text.to_owned()));
        }
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(form()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(form)?.to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = format!("{}/api/v2/alerts", uri.path().trim_end_matches('/'));
        Ok(Address { is_tls, host, port, path })
    }

    /// The host without the brackets of an address of IPv6.
    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl Way {
    pub(super) fn new(address: Address, credentials: Credentials) -> Way {
        Way { address, credentials, connection: None, authority: None, failure: None }
    }

    /// The address, for the log.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Remembers why a message was not taken, for whoever tells of it.
    pub(super) fn fail(&mut self, error: &Error) {
        self.failure = Some(error.to_string());
    }

    /// Why the last message was not taken.
    pub(super) fn take_failure(&mut self) -> String {
        self.failure.take().unwrap_or_default()
    }

    /// Sends a message. A connection that has ended since the last one is made anew.
    pub(super) async fn post(&mut self, body: String) -> Result<(), Error> {
        let posted = tokio::time::timeout(TIMEOUT, self.post_patiently(body.into())).await;
        let outcome = posted.unwrap_or(Err(Error::TooLate));
        if outcome.is_err() {
            self.connection = None;
        }
        outcome
    }

    async fn post_patiently(&mut self, body: Bytes) -> Result<(), Error> {
        let authorization = self.credentials.authorization()?;
        let request = || {
            let mut request = Request::post(&self.address.path)
                .header(header::HOST, self.address.to_string())
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::USER_AGENT, concat!("portal/", env!("CARGO_PKG_VERSION")));
            if let Some(authorization) = &authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            request.body(Full::new(body.clone())).expect("the parts of the address were checked")
        };
        let authority = if self.address.is_tls { self.credentials.authority_bytes() } else { None };
        let kept = self.connection.take().filter(|kept| !kept.is_closed() && self.authority == authority);
        if let Some(mut kept) = kept
            && kept.ready().await.is_ok()
            && let Ok(response) = kept.send_request(request()).await
        {
            taken(response).await?;
            self.connection = Some(kept);
            return Ok(());
        }
        let mut connection = self.connect().await?;
        taken(connection.send_request(request()).await?).await?;
        (self.connection, self.authority) = (Some(connection), authority);
        Ok(())
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        let Address { is_tls, port, .. } = self.address;
        let host = self.address.bare_host();
        let tls = match is_tls {
            false => None,
            true => {
                let authorities = self.credentials.authority()?;
                Some(Tls::new(host, authorities).ok_or_else(|| Error::Name(host.to_owned()))?)
            }
        };
        let stream = TcpStream::connect((host, port)).await.map_err(Error::Connect)?;
        // A message is written at once.
        stream.set_nodelay(true).map_err(Error::Connect)?;
        match tls {
            None => Ok(speak(stream).await?),
            Some(tls) => Ok(speak(tls.over(stream).await.map_err(Error::Handshake)?).await?),
        }
    }
}

impl Error {
    /// What it means for the message.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Error::Refused { .. } => Outcome::Refused,
            Error::Busy { after, .. } => Outcome::Failed(*after),
            _ => Outcome::Failed(None),
        }
    }

    /// What is counted.
    pub(super) fn reason(&self) -> AlertFailure {
        match self {
            Error::Credentials(_) => AlertFailure::Credentials,
            Error::Connect(_) => AlertFailure::Unreachable,
            Error::Name(_) | Error::Handshake(_) => AlertFailure::Certificate,
            Error::Http(_) | Error::Cut => AlertFailure::Broken,
            Error::TooLate => AlertFailure::TooLate,
            Error::Refused { .. } => AlertFailure::Refused,
            Error::Busy { .. } => AlertFailure::Busy,
            Error::Server { .. } => AlertFailure::Server,
            Error::Redirected(_) => AlertFailure::Redirected,
            Error::Unexpected { .. } => AlertFailure::Unexpected,
        }
    }
}

async fn taken(response: http::Response<Incoming>) -> Result<(), Error> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await.map(|body| body.to_bytes());
    let status = parts.status.as_u16();
    let text = || match &body {
        Ok(body) => String::from_utf8_lossy(body).trim().chars().take(MAX_SHOWN).collect(),
        Err(_) => "…".to_owned(),
    };
    Err(match parts.status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::PAYLOAD_TOO_LARGE => {
            Error::Refused { status, text: text() }
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Error::Busy { status, text: text(), after: retry_after(&parts.headers) }
        }
        // What is cut off may be of somebody on the way.
        status if status.is_success() && body.is_ok() => return Ok(()),
        status if status.is_success() => Error::Cut,
        StatusCode::REQUEST_TIMEOUT => Error::Server { status, text: text() },
        other if other.is_server_error() => Error::Server { status, text: text() },
        other if other.is_redirection() => Error::Redirected(status),
        _ => Error::Unexpected { status, text: text() },
    })
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let said = match Address::parse(text) {
            Ok(address) => format!("{} {address} {}", if address.is_tls { "tls" } else { "plain" }, address.path),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn addresses_are_read() {
        check("http://alertmanager.monitoring:9093", "plain alertmanager.monitoring:9093 /api/v2/alerts");
        check("https://am.example/prefix/", "tls am.example:443 /prefix/api/v2/alerts");
        check("http://[::1]", "plain [::1]:80 /api/v2/alerts");
        check(
            "http://user:secret@am",
            "an address of Alertmanager has credentials in it: put them into the Secret of the credentials",
        );
        check("http://am/?a=b", "`http://am/?a=b` has a query: leave it out");
        check(
            "user:secret@am",
            "an address of Alertmanager has credentials in it: put them into the Secret of the credentials",
        );
        for text in ["am:9093", "ftp://am", "http://", "", "http://a b"] {
            check(text, &format!("`{text}` is no address: write one such as `http://alertmanager.monitoring:9093`"));
        }
    }
}

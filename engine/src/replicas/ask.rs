//! Asks another replica.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use tokio::net::TcpStream;

use super::{Question, STATE_PATH, State};
use crate::{
    admission::tls::authorities,
    client::{Tls, speak},
};

/// How other replicas are asked.
#[derive(Clone, Debug)]
pub struct AskSettings {
    /// The name that their certificate must have: that of the Service in front of them.
    pub name: String,
    /// The authority of their certificate, in PEM.
    pub authority: PathBuf,
    /// The file with the token that is shown to them. It is read again for each question, because it is replaced every hour.
    pub token: PathBuf,
}

/// A way to another replica. It keeps its connection.
pub(super) struct Way {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// Why a replica could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{path} cannot be read: {source}")]
    File { path: String, source: std::io::Error },
    #[error("{0}")]
    Authority(String),
    #[error("{0} is no name of a server")]
    Name(String),
    /// Nobody is there.
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    #[error("its certificate is not accepted: {0}")]
    Handshake(std::io::Error),
    #[error("the connection broke: {0}")]
    Http(#[from] hyper::Error),
    #[error("it answered {status}: {text}")]
    Refused { status: u16, text: String },
    #[error("its answer cannot be read: {0}")]
    Answer(String),
    #[error("no answer within {TIMEOUT:?}")]
    TooLate,
}

/// How long an answer may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

/// The largest answer that is read: some hundred bytes for each of ten thousand rules.
const MAX_ANSWER: usize = 8 << 20;

impl Way {
    pub(super) fn new(address: SocketAddr) -> Way {
        Way { address, sender: None }
    }

    /// Asks. A connection that has ended since the last time is made anew.
    pub(super) async fn ask(&mut self, settings: &AskSettings, question: &Question) -> Result<State, Error> {
        let asked = tokio::time::timeout(TIMEOUT, self.ask_patiently(settings, question)).await;
        let answer = asked.unwrap_or(Err(Error::TooLate));
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    async fn ask_patiently(&mut self, settings: &AskSettings, question: &Question) -> Result<State, Error> {
        let token = read(&settings.token)?;
        let body = serde_json::to_vec(question).map_err(|error| Error::Answer(error.to_string()))?;
        let request = || {
            Request::post(STATE_PATH)
                .header(header::HOST, &settings.name)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::AUTHORIZATION, format!("Bearer {}", token.trim()))
                .body(Full::new(Bytes::from(body.clone())))
                .map_err(|error| Error::Answer(error.to_string()))
        };
        if let Some(mut sender) = self.sender.take().filter(|sender| !sender.is_closed())
            && sender.ready().await.is_ok()
            && let Ok(response) = sender.send_request(request()?).await
        {
            let state = state_of(response).await?;
            self.sender = Some(sender);
            return Ok(state);
        }
        let mut sender = self.connect(settings).await?;
        let state = state_of(sender.send_request(request()?).await?).await?;
        self.sender = Some(sender);
        Ok(state)
    }

    async fn connect(&self, settings: &AskSettings) -> Result<SendRequest<Full<Bytes>>, Error> {
        let roots = authorities(&settings.authority).map_err(Error::Authority)?;
        let tls = Tls::new(&settings.name, roots).ok_or_else(|| Error::Name(settings.name.clone()))?;
        let stream = TcpStream::connect(self.address).await.map_err(Error::Connect)?;
        Ok(speak(tls.over(stream).await.map_err(Error::Handshake)?).await?)
    }
}

impl Error {
    /// Whether nobody is at the address, as far as can be told from here.
    pub(super) fn is_nobody_there(&self) -> bool {
        matches!(self, Error::Connect(_))
    }
}

async fn state_of(response: http::Response<hyper::body::Incoming>) -> Result<State, Error> {
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
    let body = body.map_err(|error| Error::Answer(error.to_string()))?.to_bytes();
    if !status.is_success() {
        let text = String::from_utf8_lossy(&body).trim().chars().take(200).collect();
        return Err(Error::Refused { status: status.as_u16(), text });
    }
    serde_json::from_slice(&body).map_err(|error| Error::Answer(error.to_string()))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.display().to_string(), source })
}

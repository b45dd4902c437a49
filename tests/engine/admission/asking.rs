//! A client of the webhook itself, which can send what no API server would.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring};
use serde_json::Value;

/// A connection to the webhook.
pub(super) struct Caller {
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// What was read and belongs to the next answer.
    read: Vec<u8>,
}

/// How a client trusts the webhook. Made once: it costs more than a connection.
#[derive(Clone)]
pub(super) struct Trust(Arc<ClientConfig>);

/// What was answered.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// How long an answer may take. More than any limit of the webhook.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where rules of the cluster are asked that pin no version.
pub(super) const CLUSTER: &str = "/validate/cluster";

impl Trust {
    /// Trusts what this authority has signed.
    pub(super) fn of(authority: &str) -> Trust {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        Trust(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    }

    /// Connects to a webhook on loopback.
    pub(super) fn connect(&self, port: u16) -> io::Result<Caller> {
        let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let session = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        Ok(Caller { stream: StreamOwned::new(session, stream), read: Vec::new() })
    }
}

impl Caller {
    /// Sends a review to the rules of the cluster.
    pub(super) fn review(&mut self, body: impl AsRef<[u8]>) -> io::Result<Answer> {
        self.ask(&post(CLUSTER, body))
    }

    /// Sends the bytes of a request, and reads the answer.
    pub(super) fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        // A webhook that refuses early may close before it has read everything: its answer is there all the same.
        let sent = self.stream.write_all(request).and_then(|()| self.stream.flush());
        match self.answer() {
            Err(error) => Err(sent.err().unwrap_or(error)),
            answer => answer,
        }
    }

    /// Sends bytes and waits for nothing.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush())
    }

    /// The certificate that the webhook has shown.
    pub(super) fn certificate(&self) -> Option<Vec<u8>> {
        Some(self.stream.conn.peer_certificates()?.first()?.to_vec())
    }

    fn answer(&mut self) -> io::Result<Answer> {
        loop {
            if let Some((answer, length)) = parse(&self.read) {
                self.read.drain(..length);
                return Ok(answer);
            }
            let mut bytes = [0; 16 << 10];
            match self.stream.read(&mut bytes)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.read.extend_from_slice(&bytes[..count]),
            }
        }
    }
}

impl Answer {
    /// The `response` of a review.
    pub(super) fn response(&self) -> Value {
        let mut review: Value = serde_json::from_str(&self.body).unwrap_or_default();
        review["response"].take()
    }
}

/// A request with a review, as the API server sends it.
pub(super) fn post(path: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [head(path, body.len()).as_bytes(), body].concat()
}

/// The head of a request that says so many bytes follow.
pub(super) fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: portal\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// An answer at the start of some bytes, and its length.
fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let (start, end) = (end + 4, end + 4 + length);
    let body = String::from_utf8_lossy(bytes.get(start..end)?).into_owned();
    Some((Answer { status, body }, end))
}

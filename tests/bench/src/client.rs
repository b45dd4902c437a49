//! One request, over and over, by HTTP/1.1 and TLS. Written by hand: whoever asks must cost less than whoever answers, or it is what
//! is measured.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Who is asked, and what.
pub struct Target {
    address: SocketAddr,
    name: ServerName<'static>,
    connector: TlsConnector,
    /// The head and the body, as they are sent.
    request: Vec<u8>,
}

/// The files that say who the two sides are, in PEM.
#[derive(Debug, Default)]
pub struct Certificates {
    /// The authority of the server.
    pub authority: PathBuf,
    /// Our own certificate and its key, for a server that asks.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// A connection, which is opened when it is needed and used again as long as the server wants that.
pub struct Connection {
    target: Arc<Target>,
    stream: Option<TlsStream<TcpStream>>,
    /// What was read and is not used up.
    input: Vec<u8>,
    /// The body of the last answer.
    body: Vec<u8>,
}

/// The head of an answer.
struct Head {
    status: u16,
    length: Length,
    closes: bool,
}

enum Length {
    Known(usize),
    Chunked,
    UntilTheEnd,
}

/// What is read at a time, at least.
const READ: usize = 16 << 10;

impl Target {
    /// Posts a JSON body to a URL of the form `https://HOST:PORT/PATH`.
    pub fn new(url: &str, certificates: &Certificates, body: &[u8]) -> Result<Target, Box<dyn Error>> {
        let rest = url.strip_prefix("https://").ok_or_else(|| format!("{url} does not begin with https://"))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        let address =
            (host, port.parse()?).to_socket_addrs()?.next().ok_or_else(|| format!("{host} has no address"))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: portal-bench\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            if path.is_empty() { "/" } else { path },
            body.len()
        );
        Ok(Target {
            address,
            name: ServerName::try_from(host.to_owned())?,
            connector: TlsConnector::from(Arc::new(certificates.config()?)),
            request: [head.as_bytes(), body].concat(),
        })
    }
}

impl Certificates {
    fn config(&self) -> Result<ClientConfig, Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        for certificate in read(&self.authority)? {
            roots.add(certificate)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match &self.own {
            Some((certificate, key)) => {
                config.with_client_auth_cert(read(certificate)?, PrivateKeyDer::from_pem_file(key)?)?
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificates in a file.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, Box<dyn Error>> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)?.collect();
    certificates.map_err(|error| format!("{}: {error}", path.display()).into())
}

impl Connection {
    /// A connection that is not open yet.
    pub fn new(target: Arc<Target>) -> Connection {
        Connection { target, stream: None, input: Vec::with_capacity(READ), body: Vec::new() }
    }

    /// Sends the request and waits for the answer. After an error the next request opens the connection anew.
    pub async fn ask(&mut self) -> io::Result<(u16, &[u8])> {
        let answered = self.send_and_read().await;
        match &answered {
            Ok(head) if !head.closes => {}
            _ => self.stream = None,
        }
        answered.map(|head| (head.status, &*self.body))
    }

    async fn send_and_read(&mut self) -> io::Result<Head> {
        let target = Arc::clone(&self.target);
        if self.stream.is_none() {
            let stream = TcpStream::connect(target.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(target.connector.connect(target.name.clone(), stream).await?);
        }
        let stream = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
        stream.write_all(&target.request).await?;
        stream.flush().await?;
        self.input.clear();
        self.body.clear();
        let head = self.read_head().await?;
        match head.length {
            Length::Known(length) => self.read_piece(length).await?,
            Length::Chunked => while self.read_chunk().await? {},
            Length::UntilTheEnd => {
                while self.fill().await? > 0 {}
                self.body.append(&mut self.input);
            }
        }
        Ok(head)
    }

    async fn read_head(&mut self) -> io::Result<Head> {
        let end = self.find(b"\r\n\r\n").await?;
        let text = str::from_utf8(&self.input[..end]).map_err(io::Error::other)?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or(ErrorKind::InvalidData)?;
        let mut head = Head { status, length: Length::UntilTheEnd, closes: false };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            let value = value.trim();
            if is("content-length") {
                head.length = Length::Known(value.parse().map_err(io::Error::other)?);
            } else if is("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
                head.length = Length::Chunked;
            } else if is("connection") && value.eq_ignore_ascii_case("close") {
                head.closes = true;
            }
        }
        head.closes |= matches!(head.length, Length::UntilTheEnd);
        self.input.drain(..end + 4);
        Ok(head)
    }

    /// Reads a chunk. Returns whether it was not the last.
    async fn read_chunk(&mut self) -> io::Result<bool> {
        let end = self.find(b"\r\n").await?;
        let text = str::from_utf8(&self.input[..end]).map_err(io::Error::other)?;
        let size = text.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        self.input.drain(..end + 2);
        self.read_piece(size).await?;
        while self.input.len() < 2 {
            self.fill_some().await?;
        }
        self.input.drain(..2);
        Ok(size > 0)
    }

    /// Adds so many bytes to the body.
    async fn read_piece(&mut self, length: usize) -> io::Result<()> {
        while self.input.len() < length {
            self.fill_some().await?;
        }
        self.body.extend_from_slice(&self.input[..length]);
        self.input.drain(..length);
        Ok(())
    }

    /// Where a sign is, read as far as is needed.
    async fn find(&mut self, sign: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(place) = self.input.windows(sign.len()).position(|window| window == sign) {
                return Ok(place);
            }
            self.fill_some().await?;
        }
    }

    async fn fill_some(&mut self) -> io::Result<()> {
        if self.fill().await? == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.input.reserve(READ);
        self.stream.as_mut().ok_or(ErrorKind::NotConnected)?.read_buf(&mut self.input).await
    }
}

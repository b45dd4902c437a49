//! A server with its files, and clients that can do everything wrong.

use std::fs;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::{
    Router,
    body::Bytes,
    routing::{get, post},
};
use portal_cluster::{
    health::{Health, Part},
    metrics::{self, Registry},
};
use portal_test_kit::certificates::{Authority, Pair};
use rustls::{
    ClientConfig, DEFAULT_VERSIONS, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

use crate::{
    admission::{
        guard::FromApiServer,
        limits::ServerLimits,
        server::{Accept, Server},
        tls::{Certificates, Clients, Files},
    },
    metrics::EngineMetrics,
};

/// How long a test waits for what has to happen, on a machine that is busy.
const SOON: Duration = Duration::from_secs(30);

/// The name of the server, and of the API server in its client certificate.
const SERVER: &str = "portal.portal-system.svc";
pub(super) const API_SERVER: &str = "kube-apiserver";

/// A server that runs.
pub(super) struct Fixture {
    pub(super) address: SocketAddr,
    pub(super) authority: Authority,
    pub(super) volume: Volume,
    pub(super) health: Health,
    pub(super) shutdown: CancellationToken,
    pub(super) serving: JoinHandle<()>,
    /// Requests to `/gate` are answered when there is a permit.
    pub(super) gate: Arc<Semaphore>,
    registry: Registry,
}

/// The files of a Secret, as Kubernetes mounts them: links into a folder that is swapped by a link.
pub(super) struct Volume {
    folder: TempDir,
    versions: std::cell::Cell<u32>,
}

/// How a fixture is set up.
pub(super) struct Setup {
    pub(super) limits: ServerLimits,
    /// Who has to sign the certificates of clients.
    pub(super) clients: Option<String>,
    /// The first certificate of the server. Unset: a good one.
    pub(super) pair: Option<Pair>,
}

/// A connection of a client.
pub(super) struct Client {
    pub(super) stream: TlsStream<TcpStream>,
    read: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

pub(super) fn setup(limits: ServerLimits) -> Setup {
    Setup { limits, clients: None, pair: None }
}

impl IntoFuture for Setup {
    type Output = Fixture;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Fixture> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            self.start(address, listener)
        })
    }
}

impl Setup {
    /// Starts a server that takes connections from `listener`.
    pub(super) fn start(self, address: SocketAddr, listener: impl Accept + 'static) -> Fixture {
        let authority = Authority::new("authority").unwrap();
        let volume = Volume { folder: tempfile::tempdir().unwrap(), versions: 0.into() };
        let pair = self.pair.unwrap_or_else(|| authority.server(SERVER, &[SERVER]).unwrap());
        volume.write(&pair, self.clients.as_deref().unwrap_or_default());
        let registry = Registry::new();
        let (health, metrics) = (Health::default(), EngineMetrics::register(&registry));
        health.expect(&Part::Listener);
        health.expect(&Part::Certificate);
        let files = Files {
            certificate: volume.path("tls.crt"),
            key: volume.path("tls.key"),
            clients: self.clients.map(|_| Clients { authority: volume.path("ca.crt"), name: API_SERVER.to_owned() }),
        };
        let certificates = Certificates::new(files, health.clone(), metrics.clone());
        let (shutdown, gate) = (CancellationToken::new(), Arc::new(Semaphore::new(0)));
        let (pause, settled) = (Duration::from_millis(20), Duration::from_millis(5));
        tokio::spawn(Arc::clone(&certificates).follow_every(pause, settled, shutdown.clone()));
        let server = Server {
            router: router(Arc::clone(&gate)),
            certificates,
            limits: self.limits,
            health: health.clone(),
            metrics,
        };
        let serving = tokio::spawn(server.serve_from(listener, shutdown.clone()));
        Fixture { address, authority, volume, health, shutdown, serving, gate, registry }
    }
}

fn router(gate: Arc<Semaphore>) -> Router {
    let length = |FromApiServer(body): FromApiServer| async move { format!("{} bytes\n", body.len()) };
    let gated = |FromApiServer(body): FromApiServer| async move {
        gate.acquire().await.unwrap().forget();
        format!("{} bytes\n", body.len())
    };
    Router::new()
        .route("/review", post(length))
        .route("/gate", post(gated))
        .route("/large", post(|_: FromApiServer| async { vec![b'x'; 32 << 20] }))
        .route(
            "/panic",
            post(|_: FromApiServer| async {
                if true {
                    panic!("a mistake")
                }
            }),
        )
        .route("/state", get(|| async { "well\n" }))
        .route("/anybody", post(|body: Bytes| async move { format!("{} bytes\n", body.len()) }))
}

impl Fixture {
    /// A client that shows no certificate.
    pub(super) async fn client(&self) -> Client {
        self.client_with(None, |_| {}).await.unwrap()
    }

    /// A client that shows a certificate, and may be strange in other ways.
    pub(super) async fn client_with(
        &self,
        pair: Option<&Pair>,
        change: impl FnOnce(&mut ClientConfig),
    ) -> std::io::Result<Client> {
        let mut config = self.config(pair);
        change(&mut config);
        self.connect(Arc::new(config)).await
    }

    pub(super) async fn connect(&self, config: Arc<ClientConfig>) -> std::io::Result<Client> {
        let name = ServerName::try_from(SERVER).unwrap();
        let stream = soon(TlsConnector::from(config).connect(name, self.tcp().await)).await?;
        Ok(Client { stream, read: Vec::new() })
    }

    /// How a client of this server speaks TLS.
    pub(super) fn config(&self, pair: Option<&Pair>) -> ClientConfig {
        self.config_of(DEFAULT_VERSIONS, pair)
    }

    /// The same, in some versions of TLS.
    pub(super) fn config_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        pair: Option<&Pair>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pair().certificate.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
        let Some(pair) = pair else { return builder.with_no_client_auth() };
        let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
        builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap()).unwrap()
    }

    /// A connection on which nothing has been said.
    pub(super) async fn tcp(&self) -> TcpStream {
        soon(TcpStream::connect(self.address)).await.unwrap()
    }

    /// A certificate for the server.
    pub(super) fn pair(&self) -> Pair {
        self.authority.server(SERVER, &[SERVER]).unwrap()
    }

    /// Waits until a metric has this value.
    pub(super) async fn counts(&self, series: &str, value: i64) {
        let line = format!("{series} {value}");
        let started = Instant::now();
        loop {
            let text = metrics::text(&self.registry);
            if text.lines().any(|found| found == line) {
                return;
            }
            let relevant: Vec<_> = text.lines().filter(|line| line.starts_with("portal_admission")).collect();
            assert!(started.elapsed() < SOON, "{line} does not come:\n{}", relevant.join("\n"));
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until `/readyz` has this line about the certificate.
    pub(super) async fn certificate_is(&self, expected: &str) {
        let started = Instant::now();
        loop {
            let report = self.health.report().replace(&self.volume.folder.path().display().to_string(), "");
            let line = report.lines().find(|line| line[3..].starts_with("certificate")).unwrap_or_default().to_owned();
            if line == expected {
                return;
            }
            assert!(started.elapsed() < SOON, "{expected}\n{line}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Volume {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces all files at once.
    pub(super) fn write(&self, pair: &Pair, authority: &str) {
        let version = self.versions.replace(self.versions.get() + 1);
        let folder = self.path(&format!("..{version}"));
        fs::create_dir(&folder).unwrap();
        for (name, text) in [("tls.crt", &*pair.certificate), ("tls.key", &*pair.key), ("ca.crt", authority)] {
            fs::write(folder.join(name), text).unwrap();
            if version == 0 {
                symlink(format!("..data/{name}"), self.path(name)).unwrap();
            }
        }
        symlink(format!("..{version}"), self.path("..next")).unwrap();
        fs::rename(self.path("..next"), self.path("..data")).unwrap();
    }

    /// Takes all files away.
    pub(super) fn clear(&self) {
        fs::remove_file(self.path("..data")).unwrap();
    }
}

impl Client {
    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.stream.write_all(bytes.as_ref())).await.unwrap();
        soon(self.stream.flush()).await.unwrap();
    }

    /// Asks, and expects an answer.
    pub(super) async fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    /// The next answer.
    pub(super) async fn answer(&mut self) -> Answer {
        self.next().await.expect("the connection was closed before an answer")
    }

    /// The next answer, unless the connection ends before.
    pub(super) async fn next(&mut self) -> Option<Answer> {
        loop {
            if let Some((answer, length)) = parse(&self.read) {
                self.read.drain(..length);
                return Some(answer);
            }
            let mut bytes = [0; 4096];
            match soon(self.stream.read(&mut bytes)).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
            }
        }
    }

    /// Waits until the connection ends. Panics if there is an answer before.
    pub(super) async fn ends(&mut self) {
        let answer = self.next().await;
        assert!(answer.is_none(), "{answer:?}");
    }

    /// The certificate that the server has shown.
    pub(super) fn shown(&self) -> CertificateDer<'static> {
        let (_, session) = self.stream.get_ref();
        session.peer_certificates().unwrap()[0].clone().into_owned()
    }
}

impl Answer {
    #[track_caller]
    pub(super) fn check(&self, status: u16, body: &str) {
        assert_eq!((self.status, &*self.body), (status, body), "{}", self.head);
    }

    pub(super) fn closes(&self) -> bool {
        self.head.to_lowercase().contains("connection: close")
    }
}

/// A review of so many bytes.
pub(super) fn review(path: &str, length: usize) -> String {
    format!("{}{}", head(path, length), "x".repeat(length))
}

/// The head of a review that says so many bytes follow.
pub(super) fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: portal\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// An answer at the start of some bytes, and its length.
fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let text = String::from_utf8_lossy(bytes);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().unwrap();
    let field = |line: &str| line.to_lowercase().strip_prefix("content-length: ").map(|length| length.parse().unwrap());
    let length: usize = head.lines().find_map(field).unwrap_or(0);
    let (start, end) = (head.len() + 4, head.len() + 4 + length);
    let body = String::from_utf8_lossy(bytes.get(start..end)?).into_owned();
    Some((Answer { status, head: head.to_owned(), body }, end))
}

/// What has to happen soon.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(SOON, future).await.expect("it happens soon")
}

//! The server of the webhook: takes connections, speaks TLS and HTTP/1.1 on each, and ends without losing a request.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use portal_cluster::health::{Health, Part};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    answer::Answering,
    connection::{Connection, Heard, Phase},
    connections::Connections,
    limits::ServerLimits,
    tls::Certificates,
};
use crate::metrics::{Closed, EngineMetrics};

/// The server of the webhook.
#[derive(Debug)]
pub struct Server {
    /// What answers. It gets each body whole, as `Bytes`, and each request with a [`Peer`](super::tls::Peer) as its extension. What not
    /// everybody may ask takes its body as [`FromApiServer`](super::guard::FromApiServer).
    pub router: Router,
    /// What is shown to clients, and asked of them.
    pub certificates: Arc<Certificates>,
    /// What clients may take.
    pub limits: ServerLimits,
    /// Where the part `listener` says how it is.
    pub health: Health,
    /// What is counted.
    pub metrics: EngineMetrics,
}

/// What connections come from.
pub(super) trait Accept: Send {
    /// The next connection. May be called again after an error, and its future may be dropped at any time.
    fn accept(&mut self) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// What every connection needs.
#[derive(Clone)]
struct Serving {
    router: Router,
    acceptor: TlsAcceptor,
    http: http1::Builder,
    certificates: Arc<Certificates>,
    connections: Arc<Connections>,
}

/// What is read of one connection at a time. A record of TLS is half as large, so that nothing is gained by more.
const READ_BUFFER: usize = 32 << 10;

/// The largest head of a request. Those of the API server have some hundred bytes.
const MAX_HEAD: usize = 8 << 10;

/// The pause after an error that may be over soon.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

/// The pause after an error of the listener itself.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The first byte of each record of a TLS handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

/// What is said to those who speak HTTP without TLS, as Go's server does.
const SPEAK_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 36\r\n\
    Connection: close\r\n\r\nThis port speaks HTTPS and not HTTP\n";

impl Server {
    /// Serves until `shutdown`, and then ends: for [`ServerLimits::drain`] it goes on as before but for closing each connection after its
    /// answer, because others need a while to learn that this replica is going. Then it takes no more connections, and waits for the
    /// answers under way. Whoever cancels `shutdown` has made the replica unready before.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        self.serve_from(listener, shutdown).await;
    }

    pub(super) async fn serve_from(self, mut listener: impl Accept, shutdown: CancellationToken) {
        let Server { router, certificates, limits, health, metrics } = self;
        let connections = Connections::new(limits, metrics);
        let mut http = http1::Builder::new();
        // What is slow is noticed by its phase: see `connection.rs`.
        http.header_read_timeout(None).max_buf_size(READ_BUFFER).max_header_size(MAX_HEAD);
        let serving = Serving {
            router,
            acceptor: TlsAcceptor::from(certificates.config()),
            http,
            certificates,
            connections: Arc::clone(&connections),
        };
        let drained = async {
            shutdown.cancelled().await;
            connections.begin_closing();
            tokio::time::sleep(limits.drain).await;
        };
        health.well(&Part::Listener);
        tokio::select! {
            never = take_connections(&mut listener, &serving, &health) => never,
            never = connections.sweep() => never,
            () = drained => {}
        }
        drop(listener);
        connections.finish().await;
    }
}

/// Takes connections for ever. No error ends it.
async fn take_connections(listener: &mut impl Accept, serving: &Serving, health: &Health) -> ! {
    let mut number = 0;
    loop {
        let error = match listener.accept().await {
            Ok(stream) => {
                health.well(&Part::Listener);
                number += 1;
                let serving_one = serving.clone();
                serving.connections.take(number, |connection| serving_one.serve(stream, connection));
                continue;
            }
            Err(error) => error,
        };
        serving.connections.metrics.accept_errors.inc();
        let problem = format!("no connection can be taken: {error}");
        let pause = match error.raw_os_error() {
            Some(EBADF | EINVAL | ENOTSOCK) => {
                health.failed(&Part::Listener, &problem);
                LONG_PAUSE
            }
            // Clients may have caused it, so it is no reason to be unready: they would take one replica after the other out.
            Some(EMFILE | ENFILE | ENOBUFS | ENOMEM) => {
                health.unwell(&Part::Listener, &format!("{problem}; others are closed instead"));
                serving.connections.make_room();
                SHORT_PAUSE
            }
            // What was wrong with one connection, such as that its client has gone, comes as an error too.
            _ => {
                debug!(%error, "A connection was gone before it was taken");
                SHORT_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// The listener is none, or not any more.
const EBADF: i32 = 9;
const EINVAL: i32 = 22;
const ENOTSOCK: i32 = 88;

/// There is no more of something that a connection needs: files of the process or of the machine, buffers, memory.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
const ENOBUFS: i32 = 105;
const ENOMEM: i32 = 12;

impl Serving {
    /// Serves one connection until its end.
    async fn serve(self, mut stream: TcpStream, connection: Arc<Connection>) {
        // An answer is written once, and nothing follows it that it could wait for. If this fails the connection is gone.
        let _ = stream.set_nodelay(true);
        match speaks_tls(&stream).await {
            Ok(true) => {}
            Ok(false) => {
                self.connections.metrics.connections_closed.at(&Closed::NotTls).inc();
                let _ = explain(&mut stream).await;
                return;
            }
            Err(_) => return,
        }
        let stream = match self.acceptor.accept(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                self.connections.metrics.connections_closed.at(&Closed::HandshakeFailed).inc();
                debug!(%error, "A handshake failed");
                return;
            }
        };
        let (_, session) = stream.get_ref();
        let peer = self.certificates.peer(session.peer_certificates());
        connection.enter(Phase::Idle);
        let Serving { router, http, connections, .. } = self;
        let answering = Answering { router, peer, connection: Arc::clone(&connection), connections };
        let service = service_fn(move |request| answering.clone().answer(request));
        let stream = TokioIo::new(Heard::new(stream, connection));
        if let Err(error) = http.serve_connection(stream, service).await {
            debug!(%error, "A connection ended early");
        }
    }
}

/// Whether what comes first on a connection is a TLS handshake. Costs less than to begin one.
async fn speaks_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(first[0] == HANDSHAKE_RECORD),
    }
}

/// Tells a client of HTTP that TLS is spoken here, and listens until it has gone: closing before it has sent everything would take the
/// answer away from it. The handshake's deadline ends this.
async fn explain(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(SPEAK_TLS).await?;
    stream.shutdown().await?;
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(())
}

impl Accept for TcpListener {
    async fn accept(&mut self) -> io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

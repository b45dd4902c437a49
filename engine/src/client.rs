//! Connections to others that speak HTTP: to other replicas, and to Alertmanager.

use std::io;
use std::sync::Arc;

use axum::body::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::ServerName,
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// What makes a connection one of TLS.
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// For a server whose certificate has this name and is of one of these authorities. None if no certificate can have the name.
    pub(crate) fn new(name: &str, authorities: RootCertStore) -> Option<Tls> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has cipher suites of both versions")
            .with_root_certificates(authorities)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).ok()?;
        Some(Tls { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// Lets the server show its certificate. An error says that it is not accepted.
    pub(crate) async fn over(self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name, stream).await
    }
}

/// Begins to speak HTTP. The connection ends with the sender, and its errors come to whoever sends.
pub(crate) async fn speak<S>(stream: S) -> hyper::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

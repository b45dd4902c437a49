//! What a webhook would cost that decides nothing: `echo ADDRESS CERTIFICATE KEY [--parse] [--save FILE]`. The stack is the engine's:
//! tokio, hyper with HTTP/1.1, rustls with ring. It reads the body and lets everything in. With `--parse` it also makes a
//! `serde_json::Value` of the body, to answer with the uid in it, as a webhook in Rust usually begins. `--save` keeps the last body.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// What is done with a body.
struct How {
    parses: bool,
    save: Option<PathBuf>,
}

/// What is answered, with this uid or another. It is as long as the engine's answer.
const ANSWER: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9"}}"#;
const UID: &str = "0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, certificate, key, rest @ ..] = &arguments[..] else {
        return Err("usage: echo ADDRESS CERTIFICATE KEY [--parse] [--save FILE]".into());
    };
    let parses = rest.iter().any(|argument| argument == "--parse");
    let save = rest.windows(2).find(|pair| pair[0] == "--save").map(|pair| PathBuf::from(&pair[1]));
    let how = Arc::new(How { parses, save });
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?,
            PrivateKeyDer::from_pem_file(key)?,
        )?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.send_tls13_tickets = 0;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    // As the engine's runtime is made.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&how)));
        }
    })
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, how: Arc<How>) {
    // Whatever goes wrong, the client notices.
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let answer = |request| answer(request, &how);
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn answer(request: Request<Incoming>, how: &How) -> io::Result<Response<Full<Bytes>>> {
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    if let Some(file) = &how.save {
        std::fs::write(file, &body)?;
    }
    let answer = match how.parses {
        true => {
            let review: Value = serde_json::from_slice(&body)?;
            Bytes::from(ANSWER.replace(UID, review["request"]["uid"].as_str().unwrap_or_default()))
        }
        false => Bytes::from_static(ANSWER.as_bytes()),
    };
    let mut response = Response::new(Full::new(answer));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

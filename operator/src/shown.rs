//! Which certificate a pod shows. Nothing is believed of it but who it is.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::certificates::fingerprint_of_der;

/// How long a pod may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The fingerprint of the certificate that is shown at an address. None if nobody answers there.
pub async fn ask(ip: IpAddr, port: u16) -> Option<String> {
    let asking = shown(SocketAddr::new(ip, port));
    tokio::time::timeout(TIMEOUT, asking).await.ok().flatten()
}

async fn shown(address: SocketAddr) -> Option<String> {
    let provider = Arc::new(ring::default_provider());
    let seen = Arc::new(Seen { certificate: Mutex::default(), provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let config = config.dangerous().with_custom_certificate_verifier(Arc::clone(&seen) as _).with_no_client_auth();
    let stream = TcpStream::connect(address).await.ok()?;
    let name = ServerName::from(address.ip());
    // A server that wants a certificate of ours ends the handshake after it has shown its own.
    let _ = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let certificate = seen.certificate.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some(fingerprint_of_der(&certificate))
}

/// Takes any certificate, and keeps it. Nothing is sent to whoever shows it.
#[derive(Debug)]
struct Seen {
    certificate: Mutex<Option<Vec<u8>>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Seen {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.certificate.lock().unwrap_or_else(PoisonError::into_inner) = Some(certificate.to_vec());
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

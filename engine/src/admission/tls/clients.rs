//! Who a client is, by its certificate.
//!
//! The handshake takes any certificate whose key the client has, and none at all. Whether it is the right one is decided after it, so
//! that a client that has the wrong one is told why in words, and so that paths for others can do without.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use webpki::EndEntityCert;

use super::der;

/// Who the client of a connection is. Each request carries it as an extension.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Peer {
    /// Clients are not asked who they are.
    Anyone,
    /// The API server: an authority that we trust has signed its certificate, which has the right name.
    ApiServer,
    /// It has shown no certificate.
    Unknown,
    /// It has shown one that is not right, for this reason.
    Stranger(Arc<str>),
}

/// What the certificate of a client has to be.
#[derive(Debug)]
pub(super) struct Authority {
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Asks a client for a certificate, and only checks that it has the key.
#[derive(Debug)]
pub(super) struct AnyCertificate(pub(super) Arc<CryptoProvider>);

impl Authority {
    pub(super) fn new(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Self, VerifierBuilderError> {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()?;
        Ok(Authority { verifier })
    }

    /// Who shows this chain of certificates. The API server has the `name`, as its common name or as a DNS name.
    pub(super) fn peer(&self, chain: &[CertificateDer<'_>], name: &str, now: UnixTime) -> Peer {
        let Some((certificate, intermediates)) = chain.split_first() else { return Peer::Unknown };
        if let Err(error) = self.verifier.verify_client_cert(certificate, intermediates, now) {
            return Peer::Stranger(format!("the client certificate is not valid here: {error}").into());
        }
        let names = names(certificate);
        if names.iter().any(|found| found == name) {
            return Peer::ApiServer;
        }
        Peer::Stranger(format!("the client certificate is for {}, not for {name}", names.join(", ")).into())
    }
}

/// The names that a certificate is for.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let common = der::common_name(certificate.subject()).into_iter();
    common.chain(certificate.valid_dns_names()).map(str::to_owned).collect()
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None: with a list of authorities, a client that has a certificate of another one would show nothing, and learn nothing.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    /// Says nothing about the certificate: see [`Authority::peer`].
    fn verify_client_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn a_certificate_is_for_its_common_name_and_for_its_dns_names() {
        let mut parameters = CertificateParams::new(["kube-apiserver".to_owned(), "10.0.0.1".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, "front-proxy");
        let certificate = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(names(certificate.der()), ["front-proxy", "kube-apiserver"]);
        assert!(names(&CertificateDer::from(vec![0x30, 0x00])).is_empty());
    }
}

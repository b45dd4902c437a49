//! Certificates for a cluster's components, for users that a test makes up, and for the servers of a test.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

/// A certificate authority that lives as long as its cluster.
#[derive(Debug)]
pub struct Authority {
    parameters: CertificateParams,
    key: KeyPair,
    certificate: String,
}

/// A certificate and its private key, both in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// Makes a new authority.
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let mut parameters = parameters(name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = parameters.self_signed(&key)?.pem();
        Ok(Self { parameters, key, certificate })
    }

    /// The authority's own certificate and key.
    pub fn pair(&self) -> Pair {
        Pair { certificate: self.certificate.clone(), key: self.key.serialize_pem() }
    }

    /// A certificate for a user: Kubernetes takes the name and the group from the subject.
    pub fn client(&self, user: &str, group: Option<&str>) -> anyhow::Result<Pair> {
        let mut parameters = parameters(user);
        if let Some(group) = group {
            parameters.distinguished_name.push(DnType::OrganizationName, group);
        }
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(parameters)
    }

    /// A certificate for a server that is reached by these names and addresses.
    pub fn server(&self, name: &str, alternatives: &[&str]) -> anyhow::Result<Pair> {
        let mut parameters = parameters(name);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for alternative in alternatives {
            parameters.subject_alt_names.push(match alternative.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName((*alternative).try_into()?),
            });
        }
        self.sign(parameters)
    }

    fn sign(&self, mut parameters: CertificateParams) -> anyhow::Result<Pair> {
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// A key that signs ServiceAccount tokens: the private and the public half, in PEM.
pub fn signing_key() -> anyhow::Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    // Fixed and far apart: a machine's clock may be wrong, and no test is about the expiry of these.
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2100, 1, 1);
    parameters
}

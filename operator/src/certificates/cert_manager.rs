//! What cert-manager is asked for.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

/// A certificate that cert-manager has to issue.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The name of the Certificate.
    pub name: &'a str,
    /// The name of the Secret that it is written to.
    pub secret_name: &'a str,
    /// The namespace of the engine.
    pub namespace: &'a str,
    /// Labels for both.
    pub labels: &'a BTreeMap<String, String>,
    /// The DNS names that the certificate is for.
    pub names: &'a [String],
    /// Who signs it.
    pub issuer: Issuer<'a>,
    /// How long it is valid.
    pub validity: SignedDuration,
}

/// `spec.certificates.issuerRef`
#[derive(Clone, Copy, Debug)]
pub struct Issuer<'a> {
    /// The name of the issuer.
    pub name: &'a str,
    /// `Issuer`, `ClusterIssuer`, or a kind of another group.
    pub kind: &'a str,
    /// `cert-manager.io`, unless it is an issuer of somebody else.
    pub group: &'a str,
}

/// The API version of a Certificate.
pub const API_VERSION: &str = "cert-manager.io/v1";

/// The kind of a Certificate.
pub const KIND: &str = "Certificate";

/// The Certificate to apply. Renewed after two thirds of its life, with a new key each time, as the operator does it itself.
pub fn build(request: &Request<'_>) -> Value {
    let Request { name, secret_name, namespace, labels, names, issuer, validity } = *request;
    let minutes = (validity.as_secs() / 60).max(60);
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "secretName": secret_name,
            "secretTemplate": { "labels": labels },
            "dnsNames": names,
            "issuerRef": { "name": issuer.name, "kind": issuer.kind, "group": issuer.group },
            "duration": duration(minutes),
            "renewBefore": duration(minutes / 3),
            "privateKey": { "algorithm": "ECDSA", "size": 256, "encoding": "PKCS8", "rotationPolicy": "Always" },
            "usages": ["digital signature", "server auth"],
        },
    })
}

/// Minutes, in the form that the API server gives back: Go's.
fn duration(minutes: i64) -> String {
    format!("{}h{}m0s", minutes / 60, minutes % 60)
}

//! Where the certificate of an instance's webhook comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{must, object_name};

/// Where the certificate of the webhook comes from.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = must(&[
    (
        "self.source != 'Secret' || has(self.secretName)",
        "`source: Secret` needs the name of the Secret: add `secretName`",
    ),
    (
        "self.source != 'CertManager' || has(self.issuerRef)",
        "`source: CertManager` needs an issuer: add `issuerRef`",
    ),
    (
        "self.source == 'CertManager' || !has(self.issuerRef)",
        "`issuerRef` is for `source: CertManager`: remove it, or change `source`",
    ),
    (
        "self.source != 'Operator' || (!has(self.secretName) && !has(self.caBundle))",
        "the operator issues certificates itself: remove `secretName` and `caBundle`, or set `source` to CertManager or Secret",
    ),
    (
        "self.source != 'Operator' || self.leafDays < self.authorityDays",
        "a certificate cannot live longer than its authority: make `leafDays` smaller than `authorityDays`",
    ),
])))]
pub struct CertificatesSpec {
    /// `Operator` issues certificates itself. `CertManager` asks cert-manager for them. `Secret` takes what somebody puts into a Secret.
    pub source: CertificateSource,

    /// The Secret in the engine's namespace that has `tls.crt`, `tls.key` and `ca.crt`. For `Secret`; for `CertManager` it is where
    /// cert-manager writes, and has a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_name")]
    pub secret_name: Option<String>,

    /// The issuer that cert-manager uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_ref: Option<IssuerReference>,

    /// The authorities that the API server is to trust, in PEM, if the Secret has no `ca.crt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub ca_bundle: Option<String>,

    /// How many days an authority of the operator lives. It is replaced when two thirds of them are over.
    #[schemars(range(min = 2, max = 3650))]
    pub authority_days: u32,

    /// How many days a certificate lives. It is replaced when two thirds of them are over.
    #[schemars(range(min = 1, max = 825))]
    pub leaf_days: u32,
}

/// Who issues certificates.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words are those of the instance")]
pub enum CertificateSource {
    #[default]
    Operator,
    CertManager,
    Secret,
}

/// An issuer of cert-manager.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerReference {
    /// Its name.
    #[schemars(schema_with = "object_name")]
    pub name: String,

    /// Its kind: an `Issuer` of the engine's namespace, or a `ClusterIssuer`.
    #[serde(default = "issuer")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Its group.
    #[serde(default = "cert_manager")]
    #[schemars(length(min = 1, max = 253))]
    pub group: String,
}

fn issuer() -> String {
    "Issuer".to_owned()
}

fn cert_manager() -> String {
    "cert-manager.io".to_owned()
}

impl Default for CertificatesSpec {
    fn default() -> Self {
        CertificatesSpec {
            source: CertificateSource::Operator,
            secret_name: None,
            issuer_ref: None,
            ca_bundle: None,
            authority_days: 365,
            leaf_days: 30,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_certificate_is_asked_for_as_the_operator_would_make_it() {
        let labels = BTreeMap::from([("app.kubernetes.io/managed-by".to_owned(), "portal-operator".to_owned())]);
        let names = ["portal.portal-system.svc".to_owned()];
        let request = Request {
            name: "portal-webhook",
            secret_name: "webhook-tls",
            namespace: "portal-system",
            labels: &labels,
            names: &names,
            issuer: Issuer { name: "company", kind: "ClusterIssuer", group: "cert-manager.io" },
            validity: SignedDuration::from_hours(30 * 24),
        };
        expect![[r#"
            {
              "apiVersion": "cert-manager.io/v1",
              "kind": "Certificate",
              "metadata": {
                "labels": {
                  "app.kubernetes.io/managed-by": "portal-operator"
                },
                "name": "portal-webhook",
                "namespace": "portal-system"
              },
              "spec": {
                "dnsNames": [
                  "portal.portal-system.svc"
                ],
                "duration": "720h0m0s",
                "issuerRef": {
                  "group": "cert-manager.io",
                  "kind": "ClusterIssuer",
                  "name": "company"
                },
                "privateKey": {
                  "algorithm": "ECDSA",
                  "encoding": "PKCS8",
                  "rotationPolicy": "Always",
                  "size": 256
                },
                "renewBefore": "240h0m0s",
                "secretName": "webhook-tls",
                "secretTemplate": {
                  "labels": {
                    "app.kubernetes.io/managed-by": "portal-operator"
                  }
                },
                "usages": [
                  "digital signature",
                  "server auth"
                ]
              }
            }"#]]
        .assert_eq(&format!("{:#}", build(&request)));
        // cert-manager refuses less than an hour.
        let short = build(&Request { validity: SignedDuration::ZERO, ..request });
        assert_eq!(short["spec"]["duration"], "1h0m0s");
        assert_eq!(short["spec"]["renewBefore"], "0h20m0s");
    }
}

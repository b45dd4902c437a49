//! The certificates of an instance, whoever issues them.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret as SecretObject};
use portal_crds::CertificateSource;
use serde_json::{Value, json};

use super::mounted_secret;
use crate::{
    certificates::{
        self, Data, Error, Given, Judgement, Published, Secret, Served, Source, Supplied, Validity, Write, cert_manager,
    },
    instance::{Instance, OperatorSettings},
    names::{self, BUNDLE_SINCE, INSTANCE_LABEL, configuration_name, dns_names},
    object::{Key, Kind, Object},
    observed::Observed,
    plan::Step,
};

/// What is known of the certificates of an instance.
pub struct Certificates {
    /// What to do next, and what API servers must trust.
    pub judgement: Judgement,
    /// Whether pods could not start for want of a Secret.
    pub is_missing: bool,
    material: Material,
}

/// What certificates are judged by.
struct Material {
    now: Timestamp,
    names: Vec<String>,
    authority: Option<Data>,
    leaf: Option<Data>,
    published: Option<(Vec<u8>, Timestamp)>,
    served: Vec<Served>,
    validity: Validity,
}

impl Certificates {
    /// Judges the certificates of an instance.
    pub fn judge(instance: &Instance, observed: &Observed, operator: &OperatorSettings) -> Certificates {
        let material = Material::of(instance, observed, operator);
        let spec = &instance.spec.certificates;
        let source = match spec.source {
            CertificateSource::Operator => None,
            CertificateSource::CertManager => Some(Source::CertManager),
            CertificateSource::Secret => Some(Source::Secret),
        };
        let judgement = match source {
            None => certificates::judge(&material.given()),
            Some(source) => certificates::verify(&Supplied {
                now: material.now,
                source,
                // The one by which API servers and replicas ask. Not every cluster has the domain of the other.
                names: &material.names[..1],
                secret_name: &mounted_secret(instance).name,
                secret: material.leaf.as_ref(),
                bundle: spec.ca_bundle.as_deref().map(str::as_bytes),
                published: material.published(),
                served: &material.served,
            }),
        };
        Certificates { judgement, is_missing: material.leaf.is_none(), material }
    }

    /// The Secrets that have to stay.
    pub(super) fn secrets(&self, instance: &Instance, operator: &OperatorSettings) -> Vec<Key> {
        let mut keys = vec![mounted_secret(instance)];
        if instance.spec.certificates.source == CertificateSource::Operator {
            keys.push(authority_key(instance, operator));
        }
        keys
    }

    /// The labels and owners of the Secrets that the operator makes. Whoever does not find them by their labels would leave keys behind.
    pub(super) fn marks(&self, instance: &Instance, observed: &Observed, operator: &OperatorSettings) -> Vec<Object> {
        if instance.spec.certificates.source != CertificateSource::Operator || self.judgement.action.is_some() {
            return Vec::new();
        }
        let keys = [authority_key(instance, operator), mounted_secret(instance)];
        let there = keys.into_iter().filter(|key| observed.get(key).is_some());
        there
            .map(|key| Object::from_value(Kind::Secret, json!({ "metadata": metadata(&key, instance, observed) })))
            .collect()
    }

    /// What cert-manager is asked for, if it is.
    pub(super) fn request(&self, instance: &Instance) -> Option<Object> {
        let spec = &instance.spec.certificates;
        let issuer = spec.issuer_ref.as_ref().filter(|_| spec.source == CertificateSource::CertManager)?;
        let request = cert_manager::build(&cert_manager::Request {
            name: &names::leaf_secret(&instance.name),
            secret_name: &mounted_secret(instance).name,
            namespace: instance.namespace(),
            labels: &names::labels(&instance.name),
            names: &self.material.names,
            issuer: cert_manager::Issuer { name: &issuer.name, kind: &issuer.kind, group: &issuer.group },
            validity: days(spec.leaf_days),
        });
        Some(Object::from_value(Kind::Certificate, request))
    }
}

/// The write that an action comes to. Keys are made here, so that two calls have two results.
pub fn resolve(
    action: certificates::Action,
    instance: &Instance,
    observed: &Observed,
    operator: &OperatorSettings,
) -> Result<Step, Error> {
    let material = Material::of(instance, observed, operator);
    let Write { secret, data } = certificates::perform(action, &material.given())?;
    let key = match secret {
        Secret::Authority => authority_key(instance, operator),
        Secret::Leaf => mounted_secret(instance),
    };
    let data: Value = data.into_iter().map(|(name, bytes)| (name, json!(ByteString(bytes)))).collect();
    let mut value = json!({ "metadata": metadata(&key, instance, observed), "type": "Opaque", "data": data });
    let Some(found) = observed.get(&key) else { return Ok(Step::Create(Object::from_value(Kind::Secret, value))) };
    value["metadata"]["uid"] = found.uid().into();
    value["metadata"]["resourceVersion"] = found.resource_version().into();
    // It cannot be changed once the Secret is there.
    value["type"] = found.value["type"].clone();
    Ok(Step::Replace(Object::from_value(Kind::Secret, value)))
}

/// What a Secret that the operator makes says of itself. The authority is in another namespace than the engine, and only the instance
/// owns it.
fn metadata(key: &Key, instance: &Instance, observed: &Observed) -> Value {
    let is_leaf = key.namespace.as_deref() == Some(instance.namespace());
    let owners = match super::draft::namespace_owner(instance, observed).filter(|_| is_leaf) {
        Some(namespace) => json!([instance.owner(), namespace]),
        None => json!([instance.owner()]),
    };
    json!({
        "name": key.name, "namespace": key.namespace, "labels": names::labels(&instance.name), "ownerReferences": owners,
    })
}

pub(super) fn authority_key(instance: &Instance, operator: &OperatorSettings) -> Key {
    Key::namespaced(Kind::Secret, &operator.namespace, &names::authority_secret(&instance.name))
}

fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(i64::from(days) * 24)
}

impl Material {
    fn of(instance: &Instance, observed: &Observed, operator: &OperatorSettings) -> Material {
        let data = |key: &Key| observed.get(key).map(data_of);
        let spec = &instance.spec.certificates;
        Material {
            now: observed.now,
            names: dns_names(&instance.name, instance.namespace()),
            authority: data(&authority_key(instance, operator)),
            leaf: data(&mounted_secret(instance)),
            published: published(instance, observed),
            served: served(instance, observed),
            validity: Validity { authority: days(spec.authority_days), leaf: days(spec.leaf_days) },
        }
    }

    fn published(&self) -> Option<Published<'_>> {
        self.published.as_ref().map(|(bundle, since)| Published { bundle, since: *since })
    }

    fn given(&self) -> Given<'_> {
        Given {
            now: self.now,
            names: &self.names,
            authority: self.authority.as_ref(),
            leaf: self.leaf.as_ref(),
            published: self.published(),
            served: &self.served,
            validity: self.validity,
        }
    }
}

/// The data of a Secret.
fn data_of(secret: &Object) -> Data {
    let secret: SecretObject = serde_json::from_value(secret.value.clone()).unwrap_or_default();
    secret.data.unwrap_or_default().into_iter().map(|(name, ByteString(bytes))| (name, bytes)).collect()
}

/// What the webhook configuration tells API servers to trust, and since when.
fn published(instance: &Instance, observed: &Observed) -> Option<(Vec<u8>, Timestamp)> {
    static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Array(Vec::new()));
    let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
    let found = observed.get(&key)?;
    let entries = found.value.get("webhooks").unwrap_or(&NOTHING).as_array()?;
    let mut bundles = entries.iter().map(|entry| &entry["clientConfig"]["caBundle"]);
    let first = bundles.next().cloned().unwrap_or_default();
    let is_one = bundles.all(|bundle| *bundle == first);
    let bundle = serde_json::from_value::<ByteString>(first).map(|bytes| bytes.0).unwrap_or_default();
    // Without a note of when it was written, it may have been a moment ago.
    let since = found.annotation(BUNDLE_SINCE).and_then(|since| since.parse().ok()).unwrap_or(observed.now);
    Some((if is_one { bundle } else { Vec::new() }, since))
}

/// What the pods of an instance serve: those that run, or may run.
fn served(instance: &Instance, observed: &Observed) -> Vec<Served> {
    let pods = observed.of_kind(Kind::Pod).filter(|pod| pod.label(INSTANCE_LABEL) == Some(&instance.name));
    let running = pods.filter(|pod| {
        let is_over = matches!(pod.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        !is_over && pod.key.namespace.as_deref() == Some(instance.namespace())
    });
    let served = running
        .map(|pod| Served { pod: pod.key.name.clone(), fingerprint: observed.shown.get(pod.uid()).cloned().flatten() });
    served.collect()
}

//! A `PortalInstance` as the operator takes it.

use portal_core::layers::Layers;
use portal_crds::{CertificateSource, CertificatesSpec, InstanceSpec, Mode, PortalInstance};
use serde_json::Value;

use crate::names::{self, COMBINED, FINALIZER, PAUSED, engine};
use crate::object::{Key, Kind, Object};

/// A `PortalInstance` as the operator takes it.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Which version of its spec this is.
    pub generation: i64,
    /// Which version of the whole object.
    pub resource_version: String,
    /// When it was created, as the API server writes it.
    pub created: String,
    /// What it asks for.
    pub spec: InstanceSpec,
    /// Whether somebody has deleted it.
    pub is_deleted: bool,
    /// Whether our finalizer keeps it.
    pub is_kept: bool,
    /// Whether somebody told the operator to leave it alone.
    pub is_paused: bool,
    /// Its status as the API server has it.
    pub status: Value,
}

/// What all children have to know beside the instance: who runs the operator, and what with.
#[derive(Clone, Debug)]
pub struct OperatorSettings {
    /// The namespace of the operator.
    pub namespace: String,
    /// The name of its account.
    pub account: String,
    /// The image that engines run if their instance says none: that of the operator itself.
    pub image: String,
    /// The version of the operator.
    pub version: String,
}

/// A set of pods that run the same layers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Engine {
    /// `combined`, or the layer.
    pub layer: &'static str,
    /// The name of its Deployment and of its account.
    pub name: String,
    /// What it runs.
    pub layers: Layers,
    /// How many pods there should be.
    pub replicas: u32,
}

impl Instance {
    /// Reads an object. An error is for people.
    pub fn read(object: &Value) -> Result<Instance, String> {
        let instance: PortalInstance = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
        let metadata = instance.metadata;
        let annotations = metadata.annotations.unwrap_or_default();
        Ok(Instance {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0.to_string()).unwrap_or_default(),
            spec: instance.spec.0,
            is_deleted: metadata.deletion_timestamp.is_some(),
            is_kept: metadata.finalizers.is_some_and(|finalizers| finalizers.iter().any(|name| name == FINALIZER)),
            is_paused: annotations.get(PAUSED).is_some_and(|value| value == "true"),
            status: object["status"].clone(),
        })
    }

    /// Which object it is.
    pub fn key(&self) -> Key {
        Key::cluster(Kind::PortalInstance, &self.name)
    }

    /// The namespace of its engine.
    pub fn namespace(&self) -> &str {
        &self.spec.namespace
    }

    /// The layers that are asked for and exist. Audit, network and actions do not exist yet.
    pub fn layers(&self) -> Layers {
        Layers { admission: self.spec.admission.enabled, ..Layers::default() }
    }

    /// The sets of pods that run its layers.
    pub fn engines(&self) -> Vec<Engine> {
        let layers = self.layers();
        let spec = &self.spec;
        let make = |layer, layers, replicas| Engine { layer, name: engine(&self.name, layer), layers, replicas };
        let replicas = match layers {
            Layers { admission: true, .. } => spec.admission.replicas,
            Layers { audit: true, .. } => spec.audit.replicas,
            _ => spec.network.replicas,
        };
        if spec.mode == Mode::Combined {
            let runs = layers.admission || layers.audit || layers.network;
            return runs.then(|| make(COMBINED, layers, replicas)).into_iter().collect();
        }
        let none = Layers::default();
        let split = [
            ("admission", Layers { admission: layers.admission, ..none }, spec.admission.replicas),
            ("audit", Layers { audit: layers.audit, actions: layers.actions, ..none }, spec.audit.replicas),
            ("network", Layers { network: layers.network, actions: layers.actions, ..none }, spec.network.replicas),
        ];
        let runs = |layers: &Layers| layers.admission || layers.audit || layers.network;
        split
            .into_iter()
            .filter(|(_, layers, _)| runs(layers))
            .map(|(layer, layers, replicas)| make(layer, layers, replicas))
            .collect()
    }

    /// The name of the Secret with the certificate.
    pub fn certificate_secret(&self) -> String {
        let CertificatesSpec { source, secret_name, .. } = &self.spec.certificates;
        match (source, secret_name) {
            (CertificateSource::CertManager | CertificateSource::Secret, Some(name)) => name.clone(),
            // Not the operator's own: cert-manager would write over what pods show, before any API server trusts what it writes.
            (CertificateSource::CertManager, None) => names::issued_secret(&self.name),
            (CertificateSource::Operator | CertificateSource::Secret, _) => names::leaf_secret(&self.name),
        }
    }

    /// The owner reference of what goes with the instance.
    pub fn owner(&self) -> Value {
        let resource = Kind::PortalInstance.resource();
        serde_json::json!({
            "apiVersion": resource.api_version, "kind": resource.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }
}

impl TryFrom<&Object> for Instance {
    type Error = String;

    fn try_from(object: &Object) -> Result<Instance, String> {
        Instance::read(&object.value)
    }
}

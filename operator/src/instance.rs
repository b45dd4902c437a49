//! A `PortalInstance` as the operator takes it.

use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::CustomResourceExt as _;
use portal_core::layers::Layers;
use portal_core::selector::Selector;
use portal_crds::{CertificateSource, CertificatesSpec, InstanceSpec, Mode, PortalInstance, ReportApi};
use serde_json::{Value, json};

use crate::names::{self, COMBINED, FINALIZER, LAYERS, PAUSED, engine};
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
    /// What it asks for. If that cannot be read, the namespace alone is true.
    pub spec: InstanceSpec,
    /// Why its spec cannot be read, if so: it says something that only another version of Portal knows.
    pub problem: Option<String>,
    /// The fields of its spec that this version does not know.
    pub unknown_fields: Vec<String>,
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
        let mut instance = Instance::take(object)?;
        instance.problem.take().map_or(Ok(instance), Err)
    }

    /// The same of an object that is there, whatever its spec says: it has a status that can tell, and has to be let go when somebody
    /// deletes it.
    fn take(object: &Value) -> Result<Instance, String> {
        let metadata: ObjectMeta =
            serde_json::from_value(object["metadata"].clone()).map_err(|error| error.to_string())?;
        let annotations = metadata.annotations.unwrap_or_default();
        let (spec, problem) = match read_spec(&object["spec"]) {
            Ok(spec) => (spec, None),
            Err(problem) => (only_namespace(&object["spec"]), Some(problem)),
        };
        Ok(Instance {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0.to_string()).unwrap_or_default(),
            spec,
            problem,
            unknown_fields: unknown_fields(&object["spec"]),
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

    /// The layers that are asked for and exist. Network and actions do not exist yet.
    pub fn layers(&self) -> Layers {
        let audit = self.spec.audit.enabled;
        Layers { admission: self.spec.admission.enabled, audit, ..Layers::default() }
    }

    /// The API group of the reports that a set of its pods writes, if it writes any.
    pub fn reports(&self, engine: &Engine) -> Option<&'static str> {
        let api = self.spec.sinks.policy_report.api;
        engine.layers.audit.then(|| report_group(api)).flatten()
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
        let split = [
            ("admission", layers.admission, spec.admission.replicas),
            ("audit", layers.audit, spec.audit.replicas),
            ("network", layers.network, spec.network.replicas),
        ];
        let running = split.into_iter().filter(|(_, is_on, _)| *is_on);
        running.map(|(layer, _, replicas)| make(layer, self.layers_of(layer), replicas)).collect()
    }

    /// A set of pods that the instance had before and asks for no more, by the name of its account. What its pods do follows from their
    /// layer; those that ran all layers do no less than is asked for.
    pub fn leaving(&self, account: &str) -> Option<Engine> {
        let layer = LAYERS.into_iter().find(|layer| engine(&self.name, layer) == account)?;
        Some(Engine { layer, name: account.to_owned(), layers: self.layers_of(layer), replicas: 0 })
    }

    /// What the pods of a layer run.
    fn layers_of(&self, layer: &str) -> Layers {
        let (layers, none) = (self.layers(), Layers::default());
        match layer {
            "admission" => Layers { admission: true, ..none },
            "audit" => Layers { audit: true, actions: layers.actions, ..none },
            "network" => Layers { network: true, actions: layers.actions, ..none },
            _ => layers,
        }
    }

    /// The instance that acts in the place of this one, if both may act on the same object because of the same rule: the older one does.
    pub fn acts_instead<'a>(&self, others: &'a [Instance]) -> Option<&'a Instance> {
        let acts = |other: &&Instance| other.spec.actions.enabled && other.age() < self.age() && self.overlaps(other);
        others.iter().filter(acts).min_by_key(|other| other.age()).filter(|_| self.spec.actions.enabled)
    }

    /// What is less for the older of two instances. The API server writes times in a form that sorts. Of two that were made at once the first
    /// one by name is taken for the older one.
    pub fn age(&self) -> (&str, &str) {
        (&self.created, &self.name)
    }

    /// Whether there may be a rule and a namespace that both serve.
    fn overlaps(&self, other: &Instance) -> bool {
        let meet = |one: &Option<LabelSelector>, other: &Option<LabelSelector>| {
            // The definition refuses those that cannot be read.
            let read = |selector: &LabelSelector| Selector::of(selector).unwrap_or_default();
            let (one, other) = (one.as_ref().map(read), other.as_ref().map(read));
            one.unwrap_or_default().meets(&other.unwrap_or_default())
        };
        meet(&self.spec.rule_selector, &other.spec.rule_selector)
            && meet(&self.spec.namespace_selector, &other.spec.namespace_selector)
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
        json!({
            "apiVersion": resource.api_version, "kind": resource.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }
}

impl TryFrom<&Object> for Instance {
    type Error = String;

    fn try_from(object: &Object) -> Result<Instance, String> {
        Instance::take(&object.value)
    }
}

/// What a spec asks for. One that is not there asks for nothing.
fn read_spec(spec: &Value) -> Result<InstanceSpec, String> {
    let spec = if spec.is_null() { &json!({}) } else { spec };
    serde_json::from_value(spec.clone()).map_err(|error| {
        // The error does not say where it is.
        let fields = spec.as_object().into_iter().flatten();
        let is_wrong = |field: &(&String, &Value)| {
            let alone: Value = [(field.0.clone(), field.1.clone())].into_iter().collect();
            serde_json::from_value::<InstanceSpec>(alone).is_err()
        };
        let place = fields.filter(is_wrong).map(|(name, _)| format!("`spec.{name}`: ")).next().unwrap_or_default();
        format!("{place}{error}")
    })
}

/// A spec of which nothing is known but where the engine runs.
fn only_namespace(spec: &Value) -> InstanceSpec {
    let usual = InstanceSpec::default();
    InstanceSpec { namespace: spec["namespace"].as_str().map_or(usual.namespace, str::to_owned), ..usual }
}

/// The fields of a spec that are not in our definition. A newer one has them.
fn unknown_fields(spec: &Value) -> Vec<String> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let mut definition = serde_json::to_value(PortalInstance::crd()).expect("a definition is JSON");
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        definition.pointer_mut(schema).expect("the definition has a spec").take()
    });
    let mut found = Vec::new();
    collect_unknown(spec, &SCHEMA, "", &mut found);
    found
}

fn collect_unknown(value: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    if let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, value) in fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match known.get(name) {
                Some(schema) => collect_unknown(value, schema, &path, found),
                None => found.push(path),
            }
        }
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        collect_unknown(item, &schema["items"], &format!("{path}[{place}]"), found);
    }
}

/// The API group of a kind of report. Nothing for none.
pub(crate) fn report_group(api: ReportApi) -> Option<&'static str> {
    match api {
        ReportApi::PolicyReport => Some(Kind::PolicyReport.group()),
        ReportApi::OpenReports => Some(Kind::Report.group()),
        ReportApi::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(spec: Value) -> Object {
        Object::from_value(Kind::PortalInstance, json!({ "metadata": { "name": "a", "uid": "1" }, "spec": spec }))
    }

    #[track_caller]
    fn check(spec: Value, problem: Option<&str>, unknown: &[&str]) {
        let object = instance(spec);
        let taken = Instance::try_from(&object).unwrap();
        assert_eq!(taken.problem.as_deref(), problem);
        assert_eq!(taken.unknown_fields, unknown);
        assert_eq!(Instance::read(&object.value).err().as_deref(), problem);
    }

    #[test]
    fn what_a_newer_version_says_is_told() {
        let every: Value = serde_json::from_str(include_str!("children/tests/every-field.json")).unwrap();
        check(every["spec"].clone(), None, &[]);
        check(Value::Null, None, &[]);
        let newer =
            json!({ "admission": { "patience": 3 }, "later": {}, "watchedGvks": [{ "kind": "Pod", "depth": 1 }] });
        check(newer, None, &["admission.patience", "later", "watchedGvks[0].depth"]);
        // Labels have any name.
        check(json!({ "pods": { "labels": { "later": "x" } } }), None, &[]);
        let mode = "`spec.mode`: unknown variant `sharded`, expected `combined` or `split`";
        check(json!({ "mode": "sharded", "namespace": "a" }), Some(mode), &[]);
    }

    #[test]
    fn of_a_spec_that_cannot_be_read_the_namespace_is_known() {
        let of = |spec| Instance::try_from(&instance(spec)).unwrap().namespace().to_owned();
        assert_eq!(of(json!({ "mode": "sharded", "namespace": "policy" })), "policy");
        assert_eq!(of(json!({ "mode": "sharded" })), "portal-system");
    }
}

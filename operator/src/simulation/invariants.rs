//! What must be true after every request of an operator and after everything that anybody does: nobody is locked out, and nothing is touched
//! that is not ours.

pub(super) mod rights;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::ByteString;
use portal_core::webhook::SPARED_NAMESPACES;
use portal_crds::CertificateSource;
use serde_json::Value;

use super::{
    controllers::is_ready,
    trust,
    world::{Time, World},
};
use crate::{
    desired::{is_enforcing, mounted_secret},
    instance::Instance,
    names::{INSTANCE_LABEL, MANAGED_BY, account, dns_names},
    object::{Key, Kind, Object},
    probe::Answer,
    request::Request,
};

/// How many seconds API servers are behind with webhook configurations.
const BEHIND: [Time; 3] = [0, 2, 4];

impl World {
    /// Checks a request of the operator that is about to be done. `after` is what will be there.
    pub(super) fn check_request(&mut self, request: &Request, before: Option<&Arc<Object>>, after: Option<&Object>) {
        self.writes += 1;
        let key = request.key().clone();
        let word = match request {
            Request::Get(_) => "get",
            Request::Status(..) => "status",
            Request::Finalizers(..) => "finalizers",
            Request::Apply(_) => "apply",
            Request::Create(_) => "create",
            Request::Replace(_) => "replace",
            Request::Delete(..) => "delete",
        };
        self.tell(format!("operator: {word} {key}"));
        match key.kind {
            Kind::PortalInstance if matches!(request, Request::Status(..) | Request::Finalizers(..)) => return,
            Kind::PortalInstance | Kind::Namespace | Kind::Pod => {
                self.fail(&format!("{key} is not the operator's to write"))
            }
            _ => {}
        }
        if before.is_some_and(|before| !is_ours(before)) {
            self.fail(&format!("{key} is somebody else's"));
        }
        if let Request::Delete(_, uid) = request {
            if uid.is_empty() {
                self.fail(&format!("{key} is deleted whoever it is"));
            }
            self.check_deletion(&key);
        }
        if matches!(key.kind, Kind::ClusterRole | Kind::Role) {
            self.check_role(&key, before.map(|before| &**before), after);
        }
        if matches!(key.kind, Kind::ClusterRoleBinding | Kind::RoleBinding) {
            self.check_binding(&key, after);
        }
        let Some(after) = after else { return };
        for label in after.value["metadata"]["labels"].as_object().into_iter().flatten().map(|(label, _)| label) {
            let was_there = before.is_some_and(|before| before.label(label).is_some());
            let is_portals = ["app.kubernetes.io/", "portal.io/", "admissions.enforcer/"]
                .iter()
                .any(|start| label.starts_with(start));
            if !was_there && !is_portals {
                self.fail(&format!("{key} gets the label {label}"));
            }
        }
        if key.kind == Kind::ValidatingWebhookConfiguration {
            self.check_configuration(before.map(|before| &**before), after);
        }
    }

    /// What answers stays as long as anybody asks.
    fn check_deletion(&self, key: &Key) {
        for view in self.views().iter().filter(|view| !is_of(view, key).is_empty()) {
            let asked =
                view.value["webhooks"].as_array().into_iter().flatten().map(|entry| &entry["clientConfig"]["service"]);
            let is_asked = |service: &Value| {
                service["name"] == *key.name && service["namespace"] == key.namespace.clone().unwrap_or_default()
            };
            if key.kind == Kind::Service && asked.into_iter().any(is_asked) {
                self.fail(&format!("{key} is deleted while API servers ask it"));
            }
        }
        let users = self
            .of_kind(Kind::Deployment)
            .into_iter()
            .filter(|found| found.key.namespace == key.namespace && !found.is_terminating());
        for user in users {
            let spec = &user.value["spec"]["template"]["spec"];
            let mounts = |volume: &Value| volume["secret"]["secretName"] == *key.name;
            let is_used = match key.kind {
                Kind::ServiceAccount => spec["serviceAccountName"] == *key.name,
                Kind::Secret => spec["volumes"].as_array().into_iter().flatten().any(mounts),
                _ => false,
            };
            if is_used {
                self.fail(&format!("{key} is deleted while {} has it", user.key));
            }
        }
        let has_it =
            |pod: &Object| pod.key.namespace == key.namespace && pod.value["spec"]["serviceAccountName"] == *key.name;
        let is_wanted = |pod: &Object| {
            let instance = self.get(&Key::cluster(Kind::PortalInstance, pod.label(INSTANCE_LABEL).unwrap_or_default()));
            instance.is_some_and(|instance| !instance.is_terminating())
        };
        if key.kind == Kind::ServiceAccount
            && let Some(pod) = self.of_kind(Kind::Pod).into_iter().find(|pod| has_it(pod) && is_wanted(pod))
            // Who has not heard of a pod yet cannot know.
            && self.is_steady
        {
            self.fail(&format!("{key} is deleted while {} answers with its rights", pod.key));
        }
        if key.kind == Kind::Deployment {
            let without = |pod: &Object| {
                let owners = pod.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                !owners.into_iter().any(|owner| owner["name"] == *key.name && owner["kind"] == "Deployment")
            };
            if let Some(problem) = self.problem(without).filter(|_| !self.is_harmed) {
                self.fail(&format!("without {key} requests fail: {problem}"));
            }
        }
    }

    fn check_configuration(&self, before: Option<&Object>, after: &Object) {
        let name = after.label(INSTANCE_LABEL).unwrap_or_default().to_owned();
        let instances: Vec<Instance> =
            self.of_kind(Kind::PortalInstance).iter().filter_map(|object| Instance::try_from(&**object).ok()).collect();
        let was_enforcing = before.is_some_and(|before| is_enforcing(before, &name));
        if is_enforcing(after, &name)
            && !was_enforcing
            && !before.is_some_and(|before| self.answered.contains(before.uid()))
        {
            self.fail(&format!("{} enforces before the probe was answered", after.key));
        }
        let mut spared: BTreeSet<String> = SPARED_NAMESPACES.map(str::to_owned).into();
        spared.insert(self.operator.namespace.clone());
        let mut accounts: BTreeSet<String> = [account(&self.operator.namespace, &self.operator.account)].into();
        // Of others the operator may not know yet.
        if let Some(own) = instances.iter().find(|found| found.name == name) {
            spared.insert(own.namespace().to_owned());
            accounts.extend(own.engines().iter().map(|engine| account(own.namespace(), &engine.name)));
        }
        for entry in entries(after) {
            let entry_name = entry["name"].as_str().unwrap_or_default();
            let rules = entry["rules"].as_array().into_iter().flatten();
            for rule in rules {
                for part in ["apiGroups", "apiVersions", "operations", "resources"] {
                    if rule[part]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .any(|word| word.as_str().unwrap_or_default().contains('*'))
                    {
                        self.fail(&format!("{entry_name} asks for everything: {rule}"));
                    }
                }
            }
            if entry_name.starts_with("probe.") || entry_name.starts_with("own-rules.") {
                continue;
            }
            let selected = entry["namespaceSelector"]["matchExpressions"].as_array().into_iter().flatten();
            let is_left_out = |namespace: &String| {
                selected.clone().any(|one| {
                    let is_named = one["values"].as_array().into_iter().flatten().any(|value| value == namespace);
                    one["key"] == "kubernetes.io/metadata.name" && (one["operator"] == "NotIn") == is_named
                })
            };
            if let Some(namespace) = spared.iter().find(|namespace| !is_left_out(namespace)) {
                self.fail(&format!("{entry_name} does not leave {namespace} alone: {}", entry["namespaceSelector"]));
            }
            let conditions = entry["matchConditions"].to_string();
            if let Some(account) = accounts.iter().find(|account| !conditions.contains(&***account)) {
                self.fail(&format!("{entry_name} does not leave {account} alone: {conditions}"));
            }
        }
        let is_wider = !asked_for(after).is_subset(&before.map(asked_for).unwrap_or_default());
        if is_wider && !self.is_harmed && self.answers(after, |_| true).is_none() {
            self.fail(&format!("{} asks for more while no pod can answer", after.key));
        }
    }

    /// Checks that requests are answered, unless somebody else is to blame.
    pub(super) fn check(&self) {
        if let Some(problem) = self.problem(|_| true).filter(|_| !self.is_harmed) {
            self.fail(&problem);
        }
    }

    /// Whatever somebody else has done is mended by now, where the operator may mend it.
    pub(super) fn forgive(&mut self) {
        let instances = self.of_kind(Kind::PortalInstance);
        let is_left_alone = |object: &&Arc<Object>| {
            let instance = Instance::try_from(&***object).expect("an instance is one");
            // Who brings the certificate has to bring it again.
            let is_theirs = instance.spec.certificates.source == CertificateSource::Secret;
            let lacks_secret = is_theirs && self.get(&mounted_secret(&instance)).is_none();
            let is_granted = self.grants.contains(instance.namespace());
            instance.is_paused || instance.problem.is_some() || !is_granted || lacks_secret
        };
        let left_alone = instances.iter().filter(is_left_alone).map(|object| object.key.name.clone());
        let was_harmed = |name: &String| self.is_harmed || self.neglected.contains(name);
        self.neglected = left_alone.filter(was_harmed).collect();
        self.is_harmed = false;
    }

    /// The webhook configurations of all instances, as each API server has them.
    fn views(&self) -> Vec<Arc<Object>> {
        let keys: BTreeSet<&Key> = self.configurations.iter().map(|change| &change.key).collect();
        let views = keys.into_iter().flat_map(|key| BEHIND.map(|behind| self.past(key, self.elapsed - behind)));
        let mut views: Vec<Arc<Object>> = views.flatten().collect();
        views.dedup_by(|one, other| Arc::ptr_eq(one, other));
        views
    }

    /// Why requests fail, or would for some pods.
    pub(super) fn problem(&self, counts: impl Fn(&Object) -> bool) -> Option<String> {
        let is_looked_after = |view: &Arc<Object>| !self.neglected.contains(instance_of(view));
        for view in self.views().into_iter().filter(is_looked_after) {
            let is_closed = entries(&view).any(|entry| entry["failurePolicy"] == "Fail");
            if is_closed && self.answers(&view, &counts).is_none() {
                return Some(format!("{} refuses what nobody answers", view.key));
            }
            if let Some(pod) = self.asked(&view).into_iter().find(|pod| is_ready(pod) && !self.is_trusted(&view, pod)) {
                return Some(format!("an API server does not trust {}", pod.key));
            }
        }
        None
    }

    /// A pod that can answer what a configuration asks for.
    fn answers(&self, configuration: &Object, counts: impl Fn(&Object) -> bool) -> Option<Arc<Object>> {
        let pods = self.asked(configuration).into_iter();
        pods.filter(|pod| is_ready(pod) && counts(pod)).find(|pod| self.is_trusted(configuration, pod))
    }

    /// The pods behind the Service of a configuration.
    fn asked(&self, configuration: &Object) -> Vec<Arc<Object>> {
        let service =
            entries(configuration).next().map(|entry| entry["clientConfig"]["service"].clone()).unwrap_or_default();
        let (Some(namespace), Some(name)) = (service["namespace"].as_str(), service["name"].as_str()) else {
            return Vec::new();
        };
        let Some(service) = self.get(&Key::namespaced(Kind::Service, namespace, name)) else { return Vec::new() };
        let selector = service.value["spec"]["selector"].as_object().cloned().unwrap_or_default();
        let is_selected = |pod: &Arc<Object>| {
            pod.key.namespace.as_deref() == Some(namespace)
                && !selector.is_empty()
                && selector.iter().all(|(key, value)| pod.label(key) == value.as_str())
        };
        self.of_kind(Kind::Pod).into_iter().filter(is_selected).collect()
    }

    fn is_trusted(&self, configuration: &Object, pod: &Object) -> bool {
        let Some(shown) = self.pods.get(pod.uid()).and_then(|pod| pod.shown.as_deref()) else { return false };
        let name = &dns_names(instance_of(configuration), pod.key.namespace.as_deref().unwrap_or_default())[0];
        let bundles: BTreeSet<Vec<u8>> = entries(configuration).map(bundle_of).collect();
        bundles.iter().all(|bundle| trust::is_trusted(bundle, shown, name, self.now()))
    }

    /// Whether the API server reaches an engine by the probe's entry.
    pub(super) fn probe(&mut self, instance: &str) -> Answer {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &format!("portal-{instance}"));
        let behind = BEHIND[if self.is_steady { 0 } else { self.random.usize(..BEHIND.len()) }];
        let view = self.past(&key, self.elapsed - behind).ok_or("there is no entry for the probe")?;
        let probe = format!("probe.{instance}.portal.io");
        if !entries(&view).any(|entry| entry["name"] == *probe) {
            return Err("there is no entry for the probe".to_owned());
        }
        let pod = self.answers(&view, |_| true).ok_or("no pod answers")?;
        self.answered.insert(view.uid().to_owned());
        let image = pod.value["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        Ok(if image.ends_with(":v2") { OTHER_VERSION.to_owned() } else { self.operator.version.clone() })
    }
}

/// The version of engines whose image is called `v2`.
pub(super) const OTHER_VERSION: &str = "0.2.0";

/// Whether the operator may have made an object.
fn is_ours(object: &Object) -> bool {
    object.label(MANAGED_BY.0) == Some(MANAGED_BY.1) || object.key.name.starts_with("portal-")
}

/// The instance whose configuration this is. Its label may have been taken away.
fn instance_of(configuration: &Object) -> &str {
    configuration.key.name.trim_start_matches("portal-")
}

/// The entries of a configuration.
pub(super) fn entries(configuration: &Object) -> impl Iterator<Item = &Value> + Clone {
    configuration.value["webhooks"].as_array().into_iter().flatten()
}

fn is_of(configuration: &Object, key: &Key) -> Vec<Value> {
    let of_namespace =
        |entry: &&Value| entry["clientConfig"]["service"]["namespace"] == key.namespace.clone().unwrap_or_default();
    entries(configuration).filter(of_namespace).cloned().collect()
}

fn bundle_of(entry: &Value) -> Vec<u8> {
    serde_json::from_value::<ByteString>(entry["clientConfig"]["caBundle"].clone())
        .map(|bytes| bytes.0)
        .unwrap_or_default()
}

/// What a configuration refuses if nobody answers: resources and operations.
fn asked_for(configuration: &Object) -> BTreeSet<String> {
    let closed = entries(configuration).filter(|entry| entry["failurePolicy"] == "Fail");
    let rules = closed.flat_map(|entry| entry["rules"].as_array().into_iter().flatten());
    let words =
        |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(Value::to_string).collect() };
    let asked = rules.flat_map(|rule| {
        let (resources, operations) = (words(&rule["resources"]), words(&rule["operations"]));
        resources.into_iter().flat_map(move |resource| {
            let group = rule["apiGroups"].to_string();
            operations.clone().into_iter().map(move |operation| format!("{group} {resource} {operation}"))
        })
    });
    asked.collect()
}

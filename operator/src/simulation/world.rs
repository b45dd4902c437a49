//! A cluster without machines: objects with their past, and an API server that takes requests.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use portal_core::{
    permissions::{self, Place},
    requirements::{Permission, READ},
};
use serde_json::{Value, json};

use super::{
    apply,
    controllers::{Pod, ReplicaSet},
    rights::Ledger,
    rules::Written,
};
use crate::{
    instance::{Instance, OperatorSettings},
    needs::Rules,
    object::{Key, Kind, Object},
    permissions::Need,
    request::Request,
    rights::CEILING,
};

/// Seconds of a time that nobody sets.
pub(super) type Time = i64;

/// A cluster.
#[derive(Clone)]
pub(super) struct World {
    /// The time that goes by, and how far all clocks are from it.
    pub(super) elapsed: Time,
    pub(super) clocks_are_off: Time,
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    /// Everything that happened to objects, in order.
    pub(super) log: Vec<Change>,
    /// The same of webhook configurations alone.
    pub(super) configurations: Vec<Change>,
    /// The namespaces in which the operator may do something.
    pub(super) grants: BTreeSet<String>,
    /// What the operator may read, and so hand on: groups and plurals.
    pub(super) ceiling: BTreeSet<(&'static str, &'static str)>,
    /// The kinds of other operators that are served.
    pub(super) served: Vec<Kind>,
    /// What pods are beside their objects, by UID.
    pub(super) pods: BTreeMap<String, Pod>,
    /// The templates that a Deployment has pods of, by its UID.
    pub(super) replica_sets: BTreeMap<String, Vec<ReplicaSet>>,
    /// The webhook configurations that brought a probe to an engine, by UID.
    pub(super) answered: BTreeSet<String>,
    /// The rules as they were written, and compiled.
    pub(super) written: Written,
    pub(super) rules: Rc<Rules>,
    /// What the operator that acts believes each account to need because of rules, and to have needed a moment ago.
    pub(super) believed: BTreeMap<String, Believed>,
    /// What each account has and needs, if that is followed from step to step.
    pub(super) ledger: Option<Ledger>,
    /// Whether somebody other than Portal has done something by which requests may fail.
    pub(super) is_harmed: bool,
    /// Instances that were harmed and that the operator cannot mend: they are paused, it has no rights in their namespace, or what somebody
    /// brought is gone.
    pub(super) neglected: BTreeSet<String>,
    /// Instances that were let go while the operator might do nothing in their namespace: what is there stays.
    pub(super) abandoned: BTreeSet<String>,
    /// How many writes the operator has done.
    pub(super) writes: usize,
    /// Delays are as long as they can be, or any.
    pub(super) is_steady: bool,
    pub(super) random: Rng,
    /// What happened, for whoever reads why a test failed.
    pub(super) story: Vec<String>,
    pub(super) operator: OperatorSettings,
    counter: u64,
}

/// What an operator believes rules to need.
#[derive(Clone)]
pub(super) struct Believed {
    /// Of this version of the instance.
    pub(super) generation: i64,
    pub(super) needed: BTreeSet<Need>,
    pub(super) lately: BTreeSet<Need>,
}

/// Something that happened to an object.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) at: Time,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Object>>,
    pub(super) after: Option<Arc<Object>>,
}

/// What the API server says to a request that it does not do: a code, and a reason.
pub(super) type Refusal = (u16, String);

/// Where all clocks begin.
const BEGINNING: i64 = 1_800_000_000;

pub(super) fn operator_settings() -> OperatorSettings {
    OperatorSettings {
        namespace: "portal-operator".to_owned(),
        account: "portal-operator".to_owned(),
        image: "registry.example/portal:v1".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

impl World {
    /// A cluster with the operator's namespace, and one that engines may be in.
    pub(super) fn new(seed: u64) -> World {
        let mut world = World {
            elapsed: 0,
            clocks_are_off: 0,
            objects: BTreeMap::new(),
            log: Vec::new(),
            configurations: Vec::new(),
            grants: BTreeSet::new(),
            ceiling: CEILING
                .iter()
                .flat_map(|(group, plurals)| plurals.iter().map(|plural| (*group, *plural)))
                .collect(),
            served: vec![Kind::ServiceMonitor, Kind::PrometheusRule, Kind::Certificate],
            pods: BTreeMap::new(),
            replica_sets: BTreeMap::new(),
            answered: BTreeSet::new(),
            written: Written::default(),
            rules: Rc::default(),
            believed: BTreeMap::new(),
            ledger: None,
            is_harmed: false,
            neglected: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            writes: 0,
            is_steady: true,
            random: Rng::with_seed(seed),
            story: Vec::new(),
            operator: operator_settings(),
            counter: 0,
        };
        for name in ["portal-operator", "portal-system", "shop"] {
            world.make(Kind::Namespace, json!({ "metadata": { "name": name } }));
        }
        world.grants.insert("portal-system".to_owned());
        world.write_rules();
        world
    }

    /// What every clock shows.
    pub(super) fn now(&self) -> Timestamp {
        self.clock(self.elapsed)
    }

    pub(super) fn clock(&self, elapsed: Time) -> Timestamp {
        Timestamp::from_second(BEGINNING + elapsed + self.clocks_are_off).unwrap()
    }

    pub(super) fn tell(&mut self, what: impl Into<String>) {
        let line = format!("{:>6} {}", self.elapsed, what.into());
        if std::env::var_os("PORTAL_STORY").is_some() {
            eprintln!("{line}");
        }
        self.story.push(line);
    }

    /// Ends the test, and tells what happened before.
    pub(super) fn fail(&self, what: &str) -> ! {
        let last = self.story.len().saturating_sub(300000);
        panic!("{what}\n{}", self.story[last..].join("\n"));
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.get(key).cloned()
    }

    pub(super) fn of_kind(&self, kind: Kind) -> Vec<Arc<Object>> {
        self.objects.values().filter(|object| object.key.kind == kind).cloned().collect()
    }

    /// An object as it was some time ago. None if it was not there.
    pub(super) fn past(&self, key: &Key, at: Time) -> Option<Arc<Object>> {
        let log = if key.kind == Kind::ValidatingWebhookConfiguration { &self.configurations } else { &self.log };
        let last = log.iter().rev().find(|change| change.key == *key && change.at <= at);
        last.and_then(|change| change.after.clone())
    }

    /// A delay of up to some seconds: a part of it if all is steady, and anything otherwise.
    pub(super) fn delay(&mut self, most: Time) -> Time {
        if self.is_steady { most / 3 } else { self.random.i64(0..=most) }
    }

    /// Somebody who may do everything makes an object, or puts it in the place of another one.
    pub(super) fn make(&mut self, kind: Kind, value: Value) -> Arc<Object> {
        let object = Object::from_value(kind, value);
        let found = self.get(&object.key);
        self.store(found, object)
    }

    /// Somebody who may do everything changes an object. What they change is not the operator's any more.
    pub(super) fn edit(&mut self, key: &Key, change: impl FnOnce(&mut Value)) -> bool {
        let Some(found) = self.get(key) else { return false };
        let mut object = (*found).clone();
        change(&mut object.value);
        let left = apply::left_of("", &apply::owned(&found.value), &found.value, &object.value);
        if !found.value["metadata"]["managedFields"].is_null() {
            apply::set_owned(&mut object.value, left);
        }
        self.store(Some(found), object);
        true
    }

    /// Somebody who may do everything deletes an object.
    pub(super) fn delete(&mut self, key: &Key, is_foreground: bool) {
        let Some(found) = self.get(key) else { return };
        let mut object = (*found).clone();
        let metadata = &mut object.value["metadata"];
        if is_foreground {
            let finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
            if !finalizers.contains(&json!("foregroundDeletion")) {
                metadata["finalizers"] = finalizers.into_iter().chain([json!("foregroundDeletion")]).collect();
            }
        }
        if key.kind == Kind::Namespace || key.kind == Kind::Pod {
            // Their controllers let them go.
            let finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
            if !finalizers.contains(&json!("kubernetes")) {
                metadata["finalizers"] = finalizers.into_iter().chain([json!("kubernetes")]).collect();
            }
        }
        if metadata["deletionTimestamp"].is_null() {
            metadata["deletionTimestamp"] = self.now().to_string().into();
        }
        self.store(Some(found), object);
    }

    /// Removes a finalizer, after which the object may be gone.
    pub(super) fn let_go(&mut self, key: &Key, finalizer: &str) {
        self.edit(key, |value| {
            if let Some(finalizers) = value["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|name| name != finalizer);
            }
        });
    }

    /// Stores an object in the place of another one, or of none. It is gone if it was deleted and nothing keeps it.
    fn store(&mut self, before: Option<Arc<Object>>, mut object: Object) -> Arc<Object> {
        object.value = tidied(std::mem::take(&mut object.value));
        apply::fill_in(object.key.kind, &mut object.value);
        let now = self.now().to_string();
        let metadata = &mut object.value["metadata"];
        match &before {
            Some(before) => {
                for part in ["uid", "creationTimestamp", "resourceVersion", "generation"] {
                    metadata[part] = before.value["metadata"][part].clone();
                }
                if **before == object {
                    return Arc::clone(before);
                }
                let says = |value: &Value| {
                    let mut fields = value.as_object().cloned().unwrap_or_default();
                    fields.retain(|name, _| name != "metadata" && name != "status");
                    (fields, value["metadata"]["deletionTimestamp"].clone())
                };
                if says(&before.value) != says(&object.value) {
                    let generation = before.value["metadata"]["generation"].as_i64().unwrap_or(1);
                    object.value["metadata"]["generation"] = json!(generation + 1);
                }
            }
            None => {
                self.counter += 1;
                metadata["uid"] = format!("uid-{}", self.counter).into();
                metadata["creationTimestamp"] = now.into();
                metadata["generation"] = json!(1);
            }
        }
        self.counter += 1;
        object.value["metadata"]["resourceVersion"] = self.counter.to_string().into();
        let key = object.key.clone();
        let finalizers = object.value["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        let is_gone = object.is_terminating() && finalizers == 0;
        let object = Arc::new(object);
        let after = (!is_gone).then(|| Arc::clone(&object));
        match &after {
            Some(object) => drop(self.objects.insert(key.clone(), Arc::clone(object))),
            None => drop(self.objects.remove(&key)),
        }
        let change = Change { at: self.elapsed, key, before: before.or(Some(Arc::clone(&object))), after };
        if change.key.kind == Kind::ValidatingWebhookConfiguration {
            self.configurations.push(change.clone());
        }
        self.log.push(change);
        object
    }

    /// Takes a request of the operator.
    pub(super) fn request(&mut self, request: &Request) -> Result<Option<Object>, Refusal> {
        let key = request.key().clone();
        let found = self.get(&key);
        let refuse = |code: u16, why: &str| Err((code, format!("{key}: {why}")));
        if let Some(namespace) = &key.namespace {
            let is_own = *namespace == self.operator.namespace && key.kind == Kind::Secret;
            let is_role = matches!(key.kind, Kind::Role | Kind::RoleBinding);
            if !is_own && !is_role && !self.grants.contains(namespace) {
                return refuse(403, "the operator may not do this");
            }
            let place = self.get(&Key::cluster(Kind::Namespace, namespace));
            match place {
                None => return refuse(404, "no such namespace"),
                Some(place)
                    if place.is_terminating()
                        && found.is_none()
                        && !matches!(request, Request::Delete(..) | Request::Get(_)) =>
                {
                    return refuse(403, "the namespace is being terminated");
                }
                Some(_) => {}
            }
        }
        if !self.served.contains(&key.kind)
            && [Kind::ServiceMonitor, Kind::PrometheusRule, Kind::Certificate].contains(&key.kind)
        {
            return refuse(404, "no such kind");
        }
        let result = match (request, &found) {
            (Request::Get(_), Some(found)) => return Ok(Some((**found).clone())),
            (
                Request::Get(_)
                | Request::Status(..)
                | Request::Finalizers(..)
                | Request::Replace(_)
                | Request::Delete(..),
                None,
            ) => {
                return refuse(404, "not found");
            }
            (Request::Status(_, patch) | Request::Finalizers(_, patch, _), Some(found)) => {
                if patch["metadata"]["resourceVersion"] != found.value["metadata"]["resourceVersion"] {
                    return refuse(409, "the object has been modified");
                }
                let mut object = (**found).clone();
                merge_patch(&mut object.value, patch);
                object
            }
            (Request::Apply(wanted), found) => {
                let before = found.as_ref().map_or(json!({ "metadata": {} }), |found| found.value.clone());
                Object { key: key.clone(), value: apply::apply(&before, &tidied(wanted.value.clone())) }
            }
            (Request::Create(_), Some(_)) => return refuse(409, "already exists"),
            (Request::Create(wanted), None) => wanted.clone(),
            (Request::Replace(wanted), Some(found)) => {
                if wanted.resource_version() != found.resource_version() || wanted.uid() != found.uid() {
                    return refuse(409, "the object has been modified");
                }
                let mut object = wanted.clone();
                for part in ["deletionTimestamp", "finalizers"] {
                    if !found.value["metadata"][part].is_null() {
                        object.value["metadata"][part] = found.value["metadata"][part].clone();
                    }
                }
                if !found.value["status"].is_null() {
                    object.value["status"] = found.value["status"].clone();
                }
                object
            }
            (Request::Delete(_, uid), Some(found)) => {
                if *uid != found.uid() {
                    return refuse(409, "the UID is another one");
                }
                self.check_request(request, Some(found), None);
                self.delete(&key, false);
                return Ok(None);
            }
        };
        if let Some(found) = &found
            && let Some(field) = changed_for_ever(found, &result)
        {
            return refuse(422, &format!("{field} cannot be changed"));
        }
        if let Some(right) = self.escalates(&result) {
            return refuse(403, &format!("attempting to grant RBAC permissions not currently held: {right}"));
        }
        let mut result = result;
        result.value = tidied(result.value);
        apply::fill_in(key.kind, &mut result.value);
        self.check_request(request, found.as_ref(), Some(&result));
        if let Request::Finalizers(_, _, false) = request {
            let instance = Instance::try_from(&result).expect("only instances have it");
            if !self.grants.contains(instance.namespace()) {
                self.abandoned.insert(instance.name);
            }
        }
        Ok(Some((*self.store(found, result)).clone()))
    }

    /// Whether the operator may do something itself because of its ceiling.
    pub(super) fn holds(&self, (permission, _): &Need) -> bool {
        let is_read = READ.contains(&permission.verb);
        is_read
            && self
                .ceiling
                .iter()
                .any(|(group, plural)| (*group, *plural) == (&*permission.group, &*permission.resource))
    }

    /// What a role allows that the operator may not do itself.
    fn escalates(&self, object: &Object) -> Option<String> {
        let place = object.key.namespace.as_ref();
        let is_granted = place.is_some_and(|namespace| self.grants.contains(namespace));
        let may_hand_on = |need: &Need| {
            self.holds(need)
                || permissions::all().any(|base| {
                    (base.group, base.resource) == (&*need.0.group, &*need.0.resource)
                        && base.verbs.contains(&need.0.verb)
                        && (base.place != Place::OwnNamespace || is_granted)
                })
        };
        let needs = rights_of(object);
        needs.into_iter().find(|need| !may_hand_on(need)).map(|need| format!("{need:?}"))
    }

    /// Time goes by, and everybody but the operator does what they have to do.
    pub(super) fn advance(&mut self, seconds: Time) {
        self.elapsed += seconds;
        for _ in 0..20 {
            let before = self.log.len();
            self.act();
            if self.log.len() == before {
                break;
            }
        }
        self.check();
        self.follow_rights();
    }

    /// All clocks are set.
    pub(super) fn set_clocks(&mut self, by: SignedDuration) {
        self.clocks_are_off += by.as_secs();
    }
}

/// What a role allows. Nothing of what is no role.
pub(super) fn rights_of(role: &Object) -> BTreeSet<Need> {
    const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role.value["rules"].as_array().into_iter().flatten() {
        for (group, resource) in texts(&rule["apiGroups"]).iter().zip(&texts(&rule["resources"])) {
            for verb in texts(&rule["verbs"]) {
                let verb = VERBS.into_iter().find(|known| *known == verb).unwrap_or("*");
                let permission = Permission { group: group.clone(), resource: resource.clone(), verb };
                rights.insert((permission, role.key.namespace.clone()));
            }
        }
    }
    rights
}

/// The field that cannot be changed, if it was.
fn changed_for_ever(before: &Object, after: &Object) -> Option<&'static str> {
    let (path, name) = match before.key.kind {
        Kind::Deployment => ("/spec/selector", "spec.selector"),
        Kind::Service => ("/spec/clusterIP", "spec.clusterIP"),
        Kind::RoleBinding | Kind::ClusterRoleBinding => ("/roleRef", "roleRef"),
        Kind::Secret => ("/type", "type"),
        _ => return None,
    };
    (before.value.pointer(path) != after.value.pointer(path)).then_some(name)
}

/// A value without what the API server stores nothing of.
fn tidied(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_stored = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
            fields
                .into_iter()
                .map(|(name, value)| (name, tidied(value)))
                .filter(|(_, value)| is_stored(value))
                .collect()
        }
        Value::Array(elements) => elements.into_iter().map(tidied).collect(),
        value => value,
    }
}

fn merge_patch(value: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, patch) in fields {
        match patch {
            Value::Null => drop(value.as_object_mut().expect("an object").remove(name)),
            patch => merge_patch(&mut value[name], patch),
        }
    }
}

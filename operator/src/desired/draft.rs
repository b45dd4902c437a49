//! A plan in the making.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portal_crds::PortalInstanceStatus;
use serde_json::{Value, json};

use crate::{
    compare::{covers, is_as_wanted},
    instance::Instance,
    names::configuration_name,
    object::{Key, Kind, Object},
    observed::{Failure, NOT_ALLOWED, Observed},
    plan::{Plan, Step},
};

/// A plan in the making.
pub(super) struct Draft<'a> {
    observed: &'a Observed,
    steps: Vec<Step>,
    moments: Vec<Timestamp>,
    wanted: BTreeSet<Key>,
    /// Objects that somebody else changes again and again.
    pub(super) contested: Vec<Key>,
}

/// Who the children of an instance belong to.
///
/// The Namespace is an owner too: a child goes with its owners when *all* of them are gone. Without it, deleting the instance with
/// `--cascade=foreground` would take the engine away at once, while the webhook configuration still asks for its answers.
pub(super) struct Owners(Value);

/// A plan is made anew after this time, whatever happens.
const NOW_AND_THEN: SignedDuration = SignedDuration::from_mins(5);

/// A step that asks changes nothing that a watch would tell of: what was answered is planned for when it is there.
const ONCE_ANSWERED: SignedDuration = SignedDuration::from_millis(100);

impl Owners {
    /// Nothing if the namespace is not there.
    pub(super) fn of(instance: &Instance, observed: &Observed) -> Option<Owners> {
        let namespace = namespace_owner(instance, observed)?;
        Some(Owners(json!([instance.owner(), namespace])))
    }

    pub(super) fn own(&self, mut object: Object) -> Object {
        object.value["metadata"]["ownerReferences"] = self.0.clone();
        object
    }
}

/// The engine's Namespace as an owner.
pub(super) fn namespace_owner(instance: &Instance, observed: &Observed) -> Option<Value> {
    let namespace = observed.get(&Key::cluster(Kind::Namespace, instance.namespace()))?;
    Some(json!({ "apiVersion": "v1", "kind": "Namespace", "name": namespace.key.name, "uid": namespace.uid() }))
}

impl<'a> Draft<'a> {
    pub(super) fn new(observed: &'a Observed) -> Draft<'a> {
        let (steps, moments, wanted, contested) = Default::default();
        Draft { observed, steps, moments, wanted, contested }
    }

    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Says when to plan again.
    pub(super) fn look_again(&mut self, moment: Timestamp) {
        self.moments.push(moment);
    }

    /// Says that an object stays if it is there.
    pub(super) fn want(&mut self, key: Key) {
        self.wanted.insert(key);
    }

    pub(super) fn want_all(&mut self, objects: &[Object]) {
        self.wanted.extend(objects.iter().map(|object| object.key.clone()));
    }

    /// Whether a step writes an object of a kind.
    pub(super) fn changes(&self, kind: Kind) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Apply(object) | Step::Create(object) | Step::Replace(object) => object.key.kind == kind,
            _ => false,
        })
    }

    pub(super) fn is_wanted(&self, key: &Key) -> bool {
        self.wanted.contains(key)
    }

    /// Whether something is left to do.
    pub(super) fn is_pending(&self) -> bool {
        self.steps.iter().any(Step::is_write)
    }

    pub(super) fn ensure_all(&mut self, wanted: Vec<Object>) {
        for object in wanted {
            self.ensure(object);
        }
    }

    /// Sees to it that an object is as it should be.
    pub(super) fn ensure(&mut self, wanted: Object) {
        self.want(wanted.key.clone());
        let observed = self.observed;
        let Some(found) = observed.get(&wanted.key) else {
            let step =
                if is_replaced(wanted.key.kind) { Step::Create(wanted.clone()) } else { Step::Apply(wanted.clone()) };
            return self.repair(&wanted, step);
        };
        // What is being deleted is made anew when it is gone, which is an event.
        if found.is_terminating() {
            return;
        }
        if is_replaced(wanted.key.kind) {
            self.replace(found, wanted);
        } else if !is_as_wanted(found, &wanted, observed.memory.forms.get(&wanted.key)) {
            self.repair(&wanted, Step::Apply(wanted.clone()));
        }
    }

    /// Replaces an object if it is not exactly what is wanted.
    fn replace(&mut self, found: &Object, wanted: Object) {
        if is_exactly(found, &wanted) {
            return;
        }
        let is_bound_elsewhere =
            found.value.get("roleRef").is_some_and(|found| !covers(found, &wanted.value["roleRef"]));
        let step = match is_bound_elsewhere {
            // It cannot be changed.
            true => Step::Delete(wanted.key.clone(), found.uid().to_owned()),
            false => Step::Replace(over(found, wanted.clone())),
        };
        self.repair(&wanted, step);
    }

    /// Adds a step that sets an object right, unless somebody undoes it again and again.
    fn repair(&mut self, wanted: &Object, step: Step) {
        if self.observed.is_fought_over(&wanted.key) {
            self.contested.push(wanted.key.clone());
        }
        match self.observed.may_repair(wanted) {
            Ok(()) => self.push(step),
            Err(moment) => self.look_again(moment),
        }
    }

    /// Sees to it that it is known whether the webhook configuration is gone. Returns for how long it is.
    pub(super) fn look_for_configuration(&mut self, instance: &Instance) -> Option<Duration> {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
        let since = self.observed.memory.gone_since;
        if since.is_none() && self.observed.get(&key).is_none() {
            self.push(Step::Look(key));
        }
        since.map(|since| self.observed.uptime.saturating_sub(since))
    }

    /// Deletes the webhook configuration, if there is one.
    pub(super) fn delete_configuration(&mut self, instance: &Instance) {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
        if let Some(found) = self.observed.get(&key).filter(|found| !found.is_terminating()) {
            self.push(Step::Delete(key, found.uid().to_owned()));
        }
    }

    /// The plan. The status comes first: what is true now is told even if the next step fails.
    pub(super) fn finish(self, instance: &Instance, status: Option<PortalInstanceStatus>) -> Plan {
        let status = status.filter(|status| serde_json::to_value(status).is_ok_and(|status| status != instance.status));
        let mut plan = self.finish_shared();
        if let Some(status) = status {
            plan.steps.insert(0, Step::Status(Box::new(status)));
        }
        plan
    }

    /// A plan for what belongs to no instance. The step that has failed waits for its time, and so does what comes after it.
    pub(super) fn finish_shared(mut self) -> Plan {
        let now = self.observed.now;
        let mut is_held_up = false;
        if let Some(failure) = self.failure().filter(|failure| failure.is_waiting(now))
            && let Some(place) = self.steps.iter().position(|step| step.subject() == failure.subject)
        {
            self.moments.push(failure.until);
            // Of a right that the API server does not let us hand on nothing else depends.
            match self.steps[place].grants() && failure.reason == NOT_ALLOWED {
                true => drop(self.steps.remove(place)),
                false => self.steps.truncate(place),
            }
            is_held_up = true;
        }
        if self.steps.iter().any(|step| !step.is_write()) {
            self.moments.push(now + ONCE_ANSWERED);
        }
        self.moments.push(now + NOW_AND_THEN);
        Plan { steps: self.steps, look_again: self.moments.into_iter().min(), is_held_up }
    }

    /// The step that has failed, if it has to be done still.
    pub(super) fn failure(&self) -> Option<&'a Failure> {
        let failure = self.observed.memory.failure.as_ref();
        failure.filter(|failure| self.steps.iter().any(|step| step.subject() == failure.subject))
    }
}

/// Whether objects of a kind are compared as a whole. What somebody else added to a role or to a webhook configuration must go, and
/// server-side apply would keep it.
fn is_replaced(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ClusterRole
            | Kind::ClusterRoleBinding
            | Kind::Role
            | Kind::RoleBinding
            | Kind::ValidatingWebhookConfiguration
    )
}

/// Whether an object is what is wanted and nothing else. Labels and annotations of others may stay, and what is null is not there.
fn is_exactly(found: &Object, wanted: &Object) -> bool {
    let is_of_body = |name: &str| !["metadata", "status", "apiVersion", "kind"].contains(&name);
    let has_all_of = |one: &Object, other: &Object| {
        let mut fields = other.value.as_object().into_iter().flatten();
        fields.all(|(name, value)| !is_of_body(name) || value.is_null() || one.value.get(name) == Some(value))
    };
    covers(&found.value["metadata"], &wanted.value["metadata"])
        && has_all_of(found, wanted)
        && has_all_of(wanted, found)
}

/// What is wanted, in the place of the version that was found. Labels and annotations of others stay.
fn over(found: &Object, mut wanted: Object) -> Object {
    let metadata = &mut wanted.value["metadata"];
    for part in ["labels", "annotations"] {
        let mut kept = found.value["metadata"][part].as_object().cloned().unwrap_or_default();
        kept.extend(metadata[part].as_object().cloned().unwrap_or_default());
        if !kept.is_empty() {
            metadata[part] = Value::Object(kept);
        }
    }
    for part in ["uid", "resourceVersion"] {
        metadata[part] = found.value["metadata"][part].clone();
    }
    wanted
}

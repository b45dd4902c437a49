//! The end of an instance: first what asks for answers, then, when nobody asks any more, what answers.

use super::{PRUNED, certificates::authority_key, draft::Draft, is_child};
use crate::{
    claims::claims,
    instance::{Instance, OperatorSettings},
    names::configuration_name,
    object::{Key, Kind, Object},
    observed::{Failure, LINGER, NOT_ALLOWED, Observed},
    plan::{Plan, Step},
    view::OPTIONAL,
};

pub(super) fn plan(instance: &Instance, observed: &Observed, operator: &OperatorSettings) -> Plan {
    let mut draft = Draft::new(observed);
    if !instance.is_kept {
        // Somebody else keeps it, or nobody does.
        return draft.finish(instance, None);
    }
    let configuration = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
    if observed.get(&configuration).is_some() {
        draft.delete_configuration(instance);
        return draft.finish(instance, None);
    }
    let is_engine_gone = observed.get(&Key::cluster(Kind::Namespace, instance.namespace())).is_none();
    let Some(gone_for) = draft.look_for_configuration(instance) else {
        return draft.finish(instance, None);
    };
    if gone_for < LINGER && !is_engine_gone {
        draft.look_again(observed.now + (LINGER - gone_for));
        return draft.finish(instance, None);
    }
    // Without rights in the namespace nothing can be deleted there, and the instance must not wait for ever. A watch that was allowed
    // before goes on for a while.
    let is_forbidden = |failure: &Failure| failure.reason == NOT_ALLOWED && failure.times > 2;
    let is_refused = observed.refused.is_some() || observed.memory.failure.as_ref().is_some_and(is_forbidden);
    let is_out_of_reach = |key: &Key| is_refused && key.namespace.as_deref() == Some(instance.namespace());
    let mut own = claims(instance, operator);
    own.insert(authority_key(instance, operator));
    let is_left_of =
        |object: &Object| is_child(object, instance) || (own.contains(&object.key) && is_owned(object, instance));
    let mut is_left = false;
    for kind in PRUNED {
        for object in observed.of_kind(kind).filter(|object| is_left_of(object) && !is_out_of_reach(&object.key)) {
            is_left = true;
            if !object.is_terminating() {
                draft.push(Step::Delete(object.key.clone(), object.uid().to_owned()));
            }
        }
    }
    // No watch shows what somebody took our label from, and whoever is gone asks for it no more.
    let is_known = |key: &Key| observed.get(key).is_some() || observed.memory.missing.contains(key);
    let is_served = |key: &Key| !OPTIONAL.contains(&key.kind) || observed.served.contains(&key.kind);
    let unseen = own.iter().filter(|key| !is_known(key) && is_served(key) && !is_out_of_reach(key));
    let unseen: Vec<Step> = unseen.cloned().map(Step::Look).collect();
    if !is_left && unseen.is_empty() {
        draft.push(Step::Keep(false));
    }
    unseen.into_iter().for_each(|look| draft.push(look));
    draft.finish(instance, None)
}

/// Whether an object says that it belongs to an instance.
fn is_owned(object: &Object, instance: &Instance) -> bool {
    let owners = object.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.into_iter().any(|owner| owner["uid"] == instance.uid.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;
    use crate::{children::tests::operator, observed::Memory};

    #[test]
    fn that_the_configuration_is_gone_is_taken_up_although_no_watch_tells() {
        let object = Object::from_value(
            Kind::PortalInstance,
            json!({
                "metadata": {
                    "name": "default", "uid": "1", "generation": 1, "finalizers": [crate::names::FINALIZER],
                    "deletionTimestamp": "2027-01-01T00:00:00Z",
                },
                "spec": {},
            }),
        );
        let namespace =
            Object::from_value(Kind::Namespace, json!({ "metadata": { "name": "portal-system", "uid": "n" } }));
        let observed = Observed {
            now: "2027-01-01T00:00:01Z".parse().unwrap(),
            uptime: Duration::ZERO,
            objects: BTreeMap::from([(namespace.key.clone(), namespace.into())]),
            others: Vec::new(),
            refused: None,
            served: Vec::new(),
            shown: BTreeMap::new(),
            held: BTreeMap::new(),
            is_ceiling_unbounded: false,
            memory: Memory::default(),
        };
        let plan = plan(&Instance::try_from(&object).unwrap(), &observed, &operator());
        assert!(matches!(plan.steps[..], [Step::Look(_)]), "{:?}", plan.steps);
        assert!(plan.look_again.is_some_and(|moment| moment < observed.now + SignedDuration::from_secs(1)));
    }
}

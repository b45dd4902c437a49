//! The end of an instance: first what asks for answers, then, when nobody asks any more, what answers.

use super::{LINGER, PRUNED, draft::Draft, is_child};
use crate::{
    instance::{Instance, OperatorSettings},
    names::configuration_name,
    object::{Key, Kind},
    observed::Observed,
    plan::{Plan, Step},
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
    let gone_for = observed.memory.gone_since.map(|since| observed.now.duration_since(since)).unwrap_or_default();
    if gone_for < LINGER && !is_engine_gone {
        draft.look_again(observed.now + (LINGER - gone_for));
        return draft.finish(instance, None);
    }
    let mut is_left = false;
    for kind in PRUNED {
        for object in observed.of_kind(kind).filter(|object| is_child(object, instance)) {
            // Without rights in the namespace nothing can be deleted there, and the instance must not wait for ever.
            let is_out_of_reach =
                observed.refused.is_some() && object.key.namespace.as_deref() != Some(&operator.namespace);
            if is_out_of_reach && object.key.namespace.is_some() {
                continue;
            }
            is_left = true;
            if !object.is_terminating() {
                draft.push(Step::Delete(object.key.clone(), object.uid().to_owned()));
            }
        }
    }
    if !is_left {
        draft.push(Step::Keep(false));
    }
    draft.finish(instance, None)
}

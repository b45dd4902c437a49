//! The names that the children of an instance have, and which other instance has them already.
//!
//! Children are called after their instance, and some have a word behind its name: `portal-a-admission` is the Deployment of the layer
//! admission of `a`, or the only one of an instance that is called `a-admission`. The definition refuses such names; an instance may be from
//! before it did. The Secret that cert-manager writes is called as the instance says, and two may say the same. Roles of the whole cluster meet
//! also if the engines are in different namespaces. Two that write one object would undo each other for ever.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use portal_crds::CertificateSource;

use crate::{
    children::children,
    desired::mounted_secret,
    instance::{Instance, OperatorSettings},
    names::INSTANCE_LABEL,
    object::{Key, Kind, Object},
    observed::Observed,
    permissions::Permissions,
};

/// An instance that has what another one needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Taken {
    /// The instance that has it.
    pub by: String,
    /// The object of which there would have to be two, or the first of them.
    pub key: Key,
}

/// The instance that has what this one needs, if there is one. Who has one of the objects keeps it: a change of one instance takes nothing away
/// from another that runs. If neither has any, or both have some, they are the older one's.
pub fn taken(instance: &Instance, observed: &Observed, operator: &OperatorSettings) -> Option<Taken> {
    let may_meet = |other: &&Instance| {
        let begins = |one: &Instance, other: &Instance| one.name.starts_with(&format!("{}-", other.name));
        other.namespace() == instance.namespace() || begins(other, instance) || begins(instance, other)
    };
    let mut others = observed.others.iter().filter(may_meet).peekable();
    others.peek()?;
    let own = claims(instance, operator);
    let of = |other: &Instance| {
        let shared: Vec<Key> = claims(other, operator).intersection(&own).cloned().collect();
        let has = |name: &str| {
            let mut objects = observed.objects.values().filter(|object| object.label(INSTANCE_LABEL) == Some(name));
            objects.any(|object| shared.iter().any(|key| *key == object.key || is_issued(key, object)))
        };
        let is_theirs = match (has(&other.name), has(&instance.name)) {
            (true, false) => true,
            (false, true) => false,
            // One that ends makes nothing any more.
            (false, false) if other.is_deleted => false,
            (true, true) | (false, false) => other.age() < instance.age(),
        };
        let key = shared.into_iter().next().filter(|_| is_theirs)?;
        Some(Taken { by: other.name.clone(), key })
    };
    others.find_map(of)
}

/// Whether cert-manager writes a Secret because of an object.
fn is_issued(secret: &Key, object: &Object) -> bool {
    object.key.kind == Kind::Certificate
        && secret.kind == Kind::Secret
        && secret.namespace == object.key.namespace
        && object.value["spec"]["secretName"] == secret.name.as_str()
}

/// The objects that an instance may make where another one may want the same.
pub fn claims(instance: &Instance, operator: &OperatorSettings) -> BTreeSet<Key> {
    let children = children(instance, &Permissions::default(), operator);
    let made = children.iter().map(|object| object.key.clone());
    // One that somebody brings may serve several instances.
    let is_written = instance.spec.certificates.source != CertificateSource::Secret;
    made.chain(is_written.then(|| mounted_secret(instance))).collect()
}

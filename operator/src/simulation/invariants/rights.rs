//! What must be true of rights: each account has what its layer needs within the bounds, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use portal_core::permissions::{self, BASE, REPORTS};
use portal_crds::{GrantedResource, RbacMode};

use super::super::world::{World, rights_of};
use crate::{
    instance::{Engine, Instance},
    names::{LAYERS, engine},
    object::{Key, Kind, Object},
    permissions::{Need, has_everybody},
};

impl World {
    /// A role follows the rules: it is given nothing that the layer of its account does not need, and what that needs is not taken away while
    /// it may be given.
    pub(super) fn check_role(&self, key: &Key, before: Option<&Object>, after: Option<&Object>) {
        let Some((instance, engine)) = self.engine_of(&key.name) else { return };
        let Some(believed) = self.believed.get(&key.name) else { return };
        let rights = |role: Option<&Object>| role.map(rights_of).unwrap_or_default();
        let surplus = rights(after).into_iter().find(|right| {
            !is_base(&engine, right) && !believed.needed.contains(right) && !believed.lately.contains(right)
        });
        if let Some(surplus) = surplus {
            self.fail(&format!("{key} is given {surplus:?}, which no rule needs"));
        }
        // Of pods that go an operator may not hear in time.
        if instance.engines().iter().all(|engine| engine.name != key.name) {
            return;
        }
        let others = self.roles_of(&key.name).filter(|role| role.key != *key).flat_map(|role| rights_of(role));
        let others: BTreeSet<Need> = others.collect();
        let has = |rights: &BTreeSet<Need>, need: &Need| {
            let everywhere = (need.0.clone(), None);
            [need, &everywhere].into_iter().any(|need| rights.contains(need) || others.contains(need))
        };
        let (before, after) = (rights(before), rights(after));
        // Of a rule that has come or gone since, the operator does not know yet.
        let needed = self.needed(&instance, &engine).into_iter().filter(|need| believed.needed.contains(need));
        if let Some(lost) = needed.into_iter().find(|need| has(&before, need) && !has(&after, need)) {
            self.fail(&format!("{key} loses {lost:?}, which a rule needs"));
        }
    }

    /// A role is for the account of its name and for nobody else.
    pub(super) fn check_binding(&self, key: &Key, after: Option<&Object>) {
        let (Some((instance, _)), Some(after)) = (self.engine_of(&key.name), after) else { return };
        let subjects = after.value["subjects"].as_array().cloned().unwrap_or_default();
        let is_own =
            |subject: &serde_json::Value| subject["name"] == *key.name && subject["namespace"] == *instance.namespace();
        if after.value["roleRef"]["name"] != *key.name || subjects.is_empty() || !subjects.iter().all(is_own) {
            self.fail(&format!("{key} is for others: {}", after.value));
        }
    }

    /// In the end each account may do what its rules need within the bounds, and nothing else but what every engine may.
    pub(in super::super) fn check_rights(&self, name: &str) {
        let instance = self.get(&Key::cluster(Kind::PortalInstance, name)).expect("it is ready");
        let instance = Instance::try_from(&*instance).expect("it is ready");
        for layer in LAYERS {
            let account = engine(name, layer);
            let is_asked_for = instance.engines().into_iter().find(|engine| engine.layer == layer);
            let given: BTreeSet<Need> = self.roles_of(&account).flat_map(|role| rights_of(role)).collect();
            let Some(engine) = is_asked_for else {
                match given.first() {
                    Some(left) => self.fail(&format!("{account} is gone, and {left:?} of it is left")),
                    None => continue,
                }
            };
            let wanted = self.needed(&instance, &engine);
            let given: BTreeSet<Need> = given.into_iter().filter(|need| !is_base(&engine, need)).collect();
            let is_everywhere = |need: &Need| wanted.contains(&(need.0.clone(), None));
            let has = |need: &Need| given.contains(need) || (need.1.is_some() && is_everywhere(need));
            if let Some(lacks) = wanted.iter().find(|need| !has(need)) {
                self.fail(&format!("{account} lacks {lacks:?}"));
            }
            if let Some(surplus) = given.iter().find(|need| !wanted.contains(need)) {
                self.fail(&format!("{account} has {surplus:?}, which no rule needs"));
            }
        }
    }

    /// What the rules that are written need of a set of pods, as far as it may be given beyond what every engine has.
    pub(in super::super) fn needed(&self, instance: &Instance, engine: &Engine) -> BTreeSet<Need> {
        let needs =
            self.rules.needs(instance, std::slice::from_ref(engine), |key| self.objects.get(key).map(|found| &**found));
        let grants = needs.into_iter().flat_map(|needs| needs.grants.into_keys());
        grants.filter(|need| self.may_be_given(instance, need) && self.is_place(need)).collect()
    }

    /// The instance and the set of its pods that an account of this name is for.
    pub(in super::super) fn engine_of(&self, account: &str) -> Option<(Instance, Engine)> {
        let instances = self.of_kind(Kind::PortalInstance).into_iter().filter(|found| !found.is_terminating());
        let instances = instances.map(|found| Instance::try_from(&*found).expect("an instance can be read"));
        instances
            .filter(|instance| instance.problem.is_none())
            .find_map(|instance| instance.leaving(account).map(|engine| (instance, engine)))
    }

    /// The roles of an account.
    pub(in super::super) fn roles_of(&self, account: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values().filter(move |object| {
            matches!(object.key.kind, Kind::ClusterRole | Kind::Role) && object.key.name == account
        })
    }

    /// Whether the bounds let it be given beyond what every engine has: the instance allows it, and the operator has it.
    pub(in super::super) fn may_be_given(&self, instance: &Instance, need: &Need) -> bool {
        let rbac = &instance.spec.rbac;
        let is_named = |list: &[GrantedResource]| {
            list.iter().any(|found| (&found.group, &found.resource) == (&need.0.group, &need.0.resource))
        };
        rbac.mode == RbacMode::Auto
            && self.holds(need)
            && !has_everybody(need)
            && !is_named(&rbac.denied_resources)
            && (need.0.resource != "secrets" || is_named(&rbac.allowed_resources))
    }

    /// Whether a role can be where something is needed.
    pub(in super::super) fn is_place(&self, (_, namespace): &Need) -> bool {
        namespace.as_ref().is_none_or(|namespace| {
            self.get(&Key::cluster(Kind::Namespace, namespace)).is_some_and(|found| !found.is_terminating())
        })
    }
}

/// Whether every engine of these layers has a right, somewhere.
pub(in super::super) fn is_base(engine: &Engine, need: &Need) -> bool {
    let is_meant = |base: &&permissions::Base| {
        (base.group, base.resource) == (&*need.0.group, &*need.0.resource) && base.verbs.contains(&need.0.verb)
    };
    let reports = REPORTS.iter().filter(|_| engine.layers.audit);
    BASE.iter().chain(reports).any(|base| is_meant(&base))
}

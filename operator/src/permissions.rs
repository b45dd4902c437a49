//! What an engine is granted because of its rules: what they need, within what the instance allows and what the operator may do itself.
//! And what is told of the rules that need more.

mod told;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::rbac::v1::PolicyRule;
use portal_core::{
    event::Front,
    layers::Layers,
    permissions::{BASE, Place},
    requirements::{Permission, READ, Requirements},
    rule::{Rule, RuleSet, source::RuleId},
};
use portal_crds::{GrantedResource, RbacMode};

use crate::{
    instance::Instance,
    names::engine,
    needs::Needs,
    object::{Key, Kind},
    observed::{Failure, NOT_ALLOWED, Observed},
};

/// A verb on a resource, and the namespace if it is needed in one alone.
pub type Need = (Permission, Option<String>);

/// The rules that need something. There may be thousands, and they are handed from plan to plan.
pub type Causes = Arc<BTreeSet<Arc<RuleId>>>;

/// Verbs, and the first of the rules that need them, by group and plural.
pub type ByResource<'a> = BTreeMap<(&'a str, &'a str), (BTreeSet<&'a str>, BTreeSet<&'a RuleId>)>;

/// What the API server has told: of an instance that is granted what it needs, whether the operator may do something itself; of one that
/// waits for somebody who grants it, whether its engine may.
pub type Held = BTreeMap<Need, bool>;

/// How long a right stays after the last rule that needs it is gone. An engine watches for 70 s longer than rules need it to.
pub const GRACE: SignedDuration = SignedDuration::from_secs(90);

/// What was decided of everything that the rules of an instance need.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Permissions {
    /// What each set of pods is given because of rules, by its layer, and because of which. None of those that every engine has is among it.
    /// Because of no rule: the instance names the kind, or the last rule has gone a moment ago.
    pub granted: BTreeMap<&'static str, Granted>,
    /// What no set of pods is given that needs it, why, and which rules need it.
    pub refused: BTreeMap<Need, (Refusal, Causes)>,
    /// Whether something is not decided, because the API server has not told yet.
    pub is_incomplete: bool,
}

/// What a set of pods is given because of rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Granted(pub BTreeMap<Need, Causes>);

/// What a set of pods has needed a moment ago, by its layer, and when it last did.
pub type Lately = BTreeMap<(&'static str, Need), Timestamp>;

/// Why something is not granted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// `rbac.deniedResources` of the instance names it.
    ByInstance,
    /// It leads to secrets or into pods, and `rbac.allowedResources` of the instance does not name it.
    ByDefault,
    /// The operator may not do it itself, and so cannot hand it on.
    AboveCeiling,
    /// It is for an action of a rule of a namespace, and `actions.namespaced` of the instance is not set.
    NamespacedAction,
    /// It is needed in a namespace that is not there, where no role can be.
    NoNamespace,
    /// The instance says that somebody else grants.
    ByHand(RbacMode),
}

/// What was found out of the rules of an instance. Made by the caretaker of the instance, read by whoever writes the status of rules.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// The rules that are loaded, in the order of their names.
    pub rules: Arc<[Arc<Rule>]>,
    /// What is told of those that lack something.
    pub denied: BTreeMap<Arc<RuleId>, String>,
    /// Those that lack nothing that could not be granted, and yet no role gives it at this moment.
    pub pending: BTreeSet<Arc<RuleId>>,
}

/// How many rules are named of those that cause something.
const SOME: usize = 5;

/// The verbs that roles of engines may have.
const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// Subresources that reach into what runs, or hand out who it is.
const INTO_PODS: [&str; 5] = ["attach", "exec", "portforward", "proxy", "token"];

impl Permissions {
    /// Decides. `lately` is what was needed a moment ago.
    pub fn decide(instance: &Instance, needs: &Needs, held: &Held, lately: &Lately) -> Permissions {
        let mut permissions = Permissions::default();
        for (layer, grants) in &needs.engines {
            let of_layer = lately.keys().filter(|(of, _)| of == layer).map(|(_, need)| need);
            permissions.decide_for(instance, layer, grants, held, of_layer);
        }
        // Several sets of pods may lack it, because of rules that not all of them run.
        for (need, (_, rules)) in &mut permissions.refused {
            if let Some(all) = needs.grants.get(need) {
                *rules = Arc::clone(all);
            }
        }
        permissions
    }

    /// Decides by what is known of the cluster. What is needed where there is no namespace stays among what is granted, because its role is
    /// made as soon as there is one; that the rule has to wait for it is told.
    pub fn judge(instance: &Instance, needs: &Needs, observed: &Observed) -> Permissions {
        let mut permissions = Permissions::decide(instance, needs, &observed.held, &observed.memory.needed);
        let granted = permissions.granted.values();
        let nowhere: Vec<Need> = granted.flat_map(|granted| granted.nowhere(observed)).cloned().collect();
        for need in nowhere {
            let rules = needs.grants.get(&need).map(Arc::clone).unwrap_or_default();
            permissions.refused.insert(need, (Refusal::NoNamespace, rules));
        }
        permissions
    }

    /// Decides for one set of pods.
    fn decide_for<'a>(
        &mut self,
        instance: &Instance,
        layer: &'static str,
        grants: &'a BTreeMap<Need, Causes>,
        held: &Held,
        lately: impl Iterator<Item = &'a Need>,
    ) {
        let mode = instance.spec.rbac.mode;
        let none = Causes::default();
        let mut granted = Granted::default();
        let gone = lately.filter(|need| !grants.contains_key(need)).map(|need| (need, &none));
        for (need, rules) in grants.iter().chain(gone).filter(|(need, _)| !has_everybody(need)) {
            let is_gone = !grants.contains_key(need);
            // Whoever grants by hand need not heed what the operator has to.
            let bound = bound(instance, &need.0).filter(|_| mode == RbacMode::Auto);
            // Only actions write, and only what a rule of a namespace does is bound to one.
            let is_action = need.1.is_some() && !READ.contains(&need.0.verb);
            let bound = bound.or((is_action && !instance.spec.actions.namespaced).then_some(Refusal::NamespacedAction));
            let refusal = match (bound, held.get(need)) {
                (Some(refusal), _) => Some(refusal),
                (None, Some(true)) => None,
                (None, Some(false)) if mode == RbacMode::Auto => Some(Refusal::AboveCeiling),
                (None, Some(false)) => Some(Refusal::ByHand(mode)),
                (None, None) => {
                    self.is_incomplete |= !is_gone;
                    continue;
                }
            };
            match refusal {
                Some(refusal) if !is_gone => {
                    self.refused.insert(need.clone(), (refusal, Arc::clone(rules)));
                }
                None if mode == RbacMode::Auto => drop(granted.0.insert(need.clone(), Arc::clone(rules))),
                _ => {}
            }
        }
        self.granted.insert(layer, granted);
    }

    /// What a set of pods is given, by its layer.
    pub fn of(&self, layer: &str) -> &Granted {
        static NOTHING: Granted = Granted(BTreeMap::new());
        self.granted.get(layer).unwrap_or(&NOTHING)
    }

    /// What is refused, for people: which rules lack what, and where to read what to do.
    pub fn refusals(&self) -> String {
        let mut by_rule: BTreeMap<&RuleId, Vec<&Need>> = BTreeMap::new();
        for (need, (_, rules)) in &self.refused {
            rules.iter().for_each(|rule| by_rule.entry(rule).or_default().push(need));
        }
        const SHOWN: usize = 3;
        let shown = by_rule.iter().take(SHOWN);
        let shown: Vec<String> =
            shown.map(|(rule, needs)| format!("rule {rule}: {}", told::words(needs.iter().copied()))).collect();
        let more = by_rule.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("; and {more} more rules") } else { String::new() };
        format!(
            "not granted, which costs these rules and no others: {}{more}. The condition PermissionGranted of each rule says what to do",
            shown.join("; ")
        )
    }
}

impl Granted {
    /// What is granted in the whole cluster, or in a namespace and not everywhere anyway: the verbs by group and plural, with the first of
    /// the rules.
    pub fn by_resource(&self, namespace: Option<&str>) -> ByResource<'_> {
        let mut found = ByResource::new();
        for ((permission, place), rules) in &self.0 {
            let is_everywhere = place.is_some() && self.0.contains_key(&(permission.clone(), None));
            if place.as_deref() != namespace || is_everywhere {
                continue;
            }
            let (verbs, causes) = found.entry((&*permission.group, &*permission.resource)).or_default();
            verbs.insert(permission.verb);
            // The first ones of all are among the first ones of each.
            causes.extend(rules.iter().take(SOME + 1).map(|rule| &**rule));
        }
        found
    }

    /// What is granted in a namespace alone that is not there. A rule of that very namespace is gone with it, or came with it a moment ago.
    fn nowhere<'a>(&'a self, observed: &'a Observed) -> impl Iterator<Item = &'a Need> {
        let is_nowhere = |(need, rules): &(&Need, &Causes)| {
            let (permission, Some(namespace)) = need else { return false };
            let is_own = |rule: &Arc<RuleId>| rule.namespace.as_ref() == Some(namespace);
            observed.get(&Key::cluster(Kind::Namespace, namespace)).is_none()
                && !rules.is_empty()
                && !rules.iter().any(is_own)
                && !self.0.contains_key(&(permission.clone(), None))
        };
        self.0.iter().filter(is_nowhere).map(|(need, _)| need)
    }

    /// The namespaces in which something is granted that is not granted everywhere.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        let named = self.0.keys().filter_map(|(_, place)| place.as_deref()).collect::<BTreeSet<_>>();
        named.into_iter().filter(|namespace| !self.by_resource(Some(namespace)).is_empty()).collect()
    }
}

impl Verdicts {
    /// What is told of the rules of an instance.
    pub fn new(instance: &Instance, needs: &Needs, permissions: &Permissions) -> Verdicts {
        let mut by_rule: BTreeMap<Arc<RuleId>, Vec<(&Need, Refusal)>> = BTreeMap::new();
        for (need, (refusal, rules)) in &permissions.refused {
            for rule in rules.iter() {
                by_rule.entry(Arc::clone(rule)).or_default().push((need, *refusal));
            }
        }
        let denied = by_rule.into_iter().map(|(rule, lacks)| {
            let is_enforced = is_enforced_without(instance, needs, &rule, &lacks);
            let told = told::told(instance, needs, &rule, &lacks, is_enforced);
            (rule, told)
        });
        Verdicts { rules: Arc::clone(&needs.rules), denied: denied.collect(), pending: BTreeSet::new() }
    }

    /// The same by what roles give at this moment: what was decided and what is done are two things. `failure` is the step that failed last.
    pub fn by_roles(
        mut self,
        instance: &Instance,
        permissions: &Permissions,
        observed: &Observed,
        failure: Option<&Failure>,
    ) -> Verdicts {
        for (layer, granted) in &permissions.granted {
            let account = engine(&instance.name, layer);
            let given = Given::of(&account, observed);
            for (need, rules) in granted.0.iter().filter(|(need, _)| !given.has(need)) {
                let refused = failure.filter(|failure| {
                    let role = role_key(&account, need.1.as_deref());
                    failure.reason == NOT_ALLOWED && failure.subject == role.to_string()
                });
                let told = match (&need.1, refused) {
                    (_, Some(failure)) => Some(format!("the role that gives it is refused: {}", failure.message)),
                    (Some(namespace), None) if is_ending(namespace, observed) => {
                        Some(format!("namespace {namespace} is being deleted, and nothing is granted there any more"))
                    }
                    _ => None,
                };
                for rule in rules.iter() {
                    match &told {
                        Some(why) => {
                            let words = told::words([need].into_iter());
                            let told = || format!("the engine may not {words}, which the rule needs; {why}");
                            self.denied.entry(Arc::clone(rule)).or_insert_with(told);
                        }
                        None => drop(self.pending.insert(Arc::clone(rule))),
                    }
                }
            }
        }
        self.pending.retain(|rule| !self.denied.contains_key(rule));
        self
    }

    /// The loaded rule of this name.
    pub fn rule(&self, id: &RuleId) -> Option<&Rule> {
        self.rules.binary_search_by(|rule| rule.id.cmp(id)).ok().map(|place| &*self.rules[place])
    }
}

/// What the roles of an account give that are bound to it: where, and the rules.
struct Given(BTreeMap<Option<String>, Vec<PolicyRule>>);

impl Given {
    fn of(account: &str, observed: &Observed) -> Given {
        let roles = observed.of_kind(Kind::ClusterRole).chain(observed.of_kind(Kind::Role));
        let bound = roles.filter(|role| role.key.name == account).filter(|role| {
            let kind = if role.key.kind == Kind::Role { Kind::RoleBinding } else { Kind::ClusterRoleBinding };
            observed.get(&Key { kind, ..role.key.clone() }).is_some()
        });
        let rules = bound.map(|role| {
            // Somebody else may have written what no role can have.
            (role.key.namespace.clone(), serde_json::from_value(role.value["rules"].clone()).unwrap_or_default())
        });
        Given(rules.collect())
    }

    fn has(&self, (permission, namespace): &Need) -> bool {
        let names =
            |list: Option<&Vec<String>>, word: &str| list.is_some_and(|list| list.iter().any(|one| one == word));
        let gives = |rule: &PolicyRule| {
            names(rule.api_groups.as_ref(), &permission.group)
                && names(rule.resources.as_ref(), &permission.resource)
                && names(Some(&rule.verbs), permission.verb)
                && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
        };
        let places = [Some(&None), namespace.as_ref().map(|_| namespace)];
        places.into_iter().flatten().filter_map(|place| self.0.get(place)).flatten().any(gives)
    }
}

/// The role of an account in the whole cluster, or in a namespace.
fn role_key(account: &str, namespace: Option<&str>) -> Key {
    match namespace {
        Some(namespace) => Key::namespaced(Kind::Role, namespace, account),
        None => Key::cluster(Kind::ClusterRole, account),
    }
}

/// Whether a namespace is being deleted.
fn is_ending(namespace: &str, observed: &Observed) -> bool {
    observed.get(&Key::cluster(Kind::Namespace, namespace)).is_some_and(|found| found.is_terminating())
}

/// Whether admission can do without what a rule lacks, and judges requests by it all the same.
fn is_enforced_without(instance: &Instance, needs: &Needs, rule: &RuleId, lacks: &[(&Need, Refusal)]) -> bool {
    let Ok(place) = needs.rules.binary_search_by(|found| found.id.cmp(rule)) else { return false };
    let rule = &needs.rules[place];
    let admission = Layers { admission: true, ..Layers::default() };
    let needed = || Requirements::of(&RuleSet::new(vec![Arc::clone(rule)]), admission).grants();
    instance.layers().admission && rule.fronts.contains(&Front::Admission) && {
        let needed = needed();
        lacks.iter().all(|(need, _)| !needed.contains_key(*need))
    }
}

/// Whether every engine has it, whatever its rules say.
pub fn has_everybody((permission, _): &Need) -> bool {
    let Permission { group, resource, verb } = permission;
    BASE.iter()
        .filter(|base| base.place == Place::Cluster)
        .any(|base| (base.group, base.resource) == (group.as_str(), resource.as_str()) && base.verbs.contains(verb))
}

/// What a rule of an engine's role gives beside what every engine has, where. `own` is the namespace of the engine.
pub fn beside_base(rule: &PolicyRule, namespace: Option<&str>, own: &str) -> Vec<Need> {
    let named = rule.resource_names.as_deref().unwrap_or_default();
    // Because of rules nothing is given by the names of objects.
    let groups = rule.api_groups.iter().flatten().filter(|_| named.is_empty());
    let resources = groups.flat_map(|group| rule.resources.iter().flatten().map(move |resource| (group, resource)));
    let is_base = |(group, resource): (&String, &String), verb: &str| {
        portal_core::permissions::all().any(|base| {
            let is_there = base.place == Place::Cluster || base.place == Place::OwnNamespace && namespace == Some(own);
            is_there && (base.group, base.resource) == (&**group, &**resource) && base.verbs.contains(&verb)
        })
    };
    let mut needs = Vec::new();
    for name @ (group, resource) in resources {
        let verbs =
            VERBS.into_iter().filter(|verb| rule.verbs.iter().any(|found| found == verb) && !is_base(name, verb));
        needs.extend(verbs.map(|verb| {
            let permission = Permission { group: group.clone(), resource: resource.clone(), verb };
            (permission, namespace.map(str::to_owned))
        }));
    }
    needs
}

/// Why the instance does not let it be granted, if that is so.
fn bound(instance: &Instance, permission: &Permission) -> Option<Refusal> {
    let rbac = &instance.spec.rbac;
    let names = |list: &[GrantedResource]| {
        list.iter().any(|found| found.group == permission.group && found.resource == permission.resource)
    };
    if names(&rbac.denied_resources) {
        return Some(Refusal::ByInstance);
    }
    (is_delicate(permission) && !names(&rbac.allowed_resources)).then_some(Refusal::ByDefault)
}

/// Whether it leads to secrets or into pods.
fn is_delicate(permission: &Permission) -> bool {
    let subresource = permission.resource.split_once('/').map(|(_, subresource)| subresource);
    let is_secret = permission.group.is_empty() && permission.resource == "secrets";
    is_secret || subresource.is_some_and(|name| INTO_PODS.contains(&name))
}

/// Some of the rules that cause something, for people: the first ones by name. Not how many more there are, so that not every rule that
/// comes or goes is a change of a role.
pub fn some_of<'a>(rules: impl IntoIterator<Item = &'a RuleId>) -> String {
    let names: Vec<String> = rules.into_iter().take(SOME + 1).map(ToString::to_string).collect();
    match names.len() {
        0 => "no rule any more, or `watchedGvks`".to_owned(),
        1..=SOME => names.join(", "),
        _ => format!("{}, and more", names[..SOME].join(", ")),
    }
}

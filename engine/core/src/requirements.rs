//! What rules need: which kinds are watched, which requests must reach the webhook, which verbs actions use, and what an
//! author must be allowed to do. Computed from the text of the rules alone, with the rules that cause each need.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portal_crds::ActionType;

use crate::{
    event::{Front, Operation, POD_SUBRESOURCES},
    kinds::Kind,
    rule::{JudgedKind, Rule, RuleSet, source::RuleId},
};

/// Everything that a set of rules needs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Requirements {
    /// The kinds whose objects must be at hand.
    pub watches: BTreeMap<Arc<Kind>, Reach>,
    /// The requests that must reach the webhook.
    pub webhook: BTreeMap<WebhookResource, WebhookNeed>,
    /// The verbs that actions and fresh reads need.
    pub permissions: BTreeMap<Permission, Reach>,
    /// What the author of each rule must be allowed to do, so that a rule gives nobody more than they have.
    pub author: BTreeMap<RuleId, BTreeSet<(Permission, Option<String>)>>,
}

/// Where something is needed, and by which rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reach {
    /// The rules that need it in the whole cluster.
    pub cluster: BTreeSet<RuleId>,
    /// The rules that need it in a namespace only.
    pub namespaces: BTreeMap<String, BTreeSet<RuleId>>,
}

/// A resource in a webhook configuration.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct WebhookResource {
    /// The group.
    pub group: String,
    /// The plural, with the subresource behind a slash.
    pub resource: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// What of a resource must reach the webhook.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WebhookNeed {
    /// The versions.
    pub versions: BTreeSet<String>,
    /// The operations.
    pub operations: BTreeSet<Operation>,
    /// The rules that ask for it.
    pub rules: BTreeSet<RuleId>,
}

/// A verb on a resource.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Permission {
    /// The group.
    pub group: String,
    /// The plural, with the subresource behind a slash.
    pub resource: String,
    /// The verb.
    pub verb: &'static str,
}

/// What watching takes.
const READ: [&str; 3] = ["get", "list", "watch"];

impl Requirements {
    /// What these rules need.
    pub fn of(rules: &RuleSet) -> Requirements {
        let mut requirements = Requirements::default();
        for rule in rules.rules() {
            requirements.add(rule);
        }
        requirements
    }

    fn add(&mut self, rule: &Rule) {
        let own = rule.id.namespace.as_deref();
        for judged in &rule.judged {
            if rule.fronts.contains(&Front::Audit) {
                self.watch(rule, &judged.kind, own);
            }
            if rule.fronts.contains(&Front::Admission) {
                self.reach_webhook(rule, judged);
            }
            // Who may not read a kind must not learn of it through a rule.
            self.author(rule, &judged.kind, own);
        }
        if let Some(selector) = &rule.matching.namespace_selector {
            self.watch(rule, &selector.kind, None);
        }
        for site in rule.lookups.iter().flatten() {
            let namespace = match (own, site.namespace.as_deref()) {
                (Some(own), _) => Some(own),
                (None, Some("*")) | (None, None) => None,
                (None, named) => named,
            };
            if site.consistent {
                for verb in ["get", "list"] {
                    self.permit(rule, &site.kind.group, &site.kind.plural, verb, namespace);
                }
            } else {
                self.watch(rule, &site.kind, namespace);
            }
            self.author(rule, &site.kind, namespace);
        }
        for action in &rule.actions {
            self.act(rule, action.action_type, own);
        }
    }

    fn watch(&mut self, rule: &Rule, kind: &Arc<Kind>, namespace: Option<&str>) {
        self.watches.entry(Arc::clone(kind)).or_default().add(&rule.id, namespace);
    }

    fn author(&mut self, rule: &Rule, kind: &Kind, namespace: Option<&str>) {
        for verb in READ {
            let permission = Permission { group: kind.group.clone(), resource: kind.plural.clone(), verb };
            self.author.entry(rule.id.clone()).or_default().insert((permission, namespace.map(str::to_owned)));
        }
    }

    fn permit(&mut self, rule: &Rule, group: &str, resource: &str, verb: &'static str, namespace: Option<&str>) {
        let permission = Permission { group: group.to_owned(), resource: resource.to_owned(), verb };
        self.permissions.entry(permission).or_default().add(&rule.id, namespace);
    }

    fn reach_webhook(&mut self, rule: &Rule, judged: &JudgedKind) {
        let kind = &judged.kind;
        let mut resources = vec![kind.plural.clone()];
        if !judged.expanded {
            let named = rule.matching.subresources.iter().filter(|name| kind.subresources.contains(name));
            resources.extend(named.map(|name| format!("{}/{name}", kind.plural)));
        }
        let is_pod = kind.group.is_empty() && kind.kind == "Pod";
        // What a rule says of pods that are changed holds for every way to change one.
        if is_pod && rule.matching.operations.contains(&Operation::Update) {
            resources.extend(POD_SUBRESOURCES.map(|name| format!("{}/{name}", kind.plural)));
        }
        for resource in resources {
            let is_whole = !resource.contains('/');
            let operations = rule
                .matching
                .operations
                .iter()
                .filter(|operation| if is_whole { **operation != Operation::Connect } else { true });
            let operations: BTreeSet<Operation> = operations.copied().collect();
            if operations.is_empty() {
                continue;
            }
            let key = WebhookResource { group: kind.group.clone(), resource, namespaced: kind.namespaced };
            let need = self.webhook.entry(key).or_default();
            let versions = if judged.versions.is_empty() { &kind.versions } else { &judged.versions };
            need.versions.extend(versions.iter().cloned());
            need.operations.extend(operations);
            need.rules.insert(rule.id.clone());
        }
    }

    /// The verbs of an action.
    fn act(&mut self, rule: &Rule, action: ActionType, own: Option<&str>) {
        let needs: Vec<(String, String, &'static str)> = match action {
            ActionType::Alertmanager => Vec::new(),
            ActionType::Label | ActionType::Annotate => {
                let kinds = rule.judged.iter().map(|judged| &judged.kind);
                kinds.map(|kind| (kind.group.clone(), kind.plural.clone(), "patch")).collect()
            }
            ActionType::Evict => vec![(String::new(), "pods/eviction".to_owned(), "create")],
            ActionType::PatchNetworkPolicy => ["get", "create", "patch", "delete"]
                .map(|verb| ("networking.k8s.io".to_owned(), "networkpolicies".to_owned(), verb))
                .to_vec(),
            ActionType::RevokeSaToken => {
                ["list", "delete"].map(|verb| (String::new(), "secrets".to_owned(), verb)).to_vec()
            }
        };
        for (group, resource, verb) in needs {
            self.permit(rule, &group, &resource, verb, own);
            let permission = Permission { group, resource, verb };
            self.author.entry(rule.id.clone()).or_default().insert((permission, own.map(str::to_owned)));
        }
    }
}

impl Reach {
    fn add(&mut self, rule: &RuleId, namespace: Option<&str>) {
        match namespace {
            Some(namespace) => self.namespaces.entry(namespace.to_owned()).or_default().insert(rule.clone()),
            None => self.cluster.insert(rule.clone()),
        };
    }

    /// Whether something in a namespace, or outside of all with none, is within reach.
    pub fn covers(&self, namespace: Option<&str>) -> bool {
        !self.cluster.is_empty() || namespace.is_some_and(|namespace| self.namespaces.contains_key(namespace))
    }
}

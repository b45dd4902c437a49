//! The webhook configuration that brings requests to rules, made from what the rules need and nothing else. It never names more than
//! the rules do, and nothing that can only warn may block.

mod routed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration,
        WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference},
};
use portal_crds::EnforcementAction;

use crate::{
    event::{Entry, Operation},
    requirements::{Reach, Requirements, WebhookResource},
};

pub use self::routed::first_gap;

/// What an instance says about its webhook.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// The name of the instance.
    pub instance: String,
    /// Where the API server finds the engine.
    pub target: Target,
    /// The certificates that it trusts there, as PEM. Empty: those of its system.
    pub ca_bundle: Vec<u8>,
    /// How many seconds it waits for an answer.
    pub timeout_seconds: i32,
    /// Whether it refuses what the engine does not answer.
    pub fail_closed: bool,
    /// The strictest that any rule may be.
    pub max_enforcement: EnforcementAction,
    /// The namespaces that the instance serves, by their labels.
    pub namespace_selector: LabelSelector,
    /// The namespaces that are left alone beside those that always are, by their names.
    pub exclude_namespaces: BTreeSet<String>,
    /// The namespaces of Portal: that of this engine, of every other one, and of the operator.
    pub own_namespaces: BTreeSet<String>,
    /// Portal's own accounts, as `system:serviceaccount:NAMESPACE:NAME`.
    pub own_accounts: BTreeSet<String>,
    /// How Portal's own rules are judged when they are written, if they are.
    pub own_rules: Option<OwnRules>,
    /// The namespace in which the way from the API server to the engine is tried, if it is.
    pub probe_namespace: Option<String>,
    /// What the configuration goes with.
    pub owner: Option<OwnerReference>,
}

/// How Portal's own rules are judged when they are written.
#[derive(Clone, Debug, Default)]
pub struct OwnRules {
    /// The rules that the instance serves, by their labels.
    pub selector: LabelSelector,
    /// Whether a rule is refused if its author may not read what it reads.
    pub enforces_author_check: bool,
}

/// Where the API server finds an engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// At an address: `https://` and a host.
    Url(String),
    /// Behind a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: i32,
    },
}

/// The namespaces that a cluster needs to live and to heal.
pub const SPARED_NAMESPACES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// The label that every namespace has.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The label of the Lease by which an instance is tried, with its name.
pub const PROBE_LABEL: &str = "portal.io/probe";

/// The annotation of that Lease with what has to come back.
pub const NONCE_ANNOTATION: &str = "portal.io/nonce";

/// What an engine says to a probe, before its version.
pub fn probe_answer(instance: &str, nonce: &str) -> String {
    format!("portal {instance} answers {nonce} as ")
}

/// The path for rules of Portal themselves.
pub const OWN_RULES_PATH: &str = "/validate-rules";

/// The path of what is sent to find out whether the API server reaches the engine.
pub const PROBE_PATH: &str = "/probe";

/// What belongs in one entry. The order is that of the configuration.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    class: Entry,
    pinned: Option<String>,
    is_in_namespaces: bool,
    /// Whether the API server refuses what the engine does not answer.
    is_closed: bool,
}

/// The requests of an entry: operations by resource.
type Requests<'a> = BTreeMap<&'a WebhookResource, BTreeSet<Operation>>;

/// The name of an instance's webhook configuration.
pub fn configuration_name(instance: &str) -> String {
    format!("portal-{instance}")
}

/// The path by which requests of a class of entries come.
pub fn path(entry: Entry) -> String {
    format!("/validate/{}", entry.name())
}

/// The webhook configuration of an instance whose rules need this.
pub fn configuration(requirements: &Requirements, settings: &WebhookSettings) -> ValidatingWebhookConfiguration {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut webhooks = for_cluster_rules(requirements, settings);
    webhooks.extend(for_namespaced_rules(requirements, settings));
    webhooks.extend(settings.own_rules.as_ref().map(|own_rules| for_own_rules(own_rules, settings)));
    webhooks.extend(settings.probe_namespace.as_deref().map(|namespace| for_probe(namespace, settings)));
    // A platform that edits webhook configurations leaves those alone that say so.
    let left_alone = label("admissions.enforcer/disabled", "true");
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some(configuration_name(&settings.instance)),
            labels: Some([left_alone.clone(), label("portal.io/instance", &settings.instance)].into()),
            annotations: Some([left_alone].into()),
            owner_references: settings.owner.clone().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        webhooks: Some(webhooks),
    }
}

fn for_cluster_rules(requirements: &Requirements, settings: &WebhookSettings) -> Vec<ValidatingWebhook> {
    let mut entries: BTreeMap<Key, Requests<'_>> = BTreeMap::new();
    for (resource, operations) in &requirements.webhook {
        for (operation, route) in operations.iter().filter(|(_, route)| !route.judging.cluster.is_empty()) {
            let key = Key::new(resource, false, settings.can_refuse(!route.refusing.cluster.is_empty()));
            entries.entry(key).or_default().entry(resource).or_default().insert(*operation);
        }
    }
    let selector = settings.served_namespaces();
    entries.iter().map(|(key, requests)| entry(key, &key.name(), &selector, requests, settings)).collect()
}

/// Rules of a namespace must not send the requests of others on the way through a webhook, so that each namespace has entries of its
/// own. Namespaces whose rules need the same share them.
fn for_namespaced_rules(requirements: &Requirements, settings: &WebhookSettings) -> Vec<ValidatingWebhook> {
    let mut by_namespace: BTreeMap<&str, BTreeMap<Key, Requests<'_>>> = BTreeMap::new();
    for (resource, operations) in &requirements.webhook {
        for (operation, route) in operations {
            for namespace in route.judging.namespaces.keys() {
                let is_refusing = has(&route.refusing, namespace);
                let key = Key::new(resource, true, settings.can_refuse(is_refusing));
                let entries = by_namespace.entry(namespace).or_default();
                entries.entry(key).or_default().entry(resource).or_default().insert(*operation);
            }
        }
    }
    let mut alike: BTreeMap<(Key, Requests<'_>), Vec<String>> = BTreeMap::new();
    for (namespace, entries) in by_namespace.into_iter().filter(|(namespace, _)| !settings.spares(namespace)) {
        for needs in entries {
            alike.entry(needs).or_default().push(namespace.to_owned());
        }
    }
    let named = alike.iter().enumerate().map(|(number, ((key, requests), namespaces))| {
        let selector = with(&settings.namespace_selector, [name_is("In", namespaces.clone())]);
        // By a number, because whoever is refused in one namespace must not learn of another by its name.
        entry(key, &format!("{}-{}", key.name(), number + 1), &selector, requests, settings)
    });
    named.collect()
}

/// An entry that sends requests to the rules of its class.
fn entry(
    key: &Key,
    name: &str,
    selector: &LabelSelector,
    requests: &Requests<'_>,
    settings: &WebhookSettings,
) -> ValidatingWebhook {
    let mut match_conditions = settings.not_our_own();
    if !key.is_in_namespaces {
        match_conditions.push(MatchCondition {
            name: "not-by-nodes".to_owned(),
            // A selector of namespaces does nothing here, and a node must be able to come back whatever happens to the engine.
            expression: "!('system:nodes' in request.userInfo.groups)".to_owned(),
        });
    }
    ValidatingWebhook {
        namespace_selector: Some(selector.clone()),
        match_conditions: Some(match_conditions).filter(|conditions| !conditions.is_empty()),
        rules: Some(rules_of(requests)),
        failure_policy: Some(policy(key.is_closed)),
        ..settings.webhook(name, &path(key.class))
    }
}

/// Whoever writes a rule is told at once what is wrong with it.
fn for_own_rules(own_rules: &OwnRules, settings: &WebhookSettings) -> ValidatingWebhook {
    ValidatingWebhook {
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec!["portal.io".to_owned()]),
            api_versions: Some(vec!["v1alpha1".to_owned()]),
            operations: Some(words([Operation::Create, Operation::Update])),
            resources: Some(vec!["portalclusterrules".to_owned(), "portalrules".to_owned()]),
            scope: Some("*".to_owned()),
        }]),
        object_selector: Some(own_rules.selector.clone()),
        match_conditions: Some(settings.not_our_own()).filter(|conditions| !conditions.is_empty()),
        failure_policy: Some(policy(own_rules.enforces_author_check)),
        ..settings.webhook("own-rules", OWN_RULES_PATH)
    }
}

fn for_probe(namespace: &str, settings: &WebhookSettings) -> ValidatingWebhook {
    let labels = [(PROBE_LABEL.to_owned(), settings.instance.clone())].into();
    ValidatingWebhook {
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec!["coordination.k8s.io".to_owned()]),
            api_versions: Some(vec!["v1".to_owned()]),
            operations: Some(words([Operation::Create, Operation::Update])),
            resources: Some(vec!["leases".to_owned()]),
            scope: Some("Namespaced".to_owned()),
        }]),
        namespace_selector: Some(with(&LabelSelector::default(), [name_is("In", vec![namespace.to_owned()])])),
        object_selector: Some(LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }),
        failure_policy: Some(policy(false)),
        ..settings.webhook("probe", PROBE_PATH)
    }
}

impl WebhookSettings {
    /// Whether requests may be refused if rules that judge them can refuse.
    fn can_refuse(&self, is_refusing: bool) -> bool {
        is_refusing && self.fail_closed && self.max_enforcement == EnforcementAction::Deny
    }

    /// Whether a namespace is left alone.
    fn spares(&self, namespace: &str) -> bool {
        SPARED_NAMESPACES.contains(&namespace)
            || self.own_namespaces.contains(namespace)
            || self.exclude_namespaces.contains(namespace)
    }

    fn served_namespaces(&self) -> LabelSelector {
        let always = SPARED_NAMESPACES.map(str::to_owned);
        let spared: BTreeSet<String> =
            always.into_iter().chain(self.own_namespaces.clone()).chain(self.exclude_namespaces.clone()).collect();
        with(&self.namespace_selector, [name_is("NotIn", spared.into_iter().collect())])
    }

    /// What Portal itself asks for is let through: a dead engine must not keep the operator from mending it.
    fn not_our_own(&self) -> Vec<MatchCondition> {
        if self.own_accounts.is_empty() {
            return Vec::new();
        }
        let accounts: Vec<String> = self.own_accounts.iter().map(|account| format!("'{account}'")).collect();
        let expression = format!("!(request.userInfo.username in [{}])", accounts.join(", "));
        vec![MatchCondition { name: "not-by-portal".to_owned(), expression }]
    }

    /// What all entries have in common.
    fn webhook(&self, name: &str, path: &str) -> ValidatingWebhook {
        let mut client_config = WebhookClientConfig::default();
        match &self.target {
            Target::Url(url) => client_config.url = Some(format!("{}{path}", url.trim_end_matches('/'))),
            Target::Service { namespace, name, port } => {
                client_config.service = Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    port: Some(*port),
                    path: Some(path.to_owned()),
                });
            }
        }
        if !self.ca_bundle.is_empty() {
            client_config.ca_bundle = Some(ByteString(self.ca_bundle.clone()));
        }
        ValidatingWebhook {
            name: format!("{name}.{}.portal.io", self.instance),
            client_config,
            admission_review_versions: vec!["v1".to_owned()],
            match_policy: Some("Equivalent".to_owned()),
            // Admission notes what it admitted, for reports and actions, and nothing when it is only asked what would be.
            side_effects: "NoneOnDryRun".to_owned(),
            timeout_seconds: Some(self.timeout_seconds),
            ..ValidatingWebhook::default()
        }
    }
}

impl Key {
    fn new(resource: &WebhookResource, namespaced: bool, is_closed: bool) -> Key {
        let pinned = resource.pinned.clone();
        let class = Entry { namespaced, pinned: pinned.is_some() };
        Key { class, pinned, is_in_namespaces: resource.kind.namespaced, is_closed }
    }

    /// A name that no other entry for the same namespaces has. It is what people read when they are refused.
    fn name(&self) -> String {
        let mut name = match (self.class.namespaced, self.is_in_namespaces) {
            (true, _) => "namespace-rules".to_owned(),
            (false, true) => "rules".to_owned(),
            (false, false) => "cluster-scope-rules".to_owned(),
        };
        if let Some(version) = &self.pinned {
            name.push_str(&format!("-{version}"));
        }
        if !self.is_closed {
            name.push_str("-open");
        }
        name
    }
}

fn has(reach: &Reach, namespace: &str) -> bool {
    reach.namespaces.get(namespace).is_some_and(|rules| !rules.is_empty())
}

/// The requests as the API server takes them. Resources of a group with the same versions and operations stand together.
fn rules_of(requests: &Requests<'_>) -> Vec<RuleWithOperations> {
    let mut rules: Vec<RuleWithOperations> = Vec::new();
    for (resource, operations) in requests {
        let kind = &resource.kind;
        let rule = RuleWithOperations {
            api_groups: Some(vec![kind.group.clone()]),
            api_versions: Some(resource.versions().to_vec()),
            operations: Some(words(operations.iter().copied())),
            resources: None,
            scope: Some(if kind.namespaced { "Namespaced" } else { "Cluster" }.to_owned()),
        };
        let is_alike = |known: &RuleWithOperations| RuleWithOperations { resources: None, ..known.clone() } == rule;
        let place = rules.iter().position(is_alike).unwrap_or_else(|| {
            rules.push(rule.clone());
            rules.len() - 1
        });
        rules[place].resources.get_or_insert_default().push(resource.resource());
    }
    rules
}

fn words(operations: impl IntoIterator<Item = Operation>) -> Vec<String> {
    operations.into_iter().map(|operation| operation.name().to_owned()).collect()
}

fn policy(is_closed: bool) -> String {
    if is_closed { "Fail" } else { "Ignore" }.to_owned()
}

fn name_is(operator: &str, names: Vec<String>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: NAME_LABEL.to_owned(), operator: operator.to_owned(), values: Some(names) }
}

/// A selector that asks for more.
fn with(selector: &LabelSelector, more: impl IntoIterator<Item = LabelSelectorRequirement>) -> LabelSelector {
    let mut selector = selector.clone();
    selector.match_expressions.get_or_insert_default().extend(more);
    selector
}

//! What rules need: which kinds are watched, which requests must reach the webhook, which verbs actions use, and what an
//! author must be allowed to do. Computed from the text of the rules alone, with the rules that cause each need.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use portal_crds::{Action, ActionType, EnforcementAction};

use crate::{
    event::{Front, Operation, POD_SUBRESOURCES},
    kinds::Kind,
    layers::Layers,
    rule::{JudgedKind, LookupSite, Rule, RuleSet, source::RuleId},
};

/// Everything that a set of rules needs in an engine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Requirements {
    /// The kinds whose objects must be at hand, and why.
    pub watches: BTreeMap<Arc<Kind>, BTreeMap<Reason, Reach>>,
    /// The requests that must reach the webhook. What an entry of a webhook configuration can hold stands together: first
    /// what is for rules that take any version, then version after version that rules pin.
    pub webhook: BTreeMap<WebhookResource, BTreeMap<Operation, Route>>,
    /// The verbs that actions and fresh reads need.
    pub permissions: BTreeMap<Permission, Reach>,
}

/// Why objects of a kind must be at hand.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Reason {
    /// Audit judges them.
    Match,
    /// A rule looks them up.
    Lookup,
    /// A rule asks for the labels of namespaces.
    NamespaceSelector,
    /// Admission lets some in although they violate a rule that audit does not judge. Reports and actions wait until they
    /// are seen.
    Outcome,
}

/// Where something is needed, and by which rules. Rules stand in the order of their set, each once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reach {
    /// The rules that need it in the whole cluster.
    pub cluster: Vec<Arc<RuleId>>,
    /// The rules that need it in a namespace only.
    pub namespaces: BTreeMap<String, Vec<Arc<RuleId>>>,
}

/// The requests for a resource that must reach the webhook, and by which rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Route {
    /// All rules that judge them.
    pub judging: Reach,
    /// Those of them that can refuse.
    pub refusing: Reach,
}

/// A resource in a webhook configuration.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct WebhookResource {
    /// The version that rules pin. Its entry has no other version, so that the API server converts objects to it: with others
    /// in the entry, objects would come in those, and the rules would pass them over. None for rules that take any.
    pub pinned: Option<String>,
    /// The kind.
    pub kind: Arc<Kind>,
    /// The part of it that is written, if it is not the whole.
    pub subresource: Option<String>,
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

/// Everything of a rule, lookups apart, that its needs come from. Requirements are asked for after every change of a rule,
/// and there may be ten thousand: what all that are alike need is worked out once. Rules of one set share its kinds.
#[derive(Eq, Hash, PartialEq)]
struct Alike<'a> {
    namespace: Option<&'a str>,
    fronts: &'a [Front],
    enforcement: EnforcementAction,
    operations: &'a [Operation],
    subresources: &'a [String],
    judged: Vec<(*const Kind, &'a [String], bool)>,
    namespaces: Option<*const Kind>,
    actions: Vec<(ActionType, &'a [Front])>,
}

/// Takes rules that are alike, one after the other.
struct Builder<'a> {
    layers: Layers,
    /// The places of kinds in the list below.
    places: HashMap<*const Kind, usize>,
    kinds: Vec<KindNeeds<'a>>,
    permissions: BTreeMap<Verb<'a>, Draft<'a>>,
}

/// What is needed of one kind.
struct KindNeeds<'a> {
    kind: &'a Arc<Kind>,
    watches: BTreeMap<Reason, Draft<'a>>,
    webhook: BTreeMap<Part<'a>, BTreeMap<Operation, RouteDraft<'a>>>,
}

/// A route with the numbers of rules, as they came.
#[derive(Default)]
struct RouteDraft<'a> {
    judging: Draft<'a>,
    refusing: Draft<'a>,
}

/// A reach with the numbers of rules, as they came.
#[derive(Default)]
struct Draft<'a> {
    cluster: Vec<usize>,
    namespaces: BTreeMap<&'a str, Vec<usize>>,
}

/// The version that is pinned, and the subresource.
type Part<'a> = (Option<&'a str>, Option<&'a str>);

/// A group, a plural and a verb.
type Verb<'a> = (&'a str, &'a str, &'static str);

/// What it takes to have the objects of a kind at hand.
pub const READ: [&str; 3] = ["get", "list", "watch"];

/// What a fresh read takes.
const READ_FRESH: [&str; 2] = ["get", "list"];

impl Requirements {
    /// What these rules need in an engine that has these layers.
    pub fn of(rules: &RuleSet, layers: Layers) -> Requirements {
        let mut alike: HashMap<Alike<'_>, Vec<usize>> = HashMap::new();
        for (number, rule) in rules.rules().iter().enumerate() {
            alike.entry(Alike::of(rule)).or_default().push(number);
        }
        let (places, kinds, permissions) = Default::default();
        let mut builder = Builder { layers, places, kinds, permissions };
        for numbers in alike.values() {
            builder.add(&rules.rules()[numbers[0]], numbers);
        }
        for (number, rule) in rules.rules().iter().enumerate() {
            builder.look_up(rule, number);
        }
        let ids: Vec<Arc<RuleId>> = rules.rules().iter().map(|rule| Arc::new(rule.id.clone())).collect();
        builder.finish(&ids)
    }

    /// What these rules need in pods that have some of the layers of an instance. What admission lets in is told of by those that audit,
    /// wherever the requests are judged.
    pub fn of_engine(rules: &RuleSet, layers: Layers, instance: Layers) -> Requirements {
        let mut requirements = Requirements::of(rules, layers);
        if layers.audit && instance.admission && !layers.admission {
            for (kind, mut reasons) in Requirements::of(rules, layers.with(instance)).watches {
                if let Some(reach) = reasons.remove(&Reason::Outcome) {
                    requirements.watches.entry(kind).or_default().insert(Reason::Outcome, reach);
                }
            }
        }
        requirements
    }

    /// What an engine must be allowed to do for these rules, where (none for everywhere), and for which of them.
    pub fn grants(&self) -> BTreeMap<(Permission, Option<String>), BTreeSet<Arc<RuleId>>> {
        let mut grants: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut add = |permission: &Permission, reach: &Reach| {
            if !reach.cluster.is_empty() {
                grants.entry((permission.clone(), None)).or_default().extend(reach.cluster.iter().cloned());
            }
            for (namespace, rules) in &reach.namespaces {
                let place = (permission.clone(), Some(namespace.clone()));
                grants.entry(place).or_default().extend(rules.iter().cloned());
            }
        };
        for (kind, reasons) in &self.watches {
            for verb in READ {
                let permission = permission((&kind.group, &kind.plural, verb));
                reasons.values().for_each(|reach| add(&permission, reach));
            }
        }
        self.permissions.iter().for_each(|(permission, reach)| add(permission, reach));
        grants
    }

    /// What the author of a rule must be allowed to do, and in which namespace if not in all, so that a rule gives nobody
    /// more than they have. It does not depend on what an engine makes of the rule. Of reading a kind one verb is asked for: who may
    /// list objects sees all that a rule could tell of them.
    pub fn of_author(rule: &Rule) -> BTreeSet<(Permission, Option<String>)> {
        let own = rule.id.namespace.as_deref();
        // Who may not read a kind must not learn of it through a rule.
        let judged = rule.judged.iter().map(|judged| (&judged.kind, own));
        let looked_up = rule.lookups.iter().flatten().map(|site| (&site.kind, namespace_of(rule, site)));
        let selected_by = rule.matching.namespace_selector.iter().map(|selector| (&selector.kind, None));
        let reads = judged.chain(looked_up).chain(selected_by);
        let reads = reads.map(|(kind, namespace)| ((kind.group.as_str(), kind.plural.as_str(), "list"), namespace));
        let acts = rule.actions.iter().flat_map(|action| verbs(rule, action)).map(|verb| (verb, own));
        reads.chain(acts).map(|(verb, namespace)| (permission(verb), namespace.map(str::to_owned))).collect()
    }
}

impl Reach {
    /// Wherever one of both needs it, for the rules of both.
    pub fn joined(mut self, other: Reach) -> Reach {
        self.cluster.extend(other.cluster);
        for (namespace, rules) in other.namespaces {
            self.namespaces.entry(namespace).or_default().extend(rules);
        }
        self
    }
}

impl<'a> Alike<'a> {
    fn of(rule: &'a Rule) -> Alike<'a> {
        let judged = rule.judged.iter();
        Alike {
            namespace: rule.id.namespace.as_deref(),
            fronts: &rule.fronts,
            enforcement: rule.enforcement,
            operations: &rule.matching.operations,
            subresources: &rule.matching.subresources,
            judged: judged.map(|judged| (Arc::as_ptr(&judged.kind), &*judged.versions, judged.expanded)).collect(),
            namespaces: rule.matching.namespace_selector.as_ref().map(|selector| Arc::as_ptr(&selector.kind)),
            actions: rule.actions.iter().map(|action| (action.action_type, &*action.on)).collect(),
        }
    }
}

impl<'a> Builder<'a> {
    /// Adds what a rule needs, for all rules that are like it.
    fn add(&mut self, rule: &'a Rule, numbers: &[usize]) {
        let layers = self.layers;
        let runs_in = |front| layers.run(front) && rule.fronts.contains(&front);
        let (is_enforced, is_audited) = (runs_in(Front::Admission), runs_in(Front::Audit));
        if !is_enforced && !is_audited {
            return;
        }
        let own = rule.id.namespace.as_deref();
        let reason = match is_audited {
            true => Some(Reason::Match),
            false => self.awaits_outcomes(rule).then_some(Reason::Outcome),
        };
        for judged in &rule.judged {
            let needs = self.kind(&judged.kind);
            if let Some(reason) = reason {
                needs.watch(reason, numbers, own);
            }
            if is_enforced {
                needs.reach_webhook(rule, judged, numbers);
            }
        }
        if let Some(selector) = &rule.matching.namespace_selector {
            self.kind(&selector.kind).watch(Reason::NamespaceSelector, numbers, None);
        }
        // The network loop runs no rules, but its findings may lead to the actions of rules.
        let leads = |front: &Front| runs_in(*front) || (*front == Front::Network && layers.network);
        let acts = |action: &&Action| layers.actions && (action.on.is_empty() || action.on.iter().any(leads));
        for verb in rule.actions.iter().filter(acts).flat_map(|action| verbs(rule, action)) {
            self.permit(verb, numbers, own);
        }
    }

    /// Adds what a rule looks up. Rules that are alike otherwise may differ in this.
    fn look_up(&mut self, rule: &'a Rule, number: usize) {
        if !rule.fronts.iter().any(|front| self.layers.run(*front)) {
            return;
        }
        for site in rule.lookups.iter().flatten() {
            let (kind, namespace) = (&site.kind, namespace_of(rule, site));
            if site.consistent {
                for verb in READ_FRESH {
                    self.permit((&kind.group, &kind.plural, verb), &[number], namespace);
                }
            } else {
                self.kind(kind).watch(Reason::Lookup, &[number], namespace);
            }
        }
    }

    /// Whether what admission lets in must be seen afterwards, by a rule that is not audited.
    fn awaits_outcomes(&self, rule: &Rule) -> bool {
        let acts = |action: &Action| {
            let is_alert = action.action_type == ActionType::Alertmanager;
            !is_alert && (action.on.is_empty() || action.on.contains(&Front::Admission))
        };
        rule.admits_violations() && (self.layers.audit || (self.layers.actions && rule.actions.iter().any(acts)))
    }

    fn kind(&mut self, kind: &'a Arc<Kind>) -> &mut KindNeeds<'a> {
        let place = *self.places.entry(Arc::as_ptr(kind)).or_insert_with(|| {
            let known = self.kinds.iter().position(|known| known.kind == kind);
            known.unwrap_or_else(|| {
                self.kinds.push(KindNeeds { kind, watches: BTreeMap::new(), webhook: BTreeMap::new() });
                self.kinds.len() - 1
            })
        });
        &mut self.kinds[place]
    }

    fn permit(&mut self, verb: Verb<'a>, numbers: &[usize], namespace: Option<&'a str>) {
        self.permissions.entry(verb).or_default().add(numbers, namespace);
    }

    fn finish(self, ids: &[Arc<RuleId>]) -> Requirements {
        let mut requirements = Requirements::default();
        for KindNeeds { kind, watches, webhook } in self.kinds {
            if !watches.is_empty() {
                let reasons = watches.into_iter().map(|(reason, draft)| (reason, draft.finish(ids)));
                requirements.watches.insert(Arc::clone(kind), reasons.collect());
            }
            for ((pinned, subresource), operations) in webhook {
                let (pinned, subresource) = (pinned.map(str::to_owned), subresource.map(str::to_owned));
                let resource = WebhookResource { pinned, kind: Arc::clone(kind), subresource };
                let finish = |RouteDraft { judging, refusing }: RouteDraft<'_>| Route {
                    judging: judging.finish(ids),
                    refusing: refusing.finish(ids),
                };
                let operations = operations.into_iter().map(|(operation, draft)| (operation, finish(draft)));
                requirements.webhook.insert(resource, operations.collect());
            }
        }
        let permissions = self.permissions.into_iter();
        requirements.permissions = permissions.map(|(verb, draft)| (permission(verb), draft.finish(ids))).collect();
        requirements
    }
}

impl<'a> KindNeeds<'a> {
    fn watch(&mut self, reason: Reason, numbers: &[usize], namespace: Option<&'a str>) {
        self.watches.entry(reason).or_default().add(numbers, namespace);
    }

    fn reach_webhook(&mut self, rule: &'a Rule, judged: &'a JudgedKind, numbers: &[usize]) {
        let (kind, operations) = (&judged.kind, &rule.matching.operations);
        // Connecting happens on subresources only.
        let whole = operations.iter().filter(|operation| **operation != Operation::Connect);
        let whole = whole.map(|operation| (None, *operation));
        let served = |name: &&'a String| !judged.expanded && kind.subresources.contains(name);
        let named = rule
            .matching
            .subresources
            .iter()
            .filter(served)
            .flat_map(|name| operations.iter().map(|operation| (Some(name.as_str()), *operation)));
        // What a rule says of pods that are changed holds for every way to change one.
        let is_pod = kind.group.is_empty() && kind.kind == "Pod";
        let is_changed = is_pod && operations.contains(&Operation::Update);
        let changed = POD_SUBRESOURCES.into_iter().filter(|_| is_changed).map(|name| (Some(name), Operation::Update));
        let own = rule.id.namespace.as_deref();
        for (part, operation) in whole.chain(named).chain(changed) {
            let operations = self.webhook.entry((judged.pinned(), part)).or_default();
            let route = operations.entry(operation).or_default();
            route.judging.add(numbers, own);
            if rule.enforcement == EnforcementAction::Deny {
                route.refusing.add(numbers, own);
            }
        }
    }
}

impl<'a> Draft<'a> {
    fn add(&mut self, numbers: &[usize], namespace: Option<&'a str>) {
        let known = match namespace {
            Some(namespace) => self.namespaces.entry(namespace).or_default(),
            None => &mut self.cluster,
        };
        known.extend(numbers);
    }

    fn finish(self, ids: &[Arc<RuleId>]) -> Reach {
        let rules = |mut numbers: Vec<usize>| {
            numbers.sort_unstable();
            numbers.dedup();
            numbers.into_iter().map(|number| Arc::clone(&ids[number])).collect()
        };
        let namespaces = self.namespaces.into_iter().map(|(name, numbers)| (name.to_owned(), rules(numbers)));
        Reach { cluster: rules(self.cluster), namespaces: namespaces.collect() }
    }
}

impl Permission {
    /// The resource with its group, such as `deployments.apps`.
    pub fn name(&self) -> String {
        if self.group.is_empty() { self.resource.clone() } else { format!("{}.{}", self.resource, self.group) }
    }
}

impl WebhookResource {
    /// The plural, with the subresource behind a slash.
    pub fn resource(&self) -> String {
        match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.kind.plural),
            None => self.kind.plural.clone(),
        }
    }

    /// The versions that belong in the entry.
    pub fn versions(&self) -> &[String] {
        self.pinned.as_ref().map_or(&self.kind.versions, std::slice::from_ref)
    }
}

impl Rule {
    /// The kinds whose objects must be at hand before the rule can be asked, and where, none for everywhere. What it reads afresh is
    /// not among them.
    pub fn looked_up(&self) -> impl Iterator<Item = (&Arc<Kind>, Option<&str>)> {
        let sites = self.lookups.iter().flatten().filter(|site| !site.consistent);
        sites.map(|site| (&site.kind, namespace_of(self, site)))
    }
}

/// Where a lookup asks, none for everywhere. What only an evaluation knows may be anywhere.
fn namespace_of<'a>(rule: &'a Rule, site: &'a LookupSite) -> Option<&'a str> {
    rule.id.namespace.as_deref().or_else(|| site.namespace.as_deref().filter(|namespace| *namespace != "*"))
}

/// The verbs of an action.
fn verbs<'a>(rule: &'a Rule, action: &Action) -> Vec<Verb<'a>> {
    match action.action_type {
        ActionType::Alertmanager => Vec::new(),
        ActionType::Label | ActionType::Annotate => {
            let kinds = rule.judged.iter().map(|judged| &judged.kind);
            kinds.map(|kind| (kind.group.as_str(), kind.plural.as_str(), "patch")).collect()
        }
        ActionType::Evict => vec![("", "pods/eviction", "create")],
        ActionType::PatchNetworkPolicy => {
            ["get", "create", "patch", "delete"].map(|verb| ("networking.k8s.io", "networkpolicies", verb)).to_vec()
        }
        ActionType::RevokeSaToken => ["list", "delete"].map(|verb| ("", "secrets", verb)).to_vec(),
    }
}

fn permission((group, resource, verb): Verb<'_>) -> Permission {
    Permission { group: group.to_owned(), resource: resource.to_owned(), verb }
}

/// Verbs, resources and places in words, such as `list, watch pods in the whole cluster`. Resources with the same verbs stand together.
pub fn in_words<'a>(needs: impl IntoIterator<Item = (&'a Permission, Option<&'a str>)>) -> String {
    let mut resources: BTreeMap<_, (String, BTreeSet<&str>)> = BTreeMap::new();
    for (permission, namespace) in needs {
        let resource = (namespace, &permission.group, &permission.resource);
        resources.entry(resource).or_insert_with(|| (permission.name(), BTreeSet::new())).1.insert(permission.verb);
    }
    let mut places: BTreeMap<(Option<&str>, Vec<&str>), Vec<String>> = BTreeMap::new();
    for ((namespace, ..), (name, verbs)) in resources {
        places.entry((namespace, Vec::from_iter(verbs))).or_default().push(name);
    }
    let words = places.into_iter().map(|((namespace, verbs), names)| {
        let place = namespace.map_or_else(|| "in the whole cluster".to_owned(), |name| format!("in namespace {name}"));
        format!("{} {} {place}", verbs.join(", "), names.join(", "))
    });
    words.collect::<Vec<_>>().join(" and ")
}

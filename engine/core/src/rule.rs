//! A rule that was checked and compiled, and the set of them.

pub(crate) mod comment;
pub(crate) mod matching;
pub mod message;
pub(crate) mod quoting;
pub(crate) mod reads;

pub mod compile;
pub mod diagnostic;
pub mod file;
pub mod load;
pub mod source;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use portal_crds::{Action, EnforcementAction, Severity};
use portal_document::Node;
use portal_expr::Moment;

use crate::{
    context::pod::Template,
    event::{Entry, Front, Operation},
    kinds::Kind,
    language::{Expression, Outline},
    rule::{matching::Matching, message::Message, reads::Reads, source::RuleId},
};

/// A rule that can be evaluated.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub id: RuleId,
    /// What tells this version of it from others of its name: see [`source::RuleSource::version`].
    pub version: String,
    /// What sort of rule it is, for those who read reports.
    pub category: Option<Arc<str>>,
    /// How bad a violation is.
    pub severity: Severity,
    /// What admission does about one.
    pub enforcement: EnforcementAction,
    /// Where it runs.
    pub fronts: Vec<Front>,
    /// What is done about a violation.
    pub actions: Vec<Action>,
    /// The kinds that it judges, expanded ones included.
    pub judged: Vec<JudgedKind>,
    /// What its expression reads of `request`.
    pub request: RequestReads,
    /// Whether the expression or the message reads `request`.
    pub names_request: bool,
    /// Whether its answer changes with time alone.
    pub uses_now: bool,
    /// The kinds that it looks up, by the numbers of its call sites: none, one, or those that a reference may be to.
    pub(crate) lookups: Vec<Vec<LookupSite>>,
    pub(crate) matching: Matching,
    pub(crate) per_container: bool,
    /// Whether nothing can be said without the object.
    pub(crate) needs_object: bool,
    pub(crate) expression: Box<dyn Expression>,
    pub(crate) message: Option<Message>,
    /// What it reads of the object. Worked out when somebody first asks.
    pub(crate) reads: OnceLock<Reads>,
}

/// What a rule reads of `request`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestReads {
    /// Nothing.
    Nothing,
    /// Only what is known of any object that is created.
    Creation,
    /// Who asks, or what was there before: only a real request can tell.
    Everything,
}

/// A kind that a rule judges.
#[derive(Clone, Debug)]
pub struct JudgedKind {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The versions that the rule names; none for any.
    pub versions: Vec<String>,
    /// Whether the rule names pods, and this kind makes them.
    pub expanded: bool,
    /// Where its objects have their pods, if they have any.
    pub(crate) template: Option<Template>,
}

/// A place in a rule that asks for other objects of a kind.
#[derive(Clone, Debug)]
pub struct LookupSite {
    /// The kind that is asked for.
    pub kind: Arc<Kind>,
    /// The namespace, if it is written in the rule. `*` stands for all.
    pub namespace: Option<String>,
    /// Whether it asks for fresh answers.
    pub consistent: bool,
    /// Whether the call has a selector, even if that turns out to be nil.
    pub(crate) has_selector: bool,
}

/// Rules, found by the kind of what they judge. Immutable: a change makes another set.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
    /// The place of a kind in the list below, by its group and name.
    kinds: HashMap<String, usize>,
    /// For each kind: the rules that judge it, and the place of the kind in each.
    judges: Vec<Vec<(u32, u32)>>,
}

impl JudgedKind {
    /// The version that objects must be converted to before the rule can judge them: the one that the API server prefers of those
    /// that the rule names. None if it names no version and judges whatever is served.
    ///
    /// Whether there is one depends on the rule alone. If it depended on what is served too, a kind that gets another version would move
    /// the rule to another entry of the webhook configuration, and nobody would ask it until that is made anew. It is one version even
    /// if the rule names two, so that a request comes to the rule once.
    pub fn pinned(&self) -> Option<&str> {
        let preferred = self.kind.versions.iter().find(|version| self.versions.contains(version));
        preferred.or(self.versions.first()).map(String::as_str)
    }

    /// Whether its objects have a template of pods, and are none themselves.
    pub fn makes_pods(&self) -> bool {
        self.template.as_ref().is_some_and(|template| !template.is_pod())
    }

    /// Whether the rule judges objects that are written in a version. Those that come by an entry of the webhook configuration for
    /// pinned versions have been converted to one, which need not be the one that is preferred now.
    pub(crate) fn takes(&self, version: &str, entry: Option<Entry>) -> bool {
        let is_named = || self.versions.iter().any(|named| named == version);
        match entry {
            Some(Entry { pinned: true, .. }) => is_named(),
            Some(Entry { pinned: false, .. }) => self.versions.is_empty(),
            None => self.versions.is_empty() || is_named(),
        }
    }

    /// The labels that tell objects of this kind apart: of what makes pods, those of the pods.
    pub(crate) fn labels<'a>(&self, object: Node<'a>) -> Option<Node<'a>> {
        let metadata = match self.template.as_ref().filter(|_| self.expanded) {
            Some(template) => template.pod(object).metadata,
            None => object.get_str("metadata"),
        };
        metadata?.get_str("labels")
    }
}

impl Rule {
    /// Whether it asks for other objects than the one that is judged.
    pub fn looks_up(&self) -> bool {
        self.reads_others() || self.matching.namespace_selector.is_some()
    }

    /// Whether audit asks it: it runs there, and it is about objects that are there, and not about their change or end alone.
    pub fn is_audited(&self) -> bool {
        self.fronts.contains(&Front::Audit) && self.judges_creation()
    }

    /// Whether an object may be there that admission let in although it violates the rule: the rule warns, or only records. What is
    /// deleted or connected to leaves nothing to see.
    pub(crate) fn admits_violations(&self) -> bool {
        let operations = &self.matching.operations;
        self.enforcement != EnforcementAction::Deny
            && (operations.contains(&Operation::Create) || operations.contains(&Operation::Update))
    }

    /// Whether only admission can tell what violates it, and lets that in: audit never asks it.
    pub fn awaits_outcomes(&self) -> bool {
        self.fronts.contains(&Front::Admission) && self.admits_violations() && !self.is_audited()
    }

    /// When an exception of it ends that holds until then, after this moment.
    pub fn next_expiry(&self, now: Moment) -> Option<Moment> {
        self.matching.ends().flatten().filter(|end| *end > now).min()
    }

    /// Whether it judges what is created, rather than only what is changed, deleted or connected to.
    pub fn judges_creation(&self) -> bool {
        self.matching.operations.contains(&Operation::Create)
    }

    /// The rule with everything that its needs come from, and nothing that judges: a tenth of the memory, for whoever never asks it.
    pub fn outline(self) -> Rule {
        Rule { expression: Box::new(Outline::default()), message: None, ..self }
    }

    /// When its exceptions end: nothing for one that has no end.
    pub fn exceptions_end(&self) -> impl Iterator<Item = Option<Moment>> + '_ {
        self.matching.ends()
    }

    /// Whether its expression reads other objects than the one that is judged.
    pub fn reads_others(&self) -> bool {
        self.lookups.iter().any(|sites| !sites.is_empty())
    }
}

impl RuleSet {
    /// A set of these rules.
    pub fn new(rules: Vec<Arc<Rule>>) -> RuleSet {
        let mut kinds = HashMap::new();
        let mut judges: Vec<Vec<(u32, u32)>> = Vec::new();
        // Rules share the kinds of one snapshot, and there are far more rules than kinds: addresses are compared faster
        // than names.
        let mut known: foldhash::HashMap<*const Kind, usize> = foldhash::HashMap::default();
        for (number, rule) in rules.iter().enumerate() {
            for (place, judged) in rule.judged.iter().enumerate() {
                let kind = *known.entry(Arc::as_ptr(&judged.kind)).or_insert_with(|| {
                    *kinds.entry(key(&judged.kind)).or_insert_with(|| {
                        judges.push(Vec::new());
                        judges.len() - 1
                    })
                });
                judges[kind].push((number as u32, place as u32));
            }
        }
        RuleSet { rules, kinds, judges }
    }

    /// The rules, in the order in which they came.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// What tells this set from others: the names and versions of its rules. The same in every process of a release.
    pub fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for rule in &self.rules {
            (&rule.id, &rule.version).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }

    /// The rules that name a kind, with what they know of it.
    pub fn for_kind(&self, kind: &Kind) -> impl Iterator<Item = (&Rule, &JudgedKind)> {
        self.numbered(kind).map(|(_, rule, judged)| (rule, judged))
    }

    /// The places in the set of the rules that name a kind, each once.
    pub fn places(&self, kind: &Kind) -> impl Iterator<Item = usize> {
        let mut last = None;
        self.numbered(kind).map(|(number, ..)| number).filter(move |number| last.replace(*number) != Some(*number))
    }

    /// The same, with the places of the rules in the set.
    pub(crate) fn numbered(&self, kind: &Kind) -> impl Iterator<Item = (usize, &Rule, &JudgedKind)> {
        let found = self.kinds.get(&key(kind)).map(|kind| &*self.judges[*kind]).unwrap_or_default();
        found.iter().map(|(number, place)| {
            let rule = &self.rules[*number as usize];
            (*number as usize, &**rule, &rule.judged[*place as usize])
        })
    }
}

/// Group and kind in one text: neither can contain a slash.
fn key(kind: &Kind) -> String {
    format!("{}/{}", kind.group, kind.kind)
}

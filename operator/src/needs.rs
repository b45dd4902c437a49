//! What the rules of an instance need, worked out by the compiler that its engines have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::core::{Selector, SelectorExt as _};
use portal_cluster::rules::quota::Quota;
use portal_core::{
    kinds::Kinds,
    language::ExprEngine,
    manifest::Manifest,
    requirements::{Permission, READ, Requirements},
    rule::{
        Rule, RuleSet,
        compile::compile_rule,
        diagnostic::{Diagnostic, Level},
        file,
        source::{RuleId, RuleSource},
    },
};
use portal_crds::{ExceptionCounts, RuleCounts};

use crate::{
    instance::{Engine, Instance},
    object::{Key, Kind, Object},
    permissions::{Causes, Need},
};

/// What the rules of an instance need.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Kinds and operations for the webhook, and reads for roles.
    pub requirements: Requirements,
    /// What some set of pods must be allowed to do, and for which rules.
    pub grants: BTreeMap<Need, Causes>,
    /// The same of each set of pods, by its layer: what only audit reads, admission need not.
    pub engines: BTreeMap<&'static str, BTreeMap<Need, Causes>>,
    /// The rules that are loaded, in the order of their names.
    pub rules: Arc<[Arc<Rule>]>,
    /// How many rules there are.
    pub counts: RuleCounts,
    /// The exceptions of the rules that are loaded.
    pub exceptions: Exceptions,
    /// What is wrong with the ConfigMaps of the instance that have rules, a sentence each.
    pub problems: Vec<String>,
}

/// Exceptions of rules, by when they end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Exceptions {
    /// When each of them ends, in order, and its rule.
    ends: Vec<(Timestamp, String)>,
    /// How many have no end.
    without_end: usize,
}

/// The rules of the cluster. Written by the task that watches them, read by whoever plans.
#[derive(Debug, Default)]
pub struct Rules {
    /// What the API server serves. None before it was asked: no rule can be compiled then.
    kinds: Option<Arc<Kinds>>,
    /// Which of the two kinds of rule have been listed.
    listed: BTreeSet<&'static str>,
    objects: BTreeMap<RuleId, Known>,
}

/// A rule of the cluster.
#[derive(Debug)]
pub struct Known {
    /// When it was created, as the API server writes it.
    pub created: String,
    /// Which object it is, and which version of its spec.
    pub version: (String, i64),
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it says. None if its form is wrong, which the engine tells.
    pub source: Option<RuleSource>,
    /// What is kept of what was compiled.
    compiled: Compiled,
}

/// What has become of a rule.
#[derive(Clone, Debug, Default)]
enum Compiled {
    /// It cannot be used as it is, or names a kind that is not served.
    #[default]
    Refused,
    /// It says that it is switched off.
    Disabled,
    /// It can be used. Only what its needs come from is kept.
    Loaded(Arc<Rule>),
}

impl Known {
    /// A rule that was seen. It is compiled when it is taken.
    pub fn new(
        created: String,
        version: (String, i64),
        labels: BTreeMap<String, String>,
        source: Option<RuleSource>,
    ) -> Known {
        Known { created, version, labels, source, compiled: Compiled::Refused }
    }
}

impl Needs {
    /// What these rules, in the order of their names, need in an instance with these sets of pods.
    pub fn of(rules: &RuleSet, instance: &Instance, engines: &[Engine], kinds: &Kinds) -> Needs {
        let requirements = Requirements::of(rules, instance.layers());
        let mut watched: Vec<Need> = Vec::new();
        for found in &instance.spec.watched_gvks {
            let kind = kinds.get(&found.group, &found.kind);
            for (kind, verb) in kind.into_iter().flat_map(|kind| READ.map(|verb| (kind, verb))) {
                watched.push((Permission { group: kind.group.clone(), resource: kind.plural.clone(), verb }, None));
            }
        }
        let of_engine = |engine: &Engine| {
            let grants = match engine.layers == instance.layers() {
                true => requirements.grants(),
                false => Requirements::of_engine(rules, engine.layers, instance.layers()).grants(),
            };
            let mut grants: BTreeMap<Need, Causes> =
                grants.into_iter().map(|(need, rules)| (need, Arc::new(rules))).collect();
            for need in &watched {
                grants.entry(need.clone()).or_default();
            }
            (engine.layer, grants)
        };
        let engines: BTreeMap<_, _> = engines.iter().map(of_engine).collect();
        let mut grants: BTreeMap<Need, Causes> = BTreeMap::new();
        for (need, rules) in engines.values().flatten() {
            let known = grants.entry(need.clone()).or_insert_with(|| Arc::clone(rules));
            if !rules.is_subset(known) {
                Arc::make_mut(known).extend(rules.iter().cloned());
            }
        }
        let exceptions = Exceptions::of(rules);
        Needs { requirements, grants, engines, rules: rules.rules().into(), exceptions, ..Needs::default() }
    }

    /// The sets of pods that need something, by their layers.
    pub fn layers_of<'a>(&'a self, need: &'a Need) -> impl Iterator<Item = &'static str> + 'a {
        self.engines.keys().copied().filter(move |layer| self.needs(layer, need))
    }

    /// Whether the pods of a layer need something.
    pub fn needs(&self, layer: &str, need: &Need) -> bool {
        self.engines.get(layer).is_some_and(|grants| grants.contains_key(need))
    }
}

impl Exceptions {
    fn of(rules: &RuleSet) -> Exceptions {
        let mut exceptions = Exceptions::default();
        for rule in rules.rules() {
            for end in rule.exceptions_end() {
                // Nobody lives to see the end of one that lies behind all times that there are.
                match end.and_then(|end| Timestamp::from_second(end.seconds()).ok()) {
                    Some(end) => exceptions.ends.push((end, rule.id.to_string())),
                    None => exceptions.without_end += 1,
                }
            }
        }
        exceptions.ends.sort();
        exceptions
    }

    /// How many there are of each sort. Nothing if there are none.
    pub fn counts(&self, now: Timestamp) -> Option<ExceptionCounts> {
        let ended = self.ended(now);
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let next = self.ends.get(ended);
        (self.ends.len() + self.without_end > 0).then(|| ExceptionCounts {
            open: count(self.ends.len() - ended + self.without_end),
            without_end: count(self.without_end),
            ended: count(ended),
            next_end: next.map(|(end, _)| Time(*end)),
            next_rule: next.map(|(_, rule)| rule.clone()),
        })
    }

    /// When the next one ends.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.ends.get(self.ended(now)).map(|(end, _)| *end)
    }

    fn ended(&self, now: Timestamp) -> usize {
        self.ends.partition_point(|(end, _)| *end <= now)
    }
}

impl Rules {
    /// Takes another set of kinds. Every rule may name one that has come or gone.
    pub fn set_kinds(&mut self, kinds: Arc<Kinds>) {
        for known in self.objects.values_mut() {
            known.compiled = compile(known.source.as_ref(), Some(&kinds));
        }
        self.kinds = Some(kinds);
    }

    /// Takes a rule, or that it is gone. Returns whether that can make a difference to anybody.
    pub fn set(&mut self, id: RuleId, known: Option<Known>) -> bool {
        let Some(mut known) = known else { return self.objects.remove(&id).is_some() };
        let before = self.objects.get(&id);
        let is_same = |before: &Known| before.version == known.version && before.labels == known.labels;
        if before.is_some_and(is_same) {
            return false;
        }
        known.compiled = match before.filter(|before| before.version == known.version) {
            Some(before) => before.compiled.clone(),
            None => compile(known.source.as_ref(), self.kinds.as_ref()),
        };
        self.objects.insert(id, known);
        true
    }

    /// Says that all rules of a kind have been seen that were there, and that those that were not seen are gone.
    pub fn set_listed(&mut self, plural: &'static str, seen: &BTreeSet<RuleId>, is_of_kind: impl Fn(&RuleId) -> bool) {
        self.objects.retain(|id, _| !is_of_kind(id) || seen.contains(id));
        self.listed.insert(plural);
    }

    /// What the API server serves, if that is known.
    pub fn kinds(&self) -> Option<&Arc<Kinds>> {
        self.kinds.as_ref()
    }

    /// What the rules of an instance need in these sets of pods. Nothing while not all of them are known: by some of them the webhook would be
    /// made narrower than it has to be. `config_map` finds the ConfigMaps of the engine's namespace.
    pub fn needs<'a>(
        &self,
        instance: &Instance,
        engines: &[Engine],
        config_map: impl Fn(&Key) -> Option<&'a Object>,
    ) -> Option<Needs> {
        let kinds = self.kinds.as_ref().filter(|_| self.listed.len() == 2)?;
        let mut needs = Needs::default();
        let mut rules: BTreeMap<RuleId, Arc<Rule>> = BTreeMap::new();
        let mut in_files = BTreeSet::new();
        for source in bootstrap(instance, config_map, &mut needs.problems) {
            needs.counts.total += 1;
            let (rule, diagnostics) = compile_rule(&source, kinds, &ExprEngine);
            needs.problems.extend(
                diagnostics.iter().filter(|found| found.level == Level::Error).map(|found| said(&source, found)),
            );
            match rule {
                Some(rule) if in_files.insert(source.id.clone()) => {
                    needs.counts.loaded += 1;
                    rules.insert(source.id, Arc::new(rule.outline()));
                }
                Some(_) => needs.problems.push(format!("several files have a rule `{}`: rename one", source.id)),
                None => needs.counts.refused += i64::from(!diagnostics.is_empty()),
            }
        }
        self.add_objects(instance, &in_files, &mut rules, &mut needs.counts);
        let rules = RuleSet::new(rules.into_values().collect());
        let of_rules = Needs::of(&rules, instance, engines, kinds);
        Some(Needs { counts: needs.counts, problems: needs.problems, ..of_rules })
    }

    fn add_objects(
        &self,
        instance: &Instance,
        in_files: &BTreeSet<RuleId>,
        rules: &mut BTreeMap<RuleId, Arc<Rule>>,
        counts: &mut RuleCounts,
    ) {
        let selector = selector_of(instance.spec.rule_selector.as_ref());
        let served = || {
            self.objects
                .iter()
                .filter(|(_, known)| selector.as_ref().is_none_or(|selector| selector.matches(&known.labels)))
        };
        let mut quota = Quota::new(instance.spec.rules_per_namespace as usize);
        for (id, known) in served() {
            quota.change(id, None, Some(&known.created));
        }
        for (id, known) in served() {
            counts.total += 1;
            if in_files.contains(id) || quota.is_over(id, &known.created) {
                counts.refused += 1;
                continue;
            }
            match &known.compiled {
                Compiled::Loaded(rule) => {
                    counts.loaded += 1;
                    rules.insert(id.clone(), Arc::clone(rule));
                }
                Compiled::Refused => counts.refused += 1,
                Compiled::Disabled => {}
            }
        }
    }
}

fn compile(source: Option<&RuleSource>, kinds: Option<&Arc<Kinds>>) -> Compiled {
    let Some((source, kinds)) = source.zip(kinds) else { return Compiled::Refused };
    match compile_rule(source, kinds, &ExprEngine) {
        (Some(rule), _) => Compiled::Loaded(Arc::new(rule.outline())),
        (None, diagnostics) if diagnostics.iter().any(|found| found.level == Level::Error) => Compiled::Refused,
        (None, _) => Compiled::Disabled,
    }
}

/// The rules of the instance's ConfigMaps.
fn bootstrap<'a>(
    instance: &Instance,
    config_map: impl Fn(&Key) -> Option<&'a Object>,
    problems: &mut Vec<String>,
) -> Vec<RuleSource> {
    let mut sources = Vec::new();
    for name in &instance.spec.bootstrap_rules.config_maps {
        let key = Key::namespaced(Kind::ConfigMap, instance.namespace(), name);
        let Some(found) = config_map(&key) else {
            problems.push(format!("there is no {key}: create it, or remove it from `bootstrapRules.configMaps`"));
            continue;
        };
        for (file, text) in found.value["data"].as_object().into_iter().flatten() {
            let manifest =
                Manifest::new(format!("{name}/{file}"), text.as_str().unwrap_or_default().as_bytes().to_vec());
            let read = file::read(&manifest);
            problems.extend(read.problems.iter().map(ToString::to_string));
            sources.extend(read.sources);
        }
    }
    sources
}

fn said(source: &RuleSource, diagnostic: &Diagnostic) -> String {
    format!("rule `{}`: {}", source.id, diagnostic.message)
}

/// A selector, if there is one. The definition refuses those that cannot be read.
fn selector_of(selector: Option<&LabelSelector>) -> Option<Selector> {
    selector.and_then(|selector| Selector::try_from(selector.clone()).ok())
}

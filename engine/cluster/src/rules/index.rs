//! All rules of all loaders, compiled. Pure: news go in, a snapshot and reports come out.
//!
//! A change compiles what it changes and nothing else, unless the kinds change, which any rule may name.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portal_core::{
    kinds::Kinds,
    language::{ExprEngine, ExpressionEngine},
    layers::Layers,
    manifest::Problem,
    rule::{
        Rule, RuleSet,
        compile::compile_rule,
        diagnostic::{Diagnostic, Level},
        file::{place, problem_of},
        source::{RuleId, RuleSource},
    },
};

use crate::{
    metrics::RuleState,
    rules::{
        FileContent, Object, Outcome, Report, Update,
        feeds::{Feeds, Lack},
        quota::{Population, Quota},
        snapshot::Snapshot,
    },
};

/// All rules. Written by the one task that takes the updates.
pub struct Index {
    language: Box<dyn ExpressionEngine>,
    /// The layers of the engine, which decide what its rules need.
    layers: Layers,
    /// The layers that other pods of the instance have.
    other_layers: Layers,
    /// None until the API server was asked. Until then nothing is compiled: a kind that is not known yet is no mistake.
    kinds: Option<Arc<Kinds>>,
    files: BTreeMap<PathBuf, File>,
    objects: BTreeMap<RuleId, Held>,
    /// The files that have a rule of each name, in the order of their paths.
    in_files: HashMap<RuleId, BTreeSet<PathBuf>>,
    /// How many rules of the cluster each namespace may have.
    quota: Quota,
    /// What the set is made of, in the order of names.
    rules: BTreeMap<RuleId, Arc<Rule>>,
    /// Which objects are at hand. None in an engine that asks no rule anything.
    feeds: Option<Arc<Feeds>>,
    /// Rules that would be in the set if the objects were at hand that they look up.
    starved: BTreeMap<RuleId, Arc<Rule>>,
}

/// What came of updates.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// What is in force from here on, if the updates changed it.
    pub snapshot: Option<Snapshot>,
    /// What has become of the cluster's rules that may have changed. Nothing for those that are gone.
    pub reports: Vec<(RuleId, Option<Report>)>,
}

/// How many rules there are of each kind of outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Rules in the set.
    pub active: usize,
    /// Rules that cannot be used as they are.
    pub refused: usize,
    /// Rules that wait for a kind.
    pub waiting: usize,
    /// Rules that look objects up that are not at hand yet.
    pub syncing: usize,
    /// Rules that say that they are switched off.
    pub disabled: usize,
    /// Rules of namespaces that have too many.
    pub over_quota: usize,
    /// Rules of the cluster that have the name of a rule in a file.
    pub shadowed: usize,
}

/// A file: the last version that was good, or the newest one that can be read if none was.
#[derive(Default)]
struct File {
    rules: Vec<(RuleSource, Compiled)>,
    newest: Newest,
    /// What is wrong with the newest version.
    problems: Vec<Problem>,
}

/// The newest version of a file.
#[derive(Default)]
enum Newest {
    /// It is the one whose rules are used.
    #[default]
    Used,
    /// It can be read but not used. It may become usable when the kinds change.
    Refused(Vec<RuleSource>),
    /// It cannot be read.
    Unreadable,
}

/// An object, and what was compiled from it.
struct Held {
    object: Box<Object>,
    compiled: Compiled,
}

#[derive(Default)]
struct Compiled {
    rule: Option<Arc<Rule>>,
    diagnostics: Vec<Diagnostic>,
}

impl Index {
    /// An index without rules, for an engine with these layers. A namespace may have so many rules in the cluster.
    pub fn new(layers: Layers, rules_per_namespace: usize) -> Index {
        Index {
            language: Box::new(ExprEngine),
            layers,
            other_layers: Layers::default(),
            kinds: None,
            files: BTreeMap::new(),
            objects: BTreeMap::new(),
            in_files: HashMap::new(),
            quota: Quota::new(rules_per_namespace),
            rules: BTreeMap::new(),
            feeds: (layers.admission || layers.audit).then(Arc::default),
            starved: BTreeMap::new(),
        }
    }

    /// The same in an instance whose other pods have these layers.
    pub fn beside(self, other_layers: Layers) -> Index {
        Index { other_layers, ..self }
    }

    /// Takes news, in the order in which they came.
    pub fn apply(&mut self, updates: impl IntoIterator<Item = Update>) -> Outcomes {
        let mut touched = BTreeSet::new();
        let mut has_other_kinds = false;
        for update in updates {
            match update {
                Update::Object(id, object) => {
                    touched.extend(self.set_object(&id, object));
                    touched.insert(id);
                }
                Update::Files(files) => {
                    for (path, content) in files {
                        self.set_file(&path, content, &mut touched);
                    }
                }
                Update::Kinds(kinds) => {
                    self.kinds = Some(kinds);
                    has_other_kinds = true;
                    self.compile_all();
                    touched.extend(self.objects.keys().cloned());
                    touched.extend(self.in_files.keys().cloned());
                }
                Update::Feeds(feeds) => {
                    self.feeds = Some(feeds);
                    touched.extend(self.starved.keys().cloned());
                }
                Update::Loaded(_) => {}
            }
        }
        let Some(kinds) = self.kinds.clone() else { return Outcomes::default() };
        let has_other_rules = touched.iter().filter(|id| self.choose(id)).count() > 0;
        let snapshot = (has_other_rules || has_other_kinds).then(|| {
            let rules = RuleSet::new(self.rules.values().cloned().collect());
            let snapshot = Snapshot::new(rules, kinds, self.layers).beside(self.other_layers);
            snapshot.with_starved(self.starved.values().cloned().collect())
        });
        let reports = touched.into_iter().filter(|id| !self.in_files.contains_key(id) || self.objects.contains_key(id));
        let reports = reports.map(|id| {
            let report = self.report(&id);
            (id, report)
        });
        Outcomes { reports: reports.collect(), snapshot }
    }

    /// What is wrong with files, by their paths.
    pub fn problems(&self) -> BTreeMap<PathBuf, Vec<Problem>> {
        let own = self.files.iter().filter(|(_, file)| !file.problems.is_empty());
        let mut problems: BTreeMap<_, _> = own.map(|(path, file)| (path.clone(), file.problems.clone())).collect();
        for (id, paths) in self.in_files.iter().filter(|(_, paths)| paths.len() > 1) {
            let Some(first) = paths.first() else { continue };
            for path in paths.iter().skip(1) {
                let message = format!("`{id}` is in {} too, which comes first: rename one", first.display());
                problems.entry(path.clone()).or_default().push(Problem::of_file(path.display().to_string(), message));
            }
        }
        problems
    }

    /// How many rules there are of each kind of outcome.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { active: self.rules.len(), ..Totals::default() };
        let from_files = self.files.values().flat_map(|file| &file.rules);
        let from_files = from_files.map(|(source, compiled)| match self.starved.contains_key(&source.id) {
            true => RuleState::Syncing,
            false => compiled.state(),
        });
        for state in from_files.chain(self.objects.iter().map(|(id, held)| self.state(id, held))) {
            match state {
                RuleState::Active => {}
                RuleState::Disabled => totals.disabled += 1,
                RuleState::Refused => totals.refused += 1,
                RuleState::Waiting => totals.waiting += 1,
                RuleState::Syncing => totals.syncing += 1,
                RuleState::OverQuota => totals.over_quota += 1,
                RuleState::Shadowed => totals.shadowed += 1,
            }
        }
        totals
    }

    /// The rules of files that look objects up that are not at hand. Those of the cluster have a status that says so.
    pub fn starved_of_files(&self) -> BTreeMap<RuleId, Lack> {
        let of_files = self.starved.iter().filter(|(id, _)| self.in_files.contains_key(id));
        of_files.filter_map(|(id, rule)| Some((id.clone(), self.lack(rule)?))).collect()
    }

    /// How many rules namespaces have in the cluster.
    pub fn population(&self) -> Arc<Population> {
        Arc::clone(self.quota.population())
    }

    /// Whether the kinds are known: without them no rule is in force.
    pub fn has_kinds(&self) -> bool {
        self.kinds.is_some()
    }

    /// Takes an object, or that it is gone. Returns the other rules of which something may have become different by that.
    fn set_object(&mut self, id: &RuleId, object: Option<Box<Object>>) -> Vec<RuleId> {
        let before = self.objects.get(id).map(|held| held.object.created.as_str());
        let others = self.quota.change(id, before, object.as_ref().map(|object| object.created.as_str()));
        let Some(object) = object else {
            self.objects.remove(id);
            return others;
        };
        let compiled = match &object.source {
            Ok(source) => self.compile(source),
            Err(_) => Compiled::default(),
        };
        self.objects.insert(id.clone(), Held { object, compiled });
        others
    }

    fn set_file(&mut self, path: &Path, content: Option<FileContent>, touched: &mut BTreeSet<RuleId>) {
        let before: Vec<RuleId> = self.files.get(path).into_iter().flat_map(File::names).cloned().collect();
        match content {
            None => {
                self.files.remove(path);
            }
            Some(Err(problems)) => {
                let file = self.files.entry(path.to_owned()).or_default();
                (file.newest, file.problems) = (Newest::Unreadable, problems);
            }
            Some(Ok(sources)) => {
                let mut file = self.files.remove(path).unwrap_or_default();
                self.renew(&mut file, sources);
                self.files.insert(path.to_owned(), file);
            }
        }
        for id in &before {
            if let Some(paths) = self.in_files.get_mut(id) {
                paths.remove(path);
                if paths.is_empty() {
                    self.in_files.remove(id);
                }
            }
        }
        touched.extend(before);
        for id in self.files.get(path).into_iter().flat_map(File::names) {
            self.in_files.entry(id.clone()).or_default().insert(path.to_owned());
            touched.insert(id.clone());
        }
    }

    /// Gives a file another version. What was good goes on until the file is good again, or gone.
    fn renew(&self, file: &mut File, sources: Vec<RuleSource>) {
        let rules = sources.into_iter().map(|source| {
            let compiled = self.compile(&source);
            (source, compiled)
        });
        let rules: Vec<_> = rules.collect();
        file.problems = problems_of(&rules);
        let was_good = !file.rules.is_empty() && problems_of(&file.rules).is_empty();
        if file.problems.is_empty() || !was_good {
            (file.rules, file.newest) = (rules, Newest::Used);
        } else {
            file.newest = Newest::Refused(rules.into_iter().map(|(source, _)| source).collect());
        }
    }

    fn compile_all(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        for file in files.values_mut() {
            for (source, compiled) in &mut file.rules {
                *compiled = self.compile(source);
            }
            match std::mem::take(&mut file.newest) {
                Newest::Used => file.problems = problems_of(&file.rules),
                Newest::Refused(sources) => self.renew(file, sources),
                Newest::Unreadable => file.newest = Newest::Unreadable,
            }
        }
        self.files = files;
        let mut objects = std::mem::take(&mut self.objects);
        for held in objects.values_mut() {
            if let Ok(source) = &held.object.source {
                held.compiled = self.compile(source);
            }
        }
        self.objects = objects;
    }

    fn compile(&self, source: &RuleSource) -> Compiled {
        let Some(kinds) = &self.kinds else { return Compiled::default() };
        let (rule, diagnostics) = compile_rule(source, kinds, &*self.language);
        Compiled { rule: rule.map(Arc::new), diagnostics }
    }

    /// Puts the rule that a name stands for into the set, if the objects are at hand that it looks up. Until they are, the version of it
    /// that was there before stays. Returns whether that changed the set, or what it waits for.
    fn choose(&mut self, id: &RuleId) -> bool {
        let chosen = match self.file_of(id) {
            Some(path) => self.files.get(path).and_then(|file| file.rule(id)),
            None => {
                let held = self.objects.get(id).filter(|held| !self.quota.is_over(id, &held.object.created));
                held.and_then(|held| held.compiled.rule.clone())
            }
        };
        let is_starved = chosen.as_ref().is_some_and(|rule| self.lack(rule).is_some());
        let was_starved = if is_starved { None } else { self.starved.remove(id) };
        let changes = match chosen {
            Some(rule) => {
                let rules = if is_starved { &mut self.starved } else { &mut self.rules };
                let before = rules.insert(id.clone(), Arc::clone(&rule));
                !before.is_some_and(|before| Arc::ptr_eq(&before, &rule))
            }
            None => self.rules.remove(id).is_some(),
        };
        changes || was_starved.is_some()
    }

    /// What a rule looks up and is not at hand.
    fn lack(&self, rule: &Rule) -> Option<Lack> {
        // In split mode other pods ask the rule, and nothing is watched here for it.
        let is_asked = rule.fronts.iter().any(|front| self.layers.run(*front));
        self.feeds.as_ref().filter(|_| is_asked)?.lack(rule)
    }

    /// The file whose rule a name stands for: the first of those that have one.
    fn file_of(&self, id: &RuleId) -> Option<&Path> {
        self.in_files.get(id)?.first().map(PathBuf::as_path)
    }

    /// What [`Index::outcome`] would say, without the words.
    fn state(&self, id: &RuleId, held: &Held) -> RuleState {
        match &held.object.source {
            _ if self.in_files.contains_key(id) => RuleState::Shadowed,
            _ if self.quota.is_over(id, &held.object.created) => RuleState::OverQuota,
            Err(_) => RuleState::Refused,
            Ok(_) if self.starved.contains_key(id) => RuleState::Syncing,
            Ok(_) => held.compiled.state(),
        }
    }

    fn outcome(&self, id: &RuleId, held: &Held) -> Outcome {
        match (self.file_of(id), &held.object.source) {
            (Some(path), _) => Outcome::Shadowed(path.to_owned()),
            (None, _) if self.quota.is_over(id, &held.object.created) => Outcome::OverQuota(self.quota.most()),
            (None, Err(diagnostics)) => Outcome::Refused(diagnostics.clone()),
            (None, Ok(_)) => match self.starved.get(id).and_then(|rule| self.lack(rule)) {
                Some(lack) => Outcome::Syncing(lack),
                None => held.compiled.outcome(),
            },
        }
    }

    fn report(&self, id: &RuleId) -> Option<Report> {
        let held = self.objects.get(id)?;
        let outcome = self.outcome(id, held);
        let Held { object, compiled } = held;
        let rule = compiled.rule.as_deref();
        let warnings = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.level == Level::Warning).cloned();
        Some(Report {
            uid: object.uid.clone(),
            generation: object.generation,
            mode: rule.map(|rule| rule.fronts.clone()).unwrap_or_default(),
            active_on: match (&outcome, rule) {
                (Outcome::Active, Some(rule)) => kinds_of(rule),
                _ => Vec::new(),
            },
            warnings: warnings.collect(),
            outcome,
        })
    }
}

impl File {
    fn names(&self) -> impl Iterator<Item = &RuleId> {
        self.rules.iter().map(|(source, _)| &source.id)
    }

    fn rule(&self, id: &RuleId) -> Option<Arc<Rule>> {
        self.rules.iter().find(|(source, _)| source.id == *id)?.1.rule.clone()
    }
}

impl Compiled {
    fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.level == Level::Error)
    }

    fn state(&self) -> RuleState {
        if self.errors().next().is_none() {
            // The compiler leaves out what is switched off, and says nothing about it.
            return if self.rule.is_some() { RuleState::Active } else { RuleState::Disabled };
        }
        if self.errors().all(|error| error.awaits_kind) { RuleState::Waiting } else { RuleState::Refused }
    }

    fn outcome(&self) -> Outcome {
        let errors = || self.errors().cloned().collect();
        match self.state() {
            RuleState::Active => Outcome::Active,
            RuleState::Disabled => Outcome::Disabled,
            RuleState::Waiting => Outcome::Waiting(errors()),
            RuleState::Refused | RuleState::Syncing | RuleState::OverQuota | RuleState::Shadowed => {
                Outcome::Refused(errors())
            }
        }
    }
}

/// What is wrong with the rules of a file. A kind that is not served is not: it may come.
fn problems_of(rules: &[(RuleSource, Compiled)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for (source, compiled) in rules {
        if !names.insert(&source.id) {
            let message = format!("another rule of this file is called `{}` too: rename one", source.id);
            problems.push(problem_of(source, message));
        }
        let errors = compiled.errors().filter(|error| !error.awaits_kind);
        problems.extend(errors.map(|error| place(error, None)));
    }
    problems
}

/// The kinds that a rule judges, as people write them, each in its preferred version unless the rule names others.
fn kinds_of(rule: &Rule) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for judged in &rule.judged {
        let preferred = judged.kind.versions.first().into_iter();
        let versions: Vec<&String> =
            if judged.versions.is_empty() { preferred.collect() } else { judged.versions.iter().collect() };
        for version in versions {
            let group = if judged.kind.group.is_empty() { String::new() } else { format!("{}/", judged.kind.group) };
            let name = format!("{group}{version}/{}", judged.kind.kind);
            // A kind with several pod templates is judged once for each.
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

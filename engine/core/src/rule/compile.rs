//! From the text of rules to rules that can be evaluated. A bad rule is a diagnostic and affects no other.

mod actions;
mod connected;
mod containers;
mod images;
mod judged;
mod lookups;
mod namesakes;
#[cfg(test)]
mod natural;
mod overridden;
mod references;
mod resources;
mod rewritten;
mod spared;
mod substituted;
mod unknown;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use portal_crds::RuleSpec;
use portal_expr::{Error, Facts, Moment, Phase, Schema, Segment, SourceLine};

use crate::{
    context::{self, CONTAINER, Judged, METADATA, OBJECT, REQUEST, SECURITY_CONTEXT, SPEC},
    event::{Front, Operation, WHOLE_SUBRESOURCES},
    kinds::{Kind, Kinds},
    language::{Expression, ExpressionEngine, Together, guard},
    rule::{
        JudgedKind, RequestReads, Rule, RuleSet, comment,
        diagnostic::{Diagnostic, Excerpt, Level, Step},
        matching::{Matching, parse_until},
        message::{self, MAX_EXPRESSIONS, Message, MessageError},
        source::RuleSource,
    },
};

/// Compiles rules. Of rules with the same name the first one stays, and the others are errors.
pub fn compile(sources: &[RuleSource], kinds: &Kinds, engine: &dyn ExpressionEngine) -> (RuleSet, Vec<Diagnostic>) {
    let mut rules = Vec::new();
    let mut diagnostics = Vec::new();
    let mut names = HashSet::new();
    for source in sources {
        if !names.insert(&source.id) {
            let mut compiler = Compiler::new(source, kinds, engine);
            compiler.error(&[], format!("another rule is called `{}` too: rename one", source.id));
            diagnostics.append(&mut compiler.diagnostics);
            continue;
        }
        let (rule, mut found) = compile_rule(source, kinds, engine);
        rules.extend(rule.map(Arc::new));
        diagnostics.append(&mut found);
    }
    (RuleSet::new(rules), diagnostics)
}

/// Compiles one rule. Nothing comes of a rule that has an error or is switched off.
pub fn compile_rule(
    source: &RuleSource,
    kinds: &Kinds,
    engine: &dyn ExpressionEngine,
) -> (Option<Rule>, Vec<Diagnostic>) {
    let mut compiler = Compiler::new(source, kinds, engine);
    // Whoever writes a rule that the compiler has a bug with must not stop every engine by it.
    let rule = guard(|| compiler.compile()).unwrap_or_else(|panic| {
        compiler.error(&["rule"], format!("compiling the rule panicked, which is a bug in Portal: {panic}"));
        None
    });
    let rule = rule.filter(|_| source.spec.enabled && !compiler.has_error());
    (rule, compiler.diagnostics)
}

/// What is wrong with exceptions that have ended: they except nothing any more, and whoever reads the rule may not notice.
pub fn ended_exceptions(source: &RuleSource, now: Moment) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (index, exception) in source.spec.exceptions.iter().enumerate() {
        let Some(until) = &exception.until else { continue };
        if !parse_until(until).is_ok_and(|end| end <= now) {
            continue;
        }
        let field = [Step::Field("exceptions".to_owned()), Step::Index(index), Step::Field("until".to_owned())];
        diagnostics.push(Diagnostic {
            rule: Some(source.id.clone()),
            origin: source.origin.clone(),
            level: Level::Error,
            field: source.base.iter().cloned().chain(field).collect(),
            message: format!("the exception ended on {until}: remove it, or give it a later date"),
            excerpt: None,
            awaits_kind: false,
        });
    }
    diagnostics
}

struct Compiler<'a> {
    source: &'a RuleSource,
    spec: &'a RuleSpec,
    kinds: &'a Kinds,
    engine: &'a dyn ExpressionEngine,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Compiler<'a> {
    fn new(source: &'a RuleSource, kinds: &'a Kinds, engine: &'a dyn ExpressionEngine) -> Compiler<'a> {
        Compiler { source, spec: &source.spec, kinds, engine, diagnostics: Vec::new() }
    }

    fn compile(&mut self) -> Option<Rule> {
        let mut judged = self.judged();
        self.check_actions();
        let matching = match self.matching() {
            Ok(matching) => Some(matching),
            // What is wrong with an exception is told already, with its place.
            Err(_) if self.has_error() => None,
            Err(message) => {
                self.error(&["match"], message);
                None
            }
        };
        if judged.is_empty() {
            return None;
        }
        let mut schema = self.schema(&judged, judged.iter().all(|judged| judged.template.is_some()));
        schema.note_compared(true);
        let (mut expression, inserted) = self.expression(&schema, &judged)?;
        schema.note_compared(false);
        let compared = expression.take_compared();
        let facts = expression.facts();
        let per_container = facts.reads_root(CONTAINER);
        let reads_object =
            [OBJECT, METADATA, CONTAINER, SPEC, SECURITY_CONTEXT].into_iter().any(|root| facts.reads_root(root));
        let needs_object = reads_object || self.spec.matching.label_selector.is_some();
        let request = request_reads(facts);
        let reads_request = request != RequestReads::Nothing;
        let reads_pods_own = judged::reads_pods_own(facts);
        if !facts.reads_root(OBJECT) && !reads_request && !reads_pods_own {
            self.expand(&mut judged);
        } else if facts.reads_root(OBJECT) || reads_pods_own || reads_object_of_request(facts) {
            self.warn_of_controllers(facts, &schema, &judged);
        }
        self.check_resources(facts);
        self.check_images(&compared);
        self.check_connected(facts, &judged);
        self.warn_of_other_containers(facts, &schema, &judged);
        self.warn_of_overridden(facts, &schema, &judged);
        self.warn_of_substituted(facts, &schema);
        self.warn_of_namesakes(&*expression);
        let lookups = self.lookups(&*expression);
        let message = self.message(&schema, &*expression, inserted, per_container);
        let reads = |expression: &dyn Expression| expression.facts().reads_root(REQUEST);
        let is_told_request = message.as_ref().is_some_and(|message| message.expressions().any(reads));
        let fronts = match (reads_request, is_told_request) {
            (true, _) => self.fronts(Some("rule")),
            (false, true) => self.fronts(Some("message")),
            (false, false) => self.fronts(None),
        };
        let uses_now = facts.now.is_some();
        if let Some(place) = facts.now.filter(|_| fronts.contains(&Front::Audit)) {
            let message =
                "`now()` changes without an event: audit asks again only when the object changes or on a resync";
            self.add_at(Level::Warning, place, message.to_owned());
        }
        self.warn_of_unreachable(&judged);
        Some(Rule {
            id: self.source.id.clone(),
            version: self.source.version(),
            category: self.source.category.clone(),
            severity: self.spec.severity,
            enforcement: self.spec.enforcement_action,
            fronts,
            actions: self.actions(),
            judged,
            request,
            names_request: reads_request || is_told_request,
            uses_now,
            lookups,
            matching: matching?,
            per_container,
            needs_object,
            expression,
            message,
            reads: OnceLock::new(),
        })
    }

    fn matching(&mut self) -> Result<Matching, String> {
        let (matching, own) = (&self.spec.matching, self.source.id.namespace.clone());
        let namespace = self.kinds.get("", "Namespace");
        if matching.namespace_selector.is_some() && namespace.is_none() {
            let message = "no kind `Namespace` is served in the core group".to_owned();
            self.missing(&steps(&["match", "namespaceSelector"]), Level::Error, message);
        }
        Matching::new(matching, &self.spec.exceptions, own, namespace)
    }

    /// What the rule may name.
    fn schema(&self, judged: &[JudgedKind], has_pods: bool) -> Schema {
        let kinds: Vec<(&Kind, &[String])> = judged.iter().map(|judged| (&*judged.kind, &*judged.versions)).collect();
        let has_body_of_its_own = |name: &String| !WHOLE_SUBRESOURCES.contains(&name.as_str());
        let has_other_bodies = self.spec.matching.subresources.iter().any(has_body_of_its_own);
        let operations: Vec<Operation> = self.spec.matching.operations.iter().map(|name| (*name).into()).collect();
        let subresources = &self.spec.matching.subresources;
        // Few texts have its letter that is seldom, which is found faster.
        let names_request = |text: &String| text.as_bytes().contains(&b'q') && text.contains("request");
        let is_pod = |judged: &JudgedKind| judged.kind.group.is_empty() && judged.kind.kind == "Pod";
        let sees_pods = judged.iter().any(is_pod) || self.spec.rule.contains("pods");
        let names_request = std::iter::once(&self.spec.rule).chain(&self.spec.message).any(names_request);
        let operations = &operations;
        context::schema(Judged {
            kinds: &kinds,
            has_other_bodies,
            has_pods,
            sees_pods,
            operations,
            subresources,
            names_request,
        })
    }

    /// The rule's expression, and those of its message that can be compiled together with it.
    fn expression(&mut self, schema: &Schema, judged: &[JudgedKind]) -> Option<Together> {
        let inserted = self.spec.message.as_deref().map(message::expressions).unwrap_or_default();
        match self.engine.compile_condition_and(&self.spec.rule, &inserted, schema) {
            Ok((expression, inserted)) => {
                // Whoever forbids a whole kind says so with a message, and knows that the answer is always the same.
                let is_meant = self.spec.rule.trim() == "true" && self.spec.message.is_some();
                for warning in expression.warnings().iter().filter(|_| !is_meant) {
                    self.add_at(Level::Warning, (warning.line, warning.column), warning.message.clone());
                }
                Some((expression, inserted))
            }
            Err(error) => {
                // What is wrong may be that the kinds have no pods, and not the name.
                let without = judged.iter().find(|judged| judged.template.is_none());
                let without = without
                    .filter(|_| self.engine.compile_condition(&self.spec.rule, &self.schema(judged, true)).is_ok());
                let hint = without.map(|judged| no_pods(&judged.kind));
                self.expression_error(&["rule"], error, hint);
                self.warn_of_comment();
                None
            }
        }
    }

    /// Says what may have become of the rest of a rule that ends too early.
    fn warn_of_comment(&mut self) {
        let Some(diagnostic) = self.diagnostics.last_mut() else { return };
        let Some(excerpt) = diagnostic.excerpt.as_mut().filter(|excerpt| excerpt.ends_early) else { return };
        if comment::expects_more(&self.spec.rule) {
            diagnostic.message.push_str(&format!(": {}", comment::GUESS));
            excerpt.text.push_str(&format!("\n{}", comment::GUESS));
        }
    }

    /// Where the rule runs. `reader` is what reads `request`, if something does.
    fn fronts(&mut self, reader: Option<&str>) -> Vec<Front> {
        let Some(fronts) = &self.spec.mode else {
            return if reader.is_some() { vec![Front::Admission] } else { vec![Front::Admission, Front::Audit] };
        };
        if let Some(reader) = reader.filter(|_| fronts.contains(&Front::Audit)) {
            let message = format!(
                "the {reader} reads `request`, which only admission has: remove `audit` from mode, or `request` from the {reader}"
            );
            self.error(&["mode"], message);
        }
        fronts.clone()
    }

    fn message(
        &mut self,
        schema: &Schema,
        rule: &dyn Expression,
        inserted: Vec<Option<Box<dyn Expression>>>,
        per_container: bool,
    ) -> Option<Message> {
        let text = self.spec.message.as_deref()?;
        match Message::compile(text, inserted, rule.declarations(), schema, self.engine) {
            Ok(message) => {
                let reads_container = message.expressions().any(|expression| expression.facts().reads_root(CONTAINER));
                if reads_container && !per_container {
                    let message =
                        "`container` has a value only if the rule reads it, because only then it runs per container";
                    self.error(&["message"], message.to_owned());
                }
                if message.looks_up() {
                    let message =
                        "a message cannot look anything up: write `let x = …;` in the rule, and `x` in the message";
                    self.error(&["message"], message.to_owned());
                }
                if let Some(unfilled) = message.unfilled(rule.declarations(), schema, self.engine) {
                    self.warning(&["message"], unfilled);
                }
                Some(message)
            }
            Err(MessageError::Open(offset)) => {
                self.error(&["message"], format!("`{{{{` at character {} is not closed by `}}}}`", offset + 1));
                None
            }
            Err(MessageError::Crowded) => {
                let message = format!("a message can have up to {MAX_EXPRESSIONS} expressions: make fewer of them");
                self.error(&["message"], message);
                None
            }
            Err(MessageError::Expression(error)) => {
                self.expression_error(&["message"], error, None);
                None
            }
        }
    }

    fn warn_of_unreachable(&mut self, judged: &[JudgedKind]) {
        let matching = &self.spec.matching;
        let names_namespaces = if matching.namespaces.as_ref().is_some_and(|globs| !globs.include.is_empty()) {
            Some("namespaces")
        } else {
            matching.namespace_selector.as_ref().map(|_| "namespaceSelector")
        };
        for judged in judged.iter().filter(|judged| !judged.kind.namespaced && judged.kind.kind != "Namespace") {
            if let Some(field) = names_namespaces {
                let kind = &judged.kind.kind;
                let message = format!("`{kind}` is in no namespace, so a rule that names namespaces never judges one");
                self.warning(&["match", field], message);
            }
        }
        let excluded = matching.namespaces.as_ref().filter(|globs| {
            !globs.include.is_empty()
                && globs
                    .include
                    .iter()
                    .all(|name| globs.exclude.iter().any(|pattern| pattern == name || pattern == "*"))
        });
        if excluded.is_some() {
            self.warning(
                &["match", "namespaces"],
                "everything that is included is excluded too: the rule judges nothing".to_owned(),
            );
        }
    }

    fn has_error(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.level == Level::Error)
    }

    fn expression_error(&mut self, field: &[&str], error: Error, hint: Option<String>) {
        let mut text = error.to_string();
        if let Some(hint) = &hint {
            text.push_str(&format!("\n{hint}"));
        }
        self.error(field, hint.unwrap_or_else(|| error.message.clone()));
        if let Some(diagnostic) = self.diagnostics.last_mut() {
            let ends_early = field == ["rule"] && comment::ends_early(&self.spec.rule, &error);
            diagnostic.excerpt = Some(Excerpt { line: error.line, column: error.column, text, ends_early });
        }
    }

    /// Says something about a place in the rule's expression.
    fn add_at(&mut self, level: Level, (line, column): (u32, u32), message: String) {
        let shown = self.spec.rule.lines().nth(line as usize - 1).unwrap_or_default();
        // As the language shows its own errors.
        let source_line = SourceLine::of(shown, column);
        let error = Error { phase: Phase::Compile, message, line, column, source_line };
        let text = error.to_string();
        self.add(&steps(&["rule"]), level, error.message);
        if let Some(diagnostic) = self.diagnostics.last_mut() {
            diagnostic.excerpt = Some(Excerpt { line, column, text, ends_early: false });
        }
    }

    /// The line and the column of a place in the rule's expression.
    fn place(&self, offset: usize) -> (u32, u32) {
        let before = self.spec.rule.get(..offset).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        (1 + before.matches('\n').count() as u32, 1 + line.chars().count() as u32)
    }

    /// Says that a kind is not served, or not yet.
    fn missing(&mut self, field: &[Step], level: Level, message: String) {
        self.add(field, level, message);
        if let Some(diagnostic) = self.diagnostics.last_mut() {
            diagnostic.awaits_kind = true;
        }
    }

    fn error(&mut self, field: &[&str], message: String) {
        self.add(&steps(field), Level::Error, message);
    }

    fn warning(&mut self, field: &[&str], message: String) {
        self.add(&steps(field), Level::Warning, message);
    }

    fn add(&mut self, field: &[Step], level: Level, message: String) {
        self.diagnostics.push(Diagnostic {
            rule: Some(self.source.id.clone()),
            origin: self.source.origin.clone(),
            level,
            field: self.source.base.iter().chain(field).cloned().collect(),
            message,
            excerpt: None,
            awaits_kind: false,
        });
    }
}

fn request_reads(facts: &Facts) -> RequestReads {
    let reads = facts.reads.iter().filter(|read| read.root == REQUEST).map(|read| read.path.first());
    reads.fold(RequestReads::Nothing, |known, field| match (known, field) {
        (RequestReads::Everything, _) => known,
        (_, Some(Segment::Field(name))) if name != "userInfo" && name != "oldObject" => RequestReads::Creation,
        _ => RequestReads::Everything,
    })
}

/// What is wrong with a rule on pods for a kind that has none.
fn no_pods(kind: &Kind) -> String {
    let way_out = match Kinds::builtin().get(&kind.group, &kind.kind) {
        Some(_) => "use `object`",
        None => "use `object`, or say where its pod template is: `podTemplate: spec.template`",
    };
    format!("`container`, `spec` and `securityContext` are those of a pod, and `{}` has none: {way_out}", kind.kind)
}

fn reads_object_of_request(facts: &Facts) -> bool {
    let is_object = |segment: &Segment| matches!(segment, Segment::Field(name) if name == "object");
    facts.reads.iter().any(|read| read.root == REQUEST && read.path.first().is_some_and(is_object))
}

fn steps(field: &[&str]) -> Vec<Step> {
    field.iter().map(|name| Step::Field((*name).to_owned())).collect()
}

//! What tests of rules need: rules and objects as YAML, verdicts as text.

use std::fmt::Write as _;
use std::sync::Arc;

use portal_document::{Document, Node, Options, from_yaml};
use portal_expr::{Limits, Moment};

use crate::{
    evaluate::evaluate,
    event::{Event, Front, Operation, Subject},
    kinds::{Kind, Kinds},
    language::{ExprEngine, ExpressionEngine},
    lookup::{Answer, Lookup, Query},
    object::Object,
    rule::{
        RuleSet,
        compile::compile,
        diagnostic::Diagnostic,
        load::load,
        source::{Origin, RuleSource},
    },
};

/// A cluster of these objects.
pub(crate) struct Objects(pub(crate) Vec<Arc<Object<'static>>>);

pub(crate) fn documents(yaml: &str) -> Vec<Document> {
    from_yaml(yaml, &Options::default()).unwrap().into_iter().map(|found| found.document).collect()
}

/// Loads and compiles rules. What is wrong comes back as lines.
pub(crate) fn rules(yaml: &str) -> (RuleSet, Vec<String>) {
    rules_with(yaml, Kinds::builtin(), &ExprEngine)
}

/// The same on an API server that serves these kinds, in another language.
pub(crate) fn rules_with(yaml: &str, kinds: &Kinds, engine: &dyn ExpressionEngine) -> (RuleSet, Vec<String>) {
    let mut sources: Vec<RuleSource> = Vec::new();
    let mut problems: Vec<Diagnostic> = Vec::new();
    for document in &documents(yaml) {
        let origin = Origin::File { path: "rules.yaml".to_owned(), line: 1 };
        match load(document.root(), origin, Vec::new()) {
            Ok(source) => sources.push(source),
            Err(mut found) => problems.append(&mut found),
        }
    }
    let (rules, mut found) = compile(&sources, kinds, engine);
    problems.append(&mut found);
    (rules, problems.iter().map(|problem| format!("{:?}: {problem}", problem.level)).collect())
}

/// The objects of a text.
pub(crate) fn objects(yaml: &str) -> Vec<Arc<Object<'static>>> {
    let documents = documents(yaml);
    let roots = documents.iter().map(Document::root).filter(|root| !root.is_null());
    let object = |root| Subject::of(root, kind_of(root), gvk(root).1, "default").unwrap().into_object();
    roots.map(|root| Arc::new(object(root))).collect()
}

/// The creation of an object.
pub(crate) fn creation<'a>(object: &'a Object<'_>) -> Event<'a> {
    let root = object.root();
    let (version, kind) = (gvk(root).1, kind_of(root));
    let now = Moment::new(1_800_000_000, 0);
    Event::of(object.visible(), kind, version, Operation::Create, Some(Front::Admission), now)
}

/// Judges the creation of an object.
pub(crate) fn judge(rules: &RuleSet, object: &Object<'_>, cluster: &Objects) -> String {
    let evaluation = evaluate(rules, cluster, &creation(object), &Limits::default());
    let mut text = String::new();
    for violation in &evaluation.violations {
        let saw = violation.saw.as_deref().unwrap_or("nothing");
        let _ = writeln!(text, "{}: {} ({saw})", violation.rule, violation.message);
    }
    for failure in &evaluation.failures {
        let _ = writeln!(text, "{} failed: {}", failure.rule, failure.error);
    }
    for query in &evaluation.reads {
        let _ = writeln!(text, "asked for {} in {:?}: {:?}", query.kind.plural, query.namespace, query.filter);
    }
    text.trim_end().to_owned()
}

fn kind_of(object: Node<'_>) -> &'static Kind {
    let (group, _, kind) = gvk(object);
    Kinds::builtin().get(group, kind).unwrap()
}

fn gvk(object: Node<'_>) -> (&str, &str, &str) {
    let text = |name| object.get_str(name).and_then(Node::as_str).unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    (group, version, text("kind"))
}

impl Lookup for Objects {
    fn answer(&self, query: &Query) -> Answer {
        let is_selected = |object: &&Arc<Object<'static>>| {
            let root = object.root();
            let metadata = root.get_str("metadata");
            let text = |name| metadata.and_then(|metadata| metadata.get_str(name)).and_then(Node::as_str);
            query.selects(kind_of(root), root, text("name").unwrap_or_default(), text("namespace"))
        };
        Answer::Found(self.0.iter().filter(is_selected).cloned().collect())
    }
}

//! Rules from files, and the kinds that they may name.

use std::path::{Path, PathBuf};

use portal_core::{
    kinds::{Kind, Kinds},
    language::ExprEngine,
    rule::{
        RuleSet,
        compile::{compile, ended_exceptions},
        diagnostic::{Diagnostic, Level, Step},
        load,
        source::{Origin, RuleSource},
    },
};
use portal_document::Node;

use crate::check::files::{self, Problem};
use crate::clock;

/// Rules that can be used, and what is wrong with the others.
pub(crate) struct Loaded {
    pub(crate) rules: RuleSet,
    pub(crate) kinds: Kinds,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// For each of `errors`, the name of the rule that has it, if it is a rule with a name.
    pub(crate) names: Vec<Option<String>>,
}

/// Loads rules. The kinds are those of Kubernetes, and of the custom resources that the files define.
pub(crate) fn load(rules: &[PathBuf], files: &[PathBuf], cluster: &[PathBuf]) -> Loaded {
    let mut problems = Vec::new();
    let mut sources: Vec<RuleSource> = Vec::new();
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    let paths = files::expand(rules, &mut problems);
    for path in &paths {
        read_rules(path, &mut sources, &mut diagnostics, &mut problems);
    }
    let (mut rule_set, mut found) = compile(&sources, Kinds::builtin(), &ExprEngine);
    let mut kinds = Kinds::builtin().clone();
    if found.iter().any(|diagnostic| diagnostic.awaits_kind) {
        let everywhere: Vec<PathBuf> = rules.iter().chain(files).chain(cluster).cloned().collect();
        kinds = kinds.with(custom_kinds(&files::expand(&everywhere, &mut Vec::new())));
        (rule_set, found) = compile(&sources, &kinds, &ExprEngine);
    }
    diagnostics.append(&mut found);
    diagnostics.extend(sources.iter().flat_map(|source| ended_exceptions(source, clock::now())));
    let mut names = vec![None; problems.len()];
    let mut warnings = Vec::new();
    for diagnostic in diagnostics {
        let problem = place(&diagnostic);
        match diagnostic.level {
            Level::Error => {
                names.push(diagnostic.rule.map(|rule| rule.to_string()));
                problems.push(problem);
            }
            Level::Warning => warnings.push(problem),
        }
    }
    Loaded { rules: rule_set, kinds, errors: problems, warnings, names }
}

fn read_rules(
    path: &Path,
    sources: &mut Vec<RuleSource>,
    diagnostics: &mut Vec<Diagnostic>,
    problems: &mut Vec<Problem>,
) {
    let pieces = match files::read(path, usize::MAX) {
        Ok(pieces) => pieces,
        Err(problem) => return problems.push(problem),
    };
    for piece in pieces {
        let (documents, mut damaged) = piece.documents();
        if documents.is_empty() && damaged.is_empty() {
            problems.push(piece.empty("rule"));
        }
        problems.append(&mut damaged);
        for placed in &documents {
            for item in files::items(placed.document.root()) {
                let object = match &item.content {
                    Ok(content) => content.root(),
                    Err(error) => {
                        problems.push(piece.problem(Some(placed.line), None, error.clone()));
                        continue;
                    }
                };
                // Custom resource definitions may lie beside the rules that name them.
                if !load::is_rule(object) && object.get_str("kind").is_some() {
                    continue;
                }
                let origin = Origin::File { path: piece.file.to_string(), line: placed.line };
                let base = item.path.iter().flat_map(|index| [Step::Field("items".to_owned()), Step::Index(*index)]);
                match load::load(object, origin, base.collect()) {
                    Ok(source) => sources.push(source),
                    Err(mut found) => diagnostics.append(&mut found),
                }
            }
        }
    }
}

/// The kinds that custom resource definitions in files define.
fn custom_kinds(paths: &[PathBuf]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let pieces = paths.iter().filter_map(|path| files::read(path, usize::MAX).ok()).flatten();
    for piece in pieces.filter(|piece| piece.mentions("CustomResourceDefinition")) {
        for placed in piece.documents().0 {
            let items = files::items(placed.document.root());
            kinds.extend(items.iter().filter_map(|item| custom_kind(item.object()?)));
        }
    }
    kinds
}

fn custom_kind(object: Node<'_>) -> Option<Kind> {
    let text = |node: Node<'_>, name: &str| node.get_str(name).and_then(Node::as_str).map(str::to_owned);
    if text(object, "kind")? != "CustomResourceDefinition" {
        return None;
    }
    let spec = object.get_str("spec")?;
    let names = spec.get_str("names")?;
    let versions = spec.get_str("versions")?.as_array()?;
    let served = versions.iter().filter(|version| version.get_str("served").and_then(Node::as_bool) != Some(false));
    let subresources = versions.iter().filter_map(|version| version.get_str("subresources")).flat_map(|subresources| {
        ["status", "scale"].into_iter().filter(move |name| subresources.get_str(name).is_some())
    });
    Some(Kind {
        group: text(spec, "group")?,
        kind: text(names, "kind")?,
        plural: text(names, "plural")?,
        versions: served.filter_map(|version| text(version, "name")).collect(),
        namespaced: text(spec, "scope").as_deref() == Some("Namespaced"),
        subresources: subresources.map(str::to_owned).collect(),
    })
}

/// A diagnostic with its place. It reads the file again, which happens for mistakes only.
fn place(diagnostic: &Diagnostic) -> Problem {
    let message = diagnostic.to_string();
    match &diagnostic.origin {
        Origin::Cluster { uid } => Problem { file: uid.clone(), line: None, column: None, message },
        Origin::File { path, line } => {
            let at = files::locate(Path::new(path), *line, &diagnostic.document_steps());
            let (line, column) = at.map_or((*line, None), |(line, column)| (line, Some(column)));
            Problem { file: path.clone(), line: Some(line), column, message }
        }
    }
}

//! Rules from files, and the kinds that they may name.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use portal_core::{
    kinds::{Assumed, Kind, Kinds},
    language::ExprEngine,
    manifest::{Manifest, Problem, items},
    rule::{
        RuleSet,
        compile::{compile, ended_exceptions},
        diagnostic::Level,
        file,
        source::{Origin, RuleSource},
    },
};
use portal_document::{Interning, Node};

use crate::check::files;
use crate::clock;

/// Rules that can be used, and what is wrong with the others.
pub(crate) struct Loaded {
    pub(crate) rules: RuleSet,
    pub(crate) kinds: Kinds,
    /// What the rules name although nothing defines it.
    pub(crate) assumed: BTreeSet<Assumed>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

/// Loads rules. The kinds are those of Kubernetes and of Portal, of the custom resources that the files define, and what rules name
/// although nothing defines it.
pub(crate) fn load(rules: &[PathBuf], files: &[PathBuf], cluster: &[PathBuf]) -> Loaded {
    let mut errors = Vec::new();
    let mut sources: Vec<RuleSource> = Vec::new();
    let mut manifests: HashMap<String, Manifest> = HashMap::new();
    for path in files::expand(rules, &mut errors) {
        let manifest = match files::read(&path) {
            Ok(manifest) => manifest,
            Err(problem) => {
                errors.push(problem);
                continue;
            }
        };
        let mut file = file::read(&manifest);
        errors.extend(file.is_empty.then(|| files::empty(&manifest, "rule")));
        errors.append(&mut file.problems);
        sources.append(&mut file.sources);
        manifests.insert(manifest.file().to_owned(), manifest);
    }
    let mut kinds = Kinds::builtin().with(own_kinds());
    let mut assumed = BTreeSet::new();
    let (mut rule_set, mut diagnostics) = compile(&sources, &kinds, &ExprEngine);
    if diagnostics.iter().any(|diagnostic| diagnostic.awaits_kind) {
        kinds = kinds.with(definitions(&[rules, files, cluster]));
        let named = sources.iter().flat_map(|source| &source.spec.matching.gvk);
        (kinds, assumed) = kinds.assuming(named);
        (rule_set, diagnostics) = compile(&sources, &kinds, &ExprEngine);
    }
    diagnostics.extend(sources.iter().flat_map(|source| ended_exceptions(source, clock::now())));
    let mut warnings = Vec::new();
    for diagnostic in diagnostics {
        let manifest = match &diagnostic.origin {
            Origin::File { path, .. } => manifests.get(path),
            Origin::Cluster { .. } => None,
        };
        let problem = file::place(&diagnostic, manifest);
        match diagnostic.level {
            Level::Error => errors.push(problem),
            Level::Warning => warnings.push(problem),
        }
    }
    Loaded { rules: rule_set, kinds, assumed, errors, warnings }
}

/// The kinds that custom resource definitions in files and folders define.
pub(crate) fn definitions(paths: &[&[PathBuf]]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let paths = files::expand(&paths.concat(), &mut Vec::new());
    let manifests = paths.iter().filter_map(|path| files::read(path).ok());
    for manifest in manifests.filter(|manifest| manifest.mentions("CustomResourceDefinition")) {
        for placed in manifest.documents(Interning::LookUpOnly).0 {
            let items = items(placed.document.root());
            kinds.extend(items.iter().filter_map(|item| custom_kind(item.object()?)));
        }
    }
    kinds
}

/// The kinds of Portal itself: a cluster that has rules serves them.
fn own_kinds() -> impl Iterator<Item = Kind> {
    portal_crds::definitions().into_iter().map(|definition| definition.spec).map(|spec| Kind {
        group: spec.group,
        kind: spec.names.kind,
        plural: spec.names.plural,
        versions: spec.versions.into_iter().map(|version| version.name).collect(),
        namespaced: spec.scope == "Namespaced",
        subresources: vec!["status".to_owned()],
    })
}

/// The kind that an object defines, if it is a definition.
pub(crate) fn custom_kind(object: Node<'_>) -> Option<Kind> {
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

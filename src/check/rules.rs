//! Rules from files, and the kinds that they may name.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use kube::Resource;
use portal_core::{
    kinds::{Assumed, Kind, Kinds},
    language::ExprEngine,
    manifest::{Manifest, Problem, items},
    rule::{
        RuleSet,
        compile::{compile, ended_exceptions},
        diagnostic::Level,
        file::{self, HOW_TO_BEGIN, Other},
        source::{Origin, RuleSource},
    },
};
use portal_crds::{PortalClusterRule, PortalInstance, PortalRule};
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

/// How many kinds are named of what is there instead of rules.
const MAX_OTHERS: usize = 3;

/// What a rule can wait for, if the kind that it names is neither served nor defined.
const HOW_TO_DEFINE: &str =
    "install its CustomResourceDefinition in the cluster, or check the definition along with the files";

/// Loads rules. The kinds are those of Portal and those that a cluster serves, or else those of Kubernetes; those of the custom resources
/// that the files define; and what rules name although nothing defines it.
pub(crate) fn load(rules: &[PathBuf], files: &[PathBuf], cluster: &[PathBuf], served: Option<&Kinds>) -> Loaded {
    let mut errors = Vec::new();
    let mut sources: Vec<RuleSource> = Vec::new();
    let mut manifests: HashMap<String, Manifest> = HashMap::new();
    let mut others: Vec<(PathBuf, Other)> = Vec::new();
    let mut with_rules: Vec<PathBuf> = Vec::new();
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
        if !file.sources.is_empty() || !file.problems.is_empty() {
            with_rules.push(path.clone());
        }
        errors.append(&mut file.problems);
        sources.append(&mut file.sources);
        others.extend(file.others.into_iter().map(|other| (path.clone(), other)));
        manifests.insert(manifest.file().to_owned(), manifest);
    }
    errors.extend(rules.iter().filter_map(|path| without_rules(path, &with_rules, &others, !sources.is_empty())));
    // What the cluster says of Portal's kinds counts for more than what this program says.
    let mut kinds = Kinds::new(own_kinds()).with(served.unwrap_or(Kinds::builtin()).iter().cloned());
    let mut assumed = BTreeSet::new();
    let (mut rule_set, mut diagnostics) = compile(&sources, &kinds, &ExprEngine);
    if diagnostics.iter().any(|diagnostic| diagnostic.awaits_kind) {
        kinds = kinds.with(definitions(&[rules, files, cluster]).into_iter().map(|kind| beside(kind, &kinds)));
        let named = sources.iter().flat_map(|source| &source.spec.matching.gvk);
        (kinds, assumed) = kinds.assuming(named);
        (rule_set, diagnostics) = compile(&sources, &kinds, &ExprEngine);
        let judged = || rule_set.rules().iter().flat_map(|rule| &rule.judged).map(|judged| &*judged.kind);
        assumed.retain(|assumed| judged().any(|kind| (&kind.group, &kind.kind) == (&assumed.group, &assumed.kind)));
    }
    diagnostics.extend(sources.iter().flat_map(|source| ended_exceptions(source, clock::now())));
    let mut warnings = Vec::new();
    for diagnostic in diagnostics {
        let manifest = match &diagnostic.origin {
            Origin::File { path, .. } => manifests.get(path),
            Origin::Cluster { .. } => None,
        };
        let mut problem = file::place(&diagnostic, manifest);
        if served.is_some() && diagnostic.awaits_kind {
            problem.message = format!("{}\n{HOW_TO_DEFINE}", problem.message);
        }
        match diagnostic.level {
            Level::Error => errors.push(problem),
            Level::Warning => warnings.push(problem),
        }
    }
    Loaded { rules: rule_set, kinds, assumed, errors, warnings }
}

/// What is wrong with a file or a folder that was named for its rules and has none. Definitions may come alone if there are rules
/// somewhere else, which name their kinds.
fn without_rules(
    named: &Path,
    with_rules: &[PathBuf],
    others: &[(PathBuf, Other)],
    has_rules_elsewhere: bool,
) -> Option<Problem> {
    let others: Vec<&Other> =
        others.iter().filter(|(path, _)| path.starts_with(named)).map(|(_, other)| other).collect();
    let has_rules = with_rules.iter().any(|path| path.starts_with(named));
    let has_definitions = others.iter().any(|other| other.is_definition());
    if has_rules || others.is_empty() || (has_definitions && has_rules_elsewhere) {
        return None;
    }
    let names: BTreeSet<String> = others.iter().map(|other| other.to_string()).collect();
    let names: Vec<&str> = names.iter().take(MAX_OTHERS).map(String::as_str).collect();
    let message = format!("there is no rule here, but {}: {HOW_TO_BEGIN}", names.join(", "));
    Some(Problem::of_file(named.display().to_string(), message))
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

/// A kind that a file defines, with what is known of it already: the versions that are served come first, because objects are read in the
/// first one.
fn beside(defined: Kind, kinds: &Kinds) -> Kind {
    let Some(known) = kinds.get(&defined.group, &defined.kind) else { return defined };
    let mut kind = Kind::clone(known);
    kind.versions.extend(defined.versions.into_iter().filter(|version| !known.versions.contains(version)));
    kind.subresources.extend(defined.subresources.into_iter().filter(|name| !known.subresources.contains(name)));
    kind
}

/// The kinds of Portal itself: a cluster that has rules serves them. Their definitions are not asked, because to make those takes
/// longer than to check a file.
fn own_kinds() -> [Kind; 3] {
    fn of<K: Resource<DynamicType = ()>>(namespaced: bool) -> Kind {
        Kind {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            versions: vec![K::version(&()).into_owned()],
            namespaced,
            subresources: vec!["status".to_owned()],
        }
    }
    [of::<PortalInstance>(false), of::<PortalClusterRule>(false), of::<PortalRule>(true)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_portal_are_those_of_their_definitions() {
        let defined = portal_crds::definitions().into_iter().map(|definition| definition.spec).map(|spec| Kind {
            group: spec.group,
            kind: spec.names.kind,
            plural: spec.names.plural,
            versions: spec.versions.into_iter().map(|version| version.name).collect(),
            namespaced: spec.scope == "Namespaced",
            subresources: vec!["status".to_owned()],
        });
        assert_eq!(own_kinds().to_vec(), defined.collect::<Vec<_>>());
    }
}

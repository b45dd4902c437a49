//! What is in a cluster, as what is judged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use portal_core::{kinds::Kind, object::Object, rule::RuleSet};
use portal_document::Node;
use portal_engine::cache::store::Seen;

use crate::check::judge::{Failed, Found, Location};

/// The objects of a cluster that rules are about.
#[derive(Default)]
pub(crate) struct Existing {
    objects: Vec<Arc<Object<'static>>>,
    /// What each object is made by, as the UIDs of both.
    owners: HashMap<String, String>,
    /// What could not be listed, and why.
    problems: BTreeMap<String, String>,
}

/// Nothing in Kubernetes makes longer chains, and owners may name each other in a circle.
const LONGEST_CHAIN: usize = 8;

impl Existing {
    /// Adds the objects of a kind, in a namespace or all, or why they are not known.
    pub(crate) fn add(&mut self, kind: &Kind, namespace: Option<&str>, seen: Seen) {
        let problem = match seen {
            Seen::Moment(moment) => {
                let own = moment.iter().filter(|object| {
                    namespace.is_none_or(|namespace| text(object.root(), "namespace") == Some(namespace))
                });
                for object in own {
                    if let (Some(uid), Some(owner)) = (uid_of(object.root()), owner_of(object.root())) {
                        self.owners.insert(uid.to_owned(), owner.to_owned());
                    }
                    self.objects.push(Arc::clone(object));
                }
                return;
            }
            Seen::Refused(reason) => reason,
            Seen::NotSynced => "they were not listed".to_owned(),
        };
        self.problems.insert(kind.qualified_plural(), problem);
    }

    /// Notes the rules that are for another version than the one in which objects are listed.
    pub(crate) fn note_versions(&mut self, rules: &RuleSet) {
        for rule in rules.rules() {
            for judged in rule.judged.iter().filter(|judged| !judged.versions.is_empty()) {
                let listed = judged.kind.versions.first().map_or("", String::as_str);
                if !judged.versions.iter().any(|version| version == listed) {
                    let (versions, plural) = (judged.versions.join(", "), judged.kind.qualified_plural());
                    let problem = format!(
                        "rule {} is for {versions} of them, and the cluster lists them as {listed}: name that in `match.gvk`, or no version",
                        rule.id
                    );
                    self.problems.insert(plural, problem);
                }
            }
        }
    }

    /// The objects.
    pub(crate) fn objects(&self) -> &[Arc<Object<'static>>] {
        &self.objects
    }

    /// What could not be judged.
    pub(crate) fn failures(&self) -> impl Iterator<Item = Failed> {
        self.problems.iter().map(|(plural, problem)| Failed {
            location: Location::of_cluster(),
            column: None,
            rule: None,
            error: format!("{plural} are not judged: {problem}"),
        })
    }

    /// Leaves out what is told of what made the object, and what stands between that and its pods, as audit does: old ReplicaSets keep
    /// templates that were mended long ago.
    pub(crate) fn fold(&self, violations: &mut Vec<Found>, rules: &RuleSet) {
        let known: HashSet<&str> = self.objects.iter().filter_map(|object| uid_of(object.root())).collect();
        let key = |found: &Found| {
            let Found { location, violation } = found;
            Some((location.uid.clone()?, violation.rule.clone(), violation.container.clone()))
        };
        let told: HashSet<_> = violations.iter().filter_map(key).collect();
        let is_expanded = |found: &Found| {
            let rule = rules.rules().iter().find(|rule| rule.id == found.violation.rule);
            let judged = rule.into_iter().flat_map(|rule| &rule.judged);
            judged.into_iter().any(|judged| judged.expanded && judged.kind.kind == found.location.kind)
        };
        violations.retain(|found| {
            let Some((uid, rule, container)) = key(found) else { return true };
            let owner = |uid: &str| self.owners.get(uid).filter(|owner| known.contains(owner.as_str()));
            if owner(&uid).is_some() && is_expanded(found) {
                return false;
            }
            let mut makers = std::iter::successors(owner(&uid), |uid| owner(uid)).take(LONGEST_CHAIN);
            !makers
                .any(|maker| owner(maker).is_none() && told.contains(&(maker.clone(), rule.clone(), container.clone())))
        });
    }
}

/// The UID of an object.
pub(crate) fn uid_of(object: Node<'_>) -> Option<&str> {
    text(object, "uid")
}

fn owner_of(object: Node<'_>) -> Option<&str> {
    let owners = object.get_str("metadata")?.get_str("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get_str("controller").and_then(Node::as_bool) == Some(true))?;
    owner.get_str("uid")?.as_str()
}

fn text<'a>(object: Node<'a>, field: &str) -> Option<&'a str> {
    object.get_str("metadata")?.get_str(field)?.as_str()
}

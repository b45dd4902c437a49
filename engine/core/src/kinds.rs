//! The kinds that an API server serves: a snapshot of its discovery, because core asks nobody.

mod assumed;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

pub use self::assumed::Assumed;

/// A kind that is served, in all of its versions.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Kind {
    /// The group; empty for the core group.
    pub group: String,
    /// The name that objects carry.
    pub kind: String,
    /// The name in URLs and in RBAC. Empty for a kind that is only assumed: it is never looked up or asked for by it.
    pub plural: String,
    /// The versions, the preferred one first.
    pub versions: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The subresources of any version.
    pub subresources: Vec<String>,
}

/// Every kind that is served. Looking one up takes no memory: each request does it.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    groups: BTreeMap<String, Group>,
    /// By group and name.
    by_name: foldhash::HashMap<String, foldhash::HashMap<String, Arc<Kind>>>,
    /// By plural, the most likely one first.
    by_plural: HashMap<String, Vec<Arc<Kind>>>,
}

/// The kinds of a group.
#[derive(Clone, Debug, Default)]
struct Group {
    by_kind: BTreeMap<String, Arc<Kind>>,
    by_plural: HashMap<String, Arc<Kind>>,
}

/// Why a plural names no kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PluralError {
    /// Nothing of that name is served. There may be something with a name that is close.
    Unknown(Option<String>),
    /// Several groups serve it. These are their full names.
    Ambiguous(Vec<String>),
}

/// The kinds of Kubernetes 1.36, as its API server lists them.
static BUILTIN: LazyLock<Kinds> = LazyLock::new(|| {
    let kinds = include_str!("kinds/builtin.txt").lines().filter_map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().map(|word| if word == "-" { "" } else { word });
        let list = |words: &str| words.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Some(Kind {
            group: word()?.to_owned(),
            kind: word()?.to_owned(),
            plural: word()?.to_owned(),
            versions: list(word()?),
            namespaced: word()? == "namespaced",
            subresources: list(word()?),
        })
    });
    Kinds::new(kinds)
});

impl Kinds {
    /// A snapshot. Of two kinds with the same group and name the last one stays.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Kinds {
        let mut snapshot = Kinds::default();
        for kind in kinds {
            let group = snapshot.groups.entry(kind.group.clone()).or_default();
            group.by_kind.insert(kind.kind.clone(), Arc::new(kind));
        }
        for (name, group) in &mut snapshot.groups {
            let by_name = group.by_kind.iter().map(|(name, kind)| (name.clone(), Arc::clone(kind))).collect();
            snapshot.by_name.insert(name.clone(), by_name);
            for kind in group.by_kind.values().filter(|kind| !kind.is_assumed()) {
                group.by_plural.insert(kind.plural.clone(), Arc::clone(kind));
                snapshot.by_plural.entry(kind.plural.clone()).or_default().push(Arc::clone(kind));
            }
        }
        snapshot
    }

    /// What Kubernetes itself serves, for whoever has no API server to ask.
    pub fn builtin() -> &'static Kinds {
        &BUILTIN
    }

    /// These kinds and more, which replace those of the same group and name.
    pub fn with(&self, more: impl IntoIterator<Item = Kind>) -> Kinds {
        Kinds::new(self.iter().cloned().chain(more))
    }

    /// All kinds, in order of group and name.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.groups.values().flat_map(|group| group.by_kind.values()).map(|kind| &**kind)
    }

    /// The kinds of a group, in order of their names. None if it has no kind that is defined.
    pub fn of_group(&self, group: &str) -> impl Iterator<Item = &Arc<Kind>> {
        let kinds = self.groups.get(group).into_iter().flat_map(|group| group.by_kind.values());
        kinds.filter(|kind| !kind.is_assumed())
    }

    /// The kind of this group and name.
    pub fn get(&self, group: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.by_name.get(group)?.get(kind)
    }

    /// The kind of this group and plural, as requests name it.
    pub fn of_resource(&self, group: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.groups.get(group)?.by_plural.get(plural)
    }

    /// The kind that a plural names: `pods`, or `networkpolicies.networking.k8s.io`.
    ///
    /// A kind of Kubernetes itself wins over others of its plural: whoever may install a custom resource must not be able
    /// to change what a rule reads.
    pub fn by_plural(&self, name: &str) -> Result<&Arc<Kind>, PluralError> {
        if let Some(found) = self.by_plural.get(name) {
            return match &found[..] {
                [only] => Ok(only),
                several => {
                    let own = |kind: &&Arc<Kind>| BUILTIN.get(&kind.group, &kind.kind).is_some();
                    // The core group comes first in order.
                    let mut of_kubernetes = several.iter().filter(own);
                    of_kubernetes.next().ok_or_else(|| {
                        PluralError::Ambiguous(several.iter().map(|kind| kind.qualified_plural()).collect())
                    })
                }
            };
        }
        let qualified = name.split_once('.').and_then(|(plural, group)| {
            let group = if group == "core" { "" } else { group };
            self.of_resource(group, plural)
        });
        qualified.ok_or_else(|| PluralError::Unknown(self.nearest_plural(name)))
    }

    fn nearest_plural(&self, name: &str) -> Option<String> {
        let defined = || self.iter().filter(|kind| !kind.is_assumed());
        let singular = |kind: &&Kind| kind.kind.eq_ignore_ascii_case(name);
        let by_kind = defined().find(singular).map(|kind| kind.plural.clone());
        if let Some((plural, _)) = name.split_once('.') {
            // Of a plural that is served, only the group can be wrong.
            let served = self.by_plural.get(plural);
            let names: Vec<String> = match served {
                Some(kinds) => kinds.iter().map(|kind| kind.qualified_plural()).collect(),
                None => defined().map(Kind::qualified_plural).collect(),
            };
            let nearest = portal_expr::nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
            return nearest.or_else(|| names.into_iter().next().filter(|_| served.is_some()));
        }
        by_kind.or_else(|| portal_expr::nearest(name, self.by_plural.keys().map(String::as_str)).map(str::to_owned))
    }
}

impl Kind {
    /// Whether nobody defines it, and a rule names it.
    pub fn is_assumed(&self) -> bool {
        self.plural.is_empty()
    }

    /// Group and version, as objects of this kind say them.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// The plural with its group, which names this kind and no other.
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() { format!("{}.core", self.plural) } else { format!("{}.{}", self.plural, self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(group: &str, kind: &str, plural: &str) -> Kind {
        Kind {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            versions: vec!["v1".to_owned()],
            namespaced: true,
            subresources: Vec::new(),
        }
    }

    #[track_caller]
    fn check(plural: &str, expected: Result<(&str, &str), PluralError>) {
        let kinds = Kinds::builtin().with([
            custom("metrics.k8s.io", "PodMetrics", "pods"),
            custom("a.example.com", "Widget", "widgets"),
            custom("b.example.com", "Widget", "widgets"),
            custom("apps.example.com", "Deployment", "deployments"),
        ]);
        let found = kinds.by_plural(plural).map(|kind| (kind.group.as_str(), kind.kind.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn plurals_name_kinds() {
        check("deployments.apps", Ok(("apps", "Deployment")));
        check("networkpolicies", Ok(("networking.k8s.io", "NetworkPolicy")));
        check("services.core", Ok(("", "Service")));
        check("widgets.b.example.com", Ok(("b.example.com", "Widget")));
    }

    #[test]
    fn a_kind_of_kubernetes_wins_over_a_custom_resource_of_its_plural() {
        check("pods", Ok(("", "Pod")));
        check("deployments", Ok(("apps", "Deployment")));
        check("events", Ok(("", "Event")));
        check("pods.metrics.k8s.io", Ok(("metrics.k8s.io", "PodMetrics")));
    }

    #[test]
    fn a_plural_of_several_groups_must_say_which() {
        let names = ["widgets.a.example.com", "widgets.b.example.com"].map(str::to_owned).to_vec();
        check("widgets", Err(PluralError::Ambiguous(names)));
    }

    #[test]
    fn an_unknown_plural_comes_with_the_nearest_one() {
        check("deploymets", Err(PluralError::Unknown(Some("deployments".to_owned()))));
        check("networkpolicy", Err(PluralError::Unknown(Some("networkpolicies".to_owned()))));
        check("zzz", Err(PluralError::Unknown(None)));
        let qualified = |name: &str| Err(PluralError::Unknown(Some(name.to_owned())));
        check("networkpolicies.networking.k8s.o", qualified("networkpolicies.networking.k8s.io"));
        check("netwrkpolicies.networking.k8s.io", qualified("networkpolicies.networking.k8s.io"));
        check("networkpolicies.extensions", qualified("networkpolicies.networking.k8s.io"));
        check("widgets.b.exmple.com", qualified("widgets.b.example.com"));
        check("zzz.example.com", Err(PluralError::Unknown(None)));
    }

    #[test]
    fn a_resource_is_found_in_its_group_alone() {
        let kinds = Kinds::builtin().with([custom("metrics.k8s.io", "PodMetrics", "pods")]);
        let found = |group, plural| kinds.of_resource(group, plural).map(|kind| kind.kind.as_str());
        assert_eq!(found("", "pods"), Some("Pod"));
        assert_eq!(found("metrics.k8s.io", "pods"), Some("PodMetrics"));
        assert_eq!(found("apps", "pods"), None);
        assert_eq!(found("", "Pod"), None);
    }

    #[test]
    fn the_table_of_kubernetes_is_whole() {
        let pod = Kinds::builtin().get("", "Pod").unwrap();
        assert!(pod.namespaced && pod.subresources.contains(&"ephemeralcontainers".to_owned()));
        assert!(!Kinds::builtin().get("", "Node").unwrap().namespaced);
        assert_eq!(Kinds::builtin().get("batch", "CronJob").unwrap().versions, ["v1"]);
        let lines = include_str!("kinds/builtin.txt").lines().count();
        assert_eq!(Kinds::builtin().iter().count(), lines);
    }
}

//! Kinds that rules name and nobody defines, for whoever has files instead of an API server: a rule against a version that is no
//! longer served, or for a custom kind whose definition is somewhere else.

use std::collections::BTreeSet;
use std::fmt;

use portal_crds::GroupVersionKind;

use super::{Kind, Kinds};

/// A kind, or a version of one, that is taken to exist because a rule names it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Assumed {
    /// The group.
    pub group: String,
    /// The version, if the rule names one.
    pub version: Option<String>,
    /// The kind.
    pub kind: String,
}

/// The one group without a dot that Kubernetes has given up: its kinds are in other groups today.
const GIVEN_UP: &str = "extensions";

impl Kinds {
    /// These kinds, and those that rules name although nobody defines them, with what of it is assumed. What must be a mistake, such
    /// as a kind that its group never had, is not assumed.
    pub fn assuming<'m>(&self, named: impl IntoIterator<Item = &'m GroupVersionKind>) -> (Kinds, BTreeSet<Assumed>) {
        let assumed: BTreeSet<Assumed> = named.into_iter().filter_map(|gvk| self.assumed(gvk)).collect();
        let mut kinds = self.clone();
        for Assumed { group, version, kind } in &assumed {
            let known = kinds.get(group, kind).map(|kind| Kind::clone(kind));
            let mut kind = known.unwrap_or_else(|| self.guess(group, kind));
            kind.versions.extend(version.clone());
            kinds = kinds.with([kind]);
        }
        (kinds, assumed)
    }

    fn assumed(&self, gvk: &GroupVersionKind) -> Option<Assumed> {
        let GroupVersionKind { group, kind, .. } = gvk;
        // A whole group is what is defined of it.
        if kind == "*" {
            return None;
        }
        let version = Some(&gvk.version).filter(|version| *version != "*");
        let is_assumed = match self.get(group, kind) {
            Some(known) => version.is_some_and(|version| !known.versions.contains(version)),
            None => match Kinds::builtin().groups.get(group) {
                // A kind of a group of Kubernetes may have been there only in versions that are gone.
                Some(served) => {
                    let is_served = |version| served.by_kind.values().any(|kind| kind.versions.contains(version));
                    !group.is_empty() && version.is_some_and(|version| !is_served(version))
                }
                None => group == GIVEN_UP || (group.contains('.') && !self.is_misspelt(group, kind)),
            },
        };
        is_assumed.then(|| Assumed { group: group.clone(), version: version.cloned(), kind: kind.clone() })
    }

    /// Whether the name of a group is nearly that of one which has the kind.
    fn is_misspelt(&self, group: &str, kind: &str) -> bool {
        let owners = self.iter().filter(|known| known.kind == kind && !known.is_assumed());
        owners.into_iter().any(|known| is_typo(group, &known.group))
    }

    fn guess(&self, group: &str, kind: &str) -> Kind {
        // What was moved to another group is as it was; of other kinds most are in namespaces.
        let namesake = Kinds::builtin().iter().find(|known| known.kind == kind);
        Kind {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: String::new(),
            versions: Vec::new(),
            namespaced: namesake.is_none_or(|namesake| namesake.namespaced),
            subresources: Vec::new(),
        }
    }
}

/// Whether two names differ in one place only, by two characters at most.
fn is_typo(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let shorter = one.len().min(other.len());
    let same = |pairs: &mut dyn Iterator<Item = (&char, &char)>| pairs.take_while(|(one, other)| one == other).count();
    let begin = same(&mut one.iter().zip(&other));
    let end = same(&mut one.iter().rev().zip(other.iter().rev())).min(shorter - begin);
    one.len().max(other.len()) - begin - end <= 2
}

impl fmt::Display for Assumed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Assumed { group, version, kind } = self;
        match version {
            Some(version) if group.is_empty() => write!(formatter, "{kind} ({version})"),
            Some(version) => write!(formatter, "{kind} ({group}/{version})"),
            None => write!(formatter, "{kind} ({group})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
        let (group, version, kind) = (group.to_owned(), version.to_owned(), kind.to_owned());
        GroupVersionKind { group, version, kind, pod_template: None }
    }

    #[track_caller]
    fn check(group: &str, version: &str, kind: &str, expected: Option<&str>) {
        let (kinds, assumed) = Kinds::builtin().assuming([&gvk(group, version, kind)]);
        assert_eq!(assumed.first().map(ToString::to_string).as_deref(), expected);
        let known = kinds.get(group, kind);
        let serves = |known: &Kind| version == "*" || known.versions.iter().any(|served| served == version);
        assert_eq!(known.is_some_and(|known| serves(known)), expected.is_some());
    }

    #[test]
    fn a_kind_of_another_group_than_those_of_kubernetes_is_assumed() {
        check("argoproj.io", "*", "Rollout", Some("Rollout (argoproj.io)"));
        check("argoproj.io", "v1alpha1", "Rollout", Some("Rollout (argoproj.io/v1alpha1)"));
        check("serving.knative.dev", "v1", "Service", Some("Service (serving.knative.dev/v1)"));
        check("networking.istio.io", "v1", "Ingress", Some("Ingress (networking.istio.io/v1)"));
    }

    #[test]
    fn what_kubernetes_has_given_up_is_assumed() {
        check("extensions", "v1beta1", "Ingress", Some("Ingress (extensions/v1beta1)"));
        check("extensions", "*", "Deployment", Some("Deployment (extensions)"));
        check("batch", "v1beta1", "CronJob", Some("CronJob (batch/v1beta1)"));
        check("policy", "v1beta1", "PodSecurityPolicy", Some("PodSecurityPolicy (policy/v1beta1)"));
    }

    #[test]
    fn a_mistake_is_not_assumed() {
        check("", "*", "Deployment", None);
        check("", "v1alpha1", "Rollout", None);
        check("app", "*", "Deployment", None);
        check("apps", "v1", "Deploymnt", None);
        check("policy", "*", "PodSecurityPolicy", None);
        check("argoproj.io", "*", "*", None);
        check("networking.k8s.o", "*", "Ingress", None);
        check("rbac.authorisation.k8s.io", "*", "Role", None);
    }

    #[test]
    fn an_assumed_kind_is_found_by_no_plural() {
        let (kinds, _) = Kinds::builtin().assuming([&gvk("argoproj.io", "*", "Rollout")]);
        let rollout = kinds.get("argoproj.io", "Rollout").unwrap();
        assert!(rollout.is_assumed() && rollout.namespaced && rollout.versions.is_empty());
        assert!(kinds.by_plural("").is_err() && kinds.by_plural("rollouts").is_err());
        assert!(kinds.of_resource("argoproj.io", "").is_none());
    }

    #[test]
    fn a_version_is_added_to_what_is_known_of_a_kind() {
        let named = [gvk("batch", "v1beta1", "CronJob"), gvk("batch", "v2alpha1", "CronJob")];
        let (kinds, _) = Kinds::builtin().assuming(&named);
        let cron_job = kinds.by_plural("cronjobs").unwrap();
        assert_eq!(cron_job.versions, ["v1", "v1beta1", "v2alpha1"]);
        assert!(!cron_job.is_assumed());
    }
}

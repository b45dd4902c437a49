use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use portal_crds::ActionType;

use super::*;
use crate::children::{
    children, guard,
    tests::{every_field, operator},
};
use crate::instance::Instance;
use crate::object::Kind;
use crate::permissions::Permissions;

/// Verbs that lift the API server's own checks, or speak in the name of others.
const LIFTING: [&str; 4] = ["escalate", "bind", "impersonate", "bypass"];

/// What the operator has in the whole cluster.
fn in_cluster() -> Vec<PolicyRule> {
    [own_rules(Place::Cluster), engine_rules(Place::Cluster), ceiling_rules()].concat()
}

/// Everything that a manifest of ours gives to anybody.
fn everything() -> Vec<PolicyRule> {
    let places =
        [Place::OwnNamespace, Place::EngineNamespace].map(|place| [own_rules(place), engine_rules(place)].concat());
    let people = [People::View, People::Edit].map(people_rules).concat();
    let actions: Vec<_> = ACTIONS.iter().flat_map(|(action, _)| action_rules(*action)).collect();
    [in_cluster(), places.concat(), people, actions].concat()
}

/// Each group and resource of a rule with each of its verbs.
fn grants(rules: &[PolicyRule]) -> BTreeSet<(String, String, String)> {
    let mut grants = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                grants.extend(rule.verbs.iter().map(|verb| (group.clone(), resource.clone(), verb.clone())));
            }
        }
    }
    grants
}

fn is_read(verb: &str) -> bool {
    READ.contains(&verb)
}

#[test]
fn nothing_is_given_by_a_star_and_no_check_is_lifted() {
    for (group, resource, verb) in grants(&everything()) {
        assert!(![&group, &resource, &verb].iter().any(|word| word.contains('*')), "{group} {resource} {verb}");
        assert!(!LIFTING.contains(&verb.as_str()), "{group} {resource} {verb}");
        let leads_to_pods = ["/exec", "/attach", "/proxy", "/portforward", "/token", "/ephemeralcontainers"];
        assert!(!leads_to_pods.iter().any(|end| resource.ends_with(end)), "{group} {resource} {verb}");
    }
}

#[test]
fn secrets_are_read_in_the_namespaces_of_portal_only() {
    let of_actions: Vec<_> = ACTIONS.iter().flat_map(|(action, _)| action_rules(*action)).collect();
    for (_, resource, verb) in grants(&[in_cluster(), of_actions].concat()) {
        assert!(resource != "secrets" || verb == "delete", "{resource} {verb}");
    }
    assert!(!grants(&in_cluster()).iter().any(|(_, resource, _)| resource == "secrets"));
}

#[test]
fn what_runs_is_written_in_the_namespaces_of_portal_only() {
    let runs = ["", "apps", "batch", "policy", "networking.k8s.io", "gateway.networking.k8s.io", "cert-manager.io"];
    for (group, resource, verb) in grants(&in_cluster()) {
        assert!(!runs.contains(&group.as_str()) || is_read(&verb), "{group} {resource} {verb}");
    }
}

#[test]
fn nothing_is_given_twice_and_everything_has_a_reason() {
    for right in RIGHTS {
        assert!(!right.verbs.is_empty() && !right.reason.is_empty(), "{right:?}");
        let is_same =
            |other: &&Right| (other.group, other.resource, other.place) == (right.group, right.resource, right.place);
        assert_eq!(RIGHTS.iter().filter(is_same).count(), 1, "{right:?}");
    }
    let mut groups: Vec<_> = CEILING.iter().map(|(group, _)| *group).collect();
    assert!(groups.is_sorted());
    groups.dedup();
    assert_eq!(groups.len(), CEILING.len());
    for (_, resources) in CEILING {
        assert!(resources.is_sorted(), "{resources:?}");
    }
}

#[test]
fn the_operator_holds_all_that_it_gives_to_engines() {
    let held_in_cluster = grants(&in_cluster());
    let given = [own_rules(Place::EngineNamespace), engine_rules(Place::EngineNamespace)].concat();
    let held_there: BTreeSet<_> = held_in_cluster.union(&grants(&given)).cloned().collect();
    let roles = permissions::roles("canary", "portal-canary", "portal-system", "portal-canary", None);
    let cluster = grants(&roles.cluster_role.rules.unwrap());
    let there = grants(&roles.role.rules.unwrap());
    assert_eq!(cluster.difference(&held_in_cluster).collect::<Vec<_>>(), Vec::<&(String, String, String)>::new());
    assert_eq!(there.difference(&held_there).collect::<Vec<_>>(), Vec::<&(String, String, String)>::new());
}

#[test]
fn the_operator_may_read_and_write_whatever_it_makes() {
    let places = [Place::Cluster, Place::OwnNamespace, Place::EngineNamespace];
    let all = grants(&places.map(own_rules).concat());
    let may = |kind: Kind, verb: &str| {
        let grant = (kind.group().to_owned(), kind.plural().to_owned(), verb.to_owned());
        assert!(all.contains(&grant), "{kind}: {verb}");
    };
    let instance = Instance::read(&every_field()).unwrap();
    let made = children(&instance, &Permissions::default(), &operator())
        .iter()
        .map(|object| object.key.kind)
        .collect::<BTreeSet<_>>();
    let others = [Kind::Secret, Kind::Certificate, Kind::ValidatingWebhookConfiguration];
    for kind in made.into_iter().chain(others) {
        ["get", "list", "watch", "create", "patch", "delete"].into_iter().for_each(|verb| may(kind, verb));
    }
    // The guard outlives everything.
    for object in guard() {
        ["get", "list", "watch", "create", "patch"].into_iter().for_each(|verb| may(object.key.kind, verb));
    }
}

#[test]
fn every_action_that_changes_the_cluster_has_its_rights() {
    let named: Vec<ActionType> = ACTIONS.iter().map(|(action, _)| *action).collect();
    let changing = [
        ActionType::Label,
        ActionType::Annotate,
        ActionType::Evict,
        ActionType::PatchNetworkPolicy,
        ActionType::RevokeSaToken,
    ];
    assert_eq!(named, changing);
    for action in named {
        assert!(!grants(&action_rules(action)).iter().any(|(_, _, verb)| is_read(verb)), "reads are of the ceiling");
    }
}

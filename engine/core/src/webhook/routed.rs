//! Whether a webhook configuration brings to the engine what a rule has to see. It may be one that somebody wrote by hand.

use k8s_openapi::api::admissionregistration::v1::{
    RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration,
};

use super::{NAME_LABEL, path};
use crate::{
    event::{Entry, Operation},
    requirements::{Requirements, WebhookResource},
};

/// The first requests that rules with these needs have to see and that a configuration does not send, in words.
pub fn first_gap(configuration: &ValidatingWebhookConfiguration, requirements: &Requirements) -> Option<String> {
    let entries = configuration.webhooks.as_deref().unwrap_or_default();
    for (resource, operations) in &requirements.webhook {
        for (operation, route) in operations {
            let everywhere = (!route.judging.cluster.is_empty()).then_some(None);
            let namespaces = route.judging.namespaces.keys().map(|namespace| Some(namespace.as_str()));
            for namespace in everywhere.into_iter().chain(namespaces) {
                if !entries.iter().any(|entry| sends(entry, resource, *operation, namespace)) {
                    return Some(words(resource, *operation, namespace));
                }
            }
        }
    }
    None
}

fn words(resource: &WebhookResource, operation: Operation, namespace: Option<&str>) -> String {
    let group = if resource.kind.group.is_empty() { String::new() } else { format!(".{}", resource.kind.group) };
    let version = resource.pinned.as_ref().map(|version| format!(" as {version}")).unwrap_or_default();
    let place = namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    format!("{} of {}{group}{version}{place}", operation.name(), resource.resource())
}

/// Whether an entry sends such requests to rules of this class.
fn sends(entry: &ValidatingWebhook, resource: &WebhookResource, operation: Operation, namespace: Option<&str>) -> bool {
    let class = Entry { namespaced: namespace.is_some(), pinned: resource.pinned.is_some() };
    let config = &entry.client_config;
    let target = config.url.as_deref().or_else(|| config.service.as_ref()?.path.as_deref()).unwrap_or_default();
    let is_for_class = target.ends_with(&path(class)) || target.ends_with("/validate");
    let selects = namespace.is_none_or(|namespace| selects_name(entry, namespace));
    let rules = entry.rules.as_deref().unwrap_or_default();
    let is_exact = entry.match_policy.as_deref() == Some("Exact");
    is_for_class
        && selects
        && rules.iter().any(|rule| covers(rule, resource, operation) && sends_versions(rule, resource, is_exact))
}

fn covers(rule: &RuleWithOperations, resource: &WebhookResource, operation: Operation) -> bool {
    let has = |words: &Option<Vec<String>>, wanted: &dyn Fn(&str) -> bool| {
        words.as_deref().unwrap_or_default().iter().any(|word| word == "*" || wanted(word))
    };
    let (plural, whole) = (&resource.kind.plural, resource.resource());
    let is_resource = |word: &str| {
        let parts = resource.subresource.as_ref().zip(word.split_once('/'));
        let is_part = parts.is_some_and(|(subresource, (kind, part))| {
            (kind == "*" || kind == plural) && (part == "*" || part == subresource)
        });
        word == whole || word == "*/*" || is_part
    };
    let scope = if resource.kind.namespaced { "Namespaced" } else { "Cluster" };
    let resources = rule.resources.as_deref().unwrap_or_default();
    has(&rule.api_groups, &|group| group == resource.kind.group)
        && has(&rule.operations, &|word| word == operation.name())
        // Of resources, `*` leaves the subresources out.
        && resources.iter().any(|word| (word == "*" && resource.subresource.is_none()) || is_resource(word))
        && rule.scope.as_deref().is_none_or(|word| word == "*" || word == scope)
}

/// Whether requests come in versions that a rule takes, whatever they were sent in. The API server converts to one that is listed, if it
/// may.
fn sends_versions(rule: &RuleWithOperations, resource: &WebhookResource, is_exact: bool) -> bool {
    let (listed, wanted) = (rule.api_versions.as_deref().unwrap_or_default(), resource.versions());
    let is_listed = |version: &String| listed.contains(version);
    let is_any = listed.iter().any(|version| version == "*");
    match (&resource.pinned, is_exact) {
        // What comes in another version passes the rule by.
        (Some(_), false) => !listed.is_empty() && listed.iter().all(|version| wanted.contains(version)),
        // What is written in another version does not come at all.
        (Some(_), true) => false,
        (None, true) => is_any || wanted.iter().all(is_listed),
        (None, false) => is_any || wanted.iter().any(is_listed),
    }
}

/// Whether the name of a namespace is one that an entry selects. What its other labels are is not known here.
fn selects_name(entry: &ValidatingWebhook, namespace: &str) -> bool {
    let requirements = entry.namespace_selector.as_ref().and_then(|selector| selector.match_expressions.as_deref());
    requirements.unwrap_or_default().iter().filter(|requirement| requirement.key == NAME_LABEL).all(|requirement| {
        let is_named = requirement.values.as_deref().unwrap_or_default().iter().any(|value| value == namespace);
        match requirement.operator.as_str() {
            "In" => is_named,
            "NotIn" => !is_named,
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
    use portal_crds::EnforcementAction;

    use super::*;
    use crate::{
        layers::Layers,
        testing::rules,
        webhook::{Target, WebhookSettings, configuration},
    };

    fn needs(yaml: &str) -> Requirements {
        let (rules, problems) = rules(yaml);
        assert_eq!(problems, Vec::<String>::new());
        Requirements::of(&rules, Layers { admission: true, ..Layers::default() })
    }

    fn generated(requirements: &Requirements) -> ValidatingWebhookConfiguration {
        let settings = WebhookSettings {
            instance: "default".to_owned(),
            target: Target::Url("https://engine".to_owned()),
            ca_bundle: Vec::new(),
            timeout_seconds: 5,
            fail_closed: true,
            max_enforcement: EnforcementAction::Deny,
            namespace_selector: LabelSelector::default(),
            exclude_namespaces: BTreeSet::new(),
            own_namespaces: BTreeSet::new(),
            own_accounts: BTreeSet::new(),
            own_rules: None,
            probe_namespace: None,
            owner: None,
        };
        configuration(requirements, &settings)
    }

    const PODS: &str = "{name: a, match: {gvk: [{kind: Pod}]}, rule: container.tty}";
    const SCALE: &str = "
name: b
match: {gvk: [{group: apps, kind: Deployment}], operations: [UPDATE], subresources: [scale]}
rule: object.spec.replicas > 3
";
    const OWN: &str = "
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: c, namespace: shop}
spec: {match: {gvk: [{kind: Service}]}, rule: object.spec.type == 'NodePort'}
";
    const PINNED: &str = "{name: d, match: {gvk: [{group: autoscaling, version: v1, kind: HorizontalPodAutoscaler}]}, rule: object.spec.maxReplicas > 3}";

    #[test]
    fn what_is_made_for_rules_brings_them_what_they_judge() {
        let all = [PODS, SCALE, OWN, PINNED];
        let whole = generated(&needs(&all.join("\n---\n")));
        for rule in all {
            assert_eq!(first_gap(&whole, &needs(rule)), None, "{rule}");
            assert_eq!(first_gap(&generated(&needs(rule)), &needs(rule)), None, "{rule}");
        }
    }

    #[test]
    fn what_is_not_sent_is_named() {
        let gap = |configured: &str, rule: &str| first_gap(&generated(&needs(configured)), &needs(rule));
        assert_eq!(gap(SCALE, PODS).as_deref(), Some("CREATE of pods"));
        assert_eq!(gap(PODS, SCALE).as_deref(), Some("UPDATE of deployments/scale.apps"));
        assert_eq!(gap(PODS, OWN).as_deref(), Some("CREATE of services in namespace shop"));
        assert_eq!(gap(&OWN.replace("shop", "bank"), OWN).as_deref(), Some("CREATE of services in namespace shop"));
        let other = PINNED.replace("version: v1, ", "version: v2, ");
        assert_eq!(gap(&other, PINNED).as_deref(), Some("CREATE of horizontalpodautoscalers.autoscaling as v1"));
        let nothing = ValidatingWebhookConfiguration::default();
        assert_eq!(first_gap(&nothing, &needs(PODS)).as_deref(), Some("CREATE of pods"));
    }

    fn by_hand(resources: &str, operations: &str, version: &str, policy: &str) -> ValidatingWebhookConfiguration {
        serde_json::from_value(serde_json::json!({"webhooks": [{
            "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": policy,
            "clientConfig": {"url": "https://engine/validate"},
            "rules": [{"apiGroups": ["*"], "apiVersions": [version], "operations": [operations], "resources": [resources]}],
        }]}))
        .unwrap()
    }

    #[test]
    fn what_comes_in_a_version_that_a_rule_does_not_take_is_not_sent_to_it() {
        let is_sent = |rule: &str, version: &str, policy: &str| {
            first_gap(&by_hand("*/*", "*", version, policy), &needs(rule)).is_none()
        };
        // It serves v1 and v2.
        let unpinned = PINNED.replace("version: v1, ", "");
        let pinned = ["v1", "v2", "*"].map(|version| is_sent(PINNED, version, "Equivalent"));
        assert_eq!(pinned, [true, false, false]);
        assert!(!is_sent(PINNED, "v1", "Exact") && !is_sent(PINNED, "*", "Exact"));
        assert!(is_sent(&unpinned, "v1", "Equivalent") && is_sent(&unpinned, "*", "Exact"));
        assert!(!is_sent(&unpinned, "v1", "Exact"));
    }

    #[test]
    fn one_that_was_written_by_hand_may_say_it_with_stars() {
        let hand = |resources: &str, operations: &str| by_hand(resources, operations, "*", "Equivalent");
        assert_eq!(first_gap(&hand("*/*", "*"), &needs(SCALE)), None);
        assert_eq!(first_gap(&hand("*", "*"), &needs(OWN)), None);
        // A star stands for no subresource.
        assert_eq!(first_gap(&hand("*", "*"), &needs(SCALE)).as_deref(), Some("UPDATE of deployments/scale.apps"));
        assert_eq!(first_gap(&hand("*/*", "CREATE"), &needs(SCALE)).as_deref(), Some("UPDATE of deployments.apps"));
    }
}

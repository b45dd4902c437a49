use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::{layers::Layers, testing::rules};

fn settings() -> WebhookSettings {
    WebhookSettings {
        instance: "default".to_owned(),
        target: Target::Service { namespace: "portal-system".to_owned(), name: "portal-default".to_owned(), port: 443 },
        ca_bundle: Vec::new(),
        timeout_seconds: 5,
        fail_closed: true,
        max_enforcement: EnforcementAction::Deny,
        namespace_selector: LabelSelector::default(),
        exclude_namespaces: BTreeSet::new(),
        own_namespaces: BTreeSet::from(["portal-system".to_owned()]),
        own_accounts: BTreeSet::from(["system:serviceaccount:portal-system:portal-default".to_owned()]),
        own_rules: None,
        probe_namespace: None,
        owner: None,
    }
}

/// Compares the entries for rules, in short.
#[track_caller]
fn check(yaml: &str, settings: &WebhookSettings, expected: Expect) {
    let (rules, problems) = rules(yaml);
    assert_eq!(problems, Vec::<String>::new());
    let requirements = Requirements::of(&rules, Layers { admission: true, ..Layers::default() });
    let configuration = configuration(&requirements, settings);
    let mut text = String::new();
    for webhook in configuration.webhooks.unwrap_or_default() {
        let path = webhook.client_config.service.and_then(|service| service.path).unwrap_or_default();
        let policy = webhook.failure_policy.unwrap_or_default();
        let _ = writeln!(text, "{} {policy} {path}", webhook.name.trim_end_matches(".default.portal.io"));
        for requirement in
            webhook.namespace_selector.and_then(|selector| selector.match_expressions).unwrap_or_default()
        {
            let _ = writeln!(text, "  {} {}", requirement.operator, requirement.values.unwrap_or_default().join(","));
        }
        for condition in webhook.match_conditions.unwrap_or_default() {
            let _ = writeln!(text, "  if {}", condition.name);
        }
        for rule in webhook.rules.unwrap_or_default() {
            let join = |words: Option<Vec<String>>| words.unwrap_or_default().join(",");
            let (group, versions) = (join(rule.api_groups), join(rule.api_versions));
            let (operations, resources) = (join(rule.operations), join(rule.resources));
            let _ = writeln!(text, "  {operations} {group}/{versions} {resources} {}", rule.scope.unwrap_or_default());
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn a_rule_brings_what_it_names_and_nothing_else() {
    check(
        "
name: pods
match: {gvk: [{kind: Pod}], podControllers: false}
rule: spec.hostNetwork
---
name: nodes
match: {gvk: [{kind: Node}], operations: [DELETE]}
rule: metadata.name == 'a'
",
        &settings(),
        expect![[r#"
            cluster-scope-rules Fail /validate/cluster
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              if not-by-nodes
              DELETE /v1 nodes Cluster
            rules Fail /validate/cluster
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              CREATE,UPDATE /v1 pods Namespaced
              UPDATE /v1 pods/ephemeralcontainers,pods/resize Namespaced
        "#]],
    );
}

const MIXED: &str = "
name: refuses
match: {gvk: [{kind: ConfigMap}], operations: [CREATE]}
rule: metadata.name == 'a'
---
name: warns
enforcementAction: warn
match: {gvk: [{kind: ConfigMap}, {kind: Service}], operations: [CREATE, DELETE]}
rule: metadata.name == 'a'
---
name: records
enforcementAction: dryrun
match: {gvk: [{kind: Service}], operations: [UPDATE]}
rule: metadata.name == 'a'
";

#[test]
fn what_cannot_refuse_cannot_block() {
    check(
        MIXED,
        &settings(),
        expect![[r#"
            rules-open Ignore /validate/cluster
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              DELETE /v1 configmaps Namespaced
              CREATE,UPDATE,DELETE /v1 services Namespaced
            rules Fail /validate/cluster
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              CREATE /v1 configmaps Namespaced
        "#]],
    );
}

#[test]
fn an_instance_that_refuses_nothing_blocks_nothing() {
    for settings in [
        WebhookSettings { max_enforcement: EnforcementAction::Warn, ..settings() },
        WebhookSettings { fail_closed: false, ..settings() },
    ] {
        check(
            MIXED,
            &settings,
            expect![[r#"
                rules-open Ignore /validate/cluster
                  NotIn kube-node-lease,kube-public,kube-system,portal-system
                  if not-by-portal
                  CREATE,DELETE /v1 configmaps Namespaced
                  CREATE,UPDATE,DELETE /v1 services Namespaced
            "#]],
        );
    }
}

#[test]
fn a_rule_of_a_namespace_touches_no_other_namespace() {
    let rule = |namespace: &str, kind: &str| {
        format!(
            "apiVersion: portal.io/v1alpha1\nkind: PortalRule\nmetadata: {{name: r, namespace: {namespace}}}\nspec:\n  \
             match: {{gvk: [{{kind: {kind}}}], operations: [CREATE]}}\n  rule: metadata.name == 'a'\n"
        )
    };
    let rules = [
        rule("bank", "Service"),
        rule("shop", "Service"),
        rule("farm", "ConfigMap"),
        rule("kube-system", "ConfigMap"),
        "name: everywhere\nmatch: {gvk: [{kind: Service}], operations: [CREATE]}\nrule: metadata.name == 'a'\n"
            .to_owned(),
    ];
    check(
        &rules.join("---\n"),
        &settings(),
        expect![[r#"
            rules Fail /validate/cluster
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              CREATE /v1 services Namespaced
            namespace-rules-1 Fail /validate/namespace
              In farm
              if not-by-portal
              CREATE /v1 configmaps Namespaced
            namespace-rules-2 Fail /validate/namespace
              In bank,shop
              if not-by-portal
              CREATE /v1 services Namespaced
        "#]],
    );
}

#[test]
fn a_rule_that_pins_versions_has_an_entry_with_one_of_them() {
    let rule = |name: &str, versions: &[&str]| {
        let kinds = versions
            .iter()
            .map(|version| format!("{{group: autoscaling, kind: HorizontalPodAutoscaler, version: {version:?}}}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        format!("name: {name}\nmatch: {{gvk: [{kinds}], operations: [CREATE]}}\nrule: metadata.name == 'a'\n")
    };
    check(
        &[rule("any", &["*"]), rule("old", &["v1"]), rule("both", &["v1", "v2"])].join("---\n"),
        &settings(),
        expect![[r#"
            rules Fail /validate/cluster
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              CREATE autoscaling/v2,v1 horizontalpodautoscalers Namespaced
            rules-v1 Fail /validate/cluster-pinned
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              CREATE autoscaling/v1 horizontalpodautoscalers Namespaced
            rules-v2 Fail /validate/cluster-pinned
              NotIn kube-node-lease,kube-public,kube-system,portal-system
              if not-by-portal
              CREATE autoscaling/v2 horizontalpodautoscalers Namespaced
        "#]],
    );
}

#[test]
fn an_instance_serves_the_namespaces_that_it_selects() {
    let namespace_selector = with(
        &LabelSelector::default(),
        [LabelSelectorRequirement {
            key: "team".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec!["payments".to_owned()]),
        }],
    );
    let exclude_namespaces = BTreeSet::from(["legacy".to_owned()]);
    check(
        "name: r\nmatch: {gvk: [{kind: ConfigMap}], operations: [CREATE]}\nrule: metadata.name == 'a'\n",
        &WebhookSettings { namespace_selector, exclude_namespaces, ..settings() },
        expect![[r#"
            rules Fail /validate/cluster
              In payments
              NotIn kube-node-lease,kube-public,kube-system,legacy,portal-system
              if not-by-portal
              CREATE /v1 configmaps Namespaced
        "#]],
    );
}

#[test]
fn rules_of_portal_and_the_probe_have_entries_that_do_not_block() {
    let settings = WebhookSettings {
        own_rules: Some(OwnRules::default()),
        probe_namespace: Some("portal-operator".to_owned()),
        ..settings()
    };
    let entries = |settings: &WebhookSettings| {
        let webhooks = configuration(&Requirements::default(), settings).webhooks.unwrap_or_default();
        let entry =
            |webhook: ValidatingWebhook| format!("{} {}", webhook.name, webhook.failure_policy.unwrap_or_default());
        webhooks.into_iter().map(entry).collect::<Vec<_>>()
    };
    assert_eq!(entries(&settings), ["own-rules.default.portal.io Ignore", "probe.default.portal.io Ignore"]);
    let own_rules = OwnRules { enforces_author_check: true, ..OwnRules::default() };
    let enforcing = WebhookSettings { own_rules: Some(own_rules), ..settings };
    assert_eq!(entries(&enforcing), ["own-rules.default.portal.io Fail", "probe.default.portal.io Ignore"]);
}

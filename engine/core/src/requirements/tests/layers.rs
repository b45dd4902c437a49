//! What rules need of an engine that has some of the layers.

use super::*;

#[test]
fn without_audit_nothing_is_watched_for_it() {
    check_in(
        Layers { audit: false, ..Layers::ALL },
        MODES,
        expect![[r#"
            watch namespaces.core for NamespaceSelector: everywhere for admission
            watch services.core for Lookup: everywhere for both
            webhook: create,update /v1 configmaps Namespaced: everywhere for both, admission
            may patch /configmaps: everywhere for both, admission
            may get /endpoints: everywhere for admission
            may list /endpoints: everywhere for admission
        "#]],
    );
}

#[test]
fn without_admission_nothing_reaches_the_webhook() {
    check_in(
        Layers { admission: false, ..Layers::ALL },
        MODES,
        expect![[r#"
            watch configmaps.core for Match: everywhere for both, audit
            watch secrets.core for Lookup: everywhere for audit
            watch services.core for Lookup: everywhere for both
            may patch /configmaps: everywhere for both
            may create /pods/eviction: everywhere for audit
        "#]],
    );
}

#[test]
fn without_actions_no_verbs_are_needed_for_them() {
    check_in(
        Layers { actions: false, ..Layers::ALL },
        MODES,
        expect![[r#"
            watch configmaps.core for Match: everywhere for both, audit
            watch namespaces.core for NamespaceSelector: everywhere for admission
            watch secrets.core for Lookup: everywhere for audit
            watch services.core for Lookup: everywhere for both
            webhook: create,update /v1 configmaps Namespaced: everywhere for both, admission
            may get /endpoints: everywhere for admission
            may list /endpoints: everywhere for admission
        "#]],
    );
}

#[test]
fn without_layers_nothing_is_needed() {
    check_in(Layers { network: true, actions: true, ..Layers::default() }, MODES, expect![""]);
}

#[test]
fn an_action_needs_its_verbs_where_the_loop_runs_that_leads_to_it() {
    let rule = "
name: r
match: {gvk: [{kind: Pod}], podControllers: false}
rule: spec.hostNetwork
actions:
- {type: evict, 'on': [audit]}
- {type: label, key: a, value: b, 'on': [network]}
";
    let none = Layers { audit: false, network: false, ..Layers::ALL };
    check_in(
        none,
        rule,
        expect![[r#"
            webhook: create,update /v1 pods Namespaced: everywhere for r
            webhook: update /v1 pods/ephemeralcontainers Namespaced: everywhere for r
            webhook: update /v1 pods/resize Namespaced: everywhere for r
        "#]],
    );
    check_in(
        Layers { audit: true, ..none },
        rule,
        expect![[r#"
            watch pods.core for Match: everywhere for r
            webhook: create,update /v1 pods Namespaced: everywhere for r
            webhook: update /v1 pods/ephemeralcontainers Namespaced: everywhere for r
            webhook: update /v1 pods/resize Namespaced: everywhere for r
            may create /pods/eviction: everywhere for r
        "#]],
    );
    check_in(
        Layers { network: true, ..none },
        rule,
        expect![[r#"
            webhook: create,update /v1 pods Namespaced: everywhere for r
            webhook: update /v1 pods/ephemeralcontainers Namespaced: everywhere for r
            webhook: update /v1 pods/resize Namespaced: everywhere for r
            may patch /pods: everywhere for r
        "#]],
    );
}

/// Rules that let objects in, and one that does not.
const LENIENT: &str = "
name: warns
mode: [admission]
enforcementAction: warn
match: {gvk: [{kind: ConfigMap}]}
rule: object.data.a == 'b'
---
name: records
mode: [admission]
enforcementAction: dryrun
match: {gvk: [{kind: Secret}], operations: [UPDATE]}
rule: object.type == 'b'
alert: Broken
actions: [{type: annotate, key: a, value: b, 'on': [admission]}]
---
name: leaves-nothing
mode: [admission]
enforcementAction: warn
match: {gvk: [{kind: Service}], operations: [DELETE]}
rule: metadata.name == 'a'
---
name: denies
mode: [admission]
match: {gvk: [{kind: Endpoints}]}
rule: metadata.name == 'a'
---
name: is-audited
enforcementAction: warn
match: {gvk: [{kind: ServiceAccount}]}
rule: metadata.name == 'a'
";

#[test]
fn what_admission_lets_in_is_watched_for_reports_and_actions() {
    check(
        LENIENT,
        expect![[r#"
            watch configmaps.core for Outcome: everywhere for warns
            watch secrets.core for Outcome: everywhere for records
            watch serviceaccounts.core for Match: everywhere for is-audited
            webhook: create,update /v1 configmaps Namespaced: everywhere for warns, never refused
            webhook: create,update /v1 endpoints Namespaced: everywhere for denies
            webhook: update /v1 secrets Namespaced: everywhere for records, never refused
            webhook: delete /v1 services Namespaced: everywhere for leaves-nothing, never refused
            webhook: create,update /v1 serviceaccounts Namespaced: everywhere for is-audited, never refused
            may patch /secrets: everywhere for records
        "#]],
    );
    check_in(
        Layers { audit: false, ..Layers::ALL },
        LENIENT,
        expect![[r#"
            watch secrets.core for Outcome: everywhere for records
            webhook: create,update /v1 configmaps Namespaced: everywhere for warns, never refused
            webhook: create,update /v1 endpoints Namespaced: everywhere for denies
            webhook: update /v1 secrets Namespaced: everywhere for records, never refused
            webhook: delete /v1 services Namespaced: everywhere for leaves-nothing, never refused
            webhook: create,update /v1 serviceaccounts Namespaced: everywhere for is-audited, never refused
            may patch /secrets: everywhere for records
        "#]],
    );
    check_in(
        Layers { admission: true, ..Layers::default() },
        LENIENT,
        expect![[r#"
            webhook: create,update /v1 configmaps Namespaced: everywhere for warns, never refused
            webhook: create,update /v1 endpoints Namespaced: everywhere for denies
            webhook: update /v1 secrets Namespaced: everywhere for records, never refused
            webhook: delete /v1 services Namespaced: everywhere for leaves-nothing, never refused
            webhook: create,update /v1 serviceaccounts Namespaced: everywhere for is-audited, never refused
        "#]],
    );
}

#[test]
fn what_admission_lets_in_is_read_by_the_pods_that_audit() {
    let yaml = "name: asks\nmode: [admission]\nenforcementAction: warn\nmatch: {gvk: [{kind: Pod}], podControllers: false}\n\
                rule: request.userInfo.username == 'eve'\n";
    let (rules, problems) = rules(yaml);
    assert_eq!(problems, Vec::<String>::new());
    let none = Layers::default();
    let (admission, audit) = (Layers { admission: true, ..none }, Layers { audit: true, ..none });
    let grants = |layers: Layers, instance: Layers| -> Vec<String> {
        let grants = Requirements::of_engine(&rules, layers, instance).grants();
        grants.keys().map(|(permission, _)| format!("{} {}", permission.verb, permission.name())).collect()
    };
    let both = admission.with(audit);
    let read = ["get pods", "list pods", "watch pods"];
    assert_eq!(
        (grants(both, both), grants(audit, both)),
        (read.map(str::to_owned).into(), read.map(str::to_owned).into())
    );
    assert_eq!((grants(admission, both), grants(audit, audit)), (Vec::new(), Vec::new()));
}

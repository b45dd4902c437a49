//! What rules need that follow references.

use expect_test::expect;

use super::{check, check_authors};

const RULES: &str = "
name: here
mode: [admission]
match: {gvk: [{group: rbac.authorization.k8s.io, kind: RoleBinding}], operations: [CREATE]}
rule: cluster.any('roles', 'clusterroles').byRef('shop', object.roleRef) == nil
---
name: anywhere
mode: [admission]
match: {gvk: [{group: autoscaling, kind: HorizontalPodAutoscaler}], operations: [CREATE]}
rule: >-
  cluster.any('deployments', 'statefulsets').byRef(metadata.namespace, object.spec.scaleTargetRef) == nil
  || cluster.consistent.any('replicasets').byRef('shop', object.spec.scaleTargetRef) != nil
---
apiVersion: portal.io/v1alpha1
kind: PortalRule
metadata: {name: own, namespace: team}
spec:
  mode: [admission]
  match: {gvk: [{kind: ConfigMap}], operations: [CREATE]}
  rule: \"any(metadata.ownerReferences, cluster.any('deployments', 'jobs').byRef(metadata.namespace, #) == nil)\"
";

#[test]
fn every_kind_that_is_written_out_is_watched_where_the_rule_says() {
    check(
        RULES,
        expect![[r#"
            watch deployments.apps for Lookup: everywhere for anywhere; in team for team/own
            watch statefulsets.apps for Lookup: everywhere for anywhere
            watch jobs.batch for Lookup: in team for team/own
            watch clusterroles.rbac.authorization.k8s.io for Lookup: everywhere for here
            watch roles.rbac.authorization.k8s.io for Lookup: in shop for here
            webhook: create /v1 configmaps Namespaced: in team for team/own
            webhook: create autoscaling/v2,v1 horizontalpodautoscalers Namespaced: everywhere for anywhere
            webhook: create rbac.authorization.k8s.io/v1 rolebindings Namespaced: everywhere for here
            may get apps/replicasets: in shop for anywhere
            may list apps/replicasets: in shop for anywhere
        "#]],
    );
}

#[test]
fn an_author_must_be_allowed_to_see_every_kind_that_is_written_out() {
    check_authors(
        RULES,
        expect![[r#"
            the author of here may list rbac.authorization.k8s.io/clusterroles
            the author of here may list rbac.authorization.k8s.io/rolebindings
            the author of here may list rbac.authorization.k8s.io/roles in shop
            the author of anywhere may list apps/deployments
            the author of anywhere may list apps/replicasets in shop
            the author of anywhere may list apps/statefulsets
            the author of anywhere may list autoscaling/horizontalpodautoscalers
            the author of team/own may list /configmaps in team
            the author of team/own may list apps/deployments in team
            the author of team/own may list batch/jobs in team
        "#]],
    );
}

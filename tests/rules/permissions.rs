//! What `portal explain permissions` says of rules.

use expect_test::{Expect, expect};

use super::{folder, portal};

const RULES: &str = r#"
name: services-have-pods
match: {gvk: [{kind: Service}]}
rule: len(cluster.pods.list(metadata.namespace, object.spec.selector)) == 0
---
name: tokens
match: {gvk: [{kind: ServiceAccount}]}
rule: len(cluster.secrets.list(metadata.namespace)) > 3
---
name: certificates
match: {gvk: [{kind: Ingress}]}
rule: len(consistentCluster["leases.coordination.k8s.io"].list("shop")) > 3
---
name: no-latest
match: {gvk: [{kind: Pod}]}
rule: container.image.tag == "latest"
"#;

#[track_caller]
fn check(more: &[&str], files: &[(&str, &[u8])], expected: Expect) {
    let folder = folder(&[&[("rules.yaml", RULES.as_bytes())], files].concat());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let rules = path("rules.yaml");
    let more: Vec<String> =
        more.iter().map(|word| word.strip_prefix("FOLDER/").map_or((*word).to_owned(), path)).collect();
    let mut arguments = vec!["explain", "permissions", "--rules", &rules];
    arguments.extend(more.iter().map(String::as_str));
    let output = portal(&arguments, b"");
    let said = [output.stdout, output.stderr].concat();
    expected.assert_eq(&String::from_utf8(said).unwrap().replace(&folder.path().display().to_string(), "FOLDER"));
}

#[test]
fn what_would_be_granted_is_told_with_the_rules_that_cause_it() {
    check(
        &[],
        &[],
        expect![[r#"
            instance default: what its engine is granted because of 4 rules

            in the whole cluster (ClusterRole portal-default)
              get, list, watch   pods                                     services-have-pods

            not granted
              list               leases.coordination.k8s.io in shop       certificates: above the ceiling: apply a ClusterRole with the label rbac.portal.io/aggregate-to-ceiling=true
              get, list, watch   secrets                                  tokens: refused by default: name it in `rbac.allowedResources` of the instance, and raise the ceiling

            what every engine may do, whatever its rules say: portal generate roles --account ACCOUNT
        "#]],
    );
}

#[test]
fn the_bounds_of_an_instance_count() {
    let instance =
        b"apiVersion: portal.io/v1alpha1\nkind: PortalInstance\nmetadata: {name: team}\nspec:\n  rbac:\n    \
                     allowedResources: [{resource: secrets}]\n    deniedResources: [{resource: pods}]\n";
    check(
        &["--instance", "FOLDER/instance.yaml"],
        &[("instance.yaml", instance)],
        expect![[r#"
            instance team: what its engine is granted because of 4 rules

            nothing: no rule asks for other objects than the one that it judges, or none of it can be granted

            not granted
              list               leases.coordination.k8s.io in shop       certificates: above the ceiling: apply a ClusterRole with the label rbac.portal.io/aggregate-to-ceiling=true
              get, list, watch   pods                                     services-have-pods: `rbac.deniedResources` of the instance names it
              get, list, watch   secrets                                  tokens: above the ceiling: apply a ClusterRole with the label rbac.portal.io/aggregate-to-ceiling=true

            what every engine may do, whatever its rules say: portal generate roles --account ACCOUNT
        "#]],
    );
    check(
        &["--instance", "FOLDER/rules.yaml"],
        &[],
        expect![[r#"
        error: --instance FOLDER/rules.yaml holds no PortalInstance
    "#]],
    );
    check(
        &["--instance", "FOLDER/none.yaml"],
        &[],
        expect![[r#"
        error: --instance FOLDER/none.yaml cannot be read: No such file or directory (os error 2)
    "#]],
    );
}

#[test]
fn in_split_mode_each_layer_has_its_own() {
    let instance =
        b"apiVersion: portal.io/v1alpha1\nkind: PortalInstance\nmetadata: {name: team}\nspec:\n  mode: split\n  \
                     audit: {enabled: true}\n";
    check(
        &["--instance", "FOLDER/instance.yaml"],
        &[("instance.yaml", instance)],
        expect![[r#"
            instance team: what its engine is granted because of 4 rules

            in the whole cluster (ClusterRole portal-team-admission)
              get, list, watch   pods                                     services-have-pods

            in the whole cluster (ClusterRole portal-team-audit)
              get, list, watch   pods                                     no-latest, services-have-pods
              get, list, watch   podtemplates                             no-latest
              get, list, watch   replicationcontrollers                   no-latest
              get, list, watch   serviceaccounts                          tokens
              get, list, watch   services                                 services-have-pods
              get, list, watch   daemonsets.apps                          no-latest
              get, list, watch   deployments.apps                         no-latest
              get, list, watch   replicasets.apps                         no-latest
              get, list, watch   statefulsets.apps                        no-latest
              get, list, watch   cronjobs.batch                           no-latest
              get, list, watch   jobs.batch                               no-latest
              get, list, watch   ingresses.networking.k8s.io              certificates

            not granted
              list               leases.coordination.k8s.io in shop       certificates: above the ceiling: apply a ClusterRole with the label rbac.portal.io/aggregate-to-ceiling=true
              get, list, watch   secrets                                  tokens: refused by default: name it in `rbac.allowedResources` of the instance, and raise the ceiling

            what every engine may do, whatever its rules say: portal generate roles --account ACCOUNT
        "#]],
    );
}

#[test]
fn programs_get_every_rule_by_name() {
    check(
        &["--output", "json"],
        &[],
        expect![[r#"
            {"granted":[{"account":"portal-default","group":"","namespace":null,"resource":"pods","rules":["services-have-pods"],"verb":"get"},{"account":"portal-default","group":"","namespace":null,"resource":"pods","rules":["services-have-pods"],"verb":"list"},{"account":"portal-default","group":"","namespace":null,"resource":"pods","rules":["services-have-pods"],"verb":"watch"}],"instance":"default","refused":[{"group":"","namespace":null,"reason":"refused by default: name it in `rbac.allowedResources` of the instance, and raise the ceiling","resource":"secrets","rules":["tokens"],"verb":"get"},{"group":"","namespace":null,"reason":"refused by default: name it in `rbac.allowedResources` of the instance, and raise the ceiling","resource":"secrets","rules":["tokens"],"verb":"list"},{"group":"","namespace":null,"reason":"refused by default: name it in `rbac.allowedResources` of the instance, and raise the ceiling","resource":"secrets","rules":["tokens"],"verb":"watch"},{"group":"coordination.k8s.io","namespace":"shop","reason":"above the ceiling: apply a ClusterRole with the label rbac.portal.io/aggregate-to-ceiling=true","resource":"leases","rules":["certificates"],"verb":"list"}]}
        "#]],
    );
}

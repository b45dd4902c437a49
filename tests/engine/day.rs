//! As many changes as a day has, each of a rule with a new name: nothing of them stays.

use futures_util::future::join_all;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use portal_crds::PortalRule;
use portal_test_kit::{Cluster, share};
use serde_json::{Value, json};

use super::process::Engine;
use super::{BAD, GOOD, apply, cluster, create, definition, rule, rules_api};
use crate::core::eventually;

/// Those who change rules at the same time, and how many times in a round each of them has rules.
const CLIENTS: usize = 6;
const TIMES: usize = 2;

/// Rules that are made, changed, broken, fixed and removed, step by step. At each step as many others come and go.
const RULES: usize = 4;
const STEPS: usize = 5;

/// Changes in a round.
const CHANGES: usize = CLIENTS * TIMES * STEPS * RULES * 3;

/// Somebody who changes rules of both kinds.
#[derive(Clone)]
struct Person {
    cluster_rules: Api<DynamicObject>,
    rules: Api<DynamicObject>,
}

impl Person {
    fn new(client: Client) -> Person {
        let resource = ApiResource::erase::<PortalRule>(&());
        let rules = Api::namespaced_with(client.clone(), "default", &resource);
        Person { cluster_rules: rules_api(client), rules }
    }

    /// A rule, of a kind that its number says, and where it goes.
    fn rule(&self, number: usize, name: &str, text: &str) -> (&Api<DynamicObject>, Value) {
        let mut rule = rule(name, text);
        if number.is_multiple_of(2) {
            return (&self.cluster_rules, rule);
        }
        rule["kind"] = json!("PortalRule");
        (&self.rules, rule)
    }

    async fn delete(&self, number: usize, name: &str) {
        self.rule(number, name, "").0.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The lives of some rules. The last one is for a kind that comes and goes.
    async fn work(&self, prefix: &str, kind: &str) {
        for step in 0..STEPS {
            for number in 0..RULES {
                let name = format!("{prefix}-{number}");
                let text = format!("{} && \"{name}\" != \"{step}\"", if step == 2 { BAD } else { GOOD });
                let (api, mut rule) = self.rule(number, &name, &text);
                if number + 1 == RULES {
                    rule["spec"] = json!({
                        "match": { "gvk": [{ "group": "acme.io", "kind": kind }] },
                        "rule": format!("object.spec.size > {step}"),
                    });
                }
                match step {
                    0 => create(api, rule).await,
                    4 => self.delete(number, &name).await,
                    _ => {
                        let patch = json!({ "spec": rule["spec"] });
                        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
                    }
                }
                let short = format!("{name}-{step}");
                let (api, rule) = self.rule(number, &short, &text);
                create(api, rule).await;
                self.delete(number, &short).await;
            }
        }
    }
}

/// Rules that the engine knows, whatever has become of them.
fn count(engine: &Engine) -> i64 {
    let states = ["active", "refused", "waiting", "disabled", "shadowed", "unsupported", "over-quota"];
    states.iter().map(|state| engine.metric(&format!("portal_rules{{state=\"{state}\"}}"))).sum()
}

/// Watches of what the engine watches, by the API server's own count.
fn watches(cluster: &Cluster) -> u64 {
    let text = cluster.kubectl(&["get", "--raw", "/metrics"]).unwrap();
    let open = text.lines().filter(|line| line.starts_with("apiserver_longrunning_requests{"));
    let watched = ["portalclusterrules", "portalrules", "customresourcedefinitions", "apiservices"];
    let open = open.filter(|line| watched.iter().any(|resource| line.contains(&format!("resource=\"{resource}\""))));
    open.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_day_of_changes_the_engine_is_as_it_was() {
    // The parts of the day. At the end of each there is no rule.
    let rounds = share::times(4, 32) as usize;
    let cluster = cluster();
    let engine = Engine::ready(&cluster.kubeconfig(), &["--rules-from-cluster"]);
    eventually("it holds", || engine.metric("portal_lease_held") == 1);
    let people = join_all((0..CLIENTS).map(|_| async { Person::new(cluster.client().await) })).await;
    let (parts, watched) = (engine.usage().parts(), watches(&cluster));
    assert!(watched >= 4, "{watched} watches");

    let mut usages = Vec::new();
    for round in 0..rounds {
        let (plural, kind) = (format!("widgets{round}"), format!("Widget{round}"));
        apply(&cluster, &definition(&plural, &kind));
        let work = people.iter().cloned().enumerate().map(|(number, person)| {
            let kind = kind.clone();
            tokio::spawn(async move {
                for time in 0..TIMES {
                    person.work(&format!("rule-{round}-{number}-{time}"), &kind).await;
                }
            })
        });
        for done in join_all(work).await {
            done.unwrap();
        }
        cluster.kubectl(&["delete", "crd", &format!("{plural}.acme.io")]).unwrap();
        // A rule of each kind after all others: when they are known, so is what was before.
        for number in [0, 1] {
            let (api, rule) = people[0].rule(number, "last", GOOD);
            create(api, rule).await;
        }
        eventually("all changes are known", || {
            engine.metric(r#"portal_rules{state="active"}"#) == 2 && count(&engine) == 2
        });
        for number in [0, 1] {
            people[0].delete(number, "last").await;
        }
        eventually("no rule is left", || count(&engine) == 0);
        eventually("no task is left", || engine.usage().parts() == parts);
        usages.push(engine.usage());
    }
    // The first rounds are for what is made once: buffers, connections, what the allocator keeps. A little more is used by
    // and by, because documents share texts for ever, names among them; how many is bounded.
    engine.usage().assert_not_grown(&usages[rounds / 4 - 1], 4 << 20);
    let connections = engine.usage().connections;
    // One for each watch and each write at a time, for the Lease, and some that wait to be used again. There were thousands of writes.
    assert!(connections <= 32, "{connections} connections");
    eventually("it watches what it did", || watches(&cluster) == watched);
    let told = engine.metric(r#"portal_rule_updates_total{source="object"}"#);
    // A watch that began anew has not told of what came and went meanwhile.
    let changes = (rounds * CHANGES) as i64;
    assert!(told >= changes / 2, "the engine was told of {told} of {changes} changes");
}

//! Histories of objects, rules, namespaces and workers.

use fastrand::Rng;
use portal_test_kit::share;
use serde_json::json;

use super::*;

const RULES: [&str; 6] = [
    PRIVILEGED,
    "
name: no-privileged
match: {gvk: [{kind: Pod}], labelSelector: {matchLabels: {app: x}}}
rule: container.securityContext.privileged == true
message: container {{ container.name }} of {{ metadata.name }} is privileged
",
    "
name: budget
match: {gvk: [{kind: Deployment}]}
rule: none(cluster.poddisruptionbudgets.list(metadata.namespace), selects(.spec.selector, object.spec.template.metadata.labels))
message: no budget
",
    "
name: in-team
match: {gvk: [{kind: Pod}], namespaceSelector: {matchLabels: {team: a}}, podControllers: false}
rule: metadata.labels.app == nil
message: no label
",
    "
name: has-service
match: {gvk: [{kind: Deployment}]}
rule: cluster.services.byName(metadata.namespace, metadata.name) == nil
message: no service
",
    r#"
name: lonely
match: {gvk: [{kind: Service}]}
rule: "len(cluster.pods.list(metadata.namespace, {app: object.spec.selector.app ?? 'none'})) == 0"
message: no pods
"#,
];

pub(crate) const NAMESPACES: [&str; 2] = ["a", "b"];

/// Some rules.
pub(crate) fn rules(random: &mut Rng) -> String {
    let mut chosen: Vec<&str> = RULES[2..].iter().copied().filter(|_| random.u8(..4) > 0).collect();
    if random.u8(..4) > 0 {
        chosen.push(RULES[random.usize(..2)]);
    }
    chosen.join("\n---")
}

/// An object that they are about, or that they look up.
pub(crate) fn object(random: &mut Rng) -> Value {
    let (namespace, name) = (NAMESPACES[random.usize(..2)], format!("o{}", random.u8(..3)));
    let is_privileged = random.bool();
    let app = ["x", "y", "o0", "o1"][random.usize(..4)];
    let owner =
        |random: &mut Rng, kind: &str| (random.u8(..3) > 0).then(|| format!("{kind}-{namespace}-o{}", random.u8(..3)));
    let mut object = match random.u8(..6) {
        0 | 1 => {
            let owner = owner(random, "ReplicaSet");
            pod(namespace, &name, owner.as_deref(), is_privileged)
        }
        2 => {
            let owner = owner(random, "Deployment");
            controller("ReplicaSet", namespace, &name, owner.as_deref(), is_privileged)
        }
        3 => controller("Deployment", namespace, &name, None, is_privileged),
        4 => json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "uid": format!("service-{namespace}-{name}")},
            "spec": {"selector": {"app": app}},
        }),
        _ => json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": namespace, "uid": format!("budget-{namespace}-{name}")},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        }),
    };
    if random.u8(..3) > 0 {
        object["metadata"]["labels"] = json!({"app": app});
    }
    // Now and then another object of the same name.
    if random.u8(..6) == 0 {
        let uid = format!("{}-other", object["metadata"]["uid"].as_str().unwrap());
        object["metadata"]["uid"] = uid.into();
    }
    object
}

fn step(scene: &mut Scene, random: &mut Rng) {
    match random.u8(..20) {
        0..8 => scene.apply(object(random)),
        8..11 => {
            let object = object(random);
            let metadata = &object["metadata"];
            scene.delete(
                object["kind"].as_str().unwrap(),
                metadata["namespace"].as_str(),
                metadata["name"].as_str().unwrap(),
            );
        }
        11 => {
            let name = NAMESPACES[random.usize(..2)];
            let team = ["a", "b"][random.usize(..2)];
            scene.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "labels": {"team": team}}}));
        }
        12 => {
            let rules = rules(random);
            if !rules.is_empty() {
                scene.rules(&rules);
            }
        }
        13 => {
            // A watch was lost, and something has happened meanwhile.
            let kind = KINDS[random.usize(1..6)].1;
            let known: Vec<Value> = {
                let (_, store) = scene.store(kind);
                let moment = store.shown().moment();
                moment
                    .iter()
                    .flat_map(|moment| moment.iter())
                    .map(|object| serde_json::from_str(&object.root().to_json()).unwrap())
                    .collect()
            };
            let mut listed: Vec<Value> = known.into_iter().filter(|_| random.u8(..4) > 0).collect();
            for object in &mut listed {
                if random.u8(..4) == 0 {
                    let app = ["x", "y"][random.usize(..2)];
                    object["metadata"]["labels"] = json!({"app": app});
                    object["metadata"]["resourceVersion"] = scene.next_version().into();
                }
            }
            scene.list(kind, &listed);
        }
        14..17 => _ = scene.begin(),
        17..19 => {
            if !scene.in_hand.is_empty() {
                let place = random.usize(..scene.in_hand.len());
                scene.end(place);
            }
        }
        _ => scene.now += Duration::from_millis(random.u64(..4000)),
    }
}

#[tokio::test]
async fn what_is_shown_is_what_a_fresh_start_shows() {
    for seed in share::seeds(60, 5_000) {
        let mut random = Rng::with_seed(seed);
        let allowance = Allowance { times: random.u32(1..5), window: Duration::from_secs(random.u64(1..20)) };
        let mut scene = Scene::new(allowance, Selector::default());
        for (_, kind) in KINDS {
            scene.list(kind, &[]);
        }
        for _ in 0..random.usize(20..200) {
            step(&mut scene, &mut random);
        }
        scene.quiet();
        let (shown, fresh) = (scene.shown(), scene.fresh());
        assert_eq!(shown, fresh, "seed {seed}");
        // What is counted is what is shown.
        let violations = shown.lines().filter_map(|line| line.split_once([' ', '!'])).map(|(rule, _)| rule.to_owned());
        let counted: usize = scene.board.counts().values().sum();
        let objects: std::collections::BTreeSet<(String, String)> = scene
            .board
            .offenders()
            .iter()
            .flat_map(|(id, offender)| {
                offender.findings.iter().map(move |finding| (finding.rule.id.to_string(), id.to_string()))
            })
            .collect();
        assert_eq!((counted, violations.count() >= counted), (objects.len(), true), "seed {seed}");
    }
}

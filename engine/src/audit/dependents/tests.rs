//! Whoever is found by a change is whoever would be found by asking each query whether it selects the object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use portal_core::{kinds::Kinds, lookup::Filter, object::Object, selector::Requirement};
use portal_document::Options;
use portal_test_kit::share;
use serde_json::json;

use super::*;

const NAMESPACES: [&str; 3] = ["a", "b", "ab"];

fn kind(random: &mut Rng) -> Arc<Kind> {
    let (group, kind) = [("", "Pod"), ("", "Service"), ("policy", "PodDisruptionBudget")][random.usize(..3)];
    Arc::clone(Kinds::builtin().get(group, kind).unwrap())
}

fn namespace(random: &mut Rng) -> &'static str {
    NAMESPACES[random.usize(..NAMESPACES.len())]
}

fn object(random: &mut Rng, kind: &Kind, namespace: &str, name: &str) -> Object<'static> {
    let mut labels = serde_json::Map::new();
    for key in ["app", "tier"] {
        if random.u8(..3) > 0 {
            labels.insert(key.to_owned(), json!(format!("v{}", random.u8(..3))));
        }
    }
    let json = json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}}).to_string();
    Object::parse(json.as_bytes(), kind, &Options::default()).unwrap()
}

fn query(random: &mut Rng) -> Query {
    let values =
        |random: &mut Rng| (0..random.u8(1..3)).map(|_| format!("v{}", random.u8(..4))).collect::<BTreeSet<_>>();
    let requirement = |random: &mut Rng| {
        let test = match random.u8(..6) {
            0 => Test::NotIn(values(random)),
            1 => Test::Exists,
            2 => Test::DoesNotExist,
            _ => Test::In(values(random)),
        };
        Requirement { key: ["app", "tier"][random.usize(..2)].to_owned(), test }
    };
    let filter = match random.u8(..3) {
        0 => Filter::Name(format!("o{}", random.u8(..4))),
        _ => Filter::Labels(Selector::new((0..random.u8(..3)).map(|_| requirement(random)))),
    };
    let namespace = (random.u8(..4) > 0).then(|| namespace(random).to_owned());
    Query { kind: kind(random), namespace, filter, consistent: false }
}

#[test]
fn a_change_finds_whoever_has_asked_for_it() {
    for seed in share::seeds(30, 2_000) {
        let mut random = Rng::with_seed(seed);
        let mut dependents = Dependents::new(usize::MAX);
        let mut plain: BTreeMap<Pair, Vec<Query>> = BTreeMap::new();
        for _ in 0..120 {
            let pair = Pair { record: random.u32(..8), rule: random.u32(..4) };
            match random.u8(..10) {
                0 => {
                    dependents.forget(pair.record);
                    plain.retain(|known, _| known.record != pair.record);
                }
                1 => {
                    dependents.retain_rules(|rule| rule != pair.rule);
                    plain.retain(|known, _| known.rule != pair.rule);
                }
                2..6 => {
                    let queries: Vec<Query> = (0..random.u8(..4)).map(|_| query(&mut random)).collect();
                    assert!(dependents.set(pair, &queries).is_empty());
                    plain.insert(pair, queries);
                }
                _ => {
                    let (kind, namespace, name) =
                        (kind(&mut random), namespace(&mut random), format!("o{}", random.u8(..4)));
                    let before = object(&mut random, &kind, namespace, &name);
                    let after = object(&mut random, &kind, namespace, &name);
                    let is_there = [random.bool(), random.bool()];
                    let shown = [(&before, is_there[0]), (&after, is_there[1])];
                    let labels = shown.map(|(object, is_there)| {
                        if is_there {
                            object.root().get_str("metadata").and_then(|metadata| metadata.get_str("labels"))
                        } else {
                            None
                        }
                    });
                    let found =
                        dependents.affected(Changed { kind: &kind, namespace: Some(namespace), name: &name, labels });
                    // An object that is not there has no labels, which fits a selector that wants none: one evaluation too many.
                    let selects = |query: &Query| {
                        let of_labels = |labels| match &query.filter {
                            Filter::Name(wanted) => *wanted == name,
                            Filter::Labels(selector) => selector.matches(labels),
                        };
                        query.kind == kind
                            && query.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
                            && labels.iter().any(|labels| of_labels(*labels))
                    };
                    let expected: Vec<Pair> = plain
                        .iter()
                        .filter(|(_, queries)| queries.iter().any(selects))
                        .map(|(pair, _)| *pair)
                        .collect();
                    assert_eq!(found, expected, "seed {seed}");
                }
            }
        }
        for record in 0..8 {
            dependents.forget(record);
        }
        assert_eq!((dependents.len(), dependents.by_hash.len(), dependents.lists.len()), (0, 0, 0), "seed {seed}");
        assert_eq!(dependents.free.len(), dependents.queries.len(), "seed {seed}");
    }
}

#[test]
fn when_there_are_too_many_others_are_forgotten_in_turn() {
    let mut random = Rng::with_seed(7);
    let mut dependents = Dependents::new(3);
    let query = query(&mut random);
    let forgotten: Vec<RecordNo> =
        (0..6).flat_map(|record| dependents.set(Pair { record, rule: 1 }, std::slice::from_ref(&query))).collect();
    assert_eq!((forgotten.len(), dependents.len()), (3, 3));
    // What was asked again is not forgotten by that.
    let last = Pair { record: 5, rule: 1 };
    assert!(dependents.set(last, std::slice::from_ref(&query)).is_empty());
}

//! A store says what a plain list of its objects would say, whatever became of it.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use portal_core::{
    kinds::Kinds,
    lookup::Filter,
    selector::{Requirement, Selector, Test},
};
use portal_document::Options;
use serde_json::json;

use super::*;

/// What a store should hold: the JSON of objects, by namespace and name.
type Plain = BTreeMap<(String, String), String>;

fn read(json: &str) -> Object<'static> {
    let kind = Kinds::builtin().get("", "ConfigMap").unwrap();
    Object::parse(json.as_bytes(), kind, &Options::default()).unwrap()
}

fn object(random: &mut Rng, namespace: &str, name: &str) -> String {
    let mut labels = serde_json::Map::new();
    for key in ["app", "tier", "app.kubernetes.io/name"] {
        if random.u8(..3) > 0 {
            labels.insert(key.to_owned(), json!(format!("v{}", random.u8(..4))));
        }
    }
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": {"a": random.u8(..).to_string()}})
        .to_string()
}

fn selector(random: &mut Rng) -> Selector {
    let value = |random: &mut Rng| format!("v{}", random.u8(..5));
    let requirement = |random: &mut Rng| {
        let values: BTreeSet<String> = (0..random.u8(1..3)).map(|_| value(random)).collect();
        let test = match random.u8(..6) {
            0 => Test::NotIn(values),
            1 => Test::Exists,
            2 => Test::DoesNotExist,
            _ => Test::In(values),
        };
        let key = ["app", "tier", "app.kubernetes.io/name", "none"][random.usize(..4)];
        Requirement { key: key.to_owned(), test }
    };
    let count = random.u8(..4);
    Selector::new((0..count).map(|_| requirement(random)))
}

/// Compares the answers of a store with a look at every object.
#[track_caller]
fn check(random: &mut Rng, moment: &Moment, plain: &Plain) {
    let (namespaces, name) = (["", "a", "b", "ab", "none"], format!("o{}", random.u8(..12)));
    let namespace = namespaces[random.usize(..namespaces.len())];
    let wanted = Some(namespace).filter(|namespace| !namespace.is_empty());
    let by_name = moment.find(Some(namespace), &Filter::Name(name.clone())).unwrap();
    let by_name: Vec<String> = by_name.iter().map(|object| object.root().to_json()).collect();
    let expected: Vec<String> =
        plain.get(&(namespace.to_owned(), name)).map(|json| read(json).root().to_json()).into_iter().collect();
    assert_eq!(by_name, expected);
    let selector = selector(random);
    let found = moment.find(wanted, &Filter::Labels(selector.clone())).unwrap();
    let found: Vec<String> = found.iter().map(|object| object.root().to_json()).collect();
    let is_there = |place: &str| wanted.is_none_or(|wanted| wanted == place);
    let expected: Vec<String> = plain
        .iter()
        .filter(|((place, _), _)| is_there(place))
        .map(|(_, json)| read(json))
        .filter(|object| {
            selector.matches(object.root().get_str("metadata").and_then(|metadata| metadata.get_str("labels")))
        })
        .map(|object| object.root().to_json())
        .collect();
    assert_eq!(found, expected, "{selector:?} in {wanted:?}");
}

#[test]
fn a_store_answers_as_a_plain_scan_does() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let (mut store, mut plain) = (Store::default(), Plain::new());
        store.end_list();
        for _ in 0..400 {
            let namespace = ["", "a", "b", "ab"][random.usize(..4)];
            let name = format!("o{}", random.u8(..12));
            let place = Some(namespace).filter(|namespace| !namespace.is_empty());
            match random.u8(..10) {
                0..3 => {
                    store.delete(place, &name);
                    plain.remove(&(namespace.to_owned(), name));
                }
                3 => relist(&mut random, &mut store, &mut plain),
                _ => {
                    let json = object(&mut random, namespace, &name);
                    store.apply(place, &name, Ok(read(&json)));
                    plain.insert((namespace.to_owned(), name), json);
                }
            }
            let moment = store.shown().moment().unwrap();
            assert_eq!(moment.len(), plain.len());
            let bytes: usize = moment.iter().map(|object| object.size_bytes()).sum();
            assert_eq!(moment.size_bytes(), bytes);
            check(&mut random, &moment, &plain);
        }
        for (namespace, name) in plain.into_keys() {
            store.delete(Some(namespace.as_str()).filter(|namespace| !namespace.is_empty()), &name);
        }
        // Nothing is left of what is gone.
        let Moment { places, names, objects, terms, bytes, .. } = store.now;
        assert_eq!((places.len(), names.len(), objects.len(), terms.len(), bytes), (0, 0, 0, 0, 0));
    }
}

/// Names all objects again, of which some have changed and some are gone since, in any order and some twice, of which the later one counts.
/// Until the end nobody sees anything of it.
fn relist(random: &mut Rng, store: &mut Store, plain: &mut Plain) {
    let before = store.shown().moment().unwrap();
    store.begin_list();
    plain.retain(|_, _| random.u8(..4) > 0);
    let mut names: Vec<(String, String)> = plain.keys().cloned().collect();
    names.extend(names.clone().into_iter().filter(|_| random.u8(..4) == 0));
    random.shuffle(&mut names);
    for (namespace, name) in names {
        let json = object(random, &namespace, &name);
        store.list(Some(namespace.as_str()).filter(|namespace| !namespace.is_empty()), &name, Ok(read(&json)));
        plain.insert((namespace, name), json);
        assert!(Arc::ptr_eq(&before, &store.shown().moment().unwrap()));
    }
    store.end_list();
}

#[test]
fn a_moment_does_not_change() {
    let mut store = Store::default();
    assert!(matches!(store.shown().now(), Seen::NotSynced));
    store.list(Some("a"), "one", Ok(read(r#"{"metadata":{"name":"one","namespace":"a","labels":{"x":"1"}}}"#)));
    store.end_list();
    let before = store.shown().moment().unwrap();
    store.apply(Some("a"), "one", Ok(read(r#"{"metadata":{"name":"one","namespace":"a","labels":{"x":"2"}}}"#)));
    store.delete(Some("a"), "one");
    let is_x = |value: &str| {
        let test = Test::In(BTreeSet::from([value.to_owned()]));
        Filter::Labels(Selector::new([Requirement { key: "x".to_owned(), test }]))
    };
    let count = |moment: &Moment, value| moment.find(None, &is_x(value)).unwrap().len();
    assert_eq!((count(&before, "1"), count(&before, "2")), (1, 0));
    assert!(store.shown().moment().unwrap().is_empty());
}

#[test]
fn an_object_that_cannot_be_read_is_never_taken_for_one_that_is_not_there() {
    let mut store = Store::default();
    store.list(Some("a"), "good", Ok(read(r#"{"metadata":{"name":"good","namespace":"a"}}"#)));
    store.list(Some("b"), "bad", Err("it is too deep".to_owned()));
    store.end_list();
    let moment = store.shown().moment().unwrap();
    let all = Filter::Labels(Selector::default());
    let bad = Err("b/bad cannot be read: it is too deep".to_owned());
    let find = |namespace, filter: &Filter| moment.find(namespace, filter).map(|found| found.len());
    assert_eq!(find(Some("b"), &Filter::Name("bad".to_owned())), bad);
    assert_eq!(find(Some("b"), &all), bad);
    assert_eq!(find(None, &all), bad);
    assert_eq!(find(Some("b"), &Filter::Name("other".to_owned())), Ok(0));
    assert_eq!(find(Some("a"), &all), Ok(1));
    store.apply(Some("b"), "bad", Ok(read(r#"{"metadata":{"name":"bad","namespace":"b"}}"#)));
    assert_eq!(store.shown().moment().unwrap().find(None, &all).map(|found| found.len()), Ok(2));
    store.apply(Some("b"), "bad", Err("it is too deep".to_owned()));
    store.begin_list();
    store.end_list();
    assert_eq!(store.shown().moment().unwrap().find(None, &all).map(|found| found.len()), Ok(0));
}

#[test]
fn what_the_api_server_refuses_is_no_answer() {
    let mut store = Store::default();
    store.set_refusal(Some("not allowed to list pods".to_owned()));
    assert!(matches!(store.shown().now(), Seen::Refused(_)));
    store.end_list();
    assert!(matches!(store.shown().now(), Seen::Refused(_)));
    store.set_refusal(None);
    assert!(matches!(store.shown().now(), Seen::Moment(_)));
}

#[test]
fn hostile_objects_cost_what_their_bytes_cost() {
    let kind = Kinds::builtin().get("", "ConfigMap").unwrap();
    let many = |count: usize, entry: &dyn Fn(usize) -> String| (0..count).map(entry).collect::<Vec<_>>().join(",");
    let deep = format!("{}{}", "[".repeat(9_990), "]".repeat(9_990));
    let hostile = [
        format!(r#"{{"metadata":{{"name":"o"}},"data":{{"a":"{}"}}}}"#, "x".repeat(3 << 20)),
        format!(
            r#"{{"metadata":{{"name":"o"}},"data":{{{}}}}}"#,
            many(200_000, &|number| format!(r#""k{number}":"""#))
        ),
        format!(
            r#"{{"metadata":{{"name":"o","labels":{{{}}}}}}}"#,
            many(10_000, &|number| format!(r#""k{number}":"v{number}""#))
        ),
        format!(r#"{{"metadata":{{"name":"o"}},"spec":{deep}}}"#),
        format!(r#"{{"metadata":{{"name":"o"}},"spec":[{}]}}"#, many(300_000, &|_| r#"{"a":1}"#.to_owned())),
        r#"{"metadata":{"name":"o","labels":[1,{"a":null}]},"data":7}"#.to_owned(),
        r#"{"metadata":"none"}"#.to_owned(),
    ];
    for json in hostile {
        let mut store = Store::default();
        store.end_list();
        let begin: String = json.chars().take(60).collect();
        for _ in 0..2 {
            let object = Object::parse(json.as_bytes(), kind, &Options::default()).unwrap();
            store.apply(Some("a"), "o", Ok(object));
        }
        let moment = store.shown().moment().unwrap();
        // A node of `{"a":1}` is three words of four bytes for eight bytes of text.
        assert!(moment.size_bytes() <= 4 * json.len(), "{begin}: {} of {}", moment.size_bytes(), json.len());
        assert!(moment.terms.len() * 8 <= 2 * json.len(), "{begin}");
        assert_eq!(moment.find(Some("a"), &Filter::Labels(Selector::default())).unwrap().len(), 1);
        store.delete(Some("a"), "o");
        assert_eq!((store.now.bytes, store.now.terms.len()), (0, 0));
    }
}

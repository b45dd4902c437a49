//! What rules look up equals what the API server has, whatever happened on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use portal_cluster::{
    health::Health,
    metrics::{Metrics, Registry},
    runtime::Runtime,
};
use portal_core::{
    kinds::{Kind, Kinds},
    lookup::Filter,
    object::Object,
    selector::{Requirement, Selector, Test},
};
use portal_document::{Interner, Interning, Options};
use portal_engine::{
    cache::{
        feed::{self, Source},
        moment::Moment,
        store::{Shown, Store},
    },
    metrics::EngineMetrics,
};
use portal_test_kit::fault_proxy::{Answer, Fault, FaultProxy, Injected, Requests, Storm, Verb};
use portal_test_kit::{Cluster, share};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cluster;

/// A feed of ConfigMaps that runs.
struct Fed {
    shown: Shown,
    health: Health,
    _shutdown: DropGuard,
}

impl Fed {
    fn start(client: Client, namespace: Option<&str>) -> Fed {
        let (store, registry, shutdown) = (Store::default(), Registry::new(), CancellationToken::new());
        let (shown, health) = (store.shown(), Health::default());
        let source = Source { kind: Arc::new(kind().clone()), namespace: namespace.map(str::to_owned) };
        let (metrics, own) = (Metrics::register(&registry), EngineMetrics::register(&registry));
        let runtime = Runtime { client, health: health.clone(), metrics, shutdown: shutdown.clone() };
        tokio::spawn(feed::follow(source, store, runtime, own, Arc::default(), None));
        Fed { shown, health, _shutdown: shutdown.drop_guard() }
    }
}

fn kind() -> &'static Kind {
    Kinds::builtin().get("", "ConfigMap").unwrap()
}

/// Objects as a list has them, by namespace and name.
type Listed = BTreeMap<(String, String), Object<'static>>;

async fn list(client: &Client, namespace: Option<&str>) -> Listed {
    let path = match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/configmaps"),
        None => "/api/v1/configmaps".to_owned(),
    };
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let list: Value = serde_json::from_str(&client.request_text(request).await.unwrap()).unwrap();
    let objects = list["items"].as_array().unwrap().iter().map(|item| {
        let text = |field: &str| item["metadata"][field].as_str().unwrap().to_owned();
        let object = Object::parse(item.to_string().as_bytes(), kind(), &Options::default()).unwrap();
        ((text("namespace"), text("name")), object.with_type(kind(), "v1", Interning::Add))
    });
    objects.collect()
}

/// Says how a cache differs from a list.
fn difference(moment: &Moment, listed: &Listed) -> Option<String> {
    let mut cached = moment.iter();
    for ((namespace, name), object) in listed {
        match cached.next() {
            Some(found) if found.root().same(object.root()) => {}
            found => {
                let found = found.map(|found| found.root().to_json());
                return Some(format!("{namespace}/{name} is {}\nand {found:?} is cached", object.root().to_json()));
            }
        }
    }
    cached.next().map(|found| format!("{} is cached and gone", found.root().to_json()))
}

fn labels(random: &mut Rng) -> BTreeMap<String, String> {
    let keys = ["app", "tier", "app.kubernetes.io/part-of"];
    let some = keys.into_iter().filter(|_| random.bool()).collect::<Vec<_>>();
    some.into_iter().map(|key| (key.to_owned(), format!("v{}", random.u8(..4)))).collect()
}

fn config_map(random: &mut Rng, name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels(random)), ..ObjectMeta::default() };
    let data = BTreeMap::from([("a".to_owned(), random.u16(..).to_string())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

fn selector(random: &mut Rng) -> Selector {
    let requirement = |random: &mut Rng| {
        let values: BTreeSet<String> = (0..random.u8(1..3)).map(|_| format!("v{}", random.u8(..5))).collect();
        let test = match random.u8(..6) {
            0 => Test::NotIn(values),
            1 => Test::Exists,
            2 => Test::DoesNotExist,
            _ => Test::In(values),
        };
        Requirement { key: ["app", "tier", "app.kubernetes.io/part-of", "none"][random.usize(..4)].to_owned(), test }
    };
    let count = random.u8(..4);
    Selector::new((0..count).map(|_| requirement(random)))
}

fn full_name(object: &Object<'_>) -> (String, String) {
    let metadata = object.root().get_str("metadata").unwrap();
    let text = |field: &str| metadata.get_str(field).and_then(|text| text.as_str()).unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Compares answers with a look at every object.
fn check_answers(random: &mut Rng, moment: &Moment, listed: &Listed, seed: u64) {
    let namespaces: BTreeSet<&String> = listed.keys().map(|(namespace, _)| namespace).collect();
    let namespaces: Vec<&String> = namespaces.into_iter().collect();
    for _ in 0..50 {
        let namespace = random.choice(&namespaces).map(|namespace| namespace.as_str()).filter(|_| random.bool());
        let selector = selector(random);
        let found = moment.find(namespace, &Filter::Labels(selector.clone())).unwrap();
        let found: Vec<(String, String)> = found.iter().map(|object| full_name(object)).collect();
        let fits = |object: &Object<'_>| {
            selector.matches(object.root().get_str("metadata").and_then(|metadata| metadata.get_str("labels")))
        };
        let is_there = |place: &str| namespace.is_none_or(|wanted| wanted == place);
        let expected = listed.iter().filter(|((place, _), object)| is_there(place) && fits(object));
        let expected: Vec<(String, String)> = expected.map(|(name, _)| name.clone()).collect();
        assert_eq!(found, expected, "history {seed}: {selector:?} in {namespace:?}");
        let named = Filter::Name(format!("o{}", random.u8(..12)));
        let Filter::Name(name) = &named else { unreachable!() };
        let namespace = namespace.unwrap_or("default");
        let found = moment.find(Some(namespace), &named).unwrap();
        assert_eq!(found.len(), usize::from(listed.contains_key(&(namespace.to_owned(), name.clone()))));
    }
}

/// Changes objects of a namespace for a while, with faults between the caches and the API server.
async fn history(seed: u64, direct: Client, proxy: &FaultProxy) -> (String, [Fed; 2]) {
    let mut random = Rng::with_seed(seed);
    let name = format!("c{seed}");
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let namespaces: Api<Namespace> = Api::all(direct.clone());
    namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await.unwrap();
    let client = proxy.client(&name, "engine", &["system:masters"]).unwrap().client();
    let own = Requests::all().from(&name);
    // To some histories the API server is one that cannot begin a watch with a list.
    let refusal = Answer { status: 422, reason: "Invalid", retry_after: None };
    let _unstreamed: Option<Injected> =
        random.bool().then(|| proxy.inject(Fault::Answer(refusal).on(own.clone().verbs(&[Verb::Watch])).next(2)));
    let _storm = proxy.storm(Storm { on: own, ..Storm::default() });
    let feeds = [Fed::start(client.clone(), Some(&name)), Fed::start(client, None)];
    let api: Api<ConfigMap> = Api::namespaced(direct, &name);
    for _ in 0..40 {
        let name = format!("o{}", random.u8(..12));
        let object = config_map(&mut random, &name);
        match random.u8(..4) {
            0 => drop(api.delete(&name, &DeleteParams::default()).await),
            1 => drop(api.create(&PostParams::default(), &object).await),
            _ => drop(api.replace(&name, &PostParams::default(), &object).await),
        }
        tokio::time::sleep(Duration::from_millis(random.u64(..60))).await;
    }
    (name, feeds)
}

/// Waits until a cache is as a fresh list.
async fn settle(seed: u64, fed: &Fed, client: &Client, namespace: Option<&str>) -> (Arc<Moment>, Listed) {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let listed = list(client, namespace).await;
        let difference = match fed.shown.moment() {
            Some(moment) => match difference(&moment, &listed) {
                None => return (moment, listed),
                Some(difference) => difference,
            },
            None => "nothing is cached".to_owned(),
        };
        assert!(Instant::now() < deadline, "history {seed}: {difference}\n{}", fed.health.report());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// More objects than a page has.
async fn fill(client: &Client) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut random = Rng::with_seed(0);
    let objects: Vec<ConfigMap> = (0..1_200).map(|number| config_map(&mut random, &format!("x{number}"))).collect();
    for objects in objects.chunks(50) {
        let parameters = PostParams::default();
        let created = objects.iter().map(|object| api.create(&parameters, object));
        futures_util::future::join_all(created).await.into_iter().for_each(|created| drop(created.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_all_is_quiet_a_cache_is_as_a_fresh_list() {
    const AT_ONCE: usize = 40;
    let seeds: Vec<u64> = share::seeds(20, 1_000).collect();
    let cluster: Cluster = cluster();
    let client = cluster.client().await;
    fill(&client).await;
    let proxy = FaultProxy::start(&cluster, seeds[0]).await.unwrap();
    for (round, seeds) in seeds.chunks(AT_ONCE).enumerate() {
        let histories = futures_util::future::join_all(seeds.iter().map(|seed| history(*seed, client.clone(), &proxy)));
        let restart = async {
            // Watches that were open end, and what they had not told yet is told by another process.
            if round % 5 == 0 {
                tokio::time::sleep(Duration::from_millis(800)).await;
                tokio::task::block_in_place(|| cluster.restart_api_server()).unwrap();
            }
        };
        let (feeds, ()) = tokio::join!(histories, restart);
        for (seed, (namespace, [own, all])) in seeds.iter().zip(&feeds) {
            let mut random = Rng::with_seed(*seed);
            let (moment, listed) = settle(*seed, own, &client, Some(namespace)).await;
            check_answers(&mut random, &moment, &listed, *seed);
            let (moment, listed) = settle(*seed, all, &client, None).await;
            check_answers(&mut random, &moment, &listed, *seed);
        }
    }
}

/// Memory of this process that is resident, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Set for the process in which memory is measured: that of this one is what other tests make of it.
const APART: &str = "PORTAL_TEST_APART";

#[test]
fn what_comes_and_goes_leaves_nothing() {
    if std::env::var_os(APART).is_none() {
        let program = std::env::current_exe().unwrap();
        let own = ["--exact", "engine::caches::what_comes_and_goes_leaves_nothing", "--nocapture"];
        let output = std::process::Command::new(program).args(own).env(APART, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let events = share::times(100_000, 10_000_000);
    let mut random = Rng::with_seed(7);
    let mut store = Store::default();
    store.end_list();
    let mut first = None;
    for number in 0..events {
        // Names, labels and values that never come again, as a Deployment gives to each of its pods.
        let (name, namespace) = (format!("o{}", random.u16(..2_000)), format!("n{}", random.u8(..20)));
        if random.u8(..3) == 0 {
            store.delete(Some(&namespace), &name);
        } else {
            let labels =
                json!({"app": format!("v{}", random.u8(..50)), "pod-template-hash": format!("{number:x}"), "a": "b"});
            let metadata =
                json!({"name": name, "namespace": namespace, "labels": labels, "uid": format!("{number}-{number}")});
            let object =
                json!({"metadata": metadata, "data": {"a": number.to_string(), format!("k{number}"): "x".repeat(60)}});
            let object = Object::parse(object.to_string().as_bytes(), kind(), &Options::default()).unwrap();
            store.apply(Some(&namespace), &name, Ok(object));
        }
        // A kind that no rule needs any more, and then one does again.
        if number % 50_000 == 49_999 {
            store = Store::default();
            store.end_list();
        }
        if number == events / 4 {
            first = Some((resident(), Interner::global().size_bytes()));
        }
    }
    let (resident_before, interned_before) = first.unwrap();
    let (resident, interned) = (resident(), Interner::global().size_bytes());
    println!("resident {resident_before} → {resident}, interned {interned_before} → {interned}");
    assert!(resident < resident_before + (32 << 20), "{resident_before} → {resident} bytes");
    assert!(store.shown().moment().unwrap().len() <= 40_000);
}

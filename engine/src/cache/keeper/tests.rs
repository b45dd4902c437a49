//! Which watches there are, for which rules, and how long a start waits for them.

use portal_cluster::{
    health::Health,
    metrics::{Metrics, Registry, text},
};
use tokio::time::{sleep, timeout};

use super::*;
use crate::testing::{api::ApiServer, rules::Rules};

/// A keeper that runs, and what it works on.
struct Kept {
    rules: Rules,
    caches: Caches,
    health: Health,
    registry: Registry,
    _shutdown: tokio_util::sync::DropGuard,
}

impl Kept {
    async fn start(api: &ApiServer, watched_kinds: &[&str]) -> Kept {
        let (rules, registry, shutdown) = (Rules::none().await, Registry::new(), CancellationToken::new());
        let health = Health::default();
        health.expect(&Part::Caches);
        health.well(&Part::Kinds);
        let (client, metrics) = (api.client(), Metrics::register(&registry));
        let runtime = Runtime { client, health: health.clone(), metrics, shutdown: shutdown.clone() };
        let (in_force, updates) = (rules.in_force.clone(), rules.updates.clone());
        let watched: Vec<String> = watched_kinds.iter().map(ToString::to_string).collect();
        let own = EngineMetrics::register(&registry);
        let keeper = Keeper::new(runtime, own, in_force, updates, vec![Part::Kinds, Part::Folder], &watched, None);
        let caches = keeper.caches();
        tokio::spawn(keeper.run());
        Kept { rules, caches, health, registry, _shutdown: shutdown.drop_guard() }
    }

    /// Puts rules in place, and says that all are there.
    async fn swap(&self, yaml: &str) {
        self.rules.swap(yaml).await;
        sleep(Duration::from_millis(100)).await;
        self.health.loaded(&Part::Folder);
        sleep(Duration::from_secs(1)).await;
    }

    /// The names of the rules in force.
    fn in_force(&self) -> Vec<String> {
        self.rules.in_force.now().rules.rules().iter().map(|rule| rule.id.to_string()).collect()
    }

    /// What people and Prometheus are told of a watch: the metrics that have a series of it, and whether it has a line.
    fn told_of(&self, watch: &str) -> (Vec<String>, bool) {
        let (metrics, label) = (text(&self.registry), format!("{{watch={watch:?}}}"));
        let named = metrics.lines().filter_map(|line| line.split_once(&label));
        let named = named.map(|(name, _)| name.to_owned()).collect();
        (named, self.health.report().contains(&format!("]watch {watch} ")))
    }

    fn is_watched(&self, kind: &str, namespace: Option<&str>) -> bool {
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let id = FeedId::of(Kinds::builtin().get(group, kind).unwrap(), namespace);
        self.caches.feeds.load().contains_key(&id)
    }
}

/// An API server that lists nothing, and refuses to list what `is_refused` says. Watches do not go on.
fn api(is_refused: impl Fn(&str) -> bool + Send + Sync + 'static) -> ApiServer {
    let end = r#"{"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    let refusal =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}"#;
    ApiServer::new(move |path| match path {
        path if is_refused(path) => (403, refusal.to_owned()),
        path if path.contains("sendInitialEvents=true") => (200, format!("{end}\n")),
        _ => (500, String::new()),
    })
}

fn own_rule(namespace: &str) -> String {
    format!(
        "---\napiVersion: portal.io/v1alpha1\nkind: PortalRule\nmetadata: {{name: own, namespace: {namespace}}}\n\
         spec: {{match: {{gvk: [{{kind: Pod}}]}}, rule: len(cluster.services.list(metadata.namespace)) > 3}}\n"
    )
}

fn rules_of(namespaces: usize) -> String {
    (0..namespaces).map(|number| own_rule(&format!("n{number}"))).collect()
}

const ALL: &str =
    "---\nname: all\nmatch: {gvk: [{kind: Pod}]}\nrule: len(cluster.services.list(metadata.namespace)) > 3\n";

#[tokio::test(start_paused = true)]
async fn few_namespaces_have_a_watch_each_and_many_have_one_together() {
    let kept = Kept::start(&api(|_| false), &[]).await;
    kept.swap(&rules_of(NAMESPACES)).await;
    assert_eq!(kept.in_force().len(), NAMESPACES);
    assert!(kept.is_watched("Service", Some("n0")) && !kept.is_watched("Service", None));
    assert!(kept.health.is_loaded(&Part::Caches));
    kept.swap(&rules_of(NAMESPACES + 1)).await;
    assert_eq!(kept.in_force().len(), NAMESPACES + 1);
    assert!(kept.is_watched("Service", None));
    // The others are not needed any more, and go after a while.
    sleep(LINGER * 2).await;
    assert!(!kept.is_watched("Service", Some("n0")) && kept.is_watched("Service", None));
    // And back: what is watched now is needed until the others are there.
    kept.swap(&rules_of(3)).await;
    assert!(kept.is_watched("Service", Some("n0")) && kept.in_force().len() == 3);
    sleep(LINGER * 2).await;
    assert!(kept.is_watched("Service", Some("n2")) && !kept.is_watched("Service", None));
    assert_eq!(kept.in_force().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_see_all_namespaces_sees_each() {
    let kept = Kept::start(&api(|path| path.starts_with("/api/v1/services")), &[]).await;
    kept.swap(&format!("{ALL}{}", rules_of(NAMESPACES + 1))).await;
    assert_eq!(kept.in_force().len(), NAMESPACES + 1);
    assert!(kept.is_watched("Service", None), "it is tried again");
    // What is refused is not waited for.
    assert!(kept.health.is_loaded(&Part::Caches));
    assert_eq!(kept.rules.in_force.now().starved().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_put_back_finds_its_objects() {
    let api = api(|_| false);
    let kept = Kept::start(&api, &[]).await;
    kept.swap(ALL).await;
    let lists = || api.asked().iter().filter(|path| path.contains("/services") && path.contains("sendInitial")).count();
    assert_eq!((kept.in_force().len(), lists()), (1, 1));
    kept.swap("").await;
    sleep(LINGER / 2).await;
    kept.swap(ALL).await;
    sleep(LINGER * 2).await;
    assert_eq!((kept.in_force().len(), lists()), (1, 1));
    kept.swap("").await;
    sleep(LINGER * 2).await;
    assert!(!kept.is_watched("Service", None));
}

#[tokio::test(start_paused = true)]
async fn a_start_waits_for_objects_and_not_for_ever() {
    let api = api(|_| false).silent();
    let kept = Kept::start(&api, &[]).await;
    kept.swap(ALL).await;
    sleep(PATIENCE - Duration::from_secs(5)).await;
    assert!(!kept.health.is_loaded(&Part::Caches));
    sleep(Duration::from_secs(10)).await;
    assert!(kept.health.is_loaded(&Part::Caches) && kept.in_force().is_empty());
    // They come after all.
    api.answers.add_permits(1_000);
    let in_force = async {
        while kept.in_force().is_empty() {
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(Duration::from_secs(120), in_force).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kinds_can_be_watched_before_a_rule_needs_them() {
    let kept = Kept::start(&api(|_| false), &["services", "nothings", "Ingress.networking.k8s.io", "Node"]).await;
    kept.swap("").await;
    for kind in ["Service", "Ingress.networking.k8s.io", "Node", "Namespace"] {
        assert!(kept.is_watched(kind, None), "{kind}");
    }
    assert!(!kept.is_watched("Pod", None));
    let report = kept.health.report();
    assert!(report.contains("caches no kind is served as nothings, of --watched-kinds"), "{report}");
    kept.swap(ALL).await;
    assert_eq!(kept.in_force().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_comes_and_goes_leaves_neither_series_nor_a_line() {
    let kept = Kept::start(&api(|_| false), &[]).await;
    let metrics = ["portal_cache_bytes", "portal_cache_objects", "portal_watch_errors_total"].map(str::to_owned);
    for _ in 0..2 {
        kept.swap(ALL).await;
        // The API server does not go on with the watch, which is an error.
        sleep(Duration::from_secs(10)).await;
        assert_eq!(kept.told_of("services.v1"), (metrics.to_vec(), true));
        kept.swap("").await;
        sleep(LINGER * 2).await;
        assert_eq!(kept.told_of("services.v1"), (Vec::new(), false));
    }
}

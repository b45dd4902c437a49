//! Decides which kinds are watched, by what the rules look up, and tells the index which of them are at hand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use portal_cluster::{
    health::Part,
    rules::{
        Update,
        feeds::{FeedId, FeedState, Feeds},
        snapshot::InForce,
    },
    runtime::Runtime,
};
use portal_core::{
    kinds::{Kind, Kinds},
    requirements::Reach,
};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    changes::Changes,
    feed::{self, Source},
    moment::Moment,
    store::{Seen, Shown, Store},
};
use crate::metrics::EngineMetrics;

#[cfg(test)]
mod tests;

/// The objects that are watched. A clone sees the same.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    feeds: Arc<ArcSwap<HashMap<FeedId, Shown>>>,
    /// Grows whenever a feed begins, is at hand, is refused or ends.
    states: Arc<watch::Sender<u64>>,
}

/// Keeps as many feeds as the rules need.
pub struct Keeper {
    runtime: Runtime,
    metrics: EngineMetrics,
    in_force: InForce,
    updates: mpsc::Sender<Update>,
    caches: Caches,
    start: Start,
    /// The plurals or names of kinds that are watched even while no rule looks them up.
    watched_kinds: Vec<String>,
    feeds: HashMap<FeedId, Running>,
    tasks: JoinSet<()>,
    /// Feeds tell here that something is different.
    changed: Arc<Notify>,
    /// What the index was told last.
    told: Feeds,
    /// Whoever is told of every change, and judges what is there.
    listener: Option<Arc<dyn Changes>>,
}

/// How far the start is.
enum Start {
    /// These have to be loaded before it is known which rules there are.
    Loading(Vec<Part>),
    /// Since then the rules are known, and the objects that they look up are awaited.
    Syncing(Instant),
    Over,
}

/// A feed that runs.
struct Running {
    shown: Shown,
    end: CancellationToken,
    /// Since when nothing needs it.
    unneeded: Option<Instant>,
}

/// What is needed of each kind.
type Needs = BTreeMap<Arc<Kind>, Need>;

/// Where objects of a kind are needed.
#[derive(Clone, Debug, Default)]
struct Need {
    everywhere: bool,
    namespaces: BTreeSet<String>,
}

/// Up to so many namespaces of a kind have a watch each. More of them are one watch of the whole cluster, if that is allowed: each watch
/// costs the API server a connection and memory.
const NAMESPACES: usize = 20;

/// A feed that nothing needs any more goes on for so long. Whoever judges by rules that were replaced has to be done by then, and a rule that
/// is taken away is often put back.
const LINGER: Duration = Duration::from_secs(60);

/// So much longer it goes on after the index was told that it is gone: until it heard that, it may have put a rule in force that needs it.
const RETIREMENT: Duration = Duration::from_secs(10);

/// So long a start waits for objects. One kind that cannot be listed must not keep the others' rules from being enforced.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked whether the start is over.
const STARTING: Duration = Duration::from_millis(5);

/// The kind that a flag means: a plural such as `deployments.apps`, or the kind itself, such as `Deployment.apps`.
fn named<'k>(kinds: &'k Kinds, name: &str) -> Option<&'k Arc<Kind>> {
    if !name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
        return kinds.by_plural(name).ok();
    }
    let (kind, group) = name.split_once('.').unwrap_or((name, ""));
    kinds.get(group, kind)
}

impl Caches {
    /// One kind, as a store has it.
    #[cfg(test)]
    pub(crate) fn showing(kind: &Kind, store: &Store) -> Caches {
        Caches::from_iter([(FeedId::of(kind, None), store.shown())])
    }

    /// Tells when a feed begins, is at hand, is refused or ends.
    pub(crate) fn states(&self) -> watch::Receiver<u64> {
        self.states.subscribe()
    }

    /// The objects of a kind as every feed of it shows them, with the namespace of the feed if it is for one alone.
    pub(crate) fn moments(&self, kind: &Kind) -> Vec<(Option<String>, Arc<Moment>)> {
        let version = kind.versions.first().map_or("", String::as_str);
        let is_of_kind =
            |id: &FeedId| (&*id.group, &*id.plural, &*id.version) == (&*kind.group, &*kind.plural, version);
        let feeds = self.feeds.load();
        let own = feeds.iter().filter(|(id, _)| is_of_kind(id));
        own.filter_map(|(id, shown)| Some((id.namespace.clone(), shown.moment()?))).collect()
    }

    /// What is shown of the objects of a kind, in a namespace or everywhere. Who knows them all knows those of a namespace.
    pub fn get(&self, kind: &Kind, namespace: Option<&str>) -> Option<Shown> {
        let feeds = self.feeds.load();
        let all = feeds.get(&FeedId::of(kind, None));
        if let Some(all) = all.filter(|all| namespace.is_none() || all.moment().is_some()) {
            return Some(all.clone());
        }
        let own = namespace.and_then(|namespace| feeds.get(&FeedId::of(kind, Some(namespace))));
        own.or(all).cloned()
    }
}

/// What others keep.
impl FromIterator<(FeedId, Shown)> for Caches {
    fn from_iter<I: IntoIterator<Item = (FeedId, Shown)>>(feeds: I) -> Caches {
        Caches { feeds: Arc::new(ArcSwap::from_pointee(feeds.into_iter().collect())), states: Arc::default() }
    }
}

impl Keeper {
    /// A keeper of nothing but namespaces, which every request needs. `loading` is what has to be loaded before it is known which
    /// rules there are.
    pub fn new(
        runtime: Runtime,
        metrics: EngineMetrics,
        in_force: InForce,
        updates: mpsc::Sender<Update>,
        loading: Vec<Part>,
        watched_kinds: &[String],
        listener: Option<Arc<dyn Changes>>,
    ) -> Keeper {
        let (caches, feeds, tasks) = (Caches::default(), HashMap::new(), JoinSet::new());
        let (changed, told, start) = (Arc::default(), Feeds::default(), Start::Loading(loading));
        let watched_kinds = watched_kinds.to_vec();
        let mut keeper = Keeper {
            runtime,
            metrics,
            in_force,
            updates,
            caches,
            start,
            watched_kinds,
            feeds,
            tasks,
            changed,
            told,
            listener,
        };
        keeper.arrange(&Needs::new());
        keeper
    }

    /// What others see of the objects.
    pub fn caches(&self) -> Caches {
        self.caches.clone()
    }

    /// Follows what the rules need, until the end.
    pub async fn run(mut self) {
        let mut numbers = self.in_force.numbers();
        let (mut needs, mut number) = self.needs().await;
        loop {
            self.arrange(&needs);
            if self.tell().await.is_err() {
                return;
            }
            self.note_start();
            self.note_settled(&needs, number);
            let next = self.next_look();
            tokio::select! {
                changed = numbers.changed() => match changed {
                    Ok(()) => (needs, number) = self.needs().await,
                    Err(_) => return,
                },
                () = self.changed.notified() => {}
                () = sleep_until(next) => {}
                Some(Err(error)) = self.tasks.join_next() => {
                    if let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
                () = self.runtime.shutdown.cancelled() => return,
            }
        }
    }

    /// What the rules need and what is watched in any case, and by which snapshot. With thousands of rules that takes a while, and workers
    /// have requests to answer.
    async fn needs(&self) -> (Needs, u64) {
        let snapshot = self.in_force.now();
        let (kinds, number) = (Arc::clone(&snapshot.kinds), snapshot.number);
        let mut needs: Needs = match tokio::task::spawn_blocking(move || snapshot.watched()).await {
            Ok(watched) => watched.into_iter().map(|(kind, reach)| (kind, Need::of(reach))).collect(),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let mut unknown = Vec::new();
        for name in &self.watched_kinds {
            match named(&kinds, name) {
                Some(kind) => needs.entry(Arc::clone(kind)).or_default().everywhere = true,
                None => unknown.push(name.as_str()),
            }
        }
        if !unknown.is_empty() && kinds.iter().next().is_some() {
            let unknown = unknown.join(", ");
            self.runtime.health.unwell(&Part::Caches, &format!("no kind is served as {unknown}, of --watched-kinds"));
        } else if !self.watched_kinds.is_empty() {
            self.runtime.health.recovered(&Part::Caches);
        }
        (needs, number)
    }

    /// Starts the feeds that are needed, and ends those that nothing has needed for a while.
    fn arrange(&mut self, needs: &Needs) {
        let namespaces = Kinds::builtin().get("", "Namespace").expect("the table of Kubernetes has it");
        let mut wanted = BTreeMap::from([(FeedId::of(namespaces, None), namespaces)]);
        for (kind, need) in needs {
            wanted.extend(self.wanted(kind, need).into_iter().map(|id| (id, kind)));
        }
        let running = self.feeds.len();
        for (id, kind) in &wanted {
            if !self.feeds.contains_key(id) {
                self.begin(id, kind);
            }
        }
        let now = Instant::now();
        let started = self.feeds.len() - running;
        self.feeds.retain(|id, feed| {
            feed.unneeded = if wanted.contains_key(id) { None } else { feed.unneeded.or(Some(now)) };
            let is_over = feed.unneeded.is_some_and(|since| now >= since + LINGER + RETIREMENT);
            if is_over {
                feed.end.cancel();
            }
            !is_over
        });
        if started > 0 || self.feeds.len() < running + started {
            let shown = self.feeds.iter().map(|(id, feed)| (id.clone(), feed.shown.clone()));
            self.caches.feeds.store(Arc::new(shown.collect()));
        }
    }

    /// The feeds that a kind needs. What takes the place of another feed is wanted beside it until its objects are at hand.
    fn wanted(&self, kind: &Kind, need: &Need) -> BTreeSet<FeedId> {
        let all = FeedId::of(kind, None);
        let own: Vec<FeedId> = need.namespaces.iter().map(|namespace| FeedId::of(kind, Some(namespace))).collect();
        let state = |id: &FeedId| self.feeds.get(id).map(Running::state);
        let is_for_all = need.everywhere || own.len() > NAMESPACES;
        let mut wanted = BTreeSet::new();
        if is_for_all || (state(&all).is_some() && own.iter().any(|id| state(id) != Some(FeedState::Synced))) {
            wanted.insert(all.clone());
        }
        match state(&all) {
            Some(FeedState::Synced) if is_for_all => {}
            // Those that run go on, and no others begin: the objects of all namespaces will be there soon.
            None | Some(FeedState::Syncing) if is_for_all => {
                wanted.extend(own.into_iter().filter(|id| self.feeds.contains_key(id)));
            }
            _ => wanted.extend(own),
        }
        wanted
    }

    fn begin(&mut self, id: &FeedId, kind: &Arc<Kind>) {
        let source = Source { kind: Arc::clone(kind), namespace: id.namespace.clone() };
        let (store, end) = (Store::default(), self.runtime.shutdown.child_token());
        let running = Running { shown: store.shown(), end: end.clone(), unneeded: None };
        let runtime = Runtime { shutdown: end, ..self.runtime.clone() };
        let (changed, listener) = (Arc::clone(&self.changed), self.listener.clone());
        self.tasks.spawn(feed::follow(source, store, runtime, self.metrics.clone(), changed, listener));
        self.feeds.insert(id.clone(), running);
    }

    /// Tells the index what is at hand, if that is something else than before.
    async fn tell(&mut self) -> Result<(), mpsc::error::SendError<Update>> {
        let now = Instant::now();
        let told = self.feeds.iter().filter(|(_, feed)| !feed.is_retired(now));
        let states = Feeds::new(told.map(|(id, feed)| (id.clone(), feed.state())));
        if states == self.told {
            return Ok(());
        }
        self.told = states.clone();
        self.caches.states.send_modify(|number| *number += 1);
        self.updates.send(Update::Feeds(Arc::new(states))).await
    }

    /// Says that the start is over, once no rule waits for objects that may still come.
    fn note_start(&mut self) {
        let health = &self.runtime.health;
        if let Start::Loading(parts) = &self.start
            && parts.iter().all(|part| health.is_loaded(part))
        {
            self.start = Start::Syncing(Instant::now());
        }
        let Start::Syncing(since) = self.start else { return };
        let snapshot = self.in_force.now();
        let is_refused = |rule| self.told.lack(rule).is_some_and(|lack| lack.refusal.is_some());
        if since.elapsed() >= PATIENCE || snapshot.starved().iter().all(|rule| is_refused(rule)) {
            health.loaded(&Part::Caches);
            self.start = Start::Over;
        }
    }

    /// Tells the listener whether all that rules need is known or refused.
    fn note_settled(&self, needs: &Needs, number: u64) {
        let Some(listener) = &self.listener else { return };
        let is_loaded = !matches!(self.start, Start::Loading(_)) && number >= self.in_force.now().number;
        let is_settled =
            |id: &FeedId| self.feeds.get(id).is_some_and(|feed| !matches!(feed.state(), FeedState::Syncing));
        let wanted = |(kind, need): (&Arc<Kind>, &Need)| self.wanted(kind, need);
        let is_settled = is_loaded && needs.iter().flat_map(wanted).all(|id| is_settled(&id));
        listener.settled(is_settled.then_some(number));
    }

    /// When it is looked again although nobody tells that anything is different.
    fn next_look(&self) -> Instant {
        let now = Instant::now();
        if !matches!(self.start, Start::Over) {
            return now + STARTING;
        }
        let unneeded = self.feeds.values().filter_map(|feed| feed.unneeded);
        let ends = unneeded.flat_map(|since| [since + LINGER, since + LINGER + RETIREMENT]);
        ends.filter(|end| *end > now).min().unwrap_or(now + LINGER)
    }
}

impl Need {
    fn of(reach: Reach) -> Need {
        Need { everywhere: !reach.cluster.is_empty(), namespaces: reach.namespaces.into_keys().collect() }
    }
}

impl Running {
    /// Whether nothing has needed it for so long that nobody may count on it any more.
    fn is_retired(&self, now: Instant) -> bool {
        self.unneeded.is_some_and(|since| now >= since + LINGER)
    }

    fn state(&self) -> FeedState {
        match self.shown.now() {
            _ if self.shown.moment().is_some() => FeedState::Synced,
            Seen::Refused(reason) => FeedState::Refused(reason),
            _ => FeedState::Syncing,
        }
    }
}

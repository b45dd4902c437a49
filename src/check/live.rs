//! The cluster of a kubeconfig as the one that rules look things up in.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use portal_cluster::{
    client,
    kinds::discover,
    metrics::Registry,
    watch::{chain, explain},
};
use portal_core::{
    evaluate::{Evaluation, evaluate},
    event::Event,
    kinds::Kinds,
    layers::Layers,
    lookup::{Answer, Filter, Lookup, Query},
    manifest::Problem,
    object::Object,
    requirements::{Reason, Requirements},
    rule::RuleSet,
};
use portal_document::Node;
use portal_engine::{
    admission::judge::READINGS,
    cache::{
        answers::{Answers, FreshAnswer},
        feed::Source,
        fresh::Fresh,
        keeper::Caches,
        once::list_once,
        store::Seen,
    },
    metrics::EngineMetrics,
};
use portal_expr::Limits;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout};

use crate::check::{cluster::Cluster, existing::Existing};

/// The way to a cluster, and what it serves.
pub(crate) struct Connection {
    threads: Threads,
    client: Client,
    kinds: Kinds,
}

/// What the rules look up of a cluster.
pub(crate) struct Live<'a> {
    connection: &'a Connection,
    caches: Caches,
    fresh: Fresh,
    /// What was read afresh: objects that ask the same are answered alike. Written by every worker.
    read: Mutex<HashMap<Query, FreshAnswer>>,
    /// Whether the API server has let a fresh read wait in vain. Written by every worker.
    is_silent: AtomicBool,
}

/// The objects of files, laid over those of a cluster: as it will be once they are applied.
struct Laid<'a> {
    files: &'a Cluster,
    answers: &'a Answers<'a>,
    /// What the cluster serves.
    kinds: &'a Kinds,
}

/// The threads of the client.
struct Threads(Option<Runtime>);

/// So long it may take until the cluster has said what it serves, and then until all is listed that the rules look up. Whoever waits for a
/// check wants to know what is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// So long a fresh read may take. A webhook would have given up before.
const FRESH_PATIENCE: Duration = Duration::from_secs(10);

/// What may help if there is no answer.
const WAY_OUT: &str = "check the `server` of the kubeconfig, and the way to it";

/// What is said where no file is to be blamed.
pub(crate) const FLAG: &str = "--live";

impl Connection {
    /// Asks a cluster what it serves. Without a kubeconfig it is the one that `kubectl` would ask.
    pub(crate) fn open(kubeconfig: Option<&Path>) -> Result<Connection, Problem> {
        let place = kubeconfig.map_or(FLAG.to_owned(), |path| path.display().to_string());
        let problem = |message: String| Problem::of_file(place.clone(), message);
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let threads = Threads(Some(runtime.map_err(|error| problem(format!("no threads can be started: {error}")))?));
        let opened = threads.wait(async {
            let client = client::connect(kubeconfig).await.map_err(|error| match kubeconfig {
                Some(_) => format!("this kubeconfig cannot be used: {error}"),
                None => format!("no kubeconfig leads to a cluster: {error}; give --kubeconfig FILE or set KUBECONFIG"),
            })?;
            match timeout(PATIENCE, discover(&client, None)).await {
                Ok(Ok(kinds)) => Ok((client, kinds)),
                Ok(Err(error @ kube::Error::Api(_))) => {
                    Err(format!("the cluster does not say what it serves: {}", explain("get", "/apis", &error)))
                }
                Ok(Err(error)) => Err(format!("the cluster cannot be reached: {}; {WAY_OUT}", chain(&error))),
                Err(_) => Err(format!("the cluster has not answered within {PATIENCE:?}; {WAY_OUT}")),
            }
        });
        let (client, kinds) = opened.map_err(problem)?;
        Ok(Connection { threads, client, kinds })
    }

    /// What the cluster serves.
    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The way to the cluster.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Waits for an answer of the cluster.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.threads.wait(future)
    }

    /// The namespace in which `kubectl` would make objects that name none.
    pub(crate) fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Lists what rules look up, each kind once, and what they judge if that is asked for too. What cannot be listed fails the rules that
    /// ask for it, when they do.
    pub(crate) fn list(&self, rules: &RuleSet, judged_too: bool) -> Live<'_> {
        let watches = Requirements::of(rules, Layers::ALL).watches.into_iter();
        let mut sources = Vec::new();
        // What only files define has no objects yet.
        for (kind, reasons) in watches.filter(|(kind, _)| self.kinds.of_resource(&kind.group, &kind.plural).is_some()) {
            for (_, reach) in reasons.into_iter().filter(|(reason, _)| is_lookup(*reason)) {
                let everywhere = (!reach.cluster.is_empty()).then_some(None);
                let places = everywhere.into_iter().chain(reach.namespaces.into_keys().map(Some));
                sources.extend(places.map(|namespace| Source { kind: Arc::clone(&kind), namespace }));
            }
        }
        if judged_too {
            sources.extend(judged(rules));
        }
        let caches = self.threads.wait(list_once(&self.client, sources, Instant::now() + PATIENCE));
        let fresh = Fresh::new(self.client.clone(), EngineMetrics::register(&Registry::new()));
        Live { connection: self, caches, fresh, read: Mutex::default(), is_silent: AtomicBool::new(false) }
    }
}

impl Live<'_> {
    /// The objects of the cluster that these rules are about.
    pub(crate) fn existing(&self, rules: &RuleSet) -> Existing {
        let mut existing = Existing::default();
        for Source { kind, namespace } in judged(rules) {
            let seen = self.caches.get(&kind, namespace.as_deref()).map(|shown| shown.now());
            existing.add(&kind, namespace.as_deref(), seen.unwrap_or(Seen::NotSynced));
        }
        existing.note_versions(rules);
        existing
    }

    /// Judges an event, and reads what rules want to know afresh, as often as the webhook would.
    pub(crate) fn evaluate(&self, rules: &RuleSet, files: &Cluster, event: &Event<'_>, limits: &Limits) -> Evaluation {
        let missing = event.namespace.filter(|_| !event.is_of_namespace()).and_then(|name| self.missing(name));
        let mut answers = Answers::new(&self.caches, missing.as_ref().map(|(name, reason)| (*name, reason)));
        let mut readings = 0;
        loop {
            if readings == READINGS {
                answers.end_reading();
            }
            let laid = Laid { files, answers: &answers, kinds: &self.connection.kinds };
            let evaluation = evaluate(rules, &laid, event, limits);
            if evaluation.needs.is_empty() {
                return evaluation;
            }
            readings += 1;
            answers.add(self.read(evaluation.needs));
        }
    }

    /// The namespace of what is judged, if it is not in the cluster, and what rules are told that ask for it. It is never taken for one
    /// without labels.
    fn missing<'n>(&self, name: &'n str) -> Option<(&'n str, Result<Arc<Object<'static>>, String>)> {
        let kind = self.connection.kinds.get("", "Namespace")?;
        let Seen::Moment(namespaces) = self.caches.get(kind, None)?.now() else { return None };
        let reason =
            || format!("{name} is neither in the cluster nor in a file: create it, or check it along with the files");
        namespaces.get(None, name).is_none().then(|| (name, Err(reason())))
    }

    /// What the API server says at this moment, or said when somebody asked the same.
    fn read(&self, needs: Vec<Query>) -> Vec<(Query, FreshAnswer)> {
        let known = |query: &Query| self.read.lock().unwrap_or_else(PoisonError::into_inner).get(query).cloned();
        let mut answers = Vec::new();
        let mut asked = BTreeSet::new();
        for query in needs {
            match known(&query) {
                Some(answer) => answers.push((query, answer)),
                // Every object would wait as long.
                None if self.is_silent.load(Ordering::Relaxed) => {
                    answers.push((query, Err("the API server has not answered in time before".to_owned())));
                }
                None => {
                    asked.insert(query);
                }
            }
        }
        if asked.is_empty() {
            return answers;
        }
        let deadline = Instant::now() + FRESH_PATIENCE;
        let read = self.connection.threads.wait(self.fresh.read(asked, deadline));
        if Instant::now() >= deadline {
            self.is_silent.store(true, Ordering::Relaxed);
        }
        self.read.lock().unwrap_or_else(PoisonError::into_inner).extend(read.iter().cloned());
        answers.extend(read);
        answers
    }
}

impl Lookup for Laid<'_> {
    fn answer(&self, query: &Query) -> Answer {
        let own = self.files.find(query);
        if matches!(query.filter, Filter::Name(_)) && !own.is_empty() {
            return Answer::Found(own);
        }
        if self.kinds.of_resource(&query.kind.group, &query.kind.plural).is_none() {
            return Answer::Found(own);
        }
        let mut found = match self.answers.answer(query) {
            Answer::Found(found) => found,
            other => return other,
        };
        let names = self.files.names(&query.kind);
        found.retain(|object| names.is_empty() || !names.contains(&name_of(object.root())));
        found.extend(own);
        Answer::Found(found)
    }
}

impl Threads {
    fn wait<F: Future>(&self, future: F) -> F::Output {
        self.0.as_ref().expect("it is there until the end").block_on(future)
    }
}

impl Drop for Threads {
    /// Does not wait for a name server that never answers.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What rules judge, and where. Each place once.
fn judged(rules: &RuleSet) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for rule in rules.rules() {
        for judged in &rule.judged {
            let namespace = &rule.id.namespace;
            let covers = |source: &Source| {
                source.kind == judged.kind && (source.namespace.is_none() || source.namespace == *namespace)
            };
            if !sources.iter().any(covers) {
                if namespace.is_none() {
                    sources.retain(|source| source.kind != judged.kind);
                }
                sources.push(Source { kind: Arc::clone(&judged.kind), namespace: namespace.clone() });
            }
        }
    }
    sources
}

fn is_lookup(reason: Reason) -> bool {
    match reason {
        Reason::Lookup | Reason::NamespaceSelector => true,
        Reason::Match | Reason::Outcome => false,
    }
}

/// The namespace and the name of an object.
fn name_of(object: Node<'_>) -> (Option<&str>, &str) {
    let metadata = object.get_str("metadata");
    let text = |field: &str| metadata.and_then(|metadata| metadata.get_str(field)).and_then(Node::as_str);
    (text("namespace"), text("name").unwrap_or_default())
}

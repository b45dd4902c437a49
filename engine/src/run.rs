//! The life of an engine: what starts, in which order, and how it ends.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use kube::{Client, core::Selector};
use portal_core::rule::{RuleSet, source::RuleId};
use portal_crds::{PortalClusterRule, PortalRule};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
};
use tracing::{error, info, warn};

use crate::{
    client::greet,
    health::{Health, Part},
    holder::{self, Holder, Timing},
    kinds,
    metrics::Metrics,
    rules::{
        Loader, Outcome, Problem, Report, Update,
        cluster::{self, Outlets},
        folder,
        index::{self, Index, Outcomes},
        status::{Counts, Writer},
    },
    server,
    watch::Pauses,
};

/// News that may wait. A loader that is faster than the index waits with its next.
const QUEUE: usize = 1024;

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the instance. The status of rules has an entry for each.
    pub instance: String,
    /// The namespace of the engine, where its Lease is.
    pub namespace: String,
    /// Who this replica is: the name of its pod.
    pub identity: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are.
    pub listen: SocketAddr,
    /// Where other replicas reach this one, if that is known.
    pub address: Option<IpAddr>,
    /// Whether the rules of the cluster are loaded.
    pub rules_from_cluster: bool,
    /// Which of them, by their labels.
    pub rule_selector: Selector,
    /// A folder of rules.
    pub rules_folder: Option<PathBuf>,
    /// The times of the Lease.
    pub timing: Timing,
}

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken, or is not of this machine.
    #[error("could not listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Tells every part when to end.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// The rules in force, for whoever evaluates. Swapped as a whole.
pub type Rules = Arc<ArcSwap<RuleSet>>;

impl Shutdown {
    /// A signal, and how to give it.
    pub fn new() -> (watch::Sender<bool>, Shutdown) {
        let (sender, receiver) = watch::channel(false);
        (sender, Shutdown(receiver))
    }

    /// Waits for the end. An engine without an owner ends too.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|is_over| *is_over).await;
    }
}

/// Whether an instance or a namespace can have this name.
pub fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    let bytes = name.as_bytes();
    bytes.iter().all(|byte| is_inner(*byte)) && is_end(bytes.first()) && is_end(bytes.last()) && name.len() <= 63
}

/// The name of the Lease of an instance.
pub(crate) fn lease_name(instance: &str) -> String {
    format!("portal-engine-{instance}")
}

/// Runs an engine until it is told to end. `connect` makes a client, and is asked until it can. `counts` are what layers count.
/// Whether every part ended as it should.
pub async fn run<F>(
    connect: impl Fn() -> F,
    settings: Settings,
    counts: mpsc::Receiver<(RuleId, Counts)>,
    mut shutdown: Shutdown,
) -> Result<bool, Error>
where
    F: Future<Output = Result<Client, String>>,
{
    let (health, metrics) = (Health::default(), Metrics::new());
    health.expect(Part::ApiServer);
    health.expect(Part::Kinds);
    let (listener, listen) =
        server::bind(settings.listen).await.map_err(|source| Error::Listen { address: settings.listen, source })?;
    info!(%listen, instance = settings.instance, "Engine starts");

    let mut tasks = JoinSet::new();
    tasks.spawn(server::serve(listener, health.clone(), metrics.clone(), shutdown.clone()));
    let client = tokio::select! {
        client = connected(connect, &health) => client,
        () = shutdown.wait() => return Ok(true),
    };
    let (updates, updated) = mpsc::channel(QUEUE);
    let (reports, heard) = mpsc::channel(QUEUE);
    let (waiting, is_waiting) = watch::channel(false);
    let rules: Rules = Arc::default();

    tasks.spawn(kinds::follow(
        client.clone(),
        updates.clone(),
        is_waiting,
        health.clone(),
        metrics.clone(),
        shutdown.clone(),
    ));
    if settings.rules_from_cluster {
        health.expect(Part::ClusterRules);
        health.expect(Part::Rules);
        let (seen, sight) = mpsc::channel(QUEUE);
        let outlets = Outlets { updates: updates.clone(), seen };
        tasks.spawn(cluster::follow::<PortalClusterRule>(
            client.clone(),
            Loader::ClusterRules,
            settings.rule_selector.clone(),
            outlets.clone(),
            health.clone(),
            metrics.clone(),
            shutdown.clone(),
        ));
        tasks.spawn(cluster::follow::<PortalRule>(
            client.clone(),
            Loader::Rules,
            settings.rule_selector.clone(),
            outlets,
            health.clone(),
            metrics.clone(),
            shutdown.clone(),
        ));
        if settings.address.is_none() {
            warn!("Nobody can tell where other replicas reach this one: give --address");
        }
        let lease = holder::Settings {
            namespace: settings.namespace.clone(),
            name: lease_name(&settings.instance),
            identity: settings.identity.clone(),
            address: settings.address.map(|address| SocketAddr::new(address, listen.port()).to_string()),
            timing: settings.timing,
        };
        let (holder, task) = Holder::start(client.clone(), &lease, shutdown.0.clone());
        tasks.spawn(notice(task));
        tasks.spawn(follow_lease(holder.clone(), health.clone(), shutdown.clone()));
        let writer = Writer::new(
            client,
            &settings.namespace,
            &settings.instance,
            holder,
            settings.timing,
            health.clone(),
            metrics.clone(),
        );
        tasks.spawn(writer.run(heard, counts, sight, shutdown.clone()));
    }
    if let Some(path) = settings.rules_folder {
        health.expect(Part::Folder);
        tasks.spawn(folder::follow(path, updates.clone(), health.clone(), shutdown.clone()));
    }
    drop(updates);
    tasks.spawn(follow_updates(updated, rules, reports, waiting, health, metrics, shutdown));

    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            // A part that panicked cannot be trusted to come back by itself: the process ends, and is started again.
            error!(%error, "A part of the engine ended");
            return Ok(false);
        }
    }
    info!("Engine has ended");
    Ok(true)
}

/// Ends as a task does that is somewhere else.
async fn notice(task: JoinHandle<()>) {
    if let Err(error) = task.await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// A client, as soon as there can be one that the API server answers: what is wrong with a kubeconfig may show only then.
async fn connected<F>(connect: impl Fn() -> F, health: &Health) -> Client
where
    F: Future<Output = Result<Client, String>>,
{
    let mut pauses = Pauses::default();
    loop {
        let client = async {
            let client = connect().await?;
            greet(&client).await.map(|()| client)
        };
        match client.await {
            Ok(client) => {
                health.well(Part::ApiServer);
                return client;
            }
            Err(problem) => health.unwell(Part::ApiServer, &format!("no way to reach the API server: {problem}")),
        }
        tokio::time::sleep(pauses.next().unwrap_or_default()).await;
    }
}

/// Takes news into the index, and puts what comes of it where it is needed.
async fn follow_updates(
    mut updates: mpsc::Receiver<Update>,
    rules: Rules,
    reported: mpsc::Sender<(RuleId, Option<Report>)>,
    waiting: watch::Sender<bool>,
    health: Health,
    metrics: Metrics,
    mut shutdown: Shutdown,
) {
    let mut index = Index::new();
    let mut told: HashMap<RuleId, Report> = HashMap::new();
    let mut wrong_files = BTreeMap::new();
    let mut loaded = Vec::new();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            count = updates.recv_many(&mut batch, QUEUE) => if count == 0 { return },
            () = shutdown.wait() => return,
        }
        for update in &batch {
            match update {
                Update::Files(files) => metrics.updates.with_label_values(&["file"]).inc_by(files.len() as u64),
                Update::Object(..) => metrics.updates.with_label_values(&["object"]).inc(),
                Update::Kinds(_) => {}
                Update::Loaded(loader) => loaded.push(*loader),
            }
        }
        let start = Instant::now();
        let Outcomes { rule_set, reports } = index.apply(batch.drain(..));
        if let Some(rule_set) = rule_set {
            info!(rules = rule_set.rules().len(), "Another set of rules is in force");
            rules.store(Arc::new(rule_set));
            metrics.rule_sets.with_label_values(&[] as &[&str]).inc();
            metrics.rule_set_time.with_label_values(&[] as &[&str]).inc_by(start.elapsed().as_micros() as u64);
        }
        let problems = index.problems();
        log_problems(&problems, &wrong_files);
        metrics.files_with_problems.with_label_values(&[] as &[&str]).set(problems.len() as i64);
        wrong_files = problems;
        let counts = index.counts();
        count(counts, &metrics);
        if index.has_kinds() {
            loaded.drain(..).for_each(|loader| health.loaded(loader.part()));
        }
        let is_waiting = counts.waiting > 0;
        waiting.send_if_modified(|before| std::mem::replace(before, is_waiting) != is_waiting);
        for (id, report) in reports {
            let before = match &report {
                Some(report) => told.insert(id.clone(), report.clone()),
                None => told.remove(&id),
            };
            if before == report {
                continue;
            }
            log(&id.to_string(), report.as_ref());
            // Nobody listens when the rules of the cluster are not loaded.
            let _ = reported.send((id, report)).await;
        }
    }
}

/// Logs what is wrong with files, unless that was said before.
fn log_problems(problems: &BTreeMap<PathBuf, Vec<Problem>>, said: &BTreeMap<PathBuf, Vec<Problem>>) {
    for (path, problems) in problems.iter().filter(|(path, problems)| said.get(*path) != Some(problems)) {
        for Problem { line, column, message } in problems {
            warn!(file = %path.display(), line, column, error = message, "File of rules cannot be used as it is");
        }
    }
}

fn log(rule: &str, report: Option<&Report>) {
    match report.map(|report| &report.outcome) {
        Some(Outcome::Refused(found)) => {
            for diagnostic in found {
                warn!(rule, error = diagnostic.message, field = diagnostic.field_name(), "Rule cannot be used");
            }
        }
        Some(Outcome::Shadowed(path)) => {
            warn!(rule, file = %path.display(), "Rule has the name of a rule in a file, which comes first");
        }
        Some(Outcome::Waiting(_)) => info!(rule, "Rule waits for a kind"),
        Some(Outcome::Active | Outcome::Disabled) | None => {}
    }
    for diagnostic in report.into_iter().flat_map(|report| &report.warnings) {
        warn!(rule, warning = diagnostic.message, field = diagnostic.field_name(), "Rule may be mistaken");
    }
}

fn count(counts: index::Counts, metrics: &Metrics) {
    for (state, count) in [
        ("active", counts.active),
        ("refused", counts.refused),
        ("waiting", counts.waiting),
        ("disabled", counts.disabled),
        ("shadowed", counts.shadowed),
    ] {
        metrics.rules.with_label_values(&[state]).set(count as i64);
    }
}

/// Says on `/readyz` what keeps this replica from holding the Lease. It is no reason not to be ready: others may hold it.
async fn follow_lease(holder: Holder, health: Health, mut shutdown: Shutdown) {
    let mut problem = holder.problem();
    loop {
        match problem.borrow_and_update().clone() {
            Some(problem) => health.unwell(Part::Lease, &problem),
            None => health.well(Part::Lease),
        }
        tokio::select! {
            changed = problem.changed() => if changed.is_err() { return },
            () = shutdown.wait() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_somewhere_else_is_noticed() {
        let mut tasks = JoinSet::new();
        tasks.spawn(notice(tokio::spawn(async { panic!("a mistake") })));
        assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
        tasks.spawn(notice(tokio::spawn(async {})));
        assert!(tasks.join_next().await.unwrap().is_ok());
    }
}

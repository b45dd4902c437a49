//! The life of an engine: what starts, in which order, and how it ends.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use kube::{Client, core::Selector};
use portal_cluster::{
    health::{Health, Part},
    holder::{Candidacy, Holder, Timing},
    kinds,
    metrics::{Metrics, Registry},
    names::engine_lease,
    rules::{
        Update,
        cluster::{self, Outlets, SeenRule},
        folder,
        intake::{Intake, QUEUE},
        snapshot::InForce,
    },
    runtime::{Runtime, join},
    server::{self, Served},
};
use portal_core::{
    layers::Layers,
    rule::{load::RuleKind, source::RuleId},
};
use portal_crds::{PortalClusterRule, PortalRule};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    metrics::EngineMetrics,
    status::{Channels, Counters, Writer},
};

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
    /// What is done with the rules.
    pub layers: Layers,
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

impl Settings {
    /// Whether this engine may write anything to the cluster: the status of rules, reports, actions. Then one replica does so for
    /// all, and there is a Lease. Admission alone writes nothing.
    fn may_write(&self) -> bool {
        let Layers { admission: _, audit, network, actions } = self.layers;
        self.rules_from_cluster || audit || network || actions
    }
}

/// Runs an engine until it is told to end. `connect` makes a client, and is called until it can. `counters` is what layers count.
/// Returns whether every part ended as it should.
pub async fn run<F>(
    connect: impl Fn() -> F,
    settings: Settings,
    counters: mpsc::Receiver<(RuleId, Counters)>,
    shutdown: CancellationToken,
) -> Result<bool, Error>
where
    F: Future<Output = Result<Client, String>>,
{
    let registry = Registry::new();
    let (health, metrics) = (Health::default(), Metrics::register(&registry));
    let engine_metrics = EngineMetrics::register(&registry);
    health.expect(&Part::ApiServer);
    health.expect(&Part::Kinds);
    let (listener, listen) =
        server::bind(settings.listen).await.map_err(|source| Error::Listen { address: settings.listen, source })?;
    info!(%listen, instance = settings.instance, "Engine starts");

    let mut tasks = JoinSet::new();
    let served = Served { health: health.clone(), metrics: metrics.clone(), registry };
    tasks.spawn(server::serve(listener, served, shutdown.clone()));
    let Some(runtime) = Runtime::connect(connect, health, metrics, shutdown).await else { return Ok(true) };

    let (updates, updates_in) = mpsc::channel(QUEUE);
    let (reports, reports_in) = mpsc::channel(QUEUE);
    let (waiting, waiting_in) = watch::channel(false);
    tasks.spawn(kinds::follow(runtime.clone(), updates.clone(), waiting_in));
    let holder = settings.may_write().then(|| want_lease(&mut tasks, &runtime, &settings, listen));
    if let (true, Some(holder)) = (settings.rules_from_cluster, holder) {
        let seen_in = follow_rules(&mut tasks, &runtime, &settings, &updates);
        let writer = Writer::new(runtime.clone(), engine_metrics, &settings, holder);
        tasks.spawn(writer.run(Channels { reports: reports_in, counters, seen: seen_in }));
    }
    if let Some(path) = settings.rules_folder {
        runtime.health.expect(&Part::Folder);
        tasks.spawn(folder::follow(path, updates.clone(), runtime.health.clone(), runtime.shutdown.clone()));
    }
    drop(updates);
    let intake = Intake {
        layers: settings.layers,
        in_force: InForce::default(),
        reports,
        waiting,
        health: runtime.health,
        metrics: runtime.metrics,
    };
    tasks.spawn(intake.run(updates_in, runtime.shutdown));
    Ok(end(tasks).await)
}

/// Starts to watch the rules of the cluster. Returns where the objects come out that it sees, for whoever writes their status.
fn follow_rules(
    tasks: &mut JoinSet<()>,
    runtime: &Runtime,
    settings: &Settings,
    updates: &mpsc::Sender<Update>,
) -> mpsc::Receiver<(RuleId, Option<SeenRule>)> {
    runtime.health.expect(&Part::ClusterRules);
    runtime.health.expect(&Part::Rules);
    let (seen, seen_in) = mpsc::channel(QUEUE);
    let outlets = Outlets { updates: updates.clone(), seen };
    let selector = &settings.rule_selector;
    let cluster_rules = cluster::follow::<PortalClusterRule>;
    tasks.spawn(cluster_rules(runtime.clone(), RuleKind::Cluster, selector.clone(), outlets.clone()));
    tasks.spawn(cluster::follow::<PortalRule>(runtime.clone(), RuleKind::Namespaced, selector.clone(), outlets));
    seen_in
}

/// Starts the task that tries to get the Lease. Others reach this replica at the port of `listen`.
fn want_lease(tasks: &mut JoinSet<()>, runtime: &Runtime, settings: &Settings, listen: SocketAddr) -> Holder {
    if settings.address.is_none() {
        warn!("The address of this replica is not known, so that other replicas cannot reach it: give --address");
    }
    let candidacy = Candidacy {
        namespace: settings.namespace.clone(),
        name: engine_lease(&settings.instance),
        identity: settings.identity.clone(),
        address: settings.address.map(|address| SocketAddr::new(address, listen.port()).to_string()),
        timing: settings.timing,
    };
    let (holder, task) = Holder::start(runtime.client.clone(), &candidacy, runtime.shutdown.clone());
    tasks.spawn(join(task));
    tasks.spawn(follow_lease(holder.clone(), runtime.clone()));
    holder
}

/// Says in a metric whether this replica holds the Lease, and on `/readyz` what keeps it from that. It is ready all the same:
/// others may hold the Lease.
async fn follow_lease(mut holder: Holder, runtime: Runtime) {
    let mut problem = holder.problem();
    loop {
        runtime.metrics.lease_held.set(i64::from(holder.is_held()));
        match problem.borrow_and_update().clone() {
            Some(problem) => runtime.health.unwell(&Part::Lease, &problem),
            None => runtime.health.well(&Part::Lease),
        }
        tokio::select! {
            changed = problem.changed() => if changed.is_err() { return },
            () = holder.changed() => {}
            () = runtime.shutdown.cancelled() => return,
        }
    }
}

/// Waits until every part has ended, or one has panicked. Returns whether each ended as it should.
async fn end(mut tasks: JoinSet<()>) -> bool {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            // A part that panicked cannot be trusted to come back by itself: the process ends, and is started again.
            error!(%error, "A part of the engine ended");
            return false;
        }
    }
    info!("Engine has ended");
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_may_write_wants_the_lease_wherever_its_rules_are_from() {
        let may_write = |rules_from_cluster, layers| {
            let settings = Settings {
                instance: "default".to_owned(),
                namespace: "portal-system".to_owned(),
                identity: "pod".to_owned(),
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                address: None,
                layers,
                rules_from_cluster,
                rule_selector: Selector::default(),
                rules_folder: Some("rules".into()),
                timing: Timing::default(),
            };
            settings.may_write()
        };
        let none = Layers::default();
        assert!(!may_write(false, none));
        assert!(!may_write(false, Layers { admission: true, ..none }));
        assert!(may_write(true, none));
        for layers in
            [Layers { audit: true, ..none }, Layers { network: true, ..none }, Layers { actions: true, ..none }]
        {
            assert!(may_write(false, layers), "{layers:?}");
        }
    }
}

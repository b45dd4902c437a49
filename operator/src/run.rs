//! The life of the operator: what starts, in which order, and how it ends.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use kube::Client;
use portal_cluster::{
    health::{Health, Part},
    holder::{self, Candidacy, Holder, Timing},
    kinds,
    metrics::{Metrics, Registry},
    names::OPERATOR_LEASE,
    runtime::{Runtime, join},
    server::{self, Served},
};
use portal_core::rule::load::RuleKind;
use portal_crds::{PortalClusterRule, PortalRule};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{
    caretaker::{Caretaker, Surroundings},
    executor::{Cluster, Executor},
    instance::OperatorSettings,
    metrics::OperatorMetrics,
    object::Kind,
    rule_status::{RuleStatuses, Writer},
    store::{Source, Store},
    watches::{self, Ceiling, Seen, SharedRules, Watching},
};

/// How an operator runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who it is.
    pub operator: OperatorSettings,
    /// Who this replica is: the name of its pod.
    pub identity: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are.
    pub listen: SocketAddr,
    /// Where other replicas reach this one, if that is known.
    pub address: Option<IpAddr>,
    /// The times of the Lease.
    pub timing: Timing,
}

/// Why an operator could not start.
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

/// The kinds that are watched in the whole cluster.
const WATCHED: [Kind; 9] = [
    Kind::PortalInstance,
    Kind::Namespace,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    Kind::Role,
    Kind::RoleBinding,
    Kind::ValidatingWebhookConfiguration,
    Kind::ValidatingAdmissionPolicy,
    Kind::ValidatingAdmissionPolicyBinding,
];

/// Runs an operator until it is told to end. `connect` makes a client, and is called until it can. Returns whether every part ended as
/// it should.
pub async fn run<F>(connect: impl Fn() -> F, settings: Settings, shutdown: CancellationToken) -> Result<bool, Error>
where
    F: Future<Output = Result<Client, String>>,
{
    server::open_more_files();
    let registry = Registry::new();
    let (health, metrics) = (Health::default(), Metrics::register(&registry));
    let operator_metrics = OperatorMetrics::register(&registry);
    for part in [Part::ApiServer, Part::Kinds, Part::ClusterRules, Part::Rules] {
        health.expect(&part);
    }
    let address = settings.listen;
    let (listener, listen) = server::bind(address).await.map_err(|source| Error::Listen { address, source })?;
    info!(%listen, namespace = settings.operator.namespace, "Operator starts");

    let mut tasks = JoinSet::new();
    let served = Served { health: health.clone(), metrics: metrics.clone(), registry };
    tasks.spawn(server::serve(listener, served, shutdown.clone()));
    let Some(runtime) = Runtime::connect(&connect, health, metrics, shutdown.clone()).await else {
        return Ok(end(tasks).await);
    };

    let (updates, updates_in) = mpsc::channel(16);
    let (_waiting, waiting_in) = watch::channel(false);
    let (store, rules, statuses) = (Store::default(), SharedRules::default(), RuleStatuses::default());
    tasks.spawn(kinds::follow(runtime.clone(), updates, waiting_in));
    tasks.spawn(watches::take_kinds(updates_in, rules.clone()));
    let seen = Seen { rules: rules.clone(), statuses: statuses.clone() };
    tasks.spawn(watches::follow_rules::<PortalClusterRule>(runtime.clone(), RuleKind::Cluster, seen.clone()));
    tasks.spawn(watches::follow_rules::<PortalRule>(runtime.clone(), RuleKind::Namespaced, seen));
    let own = Source::of_namespace(Kind::Secret, &settings.operator.namespace);
    for source in WATCHED.map(Source::cluster).into_iter().chain([own]) {
        store.begin(&source);
        tasks.spawn(watches::follow(runtime.clone(), store.clone(), source));
    }
    let candidacy = Candidacy {
        namespace: settings.operator.namespace.clone(),
        name: OPERATOR_LEASE.to_owned(),
        identity: settings.identity.clone(),
        address: settings.address.map(|address| SocketAddr::new(address, listen.port()).to_string()),
        // The operator's namespace goes with it, or stays for good.
        owner: None,
        timing: settings.timing,
    };
    let (holder, task) = Holder::start(runtime.client.clone(), &candidacy, shutdown.clone());
    tasks.spawn(join(task));
    tasks.spawn(holder::follow(holder.clone(), runtime.clone()));
    let writer = Writer {
        client: runtime.client.clone(),
        holder: holder.clone(),
        store: store.clone(),
        statuses: statuses.clone(),
        shutdown: shutdown.clone(),
    };
    tasks.spawn(writer.run());
    let executor = Executor {
        server: Cluster { client: runtime.client.clone(), holder, namespace: settings.operator.namespace.clone() },
        store: store.clone(),
        operator: settings.operator.clone(),
        metrics: operator_metrics,
    };
    let (ceiling, ceiling_in) = watch::channel(Ceiling::default());
    tasks.spawn(watches::follow_ceiling(runtime.clone(), ceiling));
    let watching = Watching::default();
    let surroundings = Surroundings { runtime, store, watching, rules, statuses, ceiling: ceiling_in, executor };
    tasks.spawn(surroundings.clone().guard());
    tasks.spawn(look_after_all(surroundings));
    Ok(end(tasks).await)
}

/// Looks after every instance that is there, until the end.
async fn look_after_all(surroundings: Surroundings) {
    let mut changes = surroundings.store.changes();
    let mut caretakers: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let instances = surroundings.store.select(|object| object.key.kind == Kind::PortalInstance);
        surroundings.executor.metrics.instances.set(instances.len() as i64);
        surroundings.end_watches(instances.values().map(|object| &**object));
        caretakers.retain(|_, task| !task.is_finished());
        for key in instances.into_keys() {
            caretakers.entry(key.name.clone()).or_insert_with(|| {
                let caretaker = Caretaker::new(surroundings.clone(), key.name);
                tasks.spawn(caretaker.run())
            });
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            Some(ended) = tasks.join_next() => if let Err(error) = ended {
                // One instance must not take the others with it: it is taken up again.
                error!(%error, "Caretaker of an instance ended unexpectedly");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            },
            () = surroundings.runtime.shutdown.cancelled() => break,
        }
    }
    while tasks.join_next().await.is_some() {}
}

async fn end(mut tasks: JoinSet<()>) -> bool {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            // A part that panicked cannot be trusted to come back by itself: the process ends, and is started again.
            error!(%error, "A part of the operator ended");
            return false;
        }
    }
    info!("Operator has ended");
    true
}

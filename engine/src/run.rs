//! The life of an engine: what starts, in which order, and how it ends.

mod reports;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, atomic::AtomicBool};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Client, Resource as _, core::Selector};
use portal_cluster::{
    health::{Health, Part},
    holder::{self, Candidacy, Holder, Timing},
    kinds,
    metrics::{Metrics, Registry},
    names::engine_lease,
    rules::{
        Report, Update,
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
use portal_crds::{PortalClusterRule, PortalInstance, PortalRule};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    admission::{
        authors::{AuthorCheck, AuthorSettings, Authors},
        judge::{Judge, JudgeSettings},
        limits::ServerLimits,
        namespaces::Namespaces,
        preview::Preview,
        routes::Webhook,
        server::Server,
        tls::{Certificates, Files},
    },
    audit::{Audit, AuditSettings},
    cache::{
        changes::Changes,
        fresh::Fresh,
        keeper::{Caches, Keeper},
        thread::Thread,
    },
    findings::Board,
    metrics::EngineMetrics,
    outcomes::Outcomes,
    replicas::{
        self,
        follow::{PeerSettings, Replicas},
        lacks::Lacks,
        serve::Own,
        tokens::Tokens,
    },
    sinks::{
        self, DecisionLog, Outputs,
        alertmanager::{Alertmanager, AlertmanagerSettings, Denials},
        log::FindingLog,
        report,
    },
    status::{Channels, StatusSettings, Writer},
    tally::Tallies,
};

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The name of the instance. The status of rules has an entry for each.
    pub instance: String,
    /// Its UID, if it is an object of the cluster: the Lease goes with it.
    pub instance_uid: Option<String>,
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
    /// How many rules a namespace may have in the cluster.
    pub rules_per_namespace: usize,
    /// The plurals or names of kinds that are watched even while no rule looks them up.
    pub watched_kinds: Vec<String>,
    /// The times of the Lease.
    pub timing: Timing,
    /// The layers that other pods of the instance have.
    pub other_layers: Layers,
    /// Whether it stands for the Lease, if it may write anything. If it does not, other pods of the instance do.
    pub stands: bool,
    /// How other replicas are found and asked, if there are any.
    pub peers: Option<PeerSettings>,
    /// How requests are judged. There if the layer is on.
    pub admission: Option<AdmissionSettings>,
    /// How what is in the cluster is judged. There if the layer is on.
    pub audit: Option<AuditSettings>,
    /// Whether what audit finds is printed on standard output.
    pub finding_log: bool,
    /// Which reports audit writes, if any.
    pub reports: Option<report::Api>,
    /// Where alerts are sent, if anywhere.
    pub alerts: Option<AlertmanagerSettings>,
}

/// How requests are judged.
#[derive(Clone, Debug)]
pub struct AdmissionSettings {
    /// Where the API server reaches the webhook.
    pub listen: SocketAddr,
    /// Its certificate, and what is asked of its clients.
    pub files: Files,
    /// What its clients may take.
    pub limits: ServerLimits,
    /// How it decides.
    pub judge: JudgeSettings,
    /// What happens if the author of a rule may not do what the rule does.
    pub author_check: AuthorCheck,
    /// The account that grants what rules need.
    pub granter: Option<String>,
    /// The accounts that may ask this replica how it is. If none is named, the engine's own.
    pub peer_accounts: Vec<String>,
    /// Which decisions are printed.
    pub decision_log: DecisionLog,
}

/// What the layer that judges requests is made of, before there is a way to the API server.
struct Admission {
    settings: AdmissionSettings,
    listener: TcpListener,
    address: SocketAddr,
    certificates: Arc<Certificates>,
    metrics: EngineMetrics,
}

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken, or is not of this machine.
    #[error("could not listen on {address}: {source}; choose another address with {flag}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag that says it.
        flag: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl EngineSettings {
    /// The parts that have to be loaded before the engine is ready, beside those of admission.
    fn parts(&self) -> Vec<Part> {
        let mut parts = vec![Part::ApiServer, Part::Kinds];
        if self.rules_from_cluster {
            parts.extend([Part::ClusterRules, Part::Rules]);
        }
        if self.rules_folder.is_some() {
            parts.push(Part::Folder);
        }
        parts
    }

    /// Whether this engine may write anything to the cluster: the status of rules, reports, actions. Then one replica does so for
    /// all, and there is a Lease. Admission alone writes nothing.
    fn may_write(&self) -> bool {
        let Layers { admission: _, audit, network, actions } = self.layers;
        self.rules_from_cluster || audit || network || actions
    }
}

/// Runs an engine until it is told to end. `connect` makes a client, and is called until it can. Returns whether every part ended as
/// it should.
pub async fn run<F>(
    connect: impl Fn() -> F,
    settings: EngineSettings,
    shutdown: CancellationToken,
) -> Result<bool, Error>
where
    F: Future<Output = Result<Client, String>>,
{
    server::open_more_files();
    let registry = Registry::new();
    let (health, metrics) = (Health::default(), Metrics::register(&registry));
    let engine_metrics = EngineMetrics::register(&registry);
    // All of them before the first part runs: with some of them loaded and the others not yet known of, it would be ready.
    settings.parts().iter().for_each(|part| health.expect(part));
    if settings.audit.is_some() {
        [Part::Namespaces, Part::Caches].iter().for_each(|part| health.expect(part));
    }
    let (listener, listen) = bind(settings.listen, "--listen").await?;
    let admission = match settings.admission.clone() {
        Some(admission) => Some(Admission::prepare(admission, &health, &engine_metrics).await?),
        None => None,
    };
    let own = Own {
        process: format!("{:016x}", fastrand::u64(..)).into(),
        identity: settings.identity.as_str().into(),
        health: health.clone(),
        in_force: InForce::default(),
        lacks: Lacks::default(),
        tallies: Tallies::default(),
        outcomes: Outcomes::default(),
    };
    let board = Board::default();
    if settings.audit.is_some() {
        board.register(&registry);
    }
    if settings.admission.is_some() || settings.audit.is_some() {
        own.tallies.register(&registry);
    }
    info!(%listen, instance = settings.instance, "Engine starts");

    let mut tasks = JoinSet::new();
    let served = Served { health: health.clone(), metrics: metrics.clone(), registry };
    // What requests are judged by has to go on until the last of them is answered.
    let end_of_parts = CancellationToken::new();
    tasks.spawn(server::serve(listener, served, end_of_parts.clone()));
    let connecting = Runtime::connect(&connect, health.clone(), metrics, end_of_parts.clone());
    let Some(runtime) = shutdown.run_until_cancelled(connecting).await.flatten() else {
        end_of_parts.cancel();
        return Ok(end(tasks).await);
    };

    let (updates, updates_in) = mpsc::channel(QUEUE);
    let (reports, reports_in) = note_lacks(&mut tasks, own.lacks.clone());
    let (waiting, waiting_in) = watch::channel(false);
    tasks.spawn(kinds::follow(runtime.clone(), updates.clone(), waiting_in));
    let holder = (settings.may_write() && settings.stands)
        .then(|| want_lease(&mut tasks, &runtime, &settings, listen, &shutdown));
    let in_force = own.in_force.clone();
    let own_address = admission.as_ref().zip(settings.address).map(|(admission, ip)| admission.reached_at(ip));
    let audit = settings.audit.clone().map(|audit| Audit::new(audit, board.clone(), engine_metrics.clone()));
    let caches = match admission.is_some() || audit.is_some() {
        true => {
            // With connections of its own: a connection is read on the thread of whoever opened it, and these on that of the caches.
            let client = connect().await.unwrap_or_else(|_| runtime.client.clone());
            let keeping = Runtime { client, ..runtime.clone() };
            let listener = audit.as_ref().map(Audit::listener);
            keep_objects(&mut tasks, keeping, &settings, &own, &engine_metrics, &updates, listener)
        }
        false => Caches::default(),
    };
    let denials = settings.alerts.clone().map(|alerts| {
        let audit = holder.clone().filter(|_| audit.is_some()).map(|holder| (&board, holder));
        let end = runtime.shutdown.clone();
        let (alertmanager, denials) = Alertmanager::new(alerts, audit, engine_metrics.clone(), end);
        tasks.spawn(alertmanager.run());
        denials
    });
    // Without audit nobody tells of what admission lets in, and replicas are not asked for it.
    let hearing = audit.as_ref().map(Audit::hearing);
    if let Some(audit) = audit {
        let holder = holder.clone().expect("an engine with audit wants the Lease");
        if let Some(api) = settings.reports {
            tasks.spawn(reports::write(
                &runtime,
                &settings,
                api,
                &engine_metrics,
                &holder,
                (&board, audit.hearing()),
                &own.in_force,
            ));
        }
        if settings.finding_log {
            tasks.spawn(FindingLog::new(board.outlet(), holder).run(runtime.shutdown.clone()));
        }
        let fresh = Fresh::new(runtime.client.clone(), engine_metrics.clone());
        let (in_force, tallies) = (own.in_force.clone(), own.tallies.clone());
        tasks.spawn(audit.run(in_force, caches.clone(), fresh, tallies, runtime.clone()));
    }
    let watched = caches.clone();
    let serving =
        admission.map(|admission| admission.start(&mut tasks, &runtime, &settings, &own, (caches, denials), &shutdown));
    tasks.spawn(stop(shutdown, health, serving, end_of_parts));
    let seen = settings.rules_from_cluster.then(|| follow_rules(&mut tasks, &runtime, &settings, &updates));
    match (seen, holder) {
        (Some(seen_in), Some(holder)) => {
            let peers = settings.peers.clone();
            let metrics = engine_metrics.clone();
            let (replicas, following) =
                replicas::follow::follow(own, own_address, peers, holder.clone(), hearing, metrics, runtime.clone());
            tasks.spawn(following);
            let Replicas { view, ledger, counted } = replicas;
            let in_force = in_force.clone();
            let known = (board, watched);
            let status = StatusSettings {
                instance: settings.instance.clone(),
                namespace: settings.namespace.clone(),
                layers: settings.layers.with(settings.other_layers),
                own_layers: settings.layers,
                timeout: settings.timing.action_timeout(),
            };
            let writer = Writer::new(runtime.clone(), engine_metrics, status, holder, in_force, (view, ledger), known);
            tasks.spawn(writer.run(Channels { reports: reports_in, counted, seen: seen_in }));
        }
        // Other pods write the status of rules.
        (Some(mut seen_in), None) => {
            let mut reports_in = reports_in;
            tasks.spawn(async move { while reports_in.recv().await.is_some() {} });
            tasks.spawn(async move { while seen_in.recv().await.is_some() {} });
        }
        (None, _) => {}
    }
    if let Some(path) = settings.rules_folder {
        tasks.spawn(folder::follow(path, updates.clone(), runtime.health.clone(), runtime.shutdown.clone()));
    }
    drop(updates);
    let intake = Intake {
        layers: settings.layers,
        other_layers: settings.other_layers,
        rules_per_namespace: settings.rules_per_namespace,
        in_force,
        reports,
        waiting,
        health: runtime.health,
        metrics: runtime.metrics,
    };
    tasks.spawn(intake.run(updates_in, runtime.shutdown));
    Ok(end(tasks).await)
}

/// When the engine is told to end, says at once that it is not ready, lets the webhook answer what still comes, and ends the other
/// parts after it.
async fn stop(
    shutdown: CancellationToken,
    health: Health,
    serving: Option<oneshot::Receiver<()>>,
    end_of_parts: CancellationToken,
) {
    shutdown.cancelled().await;
    if let Some(serving) = serving {
        health.ends(&Part::Listener);
        // An error means that the server is gone too.
        let _ = serving.await;
    }
    end_of_parts.cancel();
}

async fn bind(address: SocketAddr, flag: &'static str) -> Result<(TcpListener, SocketAddr), Error> {
    server::bind(address).await.map_err(|source| Error::Listen { address, flag, source })
}

impl Admission {
    /// Does what can be done before there is a way to the API server.
    async fn prepare(
        settings: AdmissionSettings,
        health: &Health,
        metrics: &EngineMetrics,
    ) -> Result<Admission, Error> {
        for part in [Part::Certificate, Part::Listener, Part::Namespaces, Part::Caches] {
            health.expect(&part);
        }
        let (listener, address) = bind(settings.listen, "--admission-listen").await?;
        info!(listen = %address, "The webhook listens");
        let certificates = Certificates::new(settings.files.clone(), health.clone(), metrics.clone());
        Ok(Admission { settings, listener, address, certificates, metrics: metrics.clone() })
    }

    /// Where others reach the webhook of a replica that has this address.
    fn reached_at(&self, ip: IpAddr) -> SocketAddr {
        SocketAddr::new(ip, self.address.port())
    }

    /// Starts to answer. What comes back tells when the last answer was given.
    fn start(
        self,
        tasks: &mut JoinSet<()>,
        runtime: &Runtime,
        engine: &EngineSettings,
        own: &Own,
        (caches, denials): (Caches, Option<Denials>),
        shutdown: &CancellationToken,
    ) -> oneshot::Receiver<()> {
        let Admission { settings, listener, certificates, metrics, .. } = self;
        let client = &runtime.client;
        tasks.spawn(Arc::clone(&certificates).follow(runtime.shutdown.clone()));
        let authors = AuthorSettings {
            check: settings.author_check,
            rules_per_namespace: engine.rules_per_namespace,
            rule_selector: engine.rule_selector.clone(),
            granter: settings.granter.clone(),
            layers: engine.layers,
        };
        let judging = Arc::new(settings.judge);
        let preview = Preview::new(caches.clone(), Arc::clone(&judging));
        let webhook = Webhook {
            judge: Judge {
                in_force: own.in_force.clone(),
                namespaces: Namespaces::new(client.clone(), runtime.health.clone(), caches.clone()),
                caches,
                fresh: Fresh::new(client.clone(), metrics.clone()),
                outcomes: engine.layers.with(engine.other_layers).audit.then(|| own.outcomes.clone()),
                settings: judging,
            },
            authors: Authors::new(client.clone(), own.in_force.clone(), authors, metrics.clone()).previewing(preview),
            tallies: own.tallies.clone(),
            health: runtime.health.clone(),
            outputs: Outputs::start(sinks::builtin(settings.decision_log), &metrics.sink_records_lost),
            denials,
            metrics: metrics.clone(),
            was_ready: AtomicBool::new(false),
        };
        let tokens = Tokens::new(client.clone(), &engine.instance, settings.peer_accounts);
        let server = Server {
            router: webhook.router().merge(replicas::serve::router(own.clone(), tokens)),
            certificates,
            limits: settings.limits,
            health: runtime.health.clone(),
            metrics,
        };
        let (ended, has_ended) = oneshot::channel();
        let shutdown = shutdown.clone();
        tasks.spawn(async move {
            server.serve(listener, shutdown).await;
            // Nobody listens if the process ends otherwise.
            let _ = ended.send(());
        });
        has_ended
    }
}

/// Starts to watch the objects that rules look up, and those that audit judges.
fn keep_objects(
    tasks: &mut JoinSet<()>,
    runtime: Runtime,
    settings: &EngineSettings,
    own: &Own,
    metrics: &EngineMetrics,
    updates: &mpsc::Sender<Update>,
    listener: Option<Arc<dyn Changes>>,
) -> Caches {
    let thread = Thread::start("caches");
    let (caches, keeping) = {
        let _there = thread.enter();
        let (metrics, in_force, updates) = (metrics.clone(), own.in_force.clone(), updates.clone());
        let (parts, watched) = (settings.parts(), &settings.watched_kinds);
        let keeper = Keeper::new(runtime, metrics, in_force, updates, parts, watched, listener);
        (keeper.caches(), tokio::spawn(keeper.run()))
    };
    tasks.spawn(async move {
        join(keeping).await;
        drop(thread);
    });
    caches
}

/// What has become of a rule. Nothing if it is gone.
type Reported = (RuleId, Option<Report>);

/// What has become of rules, on its way to whoever writes their status: what keeps them from being asked is noted for other replicas.
fn note_lacks(tasks: &mut JoinSet<()>, lacks: Lacks) -> (mpsc::Sender<Reported>, mpsc::Receiver<Reported>) {
    let (reports, mut reports_in) = mpsc::channel::<Reported>(QUEUE);
    let (noted, noted_in) = mpsc::channel(QUEUE);
    tasks.spawn(async move {
        while let Some((id, report)) = reports_in.recv().await {
            lacks.hear(&id, report.as_ref());
            // Nobody listens at the end.
            let _ = noted.send((id, report)).await;
        }
    });
    (reports, noted_in)
}

/// Starts to watch the rules of the cluster. Returns where the objects come out that it sees, for whoever writes their status.
fn follow_rules(
    tasks: &mut JoinSet<()>,
    runtime: &Runtime,
    settings: &EngineSettings,
    updates: &mpsc::Sender<Update>,
) -> mpsc::Receiver<(RuleId, Option<SeenRule>)> {
    let (seen, seen_in) = mpsc::channel(QUEUE);
    let outlets = Outlets { updates: updates.clone(), seen };
    let selector = &settings.rule_selector;
    let cluster_rules = cluster::follow::<PortalClusterRule>;
    tasks.spawn(cluster_rules(runtime.clone(), RuleKind::Cluster, selector.clone(), outlets.clone()));
    tasks.spawn(cluster::follow::<PortalRule>(runtime.clone(), RuleKind::Namespaced, selector.clone(), outlets));
    seen_in
}

/// Starts the task that tries to get the Lease. Others reach this replica at the port of `listen`.
fn want_lease(
    tasks: &mut JoinSet<()>,
    runtime: &Runtime,
    settings: &EngineSettings,
    listen: SocketAddr,
    shutdown: &CancellationToken,
) -> Holder {
    if settings.address.is_none() {
        warn!("The address of this replica is not known, so that other replicas cannot reach it: give --address");
    }
    let candidacy = Candidacy {
        namespace: settings.namespace.clone(),
        name: engine_lease(&settings.instance),
        identity: settings.identity.clone(),
        address: settings.address.map(|address| SocketAddr::new(address, listen.port()).to_string()),
        owner: settings.instance_uid.as_ref().map(|uid| OwnerReference {
            api_version: PortalInstance::api_version(&()).into_owned(),
            kind: PortalInstance::kind(&()).into_owned(),
            name: settings.instance.clone(),
            uid: uid.clone(),
            ..OwnerReference::default()
        }),
        timing: settings.timing,
    };
    // Others may hold while this replica still answers requests.
    let (holder, task) = Holder::start(runtime.client.clone(), &candidacy, shutdown.clone());
    tasks.spawn(join(task));
    tasks.spawn(holder::follow(holder.clone(), runtime.clone()));
    holder
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
    use portal_cluster::rules::quota::RULES_PER_NAMESPACE;

    use super::*;

    #[test]
    fn an_engine_that_may_write_wants_the_lease_wherever_its_rules_are_from() {
        let may_write = |rules_from_cluster, layers| {
            let settings = EngineSettings {
                instance: "default".to_owned(),
                instance_uid: None,
                namespace: "portal-system".to_owned(),
                identity: "pod".to_owned(),
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                address: None,
                layers,
                rules_from_cluster,
                rule_selector: Selector::default(),
                rules_folder: Some("rules".into()),
                rules_per_namespace: RULES_PER_NAMESPACE,
                watched_kinds: Vec::new(),
                timing: Timing::default(),
                other_layers: Layers::default(),
                stands: true,
                peers: None,
                admission: None,
                audit: None,
                finding_log: false,
                reports: None,
                alerts: None,
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

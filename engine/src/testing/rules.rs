//! Rules in force, put there as the engine does, and a judge that judges by them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portal_cluster::{
    health::Health,
    metrics::{Metrics, Registry},
    rules::{
        Report, Update,
        intake::{Intake, QUEUE},
        quota::RULES_PER_NAMESPACE,
        snapshot::InForce,
    },
};
use portal_core::{
    decide::Policy,
    kinds::Kinds,
    layers::Layers,
    manifest::Manifest,
    rule::{
        file::{self, RuleFile},
        source::RuleId,
    },
    selector::Selector,
};
use portal_crds::EnforcementAction;
use portal_expr::Limits;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::api::ApiServer;
use crate::{
    admission::{
        judge::{Judge, JudgeSettings},
        namespaces::Namespaces,
    },
    cache::{fresh::Fresh, keeper::Caches},
    metrics::EngineMetrics,
};

/// Rules that can be swapped.
pub(crate) struct Rules {
    pub(crate) in_force: InForce,
    pub(crate) updates: mpsc::Sender<Update>,
    _reports: mpsc::Receiver<(RuleId, Option<Report>)>,
    _shutdown: DropGuard,
}

impl Rules {
    /// The first rules, once they are in force.
    pub(crate) async fn of(yaml: &str) -> Rules {
        let rules = Rules::none().await;
        rules.swap(yaml).await;
        let mut numbers = rules.in_force.numbers();
        while rules.in_force.now().rules.rules().is_empty() {
            timeout(SOON, numbers.changed()).await.expect("rules are in force soon").unwrap();
        }
        rules
    }

    /// No rules yet.
    pub(crate) async fn none() -> Rules {
        let in_force = InForce::default();
        let (updates, updates_in) = mpsc::channel(QUEUE);
        let (reports, reports_in) = mpsc::channel(QUEUE);
        let intake = Intake {
            layers: Layers { admission: true, ..Layers::default() },
            other_layers: Default::default(),
            rules_per_namespace: RULES_PER_NAMESPACE,
            in_force: in_force.clone(),
            reports,
            waiting: watch::channel(false).0,
            health: Health::default(),
            metrics: Metrics::register(&Registry::new()),
        };
        let shutdown = CancellationToken::new();
        tokio::spawn(intake.run(updates_in, shutdown.clone()));
        updates.send(Update::Kinds(Arc::new(Kinds::builtin().clone()))).await.unwrap();
        Rules { in_force, updates, _reports: reports_in, _shutdown: shutdown.drop_guard() }
    }

    /// Puts others in their place, soon.
    pub(crate) async fn swap(&self, yaml: &str) {
        let RuleFile { sources, problems, .. } = file::read(&Manifest::new("rules.yaml", yaml.as_bytes().to_vec()));
        assert!(problems.is_empty(), "{problems:?}");
        let files = vec![(PathBuf::from("rules.yaml"), Some(Ok(sources)))];
        self.updates.send(Update::Files(files)).await.unwrap();
    }
}

/// What happens by itself happens within this time.
const SOON: Duration = Duration::from_secs(60);

/// A judge by these rules, which knows these namespaces and caches nothing else.
pub(crate) fn judge(rules: &Rules, namespaces: Namespaces, api: &ApiServer, settings: JudgeSettings) -> Judge {
    let fresh = Fresh::new(api.client(), EngineMetrics::register(&Registry::new()));
    let (in_force, caches) = (rules.in_force.clone(), Caches::default());
    Judge { in_force, namespaces, caches, fresh, outcomes: None, settings: Arc::new(settings) }
}

/// How a strict instance judges that serves every namespace.
pub(crate) fn settings() -> JudgeSettings {
    JudgeSettings {
        policy: Policy { fail_open: false, max_enforcement: EnforcementAction::Deny, admit_existing: true },
        limits: Limits::default(),
        deadline: Duration::from_secs(60),
        namespace_selector: Selector::default(),
        exclude_namespaces: Default::default(),
    }
}

/// The review of a request. What it does not say is as in most.
pub(crate) fn review(request: &Value) -> String {
    let mut whole = json!({
        "uid": "1", "operation": "CREATE", "namespace": "shop", "name": "web",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
    });
    for (field, value) in request.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}).to_string()
}

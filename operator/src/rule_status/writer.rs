//! Writes into the status of rules, while the Lease is held.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{ApiResource, Patch, PatchParams},
};
use portal_cluster::{
    holder::{ActError, Holder},
    names::engine_lease,
    rules::{
        cluster::{RuleObject, SeenRule},
        status::{patch, without},
    },
    watch::{Watched, explain},
};
use portal_core::rule::source::RuleId;
use portal_crds::{PortalClusterRule, PortalRule};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::RuleStatuses;
use crate::{
    names::MANAGER,
    object::Kind,
    store::{Source, SourceState, Store},
};

/// Writes into the status of rules.
pub struct Writer {
    /// The way to the API server.
    pub client: Client,
    /// Whether this replica may act.
    pub holder: Holder,
    /// Which instances there are.
    pub store: Store,
    /// What is said and what is to be said.
    pub statuses: RuleStatuses,
    /// Ends it.
    pub shutdown: CancellationToken,
}

/// Changes that come at once are looked at together.
const QUIET: Duration = Duration::from_millis(200);

/// How many writes are under way at a time. A thousand rules may change at once, and engines write too.
const AT_A_TIME: usize = 4;

/// How long a write may take.
const TIMEOUT: Duration = Duration::from_secs(6);

/// How long after a write that failed the next one is tried, and how often it is looked whether an instance that rules name lives.
const AGAIN: Duration = Duration::from_secs(10);

/// How long nothing is looked at if nothing changes.
const IDLE: Duration = Duration::from_secs(60);

impl Writer {
    /// Writes until the end.
    pub async fn run(mut self) {
        let mut changes = self.statuses.changes();
        // When each instance that is not there was last found to live: somebody may run an engine without an operator.
        let mut alive: BTreeMap<(String, String), Instant> = BTreeMap::new();
        loop {
            let mut next = Instant::now() + IDLE;
            changes.mark_unchanged();
            let is_synced = self.store.state(&Source::cluster(Kind::PortalInstance)) == SourceState::Synced;
            if self.holder.is_held() && is_synced && !self.look(&mut alive).await {
                next = Instant::now() + AGAIN;
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() { return }
                    sleep(QUIET).await;
                }
                () = self.holder.changed() => {}
                () = sleep_until(next) => {}
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Writes what has to be. Returns whether nothing is left to be tried again.
    async fn look(&self, alive: &mut BTreeMap<(String, String), Instant>) -> bool {
        let instances = self.store.select(|object| object.key.kind == Kind::PortalInstance);
        let instances: BTreeSet<String> = instances.into_keys().map(|key| key.name).collect();
        let due = self.statuses.due(&instances, Timestamp::now());
        let applied: Vec<_> = due.iter().map(|(id, applied)| self.apply(id, applied)).collect();
        let applied: Vec<bool> = stream::iter(applied).buffer_unordered(AT_A_TIME).collect().await;
        let mut is_done = applied.into_iter().all(|is_done| is_done);

        let left = self.statuses.left_behind(&instances);
        alive.retain(|instance, seen| left.contains_key(instance) && seen.elapsed() < IDLE);
        for (instance, rules) in
            left.into_iter().filter(|(instance, _)| !alive.contains_key(instance)).collect::<Vec<_>>()
        {
            match self.lives(&instance).await {
                Some(false) => {
                    let forgotten: Vec<_> = rules.iter().map(|id| self.forget(id, &instance.0)).collect();
                    let forgotten: Vec<bool> = stream::iter(forgotten).buffer_unordered(AT_A_TIME).collect().await;
                    is_done &= forgotten.into_iter().all(|is_done| is_done);
                }
                Some(true) => {
                    // Its Lease goes some seconds after it does.
                    alive.insert(instance, Instant::now());
                    is_done = false;
                }
                None => is_done = false,
            }
        }
        is_done
    }

    /// Says what the operator has to say of a rule.
    async fn apply(&self, id: &RuleId, applied: &Value) -> bool {
        let (api, parameters, patch) = (self.api(id), PatchParams::apply(MANAGER).force(), Patch::Apply(applied));
        let written = self.holder.act(TIMEOUT, |_| api.patch_status(&id.name, &parameters, &patch)).await;
        self.took(id, written)
    }

    /// Takes the entry of an instance that is gone out of the status of a rule.
    async fn forget(&self, id: &RuleId, instance: &str) -> bool {
        let api = self.api(id);
        let object = match api.get(&id.name).await {
            Ok(object) => object,
            Err(error) => return self.took(id, Ok(Err(error))),
        };
        let seen = SeenRule::new(&object, false);
        let Some(patch) = patch(&seen.status, &without(&seen.status, instance)) else { return true };
        let body = json!({
            "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version },
            "status": patch,
        });
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let merged = Patch::Merge(&body);
        let written = self.holder.act(TIMEOUT, |_| api.patch_status(&id.name, &parameters, &merged)).await;
        self.took(id, written)
    }

    /// Takes what came of a write. Returns whether it need not be tried again.
    fn took(&self, id: &RuleId, written: Result<Result<Watched<RuleObject>, kube::Error>, ActError>) -> bool {
        match written {
            Ok(Ok(object)) => {
                self.statuses.saw(id.clone(), Some(&SeenRule::new(&object, false)));
                true
            }
            // The rule is gone, or another one has its name: the watch tells.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => true,
            Ok(Err(error)) => {
                let error = explain("patch", "the status of a rule", &error);
                warn!(rule = %id, %error, "Status of a rule could not be written");
                false
            }
            Err(error) => {
                debug!(rule = %id, ?error, "Status of a rule was not written");
                false
            }
        }
    }

    /// Whether somebody renews the Lease of an instance that is not there. Nothing if that is not known.
    async fn lives(&self, (instance, namespace): &(String, String)) -> Option<bool> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(&engine_lease(instance)).await {
            Ok(found) => Some(found.is_some()),
            Err(error) => {
                debug!(%instance, %error, "Lease of an instance that is gone could not be read");
                None
            }
        }
    }

    fn api(&self, id: &RuleId) -> Api<Watched<RuleObject>> {
        match &id.namespace {
            Some(namespace) => {
                Api::namespaced_with(self.client.clone(), namespace, &ApiResource::erase::<PortalRule>(&()))
            }
            None => Api::all_with(self.client.clone(), &ApiResource::erase::<PortalClusterRule>(&())),
        }
    }
}

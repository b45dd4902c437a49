//! Does the steps of a plan, each as one request, while the Lease is held.

use std::time::Duration;

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use portal_cluster::{
    holder::{ActError, Holder},
    watch::explain,
};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::{
    compare::form_of,
    desired::resolve,
    instance::{Instance, OperatorSettings},
    metrics::{OperatorMetrics, StepResult},
    names::{FINALIZER, MANAGER, configuration_name},
    object::{Key, Kind, Object},
    observed::{Memory, Observed, Probe},
    plan::{Plan, Step, finalizer_patch},
    probe,
    store::Store,
    watches::object_of,
};

/// Does steps.
#[derive(Clone)]
pub struct Executor {
    /// The way to the API server.
    pub client: Client,
    /// Whether this replica may act.
    pub holder: Holder,
    /// Where answers go, so that the next plan knows of them.
    pub store: Store,
    /// Who the operator is.
    pub operator: OperatorSettings,
    /// What is counted.
    pub metrics: OperatorMetrics,
}

/// How long a step may take. The API server waits for other webhooks meanwhile.
const STEP: Duration = Duration::from_secs(8);

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Api(String, u16),
    #[error("the API server did not answer within {STEP:?}")]
    TimedOut,
    #[error("this replica does not hold the Lease")]
    NotHeld,
    #[error("certificates could not be made: {0}")]
    Certificates(#[from] crate::certificates::Error),
}

impl Executor {
    /// Does the steps of a plan until one fails. Returns whether all were done. A plan for no instance has only steps that write
    /// objects.
    pub async fn execute(
        &self,
        instance: Option<&Instance>,
        observed: &Observed,
        plan: &Plan,
        memory: &mut Memory,
    ) -> bool {
        let name = instance.map(|instance| instance.name.as_str()).unwrap_or_default();
        for step in &plan.steps {
            let done = match (step, instance) {
                (Step::Certificate(action), Some(instance)) => {
                    match resolve(*action, instance, observed, &self.operator) {
                        Ok(step) => self.act(Some(instance), observed, &step, memory).await,
                        Err(error) => Err(error.into()),
                    }
                }
                (Step::Probe, Some(instance)) => {
                    self.probe(instance, observed, memory).await;
                    Ok(())
                }
                (step, instance) => self.act(instance, observed, step, memory).await,
            };
            let now = Timestamp::now();
            match done {
                Ok(()) => {
                    self.metrics.steps.at(&StepResult::Done).inc();
                    memory.failure.take_if(|failure| failure.subject == step.subject());
                }
                Err(Error::NotHeld) => return false,
                Err(error) => {
                    self.metrics.steps.at(&StepResult::Failed).inc();
                    let (subject, reason) = (step.subject(), error.reason());
                    warn!(instance = name, step = subject, error = %error, "Step failed");
                    memory.failed(subject, reason, error.to_string(), now);
                    return false;
                }
            }
        }
        true
    }

    async fn act(
        &self,
        instance: Option<&Instance>,
        observed: &Observed,
        step: &Step,
        memory: &mut Memory,
    ) -> Result<(), Error> {
        let acted = self.holder.act(STEP, |_| self.request(instance, step)).await;
        let answer = match acted {
            Ok(answer) => answer?,
            Err(ActError::TimedOut(_)) => return Err(Error::TimedOut),
            Err(ActError::NotHeld) => return Err(Error::NotHeld),
        };
        info!(instance = instance.map(|instance| &*instance.name), step = step.subject(), "Step done");
        self.note(step, answer, observed, memory);
        Ok(())
    }

    /// Notes what came of a step.
    fn note(&self, step: &Step, answer: Option<Object>, observed: &Observed, memory: &mut Memory) {
        if let (Step::Apply(wanted), Some(answer)) = (step, &answer) {
            match form_of(&answer.value, &wanted.value) {
                Some(form) => drop(memory.forms.insert(wanted.key.clone(), form)),
                None => drop(memory.forms.remove(&wanted.key)),
            }
        }
        if let Step::Apply(wanted) | Step::Replace(wanted) | Step::Create(wanted) = step {
            memory.written(wanted, observed.now);
        }
        answer.into_iter().for_each(|object| self.store.set(object));
    }

    async fn probe(&self, instance: &Instance, observed: &Observed, memory: &mut Memory) {
        let key = Key::cluster(Kind::ValidatingWebhookConfiguration, &configuration_name(&instance.name));
        let answer = probe::ask(&self.client, &self.operator.namespace, &instance.name).await;
        let now = Timestamp::now();
        let before = memory.probe.as_ref().and_then(|probe| probe.answered_at);
        memory.probe = Some(Probe {
            at: now,
            configuration: observed.get(&key).map(|found| found.uid().to_owned()).unwrap_or_default(),
            answered_at: if answer.is_ok() { Some(now) } else { before },
            answer,
        });
    }

    async fn request(&self, instance: Option<&Instance>, step: &Step) -> Result<Option<Object>, Error> {
        match (step, instance) {
            (Step::Status(status), Some(instance)) => {
                let wanted = serde_json::to_value(status).unwrap_or_default();
                let patch = json!({
                    "metadata": { "resourceVersion": instance.resource_version },
                    "status": merge_patch(&instance.status, &wanted),
                });
                let api = self.api(&instance.key());
                let answer = api.patch_status(&instance.name, &PatchParams::default(), &Patch::Merge(patch)).await;
                self.answered("patch", &instance.key(), answer)
            }
            (Step::Keep(keep), Some(instance)) => {
                let key = instance.key();
                let Some(known) = self.store.get(&key) else { return Ok(None) };
                let patch = finalizer_patch(&known.value, FINALIZER, *keep);
                let answer = self.api(&key).patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
                match self.answered("patch", &key, answer) {
                    // It is gone, which is what removing the finalizer leads to.
                    Err(Error::Api(_, 404)) if !keep => Ok(None),
                    answered => answered,
                }
            }
            (Step::Apply(object), _) => {
                let parameters = PatchParams::apply(MANAGER).force();
                let answer =
                    self.api(&object.key).patch(&object.key.name, &parameters, &Patch::Apply(&object.value)).await;
                self.answered("apply", &object.key, answer)
            }
            (Step::Create(object), _) => {
                let answer = self.api(&object.key).create(&PostParams::default(), &dynamic(object)).await;
                match self.answered("create", &object.key, answer) {
                    // It is there, and the watch does not show it: somebody took our label away.
                    Err(error @ Error::Api(_, 409)) => {
                        let found = self.api(&object.key).get(&object.key.name).await;
                        if let Ok(Some(found)) = self.answered("get", &object.key, found) {
                            self.store.set(found);
                        }
                        Err(error)
                    }
                    answered => answered,
                }
            }
            (Step::Replace(object), _) => {
                let answer =
                    self.api(&object.key).replace(&object.key.name, &PostParams::default(), &dynamic(object)).await;
                self.answered("update", &object.key, answer)
            }
            (Step::Delete(key, uid), _) => {
                let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
                let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
                let answer = self.api(key).delete(&key.name, &parameters).await;
                match answer {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 404 => self.store.remove(key, uid),
                    Err(error) => return Err(Error::of("delete", key, &error)),
                }
                Ok(None)
            }
            (Step::Status(_) | Step::Keep(_) | Step::Certificate(_) | Step::Probe, _) => Ok(None),
        }
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let resource = key.kind.resource();
        match &key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn answered(
        &self,
        verb: &str,
        key: &Key,
        answer: Result<DynamicObject, kube::Error>,
    ) -> Result<Option<Object>, Error> {
        answer.map(|object| Some(object_of(key.kind, object))).map_err(|error| Error::of(verb, key, &error))
    }
}

impl Error {
    fn of(verb: &str, key: &Key, error: &kube::Error) -> Error {
        let code = match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        Error::Api(explain(verb, &key.to_string(), error), code)
    }

    /// A word for the condition.
    fn reason(&self) -> &'static str {
        match self {
            Error::Api(_, 403) => "NotAllowed",
            Error::Api(_, 409) => "Conflict",
            Error::Api(_, 400 | 422) => "Refused",
            Error::Api(..) | Error::TimedOut | Error::NotHeld => "ApiServerUnavailable",
            Error::Certificates(_) => "CertificatesFailed",
        }
    }
}

/// The patch that makes one value of another.
fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return after.clone() };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let there = after.iter().map(|(key, value)| {
        let value = before.get(key).map_or_else(|| value.clone(), |before| merge_patch(before, value));
        (key.clone(), value)
    });
    there.chain(gone).collect()
}

fn dynamic(object: &Object) -> DynamicObject {
    serde_json::from_value(object.value.clone()).expect("an object has a kind and metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_removes_what_is_gone() {
        let (before, after) = (json!({"a": {"x": 1, "y": 2}, "b": [1]}), json!({"a": {"x": 1}, "c": 3}));
        assert_eq!(merge_patch(&before, &after), json!({"a": {"x": 1, "y": null}, "b": null, "c": 3}));
    }
}

//! Does the steps of a plan, each as one request, while the Lease is held.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use portal_cluster::{
    holder::{ActError, Holder},
    watch::explain,
};
use tracing::{info, warn};

use crate::{
    desired::resolve,
    instance::{Instance, OperatorSettings},
    metrics::{OperatorMetrics, StepResult},
    names::MANAGER,
    object::{Key, Object},
    observed::{Memory, NOT_ALLOWED, Observed},
    plan::{Plan, STATUS, Step},
    probe::{self, Answer},
    request::Request,
    store::Store,
    watches::object_of,
};

/// Does steps.
#[derive(Clone)]
pub struct Executor<S = Cluster> {
    /// Where requests go.
    pub server: S,
    /// Where answers go, so that the next plan knows of them.
    pub store: Store,
    /// Who the operator is.
    pub operator: OperatorSettings,
    /// What is counted.
    pub metrics: OperatorMetrics,
}

/// Where requests go: a cluster, or what stands for one in tests.
pub trait Server {
    /// The time.
    fn now(&self) -> Timestamp;

    /// The time since some moment, by a clock that nobody sets.
    fn uptime(&self) -> Duration;

    /// Does a request, if this replica may act. The answer is the object as it is then, if there is one. Whoever gets an error does
    /// not know whether the request was done.
    fn act(&self, request: &Request) -> impl Future<Output = Result<Option<Object>, Error>>;

    /// Asks the API server whether it reaches the engine of an instance.
    fn probe(&self, instance: &str) -> impl Future<Output = Answer>;
}

/// A cluster.
#[derive(Clone)]
pub struct Cluster {
    /// The way to the API server.
    pub client: Client,
    /// Whether this replica may act.
    pub holder: Holder,
    /// The namespace of the operator.
    pub namespace: String,
}

/// How long a step may take. The API server waits for other webhooks meanwhile. Right before the Lease is renewed more than seven seconds
/// are left of the term: with a longer step none could begin then.
const STEP: Duration = Duration::from_secs(6);

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What the API server said, and its code; 0 if it said nothing.
    #[error("{0}")]
    Api(String, u16),
    /// It may have been done all the same.
    #[error("the API server did not answer within {STEP:?}")]
    TimedOut,
    /// Another replica acts.
    #[error("this replica does not hold the Lease")]
    NotHeld,
    /// Nothing was sent.
    #[error("certificates could not be made: {0}")]
    Certificates(#[from] crate::certificates::Error),
}

impl<S: Server> Executor<S> {
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
                    let answer = self.server.probe(&instance.name).await;
                    memory.probed(instance, observed, answer, self.server.now());
                    Ok(())
                }
                (step, instance) => self.act(instance, observed, step, memory).await,
            };
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
                    memory.failed(subject, reason, error.to_string(), self.server.now());
                    // Of a status that is not taken nothing else may depend, but for one of an instance that has changed or is gone: what is
                    // made for it then would stay, because the namespace owns it too. Nor on a right that the API server does not let us hand
                    // on: a rule lacks it, and all others go on.
                    let is_status = matches!(step, Step::Status(_)) && !matches!(error, Error::Api(_, 404 | 409));
                    let is_right = step.grants() && matches!(error, Error::Api(_, 403));
                    if !is_status && !is_right {
                        return false;
                    }
                }
            }
        }
        // What failed once, and nobody has to do any more, has come about in another way.
        memory.failure.take_if(|failure| !plan.is_held_up && failure.subject != STATUS);
        true
    }

    async fn act(
        &self,
        instance: Option<&Instance>,
        observed: &Observed,
        step: &Step,
        memory: &mut Memory,
    ) -> Result<(), Error> {
        let known = instance.and_then(|instance| self.store.get(&instance.key()));
        let Some(request) = Request::of(step, instance, known.as_deref()) else { return Ok(()) };
        let answer = match (self.server.act(&request).await, &request) {
            // It is gone, which is what removing the finalizer leads to.
            (Err(Error::Api(_, 404)), Request::Finalizers(_, _, false)) => None,
            (Err(Error::Api(_, 404)), Request::Delete(key, uid)) => {
                self.store.forget(key, uid, u128::MAX);
                None
            }
            (Err(Error::Api(_, 404)), Request::Get(key)) => {
                memory.is_gone(key, self.server.uptime());
                None
            }
            (Err(error @ Error::Api(_, 409)), Request::Create(object)) => {
                // It is there, and the watch does not show it: somebody took our label away.
                if let Ok(Some(found)) = self.server.act(&Request::Get(object.key.clone())).await {
                    self.store.set(found);
                }
                return Err(error);
            }
            (answer, _) => answer?,
        };
        info!(instance = instance.map(|instance| &*instance.name), step = step.subject(), "Step done");
        memory.done(step, answer.as_ref(), observed);
        answer.into_iter().for_each(|object| self.store.set(object));
        Ok(())
    }
}

impl Server for Cluster {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn uptime(&self) -> Duration {
        static FIRST_ASKED: LazyLock<Instant> = LazyLock::new(Instant::now);
        FIRST_ASKED.elapsed()
    }

    async fn act(&self, request: &Request) -> Result<Option<Object>, Error> {
        match self.holder.act(STEP, |_| self.send(request)).await {
            Ok(answer) => answer,
            Err(ActError::TimedOut(_)) => Err(Error::TimedOut),
            Err(ActError::NotHeld) => Err(Error::NotHeld),
        }
    }

    async fn probe(&self, instance: &str) -> Answer {
        probe::ask(&self.client, &self.namespace, instance).await
    }
}

impl Cluster {
    async fn send(&self, request: &Request) -> Result<Option<Object>, Error> {
        let key = request.key();
        let (api, name) = (self.api(key), &*key.name);
        let (verb, answer) = match request {
            Request::Get(_) => ("get", api.get(name).await),
            Request::Status(_, patch) => {
                ("patch", api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await)
            }
            Request::Finalizers(_, patch, _) => {
                ("patch", api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
            }
            Request::Apply(object) => {
                let parameters = PatchParams::apply(MANAGER).force();
                ("apply", api.patch(name, &parameters, &Patch::Apply(&object.value)).await)
            }
            Request::Create(object) => ("create", api.create(&PostParams::default(), &dynamic(object)).await),
            Request::Replace(object) => ("update", api.replace(name, &PostParams::default(), &dynamic(object)).await),
            Request::Delete(_, uid) => {
                let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
                let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
                let answer = api.delete(name, &parameters).await;
                return answer.map(|_| None).map_err(|error| Error::of("delete", key, &error));
            }
        };
        answer.map(|object| Some(object_of(key.kind, object))).map_err(|error| Error::of(verb, key, &error))
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let resource = key.kind.resource();
        match &key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
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
            Error::Api(_, 403) => NOT_ALLOWED,
            Error::Api(_, 409) => "Conflict",
            Error::Api(_, 400 | 422) => "Refused",
            Error::Api(..) | Error::TimedOut | Error::NotHeld => "ApiServerUnavailable",
            Error::Certificates(_) => "CertificatesFailed",
        }
    }
}

fn dynamic(object: &Object) -> DynamicObject {
    serde_json::from_value(object.value.clone()).expect("an object has a kind and metadata")
}

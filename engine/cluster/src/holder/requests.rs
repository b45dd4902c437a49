//! The requests of an election, and what an answer means for it.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, PostParams};
use kube::core::Status;
use kube::{Api, Client, Error, ResourceExt as _};

use super::Candidacy;
use super::election::{Answer, Step};
use super::record::{self, ADDRESS, Record};
use crate::watch::chain;

/// One Lease on an API server, for a process that holds it or wants to hold it.
pub(super) struct Requests {
    api: Api<DynamicObject>,
    namespace: String,
    name: String,
    address: Option<String>,
    owner: Option<OwnerReference>,
    /// The Lease that was last read or written, for what others wrote into it, and for its version.
    base: Option<DynamicObject>,
    /// Where the holder is reached, as last seen.
    pub(super) holder_address: Option<String>,
}

/// What may be forbidden. A verb that works makes a refusal of those before it irrelevant: who may update need not create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Get,
    Create,
    Update,
}

/// What a request came to.
pub(super) struct Outcome {
    pub(super) verb: Verb,
    pub(super) answer: Answer,
    /// What somebody has to do something about.
    pub(super) problem: Option<String>,
    /// Why it failed.
    pub(super) failure: Option<String>,
}

impl Requests {
    pub(super) fn new(client: Client, candidacy: &Candidacy) -> Self {
        Self {
            api: Api::namespaced_with(client, &candidacy.namespace, &record::resource()),
            namespace: candidacy.namespace.clone(),
            name: candidacy.name.clone(),
            address: candidacy.address.clone(),
            owner: candidacy.owner.clone(),
            base: None,
            holder_address: None,
        }
    }

    /// Makes a request. `Step::Wait` and `Step::End` are none.
    pub(super) async fn ask(&mut self, step: &Step, timeout: Duration) -> Outcome {
        let verb = match step {
            Step::Create(_) => Verb::Create,
            Step::Put(_) => Verb::Update,
            Step::Get | Step::Wait(_) | Step::End => Verb::Get,
        };
        let base = self.base.take();
        let request = async {
            match step {
                Step::Create(record) => self.create(record).await.map(Some),
                Step::Put(record) => self.put(base, record).await.map(Some),
                Step::Get | Step::Wait(_) | Step::End => self.api.get_opt(&self.name).await,
            }
        };
        // The timeout drops the request, so that the client does not repeat it any more.
        let result = tokio::time::timeout(timeout, request).await;
        let outcome = match &result {
            Ok(Ok(Some(lease))) => Outcome::of(verb, done(verb, lease)),
            Ok(Ok(None)) => Outcome::of(verb, Answer::Missing),
            Ok(Err(error)) => self.failed(verb, error),
            Err(_) => {
                let failure = Some(self.failure(verb, &format!("no answer within {timeout:?}")));
                Outcome { failure, ..Outcome::of(verb, Answer::Lost) }
            }
        };
        if let Ok(Ok(lease)) = result {
            self.holder_address = lease.as_ref().and_then(|lease| lease.annotations().get(ADDRESS).cloned());
            self.base = lease;
        }
        outcome
    }

    async fn create(&self, record: &Record) -> kube::Result<DynamicObject> {
        let lease = DynamicObject::new(&self.name, &record::resource());
        self.api.create(&PostParams::default(), &self.write(lease, record)).await
    }

    fn write(&self, base: DynamicObject, record: &Record) -> DynamicObject {
        record::owned(record::write(base, record, self.address.as_deref()), self.owner.as_ref())
    }

    async fn put(&self, base: Option<DynamicObject>, record: &Record) -> kube::Result<DynamicObject> {
        let base = base.expect("the election writes only on top of what it has just read or written");
        self.api.replace(&self.name, &PostParams::default(), &self.write(base, record)).await
    }

    fn failure(&self, verb: Verb, cause: &str) -> String {
        format!("could not {verb} the Lease {}: {cause}", self.name)
    }

    fn failed(&self, verb: Verb, error: &Error) -> Outcome {
        let (namespace, name) = (&self.namespace, &self.name);
        let Error::Api(status) = error else {
            return Outcome { failure: Some(self.failure(verb, &chain(error))), ..Outcome::of(verb, Answer::Lost) };
        };
        let problem = match status.code {
            409 => return Outcome::of(verb, Answer::Conflict),
            // A PUT to a Lease that is gone. Reading it says so too.
            404 if verb == Verb::Update => return Outcome::of(verb, Answer::Conflict),
            404 => Some(format!("the namespace {namespace} of the Lease {name} does not exist")),
            403 if is_ending(status) => Some(format!("the namespace {namespace} of the Lease {name} is being deleted")),
            403 => Some(format!(
                "may not {verb} the Lease {name}: the verb {verb} on leases of coordination.k8s.io is missing in the namespace {namespace}"
            )),
            400..=499 if status.code != 429 => {
                Some(format!("the API server does not {verb} the Lease {namespace}/{name}: {}", status.message))
            }
            _ => None,
        };
        // A server that failed may have stored the write before it did.
        let answer = if status.code >= 500 { Answer::Lost } else { Answer::Refused };
        Outcome { verb, answer, failure: Some(self.failure(verb, &status.message)), problem }
    }
}

impl Outcome {
    fn of(verb: Verb, answer: Answer) -> Self {
        Self { verb, answer, problem: None, failure: None }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
        })
    }
}

fn done(verb: Verb, lease: &DynamicObject) -> Answer {
    let uid = lease.uid().unwrap_or_default().into();
    if verb == Verb::Get { Answer::Found(uid, record::read(lease)) } else { Answer::Written(uid) }
}

/// Whether nothing can be made in the namespace any more, which looks like a missing permission.
fn is_ending(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

//! What is asked of the API server about reports.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions},
    core::Request,
};
use portal_cluster::watch::explain;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{
    layout::{About, INSTANCE, Key, MANAGED_BY, Seen, Step, Version, Writing},
    model::{Object, Page, Report},
};

/// The way to the reports of an instance.
#[derive(Clone)]
pub(super) struct Requests {
    client: Client,
    about: About,
}

/// What came of a step.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The report is written: this version, with this content, of which so much was left out.
    Written { version: Version, print: u64, left_out: usize, is_new: bool },
    /// It is deleted, or was not there.
    Deleted,
    /// Somebody wrote in between. This is what there is now.
    Found(Option<Box<Seen>>),
    /// Its namespace is gone, or is going.
    NoNamespace,
    /// The Lease is not ours, or not for long enough.
    NotHeld,
    /// It failed.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The API server does not know the kind.
    NotServed(String),
    /// It does not take this report.
    Refused(String),
    /// It did not answer, or not as it should. It may say when to come again.
    Failed(String, Option<Duration>),
}

/// How many reports are asked for at once. Most have less than 64 KiB.
const PAGE: u32 = 50;

/// How long a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

impl Requests {
    pub(super) fn new(client: Client, about: About) -> Requests {
        Requests { client, about }
    }

    /// All reports of ours. `keeps` says whether all that they say may be needed.
    pub(super) async fn list(&self, keeps: bool) -> Result<Vec<Seen>, Failure> {
        let mut seen = Vec::new();
        for is_namespaced in [true, false] {
            let take = |report| seen.extend(self.about.seen(report, keeps));
            self.pages(is_namespaced, |request, parameters| request.list(parameters), take).await?;
        }
        Ok(seen)
    }

    /// The versions of all reports of ours, by namespace and name.
    pub(super) async fn versions(&self) -> Result<BTreeMap<(Option<String>, String), String>, Failure> {
        let mut versions = BTreeMap::new();
        for is_namespaced in [true, false] {
            let take = |Object { metadata }| {
                if self.about.is_ours(&metadata) {
                    versions.insert((metadata.namespace, metadata.name), metadata.resource_version);
                }
            };
            self.pages(is_namespaced, |request, parameters| request.list_metadata(parameters), take).await?;
        }
        Ok(versions)
    }

    /// Does a step, and looks at what is there if somebody else did something before. Only the holder may call this.
    pub(super) async fn take(&self, key: &Key, step: Step) -> Outcome {
        let (verb, answer) = match step {
            Step::Write(writing) => {
                let Writing { report, print, left_out } = *writing;
                let is_new = report.metadata.uid.is_empty();
                let verb = if is_new { "create" } else { "update" };
                match self.write(key, &report).await {
                    Ok(Object { metadata }) => {
                        let version = Version { uid: metadata.uid, resource_version: metadata.resource_version };
                        return Outcome::Written { version, print, left_out, is_new };
                    }
                    Err(error) => (verb, error),
                }
            }
            Step::Delete(version) => match self.delete(key, version).await {
                Ok(()) => return Outcome::Deleted,
                Err(error) => ("delete", error),
            },
        };
        match meaning(&answer) {
            Meaning::Conflict => match self.get(key).await {
                Ok(Some(report)) => match self.about.seen(report, false).filter(|seen| seen.key == *key) {
                    Some(seen) => Outcome::Found(Some(Box::new(seen))),
                    None => Outcome::Failed(Failure::Refused(self.not_ours(key))),
                },
                Ok(None) => Outcome::Found(None),
                Err(failure) => Outcome::Failed(failure),
            },
            Meaning::Gone if verb == "delete" => Outcome::Deleted,
            Meaning::Gone => Outcome::Found(None),
            Meaning::NoNamespace => Outcome::NoNamespace,
            _ => Outcome::Failed(self.failure(verb, key.namespace.is_some(), &answer)),
        }
    }

    async fn write(&self, key: &Key, report: &Report) -> Result<Object, kube::Error> {
        let (request, parameters) = (self.request(key), PostParams::default());
        let body = serde_json::to_vec(report).map_err(kube::Error::SerdeError)?;
        let request = if report.metadata.uid.is_empty() {
            request.create(&parameters, body)
        } else {
            request.replace(&report.metadata.name, &parameters, body)
        };
        self.client.request(request.map_err(kube::Error::BuildRequest)?).await
    }

    async fn delete(&self, key: &Key, version: Version) -> Result<(), kube::Error> {
        let Version { uid, resource_version } = version;
        let preconditions = Preconditions { uid: Some(uid), resource_version: Some(resource_version) };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let request = self.request(key).delete(&self.about.name(key.level, key.shard), &parameters);
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await.map(drop)
    }

    async fn get(&self, key: &Key) -> Result<Option<Report>, Failure> {
        let request = self.request(key).get(&self.about.name(key.level, key.shard), &GetParams::default());
        let failed = |error: kube::Error| self.failure("get", key.namespace.is_some(), &error);
        let request = request.map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        match self.client.request(request).await {
            Ok(report) => Ok(Some(report)),
            Err(error) if matches!(meaning(&error), Meaning::Gone | Meaning::NoNamespace) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        is_namespaced: bool,
        ask: impl Fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
        mut take: impl FnMut(T),
    ) -> Result<(), Failure> {
        let request = Request::new(self.path(None, is_namespaced));
        let labels = format!("{}={},{INSTANCE}={}", MANAGED_BY.0, MANAGED_BY.1, self.about.instance);
        let mut parameters = ListParams::default().labels(&labels).limit(PAGE);
        loop {
            let failed = |error: kube::Error| self.failure("list", is_namespaced, &error);
            let page = ask(&request, &parameters).map_err(|error| failed(kube::Error::BuildRequest(error)))?;
            let late = |_| {
                let resource = self.resource(is_namespaced);
                Failure::Failed(format!("could not list {resource}: no answer within {PAGE_TIMEOUT:?}"), None)
            };
            let page = timeout(PAGE_TIMEOUT, self.client.request::<Page<T>>(page)).await.map_err(late)?;
            let Page { metadata, items } = page.map_err(failed)?;
            items.into_iter().flatten().for_each(&mut take);
            parameters.continue_token = metadata.next.filter(|next| !next.is_empty());
            if parameters.continue_token.is_none() {
                return Ok(());
            }
        }
    }

    fn request(&self, key: &Key) -> Request {
        Request::new(self.path(key.namespace.as_deref(), key.namespace.is_some()))
    }

    fn path(&self, namespace: Option<&str>, is_namespaced: bool) -> String {
        let api = self.about.api;
        let (group, version, plural) = (api.group(), api.version(), api.plural(is_namespaced));
        match namespace {
            Some(namespace) => format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}"),
            None => format!("/apis/{group}/{version}/{plural}"),
        }
    }

    fn resource(&self, is_namespaced: bool) -> String {
        format!("{}.{}", self.about.api.plural(is_namespaced), self.about.api.group())
    }

    fn not_ours(&self, key: &Key) -> String {
        let kind = self.about.api.kind(key.namespace.is_some());
        let name = self.about.name(key.level, key.shard);
        let place = key.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("the {kind} {place}{name} was not made by this instance: delete it, so that its name is free")
    }

    fn failure(&self, verb: &str, is_namespaced: bool, error: &kube::Error) -> Failure {
        let resource = self.resource(is_namespaced);
        let problem = || explain(verb, &resource, error);
        match (meaning(error), error) {
            (Meaning::NotServed, _) => Failure::NotServed(format!(
                "the API server does not know {resource} in version {}: install the definitions with \
                 `portal generate report-crds | kubectl apply --server-side -f -`",
                self.about.api.version()
            )),
            (Meaning::Refused, _) => Failure::Refused(problem()),
            (_, kube::Error::Api(status)) => {
                let seconds = status.details.as_ref().map(|details| details.retry_after_seconds).unwrap_or_default();
                let at_least = (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)));
                Failure::Failed(problem(), at_least)
            }
            _ => Failure::Failed(problem(), None),
        }
    }
}

/// What the API server means by an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Meaning {
    /// There is another version of the report, or one where there was none.
    Conflict,
    Gone,
    NoNamespace,
    NotServed,
    Refused,
    Other,
}

fn meaning(error: &kube::Error) -> Meaning {
    let kube::Error::Api(status) = error else { return Meaning::Other };
    let details = status.details.as_ref();
    let terminates = || {
        let causes = details.iter().flat_map(|details| &details.causes);
        causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
    };
    match status.code {
        409 => Meaning::Conflict,
        403 if terminates() => Meaning::NoNamespace,
        404 if details.is_some_and(|details| details.kind == "namespaces") => Meaning::NoNamespace,
        404 if details.is_some_and(|details| !details.name.is_empty()) => Meaning::Gone,
        // A definition that is being removed takes no objects any more.
        404 | 405 => Meaning::NotServed,
        400 | 413 | 422 => Meaning::Refused,
        _ => Meaning::Other,
    }
}

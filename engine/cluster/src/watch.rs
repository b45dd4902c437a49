//! Watches of the API server that go on by themselves, and say on `/readyz` what is in their way.

mod explain;
mod object;
mod pauses;

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream::BoxStream};
use kube::{
    Api, Resource,
    api::ListParams,
    runtime::{
        WatchStreamExt as _,
        utils::Backoff as _,
        watcher::{self, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use self::{explain::explain_watch, pauses::Calm};
use crate::{client::SILENCE, health::Part, runtime::Runtime};

pub use self::explain::{chain, explain};
pub use self::object::{Form, Watched};
pub use self::pauses::Pauses;

/// The events of a watch. What goes wrong with it is for people to see, and the watch goes on by itself.
pub struct Events<K> {
    api: Api<K>,
    config: watcher::Config,
    stream: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
    calm: Calm,
    /// How long to wait before the watch begins anew.
    pauses: Pauses,
    part: Part,
    /// What is watched, in words.
    resource: String,
    runtime: Runtime,
}

/// After this time the server ends a watch, and it goes on from where it was. Shorter than the silence after which a
/// connection is given up: a watch without news is no dead one.
const WATCH_SECONDS: u32 = SILENCE.as_secs() as u32 * 3 / 4;

impl<K> Events<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Begins to watch. A problem is reported as one of `part`, in words that name `resource`.
    pub fn new(runtime: Runtime, part: Part, resource: String, api: Api<K>) -> Self {
        Self::with(runtime, part, resource, api, watcher::Config::default())
    }

    /// The same of those objects that a configuration selects.
    pub fn with(runtime: Runtime, part: Part, resource: String, api: Api<K>, config: watcher::Config) -> Self {
        let config = config.timeout(WATCH_SECONDS);
        let stream = begin(&api, &config, Duration::ZERO);
        Self { api, config, stream, calm: Calm::default(), pauses: Pauses::default(), part, resource, runtime }
    }

    /// The next event. `None` at the end of the process.
    pub async fn next(&mut self) -> Option<watcher::Event<K>> {
        loop {
            let event = tokio::select! {
                event = self.stream.next() => event?,
                () = self.calm.wait(|| is_answered(&self.api, &self.config)) => {
                    self.runtime.health.recovered(&self.part);
                    continue;
                }
                () = self.runtime.shutdown.cancelled() => return None,
            };
            match event {
                Ok(event) => {
                    if !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_)) {
                        self.runtime.health.recovered(&self.part);
                    }
                    return Some(event);
                }
                Err(error) => self.fail(&error),
            }
        }
    }

    fn fail(&mut self, error: &watcher::Error) {
        self.calm.disturb();
        if is_expired(error) {
            // The new stream forgets the pauses of the old one, and a server that says this again must not be asked at once.
            self.pauses.reset();
            let pause = self.pauses.next().unwrap_or_default();
            self.stream = begin(&self.api, &self.config, pause);
        }
        self.runtime.metrics.watch_errors.at(&self.part).inc();
        if let Some(problem) = explain_watch(&self.resource, error) {
            self.runtime.health.unwell(&self.part, &problem);
        }
    }
}

/// Whether the API server answers a request for what is watched.
async fn is_answered<K>(api: &Api<K>, config: &watcher::Config) -> bool
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let watcher::Config { label_selector, field_selector, .. } = config.clone();
    api.list_metadata(&ListParams { label_selector, field_selector, limit: Some(1), ..ListParams::default() })
        .await
        .is_ok()
}

/// A watch from its beginning, after a pause and with pauses after errors.
fn begin<K>(
    api: &Api<K>,
    config: &watcher::Config,
    pause: Duration,
) -> BoxStream<'static, watcher::Result<watcher::Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let stream = watcher(api.clone(), config.clone()).backoff(Pauses::default());
    sleep(pause).map(|()| stream).flatten_stream().boxed()
}

/// Whether the server refused to start a watch from where it was. kube's watcher would ask for the same again for ever. (When the
/// server says so in the stream of a watch that has started, the watcher begins anew by itself.)
fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

impl<K> Drop for Events<K> {
    /// The watch of a kind that is not needed any more leaves nothing behind.
    fn drop(&mut self) {
        if let Part::Watch(_) = self.part {
            self.runtime.forget(&self.part);
        }
    }
}

//! Watches of the API server that go on by themselves, and say on `/readyz` what is in their way.

mod explain;
mod object;
mod pauses;
mod streamed;

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream::BoxStream};
use kube::{
    Api, Resource,
    api::ListParams,
    runtime::{
        WatchStreamExt as _,
        utils::Backoff as _,
        watcher::{self, InitialListStrategy, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use self::{explain::explain_watch, pauses::Calm, streamed::streamed};
use crate::{client::SILENCE, health::Part, runtime::Runtime};

pub use self::explain::{chain, explain};
pub use self::object::{Form, Watched, identity};
pub use self::pauses::Pauses;
pub use self::streamed::read_event;

/// The events of a watch. What goes wrong with it is for people to see, and the watch goes on by itself.
pub struct Events<K> {
    api: Api<K>,
    config: watcher::Config,
    /// Begins a watch.
    source: Source<K>,
    stream: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
    calm: Calm,
    /// How long to wait before the watch begins anew.
    pauses: Pauses,
    /// How many lists have begun since one was at its end.
    lists: usize,
    part: Part,
    /// What is watched, in words.
    resource: String,
    runtime: Runtime,
}

/// What begins a watch by a configuration, and goes on after errors.
type Source<K> = fn(&Api<K>, &watcher::Config) -> BoxStream<'static, watcher::Result<watcher::Event<K>>>;

/// What a watch tells.
#[derive(Debug)]
pub enum News<K> {
    /// Something about objects.
    Event(watcher::Event<K>),
    /// The API server refuses to tell, for this reason. It is asked again and again.
    Refused(String),
    /// It answers again.
    Recovered,
}

/// After this time the server ends a watch, and it goes on from where it was. Shorter than the silence after which a
/// connection is given up: a watch without news is no dead one.
const WATCH_SECONDS: u32 = SILENCE.as_secs() as u32 * 3 / 4;

/// How often a list is tried that is a part of the watch. The server ends a watch after a while, and one whose list takes longer would begin
/// for ever.
const STREAMED_LISTS: usize = 3;

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
        Self::by(|api, config| watcher(api.clone(), config.clone()).boxed(), runtime, part, resource, api, config)
    }

    fn by(
        source: Source<K>,
        runtime: Runtime,
        part: Part,
        resource: String,
        api: Api<K>,
        config: watcher::Config,
    ) -> Self {
        let config = config.timeout(WATCH_SECONDS);
        let stream = begin(source, &api, &config, Duration::ZERO);
        let (calm, pauses) = (Calm::default(), Pauses::default());
        Self { api, config, source, stream, calm, pauses, lists: 0, part, resource, runtime }
    }

    /// The next event. `None` at the end of the process.
    pub async fn next(&mut self) -> Option<watcher::Event<K>> {
        loop {
            if let News::Event(event) = self.news().await? {
                return Some(event);
            }
        }
    }

    /// The next event, or that the API server refuses to tell. `None` at the end of the process.
    pub async fn news(&mut self) -> Option<News<K>> {
        loop {
            let event = tokio::select! {
                // To look at the other two costs more than to take an event, so that what has been received is taken first. It comes to an
                // end, and then they are looked at.
                biased;
                event = self.stream.next() => event?,
                () = self.calm.wait(|| is_answered(&self.api, &self.config)) => {
                    self.runtime.health.recovered(&self.part);
                    return Some(News::Recovered);
                }
                () = self.runtime.shutdown.cancelled() => return None,
            };
            match event {
                Ok(event) => {
                    self.note(&event);
                    return Some(News::Event(event));
                }
                Err(error) => {
                    let problem = self.fail(&error);
                    if let Some(problem) = problem.filter(|_| is_refusal(&error)) {
                        return Some(News::Refused(problem));
                    }
                }
            }
        }
    }

    fn note(&mut self, event: &watcher::Event<K>) {
        match event {
            watcher::Event::Init => {
                self.lists += 1;
                if self.lists > STREAMED_LISTS && self.is_streamed() {
                    self.list_in_pages();
                }
            }
            watcher::Event::InitApply(_) => {}
            watcher::Event::InitDone | watcher::Event::Apply(_) | watcher::Event::Delete(_) => {
                self.lists = 0;
                self.runtime.health.recovered(&self.part);
            }
        }
    }

    /// Returns what is wrong, in words for people, if it is more than a part of the life of a watch.
    fn fail(&mut self, error: &watcher::Error) -> Option<String> {
        if self.is_streamed() && is_unstreamed(error) {
            // Older API servers cannot stream a list, and it is no problem.
            self.list_in_pages();
            return None;
        }
        self.calm.disturb();
        if is_expired(error) {
            self.restart();
        }
        self.runtime.metrics.watch_errors.at(&self.part).inc();
        let problem = explain_watch(&self.resource, error)?;
        self.runtime.health.unwell(&self.part, &problem);
        Some(problem)
    }

    fn is_streamed(&self) -> bool {
        self.config.initial_list_strategy == InitialListStrategy::StreamingList
    }

    fn list_in_pages(&mut self) {
        self.config.initial_list_strategy = InitialListStrategy::ListWatch;
        self.restart();
    }

    fn restart(&mut self) {
        // The new stream forgets the pauses of the old one, and a server that says this again must not be asked at once.
        self.pauses.reset();
        let pause = self.pauses.next().unwrap_or_default();
        self.stream = begin(self.source, &self.api, &self.config, pause);
    }
}

impl<F: Form> Events<Watched<F>> {
    /// Watches many objects: they come as a stream, if the API server can do that.
    pub fn of_many(runtime: Runtime, part: Part, resource: String, api: Api<Watched<F>>) -> Self {
        let source: Source<_> = |api, config| match config.initial_list_strategy {
            InitialListStrategy::StreamingList => streamed(api, config.clone()),
            InitialListStrategy::ListWatch => watcher(api.clone(), config.clone()).boxed(),
        };
        Self::by(source, runtime, part, resource, api, watcher::Config::default().streaming_lists())
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
    source: Source<K>,
    api: &Api<K>,
    config: &watcher::Config,
    pause: Duration,
) -> BoxStream<'static, watcher::Result<watcher::Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let stream = source(api, config).backoff(Pauses::default());
    sleep(pause).map(|()| stream).flatten_stream().boxed()
}

/// Whether whoever asks may not see the objects.
fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 403,
        _ => false,
    }
}

/// Whether the server does not begin a watch with a list. It says that such a request is wrong.
fn is_unstreamed(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
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

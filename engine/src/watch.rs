//! What every watch of the API server has in common: how long it waits after an error, and what the error means to a person.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream::BoxStream};
use kube::{
    Api, Resource,
    api::ListParams,
    runtime::{
        WatchStreamExt as _,
        utils::Backoff,
        watcher::{self, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{
    client::SILENCE,
    health::{Health, Part},
    metrics::Metrics,
    run::Shutdown,
};

/// The longest pause between two tries: whoever fixes the cause should not wait for long.
const MAX_PAUSE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// After this time the server ends a watch, and it goes on from where it was. Shorter than the silence after which a
/// connection is given up: a watch without news is no dead one.
const WATCH_SECONDS: u32 = SILENCE.as_secs() as u32 * 3 / 4;

/// Pauses that double, until there was none for a while.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    tries: u32,
    last: Option<Instant>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.tries.min(10)).min(MAX_PAUSE);
        self.tries += 1;
        self.last = Some(Instant::now());
        Some(pause)
    }
}

impl Backoff for Pauses {
    /// Called for whatever a watch tells, which begins with "I begin" even if nothing comes of it.
    fn reset(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() > 2 * MAX_PAUSE) {
            *self = Pauses::default();
        }
    }
}

/// The events of a watch. What goes wrong with it is for people to see, and the watch goes on by itself.
pub(crate) struct Events<K> {
    api: Api<K>,
    config: watcher::Config,
    stream: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
    calm: Calm,
    /// Between two beginnings.
    pauses: Pauses,
    part: Part,
    /// What is watched, in words.
    resource: String,
    health: Health,
    metrics: Metrics,
    shutdown: Shutdown,
}

impl<K> Events<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(crate) fn new(
        part: Part,
        resource: String,
        api: Api<K>,
        config: watcher::Config,
        health: Health,
        metrics: Metrics,
        shutdown: Shutdown,
    ) -> Self {
        let config = config.timeout(WATCH_SECONDS);
        let stream = begin(&api, &config, Duration::ZERO);
        Self {
            api,
            config,
            stream,
            calm: Calm::default(),
            pauses: Pauses::default(),
            part,
            resource,
            health,
            metrics,
            shutdown,
        }
    }

    /// The next event. `None` at the end of the engine.
    pub(crate) async fn next(&mut self) -> Option<watcher::Event<K>> {
        loop {
            let event = tokio::select! {
                event = self.stream.next() => event?,
                () = self.calm.wait(|| is_answered(&self.api)) => {
                    self.health.recovered(self.part);
                    continue;
                }
                () = self.shutdown.wait() => return None,
            };
            match event {
                Ok(event) => {
                    if !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_)) {
                        self.health.recovered(self.part);
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
            // The pauses of the stream go with it, and a server that keeps saying so must not be asked in a row.
            self.pauses.reset();
            let pause = self.pauses.next().unwrap_or_default();
            self.stream = begin(&self.api, &self.config, pause);
        }
        self.metrics.watch_errors.with_label_values(&[self.part.to_string()]).inc();
        if let Some(problem) = explain_watch(&self.resource, error) {
            self.health.unwell(self.part, &problem);
        }
    }
}

/// Whether the API server tells something of what is watched.
async fn is_answered<K>(api: &Api<K>) -> bool
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    api.list_metadata(&ListParams::default().limit(1)).await.is_ok()
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

/// Whether a watch cannot go on from where it was. When that is told in its stream it begins anew by itself; when it is told as
/// it starts it would ask the same for ever.
fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// Tells when a watch that failed goes on: one that goes on without a change says nothing.
#[derive(Debug, Default)]
struct Calm {
    failed: Option<Instant>,
}

impl Calm {
    /// It failed, and is tried again.
    fn disturb(&mut self) {
        self.failed = Some(Instant::now());
    }

    /// Waits until it has not failed for longer than between two tries, and `probe` has an answer: a try may hang for longer.
    async fn wait<F: Future<Output = bool>>(&mut self, probe: impl Fn() -> F) {
        loop {
            match self.failed {
                Some(failed) => sleep_until(failed + 3 * MAX_PAUSE).await,
                None => std::future::pending().await,
            }
            if timeout(MAX_PAUSE, probe()).await == Ok(true) {
                self.failed = None;
                return;
            }
            self.disturb();
        }
    }
}

/// What an error of a watch means, and the way out. `None` for what is part of the life of a watch.
fn explain_watch(resource: &str, error: &watcher::Error) -> Option<String> {
    match error {
        error if is_expired(error) => None,
        watcher::Error::InitialListFailed(error) => Some(explain("list", resource, error)),
        watcher::Error::WatchStartFailed(error) => Some(explain("watch", resource, error)),
        watcher::Error::WatchFailed(error) => Some(explain("watch", resource, error)),
        // The server forgot where we were: the watch begins again by itself.
        watcher::Error::WatchError(status) if status.code == 410 => None,
        watcher::Error::WatchError(status) => Some(explain("watch", resource, &kube::Error::Api(status.clone()))),
        watcher::Error::NoResourceVersion => Some(format!("the API server does not let {resource} be watched")),
    }
}

/// What an error of a request means, and the way out.
pub(crate) fn explain(verb: &str, resource: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("not allowed to {verb} {resource}: grant the verb `{verb}` to this ServiceAccount")
        }
        kube::Error::Api(status) if status.code == 401 => {
            format!("the API server does not know who asks to {verb} {resource}: the credentials are wrong or too old")
        }
        kube::Error::Api(status) if status.code == 404 && resource.ends_with(".portal.io") => format!(
            "the API server does not know {resource}: install the definitions with \
             `portal generate crds | kubectl apply --server-side -f -`"
        ),
        kube::Error::Api(status) => format!("could not {verb} {resource}: {} ({})", status.message, status.code),
        error => format!("could not {verb} {resource}: {}", chain(error)),
    }
}

/// An error and what is behind it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        // Some errors repeat the one behind them.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_bound_and_begin_again_after_a_while() {
        let mut pauses = Pauses::default();
        let mut seconds = Vec::new();
        for _ in 0..8 {
            seconds.extend(pauses.next().map(|pause| pause.as_secs_f64()));
            pauses.reset();
        }
        assert_eq!(seconds, [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]);
        tokio::time::advance(Duration::from_secs(11)).await;
        pauses.reset();
        assert_eq!(pauses.next(), Some(FIRST_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn calm_comes_a_while_after_the_last_failure() {
        let mut calm = Calm::default();
        calm.disturb();
        tokio::time::advance(Duration::from_secs(10)).await;
        calm.disturb();
        let start = Instant::now();
        calm.wait(|| ready(true)).await;
        assert_eq!(start.elapsed(), 3 * MAX_PAUSE);
        assert!(timeout(Duration::from_secs(3600), calm.wait(|| ready(true))).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_whose_server_does_not_answer_is_not_calm() {
        let mut calm = Calm::default();
        calm.disturb();
        let start = Instant::now();
        let tries = Cell::new(0);
        // Nothing comes, then an error, then an answer.
        calm.wait(|| {
            tries.set(tries.get() + 1);
            let tries = tries.get();
            async move {
                match tries {
                    1 => std::future::pending().await,
                    2 => false,
                    _ => true,
                }
            }
        })
        .await;
        assert_eq!(tries.get(), 3);
        assert_eq!(start.elapsed(), 10 * MAX_PAUSE);
    }

    #[track_caller]
    fn check(verb: &str, resource: &str, code: u16, expected: &str) {
        let mut status = kube::core::Status::failure("something", "Something");
        status.code = code;
        assert_eq!(explain(verb, resource, &kube::Error::Api(status.boxed())), expected);
    }

    #[test]
    fn errors_say_the_way_out() {
        check(
            "watch",
            "portalrules.portal.io",
            403,
            "not allowed to watch portalrules.portal.io: grant the verb `watch` to this ServiceAccount",
        );
        check(
            "list",
            "portalrules.portal.io",
            404,
            "the API server does not know portalrules.portal.io: install the definitions with \
             `portal generate crds | kubectl apply --server-side -f -`",
        );
        check("list", "leases", 500, "could not list leases: something (500)");
    }
}

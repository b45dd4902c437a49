//! What rules look up, listed once and followed no further: for a program that judges and ends.

use std::collections::HashMap;

use futures_util::{StreamExt as _, stream};
use kube::Client;
use portal_cluster::{
    rules::feeds::FeedId,
    watch::{Pauses, explain},
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    feed::{self, Source},
    keeper::Caches,
    store::{Shown, Store},
};

/// How many lists there are at a time.
const LISTS: usize = 8;

/// Lists each source once. One that could not be listed by the deadline, or may not be, is refused in the caches for a reason that names
/// it: it is never empty. A namespace of a kind whose objects are all at hand is not listed again.
pub async fn list_once(client: &Client, sources: impl IntoIterator<Item = Source>, deadline: Instant) -> Caches {
    let sources = sources.into_iter().map(|source| (FeedId::of(&source.kind, source.namespace.as_deref()), source));
    let sources: HashMap<FeedId, Source> = sources.collect();
    let (all, own): (Vec<_>, Vec<_>) = sources.into_iter().partition(|(id, _)| id.namespace.is_none());
    let mut shown = list_each(client, all, deadline).await;
    let is_at_hand = |id: &FeedId| {
        let all = shown.get(&FeedId { namespace: None, ..id.clone() });
        all.is_some_and(|all| all.moment().is_some())
    };
    // Who may not list everything may be allowed to list a namespace.
    let own: Vec<_> = own.into_iter().filter(|(id, _)| !is_at_hand(id)).collect();
    shown.extend(list_each(client, own, deadline).await);
    shown.into_iter().collect()
}

async fn list_each(client: &Client, sources: Vec<(FeedId, Source)>, deadline: Instant) -> HashMap<FeedId, Shown> {
    let lists = sources.into_iter().map(|(id, source)| async move { (id, list(client, &source, deadline).await) });
    stream::iter(lists).buffer_unordered(LISTS).collect().await
}

/// Lists a source, again and again as long as that may help.
async fn list(client: &Client, source: &Source, deadline: Instant) -> Shown {
    let (mut store, mut pauses, mut last) = (Store::default(), Pauses::default(), None);
    let name = source.name();
    let tries = async {
        while let Err(error) = feed::list(source, &mut store, client).await {
            let problem = explain("list", &name, &error);
            if is_final(&error) {
                return Some(problem);
            }
            last = Some(problem);
            sleep(pauses.next().unwrap_or_default()).await;
        }
        None
    };
    let refusal = match timeout_at(deadline, tries).await {
        Ok(refusal) => refusal,
        Err(_) => {
            let problem = last.unwrap_or_else(|| "the API server has not answered".to_owned());
            Some(format!("{name} could not be listed in time: {problem}"))
        }
    };
    store.set_refusal(refusal);
    store.shown()
}

/// Whether the API server would say the same again. It may have more time later, and a list that took too long begins anew.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && !matches!(status.code, 408 | 410 | 429))
}

#[cfg(test)]
mod tests;

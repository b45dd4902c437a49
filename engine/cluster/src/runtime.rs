//! What every part of a process is given.

use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    client::greet,
    health::{Health, Part},
    metrics::Metrics,
    watch::Pauses,
};

/// What every part of a process is given. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    /// The way to the API server.
    pub client: Client,
    /// Where a part says how it is.
    pub health: Health,
    /// What is counted.
    pub metrics: Metrics,
    /// Cancelled when the process is to end. Each part then ends by itself.
    pub shutdown: CancellationToken,
}

impl Runtime {
    /// Makes a client with `connect`, again and again until the API server has answered it: what is wrong with a kubeconfig may
    /// show only then. Nothing if the process ends before.
    pub async fn connect<F>(
        connect: impl Fn() -> F,
        health: Health,
        metrics: Metrics,
        shutdown: CancellationToken,
    ) -> Option<Runtime>
    where
        F: Future<Output = Result<Client, String>>,
    {
        let client = shutdown.run_until_cancelled(connected(connect, &health)).await?;
        Some(Runtime { client, health, metrics, shutdown })
    }

    /// Forgets a part that has come and gone: its line and its series.
    pub fn forget(&self, part: &Part) {
        self.health.forget(part);
        self.metrics.watch_errors.forget(part);
    }
}

async fn connected<F>(connect: impl Fn() -> F, health: &Health) -> Client
where
    F: Future<Output = Result<Client, String>>,
{
    let mut pauses = Pauses::default();
    loop {
        let client = async {
            let client = connect().await?;
            greet(&client).await.map(|()| client)
        };
        match client.await {
            Ok(client) => {
                health.well(&Part::ApiServer);
                return client;
            }
            Err(problem) => health.unwell(&Part::ApiServer, &format!("no way to reach the API server: {problem}")),
        }
        tokio::time::sleep(pauses.next().unwrap_or_default()).await;
    }
}

/// Waits for a task that was started elsewhere. If that task panicked, this panics too, so that whoever waits for this notices.
pub async fn join(task: JoinHandle<()>) {
    if let Err(error) = task.await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_elsewhere_is_noticed() {
        let mut tasks = JoinSet::new();
        tasks.spawn(join(tokio::spawn(async { panic!("a mistake") })));
        assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
        tasks.spawn(join(tokio::spawn(async {})));
        assert!(tasks.join_next().await.unwrap().is_ok());
    }
}

//! Requests that go on while something happens to the engines, and how they are answered.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::{Client, Config};
use serde_json::json;
use tokio::task::JoinSet;

use super::shell::Configuration;

/// Somebody who asks for a good pod and for a privileged one in turn. Nothing is stored.
pub(super) struct Requests {
    is_over: Arc<AtomicBool>,
    answers: Arc<Mutex<Answers>>,
    task: JoinHandle<anyhow::Result<()>>,
}

/// How requests were answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) sent: usize,
    /// Good pods that were let in.
    pub(super) let_in: usize,
    /// Privileged pods that were let in.
    pub(super) slipped_in: usize,
    /// Privileged pods that the rule refused.
    pub(super) refused: usize,
    /// Pods that were refused because nobody could judge them.
    pub(super) unanswered: usize,
    /// What one of the latter was told.
    pub(super) example: String,
    /// When the first and the last of them were sent.
    without_answer: Option<(Instant, Instant)>,
}

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(50);

impl Requests {
    /// Sends pods to a namespace from now on.
    pub(super) fn start(configuration: Configuration, namespace: &'static str) -> Requests {
        let (is_over, answers) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (end, counted) = (Arc::clone(&is_over), Arc::clone(&answers));
        // A thread with a runtime of its own: that of the program waits for the tour.
        let task = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(send(configuration, namespace, &end, &counted))
        });
        Requests { is_over, answers, task }
    }

    /// The answers since the last time that somebody asked.
    pub(super) fn so_far(&self) -> Answers {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends no more, waits for the last answer, and returns those since the last time that somebody asked.
    pub(super) fn end(self) -> anyhow::Result<Answers> {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

async fn send(
    configuration: Configuration,
    namespace: &str,
    end: &AtomicBool,
    answers: &Arc<Mutex<Answers>>,
) -> anyhow::Result<()> {
    let mut config = Config::from_custom_kubeconfig(configuration.kubeconfig, &configuration.options).await?;
    // A refusal must be seen, not tried again.
    config.default_retry = false;
    let pods: Api<Pod> = Api::namespaced(Client::try_from(config)?, namespace);
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let mut waiting = JoinSet::new();
    let mut is_privileged = false;
    while !end.load(Ordering::Relaxed) {
        let (pods, parameters, answers) = (pods.clone(), parameters.clone(), Arc::clone(answers));
        let pod = pod(is_privileged)?;
        // A slow answer holds up no other request.
        waiting.spawn(async move {
            let sent = Instant::now();
            let answer = pods.create(&parameters, &pod).await;
            answers.lock().unwrap_or_else(PoisonError::into_inner).count(is_privileged, sent, answer)
        });
        is_privileged = !is_privileged;
        while let Some(counted) = waiting.try_join_next() {
            counted??;
        }
        tokio::time::sleep(PAUSE).await;
    }
    while let Some(counted) = waiting.join_next().await {
        counted??;
    }
    Ok(())
}

fn pod(is_privileged: bool) -> anyhow::Result<Pod> {
    let container =
        json!({"name": "app", "image": "acme.example/web:1.4", "securityContext": {"privileged": is_privileged}});
    Ok(serde_json::from_value(json!({"metadata": {"generateName": "request-"}, "spec": {"containers": [container]}}))?)
}

impl Answers {
    fn count(&mut self, is_privileged: bool, sent: Instant, answer: kube::Result<Pod>) -> anyhow::Result<()> {
        self.sent += 1;
        match answer {
            Ok(_) if is_privileged => self.slipped_in += 1,
            Ok(_) => self.let_in += 1,
            Err(kube::Error::Api(status)) if status.code == 403 && is_privileged => self.refused += 1,
            // The API server could not ask the webhook, and refuses as the failure policy says.
            Err(kube::Error::Api(status)) if status.code >= 500 => {
                self.unanswered += 1;
                self.example = status.message.clone();
                let first = self.without_answer.map_or(sent, |(first, _)| first.min(sent));
                self.without_answer = Some((first, sent));
            }
            Err(error) => return Err(error).context("a request was answered in a way that nobody expected"),
        }
        Ok(())
    }

    /// These and others together.
    pub(super) fn and(&self, others: &Answers) -> Answers {
        Answers {
            sent: self.sent + others.sent,
            let_in: self.let_in + others.let_in,
            slipped_in: self.slipped_in + others.slipped_in,
            refused: self.refused + others.refused,
            unanswered: self.unanswered + others.unanswered,
            ..Answers::default()
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answers { sent, let_in, slipped_in, refused, unanswered, .. } = self;
        write!(
            formatter,
            "   {sent} requests: {let_in} good pods let in, {refused} privileged ones refused by the rule, {slipped_in} let in, \
             {unanswered} refused because no engine answered"
        )?;
        if let Some((first, last)) = self.without_answer.filter(|_| *unanswered > 0) {
            write!(formatter, " (within {:.1} s):\n   {}", (last - first).as_secs_f64(), self.example)?;
        }
        Ok(())
    }
}

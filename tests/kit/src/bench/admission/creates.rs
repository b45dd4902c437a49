//! What a decision adds to a create, for the API server and the engine together: by the webhook, and by the same rules as a policy in
//! CEL that the API server evaluates itself. The same pods are created in a namespace where neither decides, and that is taken away.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use portal_test_kit::repository;

use super::stage::{Outcome, Stage, Webhook};
use super::{Samples, row, verdicts};
use crate::bench::table::{Goal, Row, number};

const ROUNDS: usize = 7;

/// The namespaces, by who decides in them. In the last one the policy tells which of its checks fail, and lets everything in.
pub(super) const NOTHING: &str = "nothing";
pub(super) const WEBHOOK: &str = "webhook";
pub(super) const POLICY: &str = "policy";
pub(super) const COMPARED: &str = "compared";

/// Enough to keep an API server on two processors busy, which then has them for six seconds.
const LOAD: [&str; 4] = ["--connections", "4", "--seconds", "3"];

/// A round: what a create took with nobody deciding, before and after the others, with the webhook and with the policy. Milliseconds of
/// processors.
struct Round {
    nothing: [f64; 2],
    webhook: f64,
    policy: f64,
}

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    for namespace in [NOTHING, WEBHOOK, POLICY, COMPARED] {
        stage.cluster.kubectl(&["create", "namespace", namespace])?;
        // Without a controller nobody else makes it, and pods need one.
        stage.cluster.kubectl(&["--namespace", namespace, "create", "serviceaccount", "default"])?;
    }
    let webhook = stage.webhook(None)?;
    configure(stage, &webhook)?;
    verdicts::compare(stage)?;

    let (api_server, engine) = (stage.cluster.process("kube-apiserver")?, webhook.engine.process.id());
    let watched = [api_server, engine].map(|process| process.to_string());
    let flags = [&LOAD[..], &["--pid", &watched[0], "--pid", &watched[1]]].concat();
    let create = |namespace: &str| -> anyhow::Result<f64> {
        let outcome = stage.create(namespace, &flags)?;
        all_created(&outcome).with_context(|| format!("creating pods in {namespace}"))?;
        if stage.details {
            let [ours, theirs] = [1, 0].map(|place| outcome.processors[place] / outcome.requests * 1000.0);
            eprintln!(
                "{namespace:<10}{:>7.0} creates{:>7.0} /s{theirs:>8.3} ms of processors in the API server{ours:>8.3} in the engine{:>8.2} ms half",
                outcome.requests, outcome.per_second, outcome.milliseconds.p50,
            );
        }
        Ok(outcome.processor_microseconds() / 1000.0)
    };
    for namespace in [NOTHING, WEBHOOK, POLICY] {
        create(namespace)?;
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let before = create(NOTHING)?;
        let (webhook, policy) = (create(WEBHOOK)?, create(POLICY)?);
        rounds.push(Round { nothing: [before, create(NOTHING)?], webhook, policy });
    }
    let judged = webhook.engine.metric("portal_admission_requests_total{decision=\"allowed\"}");
    if judged < ROUNDS as f64 {
        bail!("the API server has asked the engine {judged} times");
    }
    webhook.engine.process.stop()?;
    Ok(rows(&rounds))
}

fn rows(rounds: &[Round]) -> Vec<Row> {
    let added = |value: fn(&Round) -> f64| Samples::new(rounds.iter().map(move |round| value(round) - round.base()));
    let (ours, theirs) = (added(|round| round.webhook), added(|round| round.policy));
    let ratio = |round: &Round| (round.webhook - round.base()) / (round.policy - round.base());
    let (least, most) = Samples::new(rounds.iter().map(|round| round.nothing[1] - round.nothing[0])).spread();
    let base = Samples::new(rounds.iter().map(Round::base)).median();
    let what = "CPU added to a create";
    let compared = row(what, "the same rules as a policy in CEL", &Samples::new(rounds.iter().map(ratio)), "×");
    vec![
        Row { worst: format!("a create takes {} without", number(base)), ..row(what, "", &ours, "ms") },
        Row {
            // Of the middle values: a round has the noise of four measurements.
            value: ours.median() / theirs.median(),
            worst: format!(
                "{} to {} ms; nothing adds {} to {}",
                number(ours.median()),
                number(theirs.median()),
                number(least),
                number(most)
            ),
            must: Some(Goal::AtMost(1.5)),
            aim: Some(Goal::AtMost(1.0)),
            ..compared
        },
    ]
}

impl Round {
    fn base(&self) -> f64 {
        self.nothing.iter().sum::<f64>() / 2.0
    }
}

/// Tells the API server of both, and waits until it follows.
fn configure(stage: &Stage, webhook: &Webhook) -> anyhow::Result<()> {
    let mut command = stage.portal();
    command
        .args(["generate", "webhook", "--url", &format!("https://{}", webhook.address), "--rules"])
        .arg(Stage::rules());
    command.arg("--namespace-selector").arg(format!("kubernetes.io/metadata.name={WEBHOOK}"));
    let output = command.arg("--ca").arg(stage.path("ca.crt")).output()?;
    if !output.status.success() {
        bail!("there is no webhook configuration: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    stage.cluster.kubectl_with_input(&["apply", "--filename", "-"], &String::from_utf8(output.stdout)?)?;
    let policy = repository().join("tests/bench/admission/policy.yaml").display().to_string();
    stage.cluster.kubectl(&["apply", "--filename", &policy])?;
    let bad = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}"#;
    for namespace in [WEBHOOK, POLICY] {
        let create = ["--namespace", namespace, "create", "--dry-run=server", "--filename", "-"];
        let deadline = Instant::now() + Duration::from_secs(30);
        while stage.cluster.kubectl_with_input(&create, bad).is_ok() {
            if Instant::now() > deadline {
                bail!("nobody refuses a pod in {namespace}");
            }
        }
    }
    Ok(())
}

fn all_created(outcome: &Outcome) -> anyhow::Result<()> {
    if outcome.failures > 0 || outcome.statuses.keys().any(|status| status != "201") {
        bail!("{} requests failed, the others are {:?}: {}", outcome.failures, outcome.statuses, outcome.first);
    }
    Ok(())
}

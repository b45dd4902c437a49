//! What the measurements share: a cluster, certificates, programs, and a folder of what is sent.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::ByteString;
use portal_test_kit::certificates::Authority;
use portal_test_kit::held::{dying_with_us, free_port};
use portal_test_kit::{Cluster, Size, prepare, repository};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use super::super::Measuring;
use super::super::process::{Engine, Process};

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    /// Whether to show what is behind the rows.
    pub(super) details: bool,
    folder: TempDir,
    portal: PathBuf,
    load: PathBuf,
    echo: PathBuf,
}

/// An engine that judges requests.
pub(super) struct Webhook {
    pub(super) engine: Engine,
    pub(super) address: String,
}

/// A server that lets everything in.
pub(super) struct Echo {
    pub(super) process: Process,
    pub(super) address: String,
}

/// What a load came to, as its program prints it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    pub(super) requests: f64,
    pub(super) per_second: f64,
    pub(super) statuses: BTreeMap<String, u64>,
    pub(super) failures: u64,
    pub(super) unlike: u64,
    pub(super) milliseconds: Quantiles,
    pub(super) processors: Vec<f64>,
    pub(super) first: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// Where servers run, and where those who ask. Each has a processor for itself.
pub(super) const SERVERS: &str = "0";
pub(super) const CLIENTS: &str = "1";

/// Runs a server on a processor, as soon as it has something to do. The cluster has its own things to do and no part in what is
/// measured; the best of the usual priorities would still wait for a slice of its time, which is milliseconds.
const BEFORE_OTHERS: [&str; 5] = ["chrt", "--fifo", "1", "taskset", "--cpu-list"];

/// The same for who asks, which never sleeps. The kernel takes a processor away for a twentieth of each second from what runs like that
/// before all others, and the wait would be in the times of the answers.
const BEFORE_MOST: [&str; 5] = ["nice", "--adjustment", "-20", "taskset", "--cpu-list"];

/// No load takes longer, or something hangs.
const LOAD_TIMEOUT: &str = "300";

const START_TIMEOUT: Duration = Duration::from_secs(20);

impl Stage {
    pub(super) fn set(measuring: &Measuring<'_>) -> anyhow::Result<Stage> {
        if std::thread::available_parallelism()?.get() < 2 {
            bail!("a server and who asks it need a processor each, and this machine has one");
        }
        let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        // As the program that users get is built.
        let as_shipped = ["--no-default-features", "--features", "web,jemalloc", "--target", &target];
        let echo = measuring.programs.build("echo", &as_shipped)?;
        // Without what else is raced: that takes long to compile.
        let alone = ["--no-default-features", "--features", "web"];
        let (load, reviews) = (measuring.programs.build("load", &alone)?, measuring.programs.build("reviews", &alone)?);
        let portal = prepare::static_program()?;
        let folder = tempfile::tempdir()?;
        let status = Command::new(reviews).arg(folder.path()).status()?;
        if !status.success() {
            bail!("what is sent could not be written ({status})");
        }
        let authority = Authority::new("portal")?;
        let pair = authority.server("portal", &["127.0.0.1"])?;
        for (name, text) in
            [("ca.crt", authority.pair().certificate), ("tls.crt", pair.certificate), ("tls.key", pair.key)]
        {
            fs::write(folder.path().join(name), text)?;
        }
        let cluster = Cluster::start(Size::Core)?;
        // Without a controller nobody else makes it, and pods need one.
        cluster.kubectl(&["create", "serviceaccount", "default"])?;
        let stage = Stage { cluster, details: measuring.programs.details, folder, portal, load, echo };
        stage.take_review()?;
        Ok(stage)
    }

    /// Creates a pod, and keeps the review of it that the API server sends.
    fn take_review(&self) -> anyhow::Result<()> {
        let review = self.path("review.json");
        let flags = ["--parse", "--save", review.to_str().context("the folder has a name")?];
        let echo = self.echo(SERVERS, &flags)?;
        let authority = ByteString(fs::read(self.path("ca.crt"))?);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "reviews"},
            "webhooks": [{
                "name": "reviews.portal.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": format!("https://{}/", echo.address), "caBundle": authority},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }],
        });
        let made_up = fs::metadata(&review)?.modified()?;
        self.cluster.kubectl_with_input(&["create", "--filename", "-"], &configuration.to_string())?;
        let pod = self.path("pod.json").display().to_string();
        let deadline = Instant::now() + START_TIMEOUT;
        // The API server takes a moment to follow its own configuration.
        while fs::metadata(&review)?.modified()? == made_up {
            if Instant::now() > deadline {
                bail!("the API server sends no review");
            }
            self.cluster.kubectl(&["create", "--dry-run=server", "--filename", &pod])?;
        }
        self.cluster.kubectl(&["delete", "validatingwebhookconfiguration", "reviews"])?;
        let bytes = fs::metadata(&review)?.len();
        if !(9_500..12_000).contains(&bytes) {
            bail!("the review of a pod of 10 KB has {bytes} bytes");
        }
        Ok(())
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The rules that everything is measured with.
    pub(super) fn rules() -> PathBuf {
        repository().join("docs/library/pod-security/restricted")
    }

    /// The program that users get.
    pub(super) fn portal(&self) -> Command {
        Command::new(&self.portal)
    }

    /// Starts an engine, on one processor or on all, and does not wait until it is ready.
    pub(super) fn start_webhook(&self, processor: Option<&str>, flags: &[&str]) -> anyhow::Result<Webhook> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut command = pinned(processor, &self.portal);
        command.args(["engine", "--admission", "--log=error", "--admission-listen", &address]).args(flags);
        command.arg("--tls-cert").arg(self.path("tls.crt")).arg("--tls-key").arg(self.path("tls.key"));
        command.arg("--rules-folder").arg(Stage::rules()).env("KUBECONFIG", self.cluster.kubeconfig());
        Ok(Webhook { engine: Engine::start(&mut command, free_port()?)?, address })
    }

    /// The same, and waits.
    pub(super) fn webhook(&self, processor: Option<&str>) -> anyhow::Result<Webhook> {
        let webhook = self.start_webhook(processor, &[])?;
        webhook.engine.wait_until(START_TIMEOUT, Engine::is_ready)?;
        Ok(webhook)
    }

    /// Starts a server that lets everything in, and may read what it is sent.
    pub(super) fn echo(&self, processor: &str, flags: &[&str]) -> anyhow::Result<Echo> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut command = pinned(Some(processor), &self.echo);
        command.arg(&address).arg(self.path("tls.crt")).arg(self.path("tls.key")).args(flags);
        let process = Process::start(&mut command)?;
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(&address).is_err() {
            if Instant::now() > deadline {
                bail!("nothing answers at {address}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Echo { process, address })
    }

    /// Asks a webhook at this address, from a processor of its own.
    pub(super) fn ask(&self, address: &str, body: &str, flags: &[&str]) -> anyhow::Result<Outcome> {
        let mut command = Command::new(BEFORE_MOST[0]);
        command.args(&BEFORE_MOST[1..]).arg(CLIENTS).arg(&self.load);
        command.arg("--url").arg(format!("https://{address}/validate")).arg("--ca").arg(self.path("ca.crt"));
        run(command.arg("--body").arg(self.path(body)).args(flags))
    }

    /// Creates pods in a namespace, none of which is stored.
    pub(super) fn create(&self, namespace: &str, flags: &[&str]) -> anyhow::Result<Outcome> {
        let pki = self.cluster.pki();
        let server = self.cluster.server()?;
        let mut command = Command::new(&self.load);
        command.arg("--url").arg(format!("{server}/api/v1/namespaces/{namespace}/pods?dryRun=All"));
        for (flag, file) in [("--ca", "ca.crt"), ("--cert", "admin.crt"), ("--key", "admin.key")] {
            command.arg(flag).arg(pki.join(file));
        }
        run(command.arg("--body").arg(self.path("pod.json")).args(flags))
    }
}

impl Outcome {
    /// Fails unless every request was answered, and let in.
    pub(super) fn all_allowed(self) -> anyhow::Result<Outcome> {
        if self.failures > 0 || self.unlike > 0 || !self.first.contains(r#""allowed":true"#) {
            bail!("{} requests failed, {} were answered otherwise than by {}", self.failures, self.unlike, self.first);
        }
        Ok(self)
    }

    /// Microseconds of processors for a request.
    pub(super) fn processor_microseconds(&self) -> f64 {
        self.processors.iter().sum::<f64>() / self.requests * 1e6
    }
}

/// A program on one processor, or on all.
fn pinned(processor: Option<&str>, program: &Path) -> Command {
    match processor {
        Some(processor) => {
            let mut command = dying_with_us(BEFORE_OTHERS[0]);
            command.args(&BEFORE_OTHERS[1..]).arg(processor).arg(program);
            command
        }
        None => dying_with_us(program),
    }
}

fn run(command: &mut Command) -> anyhow::Result<Outcome> {
    let mut limited = Command::new("timeout");
    limited.arg(LOAD_TIMEOUT).arg(command.get_program()).args(command.get_args());
    let output = limited.output()?;
    if !output.status.success() {
        bail!("{command:?} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("a load printed something else than what it came to")
}

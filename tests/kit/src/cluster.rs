//! A running cluster, as a test sees it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::Value;

use crate::audit_log::{self, AuditEvent};
use crate::cache::Cache;
use crate::held::{Held, kit_binary};
use crate::keeper::{self, Report};
use crate::namespace::Namespace;
use crate::state::{Size, State};
use crate::{components, image};

/// A real Kubernetes that lives as long as this value, and no longer than this process.
#[derive(Debug)]
pub struct Cluster {
    size: Size,
    state: State,
    programs: PathBuf,
    cache: Cache,
    /// Numbers what tests ask for, so that no two get the same name.
    counter: AtomicU32,
    /// Set when the logs were shown, which is done once.
    logs_shown: AtomicBool,
    /// Last, so that the cluster is still there while the rest is dropped.
    keeper: Held,
}

/// How long the API server may take to come back. A machine may be busy beside it.
const RESTART_TIMEOUT: Duration = Duration::from_secs(120);

/// How long the record of requests may lag behind.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(10);

impl Cluster {
    /// Starts a cluster and waits until it is ready.
    pub fn start(size: Size) -> anyhow::Result<Self> {
        let cache = Cache::open()?;
        let mut command = Command::new(kit_binary()?);
        command.arg("keep").arg(size.to_string()).stdout(Stdio::piped());
        let mut keeper = Held::start(&mut command)?;
        let stdout = keeper.child().stdout.take().expect("it was asked to be piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let root = match serde_json::from_str(&line).context("the keeper ended without a word")? {
            Report::Ready(root) => root,
            Report::Failed(reason) => bail!("the {size} cluster could not be started: {reason}"),
        };
        let state = State::at(root);
        let programs = state.description()?.programs;
        Ok(Self {
            size,
            state,
            programs,
            cache,
            counter: AtomicU32::new(0),
            logs_shown: AtomicBool::new(false),
            keeper,
        })
    }

    /// The cluster of this size that all tests of this program share. The first who asks starts it.
    pub fn shared(size: Size) -> &'static Self {
        static CLUSTERS: [OnceLock<Cluster>; 3] = [const { OnceLock::new() }; 3];
        CLUSTERS[size as usize].get_or_init(|| Self::start(size).unwrap_or_else(|error| panic!("{error:#}")))
    }

    /// A client for the administrator. Each test makes its own, because a client belongs to one runtime.
    pub async fn client(&self) -> Client {
        keeper::admin_client(&self.state).await.expect("the keeper wrote a valid kubeconfig")
    }

    /// A client for somebody else.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let kubeconfig = self.kubeconfig_as(user, groups);
        keeper::client_of(&kubeconfig).await.expect("the kubeconfig was just written")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.kubeconfig("admin")
    }

    /// A kubeconfig for a user that need not exist, in groups that need not exist.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> PathBuf {
        let file = format!("user-{}", self.number());
        components::write_kubeconfig_as(&self.state, &file, user, groups)
            .expect("the cluster's folder can be written to")
    }

    /// Runs kubectl as the administrator. An error carries what kubectl said.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        said(arguments, self.kubectl_command().args(arguments).output()?)
    }

    /// Runs kubectl as the administrator with this text on its standard input.
    pub fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let mut child = self
            .kubectl_command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().expect("it was asked to be piped").write_all(input.as_bytes())?;
        said(arguments, child.wait_with_output()?)
    }

    /// A kubectl command as the administrator.
    pub fn kubectl_command(&self) -> Command {
        self.command(self.programs.join("kubectl"))
    }

    /// A command whose Kubernetes tools reach this cluster as the administrator, and leave nothing outside its folder.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", self.kubeconfig()).env("KUBECACHEDIR", self.state.root().join("kubectl"));
        command
    }

    /// The folder with kubectl and the other programs of this cluster.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// The folder with what each component wrote.
    pub fn logs(&self) -> PathBuf {
        self.state.logs()
    }

    /// The folder with its certificates.
    pub fn pki(&self) -> PathBuf {
        self.state.pki()
    }

    /// Where the API server asks for a way to the pods of Services, below *full*: a socket that nobody listens on unless a test does. Each
    /// connection begins with `CONNECT address:port HTTP/1.1`, and is that connection after an answer of 200.
    pub fn pods_socket(&self) -> PathBuf {
        self.state.pods_socket()
    }

    /// Where the API server is reached: `https://` and an address.
    pub fn server(&self) -> anyhow::Result<String> {
        let kubeconfig: Value = serde_json::from_slice(&std::fs::read(self.kubeconfig())?)?;
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str();
        server.map(str::to_owned).context("the kubeconfig names a server")
    }

    /// The number of the process that is a component, below *full*.
    pub fn process(&self, component: &str) -> anyhow::Result<u32> {
        let keeper = format!("PPid:\t{}", self.state.description()?.keeper);
        let name = format!("Name:\t{component}");
        for entry in std::fs::read_dir("/proc")? {
            let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may have ended since.
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            if status.lines().any(|line| line == name) && status.lines().any(|line| line == keeper) {
                return Ok(process);
            }
        }
        bail!("the cluster has no {component} here")
    }

    /// How much of a cluster it is.
    pub fn size(&self) -> Size {
        self.size
    }

    /// A namespace for one test.
    pub async fn namespace(&self, test: &str) -> Namespace<'_> {
        Namespace::create(self, &format!("{test}-{}", self.number())).await
    }

    /// What the API server has answered up to this call, oldest first.
    pub async fn audit_events(&self) -> anyhow::Result<Vec<AuditEvent>> {
        // A request that nobody else makes: once it is in the record, so is what came before it.
        let marker = format!("audit-marker-{}", self.number());
        let config_maps: Api<ConfigMap> = Api::namespaced(self.client().await, "default");
        config_maps.get_opt(&marker).await?;
        let deadline = Instant::now() + AUDIT_TIMEOUT;
        loop {
            let mut events = audit_log::read(&self.state.audit_log())?;
            if let Some(end) = events.iter().position(|event| event.object_ref.name == marker) {
                events.truncate(end);
                return Ok(events);
            }
            if Instant::now() > deadline {
                bail!("the record of requests lags behind by more than {AUDIT_TIMEOUT:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Kills the API server, starts it again, and waits until it is ready. What it has stored is there.
    pub fn restart_api_server(&self) -> anyhow::Result<()> {
        if self.size == Size::Full {
            bail!("the API server of a full cluster is out of reach for its keeper");
        }
        let (before, keeper) = (self.state.restarts(), self.state.description()?.keeper);
        let status = Command::new("kill").args(["-USR1", &keeper.to_string()]).status()?;
        if !status.success() {
            bail!("the keeper of the cluster is gone");
        }
        let deadline = Instant::now() + RESTART_TIMEOUT;
        while self.state.restarts() == before {
            if Instant::now() > deadline {
                bail!("the API server did not come back within {RESTART_TIMEOUT:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Brings an image archive onto the node.
    pub fn import_image(&self, archive: &Path) -> anyhow::Result<()> {
        if self.size != Size::Full {
            bail!("a cluster of size {} has no node to bring an image to", self.size);
        }
        image::import(&self.state.containerd_socket(), archive)
    }

    /// Gives an image on the node another name.
    pub fn tag_image(&self, image: &str, name: &str) -> anyhow::Result<()> {
        image::tag(&self.state.containerd_socket(), image, name)
    }

    /// Says on standard error where the logs are and what their last errors were, and keeps them.
    pub fn show_logs(&self) {
        if self.logs_shown.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.state.keep_logs(&self.cache) {
            Ok(logs) => eprintln!(
                "the logs of the {} cluster will be in {}; their last errors are:\n{}",
                self.size,
                logs.display(),
                self.state.last_errors()
            ),
            Err(error) => eprintln!("the logs of the {} cluster are lost: {error:#}", self.size),
        }
    }

    /// Stops the cluster and waits until nothing of it is left. Dropping it does the same.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.keeper.stop().map(|_| ())
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    fn number(&self) -> u32 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
    }
}

fn said(arguments: &[&str], output: Output) -> anyhow::Result<String> {
    if !output.status.success() {
        bail!("`kubectl {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

//! The folder of one cluster: who made it, what is in it, and how the folder of a cluster that died is cleaned up.

use std::fmt;
use std::fs;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Lock};
use crate::node;

/// How much of a cluster is started.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// etcd and the API server: objects are stored, and nothing acts on them.
    Core,
    /// Controllers and the scheduler too: Deployments become Pods, and garbage is collected. No pod runs.
    Control,
    /// A node too: pods run. Needs root.
    Full,
}

/// The files of one cluster.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

/// What the keeper writes down about its cluster, for those who find the folder.
#[derive(Debug, Deserialize, Serialize)]
pub struct Description {
    /// How much of it there is.
    pub size: Size,
    /// The Kubernetes release.
    pub version: String,
    /// The keeper's process id. It is the keeper's as long as the lock is held.
    pub keeper: u32,
    /// Whether the cluster stays until somebody takes it down.
    pub detached: bool,
    /// The API server's port on loopback, when a certain one was asked for.
    pub port: Option<u16>,
    /// The run of `make test` that it belongs to, if it does.
    pub run: Option<String>,
    /// Where the programs are.
    pub programs: PathBuf,
}

/// How many folders of logs are kept from clusters in which something failed.
const LOGS_KEPT: usize = 10;

impl Size {
    /// Reads the name of a size.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        match text {
            "core" => Ok(Self::Core),
            "control" => Ok(Self::Control),
            "full" => Ok(Self::Full),
            other => bail!(
                "{other:?} is no size: choose core (etcd and the API server), control (with controllers) or full (with a node)"
            ),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Core => "core",
            Self::Control => "control",
            Self::Full => "full",
        })
    }
}

impl State {
    /// The files below this folder, wherever it is mounted.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Cleans up after clusters that died, then makes a folder for a new one. The lock says that its maker lives.
    pub fn claim(cache: &Cache, size: Size) -> anyhow::Result<(Self, Lock)> {
        let folder = cache.folder("clusters")?;
        // Nobody may sweep between the making of a folder and the locking of it.
        let _sweeping = cache.lock("clusters")?;
        sweep(cache, &folder);
        let unique = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        let root = folder.join(format!("{size}-{:x}", unique ^ (u128::from(std::process::id()) << 40)));
        let state = Self { root };
        // A socket's address has room for about a hundred characters. Better to know now than from containerd's log.
        if size == Size::Full && SocketAddr::from_pathname(state.containerd_socket()).is_err() {
            bail!("the path {} is too long for a socket: set PORTAL_CACHE to a shorter one", state.root.display());
        }
        for folder in [state.root.clone(), state.pki(), state.logs(), state.root.join("kubeconfig")] {
            fs::create_dir_all(&folder).with_context(|| format!("could not make {}", folder.display()))?;
        }
        let lock = Lock::try_take(&state.lock())?.context("a folder that was just made is locked by somebody else")?;
        Ok((state, lock))
    }

    /// The clusters whose keepers live.
    pub fn alive(cache: &Cache) -> anyhow::Result<Vec<(Self, Description)>> {
        let mut alive = Vec::new();
        for entry in fs::read_dir(cache.folder("clusters")?)? {
            let state = Self::at(entry?.path());
            // A keeper that has just begun has not described its cluster yet; it is not ready either.
            if let (true, Ok(description)) = (Lock::is_held(&state.lock()), state.description()) {
                alive.push((state, description));
            }
        }
        Ok(alive)
    }

    /// A name that no other cluster has.
    pub fn id(&self) -> String {
        self.root.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Certificates and keys.
    pub fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    /// What each component wrote.
    pub fn logs(&self) -> PathBuf {
        self.root.join("log")
    }

    /// The log of one component.
    pub fn log(&self, component: &str) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    /// The API server's record of every request.
    pub fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.jsonl")
    }

    /// How this user reaches the API server.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.root.join("kubeconfig").join(user)
    }

    /// Leads to the API server from outside the cluster's network namespace.
    pub fn api_socket(&self) -> PathBuf {
        self.root.join("api.sock")
    }

    /// Where containerd listens.
    pub fn containerd_socket(&self) -> PathBuf {
        self.root.join("containerd.sock")
    }

    /// Where the API server asks for a way to pods, below *full*.
    pub fn pods_socket(&self) -> PathBuf {
        self.root.join("pods.sock")
    }

    /// Held by the keeper for as long as it lives.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Leaves a note that something failed here, so that the logs outlive the cluster. Returns where they will be.
    pub fn keep_logs(&self, cache: &Cache) -> anyhow::Result<PathBuf> {
        fs::write(self.root.join("keep-logs"), "")?;
        self.kept_logs(cache)
    }

    /// Writes down what this cluster is.
    pub fn describe(&self, description: &Description) -> anyhow::Result<()> {
        Ok(fs::write(self.root.join("cluster.json"), serde_json::to_vec_pretty(description)?)?)
    }

    /// What the keeper wrote down.
    pub fn description(&self) -> anyhow::Result<Description> {
        Ok(serde_json::from_slice(&fs::read(self.root.join("cluster.json"))?)?)
    }

    /// Writes down that the API server was started anew, and is ready.
    pub fn count_restart(&self) -> anyhow::Result<()> {
        Ok(fs::write(self.root.join("restarts"), (self.restarts() + 1).to_string())?)
    }

    /// How often the API server was started anew.
    pub fn restarts(&self) -> u32 {
        fs::read_to_string(self.root.join("restarts")).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The last lines in the logs that look like errors, for a person who has to find out why.
    pub fn last_errors(&self) -> String {
        let mut found = Vec::new();
        let mut logs: Vec<PathBuf> = fs::read_dir(self.logs())
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        logs.sort();
        for path in logs {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let errors: Vec<&str> = text.lines().filter(|line| looks_like_error(line)).collect();
            found.extend(errors.iter().rev().take(3).rev().map(|line| format!("{name}: {line}")));
        }
        if found.is_empty() { "no line in the logs looks like an error".to_owned() } else { found.join("\n") }
    }

    /// Removes everything that this cluster has on the machine. Its processes must be dead.
    pub fn remove(&self, cache: &Cache) -> anyhow::Result<()> {
        node::remove_cgroups(&self.id())?;
        if self.root.join("keep-logs").exists() && self.logs().exists() {
            fs::rename(self.logs(), self.kept_logs(cache)?).context("could not keep the logs")?;
            prune_logs(cache)?;
        }
        // A process that is dying may still write a file into a folder that was just emptied.
        let mut result = self.remove_files();
        for _ in 0..20 {
            if result.is_ok() || !self.root.exists() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
            result = self.remove_files();
        }
        result.with_context(|| format!("could not remove {}", self.root.display()))
    }

    /// Removes the folder, the lock last: until then nobody else takes the cluster for dead.
    fn remove_files(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            if path == self.lock() {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_file(path)?;
            }
        }
        fs::remove_dir_all(&self.root)
    }

    fn kept_logs(&self, cache: &Cache) -> anyhow::Result<PathBuf> {
        Ok(cache.folder("logs")?.join(self.id()))
    }
}

/// Cleans up what killed runs left behind.
fn sweep(cache: &Cache, folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let state = State::at(entry.path());
        // With the keeper everything that it started is dead.
        if !Lock::is_held(&state.lock()) {
            eprintln!("cleaning up the cluster {}, whose run was killed", state.id());
            if let Err(error) = state.remove(cache) {
                eprintln!("could not clean up {}: {error:#}", state.root.display());
            }
        }
    }
}

fn prune_logs(cache: &Cache) -> anyhow::Result<()> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(cache.folder("logs")?)? {
        let entry = entry?;
        folders.push((entry.metadata()?.modified()?, entry.path()));
    }
    folders.sort();
    for (_, path) in folders.iter().rev().skip(LOGS_KEPT) {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

/// Kubernetes' logs mark errors by a first letter, containerd and etcd by a level; panics and usage errors by words.
fn looks_like_error(line: &str) -> bool {
    let mut characters = line.chars();
    let letter = characters.next().unwrap_or_default();
    if characters.take(4).filter(char::is_ascii_digit).count() == 4 {
        return matches!(letter, 'E' | 'F');
    }
    ["level=error", "level=fatal", r#""level":"error""#, r#""level":"fatal""#, "panic:", "Error:", "error:"]
        .iter()
        .any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_size_is_refused_with_the_three_that_there_are() {
        assert_eq!(
            Size::parse("huge").unwrap_err().to_string(),
            "\"huge\" is no size: choose core (etcd and the API server), control (with controllers) or full (with a node)"
        );
        for size in [Size::Core, Size::Control, Size::Full] {
            assert_eq!(Size::parse(&size.to_string()).unwrap(), size);
        }
    }

    #[test]
    fn a_folder_without_a_living_keeper_is_cleaned_up_by_the_next_claim() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned()).unwrap();
        let (living, _lock) = State::claim(&cache, Size::Core).unwrap();
        let (dead, lock) = State::claim(&cache, Size::Core).unwrap();
        drop(lock);
        let _next = State::claim(&cache, Size::Core).unwrap();
        assert!(living.root().exists());
        assert!(!dead.root().exists());
    }

    #[test]
    fn logs_outlive_a_cluster_in_which_something_failed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned()).unwrap();
        let (state, _lock) = State::claim(&cache, Size::Core).unwrap();
        fs::write(state.log("etcd"), "why").unwrap();
        let kept = state.keep_logs(&cache).unwrap();
        state.remove(&cache).unwrap();
        assert!(!state.root().exists());
        assert_eq!(fs::read_to_string(kept.join("etcd.log")).unwrap(), "why");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("x".repeat(100))).unwrap();
        assert!(State::claim(&cache, Size::Core).is_ok());
        let error = State::claim(&cache, Size::Full).unwrap_err().to_string();
        assert!(error.ends_with("is too long for a socket: set PORTAL_CACHE to a shorter one"), "{error}");
    }

    #[test]
    fn the_last_errors_of_each_log_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned()).unwrap();
        let (state, _lock) = State::claim(&cache, Size::Core).unwrap();
        fs::write(state.log("kube-apiserver"), "I1116 error: none\nE1116 first\nE1116 2\nE1116 3\nE1116 last\n")
            .unwrap();
        fs::write(state.log("etcd"), "{\"level\":\"fatal\",\"msg\":\"no disk\"}\n").unwrap();
        expect_test::expect![[r#"
              etcd: {"level":"fatal","msg":"no disk"}
              kube-apiserver: E1116 2
              kube-apiserver: E1116 3
              kube-apiserver: E1116 last"#]]
        .assert_eq(&state.last_errors());
    }
}

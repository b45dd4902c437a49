//! The engine as a process.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use portal_test_kit::held::{dying_with_us, free_port};
use tempfile::TempDir;

use crate::core::eventually;

/// A running engine. It ends with the test.
pub(super) struct Engine {
    child: Child,
    port: u16,
    folder: TempDir,
}

/// What would pile up if something outlived its rule.
#[derive(Debug)]
pub(super) struct Usage {
    /// Bytes.
    pub(super) memory: u64,
    pub(super) threads: usize,
    pub(super) files: usize,
    /// Connections that the engine has opened.
    pub(super) connections: usize,
    pub(super) tasks: i64,
}

impl Usage {
    /// Tasks that are not there for a connection.
    pub(super) fn parts(&self) -> i64 {
        self.tasks - self.connections as i64
    }

    /// Asserts that this is no more than before. Memory may be more by some bytes, and connections by those that a busy moment left behind,
    /// which wait to be used again.
    #[track_caller]
    pub(super) fn assert_not_grown(&self, before: &Usage, bytes: u64) {
        let files = |usage: &Usage| usage.files.saturating_sub(usage.connections);
        let is_more = self.memory > before.memory + bytes
            || self.threads > before.threads + 2
            || files(self) > files(before) + 4
            || self.connections > before.connections + 24;
        assert!(!is_more, "{self:?} after {before:?}");
    }
}

impl Engine {
    /// Starts one with these flags, and does not wait.
    pub(super) fn start(kubeconfig: &Path, flags: &[&str]) -> Engine {
        Engine::start_with(&[], kubeconfig, flags)
    }

    /// Starts one that permissions of files are for, which they are not for root.
    pub(super) fn start_bound_by_permissions(kubeconfig: &Path, flags: &[&str]) -> Engine {
        let without = "-dac_override,-dac_read_search";
        let drop_them = ["setpriv", "--bounding-set", without, "--inh-caps", without, "--"];
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        Engine::start_by(if is_root { &drop_them } else { &[] }, &[], kubeconfig, flags)
    }

    /// Starts one whose wall clock is an hour ahead. The clock that measures spans of time is right.
    pub(super) fn start_an_hour_ahead(kubeconfig: &Path, flags: &[&str]) -> Engine {
        // Not by its command, which stays between us and the engine.
        let folders = std::fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
        let mut libraries = folders.map(|folder| folder.join("faketime/libfaketime.so.1"));
        let library = libraries.find(|library| library.exists()).expect("tests/setup.sh installs faketime");
        let environment =
            [("LD_PRELOAD", library.to_str().unwrap()), ("FAKETIME", "+1h"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
        Engine::start_with(&environment, kubeconfig, flags)
    }

    /// Starts one with these variables.
    pub(super) fn start_with(environment: &[(&str, &str)], kubeconfig: &Path, flags: &[&str]) -> Engine {
        Engine::start_by(&[], environment, kubeconfig, flags)
    }

    /// Starts one by another program that leaves its process to it.
    fn start_by(starter: &[&str], environment: &[(&str, &str)], kubeconfig: &Path, flags: &[&str]) -> Engine {
        let mut words = starter.iter().copied().chain([env!("CARGO_BIN_EXE_portal")]);
        let mut command = dying_with_us(words.next().expect("there is the program"));
        command.args(words);
        let folder = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        command.args(["engine", "--listen", &format!("127.0.0.1:{port}")]).args(flags);
        // Its own, not those of whoever runs the tests.
        command.env_clear().env("KUBECONFIG", kubeconfig).env("RUST_BACKTRACE", "1").envs(environment.iter().copied());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Engine { child, port, folder }
    }

    /// Starts one and waits until it is ready.
    pub(super) fn ready(kubeconfig: &Path, flags: &[&str]) -> Engine {
        let engine = Engine::start(kubeconfig, flags);
        eventually("the engine is ready", || engine.get("/readyz").is_some_and(|(code, _)| code == 200));
        engine
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Status and body of a path, if it answers.
    pub(super) fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// Asserts again and again that it is ready. Returns how often it has said so.
    pub(super) fn stays_ready_while(&self, goes_on: impl Fn() -> bool) -> u64 {
        let (mut looks, mut last) = (0, Instant::now());
        while goes_on() {
            // On a machine that is busy an answer may take long. That there is none at all is something else.
            match self.get("/readyz?verbose") {
                Some((code, text)) => {
                    assert_eq!(code, 200, "{text}");
                    (looks, last) = (looks + 1, Instant::now());
                }
                None => assert!(last.elapsed() < Duration::from_secs(30), "it does not say whether it is ready"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        looks
    }

    /// The value of a metric with its labels.
    pub(super) fn metric(&self, name: &str) -> i64 {
        let Some((_, text)) = self.get("/metrics") else { return 0 };
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    /// What `/readyz?verbose` says about a part.
    pub(super) fn part(&self, part: &str) -> String {
        let text = self.get("/readyz?verbose").map(|(_, text)| text).unwrap_or_default();
        text.lines().find(|line| line[3..].starts_with(&format!("{part} "))).unwrap_or_default().to_owned()
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(super) fn usage(&self) -> Usage {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let read = |file: &str| std::fs::read_to_string(process.join(file)).unwrap();
        let files: Vec<_> = std::fs::read_dir(process.join("fd")).unwrap().map(|file| file.unwrap().path()).collect();
        let sockets: Vec<_> = files.iter().filter_map(|file| std::fs::read_link(file).ok()).collect();
        // Those that do not end at our own port: they were made by the engine.
        let own_port = format!(":{:04X}", self.port);
        let net = read("net/tcp");
        let connections = net.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let connections = connections.filter(|words| {
            !words[1].ends_with(&own_port) && sockets.contains(&PathBuf::from(format!("socket:[{}]", words[9])))
        });
        Usage {
            memory: read("statm").split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096,
            threads: std::fs::read_dir(process.join("task")).unwrap().count(),
            files: files.len(),
            connections: connections.count(),
            tasks: self.metric("portal_tasks"),
        }
    }

    /// What it has taken of the processors.
    pub(super) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the name, which may have anything in it.
        let words: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks: u64 = [words[11], words[12]].map(|word| word.parse::<u64>().unwrap()).iter().sum();
        Duration::from_millis(ticks * 10)
    }

    /// The most memory that it has ever held, in bytes.
    pub(super) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    pub(super) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Asks it to end, and waits.
    pub(super) fn stop(mut self) -> (ExitStatus, String) {
        self.signal("-TERM");
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, self.log());
            }
            assert!(Instant::now() < deadline, "it ends when it is told to:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the engine's log\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

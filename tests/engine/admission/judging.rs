//! An engine that judges requests, with its files, and the webhook configuration that brings requests to it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use portal_test_kit::Cluster;
use portal_test_kit::certificates::Authority;
use portal_test_kit::held::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::asking::{Caller, Trust};
use super::pod;
use crate::core::eventually;
use crate::engine::process::Engine;

/// An engine that judges requests by the rules of a folder.
pub(super) struct Judging {
    pub(super) engine: Engine,
    pub(super) port: u16,
    files: Files,
}

/// The files of an engine, which outlive it.
pub(super) struct Files {
    folder: TempDir,
    authority: Authority,
}

/// A cluster whose requests an engine judges.
pub(super) struct Guarded {
    pub(super) judging: Judging,
    pub(super) cluster: Cluster,
}

impl Files {
    pub(super) fn new(rules: &str) -> Files {
        let files = Files { folder: tempfile::tempdir().unwrap(), authority: Authority::new("portal").unwrap() };
        fs::write(files.path("ca.crt"), files.authority.pair().certificate).unwrap();
        files.renew();
        for folder in ["rules", "definitions"] {
            fs::create_dir(files.path(folder)).unwrap();
        }
        files.write_rules("rules.yaml", rules);
        files
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Replaces a file of rules at once.
    pub(super) fn write_rules(&self, name: &str, rules: &str) {
        let (next, path) = (self.path("next"), self.path(&format!("rules/{name}")));
        fs::write(&next, rules).unwrap();
        fs::rename(next, path).unwrap();
    }

    /// Gives the webhook another certificate, as Kubernetes replaces the files of a Secret: by a link.
    pub(super) fn renew(&self) {
        let pair = self.authority.server("portal", &["127.0.0.1"]).unwrap();
        let version = tempfile::Builder::new().prefix("..").tempdir_in(self.folder.path()).unwrap().keep();
        for (name, text) in [("tls.crt", pair.certificate), ("tls.key", pair.key)] {
            fs::write(version.join(name), text).unwrap();
            // There from the second time on.
            let _ = symlink(Path::new("..data").join(name), self.path(name));
        }
        symlink(version.file_name().map(PathBuf::from).unwrap(), self.path("..next")).unwrap();
        fs::rename(self.path("..next"), self.path("..data")).unwrap();
    }

    pub(super) fn trust(&self) -> Trust {
        Trust::of(&self.authority.pair().certificate)
    }

    /// Starts an engine that has these files, on this port or on any, and waits until it is ready.
    pub(super) fn judge(self, port: Option<u16>, kubeconfig: &Path, flags: &[&str]) -> Judging {
        let judging = self.judge_soon(port, kubeconfig, flags);
        eventually("the engine is ready", || judging.engine.get("/readyz").is_some_and(|(code, _)| code == 200));
        judging
    }

    /// The same, and waits only until it listens.
    pub(super) fn judge_soon(self, port: Option<u16>, kubeconfig: &Path, flags: &[&str]) -> Judging {
        let (certificate, key, rules) = (self.path("tls.crt"), self.path("tls.key"), self.path("rules"));
        loop {
            let port = port.unwrap_or_else(|| free_port().unwrap());
            let listen = format!("127.0.0.1:{port}");
            let own = ["--admission", "--tls-cert", &certificate, "--tls-key", &key, "--admission-listen", &listen];
            let drain = if flags.iter().any(|flag| flag.starts_with("--admission-drain")) {
                None
            } else {
                Some("--admission-drain=1")
            };
            let rest = ["--rules-folder", &rules].into_iter().chain(drain).collect::<Vec<_>>();
            let engine = Engine::start(kubeconfig, &[&own[..], &rest[..], flags].concat());
            let says = |words: &str| engine.log().contains(words);
            eventually("it listens, or says why not", || says("Engine starts") || says("could not listen"));
            // Some other test may have taken a port that was free a moment ago.
            if !says("Address already in use") {
                return Judging { engine, port, files: self };
            }
        }
    }
}

impl Judging {
    pub(super) fn start(kubeconfig: &Path, rules: &str, flags: &[&str]) -> Judging {
        Files::new(rules).judge(None, kubeconfig, flags)
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// A connection to the webhook.
    pub(super) fn caller(&self) -> Caller {
        self.files.trust().connect(self.port).unwrap()
    }

    /// Ends the engine as SIGTERM does. Its files and its port are for the next one.
    pub(super) fn stop(self) -> (Files, u16) {
        let (status, log) = self.engine.stop();
        assert!(status.success(), "{log}");
        (self.files, self.port)
    }

    /// The webhook configuration that the rules of a folder need.
    pub(super) fn configuration(&self, folder: &str, flags: &[&str]) -> String {
        let (rules, ca) = (self.files.path(folder), self.files.path("ca.crt"));
        let url = format!("https://127.0.0.1:{}", self.port);
        let arguments = ["generate", "webhook", "-r", &rules, "--url", &url, "--ca", &ca];
        let output = Command::new(env!("CARGO_BIN_EXE_portal")).args(arguments).args(flags).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Guarded {
    /// A cluster with these custom kinds and namespaces, which nobody guards yet.
    pub(super) fn prepare(definitions: &[Value]) -> Cluster {
        let cluster = crate::engine::cluster();
        for definition in definitions {
            crate::engine::apply(&cluster, definition);
        }
        for namespace in ["shop", "bank", "legacy"] {
            cluster.kubectl(&["create", "namespace", namespace]).unwrap();
        }
        cluster
    }

    /// Starts an engine with these rules in front of a cluster, and applies the webhook configuration.
    pub(super) fn guard(cluster: Cluster, rules: &str, definitions: &[Value], flags: &[&str]) -> Guarded {
        let guarded = Guarded::without_configuration(cluster, rules, definitions, flags);
        guarded.configure(&[]);
        guarded
    }

    /// The same, and applies none.
    pub(super) fn without_configuration(
        cluster: Cluster,
        rules: &str,
        definitions: &[Value],
        flags: &[&str],
    ) -> Guarded {
        let files = Files::new(rules);
        for (number, definition) in definitions.iter().enumerate() {
            fs::write(files.path(&format!("definitions/{number}.yaml")), definition.to_string()).unwrap();
        }
        let judging = files.judge(None, &cluster.kubeconfig(), flags);
        Guarded { judging, cluster }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.judging.engine
    }

    /// Applies the webhook configuration that the rules need.
    pub(super) fn configure(&self, flags: &[&str]) {
        self.configure_for("rules", flags);
    }

    /// Applies the webhook configuration that the rules of another folder need.
    pub(super) fn configure_for(&self, folder: &str, flags: &[&str]) {
        let definitions = self.judging.files.path("definitions");
        let yaml = self.judging.configuration(folder, &[&["--definitions", &definitions], flags].concat());
        self.cluster.kubectl_with_input(&["apply", "--filename", "-"], &yaml).unwrap();
    }

    /// Waits until a pod on the host's network is refused, which some rule of each of these tests is against: the API server takes a
    /// moment to follow its own configuration.
    pub(super) fn wait_until_refused(&self, namespace: &str) {
        let probe = pod("probe", json!({"hostNetwork": true})).to_string();
        let dry = ["--namespace", namespace, "create", "--dry-run=server", "--filename", "-"];
        eventually("the webhook is called", || !self.kubectl(&dry, &probe).status.success());
    }

    /// What kubectl says, whatever comes of it.
    pub(super) fn kubectl(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.cluster.kubectl_command();
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that fails early reads nothing.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Asserts what comes of creating an object: what is said if it is refused, and the warnings if not.
    #[track_caller]
    pub(super) fn create(&self, namespace: &str, object: &Value, is_allowed: bool, said: &[&str]) {
        self.check(&["--namespace", namespace, "create", "--filename", "-"], &object.to_string(), is_allowed, said);
    }

    /// Asserts what comes of a command, and that nothing is said if nothing is expected.
    #[track_caller]
    pub(super) fn check(&self, arguments: &[&str], input: &str, is_allowed: bool, said: &[&str]) {
        let output = self.kubectl(arguments, input);
        let told = String::from_utf8_lossy(&output.stderr);
        let start: String = input.chars().take(300).collect();
        assert_eq!(output.status.success(), is_allowed, "{arguments:?} {start}\n{told}");
        for words in said {
            assert!(told.contains(words), "{words:?} is not in\n{told}");
        }
        if said.is_empty() {
            assert_eq!(told, "");
        }
    }
}

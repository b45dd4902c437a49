//! What an engine needs to judge requests: certificates, an account that may do what every engine must, and a webhook configuration.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use portal_test_kit::Cluster;
use portal_test_kit::certificates::Authority;
use portal_test_kit::held::free_port;
use serde_json::Value;
use tempfile::TempDir;

/// The account of an engine, as the API server knows it.
pub(super) const ACCOUNT: &str = "system:serviceaccount:portal-system:portal-engine";

/// The name by which replicas know each other.
const SERVICE: &str = "portal-default.portal-system.svc";

/// The files of one replica or several.
pub(super) struct Files {
    folder: TempDir,
}

impl Files {
    pub(super) fn new() -> Files {
        let files = Files { folder: tempfile::tempdir().unwrap() };
        let authority = Authority::new("portal").unwrap();
        let pair = authority.server("portal", &["127.0.0.1", SERVICE]).unwrap();
        files.write("ca.crt", &authority.pair().certificate);
        files.write("tls.crt", &pair.certificate);
        files.write("tls.key", &pair.key);
        files
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// The flags of an engine that judges requests at this port.
    pub(super) fn flags(&self, port: u16) -> Vec<String> {
        let listen = format!("--admission-listen=127.0.0.1:{port}");
        let (certificate, key) = (self.path("tls.crt"), self.path("tls.key"));
        let fixed = ["--admission", "--admission-drain=1", "--rules-from-cluster"].map(str::to_owned);
        [listen, format!("--tls-cert={certificate}"), format!("--tls-key={key}")].into_iter().chain(fixed).collect()
    }

    /// Applies the webhook configuration for these rules, under another name if one is given.
    pub(super) fn configure(&self, cluster: &Cluster, rules: &[Value], port: u16, name: Option<&str>, flags: &[&str]) {
        let text: Vec<String> = rules.iter().map(ToString::to_string).collect();
        self.write("rules.yaml", &text.join("\n---\n"));
        let (rules, ca, url) = (self.path("rules.yaml"), self.path("ca.crt"), format!("https://127.0.0.1:{port}"));
        let mut arguments = vec!["generate", "webhook", "-r", &rules, "--url", &url, "--ca", &ca];
        arguments.extend(flags);
        let mut yaml = portal(&arguments);
        if let Some(name) = name {
            yaml = yaml.replace("portal-default", name).replace(".default.portal.io", &format!(".{name}.portal.io"));
        }
        cluster.kubectl_with_input(&["apply", "--filename", "-"], &yaml).unwrap();
    }
}

/// What `portal` prints.
#[track_caller]
pub(super) fn portal(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_portal")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A kubeconfig of an engine's account, which is allowed what every engine needs and nothing else.
pub(super) fn account(cluster: &Cluster) -> PathBuf {
    cluster.kubectl(&["--namespace=portal-system", "create", "serviceaccount", "portal-engine"]).unwrap();
    cluster.kubectl_with_input(&["apply", "--filename", "-"], &portal(&["generate", "roles"])).unwrap();
    cluster.kubeconfig_as(ACCOUNT, &["system:serviceaccounts", "system:serviceaccounts:portal-system"])
}

/// A port for a webhook.
pub(super) fn port() -> u16 {
    free_port().unwrap()
}

/// What kubectl says, whatever comes of it.
pub(super) fn kubectl(cluster: &Cluster, arguments: &[&str], input: &str) -> Output {
    let mut command = cluster.kubectl_command();
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

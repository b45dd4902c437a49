//! Commands as a user would type them: shown, and run as they are shown.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use portal_test_kit::held::Held;

/// A shell whose `portal` and `kubectl` are those of the demo, in a folder of its own.
pub(super) struct Shell {
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    context: Option<String>,
}

/// How a client reaches the cluster.
pub(super) struct Configuration {
    pub(super) kubeconfig: Kubeconfig,
    pub(super) options: KubeConfigOptions,
}

/// Removes all that the tour makes, in whatever state it was cut off. What is gone already costs nothing.
const CLEAN_UP: &str = r#"
set +e
cat > /dev/null
! kubectl get namespace portal-demo > /dev/null 2>&1 || echo "removing what the demo has made" >&2
exec > /dev/null 2>&1
kubectl delete portal default --ignore-not-found --timeout=60s || {
    # Without an operator nobody does this.
    kubectl delete validatingwebhookconfiguration portal-default --ignore-not-found
    kubectl patch portal default --type merge -p '{"metadata": {"finalizers": null}}'
}
portal generate install --image "$IMAGE" | kubectl delete --ignore-not-found --timeout=120s -f -
kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy portal-bypass --ignore-not-found
portal generate crds | kubectl delete --ignore-not-found --timeout=60s -f -
kubectl delete crd widgets.portal-demo.example --ignore-not-found --timeout=60s
kubectl delete namespace portal-demo --ignore-not-found --timeout=120s
cd / && rm -rf "$FOLDER"
"#;

impl Shell {
    /// A shell that reaches a cluster, in this context of its kubeconfig if one is named.
    pub(super) fn new(
        portal: &Path,
        kubectl: &Path,
        kubeconfig: &Path,
        context: Option<String>,
    ) -> anyhow::Result<Shell> {
        let folder = tempfile::tempdir().context("could not make a folder for the demo's files")?;
        let programs = folder.path().join("bin");
        std::fs::create_dir(&programs)?;
        std::os::unix::fs::symlink(portal, programs.join("portal"))?;
        // By its full path: the script that calls it has the same name.
        let found = Command::new("bash").args(["-c", "type -P \"$0\""]).arg(kubectl).output()?;
        let kubectl = String::from_utf8(found.stdout)?.trim().to_owned();
        if kubectl.is_empty() {
            bail!("kubectl is missing: install it first");
        }
        let script = programs.join("kubectl");
        let flag = context.as_ref().map(|context| format!("--context={}", quoted(context))).unwrap_or_default();
        std::fs::write(&script, format!("#!/bin/sh\nexec {} {flag} \"$@\"\n", quoted(&kubectl)))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        Ok(Shell { folder, kubeconfig: kubeconfig.to_owned(), context })
    }

    /// Shows a command, runs it and lets it print.
    pub(super) fn run(&self, command: &str) -> anyhow::Result<()> {
        println!("$ {command}");
        let status = self.bash(command)?.stdin(Stdio::null()).status()?;
        if !status.success() {
            bail!("the demo stops here, because the last command ended with {status}");
        }
        Ok(())
    }

    /// Shows a command that must succeed, and print this among others.
    pub(super) fn shows(&self, command: &str, words: &str) -> anyhow::Result<()> {
        let (printed, is_success) = self.run_and_read(command)?;
        if !is_success || !printed.contains(words) {
            bail!("the demo stops here, because the last command should have printed {words:?}");
        }
        Ok(())
    }

    /// Shows a command that must fail, and say this among others.
    pub(super) fn refused(&self, command: &str, words: &str) -> anyhow::Result<()> {
        let (printed, is_success) = self.run_and_read(command)?;
        if is_success || !printed.contains(words) {
            bail!("the demo stops here, because the last command should have been refused with {words:?}");
        }
        Ok(())
    }

    /// What a script prints. Nothing is shown.
    pub(super) fn quietly(&self, script: &str) -> anyhow::Result<String> {
        let output = self.bash(script)?.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("the cluster does not answer: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A process that removes what the demo makes when the demo ends, however it ends.
    pub(super) fn clean_up_at_the_end(&self, image: &str) -> anyhow::Result<Held> {
        let mut command = self.bash(CLEAN_UP)?;
        Held::start(command.env("IMAGE", image).env("FOLDER", self.folder.path()))
    }

    /// How a client reaches the cluster that the commands reach.
    pub(super) fn configuration(&self) -> anyhow::Result<Configuration> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Ok(Configuration { kubeconfig: Kubeconfig::read_from(&self.kubeconfig)?, options })
    }

    fn run_and_read(&self, command: &str) -> anyhow::Result<(String, bool)> {
        println!("$ {command}");
        let output = self.bash(&format!("exec 2>&1\n{command}"))?.stdin(Stdio::null()).output()?;
        let printed = String::from_utf8(output.stdout)?;
        print!("{printed}");
        Ok((printed, output.status.success()))
    }

    fn bash(&self, script: &str) -> anyhow::Result<Command> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.folder.path().join("bin")].into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(self.folder.path())
            .env("PATH", std::env::join_paths(folders)?)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.folder.path().join("kubectl"));
        Ok(command)
    }
}

/// A word as a shell takes it, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_the_word() {
        for word in ["plain", "it's", "$(false)", "a b\"c"] {
            let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}

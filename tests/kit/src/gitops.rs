//! How GitOps tools see objects: by kstatus, which Flux waits by, and by the scripts for Argo CD that the documentation has.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cache::Cache;
use crate::{gitops_oracle, repository};

/// How an object is seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    /// What kstatus says, such as `Current`.
    pub kstatus: String,
    /// What Argo CD says, such as `Healthy`. Nothing for a kind that the documentation has no script for.
    pub argocd: Option<String>,
}

/// The page with the scripts.
const PAGE: &str = "docs/operator/gitops.md";

/// The start of the key that a script has in Argo CD's ConfigMap.
const KEY: &str = "resource.customizations.health.";

/// How these objects are seen, in their order. The scripts are those of the page.
pub fn see(objects: &[Value]) -> anyhow::Result<Vec<Seen>> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(gitops_oracle().find(&Cache::open()?)?);
    for (kind, script) in scripts()? {
        let path = folder.path().join(format!("{kind}.lua"));
        std::fs::write(&path, script)?;
        command.arg(format!("{kind}={}", path.display()));
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let questions: String = objects.iter().map(|object| format!("{object}\n")).collect();
    let mut stdin = child.stdin.take().context("it was asked to be piped")?;
    // It answers while it is asked, and would wait for somebody to read.
    let writer = thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the oracle failed: {}", output.status);
    }
    writer.join().ok().context("the writer has panicked")??;
    let mut seen = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let answer: Value = serde_json::from_str(line)?;
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        seen.push(Seen { kstatus: text("kstatus").context("kstatus always answers")?, argocd: text("argocd") });
    }
    if seen.len() != objects.len() {
        bail!("the oracle answers {} of {} questions", seen.len(), objects.len());
    }
    Ok(seen)
}

/// The scripts of the page, by group and kind. A script is a literal block of YAML: its lines are indented further than its key.
fn scripts() -> anyhow::Result<Vec<(String, String)>> {
    let page = std::fs::read_to_string(repository().join(PAGE))?;
    let mut scripts: Vec<(String, String)> = Vec::new();
    let mut indent = None;
    for line in page.lines() {
        let width = line.len() - line.trim_start().len();
        if let Some(rest) = line.trim_start().strip_prefix(KEY) {
            let kind = rest.strip_suffix(": |").with_context(|| format!("{PAGE}: `{rest}` is no literal block"))?;
            scripts.push((kind.to_owned(), String::new()));
            indent = Some(width);
        } else if let Some((_, script)) = scripts.last_mut().filter(|_| indent.is_some_and(|indent| width > indent)) {
            script.push_str(line);
            script.push('\n');
        } else {
            indent = None;
        }
    }
    if scripts.is_empty() {
        bail!("{PAGE} has no script");
    }
    Ok(scripts)
}

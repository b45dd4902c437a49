//! Which Kubernetes the clusters run, and how it is built: every component in one program, from Kubernetes' own modules.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::cache::Cache;
use crate::program::{Program, content_hash, unfinished};

/// The release that clusters run unless `KUBERNETES_VERSION` names another.
pub const DEFAULT_VERSION: &str = "1.36.4";

/// What the one program can be.
const COMPONENTS: [&str; 7] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"];

/// A release of Kubernetes, such as 1.36.4.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Version {
    text: String,
    minor: u32,
}

/// What `go mod download -json` says of a module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    go_mod: PathBuf,
}

impl Version {
    /// The release that the environment asks for.
    pub fn chosen() -> anyhow::Result<Self> {
        let text = std::env::var("KUBERNETES_VERSION").unwrap_or_default();
        Self::parse(if text.is_empty() { DEFAULT_VERSION } else { &text })
    }

    /// Reads `1.36.4`, with or without a `v` before it.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        match parts.as_deref() {
            Some([1, minor, _]) if *minor >= 33 => Ok(Self { text: text.to_owned(), minor: *minor }),
            Some([1, _, _]) => bail!("KUBERNETES_VERSION is {text}, but the oldest that works is 1.33.0"),
            _ => bail!("KUBERNETES_VERSION is {text:?}, which is no release: write it like {DEFAULT_VERSION}"),
        }
    }

    /// As in `1.36.4`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The version under which Kubernetes publishes the libraries of this release.
    fn library(&self) -> String {
        format!("v0.{}", self.text.trim_start_matches("1."))
    }
}

/// The program that is all of Kubernetes. `repository` is this project's own folder.
pub fn program(cache: &Cache, repository: &Path, version: &Version) -> anyhow::Result<Program> {
    let committed = repository.join("tests/cluster");
    let module = if version.text == DEFAULT_VERSION { committed } else { module_for(cache, &committed, version)? };
    let mut variables = String::from("-s -w");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", format!("v{}", version.text)),
            ("gitMajor", "1".to_owned()),
            ("gitMinor", version.minor.to_string()),
            ("gitTreeState", "clean".to_owned()),
            ("gitCommit", "0000000000000000000000000000000000000000".to_owned()),
            // A fixed date, so that the same sources give the same program.
            ("buildDate", "1970-01-01T00:00:00Z".to_owned()),
        ] {
            variables.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    Ok(Program {
        build_flags: vec!["-tags=selinux,notest,grpcnotrace".to_owned(), format!("-ldflags={variables}")],
        links: COMPONENTS.map(str::to_owned).to_vec(),
        ..Program::new(&format!("kubernetes-{}", version.text), module)
    })
}

/// A copy of the committed module for another release, with `go.mod` written for that release.
fn module_for(cache: &Cache, committed: &Path, version: &Version) -> anyhow::Result<PathBuf> {
    let sources = ["main.go", "etcd.go"];
    let fingerprint = content_hash(sources.map(|file| committed.join(file)).iter())?;
    let module = cache.folder("modules")?.join(format!("kubernetes-{}-{fingerprint}", version.text));
    if module.exists() {
        return Ok(module);
    }
    let _lock = cache.lock(&format!("module-{}", version.text))?;
    if module.exists() {
        return Ok(module);
    }
    // Made beside its place and moved there at the end: what is interrupted is never taken for whole.
    let unfinished = unfinished(&module);
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished)?;
    for file in sources {
        fs::copy(committed.join(file), unfinished.join(file))?;
    }
    write_module_file(cache, &unfinished, version)?;
    fs::rename(&unfinished, &module)?;
    Ok(module)
}

fn write_module_file(cache: &Cache, module: &Path, version: &Version) -> anyhow::Result<()> {
    let go_mod = module.join("go.mod");
    fs::write(&go_mod, "module portal.io/tests/cluster\n")?;
    let go = |arguments: &[&str]| -> anyhow::Result<Vec<u8>> {
        let output = Program::new("kubernetes", module).go(cache)?.args(arguments).output()?;
        if !output.status.success() {
            bail!(
                "Kubernetes {} cannot be had ({}{}); not every release's modules are published whole, try a neighbour",
                version.text,
                String::from_utf8_lossy(&output.stderr).trim(),
                String::from_utf8_lossy(&output.stdout).trim()
            );
        }
        Ok(output.stdout)
    };
    println!("building kubernetes-{}: writing down what it is made of", version.text);
    let release = format!("k8s.io/kubernetes@v{}", version.text);
    let download: Download = serde_json::from_slice(&go(&["mod", "download", "-json", &release])?)
        .context("`go mod download` answered in an unknown form")?;
    let theirs = fs::read_to_string(&download.go_mod)?;
    fs::write(&go_mod, module_file(&theirs, version)?)?;
    go(&["mod", "tidy"])?;
    Ok(())
}

/// `go.mod` for a release, from Kubernetes' own. That one maps each library of Kubernetes to a folder beside it, which
/// a published module does not have: here each is mapped to the version published for the release.
fn module_file(theirs: &str, version: &Version) -> anyhow::Result<String> {
    let library = version.library();
    let find = |prefix: &str| {
        theirs
            .lines()
            .find_map(|line| line.trim().strip_prefix(prefix))
            .and_then(|rest| rest.split_whitespace().next())
            .with_context(|| format!("go.mod of Kubernetes {} does not name {prefix}", version.text))
    };
    let mut text = format!(
        "module portal.io/tests/cluster\n\ngo {}\n\nrequire (\n\tgithub.com/spf13/cobra {}\n\tgo.etcd.io/etcd/server/v3 {}\n",
        find("go ")?,
        find("github.com/spf13/cobra ")?,
        find("go.etcd.io/etcd/server/v3 ")?,
    );
    for name in ["component-base", "kubectl"] {
        text.push_str(&format!("\tk8s.io/{name} {library}\n"));
    }
    text.push_str(&format!("\tk8s.io/kubernetes v{}\n)\n\nreplace (\n", version.text));
    for line in theirs.lines().filter(|line| line.contains("=> ./staging/")) {
        let name = line.split_whitespace().next().context("a replace line without a name")?;
        text.push_str(&format!("\t{name} => {name} {library}\n"));
    }
    text.push_str(")\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_version(text: &str, expected: &str) {
        let result = match Version::parse(text) {
            Ok(version) => format!("minor {}, libraries {}", version.minor, version.library()),
            Err(error) => error.to_string(),
        };
        assert_eq!(result, expected);
    }

    #[test]
    fn versions_are_read_or_refused_with_the_way_out() {
        check_version("1.36.4", "minor 36, libraries v0.36.4");
        check_version("v1.33.0", "minor 33, libraries v0.33.0");
        check_version("1.32.9", "KUBERNETES_VERSION is 1.32.9, but the oldest that works is 1.33.0");
        check_version("latest", "KUBERNETES_VERSION is \"latest\", which is no release: write it like 1.36.4");
        check_version("1.36", "KUBERNETES_VERSION is \"1.36\", which is no release: write it like 1.36.4");
    }

    #[test]
    fn the_committed_module_is_for_the_default_version() {
        let committed = fs::read_to_string(crate::repository().join("tests/cluster/go.mod")).unwrap();
        assert!(committed.contains(&format!("k8s.io/kubernetes v{DEFAULT_VERSION}\n")));
        let library = Version::parse(DEFAULT_VERSION).unwrap().library();
        let replaced = committed.lines().filter(|line| line.contains(" => ")).collect::<Vec<_>>();
        assert!(replaced.len() > 30);
        assert!(replaced.iter().all(|line| line.ends_with(&library)), "{replaced:#?}");
    }

    #[test]
    fn a_module_file_maps_every_library_to_its_published_version() {
        let theirs = "module k8s.io/kubernetes\n\ngo 1.25.0\n\nrequire (\n\tgithub.com/spf13/cobra v1.9.1\n\
                      \tgo.etcd.io/etcd/server/v3 v3.6.4 // indirect\n)\n\n\
                      replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n";
        let version = Version::parse("1.34.2").unwrap();
        expect_test::expect![[r#"
            module portal.io/tests/cluster

            go 1.25.0

            require (
            	github.com/spf13/cobra v1.9.1
            	go.etcd.io/etcd/server/v3 v3.6.4
            	k8s.io/component-base v0.34.2
            	k8s.io/kubectl v0.34.2
            	k8s.io/kubernetes v1.34.2
            )

            replace (
            	k8s.io/api => k8s.io/api v0.34.2
            )
        "#]]
        .assert_eq(&module_file(theirs, &version).unwrap());
    }
}

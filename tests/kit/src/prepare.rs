//! Everything that needs the network or a compiler, done before a test runs.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cache::Cache;
use crate::components::PAUSE_IMAGE;
use crate::image::{ALERTMANAGER_IMAGE, Image, PORTAL_IMAGE, RESPONDER_IMAGE};
use crate::kubernetes::{self, Version};
use crate::node;
use crate::state::Size;

/// Builds what a cluster of this size and its tests are made of.
pub fn prepare(cache: &Cache, size: Size) -> anyhow::Result<()> {
    if size == Size::Full {
        // Better said before a long build than after it.
        node::check_machine()?;
    }
    kubernetes::program(cache, &crate::repository(), &Version::chosen()?)?.build(cache)?;
    oracles(cache)?;
    let alertmanager = crate::alertmanager().build(cache)?;
    let responder = crate::responder().build(cache)?;
    if size == Size::Full {
        let folder = crate::repository().join("tests");
        let images = [
            ("pause", PAUSE_IMAGE, "responder/pause.Dockerfile", &responder),
            ("responder", RESPONDER_IMAGE, "responder/Dockerfile", &responder),
            ("alertmanager", ALERTMANAGER_IMAGE, "alertmanager/Dockerfile", &alertmanager),
        ];
        for (name, tag, dockerfile, program) in images {
            Image { name, tag, dockerfile: &folder.join(dockerfile), program }.build(cache)?;
        }
    }
    Ok(())
}

/// Builds the programs that answer for expr-lang, for Kubernetes, for GitOps tools, for Prometheus and for readers of reports, with which ours is compared.
pub fn oracles(cache: &Cache) -> anyhow::Result<()> {
    crate::expr_oracle().build(cache)?;
    crate::yaml_oracle().build(cache)?;
    crate::pod_security_oracle().build(cache)?;
    crate::quantity_oracle().build(cache)?;
    crate::gitops_oracle().build(cache)?;
    crate::prometheus_oracle().build(cache)?;
    crate::reports_oracle().build(cache)?;
    Ok(())
}

/// Builds the image that users get, and says where it is.
pub fn image(cache: &Cache) -> anyhow::Result<()> {
    let archive = portal_image(cache)?;
    println!("the image {PORTAL_IMAGE} is in {}", archive.display());
    Ok(())
}

/// Builds the image that users get: the static release program in the Dockerfile that ships.
pub fn portal_image(cache: &Cache) -> anyhow::Result<PathBuf> {
    portal_image_of(cache, &static_program()?)
}

/// The same of the static release program, if that is built already.
pub fn portal_image_of(cache: &Cache, program: &Path) -> anyhow::Result<PathBuf> {
    let dockerfile = crate::repository().join("Dockerfile");
    Image { name: "portal", tag: PORTAL_IMAGE, dockerfile: &dockerfile, program }.build(cache)
}

/// The program that the image holds.
pub fn static_program() -> anyhow::Result<PathBuf> {
    println!("building portal as a static program");
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let arguments = ["build", "--release", "--locked", "--bin", "portal", "--target", &target];
    let programs = cargo_executables(&crate::repository(), &arguments)?;
    programs.into_iter().next().map(|program| program.path).context("cargo built no program")
}

/// A program that cargo built.
#[derive(Clone, Debug)]
pub struct Executable {
    /// The crate's target, such as `pure` or `portal-core`.
    pub target: String,
    /// Whether it is a library's unit tests, a program's, or a test program.
    pub kind: String,
    /// The folder of the package, where its tests expect to run.
    pub package: PathBuf,
    /// The program itself.
    pub path: PathBuf,
}

/// Runs a cargo command that builds, and returns the programs that it built.
pub fn cargo_executables(folder: &Path, arguments: &[&str]) -> anyhow::Result<Vec<Executable>> {
    let mut child = Command::new("cargo")
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(folder)
        // Set for test programs, and not for what they build: some crates compile differently with it.
        .env_remove("RUSTC_BOOTSTRAP")
        // The build script of a dependency looks at it, and whoever builds after us has none: the program would be built anew each time.
        .env_remove("CARGO_MANIFEST_DIR")
        .stdout(Stdio::piped())
        .spawn()
        .context("could not run cargo")?;
    let stdout = child.stdout.take().expect("it was asked to be piped");
    let mut executables = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let message: Value = serde_json::from_str(&line?).context("cargo answered in an unknown form")?;
        // Test programs come with the programs that they test, which are not asked for then.
        let wanted = message["profile"]["test"] == (arguments[0] == "test");
        if let Some(path) = message["executable"].as_str().filter(|_| wanted) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let manifest = PathBuf::from(text(&message["manifest_path"]));
            executables.push(Executable {
                target: text(&message["target"]["name"]),
                kind: text(&message["target"]["kind"][0]),
                package: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
                path: PathBuf::from(path),
            });
        }
    }
    if !child.wait()?.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(executables)
}

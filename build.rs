//! Tells the binary which commit and target it was built from.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=PORTAL_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=PORTAL_COMMIT={}", commit());
    // A builder without the repository at hand (a container build, a source archive) names the commit itself.
    println!("cargo::rerun-if-env-changed=PORTAL_COMMIT");
    // HEAD's log grows with every commit, checkout and reset; HEAD alone changes only when the branch does.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn commit() -> String {
    std::env::var("PORTAL_COMMIT")
        .ok()
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]))
        .filter(|commit| !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}

//! Tells the binary which commit and target it was built from.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=PORTAL_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=PORTAL_COMMIT={}", commit());
    // A builder without the repository at hand (a container build, a source archive) names the commit itself.
    println!("cargo::rerun-if-env-changed=PORTAL_COMMIT");
    // HEAD's log grows with every commit, checkout and reset; HEAD alone changes only when the branch does.
    for path in [".git/HEAD", ".git/logs/HEAD"] {
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn commit() -> String {
    if let Ok(commit) = std::env::var("PORTAL_COMMIT") {
        return commit;
    }
    Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |commit| commit.trim().to_owned())
}

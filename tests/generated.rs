//! Files that are generated from the code are committed, and are what the code would generate now.

use std::path::Path;
use std::process::Command;

use portal_test_kit::repository;

/// What is generated, and into which file.
const FILES: [(&str, &str); 1] = [("command-line", "docs/reference/command-line.md")];

#[test]
fn every_generated_file_is_up_to_date() {
    for (what, file) in FILES {
        let output = Command::new(env!("CARGO_BIN_EXE_portal")).args(["generate", what]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        compare(&repository().join(file), &String::from_utf8(output.stdout).unwrap());
    }
}

fn compare(path: &Path, generated: &str) {
    if std::env::var_os("PORTAL_UPDATE").is_some() {
        std::fs::write(path, generated).unwrap_or_else(|error| panic!("could not write {}: {error}", path.display()));
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == generated, "{} is not what the code generates: run `make generate`", path.display());
}

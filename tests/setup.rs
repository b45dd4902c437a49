//! What the set-up does when a machine is not as it should be: one sentence, with the way out.

use std::path::Path;
use std::process::{Command, Output};

use portal_test_kit::{kubernetes::DEFAULT_VERSION, repository};

fn setup(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(repository().join("tests/setup.sh")).args(arguments).envs(variables.iter().copied()).output().unwrap()
}

#[track_caller]
fn check_failure(output: &Output, expected: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{message}");
    assert!(message.contains(expected), "{message}");
}

#[test]
fn too_little_disk_space_is_said_before_anything_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    let output = setup(&["go"], &[("PORTAL_CACHE", cache), ("PORTAL_MIN_FREE_GB", "1000000")]);
    check_failure(&output, "building Kubernetes takes up to 1000000 GB: free some, or set PORTAL_CACHE");
}

#[test]
fn the_set_up_looks_for_the_release_that_the_kit_builds() {
    let script = std::fs::read_to_string(repository().join("tests/setup.sh")).unwrap();
    assert!(script.contains(&format!("${{KUBERNETES_VERSION:-{DEFAULT_VERSION}}}")));
}

#[test]
fn an_unknown_need_is_refused_with_those_that_there_are() {
    check_failure(&setup(&["docker"], &[]), "choose from rust go node image checks site fuzz");
}

#[test]
fn a_missing_program_is_named_with_its_package_when_it_cannot_be_installed() {
    // A machine with a shell and nothing else: not even apt-get.
    let folder = tempfile::tempdir().unwrap();
    for tool in ["bash", "dirname", "env", "flock", "id", "mkdir"] {
        let path = ["/bin", "/usr/bin"].map(|parent| Path::new(parent).join(tool));
        let path = path.iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(path, folder.path().join(tool)).unwrap();
    }
    let output = setup(&["node"], &[("PATH", folder.path().to_str().unwrap())]);
    check_failure(&output, "install what these packages hold: containerd runc iproute2 iptables conntrack");
}

#[test]
fn a_size_that_does_not_exist_is_refused_with_those_that_do() {
    let kit = portal_test_kit::held::kit_binary().unwrap();
    let output = Command::new(kit).args(["up", "huge"]).output().unwrap();
    check_failure(&output, r#""huge" is no size: choose core"#);
}

//! The shape of the workspace, kept by a test: what a crate may depend on, what a crate or a layer may reach for in its
//! sources, and that each `.rs` file belongs to a module. The shape itself is in the constants of `dependencies` and
//! `reach`, beside the tests that break it.

mod dependencies;
mod files;
mod fixture;
mod mentions;
mod modules;
mod reach;

use std::{collections::BTreeSet, path::Path};

use cargo_metadata::MetadataCommand;
use expect_test::Expect;

use fixture::{Workspace, good_workspace};
use modules::Tree;

/// The crates that take values and return values: no I/O, no asynchronous runtime, no Kubernetes client.
const PURE: [&str; 4] = ["portal-core", "portal-crds", "portal-document", "portal-expr"];

/// What is wrong with the shape of the workspace in a folder, a sentence each.
fn violations(root: &Path) -> Vec<String> {
    let root = root.canonicalize().expect("the root exists");
    // Only the members: the graph below them would need every crate for every platform on disk, and `dependencies`
    // has a better way to ask for it.
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo has just read the same manifests to build this test");
    let mut members = metadata.workspace_packages();
    members.sort_by_key(|member| &member.name);

    let mut sentences = dependencies::violations(&root, &members);
    let ignored = files::ignored(&root);
    for member in members {
        let trees: Vec<_> = member.targets.iter().map(|target| Tree::read(target.src_path.as_std_path())).collect();
        for (target, tree) in member.targets.iter().zip(&trees) {
            sentences.extend(reach::violations(&member.name, &target.kind, tree));
        }
        sentences.extend(files::violations(member, &trees, &ignored));
    }

    // A file may be part of several targets.
    let mut seen = BTreeSet::new();
    sentences.retain(|sentence| seen.insert(sentence.clone()));
    let root = format!("{}/", root.display());
    sentences.iter().map(|sentence| sentence.replace(&root, "")).collect()
}

/// Compares everything that is wrong with a workspace.
#[track_caller]
fn check(workspace: &Workspace, expected: Expect) {
    expected.assert_eq(&violations(workspace.root()).join("\n"));
}

#[test]
fn this_workspace_has_its_shape() {
    let violations = violations(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn the_workspace_that_other_tests_break_has_nothing_wrong() {
    assert_eq!(violations(good_workspace().root()), Vec::<String>::new());
}

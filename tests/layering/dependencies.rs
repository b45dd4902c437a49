//! What crates may depend on: which of our own, and which of the world's below the pure ones.

use std::{env, path::Path, process::Command};

use cargo_metadata::{DependencyKind, Package};
use expect_test::{Expect, expect};

use super::{PURE, check, fixture::good_workspace};

/// Each of our crates with those of our crates that it may build on.
const ALLOWED: [(&str, &[&str]); 11] = [
    (
        "portal",
        &[
            "portal-cluster",
            "portal-core",
            "portal-crds",
            "portal-document",
            "portal-engine",
            "portal-expr",
            "portal-memory",
            "portal-operator",
        ],
    ),
    ("portal-operator", &["portal-cluster", "portal-core", "portal-crds", "portal-document", "portal-expr"]),
    ("portal-engine", &["portal-cluster", "portal-core", "portal-crds", "portal-document", "portal-expr"]),
    // What operator and engine both need of the API server.
    ("portal-cluster", &["portal-core", "portal-crds", "portal-document", "portal-expr"]),
    ("portal-core", &["portal-crds", "portal-document", "portal-expr"]),
    ("portal-expr", &["portal-document"]),
    ("portal-document", &[]),
    ("portal-crds", &[]),
    // Only the program takes it, for what it is linked with.
    ("portal-memory", &[]),
    // Nothing builds on it.
    ("portal-fuzz", &["portal-core", "portal-document", "portal-expr"]),
    // Only tests may build on it, and it builds on nothing, so that it can test anything.
    ("portal-test-kit", &[]),
];

/// These never meet, not even in a test: whatever both need belongs below them.
const STRANGERS: [&str; 2] = ["portal-engine", "portal-operator"];

/// Crates that do I/O, or that exist to wait for it. `kube` is not here: without its client it is types.
const IO: [&str; 14] = [
    "async-std",
    "axum",
    "hyper",
    "kube-client",
    "kube-runtime",
    "mio",
    "native-tls",
    "notify",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "ureq",
];

pub(crate) fn violations(root: &Path, members: &[&Package]) -> Vec<String> {
    let mut sentences = Vec::new();
    for member in members {
        sentences.extend(wrong_edges(member, members));
    }
    for member in members.iter().filter(|member| PURE.contains(&member.name.as_str())) {
        sentences.extend(paths_to_io(root, member));
    }
    sentences
}

/// Dependencies on our own crates, as declared: optional ones and those of another platform count too.
fn wrong_edges(member: &Package, members: &[&Package]) -> Vec<String> {
    let Package { name, manifest_path, .. } = member;
    let Some((_, allowed)) = ALLOWED.iter().find(|(from, _)| *from == name.as_str()) else {
        return vec![format!("{manifest_path}: {name} has no row in the table of allowed dependencies")];
    };
    let ours = member.dependencies.iter().filter(|dependency| members.iter().any(|ours| *ours.name == dependency.name));
    let wrong = ours.filter(|dependency| match dependency.kind {
        DependencyKind::Development => {
            STRANGERS.contains(&name.as_str()) && STRANGERS.contains(&dependency.name.as_str())
        }
        _ => !allowed.contains(&dependency.name.as_str()),
    });
    wrong
        .map(|dependency| {
            format!("{manifest_path}: {name} must not have {} as a {} dependency", dependency.name, dependency.kind)
        })
        .collect()
}

/// How a crate reaches crates that do I/O.
///
/// `cargo metadata` would merge the features that all members ask for: as soon as one of them uses kube's client, kube
/// would lead to it for all. `cargo tree` resolves the features of one member.
fn paths_to_io(root: &Path, member: &Package) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut path: Vec<String> = Vec::new();
    for line in tree(root, &member.name).lines() {
        let mut words = line.split(' ');
        let depth = words.next().and_then(|word| word.parse().ok()).expect("each line starts with its depth");
        let name = words.next().expect("a name follows the depth");
        path.truncate(depth);
        // What lies behind I/O is not worth a sentence of its own.
        if !path.iter().any(|name| IO.contains(&name.as_str())) && IO.contains(&name) {
            sentences.push(format!(
                "{}: {} must not reach {name}: {} -> {name}",
                member.manifest_path,
                member.name,
                path.join(" -> ")
            ));
        }
        path.push(name.to_owned());
    }
    sentences
}

/// The crates that a member is built from, one per line after its depth. For this platform only: what others need has
/// perhaps never been downloaded.
fn tree(root: &Path, member: &str) -> String {
    let output = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["tree", "--offline", "--all-features", "--edges=normal", "--prefix=depth", "--format= {p}"])
        .args(["--package", member, "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()
        .expect("cargo runs this test, so it can be run");
    assert!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

#[track_caller]
fn check_edge(folder: &str, table: &str, on: &str, expected: Expect) {
    check(&good_workspace().depend(folder, table, on), expected);
}

#[test]
fn a_crate_depends_on_no_crate_that_its_row_leaves_out() {
    check_edge(
        "engine/expr",
        "dependencies",
        "portal-crds",
        expect!["engine/expr/Cargo.toml: portal-expr must not have portal-crds as a normal dependency"],
    );
}

#[test]
fn a_build_script_depends_on_no_crate_that_its_row_leaves_out() {
    check_edge(
        "engine/expr",
        "build-dependencies",
        "portal-crds",
        expect!["engine/expr/Cargo.toml: portal-expr must not have portal-crds as a build dependency"],
    );
}

#[test]
fn a_dependency_of_another_platform_counts() {
    check_edge(
        "engine/expr",
        "target.'cfg(windows)'.dependencies",
        "portal-crds",
        expect!["engine/expr/Cargo.toml: portal-expr must not have portal-crds as a normal dependency"],
    );
}

#[test]
fn a_renamed_dependency_counts() {
    let renamed = "[dependencies.types]\npackage = 'portal-crds'\npath = '../../crds'";
    check(
        &good_workspace().append("engine/expr/Cargo.toml", renamed),
        expect!["engine/expr/Cargo.toml: portal-expr must not have portal-crds as a normal dependency"],
    );
}

#[test]
fn tests_may_depend_on_crates_above() {
    check_edge("engine/expr", "dev-dependencies", "portal-engine", expect![[""]]);
}

#[test]
fn the_engine_does_not_depend_on_the_operator() {
    check_edge(
        "engine",
        "dependencies",
        "portal-operator",
        expect!["engine/Cargo.toml: portal-engine must not have portal-operator as a normal dependency"],
    );
}

#[test]
fn the_operator_does_not_depend_on_the_engine() {
    check_edge(
        "operator",
        "dependencies",
        "portal-engine",
        expect!["operator/Cargo.toml: portal-operator must not have portal-engine as a normal dependency"],
    );
}

#[test]
fn tests_of_the_engine_do_not_depend_on_the_operator() {
    check_edge(
        "engine",
        "dev-dependencies",
        "portal-operator",
        expect!["engine/Cargo.toml: portal-engine must not have portal-operator as a dev dependency"],
    );
}

#[test]
fn tests_of_the_operator_do_not_depend_on_the_engine() {
    check_edge(
        "operator",
        "dev-dependencies",
        "portal-engine",
        expect!["operator/Cargo.toml: portal-operator must not have portal-engine as a dev dependency"],
    );
}

#[test]
fn only_tests_depend_on_the_test_kit() {
    check_edge(
        ".",
        "dependencies",
        "portal-test-kit",
        expect!["Cargo.toml: portal must not have portal-test-kit as a normal dependency"],
    );
}

#[test]
fn the_test_kit_depends_on_none_of_our_crates() {
    check_edge(
        "tests/kit",
        "dependencies",
        "portal-crds",
        expect!["tests/kit/Cargo.toml: portal-test-kit must not have portal-crds as a normal dependency"],
    );
}

#[test]
fn a_member_without_a_row_is_noticed() {
    let workspace = good_workspace()
        .write("extra/Cargo.toml", "[package]\nname = 'portal-extra'")
        .write("extra/src/lib.rs", "")
        // A path dependency below the root is a member.
        .append("Cargo.toml", "[dev-dependencies.portal-extra]\npath = 'extra'");
    check(&workspace, expect!["extra/Cargo.toml: portal-extra has no row in the table of allowed dependencies"]);
}

#[test]
fn no_pure_crate_depends_on_io() {
    let workspace = good_workspace()
        .depend("crds", "dependencies", "tokio")
        .depend("engine/core", "dependencies", "tokio")
        .depend("engine/document", "dependencies", "tokio")
        .depend("engine/expr", "dependencies", "tokio");
    check(
        &workspace,
        expect![[r#"
        engine/core/Cargo.toml: portal-core must not reach tokio: portal-core -> portal-crds -> tokio
        engine/core/Cargo.toml: portal-core must not reach tokio: portal-core -> portal-document -> tokio
        engine/core/Cargo.toml: portal-core must not reach tokio: portal-core -> portal-expr -> tokio
        engine/core/Cargo.toml: portal-core must not reach tokio: portal-core -> tokio
        crds/Cargo.toml: portal-crds must not reach tokio: portal-crds -> tokio
        engine/document/Cargo.toml: portal-document must not reach tokio: portal-document -> tokio
        engine/expr/Cargo.toml: portal-expr must not reach tokio: portal-expr -> portal-document -> tokio
        engine/expr/Cargo.toml: portal-expr must not reach tokio: portal-expr -> tokio"#]],
    );
}

#[test]
fn io_is_noticed_behind_other_crates() {
    check_edge(
        "engine/expr",
        "dependencies",
        "helper",
        expect![[r#"
        engine/core/Cargo.toml: portal-core must not reach tokio: portal-core -> portal-expr -> helper -> tokio
        engine/expr/Cargo.toml: portal-expr must not reach tokio: portal-expr -> helper -> tokio"#]],
    );
}

#[test]
fn io_is_noticed_behind_a_feature() {
    check(
        &good_workspace().append("crds/Cargo.toml", "[features]\nlive = ['kube/client']"),
        expect!["crds/Cargo.toml: portal-crds must not reach kube-client: portal-crds -> kube -> kube-client"],
    );
}

#[test]
fn every_crate_that_does_io_is_noticed() {
    let mut workspace = good_workspace();
    for name in IO {
        workspace = workspace
            .write(&format!("vendor/{name}/Cargo.toml"), &format!("[package]\nname = '{name}'"))
            .write(&format!("vendor/{name}/src/lib.rs"), "")
            .append("engine/core/Cargo.toml", &format!("[dependencies.{name}]\npath = '../../vendor/{name}'"));
    }
    check(
        &workspace,
        expect![[r#"
        engine/core/Cargo.toml: portal-core must not reach async-std: portal-core -> async-std
        engine/core/Cargo.toml: portal-core must not reach axum: portal-core -> axum
        engine/core/Cargo.toml: portal-core must not reach hyper: portal-core -> hyper
        engine/core/Cargo.toml: portal-core must not reach kube-client: portal-core -> kube-client
        engine/core/Cargo.toml: portal-core must not reach kube-runtime: portal-core -> kube-runtime
        engine/core/Cargo.toml: portal-core must not reach mio: portal-core -> mio
        engine/core/Cargo.toml: portal-core must not reach native-tls: portal-core -> native-tls
        engine/core/Cargo.toml: portal-core must not reach notify: portal-core -> notify
        engine/core/Cargo.toml: portal-core must not reach reqwest: portal-core -> reqwest
        engine/core/Cargo.toml: portal-core must not reach rustls: portal-core -> rustls
        engine/core/Cargo.toml: portal-core must not reach smol: portal-core -> smol
        engine/core/Cargo.toml: portal-core must not reach socket2: portal-core -> socket2
        engine/core/Cargo.toml: portal-core must not reach tokio: portal-core -> tokio
        engine/core/Cargo.toml: portal-core must not reach ureq: portal-core -> ureq"#]],
    );
}

//! Where sources may lie: in a file that a module of a target is in, and not in a `mod.rs`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use cargo_metadata::Package;
use expect_test::expect;

use super::{check, fixture::good_workspace, modules::Tree};

pub(crate) fn violations(member: &Package, trees: &[Tree], ignored: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut sentences: Vec<_> = trees.iter().flat_map(|tree| tree.problems.clone()).collect();
    let used: BTreeSet<_> = trees.iter().flat_map(|tree| &tree.files).collect();
    let folder = member.manifest_path.parent().expect("a file is in a folder");
    let mut files = Vec::new();
    collect(folder.as_std_path(), ignored, &mut files);
    for file in files {
        if !used.contains(&file) {
            sentences.push(format!("{}: belongs to no module of {}", file.display(), member.name));
        }
        if file.ends_with("mod.rs") {
            let folder = file.parent().expect("a file is in a folder").display();
            sentences.push(format!("{}: must be {folder}.rs", file.display()));
        }
    }
    sentences
}

/// What git ignores. Outside of a repository that is nothing.
pub(crate) fn ignored(root: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"])
        .current_dir(root)
        // A hook that runs this test sets it for its own repository.
        .env_remove("GIT_DIR")
        .output();
    let listed = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&listed).split_terminator('\0').map(|path| root.join(path)).collect()
}

/// The `.rs` files in a package's folder that are not another package's.
fn collect(folder: &Path, ignored: &BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("its parent has listed it");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.sort();
    let is_package = folder.join("Cargo.toml").is_file();
    for path in paths.into_iter().filter(|path| !ignored.contains(path) && !path.is_symlink()) {
        let is_output = path.ends_with(".git") || is_package && path.ends_with("target");
        if path.is_dir() {
            if !is_output && !path.join("Cargo.toml").is_file() {
                collect(&path, ignored, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn a_file_that_no_module_declares_is_noticed() {
    check(
        &good_workspace().write("engine/src/admission/lost.rs", ""),
        expect!["engine/src/admission/lost.rs: belongs to no module of portal-engine"],
    );
}

#[test]
fn a_file_that_only_a_lost_file_declares_is_lost() {
    let workspace = good_workspace().write("src/lost.rs", "mod too;").write("src/lost/too.rs", "");
    check(
        &workspace,
        expect![[r#"
        src/lost/too.rs: belongs to no module of portal
        src/lost.rs: belongs to no module of portal"#]],
    );
}

#[test]
fn a_test_that_no_module_declares_is_noticed() {
    check(
        &good_workspace().write("tests/layering/lost.rs", ""),
        expect!["tests/layering/lost.rs: belongs to no module of portal"],
    );
}

#[test]
fn a_file_belongs_to_the_package_around_it() {
    let workspace = good_workspace()
        .append("engine/src/lib.rs", "#[path = \"../core/src/shared.rs\"]\nmod shared;")
        .write("engine/core/src/shared.rs", "");
    check(&workspace, expect!["engine/core/src/shared.rs: belongs to no module of portal-core"]);
}

#[test]
fn a_folder_named_target_is_output_only_beside_a_manifest() {
    check(
        &good_workspace().write("engine/src/target/lost.rs", ""),
        expect!["engine/src/target/lost.rs: belongs to no module of portal-engine"],
    );
}

#[test]
fn files_that_git_ignores_need_no_module() {
    let workspace = good_workspace()
        .init_git()
        .write(".gitignore", "/target\n/site\n*.tmp.rs\n")
        .write("site/example.rs", "")
        .write(".git/refs/heads/branch.rs", "")
        .write("src/draft.tmp.rs", "")
        .write("src/lost.rs", "");
    check(&workspace, expect!["src/lost.rs: belongs to no module of portal"]);
}

#[test]
fn a_mod_rs_is_noticed() {
    let workspace = good_workspace()
        .append("engine/src/lib.rs", "mod sinks;")
        .write("engine/src/sinks/mod.rs", "mod report;")
        .write("engine/src/sinks/report.rs", "");
    check(&workspace, expect!["engine/src/sinks/mod.rs: must be engine/src/sinks.rs"]);
}

#[test]
fn children_of_a_file_with_its_own_path_are_beside_it() {
    let workspace = good_workspace()
        .write("src/check.rs", "#[path = \"check/deep/outer.rs\"]\nmod outer;")
        .write("src/check/deep/outer.rs", "mod inner;\n#[path = \"here\"]\nmod inline { mod child; }")
        .write("src/check/deep/inner.rs", "")
        .write("src/check/deep/here/child.rs", "");
    check(&workspace, expect![[""]]);
}

#[test]
fn a_module_without_a_file_is_noticed() {
    check(
        &good_workspace().write("src/check.rs", "\n#[cfg(windows)]\nmod console;"),
        expect!["src/check.rs:3: no file holds the module console"],
    );
}

#[test]
fn a_file_that_is_not_rust_is_noticed() {
    check(
        &good_workspace().write("src/check.rs", "\nfn ("),
        expect!["src/check.rs:2: cannot be parsed: cannot parse string into token stream"],
    );
}

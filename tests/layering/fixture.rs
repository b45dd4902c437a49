//! A small workspace of the right shape in a temporary folder, for tests to break. `good_workspace.txt` holds its files
//! below lines with their paths. Much in them comes close to being wrong and is not.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

/// A workspace on disk.
pub(crate) struct Workspace {
    folder: TempDir,
}

pub(crate) fn good_workspace() -> Workspace {
    let mut workspace = Workspace { folder: tempfile::tempdir().expect("tests can write to the temporary folder") };
    let files = include_str!("good_workspace.txt").strip_prefix("-- ").expect("it starts with a path");
    for file in files.split("\n-- ") {
        let (path, text) = file.split_once(" --\n").expect("a path ends in dashes");
        workspace = workspace.write(path, text);
    }
    workspace
}

impl Workspace {
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces a file, or adds it.
    pub(crate) fn write(self, path: &str, text: &str) -> Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder is ours");
        fs::write(path, text).expect("the folder is ours");
        self
    }

    /// Adds lines to the end of a file.
    pub(crate) fn append(self, path: &str, lines: &str) -> Self {
        let text = fs::read_to_string(self.root().join(path)).expect("there is such a file");
        self.write(path, &format!("{text}\n{lines}\n"))
    }

    /// Lets the crate in a folder depend on another, in a table such as `dev-dependencies`.
    pub(crate) fn depend(self, folder: &str, table: &str, on: &str) -> Self {
        self.append(&format!("{folder}/Cargo.toml"), &format!("[{table}.{on}]\nworkspace = true"))
    }

    /// Makes it a git repository.
    pub(crate) fn init_git(self) -> Self {
        let init =
            Command::new("git").args(["init", "--quiet"]).current_dir(self.root()).env_remove("GIT_DIR").status();
        assert!(init.expect("whoever builds this has git").success(), "git init failed");
        self
    }
}

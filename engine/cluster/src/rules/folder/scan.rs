//! What has changed below a folder since it was looked through the last time.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use portal_core::manifest::Problem;

use super::{
    read::{read, rules},
    search::{Found, search},
};
use crate::rules::FileContent;

/// What is known of a folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    path: PathBuf,
    files: BTreeMap<PathBuf, Known>,
    hasher: RandomState,
}

/// What is known of a file.
#[derive(Debug)]
struct Known {
    /// Tells a file from the one that was there before, without reading it. Nothing if it could not be looked at.
    print: Option<Print>,
    /// A hash of its text. Nothing if it could not be read.
    text: Option<u64>,
}

/// Device, inode, size, and the two times of change.
type Print = (u64, u64, u64, (i64, i64), (i64, i64));

/// What looking through a folder has found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The files that changed, with what they say. Nothing for those that are gone.
    pub(super) files: Vec<(PathBuf, Option<FileContent>)>,
    /// The folders that could be read. The first one is the folder itself.
    pub(super) folders: Vec<PathBuf>,
    /// What is wrong with folders.
    pub(super) problem: Option<String>,
}

impl Folder {
    /// A folder that nobody has looked through.
    pub(super) fn new(path: PathBuf) -> Folder {
        Folder { path, ..Folder::default() }
    }

    /// Looks through the folder and tells what changed since the last time.
    pub(super) fn scan(&mut self) -> Scan {
        let mut scan = Scan::default();
        if self.path.is_file() {
            scan.problem = Some(format!("{} is a file: give the folder that it is in", self.path.display()));
            return scan;
        }
        let mut found = search(&self.path);
        if !self.gone(&found).is_empty() {
            // A file that moved from one folder to another during the search may have been seen in neither.
            found = search(&self.path);
        }
        if let Some((folder, error)) = found.unreadable.first() {
            scan.problem = Some(format!("{} cannot be read: {error}; its rules stay as they were", folder.display()));
        }
        for path in self.gone(&found) {
            self.files.remove(&path);
            scan.files.push((path, None));
        }
        scan.folders = found.folders;
        for path in found.files {
            if let Some(content) = self.look(&path) {
                scan.files.push((path, Some(content)));
            }
        }
        scan
    }

    /// The files that were there and are not found any more. What is in a folder that cannot be read is not gone.
    fn gone(&self, found: &Found) -> Vec<PathBuf> {
        let missing = self.files.keys().filter(|path| found.files.binary_search(path).is_err());
        missing.filter(|path| !found.unreadable.iter().any(|(folder, _)| path.starts_with(folder))).cloned().collect()
    }

    /// What a file says, unless that was told already.
    fn look(&mut self, path: &Path) -> Option<FileContent> {
        let metadata = fs::metadata(path);
        let print = metadata.as_ref().ok().map(print);
        let known = self.files.get(path);
        if print.is_some() && known.is_some_and(|known| known.print == print) {
            return None;
        }
        let read = metadata.map_err(|error| error.to_string()).and_then(|metadata| read(path, &metadata));
        let text = read.as_ref().ok().map(|text| self.hasher.hash_one(text));
        let is_known = known.is_some_and(|known| known.text == text && text.is_some());
        self.files.insert(path.to_owned(), Known { print: print.filter(|_| text.is_some()), text });
        if is_known {
            return None;
        }
        Some(match read {
            Ok(text) => rules(path, text),
            Err(error) => {
                let message = format!("this file cannot be read: {error}");
                Err(vec![Problem::of_file(path.display().to_string(), message)])
            }
        })
    }
}

fn print(metadata: &Metadata) -> Print {
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    (metadata.dev(), metadata.ino(), metadata.size(), modified, (metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    fn folder() -> (TempDir, Folder) {
        // In memory where that can be had: a disk takes long for ten thousand files.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let folder = Folder::new(root.path().join("rules"));
        fs::create_dir(&folder.path).unwrap();
        (root, folder)
    }

    fn text(name: &str) -> String {
        format!("name: {name}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostNetwork == true\n")
    }

    /// What a scan tells: files with the names of their rules, with what is wrong, or gone.
    fn tell(folder: &mut Folder) -> Vec<String> {
        let scan = folder.scan();
        let mut lines: Vec<String> =
            scan.files.iter().map(|(path, content)| line(&folder.path, path, content.as_ref())).collect();
        lines.extend(scan.problem.map(|problem| problem.replace(folder.path.to_str().unwrap(), "FOLDER")));
        lines
    }

    fn line(folder: &Path, path: &Path, content: Option<&FileContent>) -> String {
        let path = path.strip_prefix(folder).unwrap().display();
        match content {
            None => format!("{path} gone"),
            Some(Ok(rules)) => {
                let names: Vec<_> = rules.iter().map(|rule| rule.id.to_string()).collect();
                format!("{path} {}", names.join(" "))
            }
            Some(Err(problems)) => {
                let Problem { line, column, message, .. } = &problems[0];
                let place: Vec<_> = [line, column].into_iter().flatten().map(ToString::to_string).collect();
                format!("{path}:{} {message}", place.join(":"))
            }
        }
    }

    #[test]
    fn files_are_told_once_until_they_change() {
        let (_root, mut folder) = folder();
        fs::create_dir(folder.path.join("deep")).unwrap();
        fs::write(folder.path.join("b.yaml"), text("b")).unwrap();
        fs::write(folder.path.join("deep/a.yml"), text("a")).unwrap();
        fs::write(folder.path.join("notes.txt"), "nothing").unwrap();
        assert_eq!(tell(&mut folder), ["b.yaml b", "deep/a.yml a"]);
        assert_eq!(tell(&mut folder), [""; 0]);
        fs::write(folder.path.join("b.yaml"), format!("{}---\n{}", text("b"), text("c"))).unwrap();
        assert_eq!(tell(&mut folder), ["b.yaml b c"]);
        fs::remove_file(folder.path.join("deep/a.yml")).unwrap();
        assert_eq!(tell(&mut folder), ["deep/a.yml gone"]);
    }

    #[test]
    fn a_file_that_is_written_again_as_it_was_is_no_news() {
        let (_root, mut folder) = folder();
        let path = folder.path.join("a.yaml");
        fs::write(&path, text("a")).unwrap();
        tell(&mut folder);
        fs::write(&path, text("a")).unwrap();
        assert_eq!(tell(&mut folder), [""; 0]);
    }

    #[test]
    fn an_editor_that_renames_over_is_seen() {
        let (root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        tell(&mut folder);
        // Of the same length and in the same second.
        fs::write(root.path().join("new"), text("b")).unwrap();
        fs::rename(root.path().join("new"), folder.path.join("a.yaml")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml b"]);
    }

    /// As the kubelet does: files are links into `..data`, which is a link to a folder of the version.
    #[test]
    fn a_config_map_that_is_swapped_is_seen_as_one_change_of_each_file() {
        let (_root, mut folder) = folder();
        let version = |number: u32, rules: &[(&str, &str)]| {
            let version = folder.path.join(format!("..version-{number}"));
            fs::create_dir(&version).unwrap();
            for (file, name) in rules {
                fs::write(version.join(file), text(name)).unwrap();
                let _ = symlink(format!("..data/{file}"), folder.path.join(file));
            }
            symlink(&version, folder.path.join("..data_tmp")).unwrap();
            fs::rename(folder.path.join("..data_tmp"), folder.path.join("..data")).unwrap();
        };
        version(1, &[("a.yaml", "a"), ("b.yaml", "b")]);
        let mut looked = Folder::new(folder.path.clone());
        assert_eq!(tell(&mut looked), ["a.yaml a", "b.yaml b"]);
        version(2, &[("a.yaml", "a"), ("b.yaml", "c")]);
        fs::remove_dir_all(folder.path.join("..version-1")).unwrap();
        assert_eq!(tell(&mut looked), ["b.yaml c"]);
        folder = looked;
        assert_eq!(tell(&mut folder), [""; 0]);
    }

    #[test]
    fn a_partial_write_is_a_problem_with_its_place() {
        let (_root, mut folder) = folder();
        let path = folder.path.join("a.yaml");
        fs::write(&path, text("a")).unwrap();
        tell(&mut folder);
        fs::write(&path, "name: a\nmatch: {gvk: [{ki").unwrap();
        let told = tell(&mut folder);
        assert!(told.len() == 1 && told[0].starts_with("a.yaml:2:"), "{told:?}");
        fs::write(&path, "").unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml: there is no rule in this file: remove the file to remove its rules"]);
        fs::write(&path, "name: a\nmatch: {gvk: [{kind: Pod}]}\nrul: x\n").unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml:3:1 rule a: rul: unknown field `rul`, did you mean `rule`?"]);
    }

    #[test]
    fn rules_in_lists_are_read_whatever_the_list() {
        let (_root, mut folder) = folder();
        let rule = "metadata: {name: a}, spec: {match: {gvk: [{kind: Pod}]}, rule: spec.hostNetwork == true}";
        // As `kubectl get portalclusterrules --raw` answers, and as files are put together.
        let typed = format!("{{apiVersion: portal.io/v1alpha1, kind: PortalClusterRuleList, items: [{{{rule}}}]}}");
        fs::write(folder.path.join("typed.yaml"), &typed).unwrap();
        let nested = format!("{{apiVersion: v1, kind: List, items: [{}]}}", typed.replace("name: a", "name: b"));
        fs::write(folder.path.join("nested.yaml"), nested).unwrap();
        assert_eq!(tell(&mut folder), ["nested.yaml b", "typed.yaml a"]);
    }

    #[test]
    fn one_damaged_document_is_told_and_the_file_is_not_taken() {
        let (_root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), [text("a").as_bytes(), b"---\nname: \xff\n"].concat()).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml:5:7 this is not text in UTF-8"]);
    }

    #[test]
    fn a_folder_that_vanishes_keeps_its_rules() {
        let (root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        tell(&mut folder);
        let away = root.path().join("away");
        fs::rename(&folder.path, &away).unwrap();
        let gone = "FOLDER cannot be read: No such file or directory (os error 2); its rules stay as they were";
        assert_eq!(tell(&mut folder), [gone]);
        fs::rename(&away, &folder.path).unwrap();
        assert_eq!(tell(&mut folder), [""; 0]);
    }

    #[test]
    fn a_folder_below_that_cannot_be_looked_at_keeps_its_rules() {
        let (root, mut folder) = folder();
        let (below, away) = (root.path().join("below"), root.path().join("away"));
        fs::create_dir(&below).unwrap();
        fs::write(below.join("b.yaml"), text("b")).unwrap();
        symlink(&below, folder.path.join("link")).unwrap();
        assert_eq!(tell(&mut folder), ["link/b.yaml b"]);
        // By links, because the test may run as root, who may read everything: one leads nowhere, and one to itself.
        fs::rename(&below, &away).unwrap();
        let gone = "FOLDER/link cannot be read: No such file or directory (os error 2); its rules stay as they were";
        assert_eq!(tell(&mut folder), [gone]);
        symlink(&below, &below).unwrap();
        let told = tell(&mut folder);
        assert!(told.len() == 1 && told[0].starts_with("FOLDER/link cannot be read: Too many levels"), "{told:?}");
        fs::remove_file(&below).unwrap();
        fs::rename(&away, &below).unwrap();
        assert_eq!(tell(&mut folder), [""; 0]);
        fs::remove_file(folder.path.join("link")).unwrap();
        assert_eq!(tell(&mut folder), ["link/b.yaml gone"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_and_read_when_it_can() {
        let (_root, mut folder) = folder();
        // A link that leads nowhere, because the test may run as root, who may read everything.
        symlink("nowhere", folder.path.join("a.yaml")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml: this file cannot be read: No such file or directory (os error 2)"]);
        fs::write(folder.path.join("nowhere"), text("a")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml a"]);
        fs::set_permissions(folder.path.join("nowhere"), fs::Permissions::from_mode(0o000)).unwrap();
        let is_root = fs::read(folder.path.join("nowhere")).is_ok();
        let told = tell(&mut folder);
        assert!(if is_root { told.is_empty() } else { told[0].contains("Permission denied") }, "{told:?}");
        fs::set_permissions(folder.path.join("nowhere"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(tell(&mut folder).len() <= 1);
    }

    #[test]
    fn what_is_no_regular_file_is_told_and_never_opened() {
        let (_root, mut folder) = folder();
        let problem = "this file cannot be read: it is no regular file";
        symlink("/dev/null", folder.path.join("device.yaml")).unwrap();
        assert_eq!(tell(&mut folder), [format!("device.yaml: {problem}")]);
        fs::remove_file(folder.path.join("device.yaml")).unwrap();
        assert!(Command::new("mkfifo").arg(folder.path.join("pipe.yaml")).status().unwrap().success());
        assert_eq!(tell(&mut folder), ["device.yaml gone".to_owned(), format!("pipe.yaml: {problem}")]);
    }

    #[test]
    fn a_file_that_is_too_large_is_told() {
        let (_root, mut folder) = folder();
        let path = folder.path.join("a.yaml");
        let file = fs::File::create(&path).unwrap();
        file.set_len((16 << 20) + 1).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml: this file cannot be read: it is larger than 16 MB"]);
    }

    #[test]
    fn links_that_lead_around_end() {
        let (_root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        symlink(&folder.path, folder.path.join("again")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml a"]);
    }

    #[test]
    fn a_file_that_moves_is_told_in_one_go() {
        let (_root, mut folder) = folder();
        fs::write(folder.path.join("a.yaml"), text("a")).unwrap();
        tell(&mut folder);
        fs::rename(folder.path.join("a.yaml"), folder.path.join("b.yaml")).unwrap();
        assert_eq!(tell(&mut folder), ["a.yaml gone", "b.yaml a"]);
    }

    #[test]
    fn of_two_links_to_a_folder_the_first_counts() {
        let (root, mut folder) = folder();
        fs::write(root.path().join("a.yaml"), text("a")).unwrap();
        // Made in an order, and so many, that the file system lists another one first.
        for number in (0..20).rev() {
            symlink(root.path(), folder.path.join(format!("{number:02}"))).unwrap();
        }
        assert_eq!(tell(&mut folder), ["00/a.yaml a"]);
    }

    #[test]
    fn ten_thousand_files_are_read_once() {
        let (_root, mut folder) = folder();
        for number in 0..10_000 {
            fs::write(folder.path.join(format!("{number}.yaml")), text(&format!("rule-{number}"))).unwrap();
        }
        assert_eq!(tell(&mut folder).len(), 10_000);
        assert_eq!(tell(&mut folder), [""; 0]);
        fs::write(folder.path.join("77.yaml"), text("other")).unwrap();
        assert_eq!(tell(&mut folder), ["77.yaml other"]);
    }
}

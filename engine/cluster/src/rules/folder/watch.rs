//! Listens to changes of folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// The folders that are listened to, each by itself: one that cannot be read is no reason not to hear of the others.
pub(super) struct Watch {
    changed: Arc<Notify>,
    /// Nothing if the system gives us no watcher.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeMap<PathBuf, Print>,
}

/// Tells a folder from another one that has taken its place: device, inode, and when it was made, because numbers come up again.
type Print = (u64, u64, Option<SystemTime>);

impl Watch {
    /// Listens to nothing. `changed` is told of every change.
    pub(super) fn new(changed: Arc<Notify>) -> Watch {
        let told = Arc::clone(&changed);
        let tell = move |event: notify::Result<notify::Event>| {
            // Reading is no change, and looking through a folder reads.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                told.notify_one();
            }
        };
        Watch { changed, watcher: notify::recommended_watcher(tell).ok(), folders: BTreeMap::new() }
    }

    /// Listens to these folders, which were looked through just now, and to no others. Returns whether it hears of all of them.
    pub(super) fn listen(&mut self, folders: &[PathBuf]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let wanted = folders.iter().filter_map(|folder| Some((folder.clone(), print(folder)?)));
        let wanted: BTreeMap<PathBuf, Print> = wanted.collect();
        self.folders.retain(|folder, print| {
            let is_same = wanted.get(folder) == Some(print);
            if !is_same {
                // The watch hears nothing if its folder is gone, and of the wrong folder if that has moved away.
                let _ = watcher.unwatch(folder);
            }
            is_same
        });
        for (folder, print) in wanted {
            if !self.folders.contains_key(&folder) && watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok() {
                self.folders.insert(folder, print);
                // Nobody told what happened between the look at the folder and the start of the watch.
                self.changed.notify_one();
            }
        }
        self.folders.len() == folders.len()
    }
}

fn print(folder: &Path) -> Option<Print> {
    let metadata = fs::metadata(folder).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    fn folder() -> (TempDir, PathBuf, Watch) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("rules");
        fs::create_dir(&folder).unwrap();
        (root, folder, Watch::new(Arc::default()))
    }

    /// Waits until a change is told. Returns false if none is.
    async fn is_told(watch: &Watch) -> bool {
        tokio::time::timeout(Duration::from_secs(30), watch.changed.notified()).await.is_ok()
    }

    /// Takes the changes that are told, until none comes for a while.
    async fn forget(watch: &Watch) {
        while tokio::time::timeout(Duration::from_millis(300), watch.changed.notified()).await.is_ok() {}
    }

    #[tokio::test]
    async fn a_folder_that_was_replaced_is_heard_of_again() {
        let (root, folder, mut watch) = folder();
        assert!(watch.listen(std::slice::from_ref(&folder)));
        assert!(is_told(&watch).await, "what happened before is not told");
        fs::write(folder.join("a"), "a").unwrap();
        assert!(is_told(&watch).await);
        fs::rename(&folder, root.path().join("away")).unwrap();
        fs::create_dir(&folder).unwrap();
        forget(&watch).await;
        assert!(watch.listen(std::slice::from_ref(&folder)));
        forget(&watch).await;
        fs::write(folder.join("a"), "b").unwrap();
        assert!(is_told(&watch).await);
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_had_leaves_the_others() {
        let (root, folder, mut watch) = folder();
        assert!(!watch.listen(&[folder.clone(), root.path().join("nowhere")]));
        forget(&watch).await;
        fs::write(folder.join("a"), "a").unwrap();
        assert!(is_told(&watch).await);
        assert!(watch.listen(&[]));
        assert!(watch.folders.is_empty());
    }
}

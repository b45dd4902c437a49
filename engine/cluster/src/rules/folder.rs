//! Rules from a folder, read again whenever it changes.
//!
//! A file is taken as a whole. A file that cannot be read keeps its former rules, and so does a folder that vanishes: rules are
//! removed by removing a file from a folder that can be read.

mod read;
mod scan;
mod search;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::{scan::Folder, watch::Watch};
use crate::{
    health::{Health, Part},
    rules::{Loader, Update},
};

pub use self::search::{Found, search};

/// A change is read when the folder was quiet for so long: editors and copies write in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// But no later than this.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// How often the folder is looked through although nothing was told: some file systems tell nothing.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// Tells of the rules of a folder and of their changes, until the end.
pub async fn follow(path: PathBuf, updates: mpsc::Sender<Update>, health: Health, shutdown: CancellationToken) {
    let changed = Arc::new(Notify::new());
    let mut folder = Folder::new(path);
    let mut watch = Watch::new(Arc::clone(&changed));
    let mut is_loaded = false;
    loop {
        let looking = tokio::task::spawn_blocking(move || {
            let scan = folder.scan();
            let is_watched = watch.listen(&scan.folders);
            (folder, watch, scan, is_watched)
        });
        let looked = tokio::select! {
            looked = looking => looked,
            // A file system that does not answer must not keep the process from ending.
            () = shutdown.cancelled() => return,
        };
        let (scan, is_watched);
        (folder, watch, scan, is_watched) = match looked {
            Ok(looked) => looked,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        if !scan.files.is_empty() && updates.send(Update::Files(scan.files)).await.is_err() {
            return;
        }
        match scan.problem {
            Some(problem) => health.unwell(&Part::Folder, &problem),
            None => health.recovered(&Part::Folder),
        }
        // A folder below that cannot be read, such as `lost+found`, is no reason to do without the others.
        let is_read = !scan.folders.is_empty();
        if is_read
            && !std::mem::replace(&mut is_loaded, true)
            && updates.send(Update::Loaded(Loader::Folder)).await.is_err()
        {
            return;
        }
        let pause = if is_read && is_watched { NOW_AND_THEN } else { MAX_DELAY };
        tokio::select! {
            () = changed.notified() => quiet(&changed).await,
            () = sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Waits until nothing changes any more, for a while.
async fn quiet(changed: &Notify) {
    let end = Instant::now() + MAX_DELAY;
    loop {
        tokio::select! {
            () = changed.notified() => {}
            () = sleep(QUIET) => return,
            () = sleep_until(end) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_folder_below_that_cannot_be_read_is_told_and_the_others_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let rule = |name: &str| format!("name: {name}\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID == true\n");
        fs::write(root.path().join("a.yaml"), rule("a")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("below")).unwrap();
        let (sender, mut updates) = mpsc::channel(8);
        let shutdown = CancellationToken::new();
        let health = Health::default();
        health.expect(&Part::Folder);
        let following = tokio::spawn(follow(root.path().to_owned(), sender, health.clone(), shutdown));
        assert!(matches!(updates.recv().await, Some(Update::Files(_))));
        assert!(matches!(updates.recv().await, Some(Update::Loaded(Loader::Folder))));
        health.loaded(&Part::Folder);
        let problem = "below cannot be read: No such file or directory (os error 2); its rules stay as they were";
        let report = health.report();
        assert!(report.starts_with("[!]folder ") && report.ends_with(&format!("{problem}\nready\n")), "{report}");
        fs::write(root.path().join("b.yaml"), rule("b")).unwrap();
        assert!(matches!(updates.recv().await, Some(Update::Files(_))));
        following.abort();
    }
}

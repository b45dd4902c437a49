//! Rules from a folder, read again whenever it changes.
//!
//! A file is taken as a whole. What cannot be read keeps what it said before, and so does a folder that vanishes: rules are
//! removed by removing a file from a folder that can be read.

mod read;
mod scan;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, sleep_until},
};

use self::scan::Folder;
use crate::{
    health::{Health, Part},
    rules::{Loader, Update},
    run::Shutdown,
};

pub use self::search::{Found, search};

/// A change is read when the folder was quiet for so long: editors and copies write in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// But no later than this.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// How often the folder is looked through although nothing was told: some file systems tell nothing.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// Tells of the rules of a folder and of their changes, until the end.
pub(crate) async fn follow(path: PathBuf, updates: mpsc::Sender<Update>, health: Health, mut shutdown: Shutdown) {
    let mut folder = Folder::new(path);
    let changed = Arc::new(Notify::new());
    let mut watching = None;
    let mut is_loaded = false;
    loop {
        if watching.is_none() {
            watching = watch(folder.path(), Arc::clone(&changed));
        }
        let looking = tokio::task::spawn_blocking(move || {
            let scan = folder.scan();
            (folder, scan)
        });
        let looked = tokio::select! {
            looked = looking => looked,
            // A file system that does not answer keeps nobody from ending.
            () = shutdown.wait() => return,
        };
        let scan;
        (folder, scan) = match looked {
            Ok(looked) => looked,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        if !scan.files.is_empty() && updates.send(Update::Files(scan.files)).await.is_err() {
            return;
        }
        match scan.problem {
            Some(problem) => {
                // A watch of a folder that was replaced sees nothing any more.
                watching = None;
                health.unwell(Part::Folder, &problem);
            }
            None => {
                health.recovered(Part::Folder);
                if !std::mem::replace(&mut is_loaded, true)
                    && updates.send(Update::Loaded(Loader::Folder)).await.is_err()
                {
                    return;
                }
            }
        }
        let pause = if watching.is_some() { NOW_AND_THEN } else { MAX_DELAY };
        tokio::select! {
            () = changed.notified() => quiet(&changed).await,
            () = sleep(pause) => {}
            () = shutdown.wait() => return,
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

/// Listens to changes below a folder. Nothing if that cannot be had: the folder is looked through more often then.
fn watch(path: &Path, changed: Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        // Reading is no change, and looking through the folder reads.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            changed.notify_one();
        }
    };
    let mut watcher = notify::recommended_watcher(tell).ok()?;
    watcher.watch(path, RecursiveMode::Recursive).ok()?;
    Some(watcher)
}

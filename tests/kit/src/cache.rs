//! Where things are kept between runs: one folder outside the repository, and locks that end with their holder.

use std::fs::{self, File, TryLockError};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// The folder that outlives a run. `PORTAL_CACHE` moves it.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A shorter wait is not mentioned.
const WORTH_SAYING: Duration = Duration::from_secs(3);

/// An exclusive lock on a file. The kernel drops it with the process, so a killed run leaves nothing locked.
#[derive(Debug)]
pub struct Lock {
    /// Held open: closing it is what releases the lock.
    _file: File,
}

impl Cache {
    /// Finds the folder that the environment names, and makes it if need be.
    pub fn open() -> anyhow::Result<Self> {
        let from = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = from("PORTAL_CACHE")
            .or_else(|| from("XDG_CACHE_HOME").map(|folder| folder.join("portal")))
            .or_else(|| from("HOME").map(|folder| folder.join(".cache/portal")))
            .context("no folder for the cache: set PORTAL_CACHE")?;
        if !root.is_absolute() {
            bail!("PORTAL_CACHE is {}, which is not an absolute path: write it from the root", root.display());
        }
        Self::at(root)
    }

    /// Uses this folder, and makes it if need be.
    pub fn at(root: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&root).with_context(|| format!("could not make the cache folder {}", root.display()))?;
        Ok(Self { root })
    }

    /// A folder of the cache, made if it is not there.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("could not make {}", path.display()))?;
        Ok(path)
    }

    /// Takes the lock of this name. Says so when it has to wait for somebody else.
    pub fn lock(&self, name: &str) -> anyhow::Result<Lock> {
        let path = self.folder("locks")?.join(name);
        let patience = Instant::now() + WORTH_SAYING;
        while Instant::now() < patience {
            if let Some(lock) = Lock::try_take(&path)? {
                return Ok(lock);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let holder = Lock::holder(&path).unwrap_or_else(|| "unknown".to_owned());
        eprintln!("waiting for process {holder}, which holds {}", path.display());
        Lock::wait(&path)
    }
}

impl Lock {
    /// Takes the lock, or says that another process has it.
    pub fn try_take(path: &Path) -> anyhow::Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Self::held(file).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("could not lock {}", path.display())),
        }
    }

    /// Whether somebody holds the lock. Changes nothing, and a file that is not there is not held.
    pub fn is_held(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Who holds the lock: the process id that it wrote.
    pub fn holder(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok().map(|pid| pid.trim().to_owned()).filter(|pid| !pid.is_empty())
    }

    fn wait(path: &Path) -> anyhow::Result<Self> {
        let file = open(path)?;
        file.lock().with_context(|| format!("could not lock {}", path.display()))?;
        Self::held(file)
    }

    fn held(mut file: File) -> anyhow::Result<Self> {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(|| format!("could not open the lock file {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_while_held_and_free_after() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::try_take(&path).unwrap().expect("nobody holds it");
        assert_eq!(Lock::holder(&path), Some(std::process::id().to_string()));
        assert!(Lock::try_take(&path).unwrap().is_none());
        assert!(Lock::is_held(&path));
        drop(lock);
        assert!(!Lock::is_held(&path));
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn a_lock_file_left_by_a_dead_process_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "1\n").unwrap();
        assert!(Lock::try_take(&path).unwrap().is_some());
    }
}

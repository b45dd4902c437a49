//! A thread for what fills the caches.

use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A thread with a runtime of its own, for as long as this lives.
///
/// On threads that share their work, the one that reads a connection and the one that reads the objects out of it wake each other
/// for each object, which took a quarter of the processor. And nobody who waits for an answer waits for a list.
pub struct Thread {
    handle: Handle,
    _end: DropGuard,
}

impl Thread {
    /// Starts it. As with any thread of a runtime, a system that has none to give ends the process.
    pub fn start(name: &str) -> Thread {
        let runtime = Builder::new_current_thread().enable_all().build().expect("the system lets us wait for files");
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let ended = end.clone();
        let run = move || runtime.block_on(ended.cancelled());
        std::thread::Builder::new().name(name.to_owned()).spawn(run).expect("the system has a thread to give");
        Thread { handle, _end: end.drop_guard() }
    }

    /// What is spawned meanwhile runs on this thread.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_spawned_runs_there_and_ends_with_it() {
        let name = || std::thread::current().name().map(str::to_owned);
        let thread = Thread::start("elsewhere");
        let (task, endless) = {
            let _there = thread.enter();
            (tokio::spawn(async move { name() }), tokio::spawn(std::future::pending::<()>()))
        };
        assert_eq!(task.await.unwrap().as_deref(), Some("elsewhere"));
        drop(thread);
        assert!(endless.await.unwrap_err().is_cancelled());
    }
}

//! What waits for a worker: tasks from the one who reads, and parts of tasks from the workers themselves.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks in the order in which they are to be done.
pub(crate) struct Queue<T> {
    /// Tasks that may wait before the one who reads has to.
    bound: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Who may still add: the one who reads, until it closes, and every worker that has a task.
    adders: usize,
}

/// A worker has a task as long as this lives, even if it panics: the others would wait for it forever.
struct Busy<'q, T>(&'q Queue<T>);

impl<T> Queue<T> {
    pub(crate) fn new(bound: usize) -> Queue<T> {
        let state = State { waiting: VecDeque::new(), adders: 1 };
        Queue { bound, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a task, and waits as long as there are many. For the one who reads.
    pub(crate) fn add(&self, task: T) {
        let mut state = self.state();
        while state.waiting.len() >= self.bound {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.push_back(task);
        self.changed.notify_all();
    }

    /// Adds parts of a task that a worker has. They come first: what they are parts of takes memory until they are done.
    pub(crate) fn split(&self, parts: impl DoubleEndedIterator<Item = T>) {
        let mut state = self.state();
        parts.rev().for_each(|part| state.waiting.push_front(part));
        self.changed.notify_all();
    }

    /// Says that nothing more is read.
    pub(crate) fn close(&self) {
        self.leave();
    }

    /// Does tasks until there are no more.
    pub(crate) fn work(&self, mut run: impl FnMut(T)) {
        while let Some((task, _busy)) = self.next() {
            run(task);
        }
    }

    fn next(&self) -> Option<(T, Busy<'_, T>)> {
        let mut state = self.state();
        loop {
            if let Some(task) = state.waiting.pop_front() {
                state.adders += 1;
                self.changed.notify_all();
                return Some((task, Busy(self)));
            }
            if state.adders == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self) {
        self.state().adders -= 1;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No task runs while it is locked, so that it is right after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Busy<'_, T> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn every_task_and_every_part_is_done_once() {
        let queue = Queue::new(2);
        let sum = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    queue.work(|task: usize| {
                        sum.fetch_add(task, Ordering::Relaxed);
                        // Parts of parts, down to one.
                        queue.split((0..2).map(|_| task / 2).filter(|part| *part > 0));
                    });
                });
            }
            (0..50).for_each(|_| queue.add(8));
            queue.close();
        });
        assert_eq!(sum.into_inner(), 50 * 4 * 8);
    }

    #[test]
    fn parts_come_before_what_waits() {
        let queue = Queue::new(9);
        queue.add(1);
        queue.add(2);
        queue.close();
        let mut done = Vec::new();
        queue.work(|task| {
            done.push(task);
            if task == 1 {
                queue.split([10, 11].into_iter());
            }
        });
        assert_eq!(done, [1, 10, 11, 2]);
    }
}

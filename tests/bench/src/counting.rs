//! An allocator that counts: how often memory was asked for, and how much of it was held at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with counters. Programs that take times do not use it.
pub struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// How often memory was asked for while `work` ran.
pub fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Relaxed);
    work();
    ALLOCATIONS.load(Relaxed) - before
}

/// How many bytes more than before were held at most while `work` ran.
pub fn peak<T>(work: impl FnOnce() -> T) -> usize {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    drop(work());
    PEAK.load(Relaxed) - before
}

fn count(taken: usize, given: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    let held = HELD.fetch_add(taken, Relaxed) + taken;
    // While memory is moved both places are held.
    PEAK.fetch_max(held, Relaxed);
    HELD.fetch_sub(given, Relaxed);
}

#[expect(unsafe_code, reason = "the trait is unsafe; every call goes to the system's allocator as it came")]
// SAFETY: nothing is done with the memory here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller keeps to the contract.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

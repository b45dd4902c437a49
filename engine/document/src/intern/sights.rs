//! What has been seen once, as far as a table of fixed size remembers.
//!
//! Names, addresses and identifiers belong to one object each. They must not fill an interner that never forgets, so a
//! thing is worth a number only when it comes from a second origin.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use super::pool;

/// The hash of a thing in the upper half of each entry, the origin that had it in the lower half.
pub(super) struct Sights(OnceLock<Box<[AtomicU64]>>);

/// Half a megabyte. Objects of one workload arrive close to each other, so that a longer memory finds little more.
const SIZE: usize = 1 << 16;

impl Sights {
    pub(super) fn new() -> Sights {
        // No memory until the first sight: whoever only looks up never needs it.
        Sights(OnceLock::new())
    }

    /// Remembers that an origin has a thing, and says whether another origin is known to have it too.
    ///
    /// A race between threads or two things with the same hash lead to a number too many or too few, which is harmless.
    pub(super) fn is_second(&self, hash: u32, origin: u32) -> bool {
        let sights = self.0.get_or_init(|| pool::empty(SIZE, || AtomicU64::new(0)));
        let sight = &sights[hash as usize % SIZE];
        let seen = sight.load(Ordering::Relaxed);
        if (seen >> 32) as u32 == hash && seen != 0 {
            return seen as u32 != origin;
        }
        sight.store(u64::from(hash) << 32 | u64::from(origin), Ordering::Relaxed);
        false
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.0.get().map_or(0, |sights| size_of_val(&**sights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_seen_again_when_a_second_origin_has_it() {
        let sights = Sights::new();
        assert!(!sights.is_second(7, 1));
        assert!(!sights.is_second(7, 1));
        assert!(sights.is_second(7, 2));
    }

    #[test]
    fn a_thing_in_the_same_place_makes_the_table_forget() {
        let sights = Sights::new();
        assert!(!sights.is_second(7, 1));
        assert!(!sights.is_second(7 + SIZE as u32, 1));
        assert!(!sights.is_second(7, 2));
    }

    #[test]
    fn the_table_takes_no_memory_before_the_first_sight() {
        let sights = Sights::new();
        assert_eq!(sights.size_bytes(), 0);
        sights.is_second(7, 1);
        assert_eq!(sights.size_bytes(), 8 * SIZE);
    }
}

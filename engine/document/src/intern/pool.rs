//! A list of things that are equal to no other in it, each with a number. Append-only: whoever has a number reads the
//! thing without a lock, and whoever has a thing finds its number without a lock.

use std::sync::{
    OnceLock,
    atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
};

pub(super) struct Pool<T: ?Sized + 'static> {
    /// Number to thing.
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    /// Thing to number. Each table is twice as large as the one before and holds all that it held, so that whoever still reads the smaller
    /// one is not wrong, just behind.
    tables: [OnceLock<Table>; TABLES],
    /// Which table to read. Written by the one who adds.
    current: AtomicUsize,
}

/// Places for things, by their hash.
struct Table {
    /// A byte of the hash of what is at each place, or zero if nothing is. Most things that are looked for are not there, and this is near
    /// where the entries are far.
    marks: Box<[AtomicU8]>,
    /// The upper half of an entry is the hash, the lower half the number.
    entries: Box<[AtomicU64]>,
}

/// All chunks have the same size, so that two steps lead from a number to its thing.
type Chunk<T> = Box<[OnceLock<&'static T>; CHUNK]>;

const CHUNK: usize = 1 << 10;
const CHUNKS: usize = 1 << 7;
const FIRST_TABLE_BITS: u32 = 11;
const TABLES: usize = 18;

impl<T: ?Sized> Pool<T> {
    /// The most things that there can be.
    pub(super) const ROOM: usize = CHUNK * CHUNKS;

    pub(super) fn new() -> Pool<T> {
        let chunks = [const { OnceLock::new() }; CHUNKS];
        Pool { chunks, tables: [const { OnceLock::new() }; TABLES], current: AtomicUsize::new(0) }
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &'static T {
        let (chunk, place) = place_of(number);
        let thing = self.chunks[chunk].get().and_then(|chunk| chunk[place].get());
        thing.expect("a number is given out after its thing is in place")
    }

    #[inline]
    pub(super) fn find(&self, hash: u32, is_same: impl Fn(&T) -> bool) -> Option<u32> {
        let Table { marks, entries } = self.table(self.current.load(Ordering::Acquire));
        let (mark, mask) = (mark_of(hash), marks.len() - 1);
        let mut at = hash as usize & mask;
        loop {
            let found = marks[at].load(Ordering::Acquire);
            if found == 0 {
                return None;
            }
            if found == mark {
                let entry = entries[at].load(Ordering::Relaxed);
                if (entry >> 32) as u32 == hash && is_same(self.get(entry as u32)) {
                    return Some(entry as u32);
                }
            }
            // There is always an empty place to stop at: a table is at most half full.
            at = (at + 1) & mask;
        }
    }

    /// Adds a thing that is not there, under the number of things that are there. One caller at a time.
    pub(super) fn add(&self, hash: u32, thing: &'static T, number: u32) {
        let (chunk, place) = place_of(number);
        let chunk = self.chunks[chunk].get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
        chunk[place].set(thing).unwrap_or_else(|_| unreachable!("each number is given out once"));

        let mut current = self.current.load(Ordering::Relaxed);
        if 2 * number as usize >= self.table(current).marks.len() {
            let Table { marks, entries } = self.table(current);
            current += 1;
            let larger = self.table(current);
            for (mark, entry) in marks.iter().zip(entries) {
                if mark.load(Ordering::Relaxed) != 0 {
                    larger.insert(entry.load(Ordering::Relaxed));
                }
            }
            self.current.store(current, Ordering::Release);
        }
        self.table(current).insert(u64::from(hash) << 32 | u64::from(number));
    }

    #[inline]
    fn table(&self, number: usize) -> &Table {
        self.tables[number].get_or_init(|| Table::new(1 << (number as u32 + FIRST_TABLE_BITS)))
    }

    /// Bytes of the chunks and tables, without the things.
    pub(super) fn size_bytes(&self) -> usize {
        let chunks = self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(&**chunk));
        let tables = self.tables.iter().filter_map(OnceLock::get);
        let tables = tables.map(|Table { marks, entries }| size_of_val(&**marks) + size_of_val(&**entries));
        chunks.sum::<usize>() + tables.sum::<usize>()
    }
}

impl Table {
    fn new(places: usize) -> Table {
        Table { marks: empty(places, || AtomicU8::new(0)), entries: empty(places, || AtomicU64::new(0)) }
    }

    /// Puts an entry into the first empty place from where its hash points.
    fn insert(&self, entry: u64) {
        let (hash, mask) = ((entry >> 32) as u32, self.marks.len() - 1);
        let mut at = hash as usize & mask;
        while self.marks[at].load(Ordering::Relaxed) != 0 {
            at = (at + 1) & mask;
        }
        self.entries[at].store(entry, Ordering::Relaxed);
        // Whoever sees the mark sees the entry.
        self.marks[at].store(mark_of(hash), Ordering::Release);
    }
}

/// Of the bits that do not say where a thing is.
#[inline]
fn mark_of(hash: u32) -> u8 {
    (hash >> 24) as u8 | 1
}

#[inline]
fn place_of(number: u32) -> (usize, usize) {
    (number as usize / CHUNK, number as usize % CHUNK)
}

pub(super) fn empty<T>(length: usize, make: impl FnMut() -> T) -> Box<[T]> {
    std::iter::repeat_with(make).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thing_is_found_after_the_tables_have_grown() {
        let pool = Pool::<str>::new();
        // Few hashes, so that things lie far from where their hash points.
        let things: Vec<(u32, String)> = (0..20_000).map(|n| (n % 5000, format!("thing {n}"))).collect();
        for (number, (hash, thing)) in things.iter().enumerate() {
            assert_eq!(pool.find(*hash, |found| found == thing), None);
            pool.add(*hash, thing.clone().leak(), number as u32);
        }
        for (number, (hash, thing)) in things.iter().enumerate() {
            assert_eq!(pool.find(*hash, |found| found == thing), Some(number as u32));
            assert_eq!(pool.get(number as u32), thing);
        }
    }
}

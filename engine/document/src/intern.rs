//! What many documents share: every key, every short value that two sources of documents have, and the lists of keys
//! that objects have in common.
//!
//! One for the process, append-only and bounded. Nothing is ever freed, which is what lets any thread read without a
//! lock and what makes the bounds necessary: past them, everything stays in its document.

mod pool;
mod shape;
mod sights;

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pool::Pool;
pub(crate) use shape::Shape;
use sights::Sights;

/// The texts that documents share, each with a number.
pub struct Interner {
    bounds: Bounds,
    /// Seeded per process: nobody can prepare texts that all fall into one place.
    hasher: foldhash::fast::RandomState,
    /// The same for lists of keys.
    seed: u64,
    texts: Pool<str>,
    /// Lists of keys.
    shapes: Pool<Shape>,
    /// Which values and lists of keys have been seen once.
    sights: Sights,
    writer: Mutex<Writer>,
    /// What has met its bound, so that nobody waits for the writer in vain. Written by whoever holds the writer.
    full: Full,
}

/// The number of a text in the [`Interner`]. Two texts are equal exactly when their symbols are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol(pub(crate) u32);

/// What a text is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Key,
    Value,
}

/// How much the interner may hold.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    texts: Amount,
    shapes: Amount,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    count: usize,
    bytes: usize,
}

#[derive(Default)]
struct Full {
    texts: AtomicBool,
    values: AtomicBool,
    shapes: AtomicBool,
}

/// What only the holder of the lock may change.
#[derive(Default)]
struct Writer {
    texts: Amount,
    /// Of these, those that were values when they came.
    values: Amount,
    shapes: Amount,
    /// What is left of the block of bytes that texts go to: an allocation for each would cost more than most texts.
    room: &'static mut [u8],
}

/// Enough for the names, nodes, images and owners of some ten thousand workloads. 20 MB when full.
const BOUNDS: Bounds =
    Bounds { texts: Amount { count: 1 << 17, bytes: 8 << 20 }, shapes: Amount { count: 1 << 15, bytes: 4 << 20 } };

const _: () = assert!(BOUNDS.texts.count <= Pool::<str>::ROOM && BOUNDS.shapes.count <= Pool::<Shape>::ROOM);

const BLOCK: usize = 32 << 10;

static GLOBAL: LazyLock<Interner> = LazyLock::new(|| Interner::new(BOUNDS));

impl Interner {
    /// The interner of this process.
    #[inline]
    pub fn global() -> &'static Interner {
        &GLOBAL
    }

    fn new(bounds: Bounds) -> Interner {
        let hasher = foldhash::fast::RandomState::default();
        Interner {
            bounds,
            seed: hasher.hash_one(bounds.shapes.count),
            hasher,
            texts: Pool::new(),
            shapes: Pool::new(),
            sights: Sights::new(),
            writer: Mutex::new(Writer::default()),
            full: Full::default(),
        }
    }

    /// The symbol of a text that is here already.
    pub fn look_up(&self, text: &str) -> Option<Symbol> {
        self.find(self.hash(text), text)
    }

    /// The symbol of a text, which is added when there is room.
    pub fn intern(&self, text: &str) -> Option<Symbol> {
        self.find_or_add(self.hash(text), text, Use::Key)
    }

    /// The text of a symbol, without a lock.
    #[inline]
    pub fn text(&self, symbol: Symbol) -> &'static str {
        self.texts.get(symbol.0)
    }

    /// How many texts are here.
    pub fn len(&self) -> usize {
        self.writer().texts.count
    }

    /// Whether there is no text yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the interner holds: texts, lists of keys and tables.
    pub fn size_bytes(&self) -> usize {
        let writer = self.writer();
        let contents = writer.texts.bytes + writer.room.len() + writer.shapes.bytes;
        contents + self.texts.size_bytes() + self.shapes.size_bytes() + self.sights.size_bytes()
    }

    #[inline]
    pub(crate) fn hash(&self, text: &str) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(text.as_bytes());
        let hash = hasher.finish();
        (hash ^ hash >> 32) as u32
    }

    #[inline]
    pub(crate) fn find(&self, hash: u32, text: &str) -> Option<Symbol> {
        self.texts.find(hash, |found| found == text).map(Symbol)
    }

    #[inline]
    pub(crate) fn find_or_add(&self, hash: u32, text: &str, used: Use) -> Option<Symbol> {
        self.find(hash, text).or_else(|| self.add(hash, text, used))
    }

    /// Adds a value when another origin has had it before.
    pub(crate) fn add_second_sight(&self, hash: u32, text: &str, origin: u32) -> Option<Symbol> {
        let is_added = !self.full.values.load(Ordering::Relaxed) && self.sights.is_second(hash, origin);
        if is_added { self.add(hash, text, Use::Value) } else { None }
    }

    #[cold]
    fn add(&self, hash: u32, text: &str, used: Use) -> Option<Symbol> {
        if self.full.texts.load(Ordering::Relaxed) {
            return None;
        }
        let mut writer = self.writer();
        // Another thread may have been here since the look-up.
        if let Some(symbol) = self.find(hash, text) {
            return Some(symbol);
        }
        let number = writer.texts.count as u32;
        // Values may fill three quarters, so that keys always find room: an inline key costs the speed of every
        // look-up, an inline value only its own bytes.
        let Amount { count, bytes } = self.bounds.texts;
        let for_values = Amount { count: count / 4 * 3, bytes: bytes / 4 * 3 };
        if used == Use::Value && !writer.values.take(text.len(), for_values, &self.full.values)
            || !writer.texts.take(text.len(), self.bounds.texts, &self.full.texts)
        {
            return None;
        }
        self.texts.add(hash, writer.keep(text), number);
        Some(Symbol(number))
    }

    /// A hash for lists of keys.
    #[inline]
    pub(crate) fn hash_keys(&self, keys: &[u32]) -> u32 {
        let hash = keys
            .iter()
            .fold(self.seed, |hash, key| (hash ^ u64::from(*key)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
        (hash ^ hash >> 32) as u32
    }

    /// The number of a list of keys that is here already.
    #[inline]
    pub(crate) fn find_shape(&self, hash: u32, keys: &[u32]) -> Option<u32> {
        self.shapes.find(hash, |shape| shape.keys() == keys)
    }

    /// Adds a list of keys when another origin has had it before.
    pub(crate) fn add_shape_second_sight(&self, hash: u32, keys: &[u32], origin: u32) -> Option<u32> {
        if self.full.shapes.load(Ordering::Relaxed) || !self.sights.is_second(hash, origin) {
            return None;
        }
        let mut writer = self.writer();
        if let Some(shape) = self.find_shape(hash, keys) {
            return Some(shape);
        }
        let number = writer.shapes.count as u32;
        if !writer.shapes.take(Shape::size_bytes(keys), self.bounds.shapes, &self.full.shapes) {
            return None;
        }
        self.shapes.add(hash, Box::leak(Box::new(Shape::new(keys))), number);
        Some(number)
    }

    /// A list of keys, without a lock.
    #[inline]
    pub(crate) fn shape(&self, number: u32) -> &'static Shape {
        self.shapes.get(number)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // What the lock protects are counts and room, which are right after any of their changes.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Interner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the texts: they come out of objects that may be secret.
        f.debug_struct("Interner").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Amount {
    /// Counts one more thing of a size, unless that is over a bound. The first one that does not fit is the end, even
    /// if a smaller one would.
    fn take(&mut self, bytes: usize, bound: Amount, is_full: &AtomicBool) -> bool {
        let fits = self.count < bound.count && self.bytes + bytes <= bound.bytes;
        if fits {
            self.count += 1;
            self.bytes += bytes;
        } else {
            is_full.store(true, Ordering::Relaxed);
        }
        fits
    }
}

impl Writer {
    /// Copies a text to where it stays for good.
    fn keep(&mut self, text: &str) -> &'static str {
        if text.len() > BLOCK / 8 {
            return Box::leak(Box::from(text));
        }
        if text.len() > self.room.len() {
            self.room = Box::leak(vec![0; BLOCK].into_boxed_slice());
        }
        let (kept, room) = std::mem::take(&mut self.room).split_at_mut(text.len());
        self.room = room;
        kept.copy_from_slice(text.as_bytes());
        std::str::from_utf8(kept).expect("a copy of text is text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interner(count: usize, bytes: usize) -> Interner {
        let amount = Amount { count, bytes };
        Interner::new(Bounds { texts: amount, shapes: amount })
    }

    #[test]
    fn a_text_has_one_symbol() {
        let interner = interner(10, 100);
        let spec = interner.intern("spec").unwrap();
        assert_eq!(interner.intern("spec"), Some(spec));
        assert_eq!(interner.look_up("spec"), Some(spec));
        assert_ne!(interner.intern("status"), Some(spec));
        assert_eq!(interner.text(spec), "spec");
        assert_eq!(interner.len(), 2);
    }

    #[test]
    fn looking_up_adds_nothing() {
        let interner = interner(10, 100);
        assert_eq!(interner.look_up("spec"), None);
        assert!(interner.is_empty());
    }

    #[test]
    fn past_the_bound_of_count_nothing_is_added() {
        let interner = interner(2, 100);
        let first = interner.intern("a");
        assert!(first.is_some() && interner.intern("b").is_some());
        assert_eq!(interner.intern("c"), None);
        assert_eq!(interner.intern("a"), first);
        assert_eq!(interner.len(), 2);
    }

    #[test]
    fn past_the_bound_of_bytes_nothing_is_added() {
        let interner = interner(100, 8);
        assert!(interner.intern("12345678").is_some());
        assert_eq!(interner.intern("9"), None);
    }

    #[test]
    fn values_leave_room_for_keys() {
        let interner = interner(100, 1000);
        let add = |n: usize, used| interner.find_or_add(interner.hash(&n.to_string()), &n.to_string(), used).is_some();
        assert_eq!((0..200).filter(|n| add(*n, Use::Value)).count(), 75);
        assert_eq!((200..400).filter(|n| add(*n, Use::Key)).count(), 25);
    }

    #[test]
    fn a_value_is_added_for_the_second_origin() {
        let interner = interner(10, 100);
        assert_eq!(interner.add_second_sight(7, "value", 1), None);
        assert_eq!(interner.add_second_sight(7, "value", 1), None);
        assert!(interner.add_second_sight(7, "value", 2).is_some());
    }

    #[test]
    fn shapes_are_bounded_too() {
        let interner = interner(1, Shape::size_bytes(&[1, 2]));
        interner.add_shape_second_sight(7, &[1, 2], 1);
        assert_eq!(interner.find_shape(7, &[1, 2]), None);
        let shape = interner.add_shape_second_sight(7, &[1, 2], 2).unwrap();
        assert_eq!(interner.find_shape(7, &[1, 2]), Some(shape));
        assert_eq!(interner.shape(shape).keys(), [1, 2]);
        interner.add_shape_second_sight(8, &[3], 1);
        assert_eq!(interner.add_shape_second_sight(8, &[3], 2), None);
    }

    #[test]
    fn texts_longer_than_a_block_are_kept_whole() {
        let interner = interner(10, 1 << 20);
        let long = "x".repeat(2 * BLOCK);
        assert_eq!(interner.text(interner.intern(&long).unwrap()), long);
    }

    #[test]
    fn threads_agree_on_symbols() {
        let interner = interner(1 << 20, 1 << 24);
        let all = |interner: &Interner| -> Vec<_> {
            (0..10_000).map(|n| interner.intern(&format!("text-{n}")).unwrap()).collect()
        };
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| all(&interner));
            let right = scope.spawn(|| all(&interner));
            (left.join().unwrap(), right.join().unwrap())
        });
        assert_eq!(left, right);
        assert_eq!(interner.len(), 10_000);
    }

    #[test]
    fn the_size_covers_texts_and_tables() {
        let interner = interner(10, 100);
        let before = interner.size_bytes();
        interner.intern("spec");
        assert!(interner.size_bytes() >= before + BLOCK);
    }
}

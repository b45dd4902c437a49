//! Bytes from one place to another.

use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// Bytes of a vector.
const VECTOR: usize = size_of::<__m128i>();

/// Bytes that a step of a loop copies.
const STEP: usize = 4 * VECTOR;

/// Copies bytes between places that may overlap: whatever is in the way of a write was read before.
///
/// # Safety
///
/// `length` bytes can be read from `from` and written from `to` on.
#[inline(always)]
pub(crate) unsafe fn shift(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: both ends of what is copied lie in it, because each function is called for at least as many bytes as its two ends have
    // together, or for half of them, where the ends overlap.
    unsafe {
        match length {
            0 => {}
            1 => to.write(from.read()),
            2..4 => ends::<u16>(to, from, length),
            4..8 => ends::<u32>(to, from, length),
            8..16 => ends::<u64>(to, from, length),
            16..=32 => ends::<[__m128i; 1]>(to, from, length),
            33..=64 => ends::<[__m128i; 2]>(to, from, length),
            65..=128 => ends::<[__m128i; 4]>(to, from, length),
            // Wraps to something large where the target lies before the source.
            _ if (to as usize).wrapping_sub(from as usize) >= length => ascend(to, from, length),
            _ => descend(to, from, length),
        }
    }
}

/// What is read and written at once.
trait Piece: Copy {
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
}

macro_rules! word {
    ($word:ty) => {
        impl Piece for $word {
            #[inline(always)]
            unsafe fn load(from: *const u8) -> $word {
                // SAFETY: the caller says that so many bytes can be read.
                unsafe { from.cast::<$word>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller says that so many bytes can be written.
                unsafe { to.cast::<$word>().write_unaligned(self) }
            }
        }
    };
}

word!(u16);
word!(u32);
word!(u64);

impl<const COUNT: usize> Piece for [__m128i; COUNT] {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller says that so many bytes can be read.
        core::array::from_fn(|at| unsafe { _mm_loadu_si128(from.add(at * VECTOR).cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        for (at, vector) in self.into_iter().enumerate() {
            // SAFETY: the caller says that so many bytes can be written.
            unsafe { _mm_storeu_si128(to.add(at * VECTOR).cast(), vector) }
        }
    }
}

/// Copies one to two pieces: the first and the last, which may overlap.
///
/// # Safety
///
/// As for [`shift`], and `length` is at least the size of a piece and at most that of two.
#[inline(always)]
unsafe fn ends<P: Piece>(to: *mut u8, from: *const u8, length: usize) {
    let last = length - size_of::<P>();
    // SAFETY: both pieces lie within the length.
    unsafe {
        let (head, tail) = (P::load(from), P::load(from.add(last)));
        head.store(to);
        tail.store(to.add(last));
    }
}

/// Copies more than a step from the first byte on. Whatever of the source lies in the target lies before what is still to be read.
///
/// # Safety
///
/// As for [`shift`]. The target does not begin within the source.
unsafe fn ascend(to: *mut u8, from: *const u8, length: usize) {
    type Step = [__m128i; 4];
    let last = length - STEP;
    // SAFETY: each step lies within the length: it begins before the last one.
    unsafe {
        let tail = Step::load(from.add(last));
        let mut at = 0;
        while at < last {
            Step::load(from.add(at)).store(to.add(at));
            at += STEP;
        }
        tail.store(to.add(last));
    }
}

/// The same from the last byte on.
///
/// # Safety
///
/// As for [`shift`]. The target begins within the source.
unsafe fn descend(to: *mut u8, from: *const u8, length: usize) {
    type Step = [__m128i; 4];
    // SAFETY: each step lies within the length: it ends after the first one.
    unsafe {
        let head = Step::load(from);
        let mut end = length;
        while end > STEP {
            end -= STEP;
            Step::load(from.add(end)).store(to.add(end));
        }
        head.store(to);
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;

    /// Lengths around every border, and some beyond. Fewer in Miri, which takes a second for what takes a processor nothing.
    fn lengths() -> impl Iterator<Item = usize> {
        let most = if cfg!(miri) { 4096 } else { 10_000 };
        let step = if cfg!(miri) { 7 } else { 1 };
        let borders = [63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 511, 512, 513, 4095, 4096, 10_000];
        (0..=34).chain((35..300).step_by(step)).chain(borders).filter(move |length| *length <= most)
    }

    /// Copies within a buffer, and compares all of it with what the standard library makes of it.
    #[track_caller]
    fn check(buffer: &[u8], from: usize, to: usize, length: usize) {
        let (mut ours, mut theirs) = (buffer.to_vec(), buffer.to_vec());
        assert!(from.max(to) + length <= buffer.len());
        let start = ours.as_mut_ptr();
        // SAFETY: both places lie within the buffer.
        unsafe { shift(start.add(to), start.add(from), length) };
        theirs.copy_within(from..from + length, to);
        assert!(ours == theirs, "{length} bytes from {from} to {to}");
    }

    fn random_bytes(length: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(length as u64);
        let mut bytes = vec![0; length];
        random.fill(&mut bytes);
        bytes
    }

    #[test]
    fn every_length_is_copied_wherever_it_lies() {
        for length in lengths() {
            let buffer = random_bytes(2 * length + 64);
            for shift in 0..17 {
                check(&buffer, shift, length + 17 + shift / 3, length);
                check(&buffer, length + 17 + shift / 3, shift, length);
            }
        }
    }

    #[test]
    fn what_overlaps_is_copied_as_it_was() {
        for length in lengths() {
            let buffer = random_bytes(2 * length + 200);
            let near = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 127, 128, 129];
            for by in near.into_iter().chain([length / 2, length.saturating_sub(1), length, length + 1]) {
                check(&buffer, 3, 3 + by, length);
                check(&buffer, 3 + by, 3, length);
            }
        }
    }
}

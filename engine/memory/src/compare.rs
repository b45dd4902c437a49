//! Which of two texts of bytes is the larger one.

use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};

/// The bits of a mask whose bytes are all equal.
const ALL: i32 = 0xffff;

/// Below zero, zero or above, as the first byte that differs is smaller in the first text, is not there, or is larger.
///
/// # Safety
///
/// `length` bytes can be read from both on.
#[inline(always)]
pub(crate) unsafe fn order(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: whatever is read lies within the length: see each arm.
    unsafe {
        match length {
            0 => 0,
            1 => i32::from(one.read()) - i32::from(other.read()),
            // Two bytes from the first on, and two up to the last.
            2..4 => {
                let load = |from: *const u8| {
                    let head = from.cast::<u16>().read_unaligned().to_be();
                    u32::from(head) << 16 | u32::from(from.add(length - 2).cast::<u16>().read_unaligned().to_be())
                };
                compare(load(one).into(), load(other).into())
            }
            4..8 => {
                let load = |from: *const u8| {
                    let head = from.cast::<u32>().read_unaligned().to_be();
                    u64::from(head) << 32 | u64::from(from.add(length - 4).cast::<u32>().read_unaligned().to_be())
                };
                compare(load(one), load(other))
            }
            8..16 => {
                let load = |from: *const u8, at: usize| from.add(at).cast::<u64>().read_unaligned().to_be();
                match compare(load(one, 0), load(other, 0)) {
                    0 => compare(load(one, length - 8), load(other, length - 8)),
                    order => order,
                }
            }
            _ => long(one, other, length),
        }
    }
}

fn compare(one: u64, other: u64) -> i32 {
    i32::from(one > other) - i32::from(one < other)
}

/// The same for at least sixteen bytes.
///
/// # Safety
///
/// As for [`order`].
unsafe fn long(one: *const u8, other: *const u8, length: usize) -> i32 {
    let last = length - 16;
    let mut at = 0;
    loop {
        // SAFETY: sixteen bytes from here on lie within the length.
        let mask = unsafe {
            _mm_movemask_epi8(_mm_cmpeq_epi8(
                _mm_loadu_si128(one.add(at).cast()),
                _mm_loadu_si128(other.add(at).cast()),
            ))
        };
        if mask != ALL {
            let differs = at + mask.trailing_ones() as usize;
            // SAFETY: it is one of these sixteen.
            return unsafe { i32::from(one.add(differs).read()) - i32::from(other.add(differs).read()) };
        }
        if at == last {
            return 0;
        }
        at = (at + 16).min(last);
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[track_caller]
    fn check(one: &[u8], other: &[u8]) {
        // SAFETY: both have this length.
        let order = unsafe { order(one.as_ptr(), other.as_ptr(), one.len()) };
        assert_eq!(order.signum(), one.cmp(other) as i32, "{one:?} {other:?}");
    }

    #[test]
    fn the_first_difference_decides() {
        let mut random = fastrand::Rng::with_seed(7);
        for length in (0..=140).chain([1000, 4097]) {
            let mut bytes = vec![0; length + 17];
            random.fill(&mut bytes);
            for start in [0, 1, 16] {
                let one = &bytes[start..start + length];
                let mut other = one.to_vec();
                check(one, &other);
                for at in (0..length).take(200) {
                    other.copy_from_slice(one);
                    for by in [1, 127, 128, 255] {
                        other[at] = one[at].wrapping_add(by);
                        check(one, &other);
                        // What differs behind it does not count.
                        other[length - 1] ^= 0x55;
                        check(one, &other);
                    }
                }
            }
        }
    }
}

//! A list of keys that objects have in common, and where each key is in it.

use crate::tape;

#[derive(Debug)]
pub(crate) struct Shape {
    /// By the low bits of a key's symbol: the place of the only key that has them, or one of the values below. Symbols
    /// are numbered as they come, so that the keys of one object seldom share them.
    places: [u8; PLACES],
    keys: Box<[u32]>,
}

const PLACES: usize = 64;

/// No key has these bits.
const NONE: u8 = u8::MAX;

/// Several have.
const SEVERAL: u8 = u8::MAX - 1;

impl Shape {
    /// The longest list of keys that may be one.
    pub(crate) const MAX_KEYS: usize = 64;

    pub(super) fn new(keys: &[u32]) -> Shape {
        let mut places = [NONE; PLACES];
        for (place, key) in keys.iter().enumerate() {
            let entry = &mut places[slot(*key)];
            *entry = if *entry == NONE { place as u8 } else { SEVERAL };
        }
        Shape { places, keys: keys.into() }
    }

    /// The keys, as words.
    #[inline]
    pub(crate) fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Where a key is.
    #[inline]
    pub(crate) fn place(&self, key: u32) -> Option<usize> {
        match self.places[slot(key)] {
            NONE => None,
            SEVERAL => self.keys.iter().position(|found| *found == key),
            place => self.keys.get(usize::from(place)).is_some_and(|found| *found == key).then_some(usize::from(place)),
        }
    }

    pub(super) fn size_bytes(keys: &[u32]) -> usize {
        size_of::<Shape>() + size_of_val(keys)
    }
}

#[inline]
fn slot(key: u32) -> usize {
    tape::payload(key) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::tag;

    #[test]
    fn keys_are_found_whether_or_not_they_share_bits() {
        let key = |symbol| tape::word(tag::SYMBOL, symbol);
        let keys: Vec<u32> = (0..Shape::MAX_KEYS as u32).map(|n| key(n * 7 % 40 + n / 40 * 64)).collect();
        let shape = Shape::new(&keys);
        for (place, found) in keys.iter().enumerate() {
            assert_eq!(shape.place(*found), Some(place));
        }
        assert!(shape.places.contains(&SEVERAL) && shape.places.contains(&NONE));
        assert_eq!(shape.place(key(1000)), None);
        assert_eq!(shape.place(key(63)), None);
        assert_eq!(Shape::new(&[]).place(key(0)), None);
    }
}

//! How values lie in words of 32 bits: one word per value, with a tag in its low 4 bits and a payload above.
//!
//! ```text
//! null, false, true   nothing
//! small integer       28 bits, signed
//! integer, float      position of two words, the low one first
//! symbol              number of a text in the interner
//! short text          20 bits offset, 8 bits length
//! long text           position of two words: offset, length
//! array, object       6 bits count, 22 bits position of its keys and values
//! shaped object       13 bits number of a list of keys in the interner, 15 bits position of its values
//! wide array, object  position of a word with the count, which keys and values follow
//! wide shaped object  position of a word with the number of the list of keys, which values follow
//! ```
//!
//! The values of a container lie together, so that any of them is found in one step, and lie before the container
//! itself, because they are complete when it ends. The last word is the outermost value. A key is a word too: a symbol
//! or text.

const TAG_BITS: u32 = 4;
const TAG_MASK: u32 = (1 << TAG_BITS) - 1;

/// The largest payload: 28 bits.
const MAX_PAYLOAD: u32 = u32::MAX >> TAG_BITS;

const TEXT_LENGTH_BITS: u32 = 8;
const CONTAINER_POSITION_BITS: u32 = 22;
const SHAPED_POSITION_BITS: u32 = 15;

/// The smallest and the largest integer that fit the payload.
const MIN_SMALL_INT: i64 = -(1 << 27);
const MAX_SMALL_INT: i64 = (1 << 27) - 1;

/// The text that stands for a masked value.
pub const MASK: &str = "***";

pub(crate) mod tag {
    //! Plain numbers and not an enum: a word is read far more often than it is written, and a number needs no check.
    pub(crate) const NULL: u32 = 0;
    pub(crate) const FALSE: u32 = 1;
    pub(crate) const TRUE: u32 = 2;
    pub(crate) const SMALL_INT: u32 = 3;
    pub(crate) const INT: u32 = 4;
    pub(crate) const FLOAT: u32 = 5;
    pub(crate) const SYMBOL: u32 = 6;
    pub(crate) const SHORT_TEXT: u32 = 7;
    pub(crate) const LONG_TEXT: u32 = 8;
    // From here on, containers.
    pub(crate) const ARRAY: u32 = 9;
    pub(crate) const SHAPED: u32 = 10;
    pub(crate) const OBJECT: u32 = 11;
    pub(crate) const WIDE_ARRAY: u32 = 12;
    pub(crate) const WIDE_SHAPED: u32 = 13;
    pub(crate) const WIDE_OBJECT: u32 = 14;
}

#[inline]
pub(crate) const fn word(tag: u32, payload: u32) -> u32 {
    payload << TAG_BITS | tag
}

#[inline]
pub(crate) fn tag_of(word: u32) -> u32 {
    word & TAG_MASK
}

#[inline]
pub(crate) fn payload(word: u32) -> u32 {
    word >> TAG_BITS
}

/// The word of an integer that fits it.
#[inline]
pub(crate) fn small_int(value: i64) -> Option<u32> {
    (MIN_SMALL_INT..=MAX_SMALL_INT).contains(&value).then(|| word(tag::SMALL_INT, value as u32))
}

#[inline]
pub(crate) fn small_int_value(word: u32) -> i64 {
    // The shift of a signed number keeps its sign.
    i64::from(word as i32 >> TAG_BITS)
}

/// The word of a text, if its place fits.
#[inline]
pub(crate) fn short_text(offset: usize, length: usize) -> Option<u32> {
    pair(tag::SHORT_TEXT, offset, length, TEXT_LENGTH_BITS)
}

/// Offset and length of a short text.
#[inline]
pub(crate) fn short_text_place(word: u32) -> (usize, usize) {
    pair_of(word, TEXT_LENGTH_BITS)
}

/// The word of an array or object with its keys, if count and position fit.
#[inline]
pub(crate) fn container(tag: u32, count: usize, position: usize) -> Option<u32> {
    pair(tag, count, position, CONTAINER_POSITION_BITS)
}

/// Count and position of an array or object that is not wide.
#[inline]
pub(crate) fn container_place(word: u32) -> (usize, usize) {
    pair_of(word, CONTAINER_POSITION_BITS)
}

/// The word of an object with the keys of a shape, if shape and position fit.
#[inline]
pub(crate) fn shaped(shape: u32, position: usize) -> Option<u32> {
    pair(tag::SHAPED, shape as usize, position, SHAPED_POSITION_BITS)
}

/// Shape and position of a shaped object that is not wide.
#[inline]
pub(crate) fn shaped_place(word: u32) -> (u32, usize) {
    let (shape, position) = pair_of(word, SHAPED_POSITION_BITS);
    (shape as u32, position)
}

/// A word with two numbers, if both fit.
#[inline]
fn pair(tag: u32, high: usize, low: usize, low_bits: u32) -> Option<u32> {
    let fits = low < 1 << low_bits && high <= MAX_PAYLOAD as usize >> low_bits;
    fits.then(|| word(tag, (high << low_bits | low) as u32))
}

#[inline]
fn pair_of(word: u32, low_bits: u32) -> (usize, usize) {
    let payload = payload(word) as usize;
    (payload >> low_bits, payload & ((1 << low_bits) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_small_int(value: i64, fits: bool) {
        assert_eq!(small_int(value).map(small_int_value), fits.then_some(value));
    }

    #[test]
    fn integers_of_28_bits_fit_a_word() {
        check_small_int(0, true);
        check_small_int(-1, true);
        check_small_int(MAX_SMALL_INT, true);
        check_small_int(MIN_SMALL_INT, true);
        check_small_int(MAX_SMALL_INT + 1, false);
        check_small_int(MIN_SMALL_INT - 1, false);
        check_small_int(i64::MAX, false);
        check_small_int(i64::MIN, false);
    }

    #[test]
    fn short_text_within_the_first_megabyte_fits_a_word() {
        let fits = |offset, length| short_text(offset, length).map(short_text_place);
        assert_eq!(fits(0, 0), Some((0, 0)));
        assert_eq!(fits((1 << 20) - 1, 255), Some(((1 << 20) - 1, 255)));
        assert_eq!(fits(1 << 20, 255), None);
        assert_eq!(fits(0, 256), None);
    }

    #[test]
    fn containers_of_63_values_within_the_first_four_million_words_fit_a_word() {
        let fits = |count, position| container(tag::ARRAY, count, position).map(container_place);
        assert_eq!(fits(0, 0), Some((0, 0)));
        assert_eq!(fits(63, (1 << 22) - 1), Some((63, (1 << 22) - 1)));
        assert_eq!(fits(64, 0), None);
        assert_eq!(fits(0, 1 << 22), None);
    }

    #[test]
    fn shapes_up_to_8191_within_the_first_32767_words_fit_a_word() {
        let fits = |shape, position| shaped(shape, position).map(shaped_place);
        assert_eq!(fits(8191, 32767), Some((8191, 32767)));
        assert_eq!(fits(8192, 32767), None);
        assert_eq!(fits(8191, 32768), None);
    }
}

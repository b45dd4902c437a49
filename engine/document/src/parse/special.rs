//! Finds where the plain part of a string ends, sixteen bytes at a time.

use wide::u8x16;

const QUOTE: u8x16 = u8x16::new([b'"'; 16]);
const BACKSLASH: u8x16 = u8x16::new([b'\\'; 16]);
const LAST_CONTROL: u8x16 = u8x16::new([0x1F; 16]);

/// Position of the first quote, backslash or control character from a position on, or the length of the input.
#[inline]
pub(crate) fn find_special(input: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(chunk) = input.get(at..).and_then(|rest| rest.first_chunk()) {
        let bytes = u8x16::new(*chunk);
        let special = bytes.simd_eq(QUOTE) | bytes.simd_eq(BACKSLASH) | bytes.simd_le(LAST_CONTROL);
        let marks = special.to_bitmask();
        if marks != 0 {
            return at + marks.trailing_zeros() as usize;
        }
        at += chunk.len();
    }
    let rest = input.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in [1, 15, 16, 17, 33] {
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut input = vec![b'x'; length];
                    input[place] = byte;
                    let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(find_special(&input, 0), if is_special { place } else { length });
                    assert_eq!(find_special(&input, place + 1), length);
                }
            }
        }
    }
}

//! Finds where the plain part of a string ends, eight bytes at a time.

/// Position of the first quote, backslash or control character from a position on, or the length of the input.
#[inline]
pub(crate) fn find_special(input: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(chunk) = input.get(at..).and_then(|rest| rest.first_chunk()) {
        let marks = special_bytes(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = input.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len())
}

/// The highest bit of each byte that is special. Bytes above the first special one may be marked without being so.
#[inline]
fn special_bytes(bytes: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHEST: u64 = ONES << 7;
    // With its second bit turned, a quote comes right after the control characters, which stay below it.
    let quote_or_control = (bytes ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslash = (bytes ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (quote_or_control | backslash) & !bytes & HIGHEST
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

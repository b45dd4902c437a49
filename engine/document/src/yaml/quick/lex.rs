//! Where things begin and end on a line, eight bytes at a time. Each function takes a position and returns one.

/// Something that is for the general parser: because it is unusual, or because it is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declined;

pub(super) type Result<T> = std::result::Result<T, Declined>;

/// What begins a document.
pub(super) const MARKER: &str = "---";

const ONES: u64 = u64::MAX / 255;
const HIGHEST: u64 = ONES << 7;

/// The byte at a position, or zero at the end: no text that is read here has one.
#[inline(always)]
pub(in crate::yaml) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}

/// The position of the first byte that is no space.
#[inline(always)]
pub(in crate::yaml) fn spaces(bytes: &[u8], start: usize) -> usize {
    find(bytes, start, |bytes| above_zero(bytes ^ (ONES * u64::from(b' '))), |byte| byte != b' ')
}

/// The position of the line feed that ends a line, or the end.
#[inline]
pub(in crate::yaml) fn find_line_end(bytes: &[u8], start: usize) -> usize {
    find(bytes, start, |bytes| zero(bytes ^ (ONES * u64::from(b'\n'))), |byte| byte == b'\n')
}

/// The position of what may end a scalar without quotes: a line feed, a tab, `:` or `#`. Or the end.
#[inline]
pub(super) fn find_mark(bytes: &[u8], start: usize) -> usize {
    let marks = |bytes| {
        let colon = zero(bytes ^ (ONES * u64::from(b':')));
        let hash = zero(bytes ^ (ONES * u64::from(b'#')));
        colon | hash | control(bytes)
    };
    find(bytes, start, marks, |byte| matches!(byte, b':' | b'#' | 0..0x20))
}

/// Whether a line feed, a space or the end is at a position. A tab is not: where it would be a space is for the general parser
/// to tell.
#[inline(always)]
pub(in crate::yaml) fn is_space_or_end(bytes: &[u8], at: usize) -> bool {
    matches!(byte(bytes, at), b' ' | b'\n' | 0)
}

/// Whether the line that begins at a position begins a document.
#[inline]
pub(super) fn is_marker(bytes: &[u8], at: usize) -> bool {
    let rest = &bytes[at..];
    rest.starts_with(MARKER.as_bytes()) && matches!(byte(rest, 3), b' ' | b'\t' | b'\n' | 0)
}

/// Whether a scalar without quotes may begin with a byte. Those that may under conditions may not here, but for `-`.
#[inline(always)]
pub(super) fn begins_plain(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [true; 256];
        let mut byte = 0;
        while byte <= b' ' as usize {
            table[byte] = false;
            byte += 1;
        }
        let others = b"?:,[]{}#&*!|>'\"%@`\x7f";
        let mut at = 0;
        while at < others.len() {
            table[others[at] as usize] = false;
            at += 1;
        }
        table
    };
    TABLE[byte as usize]
}

/// The position of the first byte for which `is` holds, or the end. `marks` has the highest bit of the first such byte among
/// eight; bytes above it may be marked without being so.
#[inline(always)]
fn find(bytes: &[u8], start: usize, marks: impl Fn(u64) -> u64, is: impl Fn(u8) -> bool) -> usize {
    let mut at = start;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let marks = marks(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| is(*byte)).unwrap_or(rest.len())
}

/// Marks bytes that are zero.
#[inline(always)]
fn zero(bytes: u64) -> u64 {
    bytes.wrapping_sub(ONES) & !bytes & HIGHEST
}

/// Marks bytes that are not zero.
#[inline(always)]
fn above_zero(bytes: u64) -> u64 {
    (((bytes & !HIGHEST) + !HIGHEST) | bytes) & HIGHEST
}

/// Marks control characters of ASCII.
#[inline(always)]
fn control(bytes: u64) -> u64 {
    bytes.wrapping_sub(ONES * 0x20) & !bytes & HIGHEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_at_every_place() {
        for length in [1, 8, 15, 16, 17] {
            for place in 0..length {
                for byte in 0..=255u8 {
                    let with = |other: u8| {
                        let mut input = vec![other; length];
                        input[place] = byte;
                        input
                    };
                    let expected = |is: bool| if is { place } else { length };
                    let is_mark = matches!(byte, b':' | b'#' | 0..0x20);
                    assert_eq!(find_mark(&with(b'x'), 0), expected(is_mark));
                    assert_eq!(find_line_end(&with(b'x'), 0), expected(byte == b'\n'));
                    assert_eq!(spaces(&with(b' '), 0), expected(byte != b' '));
                    assert_eq!(find_mark(&with(b'x'), place + 1), length);
                }
            }
        }
    }

    #[test]
    fn a_marker_stands_alone() {
        for text in ["---", "---\n", "--- a", "---\ta"] {
            assert!(is_marker(text.as_bytes(), 0), "{text:?}");
        }
        for text in ["--", "----", "---a", "-- -", ""] {
            assert!(!is_marker(text.as_bytes(), 0), "{text:?}");
        }
    }
}

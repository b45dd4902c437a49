//! Which texts have no characters that YAML has ideas about.

/// Bytes that are looked at in one go. A text that is not ordinary is known after the first of them.
const CHUNK: usize = 4096;

/// Whether a text has line feeds and tabs only where it might have breaks, control characters and marks of byte order.
pub(super) fn are_ordinary(text: &str) -> bool {
    let mut is_ascii = true;
    for chunk in text.as_bytes().chunks(CHUNK) {
        // Without a way out in the middle, so that many bytes are compared at once.
        let (mut odd, mut above) = (false, 0);
        for byte in chunk {
            odd |= *byte < b' ' && *byte != b'\n' && *byte != b'\t' || *byte == 0x7f;
            above |= *byte;
        }
        if odd {
            return false;
        }
        is_ascii &= above.is_ascii();
    }
    is_ascii || text.chars().all(is_ordinary)
}

/// Whether a character beyond ASCII is nothing but text, to every version of YAML.
fn is_ordinary(char: char) -> bool {
    !matches!(char, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_odd_character_is_found_at_every_place() {
        for odd in ['\0', '\u{1}', '\r', '\u{b}', '\u{1f}', '\u{7f}', '\u{85}', '\u{2028}', '\u{feff}', '\u{ffff}'] {
            for before in [0, 1, 31, 32, CHUNK - 1, CHUNK, 2 * CHUNK] {
                let text = format!("{}{odd}b: ä\n", "a".repeat(before));
                assert!(!are_ordinary(&text), "{odd:?} behind {before} characters");
            }
        }
    }

    #[test]
    fn text_is_ordinary() {
        assert!(are_ordinary(""));
        assert!(are_ordinary("a: b\n\tc: ~ äöü€😀\u{a0}\u{fffd}"));
    }
}

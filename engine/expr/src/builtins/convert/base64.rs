//! Base64 with the standard alphabet and padding.

use crate::machine::{Buffer, Failure, Text};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(text: &mut Text<'_, '_>, bytes: &[u8]) -> Result<(), Failure> {
    text.reserve(bytes.len().div_ceil(3) * 4)?;
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
            text.push_char(if index <= chunk.len() { letter.into() } else { '=' })?;
        }
    }
    Ok(())
}

/// Decodes base64. Line breaks may be anywhere, padding must be there.
pub(super) fn decode(bytes: &mut Buffer<'_, '_, u8>, text: &[u8]) -> Result<(), Failure> {
    let wrong = |at: usize| Failure::new(format!("no base64 at byte {at}"));
    bytes.reserve(text.len() / 4 * 3)?;
    let mut letters = text.iter().enumerate().filter(|(_, letter)| !matches!(letter, b'\r' | b'\n'));
    loop {
        let (mut bits, mut count, mut padding) = (0_u32, 0, 0);
        while count + padding < 4 {
            let Some((at, letter)) = letters.next() else {
                return if count + padding == 0 { Ok(()) } else { Err(wrong(text.len())) };
            };
            match value(*letter) {
                Some(value) if padding == 0 => {
                    bits = bits << 6 | value;
                    count += 1;
                }
                None if *letter == b'=' && count >= 2 => padding += 1,
                _ => return Err(wrong(at)),
            }
        }
        let decoded = (bits << (6 * padding)).to_be_bytes();
        bytes.extend(&decoded[1..4 - padding])?;
        if padding > 0 {
            // Nothing may follow the padding.
            return letters.next().map_or(Ok(()), |(at, _)| Err(wrong(at)));
        }
    }
}

fn value(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

//! Steps over a value that nobody wants: all of JSON is checked, nothing is built.

use super::lex::{self, Result, byte, expected, space};

/// Takes the value that begins at a position, `depth` containers deep.
pub(super) fn skip(body: &[u8], start: usize, depth: usize, limit: usize) -> Result<usize> {
    // Whether each open container is an object.
    let mut containers: Vec<bool> = Vec::new();
    let mut is_object = false;
    let mut at = start;
    loop {
        // Before a value, or before its key.
        if is_object {
            at = entries(body, at)?;
        }
        at = match byte(body, at) {
            b'"' => lex::string(body, at + 1)?.end + 1,
            opening @ (b'{' | b'[') => {
                if depth + containers.len() >= limit {
                    return Err(lex::too_deep(body, at, limit));
                }
                // Both closing brackets are two after their opening ones.
                let first = space(body, at + 1);
                if byte(body, first) != opening + 2 {
                    containers.push(is_object);
                    is_object = opening == b'{';
                    at = first;
                    continue;
                }
                first + 1
            }
            b't' => lex::literal(body, at, "true")?,
            b'f' => lex::literal(body, at, "false")?,
            b'n' => lex::literal(body, at, "null")?,
            b'-' | b'0'..=b'9' => lex::number(body, at)?.1,
            _ => return Err(expected(body, at, "a value")),
        };
        // After a value: end what ends here, until there is another one.
        loop {
            if containers.is_empty() {
                return Ok(at);
            }
            at = space(body, at);
            match byte(body, at) {
                b',' => {
                    at = space(body, at + 1);
                    break;
                }
                b'}' if is_object => {}
                b']' if !is_object => {}
                _ if is_object => return Err(expected(body, at, "`,` or `}`")),
                _ => return Err(expected(body, at, "`,` or `]`")),
            }
            is_object = containers.pop().unwrap_or_default();
            at += 1;
        }
    }
}

/// Takes a key and its colon, after any number of entries that are empty objects: managed fields are mostly those.
#[inline]
fn entries(body: &[u8], start: usize) -> Result<usize> {
    let mut at = start;
    loop {
        if byte(body, at) != b'"' {
            return Err(expected(body, at, "a key in quotes"));
        }
        let after = lex::string(body, at + 1)?.end + 1;
        if body.get(after..).and_then(|rest| rest.first_chunk()) == Some(b":{},") {
            at = space(body, after + 4);
            continue;
        }
        let colon = space(body, after);
        if byte(body, colon) != b':' {
            return Err(expected(body, colon, "`:`"));
        }
        return Ok(space(body, colon + 1));
    }
}

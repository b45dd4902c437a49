//! Where the elements of a list begin, without reading any of them.

use super::{
    lex::{self, byte, space},
    skip::skip,
};

/// The lines of the elements of a list that is a field of the outermost object, the last one if there are several. Nothing if
/// there is none, or if the body is no JSON up to its end. Only line feeds are counted.
pub(crate) fn element_lines(body: &[u8], field: &str, depth_limit: usize) -> Option<Vec<usize>> {
    let mut lines = None;
    let mut at = space(body, 0);
    if byte(body, at) != b'{' {
        return None;
    }
    loop {
        at = space(body, at + 1);
        if byte(body, at) != b'"' {
            return None;
        }
        let key = at + 1..lex::string(body, at + 1).ok()?.end;
        let colon = space(body, key.end + 1);
        if byte(body, colon) != b':' {
            return None;
        }
        let value = space(body, colon + 1);
        at = if body[key] == *field.as_bytes() && byte(body, value) == b'[' {
            let (found, after) = elements(body, value, depth_limit)?;
            lines = Some(found);
            after
        } else {
            skip(body, value, 1, depth_limit).ok()?
        };
        at = space(body, at);
        match byte(body, at) {
            b',' => {}
            b'}' => return lines,
            _ => return None,
        }
    }
}

/// The lines of the elements of a list, and the position behind it.
fn elements(body: &[u8], start: usize, depth_limit: usize) -> Option<(Vec<usize>, usize)> {
    let mut lines = Vec::new();
    let (mut counted, mut line) = (0, 1);
    let mut at = space(body, start + 1);
    if byte(body, at) == b']' {
        return Some((lines, at + 1));
    }
    loop {
        line += body[counted..at].iter().filter(|byte| **byte == b'\n').count();
        counted = at;
        lines.push(line);
        at = space(body, skip(body, at, 2, depth_limit).ok()?);
        match byte(body, at) {
            b',' => at = space(body, at + 1),
            b']' => return Some((lines, at + 1)),
            _ => return None,
        }
    }
}

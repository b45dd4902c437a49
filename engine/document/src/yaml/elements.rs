//! The lines of the elements of a list. Found again in the text: only who has something to say about an element asks.

use granit_parser::{Event, Parser};

use super::{
    position,
    quick::lex::{byte, find_line_end, is_space_or_end, spaces},
};
use crate::{options::DocumentLimits, parse};

/// The lines of the elements of a list that is a field of the first document of a text, and that has so many of them.
///
/// JSON is stepped over, and the dashes of YAML are looked for: both take a fraction of the time of reading. Where that does not
/// find as many elements as there are, the text is read by the general parser.
pub fn element_lines(text: &str, field: &str, count: usize) -> Vec<usize> {
    // Other line breaks are for the general parser to count.
    let quick = match text.trim_start().as_bytes().first() {
        _ if text.contains('\r') => None,
        Some(b'{') => parse::element_lines(text.as_bytes(), field, DocumentLimits::default().depth),
        _ => dash_lines(text.as_bytes(), field),
    };
    quick.filter(|lines| lines.len() == count).unwrap_or_else(|| parsed_lines(text, field))
}

/// The lines of the elements of a sequence with dashes below a key of the outermost mapping. The text is known to be YAML.
fn dash_lines(bytes: &[u8], field: &str) -> Option<Vec<usize>> {
    let mut lines = Vec::new();
    // The columns of the outermost keys and of the dashes, and whether a dash had nothing behind it.
    let (mut outermost, mut dashes, mut awaits) = (None, None, false);
    let mut is_in_list = false;
    let (mut at, mut line) = (0, 0);
    while at < bytes.len() {
        let first = spaces(bytes, at);
        let column = first - at;
        let end = find_line_end(bytes, first);
        line += 1;
        at = end + 1;
        if matches!(byte(bytes, first), b'#' | b'\n' | 0) {
            continue;
        }
        let is_dash = bytes[first] == b'-' && is_space_or_end(bytes, first + 1);
        let outermost = *outermost.get_or_insert(column);
        if !is_in_list {
            is_in_list = column == outermost && is_key(&bytes[first..end], field);
        } else if is_dash && dashes.is_none_or(|dashes| dashes == column) && column >= outermost {
            dashes = Some(column);
            lines.push(line);
            awaits = is_nothing(&bytes[first + 1..end]);
        } else if dashes? >= column {
            break;
        } else if awaits {
            // The element begins on a line behind its dash.
            *lines.last_mut()? = line;
            awaits = false;
        }
    }
    is_in_list.then_some(lines)
}

/// Whether a line is a key with its value on other lines.
fn is_key(line: &[u8], field: &str) -> bool {
    let rest = line.strip_prefix(field.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
    rest.is_some_and(is_nothing)
}

/// Whether the rest of a line is empty or a comment.
fn is_nothing(rest: &[u8]) -> bool {
    let first = spaces(rest, 0);
    first == rest.len() || first > 0 && rest[first] == b'#'
}

/// The lines of the elements of a list, as the general parser has them.
fn parsed_lines(text: &str, field: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    // How many containers are open, how many keys and values the outermost has had, and whether the list is open.
    let (mut depth, mut count, mut is_in_list, mut is_next) = (0_usize, 0_usize, false, false);
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let (is_value, opens) = match &event {
            Event::Scalar(..) | Event::Alias(_) => (true, false),
            Event::SequenceStart(..) | Event::MappingStart(..) => (true, true),
            Event::SequenceEnd | Event::MappingEnd => {
                depth -= 1;
                is_in_list &= depth > 1;
                (false, false)
            }
            Event::DocumentEnd => break,
            _ => (false, false),
        };
        if is_value && depth == 1 {
            is_in_list = is_next && opens;
            is_next = count % 2 == 0 && matches!(&event, Event::Scalar(text, ..) if *text == field);
            count += 1;
        } else if is_value && depth == 2 && is_in_list {
            lines.push(position(&span.start).line);
        }
        depth += usize::from(opens);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the lines, and what the general parser has with them.
    #[track_caller]
    fn check(text: &str, expected: &[usize]) {
        assert_eq!(element_lines(text, "items", expected.len()), expected);
        assert_eq!(parsed_lines(text, "items"), expected);
    }

    /// The same for what is found without the general parser.
    #[track_caller]
    fn check_quick(text: &str, expected: &[usize]) {
        let is_json = text.trim_start().starts_with('{');
        let quick = if is_json {
            parse::element_lines(text.as_bytes(), "items", 100)
        } else {
            dash_lines(text.as_bytes(), "items")
        };
        assert_eq!(quick.as_deref(), Some(expected));
        check(text, expected);
    }

    #[test]
    fn elements_of_blocks_have_lines() {
        check_quick(
            "kind: List\nother: [1]\nitems:\n- a: [1, 2]\n- b\n-\n  c: {items: [3]}\nlast: [4]\n- no\n",
            &[4, 5, 7],
        );
        check_quick("items: # all\n\n  # one\n  - a: |\n      items:\n      - b\n  # two\n  - - c\n    - d\n", &[4, 8]);
        check_quick("  items:\n  -   # one\n\n    a: 1\n  -\n  - b:\n    - c\n---\nitems:\n- d\n", &[4, 5, 6]);
        check_quick("a:\n  items:\n  - b\nitems:\n- c\n", &[5]);
    }

    #[test]
    fn elements_of_json_have_lines() {
        check_quick("{\"items\": [\n{},\n{}]}", &[2, 3]);
        check_quick(
            "\n{\"a\": {\"items\": [1]},\n \"items\" : [ {\"b\": [\"\\\"]\"\n]}, 2\n,\n[3] ], \"c\": 1}",
            &[3, 4, 6],
        );
        check_quick("{\"items\": []}", &[]);
    }

    #[test]
    fn what_cannot_be_found_quickly_is_read() {
        check("items: 1", &[]);
        check("items: [\n1,\n2]", &[2, 3]);
        check("\"items\":\n- 1\n- 2\n", &[2, 3]);
        check("items:\r\n- 1\r\n- 2\r\n", &[2, 3]);
        check("{items: [1,\n2]}", &[1, 2]);
        // A line that looks like an element.
        check("items:\n- {a: 'b\n- c'}\n- d\n", &[2, 4]);
    }
}

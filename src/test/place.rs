//! Where a mistake is in a YAML text that was read as JSON.

use portal_document::{Position, Step};

/// A container that a place in JSON is in.
enum Open {
    /// An object, and the key that was read last.
    Object(Option<String>),
    /// An array, and the number of the element.
    Array(usize),
}

/// The place in the YAML text of the value or key that is read last before this offset of its JSON.
pub(super) fn place(text: &str, json: &str, offset: usize) -> Option<Position> {
    let way = way_to(json, offset);
    let steps: Vec<Step<'_>> = way
        .iter()
        .filter_map(|open| match open {
            Open::Object(key) => key.as_deref().map(Step::Field),
            Open::Array(index) => Some(Step::Index(*index)),
        })
        .collect();
    portal_document::locate(text, 0, &steps)
}

fn way_to(json: &str, offset: usize) -> Vec<Open> {
    let mut way = Vec::new();
    let mut rest = &json[..offset.min(json.len())];
    while let Some(first) = rest.bytes().next() {
        let mut length = 1;
        match (first, way.last_mut()) {
            (b'{', _) => way.push(Open::Object(None)),
            (b'[', _) => way.push(Open::Array(0)),
            (b'}' | b']', _) => {
                way.pop();
            }
            (b',', Some(Open::Array(index))) => *index += 1,
            (b',', Some(Open::Object(key))) => *key = None,
            (b'"', last) => {
                let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let text = texts.next().and_then(Result::ok);
                // A text that the offset cuts off is the last thing before it.
                length = if text.is_some() { texts.byte_offset() } else { rest.len() };
                if let Some(Open::Object(key @ None)) = last {
                    *key = text;
                }
            }
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    way
}

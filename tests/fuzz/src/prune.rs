//! A document without everything that a program does not say to read: the program must not notice.

use portal_document::{Document, Node, Options, View};
use portal_expr::{Facts, Segment, Slot};

/// Leaves in the document what the facts say of this root.
pub(crate) fn prune(document: &Document, slot: Slot, facts: &Facts) -> Document {
    let reads: Vec<&[Segment]> =
        facts.reads.iter().filter(|read| read.root == slot).map(|read| read.path.as_slice()).collect();
    let mut json = Vec::new();
    write(document.root(), &reads, &mut json);
    Document::parse(&json, &Options::default()).expect("what was written is JSON")
}

/// Writes what these paths lead to.
fn write(node: Node, reads: &[&[Segment]], json: &mut Vec<u8>) {
    // A value that has another type than the path expects is seen for what it is.
    let fits = |read: &&[Segment]| {
        matches!(
            (read.first(), node.view()),
            (Some(Segment::Field(_)), View::Object(_)) | (Some(Segment::Each), View::Array(_))
        )
    };
    if reads.iter().any(|read| !fits(read)) {
        return node.write_json(json);
    }
    match node.view() {
        View::Object(object) => {
            json.push(b'{');
            for (key, value) in object.iter() {
                let below: Vec<_> = reads.iter().filter_map(|read| after_field(read, key)).collect();
                if !below.is_empty() {
                    separate(json);
                    json.extend(serde_json::to_vec(key).expect("text is JSON"));
                    json.push(b':');
                    write(value, &below, json);
                }
            }
            json.push(b'}');
        }
        View::Array(array) => {
            let below: Vec<_> = reads.iter().map(|read| &read[1..]).collect();
            json.push(b'[');
            for value in array.iter() {
                separate(json);
                match below.is_empty() {
                    true => json.extend(b"null"),
                    false => write(value, &below, json),
                }
            }
            json.push(b']');
        }
        _ => json.extend(b"null"),
    }
}

/// What is left of a path behind the field of this name.
fn after_field<'read>(read: &&'read [Segment], key: &str) -> Option<&'read [Segment]> {
    match read.split_first() {
        Some((Segment::Field(name), rest)) if name == key => Some(rest),
        _ => None,
    }
}

fn separate(json: &mut Vec<u8>) {
    if !matches!(json.last(), None | Some(b'{' | b'[' | b':')) {
        json.push(b',');
    }
}

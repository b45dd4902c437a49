//! Keys that an object has twice: the last one wins, as in the API server.

use crate::{
    document,
    intern::Interner,
    tape::{self, tag},
};

/// Keys of which each is compared with each. More are sorted.
const COMPARED: usize = 16;

/// Whether a key that is a symbol is there twice, among few keys.
pub(crate) fn has_equal(keys: &[u32]) -> bool {
    keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key))
}

/// Removes all but the last of each key, with their values, from the end of two lists.
///
/// By sorting when there are many: comparing each with each would let one object of a hostile body take minutes.
pub(crate) fn remove(keys: &mut Vec<u32>, values: &mut Vec<u32>, first_key: usize, words: &[u32], text: &str) {
    let own = &keys[first_key..];
    let are_symbols = own.iter().all(|key| tape::tag_of(*key) == tag::SYMBOL);
    if own.len() <= COMPARED && are_symbols && !has_equal(own) {
        return;
    }
    let replaced = replaced(own, words, text);
    let first_value = values.len() - own.len();
    let mut kept = 0;
    for at in 0..own.len() {
        if replaced.binary_search(&at).is_err() {
            keys[first_key + kept] = keys[first_key + at];
            values[first_value + kept] = values[first_value + at];
            kept += 1;
        }
    }
    keys.truncate(first_key + kept);
    values.truncate(first_value + kept);
}

/// Which keys come again later, in order.
fn replaced(keys: &[u32], words: &[u32], text: &str) -> Vec<usize> {
    let interner = Interner::global();
    let text_of = |at: usize| document::text_of(keys[at], words, text);
    let mut sorted: Vec<u64> =
        (0..keys.len()).map(|at| u64::from(interner.hash(text_of(at))) << 32 | at as u64).collect();
    sorted.sort_unstable();

    let mut replaced = Vec::new();
    for same_hash in sorted.chunk_by(|left, right| left >> 32 == right >> 32) {
        // Two different keys with one hash are rare, so that this list has one element.
        let mut kept: Vec<&str> = Vec::new();
        for at in same_hash.iter().rev().map(|key| *key as u32 as usize) {
            if kept.contains(&text_of(at)) {
                replaced.push(at);
            } else if same_hash.len() > 1 {
                kept.push(text_of(at));
            }
        }
    }
    replaced.sort_unstable();
    replaced
}

#[cfg(test)]
mod tests {
    use crate::{Document, Interning, Options};

    /// Builds an object of keys with their positions as values, and compares what is left.
    #[track_caller]
    fn check(keys: &[&str], expected: &[(&str, usize)]) {
        let entries: Vec<_> = keys.iter().enumerate().map(|(at, key)| format!(r#""{key}":{at}"#)).collect();
        let body = format!("{{{}}}", entries.join(","));
        let left: Vec<_> = expected.iter().map(|(key, at)| format!(r#""{key}":{at}"#)).collect();
        for interning in [Interning::LookUpOnly, Interning::Add, Interning::Add, Interning::LookUpOnly] {
            let options = Options { interning, ..Options::default() };
            let document = Document::parse(body.as_bytes(), &options).unwrap();
            assert_eq!(document.to_json(), format!("{{{}}}", left.join(",")));
            assert_eq!(document.root().len(), left.len());
        }
    }

    #[test]
    fn the_last_of_each_key_stays() {
        check(&["d-a", "d-b", "d-c"], &[("d-a", 0), ("d-b", 1), ("d-c", 2)]);
        check(&["d-a", "d-a"], &[("d-a", 1)]);
        check(&["d-a", "d-b", "d-a", "d-b", "d-c", "d-a"], &[("d-b", 3), ("d-c", 4), ("d-a", 5)]);
        check(&["", "d-a", ""], &[("d-a", 1), ("", 2)]);
    }

    #[test]
    fn many_keys_are_no_different() {
        let names: Vec<_> = (0..50).map(|n| format!("d-{n}")).collect();
        let mut keys: Vec<&str> = names.iter().map(String::as_str).collect();
        keys.extend(["d-0", "d-49"]);
        let mut expected: Vec<_> = keys.iter().copied().zip(0..).take(49).skip(1).collect();
        expected.extend([("d-0", 50), ("d-49", 51)]);
        check(&keys, &expected);
    }

    #[test]
    fn text_and_symbols_are_the_same_key() {
        let key = "a key that gets its symbol between its two occurrences";
        // Too long to be a symbol at all, next to keys that are.
        let long = "d".repeat(400);
        check(&["d-a", key, &long, key, &long], &[("d-a", 0), (key, 3), (&long, 4)]);
    }
}

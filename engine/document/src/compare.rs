//! Whether two values, or the values that a path selects in two documents, are the same.

use crate::{
    node::{Entries, Node, Object, View},
    path::{Path, Segment},
};

/// Entries of an object from which on it is sorted before keys are looked for in another order than its own.
const SORTED_ENTRIES: usize = 32;

impl<'d> Node<'d> {
    /// Whether both are the same JSON value: the order of keys does not matter, and `1` is the same number as `1.0`.
    pub fn same(self, other: Node) -> bool {
        let mut pairs = vec![(self, other)];
        while let Some((left, right)) = pairs.pop() {
            // Within one document equal words are equal values: the old and the new object of a review have many in common.
            if left.is_identical(right) {
                continue;
            }
            match (left.view(), right.view()) {
                (View::Array(left), View::Array(right)) if left.len() == right.len() => {
                    pairs.extend(left.iter().zip(right.iter()));
                }
                (View::Object(left), View::Object(right)) if left.len() == right.len() => {
                    let mut finder = Finder::new(right);
                    for (key, left) in left.iter() {
                        let Some(right) = finder.find(key) else { return false };
                        pairs.push((left, right));
                    }
                }
                (left, right) if is_same_scalar(left, right) => {}
                _ => return false,
            }
        }
        true
    }

    /// Whether a path selects the same values in both. A value that one of them does not have is the same only as a
    /// value that the other does not have either.
    pub fn same_at(self, other: Node, path: &Path) -> bool {
        // What is left to compare, with the number of the segment that comes next.
        let mut pairs = vec![(Some(self), Some(other), 0)];
        while let Some((left, right, number)) = pairs.pop() {
            let Some(segment) = path.segments().get(number) else {
                match (left, right) {
                    (Some(left), Some(right)) if left.same(right) => continue,
                    (None, None) => continue,
                    _ => return false,
                }
            };
            match segment {
                Segment::Field(key) => {
                    let [left, right] = [left, right].map(|node| node.and_then(|node| node.get(key)));
                    if left.is_some() || right.is_some() {
                        pairs.push((left, right, number + 1));
                    }
                }
                Segment::AnyIndex => {
                    let [left, right] = [left, right].map(|node| node.and_then(Node::as_array));
                    let [mut left, mut right] =
                        [left, right].map(|array| array.into_iter().flat_map(|array| array.iter()));
                    loop {
                        match (left.next(), right.next()) {
                            (None, None) => break,
                            (left, right) => pairs.push((left, right, number + 1)),
                        }
                    }
                }
                Segment::AnyKey => {
                    let [left, right] = [left, right].map(|node| node.and_then(Node::as_object));
                    push_entries(left, right, |left, right| pairs.push((left, right, number + 1)));
                }
            }
        }
        true
    }
}

/// Pairs the entries of two objects, each of which may be missing as a whole.
fn push_entries<'l, 'r>(
    left: Option<Object<'l>>,
    right: Option<Object<'r>>,
    mut push: impl FnMut(Option<Node<'l>>, Option<Node<'r>>),
) {
    let mut in_right = right.map(Finder::new);
    for (key, left) in left.into_iter().flat_map(Object::iter) {
        push(Some(left), in_right.as_mut().and_then(|finder| finder.find(key)));
    }
    let mut in_left = left.map(Finder::new);
    for (key, right) in right.into_iter().flat_map(Object::iter) {
        if in_left.as_mut().and_then(|finder| finder.find(key)).is_none() {
            push(None, Some(right));
        }
    }
}

fn is_same_scalar(left: View, right: View) -> bool {
    match (left, right) {
        (View::Null, View::Null) => true,
        (View::Bool(left), View::Bool(right)) => left == right,
        (View::Int(left), View::Int(right)) => left == right,
        (View::Float(left), View::Float(right)) => left == right,
        (View::Int(int), View::Float(float)) | (View::Float(float), View::Int(int)) => is_same_number(int, float),
        (View::Str(left), View::Str(right)) => left == right,
        _ => false,
    }
}

/// Whether a float has exactly the value of an integer, also where floats have gaps between integers.
fn is_same_number(int: i64, float: f64) -> bool {
    // The largest integer becomes the float above it, which would come back as the largest integer.
    int as f64 == float && float < i64::MAX as f64 && float as i64 == int
}

/// Finds the entries of an object. Quick when they are asked for in the order that they have, which two versions of one
/// object mostly do, and never slower than sorting them.
struct Finder<'d> {
    object: Object<'d>,
    in_order: Entries<'d>,
    sorted: Option<Vec<(&'d str, Node<'d>)>>,
}

impl<'d> Finder<'d> {
    fn new(object: Object<'d>) -> Finder<'d> {
        Finder { object, in_order: object.iter(), sorted: None }
    }

    fn find(&mut self, key: &str) -> Option<Node<'d>> {
        if let Some((next, value)) = self.in_order.next()
            && next == key
        {
            return Some(value);
        }
        if self.object.len() < SORTED_ENTRIES {
            return self.object.get_str(key);
        }
        let sorted = self.sorted.get_or_insert_with(|| {
            let mut entries: Vec<_> = self.object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            entries
        });
        let found = sorted.binary_search_by(|(found, _)| (*found).cmp(key)).ok()?;
        Some(sorted[found].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Interning, Options};

    fn parse(body: &str, interning: Interning) -> Document {
        Document::parse(body.as_bytes(), &Options { interning, ..Options::default() }).unwrap()
    }

    #[track_caller]
    fn check(left: &str, right: &str, expected: bool) {
        for interning in [Interning::LookUpOnly, Interning::Add] {
            let (left, right) = (parse(left, Interning::LookUpOnly), parse(right, interning));
            assert_eq!(left.root().same(right.root()), expected);
            assert_eq!(right.root().same(left.root()), expected);
            assert!(left.root().same(left.root()) && right.root().same(right.root()));
        }
    }

    #[track_caller]
    fn check_at(path: &str, left: &str, right: &str, expected: bool) {
        let path = Path::parse(path).unwrap();
        let (left, right) = (parse(left, Interning::Add), parse(right, Interning::Add));
        assert_eq!(left.root().same_at(right.root(), &path), expected);
        assert_eq!(right.root().same_at(left.root(), &path), expected);
    }

    #[test]
    fn values_are_compared_deeply() {
        check(r#"{"a":[1,{"b":"c"}]}"#, r#"{"a":[1,{"b":"c"}]}"#, true);
        check(r#"{"a":[1,{"b":"c"}]}"#, r#"{"a":[1,{"b":"d"}]}"#, false);
        check("[1,2]", "[2,1]", false);
        check("[1]", "[1,1]", false);
        check("[]", "{}", false);
        check("null", "false", false);
        check(r#""1""#, "1", false);
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        check(r#"{"a":1,"b":2,"c":3}"#, r#"{"c":3,"a":1,"b":2}"#, true);
        check(r#"{"a":1,"b":2}"#, r#"{"a":1,"c":2}"#, false);
        check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false);
    }

    #[test]
    fn replaced_keys_do_not_matter() {
        check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#, true);
        check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"b":2}"#, false);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        check("1", "1.0", true);
        check("0", "-0.0", true);
        check("1", "1.5", false);
        check("9007199254740993", "9007199254740992.0", false);
        check("9007199254740992", "9007199254740992.0", true);
        check("9223372036854775807", "9223372036854775808", false);
        check("-9223372036854775808", "-9223372036854775808.0", true);
    }

    #[test]
    fn many_keys_in_another_order_are_found() {
        let entries = |keys: &mut dyn Iterator<Item = usize>| -> String {
            let entries: Vec<_> = keys.map(|n| format!(r#""key-{n}":{n}"#)).collect();
            format!("{{{}}}", entries.join(","))
        };
        let forwards = entries(&mut (0..20_000));
        check(&forwards, &entries(&mut (0..20_000).rev()), true);
        check(&forwards, &entries(&mut (1..20_001).rev()), false);
    }

    #[test]
    fn only_what_a_path_selects_is_compared() {
        check_at("spec.a", r#"{"spec":{"a":1,"b":2}}"#, r#"{"spec":{"a":1,"b":3},"c":4}"#, true);
        check_at("spec.b", r#"{"spec":{"a":1,"b":2}}"#, r#"{"spec":{"a":1,"b":3}}"#, false);
        check_at("spec", r#"{"spec":{"a":1,"b":2}}"#, r#"{"spec":{"b":2,"a":1}}"#, true);
    }

    #[test]
    fn what_is_missing_is_the_same_as_what_is_missing() {
        check_at("spec.a", "{}", "{}", true);
        check_at("spec.a", "{}", r#"{"spec":{"b":1}}"#, true);
        check_at("spec.a", "{}", r#"{"spec":7}"#, true);
        check_at("spec.a", r#"{"spec":{}}"#, r#"{"spec":{"a":null}}"#, false);
    }

    #[test]
    fn elements_are_compared_by_index() {
        check_at("list[*].image", r#"{"list":[{"image":"a","x":1}]}"#, r#"{"list":[{"image":"a","x":2}]}"#, true);
        check_at(
            "list[*].image",
            r#"{"list":[{"image":"a"},{"image":"b"}]}"#,
            r#"{"list":[{"image":"b"},{"image":"a"}]}"#,
            false,
        );
        check_at("list[*].image", r#"{"list":[{"image":"a"}]}"#, r#"{"list":[{"image":"a"},{"image":"b"}]}"#, false);
        check_at("list[*].image", r#"{"list":[{"image":"a"}]}"#, r#"{"list":[{"image":"a"},{}]}"#, true);
        check_at("list[*]", r#"{"list":[]}"#, r#"{"list":{"a":1}}"#, true);
        check_at("list[*]", r#"{"list":[]}"#, r#"{"list":[null]}"#, false);
    }

    #[test]
    fn entries_are_compared_by_key() {
        check_at("data.*", r#"{"data":{"a":1,"b":2}}"#, r#"{"data":{"b":2,"a":1}}"#, true);
        check_at("data.*", r#"{"data":{"a":1}}"#, r#"{"data":{"a":1,"b":2}}"#, false);
        check_at("data.*", r#"{"data":{"a":1}}"#, r#"{"data":{"b":1}}"#, false);
        check_at("data.*.x", r#"{"data":{"a":{"x":1}}}"#, r#"{"data":{"a":{"x":1,"y":2},"b":{}}}"#, true);
    }

    #[test]
    fn a_path_without_segments_selects_all() {
        let (left, right) = (parse("[1]", Interning::Add), parse("[2]", Interning::Add));
        assert!(left.root().same_at(left.root(), &Path::new([])));
        assert!(!left.root().same_at(right.root(), &Path::new([])));
    }
}

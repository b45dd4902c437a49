//! Reading a document: handles that are copied freely, and nothing that allocates.

use std::{ops::Range, slice};

use crate::{
    document::Document,
    intern::Interner,
    key::Key,
    tape::{self, tag},
};

/// A value in a document.
#[derive(Debug, Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document,
    position: u32,
}

/// A key was looked for in a value that has none: a string, a number, a bool or an array.
#[derive(Debug, Clone, Copy, Eq, PartialEq)]
pub struct NoObject;

/// What a [`Node`] is.
#[derive(Debug, Clone, Copy)]
pub enum View<'d> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that is written as an integer and fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Str(&'d str),
    /// An array.
    Array(Array<'d>),
    /// An object.
    Object(Object<'d>),
}

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Array<'d> {
    document: &'d Document,
    first: usize,
    count: usize,
}

/// The entries of an object, in the order of the input. When the input had a key twice, only the last is here.
#[derive(Debug, Clone, Copy)]
pub struct Object<'d> {
    document: &'d Document,
    /// Position of the first value. There are as many values as keys.
    first: usize,
    /// Keys of the interner if the object has a shape, otherwise of the document.
    keys: &'d [u32],
    /// Whether a key may be something else than a symbol.
    has_text: bool,
}

/// Iterates over the elements of an [`Array`].
#[derive(Debug, Clone)]
pub struct Elements<'d> {
    document: &'d Document,
    positions: Range<usize>,
}

/// Iterates over the keys and values of an [`Object`].
#[derive(Debug, Clone)]
pub struct Entries<'d> {
    document: &'d Document,
    value: usize,
    keys: slice::Iter<'d, u32>,
}

impl<'d> Node<'d> {
    #[inline]
    pub(crate) fn new(document: &'d Document, position: usize) -> Node<'d> {
        Node { document, position: position as u32 }
    }

    /// What the value is.
    #[inline]
    pub fn view(self) -> View<'d> {
        let word = self.word();
        match tape::tag_of(word) {
            tag::FALSE => View::Bool(false),
            tag::TRUE => View::Bool(true),
            tag::SMALL_INT => View::Int(tape::small_int_value(word)),
            tag::INT => View::Int(self.bits(word) as i64),
            tag::FLOAT => View::Float(f64::from_bits(self.bits(word))),
            tag::SYMBOL | tag::SHORT_TEXT | tag::LONG_TEXT => View::Str(self.document.text_of(word)),
            tag::ARRAY | tag::WIDE_ARRAY => View::Array(self.array(word)),
            tag::SHAPED | tag::WIDE_SHAPED | tag::OBJECT | tag::WIDE_OBJECT => View::Object(self.object(word)),
            _ => View::Null,
        }
    }

    /// The value of a key. Nothing when it is missing or this is no object.
    #[inline]
    pub fn get(self, key: &Key) -> Option<Node<'d>> {
        self.follow(slice::from_ref(key)).unwrap_or_default()
    }

    /// The value that keys lead to, each below the one before. Nothing when one is missing, or below `null`. What is on the way
    /// and has no keys at all, such as a string, is an error.
    #[inline]
    pub fn follow(self, keys: &[Key]) -> Result<Option<Node<'d>>, NoObject> {
        let mut node = self;
        let mut keys = keys.iter();
        // What nearly all look-ups are. The rest is behind one call at the end, for which nothing has to be saved.
        while let [key, ..] = keys.as_slice() {
            let word = node.word();
            if tape::tag_of(word) != tag::SHAPED {
                return node.follow_any(keys.as_slice());
            }
            let (shape, first) = tape::shaped_place(word);
            let Some(place) = key.known_place(shape) else { return node.follow_any(keys.as_slice()) };
            let Some(place) = place else { return Ok(None) };
            node = Node::new(self.document, first + place);
            keys.next();
        }
        Ok(Some(node))
    }

    #[inline(never)]
    fn follow_any(self, keys: &[Key]) -> Result<Option<Node<'d>>, NoObject> {
        let mut node = self;
        for key in keys {
            let word = node.word();
            let found = match tape::tag_of(word) {
                tag::SHAPED => {
                    let (shape, first) = tape::shaped_place(word);
                    key.place_in(shape).map(|place| Node::new(self.document, first + place))
                }
                tag::NULL => None,
                _ => node.as_object().ok_or(NoObject)?.get(key),
            };
            let Some(found) = found else { return Ok(None) };
            node = found;
        }
        Ok(Some(node))
    }

    /// The value of a key that is not prepared. [`Node::get`] is faster when the key is used again.
    pub fn get_str(self, key: &str) -> Option<Node<'d>> {
        self.as_object()?.get_str(key)
    }

    /// The element at an index. Nothing when there are fewer or this is no array.
    pub fn index(self, index: usize) -> Option<Node<'d>> {
        self.as_array()?.get(index)
    }

    /// Elements of an array or entries of an object; zero for anything else.
    pub fn len(self) -> usize {
        match self.view() {
            View::Array(array) => array.len(),
            View::Object(object) => object.len(),
            _ => 0,
        }
    }

    /// Whether there are no elements or entries, which is so for scalars too.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether the value is `null`.
    #[inline]
    pub fn is_null(self) -> bool {
        tape::tag_of(self.word()) == tag::NULL
    }

    /// The bool, if it is one.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match tape::tag_of(self.word()) {
            tag::TRUE => Some(true),
            tag::FALSE => Some(false),
            _ => None,
        }
    }

    /// The string, if it is one.
    #[inline]
    pub fn as_str(self) -> Option<&'d str> {
        let word = self.word();
        matches!(tape::tag_of(word), tag::SYMBOL | tag::SHORT_TEXT | tag::LONG_TEXT)
            .then(|| self.document.text_of(word))
    }

    /// The array, if it is one.
    #[inline]
    pub fn as_array(self) -> Option<Array<'d>> {
        let word = self.word();
        matches!(tape::tag_of(word), tag::ARRAY | tag::WIDE_ARRAY).then(|| self.array(word))
    }

    /// The object, if it is one.
    #[inline]
    pub fn as_object(self) -> Option<Object<'d>> {
        let word = self.word();
        match tape::tag_of(word) {
            tag::SHAPED | tag::WIDE_SHAPED | tag::OBJECT | tag::WIDE_OBJECT => Some(self.object(word)),
            _ => None,
        }
    }

    /// Whether it is an array or an object. Costs less than a view of one.
    #[inline]
    pub fn is_container(self) -> bool {
        tape::tag_of(self.word()) >= tag::ARRAY
    }

    /// The document that the value is in.
    pub fn document(self) -> &'d Document {
        self.document
    }

    /// Whether two handles are at the same place of the same document.
    pub fn is_at(self, other: Node) -> bool {
        std::ptr::eq(self.document, other.document) && self.position == other.position
    }

    /// Whether two handles lead to the very same value of the very same document. The word says where it is.
    pub(crate) fn is_identical(self, other: Node) -> bool {
        std::ptr::eq(self.document, other.document) && self.word() == other.word()
    }

    #[inline]
    fn word(self) -> u32 {
        self.document.words()[self.position as usize]
    }

    fn bits(self, word: u32) -> u64 {
        let (position, words) = (tape::payload(word) as usize, self.document.words());
        u64::from(words[position + 1]) << 32 | u64::from(words[position])
    }

    #[inline]
    fn array(self, word: u32) -> Array<'d> {
        let (count, first) = match tape::tag_of(word) {
            tag::ARRAY => tape::container_place(word),
            _ => self.wide(word),
        };
        Array { document: self.document, first, count }
    }

    #[inline]
    fn object(self, word: u32) -> Object<'d> {
        let document = self.document;
        let shaped =
            |shape, first| Object { document, first, keys: Interner::global().shape(shape).keys(), has_text: false };
        let (count, position) = match tape::tag_of(word) {
            tag::SHAPED => {
                let (shape, first) = tape::shaped_place(word);
                return shaped(shape, first);
            }
            tag::WIDE_SHAPED => {
                let (shape, first) = self.wide(word);
                return shaped(shape as u32, first);
            }
            tag::OBJECT => tape::container_place(word),
            _ => self.wide(word),
        };
        let first = position + count;
        Object { document, first, keys: &document.words()[position..first], has_text: true }
    }

    /// The number at the position of a wide container, and the position behind it.
    fn wide(self, word: u32) -> (usize, usize) {
        let position = tape::payload(word) as usize;
        (self.document.words()[position] as usize, position + 1)
    }
}

impl<'d> Array<'d> {
    /// How many elements there are.
    #[inline]
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The element at an index.
    #[inline]
    pub fn get(self, index: usize) -> Option<Node<'d>> {
        (index < self.count).then(|| Node::new(self.document, self.first + index))
    }

    /// The elements.
    #[inline]
    pub fn iter(self) -> Elements<'d> {
        Elements { document: self.document, positions: self.first..self.first + self.count }
    }
}

impl<'d> Object<'d> {
    /// How many entries there are.
    #[inline]
    pub fn len(self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.keys.is_empty()
    }

    /// The keys and values.
    pub fn iter(self) -> Entries<'d> {
        Entries { document: self.document, value: self.first, keys: self.keys.iter() }
    }

    /// The value of a key.
    #[inline]
    pub fn get(self, key: &Key) -> Option<Node<'d>> {
        let symbol = key.word().and_then(|word| self.keys.iter().position(|found| *found == word));
        // By its text unless both are symbols: the key may have got its symbol after the document was made, or the
        // interner may have been full.
        let may_be_text = key.word().is_none() || self.has_text;
        let is_text = |found: u32| key.word().is_none() || tape::tag_of(found) != tag::SYMBOL;
        let by_text =
            || self.keys.iter().position(|found| is_text(*found) && self.document.text_of(*found) == key.text());
        let at = symbol.or_else(|| if may_be_text { by_text() } else { None })?;
        Some(Node::new(self.document, self.first + at))
    }

    /// The value of a key that is not prepared.
    pub fn get_str(self, key: &str) -> Option<Node<'d>> {
        let at = self.keys.iter().position(|found| self.document.text_of(*found) == key)?;
        Some(Node::new(self.document, self.first + at))
    }
}

impl<'d> Iterator for Elements<'d> {
    type Item = Node<'d>;

    #[inline]
    fn next(&mut self) -> Option<Node<'d>> {
        self.positions.next().map(|position| Node::new(self.document, position))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl<'d> Iterator for Entries<'d> {
    type Item = (&'d str, Node<'d>);

    #[inline]
    fn next(&mut self) -> Option<(&'d str, Node<'d>)> {
        let key = self.keys.next()?;
        let value = Node::new(self.document, self.value);
        self.value += 1;
        Some((self.document.text_of(*key), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.keys.size_hint()
    }
}

impl ExactSizeIterator for Elements<'_> {}

impl ExactSizeIterator for Entries<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interning, Options};

    fn parse(body: &str) -> Document {
        Document::parse(body.as_bytes(), &Options::default()).unwrap()
    }

    /// Follows keys and indices, and compares the JSON of what is there.
    #[track_caller]
    fn check(body: &str, path: &[&str], expected: &str) {
        let document = parse(body);
        let mut node = Some(document.root());
        for step in path {
            node = node.and_then(|node| match step.parse() {
                Ok(index) => node.index(index),
                Err(_) => node.get(&Key::new(step)),
            });
        }
        assert_eq!(node.map_or("nothing".to_owned(), Node::to_json), expected);
    }

    const POD: &str = r#"{"metadata":{"name":"api","labels":{"app":"api","tier":"web"}},
        "spec":{"containers":[{"name":"a","ports":[80,443]},{"name":"b","ports":[]}],"nodeName":null}}"#;

    #[test]
    fn values_are_found_by_key_and_index() {
        check(POD, &["metadata", "name"], r#""api""#);
        check(POD, &["metadata", "labels", "tier"], r#""web""#);
        check(POD, &["spec", "containers", "1", "name"], r#""b""#);
        check(POD, &["spec", "containers", "0", "ports", "1"], "443");
        check(POD, &["spec", "nodeName"], "null");
        check(POD, &[], &parse(POD).to_json());
    }

    #[test]
    fn what_is_missing_is_nothing() {
        check(POD, &["status"], "nothing");
        check(POD, &["spec", "containers", "2"], "nothing");
        check(POD, &["spec", "containers", "name"], "nothing");
        check(POD, &["metadata", "0"], "nothing");
        check(POD, &["metadata", "name", "name"], "nothing");
        check("{}", &["a"], "nothing");
        check("[]", &["0"], "nothing");
    }

    #[test]
    fn views_say_what_a_value_is() {
        let document = parse(r#"[null,true,false,7,-9223372036854775808,1.5,"text",[],{}]"#);
        let views: Vec<_> = document.root().as_array().unwrap().iter().map(Node::view).collect();
        assert!(matches!(
            views[..],
            [
                View::Null,
                View::Bool(true),
                View::Bool(false),
                View::Int(7),
                View::Int(i64::MIN),
                View::Float(1.5),
                View::Str("text"),
                View::Array(_),
                View::Object(_)
            ]
        ));
    }

    #[test]
    fn entries_come_in_the_order_of_the_input() {
        let document = parse(r#"{"b":1,"a":[2],"c":{"d":3},"e":4}"#);
        let object = document.root().as_object().unwrap();
        let entries: Vec<_> = object.iter().map(|(key, value)| format!("{key}={}", value.to_json())).collect();
        assert_eq!(entries, ["b=1", "a=[2]", r#"c={"d":3}"#, "e=4"]);
        assert_eq!((object.len(), object.iter().len(), object.is_empty()), (4, 4, false));
    }

    #[test]
    fn replaced_entries_are_not_there() {
        let document = parse(r#"{"a":1,"b":2,"a":3,"c":4}"#);
        let object = document.root().as_object().unwrap();
        assert_eq!(object.len(), 3);
        assert_eq!(object.iter().len(), 3);
        assert_eq!(object.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "a", "c"]);
        assert!(matches!(object.get(&Key::new("a")).unwrap().view(), View::Int(3)));
        assert!(matches!(object.get_str("a").unwrap().view(), View::Int(3)));
    }

    #[test]
    fn lengths_count_elements_and_entries() {
        let document = parse(r#"{"list":[1,[2,3],{}],"text":"abc"}"#);
        let root = document.root();
        assert_eq!(root.len(), 2);
        assert_eq!(root.get_str("list").unwrap().len(), 3);
        assert_eq!(root.get_str("text").unwrap().len(), 0);
        assert!(root.get_str("text").unwrap().is_empty());
    }

    #[test]
    fn a_key_with_a_symbol_finds_text_that_has_none() {
        // The document came when nobody knew the key.
        let options = Options { interning: Interning::LookUpOnly, ..Options::default() };
        let body = br#"{"a key that nobody else has":1,"another one":{"and one more":2}}"#;
        let document = Document::parse(body, &options).unwrap();
        let key = Key::new("another one");
        assert!(key.word().is_some());
        let inner = document.root().get(&key).unwrap();
        assert!(matches!(inner.get(&Key::new("and one more")).unwrap().view(), View::Int(2)));
        assert!(inner.get(&Key::new("and one")).is_none());
    }

    #[test]
    fn a_key_without_a_symbol_finds_symbols() {
        // The interner was full when the key was prepared, or so it seems.
        let document = parse(r#"{"first":1,"second":2}"#);
        let key = Key::without_symbol("second");
        assert!(matches!(document.root().get(&key).unwrap().view(), View::Int(2)));
        assert!(document.root().get(&Key::without_symbol("third")).is_none());
    }

    #[test]
    fn long_keys_are_found() {
        let long = "k".repeat(1000);
        let document = parse(&format!(r#"{{"a":1,"{long}":2,"{long}x":3,"b":4}}"#));
        assert!(matches!(document.root().get(&Key::new(&long)).unwrap().view(), View::Int(2)));
        assert!(matches!(document.root().get_str(&format!("{long}x")).unwrap().view(), View::Int(3)));
        assert!(matches!(document.root().get_str("b").unwrap().view(), View::Int(4)));
    }

    #[test]
    fn shaped_objects_far_from_the_start_are_read_like_others() {
        let body = format!("[{}]", vec![r#"{"shaped-a":1,"shaped-b":{"shaped-c":[2,3]}}"#; 20_000].join(","));
        // Shapes are known from the second document on.
        let documents = [parse(&body), parse(&body), parse(&body)];
        for document in &documents {
            let last = document.root().index(19_999).unwrap();
            let inner = last.get(&Key::new("shaped-b")).unwrap();
            assert_eq!(inner.get(&Key::new("shaped-c")).unwrap().index(1).unwrap().to_json(), "3");
            assert!(inner.get(&Key::new("shaped-a")).is_none());
        }
        assert_eq!(documents[2].to_json(), body);
        assert!(documents[2].size_bytes() < documents[0].size_bytes());
    }

    #[test]
    fn wide_containers_are_read_like_others() {
        let many: Vec<_> = (0..5000).map(|n| format!(r#""key-{n}":[{n}]"#)).collect();
        let document =
            parse(&format!(r#"{{"list":[{}],"map":{{{}}},"end":1}}"#, vec!["7"; 70_000].join(","), many.join(",")));
        let root = document.root();
        assert_eq!(root.get_str("list").unwrap().len(), 70_000);
        assert!(matches!(root.get_str("list").unwrap().index(69_999).unwrap().view(), View::Int(7)));
        let map = root.get_str("map").unwrap();
        assert_eq!(map.len(), 5000);
        assert!(matches!(map.get(&Key::new("key-4999")).unwrap().index(0).unwrap().view(), View::Int(4999)));
        assert!(matches!(root.get_str("end").unwrap().view(), View::Int(1)));
    }
}

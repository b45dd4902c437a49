//! The objects of a document: itself, or those of a list and of the lists in it.

use std::ops::Range;

use portal_document::{Array, Builder, Document, Node};

use crate::{object::entries, rule::diagnostic::Step};

/// An object of a document.
#[derive(Debug)]
pub struct Item<'d> {
    /// The places that lead to it: in the outermost list, then in each list within. Empty for a document that is no list.
    pub path: Vec<usize>,
    /// The object, or what is wrong with the list that should be here.
    pub content: Result<Content<'d>, String>,
}

/// An object: as it is written, or with what its list says of it.
#[derive(Debug)]
pub enum Content<'d> {
    /// As it is written.
    Given(Node<'d>),
    /// With the version and the kind that only its list says.
    Made(Document),
}

/// The most lists within each other.
const MAX_LISTS: usize = 8;

/// What a document or an item of a list is.
enum Kind<'d> {
    Object,
    /// A list, and the kind of its items if it says one.
    List {
        items: Array<'d>,
        element: &'d str,
    },
    /// A list of nothing.
    Empty,
    /// A list that is none.
    Wrong(String),
}

/// The objects of a document. Those of a list such as a `PodList` need not say their version and kind: the list does.
pub fn items(document: Node<'_>) -> Vec<Item<'_>> {
    items_between(document, 0..usize::MAX)
}

/// The objects of a part of the list that a document is, so that several can look at one list. A document that is no list is its
/// own first item.
pub fn items_between(document: Node<'_>, range: Range<usize>) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    add_items(document, &[], range, &mut items);
    items
}

/// How many items the list has that a document is, without those of lists in it. Nothing if it is no list.
pub fn list_len(document: Node<'_>) -> Option<usize> {
    match kind(document, 0) {
        Kind::List { items, .. } => Some(items.len()),
        _ => None,
    }
}

impl Item<'_> {
    /// The object, if its list is in order.
    pub fn object(&self) -> Option<Node<'_>> {
        self.content.as_ref().ok().map(Content::root)
    }

    /// The way to it in its document.
    pub fn steps(&self) -> Vec<Step> {
        self.path.iter().flat_map(|index| [Step::Field("items".to_owned()), Step::Index(*index)]).collect()
    }
}

impl Content<'_> {
    /// The object.
    pub fn root(&self) -> Node<'_> {
        match self {
            Content::Given(object) => *object,
            Content::Made(document) => document.root(),
        }
    }
}

fn add_items<'d>(object: Node<'d>, path: &[usize], range: Range<usize>, found: &mut Vec<Item<'d>>) {
    let content = match kind(object, path.len()) {
        Kind::List { items, element } => {
            let api_version = text(object, "apiVersion");
            for (index, item) in items.iter().enumerate().take(range.end).skip(range.start) {
                let path: Vec<usize> = path.iter().copied().chain([index]).collect();
                match api_version.and_then(|version| named_after_list(item, version, element)) {
                    Some(named) => found.push(Item { path, content: Ok(Content::Made(named)) }),
                    None => add_items(item, &path, 0..usize::MAX, found),
                }
            }
            return;
        }
        Kind::Empty => return,
        Kind::Object => Ok(Content::Given(object)),
        Kind::Wrong(error) => Err(error),
    };
    if range.start == 0 {
        found.push(Item { path: path.to_vec(), content });
    }
}

/// What an object is that so many lists are around.
fn kind(object: Node<'_>, lists: usize) -> Kind<'_> {
    let items = object.get_str("items");
    let element = text(object, "kind").and_then(|kind| kind.strip_suffix("List"));
    // The kind of a custom resource may end in `List` although it holds no objects.
    let Some(element) = element.filter(|kind| kind.is_empty() || items.is_some()) else { return Kind::Object };
    match (items, items.and_then(Node::as_array)) {
        (_, Some(items)) if lists < MAX_LISTS => Kind::List { items, element },
        // Go writes an empty list as null.
        (Some(items), _) if items.is_null() => Kind::Empty,
        (_, Some(_)) => Kind::Wrong(format!("lists are in each other more than {MAX_LISTS} deep")),
        _ => Kind::Wrong(format!("`items` of this {element}List is no list of objects")),
    }
}

fn text<'d>(object: Node<'d>, name: &str) -> Option<&'d str> {
    object.get_str(name).and_then(Node::as_str)
}

/// An item with the `apiVersion` and `kind` that its list gives it: in lists of the API server items have neither.
fn named_after_list(item: Node<'_>, api_version: &str, kind: &str) -> Option<Document> {
    let has = |name: &str| item.get_str(name).is_some();
    if kind.is_empty() || has("apiVersion") || has("kind") {
        return None;
    }
    item.as_object()?;
    let mut builder = Builder::new();
    builder.begin_object().key("apiVersion").string(api_version).key("kind").string(kind);
    for (key, value) in entries(Some(item)) {
        builder.key(key).node(value);
    }
    builder.end();
    builder.finish().ok()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::documents;

    #[track_caller]
    fn check(yaml: &str, expected: Expect) {
        let documents = documents(yaml);
        let line = |item: &Item<'_>| match &item.content {
            Ok(content) => format!("{:?} {}", item.path, content.root().to_json()),
            Err(error) => format!("{:?} {error}", item.path),
        };
        expected.assert_eq(&items(documents[0].root()).iter().map(line).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn a_document_that_is_no_list_is_its_object() {
        check("{kind: Pod}", expect![[r#"[] {"kind":"Pod"}"#]]);
        check("{kind: AllowList, spec: {}}", expect![[r#"[] {"kind":"AllowList","spec":{}}"#]]);
        check("[a]", expect![[r#"[] ["a"]"#]]);
    }

    #[test]
    fn objects_of_lists_in_lists_are_found_with_their_places() {
        check(
            "{kind: List, items: [{kind: Pod, a: 1}, {kind: List, items: [{kind: Pod, b: 2}]}, {kind: List, items: null}]}",
            expect![[r#"
                [0] {"kind":"Pod","a":1}
                [1, 0] {"kind":"Pod","b":2}"#]],
        );
    }

    #[test]
    fn a_list_can_be_looked_at_in_parts() {
        let documents =
            documents("{kind: List, items: [{a: 1}, {kind: List, items: [{b: 1}, {b: 2}]}, {c: 1}]}\n---\n{kind: Pod}");
        let paths = |document: usize, range| -> Vec<Vec<usize>> {
            items_between(documents[document].root(), range).into_iter().map(|item| item.path).collect()
        };
        assert_eq!(list_len(documents[0].root()), Some(3));
        assert_eq!(paths(0, 0..2), [vec![0], vec![1, 0], vec![1, 1]]);
        assert_eq!(paths(0, 2..9), [vec![2]]);
        assert_eq!(list_len(documents[1].root()), None);
        assert_eq!(paths(1, 0..1), [vec![0; 0]]);
        assert!(paths(1, 1..2).is_empty());
    }

    #[test]
    fn an_item_that_does_not_say_what_it_is_is_what_its_list_says() {
        check(
            "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {kind: Other}, 5]}",
            expect![[r#"
                [0] {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}
                [1] {"kind":"Other"}
                [2] 5"#]],
        );
        check("{apiVersion: v1, kind: List, items: [{name: a}]}", expect![[r#"[0] {"name":"a"}"#]]);
    }

    #[test]
    fn a_list_that_is_none_is_told_in_its_place() {
        check("{kind: List}", expect!["[] `items` of this List is no list of objects"]);
        check(
            "{kind: List, items: [{kind: PodList, items: {a: b}}]}",
            expect!["[0] `items` of this PodList is no list of objects"],
        );
        let deep = (0..9).fold("{kind: Pod}".to_owned(), |inner, _| format!("{{kind: List, items: [{inner}]}}"));
        check(&deep, expect!["[0, 0, 0, 0, 0, 0, 0, 0] lists are in each other more than 8 deep"]);
    }
}

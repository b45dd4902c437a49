//! The objects of a document: itself, or those of a list and of the lists in it.

use portal_document::{Builder, Document, Node};

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

/// The objects of a document. Those of a list such as a `PodList` need not say their version and kind: the list does.
pub fn items(document: Node<'_>) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    add_items(document, Vec::new(), &mut items);
    items
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

fn add_items<'d>(object: Node<'d>, path: Vec<usize>, found: &mut Vec<Item<'d>>) {
    let text = |name: &str| object.get_str(name).and_then(Node::as_str);
    let items = object.get_str("items");
    let element = text("kind").and_then(|kind| kind.strip_suffix("List"));
    // The kind of a custom resource may end in `List` although it holds no objects.
    let Some(element) = element.filter(|kind| kind.is_empty() || items.is_some()) else {
        return found.push(Item { path, content: Ok(Content::Given(object)) });
    };
    let list = match (items, items.and_then(Node::as_array)) {
        (_, Some(list)) if path.len() < MAX_LISTS => list,
        // Go writes an empty list as null.
        (Some(items), _) if items.is_null() => return,
        (_, Some(_)) => {
            let error = format!("lists are in each other more than {MAX_LISTS} deep");
            return found.push(Item { path, content: Err(error) });
        }
        _ => {
            let error = format!("`items` of this {element}List is no list of objects");
            return found.push(Item { path, content: Err(error) });
        }
    };
    for (index, item) in list.iter().enumerate() {
        let path = path.iter().copied().chain([index]).collect();
        match text("apiVersion").and_then(|version| named_after_list(item, version, element)) {
            Some(named) => found.push(Item { path, content: Ok(Content::Made(named)) }),
            None => add_items(item, path, found),
        }
    }
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

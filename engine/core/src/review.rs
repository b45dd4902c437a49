//! Events out of AdmissionReviews.

use std::sync::Arc;

use portal_document::{Node, Path};
use portal_expr::Moment;

use crate::{
    event::{Event, Front, Operation, name_of},
    kinds::{Kind, Kinds},
    object::{Request, dropped_of_reviews, hidden, is_namespace, masked_of_reviews},
};

/// An AdmissionReview that can be judged, with its objects as rules may see them.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    request: Request<'a>,
    operation: Operation,
    kind: &'a Kind,
    version: &'a str,
}

/// Why a review cannot be judged.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReviewError {
    /// It is something else.
    #[error("this is no AdmissionReview of admission.k8s.io/v1: {0}")]
    Other(String),
    /// A field is missing or has a value that it cannot have.
    #[error("`{0}` of the AdmissionReview is missing or not what it should be")]
    Field(&'static str),
    /// The kind is not one that is served.
    #[error("no kind is served as `{resource}` in group `{group}`")]
    Kind {
        /// The group.
        group: String,
        /// The plural.
        resource: String,
    },
    /// There is more in it than a document can hold.
    #[error("the AdmissionReview is too large")]
    TooLarge,
}

impl Review<'_> {
    /// What need not be read of a review, because no rule sees it: half of a pod.
    pub fn unseen() -> &'static [Path] {
        dropped_of_reviews()
    }

    /// What nobody may see of a review: the values of a Secret. Whoever can reads it again without them, and a request takes the
    /// memory of one document; of what is still there a copy is made.
    pub fn hidden(review: Node<'_>, kinds: &Kinds) -> Vec<Path> {
        let Ok(request) = request_of(review) else { return Vec::new() };
        let Ok((kind, _)) = kind_of(request, kinds) else { return Vec::new() };
        hidden(request, kind).iter().map(|path| path.below("request")).collect()
    }

    /// What is hidden of a review of a Secret.
    pub fn hidden_of_secrets() -> &'static [Path] {
        masked_of_reviews()
    }
}

impl<'a> Review<'a> {
    /// Reads a review.
    pub fn of(review: Node<'a>, kinds: &'a Kinds) -> Result<Review<'a>, ReviewError> {
        let request = request_of(review)?;
        let named = text(request, "operation");
        let operation = Operation::ALL.into_iter().find(|operation| named == Some(operation.name()));
        let operation = operation.ok_or(ReviewError::Field("request.operation"))?;
        let (kind, version) = kind_of(request, kinds)?;
        // What is no object has nothing that a rule could be against.
        for (name, field) in [("object", "request.object"), ("oldObject", "request.oldObject")] {
            let is_wrong = |object: &Node<'_>| !object.is_null() && object.as_object().is_none();
            if request.get_str(name).as_ref().is_some_and(is_wrong) {
                return Err(ReviewError::Field(field));
            }
        }
        let request = Request::of(request, kind).ok_or(ReviewError::TooLarge)?;
        Ok(Review { request, operation, kind, version })
    }

    /// The event that it asks about.
    pub fn event(&self, now: Moment) -> Event<'_> {
        let (visible, kind) = (self.request.visible(), self.kind);
        let request = visible.root();
        let (new, old) = (visible.part("object"), visible.part("oldObject"));
        // Of what is deleted with others of its kind the request has no name either.
        let own_name = || name_of(new.or(old)?.root());
        let filled = |name: &str| text(request, name).filter(|text| !text.is_empty());
        Event {
            front: Some(Front::Admission),
            entry: None,
            operation: self.operation,
            kind,
            version: self.version,
            subresource: filled("subResource"),
            namespace: filled("namespace").filter(|_| kind.namespaced || is_namespace(kind)),
            name: filled("name").or_else(own_name).unwrap_or_default(),
            object: new,
            old_object: old,
            request: Some(visible),
            now,
        }
    }
}

/// The request of a review, if it is one.
pub fn request_of(review: Node<'_>) -> Result<Node<'_>, ReviewError> {
    let (version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    if (version, kind) != (Some("admission.k8s.io/v1"), Some("AdmissionReview")) {
        let found = format!("it is {} {}", version.unwrap_or("of no version"), kind.unwrap_or("of no kind"));
        return Err(ReviewError::Other(found));
    }
    review.get_str("request").ok_or(ReviewError::Field("request"))
}

/// The kind that a request is about, and the version of it.
fn kind_of<'a>(request: Node<'a>, kinds: &'a Kinds) -> Result<(&'a Arc<Kind>, &'a str), ReviewError> {
    let resource = request.get_str("resource").ok_or(ReviewError::Field("request.resource"))?;
    let plural = text(resource, "resource").ok_or(ReviewError::Field("request.resource.resource"))?;
    let version = text(resource, "version").ok_or(ReviewError::Field("request.resource.version"))?;
    let group = text(resource, "group").unwrap_or_default();
    let kind = kinds.of_resource(group, plural).or_else(|| assumed(request, group, kinds));
    let kind = kind.ok_or_else(|| ReviewError::Kind { group: group.to_owned(), resource: plural.to_owned() })?;
    Ok((kind, version))
}

/// The kind of a request that nobody defines and a rule names. What is sent to a subresource may be of another kind.
fn assumed<'k>(request: Node<'_>, group: &str, kinds: &'k Kinds) -> Option<&'k Arc<Kind>> {
    let is_whole = text(request, "subResource").is_none_or(str::is_empty);
    let kind = request.get_str("kind").and_then(|kind| text(kind, "kind")).filter(|_| is_whole)?;
    kinds.get(group, kind).filter(|kind| kind.is_assumed())
}

pub(crate) fn text<'n>(node: Node<'n>, name: &str) -> Option<&'n str> {
    node.get_str(name).and_then(Node::as_str)
}

#[cfg(test)]
mod tests {
    use portal_document::{Document, Options};
    use serde_json::{Value, json};

    use super::*;

    /// Asserts the namespace and the name of what a request is about.
    #[track_caller]
    fn check(resource: &str, request: &Value, expected: (Option<&str>, &str)) {
        let mut whole =
            json!({"operation": "DELETE", "resource": {"group": "", "version": "v1", "resource": resource}});
        for (field, value) in request.as_object().unwrap() {
            whole[field] = value.clone();
        }
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole});
        let document = Document::parse(review.to_string().as_bytes(), &Options::default()).unwrap();
        let review = Review::of(document.root(), Kinds::builtin()).unwrap();
        let event = review.event(Moment::default());
        assert_eq!((event.namespace, event.name), expected, "{request}");
    }

    #[test]
    fn what_the_request_names_none_of_is_called_as_it_calls_itself() {
        let own = json!({"metadata": {"name": "own"}});
        for name in [json!(null), json!("")] {
            check("pods", &json!({"namespace": "shop", "name": name, "oldObject": own}), (Some("shop"), "own"));
            check("nodes", &json!({"name": name, "object": null, "oldObject": own}), (None, "own"));
            let made = json!({"metadata": {"generateName": "made-"}});
            check("pods", &json!({"namespace": "shop", "name": name, "object": made}), (Some("shop"), "made-"));
            // Nobody says.
            check("pods", &json!({"namespace": "shop", "name": name}), (Some("shop"), ""));
        }
        // What the request says is what the API server goes by.
        check("pods", &json!({"namespace": "shop", "name": "a", "oldObject": own}), (Some("shop"), "a"));
    }

    #[test]
    fn an_object_is_in_the_namespace_that_the_request_says_if_its_kind_has_one() {
        let elsewhere = json!({"metadata": {"name": "a", "namespace": "bank"}});
        check("pods", &json!({"namespace": "shop", "oldObject": elsewhere}), (Some("shop"), "a"));
        check("pods", &json!({"namespace": "", "oldObject": elsewhere}), (None, "a"));
        check("nodes", &json!({"namespace": "shop", "oldObject": elsewhere}), (None, "a"));
        check("namespaces", &json!({"namespace": "shop", "name": "shop"}), (Some("shop"), "shop"));
    }
}

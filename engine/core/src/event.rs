//! What happened to one object: what rules are asked about.

pub use portal_crds::Front;
use portal_document::Node;
use portal_expr::Moment;

use crate::{
    kinds::Kind,
    object::{Object, Request, Visible, is_namespace, metadata_text},
};

/// One object and what happened to it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The loop that asks. None outside of a cluster: then every rule is asked, whichever loops it is for.
    pub front: Option<Front>,
    /// The entry of the webhook configuration that the request came by. None where none is: then every rule is asked.
    pub entry: Option<Entry>,
    /// What is done to the object.
    pub operation: Operation,
    /// The kind of the resource. With a subresource the object itself may be of another kind.
    pub kind: &'a Kind,
    /// The version that the object is written in.
    pub version: &'a str,
    /// The part of the resource that is written, if it is not the whole.
    pub subresource: Option<&'a str>,
    /// The namespace, for kinds that have one.
    pub namespace: Option<&'a str>,
    /// The name. If the API server has yet to make one up, what it will begin with.
    pub name: &'a str,
    /// The object as it will be. Nothing on DELETE.
    pub object: Option<Visible<'a>>,
    /// The object as it was. Nothing on CREATE.
    pub old_object: Option<Visible<'a>>,
    /// The request, in the form that an AdmissionReview has it. Nothing where there is none.
    pub request: Option<Visible<'a>>,
    /// When.
    pub now: Moment,
}

/// An object that is judged without an AdmissionReview: as rules may see it, and in its namespace.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    object: Object<'a>,
    kind: &'a Kind,
    version: &'a str,
    request: Option<Request<'static>>,
}

/// The subresources by which a running pod gets containers or other resources. A request for one has the whole pod.
pub(crate) const POD_SUBRESOURCES: [&str; 2] = ["ephemeralcontainers", "resize"];

/// The subresources whose requests have an object of the kind itself. Others have something of their own: a scale, what `kubectl exec` asks for.
pub(crate) const WHOLE_SUBRESOURCES: [&str; 5] = ["approval", "ephemeralcontainers", "finalize", "resize", "status"];

/// A class of entries of the webhook configuration. A request may come by entries of several classes, and each rule is asked by those
/// of one. It depends on the rule alone, so that a request which comes by a configuration that is older than the rules, or newer, is
/// still judged by all of them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Entry {
    /// Whether it is for rules of namespaces, and not for those of the cluster.
    pub namespaced: bool,
    /// Whether it is for rules that pin a version, to which the object has been converted. Other rules see it as it was sent.
    pub pinned: bool,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is removed.
    Delete,
    /// It is connected to, as by `kubectl exec`.
    Connect,
}

impl Entry {
    /// Every class.
    pub const ALL: [Entry; 4] = [
        Entry { namespaced: false, pinned: false },
        Entry { namespaced: false, pinned: true },
        Entry { namespaced: true, pinned: false },
        Entry { namespaced: true, pinned: true },
    ];

    /// Its name, in the path by which requests come and in the names of its entries.
    pub fn name(self) -> &'static str {
        match self {
            Entry { namespaced: false, pinned: false } => "cluster",
            Entry { namespaced: false, pinned: true } => "cluster-pinned",
            Entry { namespaced: true, pinned: false } => "namespace",
            Entry { namespaced: true, pinned: true } => "namespace-pinned",
        }
    }
}

impl Operation {
    /// Every operation.
    pub(crate) const ALL: [Operation; 4] =
        [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

    /// As requests say it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

impl<'a> Event<'a> {
    /// Whether it is about a namespace itself, and no part of one.
    pub fn is_of_namespace(&self) -> bool {
        is_namespace(self.kind) && self.subresource.is_none()
    }

    /// What happens to an object of a kind, written in a version. Where the object is and what it is called, it says itself. A
    /// Namespace is in itself.
    pub fn of(
        object: Visible<'a>,
        kind: &'a Kind,
        version: &'a str,
        operation: Operation,
        front: Option<Front>,
        now: Moment,
    ) -> Event<'a> {
        let name = name_of(object.root()).unwrap_or_default();
        let namespace = match kind.namespaced {
            true => metadata_text(object.root(), "namespace"),
            false => is_namespace(kind).then_some(name),
        };
        let (object, old_object) = match operation {
            Operation::Delete => (None, Some(object)),
            _ => (Some(object), None),
        };
        let (entry, subresource, request) = (None, None, None);
        Event { front, entry, operation, kind, version, subresource, namespace, name, object, old_object, request, now }
    }

    /// Whether the object is the resource itself, and not something that only a subresource has.
    pub fn is_of_whole(&self) -> bool {
        let is_pod = self.kind.group.is_empty() && self.kind.kind == "Pod";
        self.subresource.is_none_or(|name| is_pod && POD_SUBRESOURCES.contains(&name))
    }

    /// The field of a request that has the object which a rule sees.
    pub(crate) fn judged_field(&self) -> &'static str {
        if self.operation == Operation::Delete { "oldObject" } else { "object" }
    }

    /// The object that a rule sees: on DELETE the one that goes.
    pub fn judged(&self) -> Option<Node<'a>> {
        let judged = match self.operation {
            Operation::Delete => self.old_object,
            _ => self.object,
        };
        judged.map(Visible::root)
    }
}

impl<'a> Subject<'a> {
    /// An object of a kind, written in a version. If it is of a kind that has a namespace and names none, it is in this one. None if
    /// it is too large to be put there.
    pub fn of(object: Node<'a>, kind: &'a Kind, version: &'a str, namespace: &str) -> Option<Subject<'a>> {
        let object = Object::of_file(object, kind, namespace)?;
        Some(Subject { object, kind, version, request: None })
    }

    /// The same with the request that creates it, for rules that read one. None if the object is nested too deep to be in a request.
    pub fn requested(self) -> Option<Subject<'a>> {
        let event = self.event(Operation::Create, None, Moment::default());
        let request = Request::creation(&self.object, event.name, event.namespace)?;
        Some(Subject { request: Some(request), ..self })
    }

    /// What happens to it.
    pub fn event(&self, operation: Operation, front: Option<Front>, now: Moment) -> Event<'_> {
        let event = Event::of(self.object.visible(), self.kind, self.version, operation, front, now);
        Event { request: self.request.as_ref().map(Request::visible), ..event }
    }

    /// Its name. None while one is still to be made up.
    pub fn name(&self) -> Option<&str> {
        metadata_text(self.object.root(), "name")
    }

    /// Its namespace, if its kind has one.
    pub fn namespace(&self) -> Option<&str> {
        metadata_text(self.object.root(), "namespace").filter(|_| self.kind.namespaced)
    }

    /// The object, for whoever keeps it.
    pub fn into_object(self) -> Object<'static> {
        self.object.into_kept()
    }
}

/// The name of an object. While one is still to be made up, what it will begin with.
pub(crate) fn name_of(object: Node<'_>) -> Option<&str> {
    metadata_text(object, "name").or_else(|| metadata_text(object, "generateName"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use portal_document::Document;

    use super::*;
    use crate::{kinds::Kinds, testing::documents};

    /// The object of a text, put in the namespace `default` if it names none.
    fn subject(documents: &[Document]) -> Subject<'_> {
        let object = documents[0].root();
        let kind = object.get_str("kind").and_then(Node::as_str).unwrap();
        Subject::of(object, Kinds::builtin().get("", kind).unwrap(), "v1", "default").unwrap()
    }

    fn creation<'s>(subject: &'s Subject<'_>) -> Event<'s> {
        subject.event(Operation::Create, None, Moment::default())
    }

    /// Compares what the creation of an object says: namespace, name, and the object.
    #[track_caller]
    fn check(yaml: &str, expected: Expect) {
        let documents = documents(yaml);
        let subject = subject(&documents);
        let event = creation(&subject);
        let shown = event.object.unwrap().root().to_json();
        expected.assert_eq(&format!("{:?} {:?} {shown}", event.namespace, event.name));
    }

    #[test]
    fn an_object_without_a_namespace_is_put_in_one_if_its_kind_has_one() {
        check(
            "{kind: ConfigMap, metadata: {name: a, namespace: shop}}",
            expect![[r#"Some("shop") "a" {"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#]],
        );
        for metadata in ["{name: a}", "{name: a, namespace: ''}", "{name: a, namespace: null}"] {
            check(
                &format!("{{kind: ConfigMap, metadata: {metadata}}}"),
                expect![[r#"Some("default") "a" {"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}"#]],
            );
        }
        check(
            "{kind: ConfigMap}",
            expect![[r#"Some("default") "" {"kind":"ConfigMap","metadata":{"namespace":"default"}}"#]],
        );
        check("{kind: Node, metadata: {name: a}}", expect![[r#"None "a" {"kind":"Node","metadata":{"name":"a"}}"#]]);
    }

    #[test]
    fn an_object_that_is_put_in_a_namespace_shows_no_more_than_another() {
        check(
            "{kind: Secret, metadata: {name: a, managedFields: []}, data: {key: aHVudGVyMg==}}",
            expect![[
                r#"Some("default") "a" {"kind":"Secret","data":{"key":"***"},"metadata":{"name":"a","namespace":"default"}}"#
            ]],
        );
    }

    #[test]
    fn a_namespace_is_in_itself() {
        check(
            "{kind: Namespace, metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop}}}",
            expect![[
                r#"Some("shop") "shop" {"kind":"Namespace","metadata":{"name":"shop","labels":{"kubernetes.io/metadata.name":"shop"}}}"#
            ]],
        );
    }

    #[test]
    fn an_object_without_a_name_is_called_as_it_will_begin() {
        check(
            "{kind: ConfigMap, metadata: {generateName: a-, namespace: shop}}",
            expect![[r#"Some("shop") "a-" {"kind":"ConfigMap","metadata":{"generateName":"a-","namespace":"shop"}}"#]],
        );
        let documents = documents("{kind: ConfigMap, metadata: {generateName: a-}}");
        let subject = subject(&documents);
        assert_eq!((subject.name(), subject.namespace()), (None, Some("default")));
    }

    #[test]
    fn an_object_that_needs_no_change_is_not_copied_until_it_is_kept() {
        let documents = documents("{kind: ConfigMap, metadata: {name: a, namespace: shop}}");
        let subject = subject(&documents);
        assert!(creation(&subject).judged().unwrap().is_at(documents[0].root()));
        let kept = subject.into_object();
        drop(documents);
        assert_eq!(kept.root().to_json(), r#"{"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#);
    }

    #[test]
    fn the_request_of_a_creation_says_what_the_event_says() {
        let documents = documents("{kind: ConfigMap, metadata: {generateName: a-}}");
        let subject = subject(&documents);
        assert!(creation(&subject).request.is_none());
        let subject = subject.requested().unwrap();
        expect![[r#"{"operation":"CREATE","name":"a-","namespace":"default","dryRun":false,"object":{"kind":"ConfigMap","metadata":{"generateName":"a-","namespace":"default"}}}"#]].assert_eq(&creation(&subject).request.unwrap().root().to_json());
    }

    #[test]
    fn an_object_that_goes_is_the_old_one() {
        let documents = documents("{kind: ConfigMap, metadata: {name: a, namespace: shop}}");
        let subject = subject(&documents);
        let event = subject.event(Operation::Delete, Some(Front::Audit), Moment::default());
        assert!(event.object.is_none() && event.judged().is_some());
    }
}

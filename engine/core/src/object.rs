//! Objects as rules may see them. Whatever a rule reads of an object or of a request has come through here, wherever it is
//! from: an event and an answer take nothing else. So nobody can forget what no message, report or log may carry.

use std::sync::LazyLock;

use portal_document::{Builder, Document, DocumentLimits, Error, Interning, Key, MASK, Node, Options, Path};

use crate::kinds::Kind;

/// An object as rules may see it: without the values of a Secret, and without what Kubernetes and kubectl keep in
/// its metadata for themselves, which repeats the rest. A Namespace has the label that the API server gives to each.
#[derive(Clone, Debug)]
pub struct Object<'a>(Form<'a>);

/// The request that an object comes with, as rules may see it.
#[derive(Clone, Debug)]
pub struct Request<'a>(Form<'a>);

/// An object or a request that rules may see.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a>(Node<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    /// Nothing had to be changed.
    Given(Node<'a>),
    Made(Document),
}

/// The label that every Namespace has, whatever its manifest says.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of a request that hold objects.
const OBJECTS: [&str; 2] = ["object", "oldObject"];

/// What tells the kind of an object. Prepared, because every object is asked for it.
static TYPE: LazyLock<[Key; 2]> = LazyLock::new(|| ["kind", "apiVersion"].map(Key::new));

/// What is of no use to a rule. In a Secret, the annotation would repeat the secret values.
static DROPPED: LazyLock<[Path; 2]> = LazyLock::new(|| {
    let annotation = format!("metadata.annotations[{LAST_APPLIED:?}]");
    ["metadata.managedFields", &annotation].map(|path| Path::parse(path).expect("the path is right"))
});

/// The same, of both objects in a review.
static DROPPED_OF_REVIEWS: LazyLock<Vec<Path>> = LazyLock::new(|| {
    let paths = |name: &str| {
        let annotation = format!("request.{name}.metadata.annotations[{LAST_APPLIED:?}]");
        [format!("request.{name}.metadata.managedFields"), annotation]
    };
    let paths = OBJECTS.iter().flat_map(|name| paths(name));
    paths.map(|path| Path::parse(&path).expect("the path is right")).collect()
});

/// What nobody may see of a Secret. Keys may be seen.
static MASKED: LazyLock<[Path; 2]> =
    LazyLock::new(|| MASKED_FIELDS.map(|path| Path::parse(path).expect("the path is right")));

/// The same, of both objects in a review of a Secret.
static MASKED_OF_REVIEWS: LazyLock<Vec<Path>> = LazyLock::new(|| {
    let paths = OBJECTS.iter().flat_map(|name| below(name, &*MASKED));
    paths.map(|path| path.below("request")).collect()
});

const MASKED_FIELDS: [&str; 2] = ["data", "stringData"];

impl<'a> Object<'a> {
    /// An object of a kind. It is copied only if something in it is not as rules may see it. It may come from anybody and is gone with
    /// the request, so that nothing of it is interned.
    pub fn of(object: Node<'a>, kind: &Kind) -> Object<'a> {
        Object(changed(object, kind, Interning::LookUpOnly).map_or(Form::Given(object), Form::Made))
    }

    /// An object of a kind that nobody has applied, in this namespace if it is of a kind that has one and names none, and with what a Secret
    /// has in `stringData` in its `data`: the API server does so before rules see the object. None if the object is too large for that.
    pub(crate) fn of_file(object: Node<'a>, kind: &Kind, namespace: &str) -> Option<Object<'a>> {
        let object = Object::in_namespace(object, kind, namespace)?;
        let is_secret = !masked(kind, Some(object.root())).is_empty();
        match is_secret.then(|| with_all_data(object.root())).flatten() {
            Some(document) => Some(Object(Form::Made(document))),
            None => Some(object),
        }
    }

    fn in_namespace(object: Node<'a>, kind: &Kind, namespace: &str) -> Option<Object<'a>> {
        if !kind.namespaced || metadata_text(object, "namespace").is_some() {
            return Some(Object(changed(object, kind, Interning::Add).map_or(Form::Given(object), Form::Made)));
        }
        let document = with_namespace(object, namespace)?;
        Some(Object(Form::Made(changed(document.root(), kind, Interning::Add).unwrap_or(document))))
    }

    /// An object of a kind, for whoever keeps it.
    pub fn kept(object: Node<'_>, kind: &Kind) -> Object<'static> {
        Object(changed(object, kind, Interning::Add).map_or(Form::Given(object), Form::Made)).into_kept()
    }

    /// The same object, for whoever keeps it.
    pub(crate) fn into_kept(self) -> Object<'static> {
        Object(Form::Made(match self.0 {
            Form::Given(object) => Document::copy_of(object, &Options::default()),
            Form::Made(document) => document,
        }))
    }

    /// An object of a kind out of JSON. What may not be seen of a Secret is never in memory. `drop` and `mask` of the
    /// options are ignored.
    pub fn parse(json: &[u8], kind: &Kind, options: &Options<'_>) -> Result<Object<'static>, Error> {
        let known = masked(kind, None);
        let mut document = Document::parse(json, &Options { drop: &*DROPPED, mask: known, ..*options })?;
        // What an object calls itself is known only now.
        let mask = masked(kind, Some(document.root()));
        if mask != known {
            document = sift(document.root(), mask, options.interning);
        }
        let labelled = is_namespace(kind).then(|| with_name_label(document.root(), options.interning)).flatten();
        Ok(Object(Form::Made(labelled.unwrap_or(document))))
    }

    /// The same object with what tells its kind. The API server leaves it out of the objects in a list, and rules may read it.
    pub fn with_type(self, kind: &Kind, version: &str, interning: Interning) -> Object<'a> {
        let object = self.root();
        if TYPE.iter().all(|key| object.get(key).is_some()) {
            return self;
        }
        let mut builder = Builder::with_options(&copying(interning));
        builder.begin_object();
        builder.key("apiVersion").string(&kind.api_version(version));
        builder.key("kind").string(&kind.kind);
        for (key, value) in entries(Some(object)).filter(|(key, _)| !matches!(*key, "apiVersion" | "kind")) {
            builder.key(key).node(value);
        }
        builder.end();
        match builder.finish() {
            Ok(typed) => Object(Form::Made(typed)),
            Err(_) => self,
        }
    }

    /// Bytes of memory that the object holds for itself.
    pub fn size_bytes(&self) -> usize {
        match &self.0 {
            Form::Given(_) => 0,
            Form::Made(document) => document.size_bytes(),
        }
    }

    /// The object.
    pub fn root(&self) -> Node<'_> {
        self.0.root()
    }

    /// The object, for an event.
    pub fn visible(&self) -> Visible<'_> {
        Visible(self.0.root())
    }
}

impl<'a> Request<'a> {
    /// The request of an AdmissionReview about a kind. Nothing if it cannot be copied without what may not be seen.
    pub(crate) fn of(request: Node<'a>, kind: &Kind) -> Option<Request<'a>> {
        let objects = OBJECTS.map(|name| (name, request.get_str(name).filter(|object| !object.is_null())));
        if !is_namespace(kind) {
            return Some(Request::sifted(request, &objects, kind));
        }
        let objects = objects.map(|(name, object)| (name, object.map(|object| Object::of(object, kind))));
        let is_made = |object: &Option<Object<'_>>| matches!(object, Some(Object(Form::Made(_))));
        if !objects.iter().any(|(_, object)| is_made(object)) {
            return Some(Request(Form::Given(request)));
        }
        let mut builder = Builder::with_options(&copying(Interning::LookUpOnly));
        builder.begin_object();
        for (key, value) in entries(Some(request)) {
            let object = objects.iter().find(|(name, _)| *name == key).and_then(|(_, object)| object.as_ref());
            builder.key(key).node(object.map_or(value, Object::root));
        }
        builder.end();
        builder.finish().ok().map(|request| Request(Form::Made(request)))
    }

    /// The request without what may not be seen of its objects. It is copied once for both: they may be large.
    fn sifted(request: Node<'a>, objects: &[(&str, Option<Node<'a>>)], kind: &Kind) -> Request<'a> {
        let there = || objects.iter().filter_map(|(name, object)| Some((*name, (*object)?)));
        let shows = |object| !masked(kind, Some(object)).is_empty() && shows_values(object);
        if !there().any(|(_, object)| shows(object) || has_dropped(object)) {
            return Request(Form::Given(request));
        }
        let mask = hidden(request, kind);
        let drop: Vec<Path> = there().flat_map(|(name, _)| below(name, &*DROPPED)).collect();
        let options = Options { drop: &drop, mask: &mask, ..copying(Interning::LookUpOnly) };
        Request(Form::Made(Document::copy_of(request, &options)))
    }

    /// What the request would say that creates an object.
    pub fn creation(object: &Object<'_>, name: &str, namespace: Option<&str>) -> Option<Request<'static>> {
        let mut builder = Builder::new();
        builder.begin_object();
        builder.key("operation").string("CREATE");
        builder.key("name").string(name);
        if let Some(namespace) = namespace {
            builder.key("namespace").string(namespace);
        }
        builder.key("dryRun").bool(false);
        builder.key("object").node(object.root());
        builder.end();
        builder.finish().ok().map(|request| Request(Form::Made(request)))
    }

    /// The request, for an event.
    pub fn visible(&self) -> Visible<'_> {
        Visible(self.0.root())
    }
}

impl<'a> Visible<'a> {
    /// What is there to see.
    pub fn root(self) -> Node<'a> {
        self.0
    }

    /// A part of it, which may be seen as well.
    pub(crate) fn part(self, name: &str) -> Option<Visible<'a>> {
        self.0.get_str(name).filter(|part| !part.is_null()).map(Visible)
    }
}

impl Form<'_> {
    fn root(&self) -> Node<'_> {
        match self {
            Form::Given(node) => *node,
            Form::Made(document) => document.root(),
        }
    }
}

/// What nobody may see of an object: the values of a Secret, which it is if its kind or the object itself says so.
fn masked(kind: &Kind, object: Option<Node<'_>>) -> &'static [Path] {
    let is_secret = kind.group.is_empty() && kind.kind == "Secret";
    if is_secret || object.is_some_and(is_called_secret) { &*MASKED } else { &[] }
}

/// What nobody may see of the objects in a request.
pub(crate) fn hidden(request: Node<'_>, kind: &Kind) -> Vec<Path> {
    let object = |name| request.get_str(name).filter(|object| !object.is_null());
    OBJECTS.iter().flat_map(|name| below(name, masked(kind, object(name)))).collect()
}

fn below(name: &str, paths: &[Path]) -> Vec<Path> {
    paths.iter().map(|path| path.below(name)).collect()
}

/// Whether the values of a Secret can be seen: whoever read it may have hidden them already.
fn shows_values(object: Node<'_>) -> bool {
    let is_hidden = |values: Node<'_>| {
        values.is_null()
            || values.as_object().is_some_and(|values| values.iter().all(|(_, value)| value.as_str() == Some(MASK)))
    };
    MASKED_FIELDS.iter().filter_map(|name| object.get_str(name)).any(|values| !is_hidden(values))
}

/// Whether an object itself claims to be a Secret, whatever it was taken for.
fn is_called_secret(object: Node<'_>) -> bool {
    let [kind, version] = TYPE.each_ref().map(|key| object.get(key).and_then(Node::as_str));
    kind == Some("Secret") && version.is_none_or(|version| !version.contains('/'))
}

/// Whether a kind is the one of namespaces, each of which is in itself.
pub(crate) fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.kind == "Namespace"
}

/// What whoever reads a review leaves out of it at once, because no rule sees it. What is in the review after all costs a copy.
pub(crate) fn dropped_of_reviews() -> &'static [Path] {
    &DROPPED_OF_REVIEWS
}

/// What nobody may see of a review of a Secret.
pub(crate) fn masked_of_reviews() -> &'static [Path] {
    &MASKED_OF_REVIEWS
}

/// A text of the metadata of an object. To Kubernetes an empty one is none.
pub(crate) fn metadata_text<'n>(object: Node<'n>, name: &str) -> Option<&'n str> {
    object.get_str("metadata")?.get_str(name)?.as_str().filter(|text| !text.is_empty())
}

/// An object as rules may see it, if it is not so already.
fn changed(object: Node<'_>, kind: &Kind, interning: Interning) -> Option<Document> {
    let mask = masked(kind, Some(object));
    let sifted = (!mask.is_empty() || has_dropped(object)).then(|| sift(object, mask, interning));
    let seen = sifted.as_ref().map_or(object, Document::root);
    is_namespace(kind).then(|| with_name_label(seen, interning)).flatten().or(sifted)
}

/// How what was read is copied. It was within the limits of whoever read it, and a review is some levels deeper than its object.
fn copying(interning: Interning) -> Options<'static> {
    let limits = DocumentLimits { bytes: usize::MAX, depth: usize::MAX };
    Options { interning, limits, ..Options::default() }
}

fn has_dropped(object: Node<'_>) -> bool {
    let Some(metadata) = object.get_str("metadata") else { return false };
    let annotations = metadata.get_str("annotations");
    metadata.get_str("managedFields").is_some()
        || annotations.is_some_and(|annotations| annotations.get_str(LAST_APPLIED).is_some())
}

fn sift(object: Node<'_>, mask: &[Path], interning: Interning) -> Document {
    Document::copy_of(object, &Options { drop: &*DROPPED, mask, ..copying(interning) })
}

/// A Namespace with the label that tells its name. Nothing if it has it, or no name.
fn with_name_label(namespace: Node<'_>, interning: Interning) -> Option<Document> {
    let metadata = namespace.get_str("metadata");
    let labels = metadata.and_then(|metadata| metadata.get_str("labels"));
    let name = metadata?.get_str("name")?.as_str()?;
    if labels.and_then(|labels| labels.get_str(NAME_LABEL)).and_then(Node::as_str) == Some(name) {
        return None;
    }
    let mut builder = Builder::with_options(&copying(interning));
    builder.begin_object();
    for (key, value) in entries(Some(namespace)).filter(|(key, _)| *key != "metadata") {
        builder.key(key).node(value);
    }
    builder.key("metadata").begin_object();
    for (key, value) in entries(metadata).filter(|(key, _)| *key != "labels") {
        builder.key(key).node(value);
    }
    builder.key("labels").begin_object();
    for (key, value) in entries(labels).filter(|(key, _)| *key != NAME_LABEL) {
        builder.key(key).node(value);
    }
    builder.key(NAME_LABEL).string(name).end().end().end();
    builder.finish().ok()
}

/// A Secret with everything that it has in `stringData` in its `data`. The API server stores it so, and shows nobody else. Nothing if it has
/// none.
fn with_all_data(secret: Node<'_>) -> Option<Document> {
    let [data, texts] = MASKED_FIELDS.map(|name| secret.get_str(name).filter(|values| values.as_object().is_some()));
    texts?;
    let mut builder = Builder::new();
    builder.begin_object();
    for (key, value) in entries(Some(secret)).filter(|(key, _)| !MASKED_FIELDS.contains(key)) {
        builder.key(key).node(value);
    }
    builder.key("data").begin_object();
    for (key, value) in entries(data).filter(|(key, _)| texts.is_none_or(|texts| texts.get_str(key).is_none())) {
        builder.key(key).node(value);
    }
    for (key, value) in entries(texts) {
        builder.key(key).node(value);
    }
    builder.end().end();
    builder.finish().ok()
}

/// A copy of an object with this namespace.
fn with_namespace(object: Node<'_>, namespace: &str) -> Option<Document> {
    let mut builder = Builder::new();
    builder.begin_object();
    for (key, value) in entries(Some(object)).filter(|(key, _)| *key != "metadata") {
        builder.key(key).node(value);
    }
    builder.key("metadata").begin_object();
    for (key, value) in entries(object.get_str("metadata")).filter(|(key, _)| *key != "namespace") {
        builder.key(key).node(value);
    }
    builder.key("namespace").string(namespace).end().end();
    builder.finish().ok()
}

pub(crate) fn entries<'d>(node: Option<Node<'d>>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    node.and_then(Node::as_object).into_iter().flat_map(|object| object.iter())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::kinds::Kinds;

    /// Compares what can be seen of an object, whichever way it comes.
    #[track_caller]
    fn check(kind: &str, json: &str, expected: Expect) {
        let kind = Kinds::builtin().get("", kind).unwrap();
        let document = Document::parse(json.as_bytes(), &Options::default()).unwrap();
        let seen = Object::of(document.root(), kind);
        expected.assert_eq(&seen.visible().root().to_json());
        expected.assert_eq(&Object::kept(document.root(), kind).root().to_json());
        expected.assert_eq(&Object::parse(json.as_bytes(), kind, &Options::default()).unwrap().root().to_json());
        let review = format!(r#"{{"object":{json},"oldObject":{json},"name":"a"}}"#);
        let review = Document::parse(review.as_bytes(), &Options::default()).unwrap();
        let request = Request::of(review.root(), kind).unwrap();
        for name in OBJECTS {
            expected.assert_eq(&request.visible().part(name).unwrap().root().to_json());
        }
        let request = Request::creation(&seen, "a", None).unwrap();
        expected.assert_eq(&request.visible().part("object").unwrap().root().to_json());
    }

    #[test]
    fn the_keys_of_a_secret_are_visible_and_its_values_are_not() {
        check(
            "Secret",
            r#"{"kind":"Secret","metadata":{"name":"s"},"data":{"a":"aHVudGVyMg=="},"stringData":{"b":"hunter2"},"type":"Opaque"}"#,
            expect![[
                r#"{"kind":"Secret","metadata":{"name":"s"},"data":{"a":"***"},"stringData":{"b":"***"},"type":"Opaque"}"#
            ]],
        );
        check(
            "Secret",
            r#"{"data":"hunter2","stringData":["hunter2",{"a":["hunter2"]}]}"#,
            expect![[r#"{"data":"***","stringData":["***",{"a":["***"]}]}"#]],
        );
    }

    #[test]
    fn what_a_file_has_in_string_data_is_in_data_as_the_api_server_stores_it() {
        let kind = Kinds::builtin().get("", "Secret").unwrap();
        for (json, expected) in [
            (
                r#"{"metadata":{"name":"s","namespace":"a"},"data":{"a":"aGk=","b":"aGk="},"stringData":{"b":"x","c":"y"},"type":"Opaque"}"#,
                r#"{"metadata":{"name":"s","namespace":"a"},"type":"Opaque","data":{"a":"***","b":"***","c":"***"}}"#,
            ),
            (
                r#"{"metadata":{"name":"s"},"stringData":{"c":"y"}}"#,
                r#"{"metadata":{"name":"s","namespace":"a"},"data":{"c":"***"}}"#,
            ),
            (
                r#"{"metadata":{"name":"s","namespace":"a"},"stringData":null}"#,
                r#"{"metadata":{"name":"s","namespace":"a"},"stringData":null}"#,
            ),
        ] {
            let document = Document::parse(json.as_bytes(), &Options::default()).unwrap();
            assert_eq!(Object::of_file(document.root(), kind, "a").unwrap().root().to_json(), expected);
        }
    }

    #[test]
    fn a_secret_that_was_read_without_its_values_is_not_copied() {
        let is_given = |json: &str| {
            let (kind, kinds) = (Kinds::builtin().get("", "Secret").unwrap(), Kinds::builtin());
            let review = format!(
                r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{
                "resource":{{"resource":"secrets","version":"v1"}},"object":{json},"oldObject":null}}}}"#
            );
            let read =
                |mask: &[Path]| Document::parse(review.as_bytes(), &Options { mask, ..Options::default() }).unwrap();
            let hidden = crate::review::Review::hidden(read(&[]).root(), kinds);
            [read(&[]), read(&hidden)].map(|review| {
                let request = Request::of(review.root().get_str("request").unwrap(), kind).unwrap();
                assert!(!request.visible().root().to_json().contains("hunter2"));
                matches!(request.0, Form::Given(_))
            })
        };
        assert_eq!(is_given(r#"{"data":{"a":"hunter2","b":1},"stringData":{"c":"hunter2"}}"#), [false, true]);
        assert_eq!(is_given(r#"{"data":{"a":{"b":"hunter2"}}}"#), [false, false]);
        assert_eq!(is_given(r#"{"data":["hunter2"]}"#), [false, false]);
        assert_eq!(is_given(r#"{"type":"Opaque","data":null}"#), [true, true]);
    }

    #[test]
    fn a_secret_is_one_whatever_it_was_taken_for() {
        check(
            "ConfigMap",
            r#"{"apiVersion":"v1","kind":"Secret","data":{"a":"hunter2"}}"#,
            expect![[r#"{"apiVersion":"v1","kind":"Secret","data":{"a":"***"}}"#]],
        );
        check(
            "Secret",
            r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"hunter2"}}"#,
            expect![[r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"***"}}"#]],
        );
        check(
            "Namespace",
            r#"{"kind":"Secret","metadata":{"name":"shop"},"data":"hunter2"}"#,
            expect![[
                r#"{"kind":"Secret","data":"***","metadata":{"name":"shop","labels":{"kubernetes.io/metadata.name":"shop"}}}"#
            ]],
        );
    }

    #[test]
    fn a_kind_of_another_group_that_is_called_secret_is_none() {
        check(
            "ConfigMap",
            r#"{"apiVersion":"example.com/v1","kind":"Secret","data":{"a":"b"}}"#,
            expect![[r#"{"apiVersion":"example.com/v1","kind":"Secret","data":{"a":"b"}}"#]],
        );
    }

    #[test]
    fn a_secret_without_values_has_none() {
        check(
            "Secret",
            r#"{"data":null,"stringData":{"a":null}}"#,
            expect![[r#"{"data":null,"stringData":{"a":null}}"#]],
        );
    }

    #[test]
    fn what_kubernetes_keeps_for_itself_is_not_there() {
        check(
            "ConfigMap",
            r#"{"metadata":{"name":"c","managedFields":[{}],"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","a":"b"}},"data":{"a":"b"}}"#,
            expect![[r#"{"metadata":{"name":"c","annotations":{"a":"b"}},"data":{"a":"b"}}"#]],
        );
    }

    #[test]
    fn a_namespace_has_the_label_that_the_api_server_gives_it() {
        check(
            "Namespace",
            r#"{"metadata":{"name":"shop","labels":{"a":"b","kubernetes.io/metadata.name":"other"}},"spec":{}}"#,
            expect![[
                r#"{"spec":{},"metadata":{"name":"shop","labels":{"a":"b","kubernetes.io/metadata.name":"shop"}}}"#
            ]],
        );
        check("Namespace", r#"{"metadata":{"generateName":"a-"}}"#, expect![[r#"{"metadata":{"generateName":"a-"}}"#]]);
    }

    #[test]
    fn an_object_of_a_list_gets_what_tells_its_kind() {
        let kind = Kinds::builtin().get("apps", "Deployment").unwrap();
        let typed = |json: &str| {
            let object = Object::parse(json.as_bytes(), kind, &Options::default()).unwrap();
            object.with_type(kind, "v1", Interning::Add).root().to_json()
        };
        let whole = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{}}"#;
        assert_eq!(typed(r#"{"metadata":{"name":"a"},"spec":{}}"#), whole);
        assert_eq!(typed(whole), whole);
    }

    #[test]
    fn a_request_leaves_nothing_in_the_interner() {
        let interner = portal_document::Interner::global();
        let options = Options { interning: Interning::LookUpOnly, ..Options::default() };
        for (kind, key) in [("Pod", "key-of-a-pod"), ("Secret", "key-of-a-secret"), ("Namespace", "key-of-a-namespace")]
        {
            let object = format!(r#"{{"metadata":{{"name":"a","managedFields":[{{}}],"labels":{{"{key}":"b"}}}}}}"#);
            let request = format!(r#"{{"object":{object},"oldObject":{object},"{key}-2":1}}"#);
            let request = Document::parse(request.as_bytes(), &options).unwrap();
            let seen = Request::of(request.root(), Kinds::builtin().get("", kind).unwrap()).unwrap();
            assert!(seen.visible().root().to_json().contains(key));
            for key in [key, &format!("{key}-2")] {
                assert_eq!(interner.look_up(key), None, "{key}");
            }
        }
    }

    #[test]
    fn an_object_as_deep_as_the_api_server_takes_can_be_copied_into_its_request() {
        let options = Options { limits: DocumentLimits { depth: 10_008, ..Default::default() }, ..Options::default() };
        let nested = format!("{}{}", "[".repeat(9_999), "]".repeat(9_999));
        let request = format!(r#"{{"object":{{"metadata":{{"managedFields":[]}},"a":{nested}}}}}"#);
        let request = Document::parse(request.as_bytes(), &options).unwrap();
        let seen = Request::of(request.root(), Kinds::builtin().get("", "Pod").unwrap()).unwrap();
        assert!(!seen.visible().root().is_at(request.root()));
    }

    #[test]
    fn an_object_with_nothing_to_hide_is_not_copied() {
        let document = Document::parse(br#"{"kind":"Pod","metadata":{"name":"a"}}"#, &Options::default()).unwrap();
        let seen = Object::of(document.root(), Kinds::builtin().get("", "Pod").unwrap());
        assert!(seen.root().is_at(document.root()));
    }
}

//! What a rule sees: the roots that it may name, and what is known of them.

mod hints;
pub mod image;
pub(crate) mod pod;

use std::collections::HashMap;
use std::sync::LazyLock;

use portal_expr::{Calls, ComputedId, Field, Function, FunctionId, Object, ObjectId, Parameter, Schema, Shape, Slot};

/// The roots, in the order in which every schema declares them. Slot 3 is `cluster`, which has no value to ask for.
pub(crate) const OBJECT: Slot = Slot(0);
pub(crate) const METADATA: Slot = Slot(1);
pub(crate) const REQUEST: Slot = Slot(2);
pub(crate) const CONSISTENT_CLUSTER: Slot = Slot(4);
pub(crate) const CONTAINER: Slot = Slot(5);
pub(crate) const SPEC: Slot = Slot(6);
pub(crate) const SECURITY_CONTEXT: Slot = Slot(7);
pub(crate) const ROOTS: usize = 8;

pub(crate) const BY_NAME: FunctionId = FunctionId(0);
pub(crate) const LIST: FunctionId = FunctionId(1);
pub(crate) const SELECTS: FunctionId = FunctionId(2);

/// The name between `cluster` and a plural that asks for a fresh answer.
pub(crate) const CONSISTENT: &str = "consistent";

pub(crate) const IMAGE_REGISTRY: ComputedId = ComputedId(0);
pub(crate) const IMAGE_NAME: ComputedId = ComputedId(1);
pub(crate) const IMAGE_TAG: ComputedId = ComputedId(2);
pub(crate) const IMAGE_SHA256: ComputedId = ComputedId(3);
pub(crate) const CONTAINER_TYPE: ComputedId = ComputedId(4);
pub(crate) const SECCOMP_PROFILE_TYPE: ComputedId = ComputedId(5);

/// What rules for any kind may name.
pub(crate) static ANY_KIND: LazyLock<Schema> = LazyLock::new(|| schema(false));

/// What rules for kinds with a pod template may name.
pub(crate) static PODS: LazyLock<Schema> = LazyLock::new(|| schema(true));

/// Fields of Kubernetes' own types, as its API server describes them.
const FIELDS: &str = include_str!("context/fields.txt");

fn schema(pods: bool) -> Schema {
    let mut schema = Schema::new();
    let types = add_types(&mut schema);
    let request = add_request(&mut schema);
    let map = || Shape::map(Shape::Any);
    let lookups = |names| {
        Shape::Calls(Calls {
            names,
            functions: vec![
                // What the first argument is depends on whether the kind has namespaces; the compiler of rules knows.
                Function {
                    // Nothing may be called so.
                    always: false,
                    ..function("byName", BY_NAME, [("ns", Shape::Text, true), ("name", Shape::Text, false)], Shape::Any)
                },
                function(
                    "list",
                    LIST,
                    [("ns", Shape::Any, false), ("selector", map(), false)],
                    Shape::list(Shape::Any),
                ),
            ],
        })
    };
    let roots = [
        ("object", Shape::Any),
        ("metadata", Shape::Object(types["ObjectMeta"])),
        ("request", Shape::Object(request)),
        ("cluster", lookups(1..=2)),
        ("consistentCluster", lookups(1..=1)),
        ("container", Shape::Object(types["Container"])),
        ("spec", Shape::Object(types["PodSpec"])),
        ("securityContext", Shape::Object(types["PodSecurityContext"])),
    ];
    let count = if pods { ROOTS } else { CONTAINER.0 as usize };
    for (name, shape) in roots.into_iter().take(count) {
        schema.add_root(name, shape);
    }
    let parameters = [("selector", map(), true), ("labels", map(), true)];
    schema.add_function(function("selects", SELECTS, parameters, Shape::Bool));
    hints::add_hints(&mut schema, pods);
    schema
}

fn function(name: &str, id: FunctionId, parameters: [(&str, Shape, bool); 2], result: Shape) -> Function {
    let parameters = parameters.map(|(name, shape, required)| Parameter { name: name.to_owned(), shape, required });
    Function { name: name.to_owned(), parameters: parameters.into(), result, always: true, id }
}

/// Adds the types of the table, with the fields that the host computes for them.
fn add_types(schema: &mut Schema) -> HashMap<&'static str, ObjectId> {
    let is_type = |line: &&str| !line.starts_with(' ');
    let ids: HashMap<&str, ObjectId> =
        FIELDS.lines().filter(is_type).map(|name| (name, add_object(schema, name))).collect();
    let image = add_image(schema);
    let mut name = "";
    let mut fields: HashMap<&str, HashMap<String, Field>> = HashMap::new();
    for line in FIELDS.lines() {
        match line.trim_start().split_once(' ') {
            Some((field, shape)) => {
                fields.entry(name).or_default().insert(field.to_owned(), Field::optional(shape_of(shape, &ids)));
            }
            None => name = line,
        }
    }
    for (name, mut fields) in fields {
        match name {
            "Container" => {
                fields.insert("containerType".to_owned(), Field::computed(Shape::Text, CONTAINER_TYPE));
                fields.insert("image".to_owned(), Field::optional(Shape::TextWith(image)));
            }
            "SecurityContext" | "PodSecurityContext" => {
                fields.insert("seccompProfileType".to_owned(), Field::computed(Shape::Text, SECCOMP_PROFILE_TYPE));
            }
            _ => {}
        }
        schema.set_fields(ids[name], fields);
    }
    ids
}

fn shape_of(text: &str, ids: &HashMap<&str, ObjectId>) -> Shape {
    let inside = |open, close| text.strip_prefix(open).and_then(|text: &str| text.strip_suffix(close));
    if let Some(element) = inside('[', ']') {
        return Shape::list(shape_of(element, ids));
    }
    if let Some(value) = inside('{', '}') {
        return Shape::map(shape_of(value, ids));
    }
    match text {
        "text" => Shape::Text,
        "int" => Shape::Int,
        "bool" => Shape::Bool,
        "float" => Shape::Float,
        name => ids.get(name).map_or(Shape::Any, |id| Shape::Object(*id)),
    }
}

fn add_image(schema: &mut Schema) -> ObjectId {
    let image = add_object(schema, "image");
    let parts = [("registry", IMAGE_REGISTRY), ("name", IMAGE_NAME), ("tag", IMAGE_TAG), ("sha256", IMAGE_SHA256)];
    let fields = parts.map(|(name, part)| (name.to_owned(), Field::computed(Shape::Text, part)));
    schema.set_fields(image, HashMap::from(fields));
    image
}

fn add_request(schema: &mut Schema) -> ObjectId {
    let user = add_object(schema, "userInfo");
    let texts = || Shape::list(Shape::Text);
    let fields = [("username", Shape::Text), ("uid", Shape::Text), ("groups", texts()), ("extra", Shape::map(texts()))];
    schema.set_fields(user, fields.map(|(name, shape)| (name.to_owned(), Field::optional(shape))).into());
    let request = add_object(schema, "request");
    let fields = [
        ("operation", Shape::Text),
        ("dryRun", Shape::Bool),
        ("userInfo", Shape::Object(user)),
        ("object", Shape::Any),
        ("oldObject", Shape::Any),
        ("subResource", Shape::Text),
        ("name", Shape::Text),
        ("namespace", Shape::Text),
    ];
    schema.set_fields(request, fields.map(|(name, shape)| (name.to_owned(), Field::optional(shape))).into());
    request
}

fn add_object(schema: &mut Schema, name: &str) -> ObjectId {
    schema.add_object(Object { name: name.to_owned(), fields: HashMap::new(), open: false })
}

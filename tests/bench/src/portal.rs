//! Our side of the race: a schema and contexts like those that rules get, and the evaluation as a rule engine does it.

use std::borrow::Cow;

use portal_core::context::image::Image;
use portal_core::language::{self, Expression, ExpressionEngine as _};
use portal_document::{Document, Node};
use portal_expr::{
    Arena, ComputedId, Failure, Field, Fields, Host, Limits, Machine, Moment, Object, ObjectId, Schema, Shape, Slot,
    Value,
};

use crate::rules::Rule;

/// The roots, in the order of their slots.
const ROOTS: [&str; 5] = ["object", "metadata", "spec", "securityContext", "container"];

/// The fields of an image reference, in the order of their numbers.
const IMAGE_FIELDS: [&str; 4] = ["registry", "name", "tag", "sha256"];

/// What one evaluation sees.
pub struct Context<'d> {
    roots: [Value<'d>; ROOTS.len()],
}

/// The contexts of an object: its own, and one for each container.
pub fn contexts<'d>(document: &'d Document) -> (Context<'d>, Vec<Context<'d>>) {
    let object = document.root();
    let get = |node: Option<Node<'d>>, key| node.and_then(|node| node.get_str(key));
    let own_spec = object.get_str("spec");
    let spec = get(get(own_spec, "template"), "spec").or(own_spec);
    let context = |container: Option<Node<'d>>| {
        let roots = [Some(object), object.get_str("metadata"), spec, get(spec, "securityContext"), container];
        Context { roots: roots.map(|root| root.map_or(Value::Nil, Value::from_node)) }
    };
    let containers = ["containers", "initContainers", "ephemeralContainers"].map(|key| get(spec, key));
    let containers = containers.into_iter().flatten().filter_map(Node::as_array).flat_map(|list| list.iter());
    (context(None), containers.map(|container| context(Some(container))).collect())
}

/// Compiles a rule as the engine does.
pub fn compile(rule: &Rule, schema: &Schema) -> Box<dyn Expression> {
    language::ExprEngine.compile(rule.portal, schema).unwrap_or_else(|error| panic!("{}: {error}", rule.name))
}

/// Whether a rule is violated. The arena is the caller's, used again and again.
pub fn evaluate(expression: &dyn Expression, context: &Context<'_>, arena: &mut Arena, limits: &Limits) -> bool {
    let verdict = language::evaluate(expression, context, arena, limits, Moment::default());
    let verdict = matches!(verdict.unwrap_or_else(|error| panic!("{error}")), Value::Bool(true));
    arena.reset();
    verdict
}

/// The schema of these contexts: the fields of Kubernetes' types that rules usually read, and the parts of an image.
pub fn schema() -> Schema {
    let mut schema = Schema::new();
    let image = IMAGE_FIELDS.iter().enumerate();
    let image = image.map(|(id, name)| ((*name).to_owned(), Field::computed(Shape::Text, ComputedId(id as u16))));
    let image = Object { name: "Image".to_owned(), fields: image.collect(), open: false };
    let image = schema.add_object(image);
    let texts = || Shape::list(Shape::Text);
    let text_map = || Shape::map(Shape::Text);
    let seccomp = object(&mut schema, "SeccompProfile", [("type", Shape::Text), ("localhostProfile", Shape::Text)]);
    let capabilities = object(&mut schema, "Capabilities", [("add", texts()), ("drop", texts())]);
    let context = object(
        &mut schema,
        "SecurityContext",
        [
            ("privileged", Shape::Bool),
            ("allowPrivilegeEscalation", Shape::Bool),
            ("readOnlyRootFilesystem", Shape::Bool),
            ("runAsNonRoot", Shape::Bool),
            ("runAsUser", Shape::Int),
            ("capabilities", Shape::Object(capabilities)),
            ("seccompProfile", Shape::Object(seccomp)),
        ],
    );
    let pod_context = object(
        &mut schema,
        "PodSecurityContext",
        [
            ("runAsNonRoot", Shape::Bool),
            ("runAsUser", Shape::Int),
            ("fsGroup", Shape::Int),
            ("seccompProfile", Shape::Object(seccomp)),
        ],
    );
    let resources = object(&mut schema, "ResourceRequirements", [("limits", text_map()), ("requests", text_map())]);
    let variable =
        object(&mut schema, "EnvVar", [("name", Shape::Text), ("value", Shape::Text), ("valueFrom", Shape::Any)]);
    let container = object(
        &mut schema,
        "Container",
        [
            ("name", Shape::Text),
            ("image", Shape::TextWith(image)),
            ("args", texts()),
            ("command", texts()),
            ("env", Shape::list(Shape::Object(variable))),
            ("ports", Shape::list(Shape::Any)),
            ("livenessProbe", Shape::Any),
            ("readinessProbe", Shape::Any),
            ("resources", Shape::Object(resources)),
            ("securityContext", Shape::Object(context)),
        ],
    );
    let volume = object(&mut schema, "Volume", [("name", Shape::Text), ("hostPath", Shape::Any)]);
    let spec = object(
        &mut schema,
        "PodSpec",
        [
            ("containers", Shape::list(Shape::Object(container))),
            ("initContainers", Shape::list(Shape::Object(container))),
            ("hostNetwork", Shape::Bool),
            ("hostPID", Shape::Bool),
            ("hostIPC", Shape::Bool),
            ("serviceAccountName", Shape::Text),
            ("securityContext", Shape::Object(pod_context)),
            ("volumes", Shape::list(Shape::Object(volume))),
        ],
    );
    let metadata = object(
        &mut schema,
        "ObjectMeta",
        [("name", Shape::Text), ("namespace", Shape::Text), ("labels", text_map()), ("annotations", text_map())],
    );
    let shapes = [metadata, spec, pod_context, container].map(Shape::Object);
    for (name, shape) in ROOTS.iter().zip([Shape::Any].into_iter().chain(shapes)) {
        schema.add_root(*name, shape);
    }
    schema
}

fn object<const N: usize>(schema: &mut Schema, name: &str, fields: [(&str, Shape); N]) -> ObjectId {
    let fields = fields.map(|(name, shape)| (name.to_owned(), Field::optional(shape)));
    schema.add_object(Object { name: name.to_owned(), fields: Fields::from_iter(fields), open: false })
}

impl Host for Context<'_> {
    fn root(&self, slot: Slot) -> Value<'_> {
        self.roots[usize::from(slot.0)]
    }

    fn computed<'a>(&'a self, field: ComputedId, base: Value<'a>, machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        let Value::Text(reference) = base else { return Err(Failure::new("an image must be a string")) };
        let image = Image(reference);
        let part = match field.0 {
            0 => Some(match image.registry() {
                Cow::Borrowed(registry) => registry,
                Cow::Owned(registry) => machine.text(&registry)?,
            }),
            1 => Some(image.name()),
            2 => image.tag(),
            _ => image.sha256(),
        };
        Ok(part.map_or(Value::Nil, Value::Text))
    }
}

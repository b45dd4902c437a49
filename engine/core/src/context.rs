//! What a rule sees: the roots that it may name, and what is known of them.

mod certificate;
pub mod functions;
mod hints;
pub mod image;
pub(crate) mod pod;
#[cfg(test)]
mod tests;
mod types;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use portal_expr::{
    Among, Calls, ComputedId, Field, Function, FunctionId, Nil, ObjectId, Parameter, Schema, Shape, Slot, Words,
};

use crate::{
    context::types::{Identity, KindTypes, SECRET, SECRET_FIELDS, TYPES, Types},
    event::{Operation, POD_SUBRESOURCES},
    kinds::Kind,
};

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
pub(crate) const BY_REF: FunctionId = FunctionId(6);

/// The name between `cluster` and a plural that asks for a fresh answer.
pub(crate) const CONSISTENT: &str = "consistent";

/// The word before kinds of which a reference says which one it means.
const ANY: &str = "any";

pub(crate) const IMAGE_REGISTRY: ComputedId = ComputedId(0);
pub(crate) const IMAGE_NAME: ComputedId = ComputedId(1);
pub(crate) const IMAGE_TAG: ComputedId = ComputedId(2);
pub(crate) const IMAGE_SHA256: ComputedId = ComputedId(3);
pub(crate) const CONTAINER_TYPE: ComputedId = ComputedId(4);
pub(crate) const SECCOMP_PROFILE_TYPE: ComputedId = ComputedId(5);

/// How many types an object may be of. The language keeps no more of them apart, and would take everything for possible.
const MAX_TYPES: usize = 8;

/// The subresources of Kubernetes that rules are for.
const SUBRESOURCES: [&str; 11] =
    ["approval", "attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "scale", "status", "token"];

/// The operations that a rule is asked about if it does not say.
const DEFAULT_OPERATIONS: [Operation; 2] = [Operation::Create, Operation::Update];

/// The kinds that a rule judges, as far as they decide what it may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged<'a> {
    /// The kinds, with the versions that the rule names; none for any.
    pub(crate) kinds: &'a [(&'a Kind, &'a [String])],
    /// Whether what is judged may be something else than an object of these kinds: what `kubectl exec` sends, a scale.
    pub(crate) has_other_bodies: bool,
    /// Whether all of them have pods in them.
    pub(crate) has_pods: bool,
    /// Whether it sees pods themselves, to which containers are added later, and not only what makes them.
    pub(crate) sees_pods: bool,
    /// The operations that are judged.
    pub(crate) operations: &'a [Operation],
    /// The subresources that are judged beside the objects.
    pub(crate) subresources: &'a [String],
    /// Whether the rule names `request`: of others nothing needs to be known of it.
    pub(crate) names_request: bool,
}

/// What is the same for all rules for pods: the types, the functions, and what people look for under other names.
static WITH_PODS: LazyLock<Schema> = LazyLock::new(|| with_functions(true));

/// The functions that look something up.
static LOOKUP_FUNCTIONS: LazyLock<Arc<[Function]>> = LazyLock::new(|| {
    let list = [("ns", Shape::Any, false), ("selector", Shape::map(Shape::Any), false)];
    // What the first argument is depends on whether the kind has namespaces; the compiler of rules knows.
    let by_name = [("ns", Shape::Text, true), ("name", Shape::Text, false)];
    let mut list = function("list", LIST, list, Shape::list(Shape::Any));
    list.parameters.iter_mut().for_each(|parameter| parameter.takes_text = true);
    [
        // Nothing may be called so.
        Function { always: false, ..function("byName", BY_NAME, by_name, Shape::Any) },
        list,
    ]
    .into()
});

/// The functions that follow a reference to one of several kinds.
static REFERENCE_FUNCTIONS: LazyLock<Arc<[Function]>> = LazyLock::new(|| {
    // Which of them must be given depends on whether the kinds have namespaces.
    let by_ref = [("ns", Shape::Any, false), ("ref", Shape::map(Shape::Any), false)];
    let mut by_ref = Function { always: false, ..function("byRef", BY_REF, by_ref, Shape::Any) };
    for parameter in by_ref.parameters.iter_mut().filter(|parameter| parameter.name == "ref") {
        parameter.fields = &["kind", "name"];
    }
    [by_ref].into()
});

/// What lookups give, of the kinds of Kubernetes.
static LOOKUPS: LazyLock<Arc<HashMap<String, Vec<Shape>>>> = LazyLock::new(|| Arc::new(TYPES.lookups()));

/// The same for other kinds.
static WITHOUT_PODS: LazyLock<Schema> = LazyLock::new(|| with_functions(false));

fn with_functions(has_pods: bool) -> Schema {
    let mut schema = hints::hinted(&TYPES.schema, has_pods);
    functions::add_to(&mut schema, TYPES.image, TYPES.certificate);
    schema
}

/// What a rule may name. The types are the same for all rules; the roots are its own.
pub(crate) fn schema(judged: Judged<'_>) -> Schema {
    let types = &*TYPES;
    let mut schema = if judged.has_pods { WITH_PODS.clone() } else { WITHOUT_PODS.clone() };
    if !judged.sees_pods {
        types::missing::leave_out_later_containers(&mut schema);
    }
    let (object, request) = subject(types, judged);
    let identity = judged.kinds.iter().map(|(kind, _)| Identity::of(&kind.group, &kind.kind, kind.namespaced)).min();
    let identity = identity.filter(|_| !judged.has_other_bodies).unwrap_or(Identity::None);
    let metadata = Shape::Object(types.metadata(identity));
    let lookups = |names| {
        let (functions, results) = (Arc::clone(&LOOKUP_FUNCTIONS), Arc::clone(&LOOKUPS));
        let among = Some(Among { word: ANY, functions: Arc::clone(&REFERENCE_FUNCTIONS) });
        Shape::Calls(Calls { names, functions, results, among })
    };
    let object_ids = objects_of(&object);
    schema.add_required_root("object", object);
    match identity {
        Identity::None => schema.add_root("metadata", metadata),
        Identity::Name | Identity::NameAndNamespace => schema.add_required_root("metadata", metadata),
    };
    if judged.names_request {
        narrow_request(&mut schema, judged, &request);
    }
    narrow_secrets(&mut schema, types, judged, &object_ids);
    schema.add_required_root("request", request);
    schema.add_root("cluster", lookups(1..=2));
    schema.add_root("consistentCluster", lookups(1..=1));
    if judged.has_pods {
        schema.add_required_root("container", Shape::Object(types.pod.container));
        schema.add_required_root("spec", Shape::Object(types.pod.spec));
        schema.add_root("securityContext", Shape::Object(types.pod.security_context));
    }
    schema
}

/// The fields that a pod's security context and a container's both have.
pub(crate) static SHARED_SECURITY_FIELDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let schema = &TYPES.schema;
    let of_container = schema.object(TYPES.pod.container).fields.get("securityContext");
    let of_container = of_container.map(|field| objects_of(&field.shape)).unwrap_or_default();
    let of_pod = schema.object(TYPES.pod.security_context).fields.keys().map(String::as_str);
    of_pod.filter(|name| of_container.iter().any(|id| schema.object(*id).fields.contains_key(*name))).collect()
});

/// Says of requests what `match` leaves of them.
fn narrow_request(schema: &mut Schema, judged: Judged<'_>, request: &Shape) {
    let operations = Arc::new(operations(judged.operations));
    let subresources = Arc::new(subresources(judged));
    let is_namespaced = !judged.kinds.is_empty() && judged.kinds.iter().all(|(kind, _)| kind.namespaced);
    for id in objects_of(request) {
        schema.narrow(id, "subResource", Field::optional(Shape::Word(Arc::clone(&subresources))));
        if is_namespaced {
            schema.narrow(id, "namespace", Field::required(Shape::Text));
        }
        schema.narrow(id, "operation", Field::required(Shape::Word(Arc::clone(&operations))));
    }
}

/// Says of the values of Secrets how the other kinds of a rule are asked for theirs.
fn narrow_secrets(schema: &mut Schema, types: &Types, judged: Judged<'_>, objects: &[ObjectId]) {
    let others: Vec<&str> =
        judged.kinds.iter().filter(|(kind, _)| !is_secret(kind)).map(|(kind, _)| kind.kind.as_str()).collect();
    if others.is_empty() || others.len() == judged.kinds.len() {
        return;
    }
    let reason: Arc<str> = format!("{SECRET} (write a rule for {} alone)", others.join(" and ")).into();
    let secret = types.of("", "v1", "Secret").map(|known| known.object);
    let secrets = objects.iter().filter(|id| Some(**id) == secret || **id == types.maybe_secret.object);
    for (id, name) in secrets.flat_map(|id| SECRET_FIELDS.map(|name| (*id, name))) {
        schema.narrow(id, name, Field::optional(Shape::map(Shape::Hidden(Arc::clone(&reason)))));
    }
}

fn is_secret(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.kind == "Secret"
}

/// The operations that a rule is asked about, and how it would be asked about others.
fn operations(judged: &[Operation]) -> Words {
    let names = |operations: &[Operation]| operations.iter().map(|operation| operation.name()).collect::<Vec<_>>();
    let default = if judged == DEFAULT_OPERATIONS { ", its default" } else { "" };
    let said_by = format!("`match.operations` ([{}]{default})", names(judged).join(", "));
    let others = Operation::ALL.into_iter().filter(|operation| !judged.contains(operation));
    let advice = |other: Operation| {
        let all = names(&[judged, &[other]].concat()).join(", ");
        // It is nothing that happens to an object as a whole.
        let on = if other == Operation::Connect { " and the `subresources`, such as exec" } else { "" };
        (other.name().to_owned(), format!("write `operations: [{all}]`{on}"))
    };
    Words {
        listed: names(judged).into_iter().map(str::to_owned).collect(),
        said_by,
        left_out: others.map(advice).collect(),
    }
}

/// The subresources that a rule is asked about, and how it would be asked about others.
fn subresources(judged: Judged<'_>) -> Words {
    let mut listed: Vec<String> = judged.subresources.to_vec();
    if judged.kinds.is_empty() || judged.kinds.iter().any(|(kind, _)| kind.group.is_empty() && kind.kind == "Pod") {
        listed.extend(POD_SUBRESOURCES.map(str::to_owned));
    }
    let of_kinds = judged.kinds.iter().flat_map(|(kind, _)| kind.subresources.iter().map(String::as_str));
    let mut others: Vec<&str> =
        of_kinds.chain(SUBRESOURCES).filter(|name| !listed.iter().any(|own| own == name)).collect();
    others.sort_unstable();
    others.dedup();
    let advice = |other: &str| {
        let all = [judged.subresources, &[other.to_owned()]].concat().join(", ");
        (other.to_owned(), format!("write `subresources: [{all}]` below `match`"))
    };
    let left_out = others.into_iter().map(advice).collect();
    Words { listed, said_by: "`match.subresources`".to_owned(), left_out }
}

fn objects_of(shape: &Shape) -> Vec<ObjectId> {
    match shape {
        Shape::Object(id) => vec![*id],
        Shape::OneOf(shapes) => shapes.iter().flat_map(objects_of).collect(),
        _ => Vec::new(),
    }
}

/// What is known of the object and of a request for it: that they are of one of the judged kinds, if all of them are known.
fn subject(types: &Types, judged: Judged<'_>) -> (Shape, Shape) {
    let unknown = match judged.kinds.iter().any(|(kind, _)| is_secret(kind)) {
        true => (Shape::Object(types.maybe_secret.object), Shape::Object(types.maybe_secret.request)),
        false => (Shape::Any, Shape::Object(types.request)),
    };
    if judged.has_other_bodies {
        return unknown;
    }
    let mut found = Vec::new();
    for (kind, named) in judged.kinds {
        let versions = if named.is_empty() { &kind.versions } else { *named };
        let known = versions.iter().filter_map(|version| types.of(&kind.group, version, &kind.kind));
        let before = found.len();
        found.extend(known);
        if found.len() == before {
            return unknown;
        }
    }
    match &found[..] {
        [] => unknown,
        [only] => (Shape::Object(only.object), Shape::Object(only.request)),
        several if several.len() <= MAX_TYPES => {
            let one_of =
                |id: fn(&KindTypes) -> ObjectId| Shape::OneOf(several.iter().map(id).map(Shape::Object).collect());
            (one_of(|known| known.object), one_of(|known| known.request))
        }
        _ => unknown,
    }
}

fn function(name: &str, id: FunctionId, parameters: [(&str, Shape, bool); 2], result: Shape) -> Function {
    let parameters = parameters.map(|(name, shape, required)| Parameter {
        name: name.to_owned(),
        shape,
        required,
        // The compiler of rules knows which of them may be nil.
        nil: Nil::Passed,
        fields: &[],
        takes_text: false,
    });
    Function { name: name.to_owned(), parameters: parameters.into(), result, always: true, id }
}

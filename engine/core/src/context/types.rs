//! The types of Kubernetes, read once from the table that a test writes, and what rules see beyond them: objects that have been given
//! a name, and the fields that the host computes.

pub(crate) mod missing;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use portal_document::Interner;
use portal_expr::{Field, Fields, Object, ObjectId, Schema, Shape, Words};

use super::{
    CONTAINER_TYPE, SECCOMP_PROFILE_TYPE, functions,
    pod::{CONTAINER_TYPES, ContainerType},
};
use crate::kinds::Kinds;

/// Every type that a rule can get to.
pub(crate) struct Types {
    /// The objects, and no root.
    pub(crate) schema: Schema,
    /// What rules see of a kind, by `apiVersion` and `kind` with a space between them.
    kinds: HashMap<&'static str, KindTypes>,
    /// The metadata of objects of which so much is known.
    metadata: [ObjectId; 3],
    pub(crate) pod: PodTypes,
    /// The text of an image, with its parts.
    pub(crate) image: ObjectId,
    pub(crate) certificate: ObjectId,
    /// A request for an object of which nothing is known.
    pub(crate) request: ObjectId,
    /// An object of which nothing is known but that it may be a Secret.
    pub(crate) maybe_secret: KindTypes,
}

/// What rules see of a kind in one version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindTypes {
    pub(crate) object: ObjectId,
    pub(crate) request: ObjectId,
}

/// What rules see of a pod, with the fields that the host computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodTypes {
    pub(crate) container: ObjectId,
    pub(crate) spec: ObjectId,
    pub(crate) security_context: ObjectId,
}

/// What is always there in the metadata of an object.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Identity {
    /// Nothing: it is not stored, or something else than the object is judged.
    None,
    Name,
    NameAndNamespace,
}

/// Builds objects, which refer to each other.
struct Builder {
    schema: Schema,
    ids: HashMap<&'static str, ObjectId>,
}

/// The kinds and the types of Kubernetes 1.36, as its API server describes them. A line is one of these:
///
/// ```text
/// apps/v1 Deployment = Deployment        objects of this version and kind are of this type
/// Container                              the type of this name has the fields below
///   name! text                           a field, with `!` if every object has it
///   args [text]                          a list; a map from text is {text}
///   imagePullPolicy text(Always|Never)   one of these texts
/// ```
///
/// A field is `text`, `int`, `float`, `bool`, a `quantity`, `any` of which nothing is known, or of a type. Of types that share a name
/// each has its group and version too: `core/v1/Event`.
const TABLE: &str = include_str!("fields.txt");

/// The texts that are pointers in the Go types of Kubernetes, which its API server does not tell: `IngressSpec.ingressClassName`, a line
/// each. In those an empty text is something else than none. Any other text that may be left out is the same to Kubernetes if it is empty.
const POINTERS: &str = include_str!("pointers.txt");

/// Why nothing can be asked about the values of a Secret.
pub(crate) const SECRET: &str = "the values of a Secret are hidden from rules, which read \"***\"";

/// The fields of a Secret whose values are hidden.
pub(crate) const SECRET_FIELDS: [&str; 2] = ["data", "stringData"];

/// Fields that are a number, or a text such as "25%" or the name of a port.
const INT_OR_TEXT: [&str; 5] = ["maxSurge", "maxUnavailable", "minAvailable", "port", "targetPort"];

/// Fields that are one of a few texts, as Kubernetes checks and its API server does not describe.
const WORDS: [(&str, &str, &str); 33] = [
    ("CSIDriverSpec", "fsGroupPolicy", "text(File|None|ReadWriteOnceWithFSType)"),
    ("CSIDriverSpec", "volumeLifecycleModes", "[text(Ephemeral|Persistent)]"),
    ("ContainerResizePolicy", "resourceName!", "text(cpu|memory)"),
    ("ContainerResizePolicy", "restartPolicy!", "text(NotRequired|RestartContainer)"),
    ("ContainerRestartRuleOnExitCodes", "operator!", "text(In|NotIn)"),
    ("CustomResourceColumnDefinition", "type!", "text(boolean|date|integer|number|string)"),
    ("CustomResourceConversion", "strategy!", "text(None|Webhook)"),
    ("CustomResourceDefinitionSpec", "scope!", "text(Cluster|Namespaced)"),
    ("FlowDistinguisherMethod", "type!", "text(ByNamespace|ByUser)"),
    ("HPAScalingPolicy", "type!", "text(Percent|Pods)"),
    ("HPAScalingRules", "selectPolicy", "text(Disabled|Max|Min)"),
    ("IngressClassParametersReference", "scope", "text(Cluster|Namespace)"),
    ("JSONSchemaProps", "type", "text(array|boolean|integer|null|number|object|string)"),
    ("LabelSelectorRequirement", "operator!", "text(DoesNotExist|Exists|In|NotIn)"),
    ("LimitRangeItem", "type!", "text(Container|PersistentVolumeClaim|Pod)"),
    ("LimitResponse", "type!", "text(Queue|Reject)"),
    ("LoadBalancerIngress", "ipMode", "text(Proxy|VIP)"),
    ("MetricSpec", "type!", "text(ContainerResource|External|Object|Pods|Resource)"),
    ("MetricTarget", "type!", "text(AverageValue|Utilization|Value)"),
    ("ParamRef", "parameterNotFoundAction", "text(Allow|Deny)"),
    ("PodCertificateProjection", "keyType!", "text(ECDSAP256|ECDSAP384|ECDSAP521|ED25519|RSA3072|RSA4096)"),
    ("PodFailurePolicyOnPodConditionsPattern", "status", "text(False|True|Unknown)"),
    ("PodOS", "name!", "text(linux|windows)"),
    ("PodSecurityContext", "seLinuxChangePolicy", "text(MountOption|Recursive)"),
    ("PriorityLevelConfigurationSpec", "type!", "text(Exempt|Limited)"),
    ("RoleRef", "apiGroup", "text(rbac.authorization.k8s.io)"),
    ("RoleRef", "kind!", "text(ClusterRole|Role)"),
    ("ServiceSpec", "trafficDistribution", "text(PreferClose|PreferSameNode|PreferSameZone)"),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted", "text(Delete|Retain)"),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenScaled", "text(Delete|Retain)"),
    ("VolumeMount", "recursiveReadOnly", "text(Disabled|Enabled|IfPossible)"),
    ("flowcontrol/v1/Subject", "kind!", "text(Group|ServiceAccount|User)"),
    ("rbac/v1/Subject", "kind!", "text(Group|ServiceAccount|User)"),
];

/// What the status of every condition is.
const CONDITION: &str = "text(False|True|Unknown)";

/// Fields of Kubernetes, and maps of texts, of which no text has a `*` or a `?` in it: names of objects, labels, images, and users.
const UNPATTERNED: [&str; 24] = [
    "name",
    "namespace",
    "generateName",
    "labels",
    "matchLabels",
    "nodeSelector",
    "image",
    "registry",
    "tag",
    "username",
    "serviceAccountName",
    "serviceAccount",
    "nodeName",
    "hostname",
    "subdomain",
    "schedulerName",
    "priorityClassName",
    "runtimeClassName",
    "ingressClassName",
    "storageClassName",
    "volumeName",
    "claimName",
    "secretName",
    "configMapName",
];

/// All types, for all rules.
pub(crate) static TYPES: LazyLock<Types> = LazyLock::new(Types::read);

/// What is around the objects of an AdmissionReview, beside what rules see of it.
const AROUND_OBJECTS: [&str; 7] =
    ["AdmissionReview", "admission.k8s.io/v1", "request", "requestKind", "requestResource", "resource", "options"];

impl Types {
    fn read() -> Types {
        AROUND_OBJECTS.into_iter().for_each(share);
        let mut builder = Builder { schema: Schema::new(), ids: HashMap::new() };
        builder.schema.set_unpatterned(UNPATTERNED);
        missing::add_to(&mut builder.schema);
        builder.add_table();
        let metadata = builder.add_metadata();
        let image = functions::add_image(&mut builder.schema);
        let certificate = functions::add_certificate(&mut builder.schema);
        let pod = builder.add_pod(image);
        let user = builder.add_user();
        let request = builder.add_request(user, &Shape::Any);
        let maybe_secret = builder.add_maybe_secret();
        let maybe_secret =
            KindTypes { object: maybe_secret, request: builder.add_request(user, &Shape::Object(maybe_secret)) };
        let mut kinds = HashMap::new();
        for (kind, name) in TABLE.lines().map_while(|line| line.split_once(" = ")) {
            let object = builder.add_kind(kind, name, &metadata);
            let request = builder.add_request(user, &Shape::Object(object));
            kinds.insert(kind, KindTypes { object, request });
        }
        Types { schema: builder.schema, kinds, metadata, pod, image, certificate, request, maybe_secret }
    }

    /// What rules see of objects of a kind in a version, if Kubernetes has said it.
    pub(crate) fn of(&self, group: &str, version: &str, kind: &str) -> Option<KindTypes> {
        let separator = if group.is_empty() { "" } else { "/" };
        self.kinds.get(&*format!("{group}{separator}{version} {kind}")).copied()
    }

    /// What lookups give of the kinds of Kubernetes, by what they are called behind `cluster`: one object, a list of them, and
    /// one that a reference leads to. In the order of the functions.
    pub(crate) fn lookups(&self) -> HashMap<String, Vec<Shape>> {
        let mut lookups = HashMap::new();
        for kind in Kinds::builtin().iter() {
            let known = kind.versions.iter().filter_map(|version| self.of(&kind.group, version, &kind.kind));
            let mut shapes: Vec<Shape> = known.map(|known| Shape::Object(known.object)).collect();
            let object = match shapes.len() {
                0 => continue,
                1 => shapes.remove(0),
                _ => Shape::OneOf(shapes),
            };
            let shapes = vec![object.clone(), Shape::list(object.clone()), object];
            // Of several groups with one plural the short name is that of one.
            if Kinds::builtin().by_plural(&kind.plural).is_ok_and(|meant| **meant == *kind) {
                lookups.insert(kind.plural.clone(), shapes.clone());
            }
            lookups.insert(kind.qualified_plural(), shapes);
        }
        lookups
    }

    /// The metadata of objects that have at least so much.
    pub(crate) fn metadata(&self, identity: Identity) -> ObjectId {
        self.metadata[identity as usize]
    }
}

impl Identity {
    /// What objects of a kind have by the time that rules see them: the API server gives a name to whatever it is about to store.
    pub(crate) fn of(group: &str, kind: &str, is_namespaced: bool) -> Identity {
        match group {
            // These are questions, which it answers and forgets.
            "authentication.k8s.io" | "authorization.k8s.io" if kind.ends_with("Review") => Identity::None,
            _ if is_namespaced => Identity::NameAndNamespace,
            _ => Identity::Name,
        }
    }
}

impl Builder {
    fn add(&mut self, name: &str) -> ObjectId {
        self.schema.add_object(Object { name: name.to_owned(), fields: Fields::default(), open: false })
    }

    /// Adds an object with these fields.
    fn add_with(&mut self, name: &str, fields: Fields) -> ObjectId {
        let id = self.add(name);
        self.schema.set_fields(id, fields);
        id
    }

    /// The fields of a type of the table.
    fn fields(&self, name: &str) -> Fields {
        self.schema.object(self.ids[name]).fields.clone()
    }

    /// Adds the types as they are in the table.
    fn add_table(&mut self) {
        let is_type = |line: &&str| !line.contains(' ');
        for name in TABLE.lines().filter(is_type) {
            let id = self.add(name);
            self.ids.insert(name, id);
        }
        let pointers: HashSet<&str> = POINTERS.lines().collect();
        let mut lines = TABLE.lines().skip_while(|line| line.contains(' ')).peekable();
        while let Some(name) = lines.next() {
            let mut fields = Fields::default();
            while let Some((field, shape)) =
                lines.next_if(|line| line.contains(' ')).and_then(|line| line.trim_start().split_once(' '))
            {
                if (name, field) == ("Secret", "stringData") {
                    // The API server puts it into `data` before any rule sees it.
                    continue;
                }
                let words = WORDS.iter().find(|(of, known, _)| *of == name && *known == field);
                let is_condition = name.ends_with("Condition") && field.trim_end_matches('!') == "status";
                let words = words.map(|(.., words)| *words).or(is_condition.then_some(CONDITION));
                let mut shape = self.shape(words.unwrap_or(shape));
                if let ("selector", Shape::Map { never_nil, .. }) = (field, &mut shape) {
                    // A Service without a selector selects nothing, and a lookup with an empty one would find everything.
                    *never_nil = false;
                }
                if let ("Secret", true, Shape::Map { value, .. }) = (name, SECRET_FIELDS.contains(&field), &mut shape) {
                    **value = Shape::Hidden(SECRET.into());
                }
                if shape == Shape::Any && INT_OR_TEXT.contains(&field.trim_end_matches('!')) {
                    shape = Shape::OneOf(vec![Shape::Int, Shape::Text]);
                }
                let is_text = matches!(shape, Shape::Text | Shape::Word(_));
                let (known, mut described) = match field.strip_suffix('!') {
                    Some(name) => required(name, shape),
                    None => optional(field, shape),
                };
                described.empty_is_none =
                    is_text && !described.required && !pointers.contains(&*format!("{name}.{field}"));
                fields.insert(known, described);
            }
            self.schema.set_fields(self.ids[name], fields);
        }
    }

    fn shape(&self, text: &str) -> Shape {
        let inside = |open, close| text.strip_prefix(open).and_then(|text: &str| text.strip_suffix(close));
        if let Some(element) = inside("[", ']') {
            return Shape::list(self.shape(element));
        }
        if let Some(value) = inside("{", '}') {
            return Shape::map(self.shape(value));
        }
        if let Some(words) = inside("text(", ')') {
            words.split('|').for_each(share);
            return Shape::word(words.split('|'));
        }
        match text {
            "text" => Shape::Text,
            "int" => Shape::Int,
            "bool" => Shape::Bool,
            "float" => Shape::Float,
            "quantity" => Shape::Quantity,
            name => self.ids.get(name).map_or(Shape::Any, |id| Shape::Object(*id)),
        }
    }

    /// Adds the metadata of objects, by what is always there. That of a template is as the table has it.
    fn add_metadata(&mut self) -> [ObjectId; 3] {
        let mut add = |names: &[&str]| {
            let mut fields = self.fields("ObjectMeta");
            fields.extend(names.iter().map(|name| ((*name).to_owned(), Field::required(Shape::Text))));
            self.add_with("ObjectMeta", fields)
        };
        [add(&[]), add(&["name"]), add(&["name", "namespace"])]
    }

    /// Adds what objects of a kind are: their type, and what the kind says about them.
    fn add_kind(&mut self, api_version_and_kind: &str, name: &str, metadata: &[ObjectId; 3]) -> ObjectId {
        let (api_version, kind) = api_version_and_kind.split_once(' ').unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let is_namespaced = Kinds::builtin().get(group, kind).is_some_and(|kind| kind.namespaced);
        let metadata = metadata[Identity::of(group, kind, is_namespaced) as usize];
        let mut fields = self.fields(name);
        fields.extend([
            required("apiVersion", of_kind(api_version)),
            required("kind", of_kind(kind)),
            required("metadata", Shape::Object(metadata)),
        ]);
        self.add_with(name, fields)
    }

    /// Adds the types of a pod once more, with the fields that the host computes and for what leads to them. What is reached below
    /// `object` is as Kubernetes has it.
    fn add_pod(&mut self, image: ObjectId) -> PodTypes {
        let names = ["Container", "PodSpec", "PodSecurityContext", "SecurityContext"];
        let [container, spec, pod_security_context, security_context] = names.map(|name| self.add(name));
        let mut others: HashMap<ObjectId, ObjectId> = names
            .map(|name| self.ids[name])
            .into_iter()
            .zip([container, spec, pod_security_context, security_context])
            .collect();
        // A container that comes later has the fields of others and one more: to a rule they are of one type.
        others.insert(self.ids["EphemeralContainer"], container);
        for name in names {
            let mut fields = self.fields(name);
            match name {
                "Container" => {
                    let own: HashSet<String> = fields.keys().cloned().collect();
                    fields
                        .extend(self.fields("EphemeralContainer").into_iter().filter(|(name, _)| !own.contains(name)));
                    let types = Shape::word(CONTAINER_TYPES.map(ContainerType::name));
                    let container_type = Field { required: true, ..Field::computed(types, CONTAINER_TYPE) };
                    fields.insert("containerType".to_owned(), container_type);
                    // Kubernetes takes no pod without it, whatever its schema says.
                    fields.insert("image".to_owned(), Field::required(Shape::TextWith(image)));
                }
                "SecurityContext" | "PodSecurityContext" => {
                    let profile_type =
                        self.fields("SeccompProfile").remove("type").map_or(Shape::Text, |field| field.shape);
                    fields.insert("seccompProfileType".to_owned(), Field::computed(profile_type, SECCOMP_PROFILE_TYPE));
                }
                _ => {}
            }
            fields.values_mut().for_each(|field| replace(&mut field.shape, &others));
            self.schema.set_fields(others[&self.ids[name]], fields);
        }
        PodTypes { container, spec, security_context: pod_security_context }
    }

    fn add_user(&mut self) -> ObjectId {
        let texts = || Shape::list(Shape::Text);
        let fields = [
            required("username", Shape::Text),
            optional("uid", Shape::Text),
            optional("groups", texts()),
            optional("extra", Shape::map(texts())),
        ];
        self.add_with("userInfo", fields.into_iter().collect())
    }

    /// Adds an object that may be anything, and a Secret.
    fn add_maybe_secret(&mut self) -> ObjectId {
        let fields = SECRET_FIELDS.map(|name| optional(name, Shape::map(Shape::Hidden(SECRET.into()))));
        self.schema.add_object(Object { name: "object".to_owned(), fields: fields.into_iter().collect(), open: true })
    }

    /// Adds a request for such an object.
    fn add_request(&mut self, user: ObjectId, object: &Shape) -> ObjectId {
        let fields = [
            required("operation", Shape::word(["CREATE", "UPDATE", "DELETE", "CONNECT"])),
            optional("dryRun", Shape::Bool),
            required("userInfo", Shape::Object(user)),
            optional("object", object.clone()),
            optional("oldObject", object.clone()),
            optional("subResource", Shape::Text),
            optional("name", Shape::Text),
            optional("namespace", Shape::Text),
        ];
        self.add_with("request", fields.into_iter().collect())
    }
}

fn required(name: &str, shape: Shape) -> (String, Field) {
    share(name);
    (name.to_owned(), Field::required(shape))
}

fn optional(name: &str, shape: Shape) -> (String, Field) {
    share(name);
    (name.to_owned(), Field::optional(shape))
}

/// Adds what Kubernetes calls something to what documents share. Requests may not add to that, or somebody could fill it, and they are
/// made of little else.
fn share(name: &str) {
    // Without room for it, it stays in each document.
    let _ = Interner::global().intern(name);
}

/// Versions of groups, some of which are gone.
const VERSIONS: [&str; 8] = ["v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v2beta1", "v2beta2", "v2"];

/// What the kinds say that a rule names.
fn of_kind(word: &str) -> Shape {
    share(word);
    let left_out = word.split_once('/').into_iter().flat_map(|(group, own)| {
        let others = VERSIONS.into_iter().filter(move |version| *version != own);
        others.map(move |version| (format!("{group}/{version}"), format!("write `version: {version}` in `match.gvk`")))
    });
    let words =
        Words { listed: vec![word.to_owned()], said_by: "`match.gvk`".to_owned(), left_out: left_out.collect() };
    Shape::Word(Arc::new(words))
}

/// Puts other objects in the place of some.
fn replace(shape: &mut Shape, others: &HashMap<ObjectId, ObjectId>) {
    match shape {
        Shape::Object(id) => *id = others.get(id).copied().unwrap_or(*id),
        Shape::List { element: inner, .. } | Shape::Map { value: inner, .. } => replace(inner, others),
        _ => {}
    }
}

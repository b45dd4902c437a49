//! Rules that read of a pod what its containers may say otherwise.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use portal_expr::{Facts, Read, Schema, Segment, Slot};

use super::{Compiler, rewritten::occurrences};
use crate::{
    context::{CONTAINER, OBJECT, SECURITY_CONTEXT, SHARED_SECURITY_FIELDS, SPEC, pod::CONTAINER_TYPES},
    rule::{JudgedKind, diagnostic::Level},
};

/// The field of both whose parts Kubernetes takes one by one. Of others the container's stands for the whole of the pod's.
const MERGED: &str = "windowsOptions";

/// A place where a rule finds the security context of a pod, or of its containers.
struct Place {
    root: Slot,
    path: Vec<Segment>,
    /// As rules write it.
    text: String,
}

/// Where a rule finds the security contexts of pods, and those of their containers.
#[derive(Default)]
struct Places {
    of_pod: Vec<Place>,
    of_containers: Vec<Place>,
}

impl Compiler<'_> {
    /// Warns of `securityContext.runAsNonRoot != true`: that is the pod's, and what a container says of itself comes before it.
    pub(super) fn warn_of_overridden(&mut self, facts: &Facts, schema: &Schema, judged: &[JudgedKind]) {
        // Most rules read nothing of it, and the rest is dear.
        if !facts.reads.iter().any(is_of_pod) {
            return;
        }
        let of_objects = if facts.reads_root(OBJECT) { places_in_objects(judged) } else { Places::default() };
        let shared = &*SHARED_SECURITY_FIELDS;
        let reads_container = |field: &str| {
            PLACES.of_containers.iter().chain(&of_objects.of_containers).any(|place| place.is_read(field, facts))
        };
        let rule = LazyCell::new(|| {
            let written = portal_expr::written(&self.spec.rule).unwrap_or_default();
            // In rules `?.` says nothing more than `.`, and a text may have it in it.
            if written.contains('"') { written } else { written.replace("?.", ".") }
        });
        let mut read: Vec<(&Place, &str)> = Vec::new();
        for place in PLACES.of_pod.iter().chain(&of_objects.of_pod) {
            // What is computed of a security context reads all of it: the text says which field that is.
            let is_whole = facts.reads.iter().any(|read| read.root == place.root && read.path == place.path);
            let named = |field: &&&str| is_whole && occurrences(&rule, &format!("{}.{field}", place.text)).count() > 0;
            let fields = facts.reads.iter().filter_map(|read| place.field(read)).filter(|field| shared.contains(field));
            let fields = fields.chain(shared.iter().filter(named).copied());
            let fields: BTreeSet<&str> = fields.filter(|field| !reads_container(field)).collect();
            read.extend(fields.into_iter().map(|field| (place, field)));
        }
        let subjects: Vec<(String, String)> =
            read.iter().flat_map(|(place, field)| subjects(place, field, &rule)).collect();
        let Some((subject, first)) = subjects.first() else { return };
        let whole = self.rewritten(&rule, &subjects, schema);
        let advice = match whole {
            Some(whole) => format!("write `{whole}`"),
            None => format!("write `({first})` in its place"),
        };
        let message =
            format!("`{subject}` is what the pod says, and a container that says otherwise is passed over: {advice}");
        match occurrences(&self.spec.rule, subject).next() {
            Some(offset) => self.add_at(Level::Warning, self.place(offset), message),
            None => self.warning(&["rule"], message),
        }
    }
}

impl Place {
    fn new(root: Slot, name: &str, path: &[&str]) -> Place {
        let segment = |name: &&str| if *name == "*" { Segment::Each } else { Segment::Field((*name).to_owned()) };
        let text = path.iter().fold(name.to_owned(), |text, name| format!("{text}.{name}"));
        Place { root, path: path.iter().map(segment).collect(), text }
    }

    /// The field of this security context that is read, if it is one.
    fn field<'r>(&self, read: &'r Read) -> Option<&'r str> {
        let path = read.path.strip_prefix(&self.path[..]).filter(|_| read.root == self.root)?;
        match path.first()? {
            Segment::Field(name) => Some(name),
            Segment::Each => None,
        }
    }

    /// Whether a field of this security context is read, by itself or with what is around it.
    fn is_read(&self, field: &str, facts: &Facts) -> bool {
        let is_around = |read: &Read| read.root == self.root && self.path.starts_with(&read.path);
        facts.reads.iter().any(|read| is_around(read) || self.field(read) == Some(field))
    }
}

/// Whether something may be read of the security context of a pod.
fn is_of_pod(read: &Read) -> bool {
    let is_context = |segment: &Segment| matches!(segment, Segment::Field(name) if name == "securityContext");
    read.root == SECURITY_CONTEXT || read.root != CONTAINER && read.path.iter().any(is_context)
}

/// Where every rule finds them.
static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let of_pod = [Place::new(SECURITY_CONTEXT, "securityContext", &[]), Place::new(SPEC, "spec", &["securityContext"])];
    let lists = CONTAINER_TYPES.map(|kind| Place::new(SPEC, "spec", &[kind.list(), "*", "securityContext"]));
    let of_containers = [Place::new(CONTAINER, "container", &["securityContext"])].into_iter().chain(lists);
    Places { of_pod: of_pod.into(), of_containers: of_containers.collect() }
});

/// Where a rule finds them in the objects that it judges.
fn places_in_objects(judged: &[JudgedKind]) -> Places {
    let mut places = Places::default();
    for template in judged.iter().filter_map(|judged| judged.template.as_ref()) {
        let template = template.to_string();
        let spec: Vec<&str> = template.split('.').filter(|name| !name.is_empty()).chain(["spec"]).collect();
        let below = |rest: &[&str]| Place::new(OBJECT, "object", &[&spec, rest].concat());
        places.of_pod.push(below(&["securityContext"]));
        places.of_containers.extend(CONTAINER_TYPES.map(|kind| below(&[kind.list(), "*", "securityContext"])));
    }
    places
}

/// What a rule says of a field of the pod's, with what it would say of the container's first.
fn subjects(place: &Place, field: &str, rule: &str) -> Vec<(String, String)> {
    let subject = format!("{}.{field}", place.text);
    let with = |below: &str| {
        (format!("{subject}{below}"), format!("container.securityContext.{field}{below} ?? {subject}{below}"))
    };
    if field != MERGED {
        return vec![with("")];
    }
    let parts = occurrences(rule, &subject).map(|offset| {
        let rest = &rule[offset + subject.len()..];
        let end = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '.').unwrap_or(rest.len());
        &rest[..end]
    });
    parts.collect::<BTreeSet<&str>>().into_iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::rules;

    fn told(kind: &str, rule: &str) -> String {
        rules(&format!("name: a\nmatch: {{gvk: [{kind}], podControllers: false}}\nrule: |\n  {rule}\n")).1.join("\n")
    }

    #[test]
    fn what_a_container_may_say_otherwise_is_asked_of_it_first() {
        let non_root = "(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot)";
        let profile = "(container.securityContext.seccompProfile ?? securityContext.seccompProfile)";
        for (kind, rule, expected) in [
            ("{kind: Pod}", "securityContext.runAsNonRoot != true", format!("write `{non_root} != true`")),
            (
                "{kind: Pod}",
                "spec.securityContext.runAsNonRoot != true",
                "write `(container.securityContext.runAsNonRoot ?? spec.securityContext.runAsNonRoot) != true`".to_owned(),
            ),
            (
                "{kind: Pod}",
                "metadata.name == 'a' && !securityContext.runAsNonRoot",
                format!("write `metadata.name == \"a\" && !{non_root}`"),
            ),
            (
                "{kind: Pod}",
                "securityContext.seccompProfile.type not in ['RuntimeDefault', 'Localhost']",
                format!("write `{profile}.type not in [\"RuntimeDefault\", \"Localhost\"]`"),
            ),
            (
                "{kind: Pod}",
                "securityContext.seccompProfileType == 'Unconfined'",
                "write `(container.securityContext.seccompProfileType ?? securityContext.seccompProfileType) ==".to_owned(),
            ),
            (
                "{kind: Pod}",
                "securityContext.runAsUser != nil && securityContext.runAsUser < 1000",
                "write `let runAsUser = container.securityContext.runAsUser ?? securityContext.runAsUser; \
                 runAsUser != nil && runAsUser < 1000`"
                    .to_owned(),
            ),
            (
                "{kind: Pod}",
                "securityContext.windowsOptions.hostProcess == true",
                "write `(container.securityContext.windowsOptions.hostProcess ?? securityContext.windowsOptions.hostProcess) == true`"
                    .to_owned(),
            ),
            (
                "{kind: Pod}",
                "any(spec.containers, .name == 'a') && securityContext.runAsNonRoot != true",
                format!("&& {non_root} != true`"),
            ),
            (
                "{group: apps, kind: Deployment}",
                "object.spec.template.spec.securityContext.runAsNonRoot != true",
                "write `(container.securityContext.runAsNonRoot ?? object.spec.template.spec.securityContext.runAsNonRoot) != true`"
                    .to_owned(),
            ),
        ] {
            let told = told(kind, rule);
            assert!(told.starts_with("Warning") && told.contains(&expected), "{rule}\n{told}\n{expected}");
        }
    }

    #[test]
    fn what_is_asked_of_containers_too_or_is_the_pods_alone_is_not_told() {
        for rule in [
            "(container.securityContext.runAsNonRoot ?? securityContext.runAsNonRoot) != true",
            "securityContext.runAsUser == 0 || container.securityContext.runAsUser == 0",
            "securityContext.runAsUser == 0 || any(concat(spec.containers, spec.initContainers), .securityContext.runAsUser == 0)",
            "let c = container.securityContext; (c.runAsNonRoot ?? securityContext.runAsNonRoot) != true",
            "securityContext.fsGroup == 0",
            "any(securityContext.sysctls, .name == 'a')",
            "container.securityContext.privileged != true",
            "securityContext == nil",
        ] {
            assert_eq!(told("{kind: Pod}", rule), "", "{rule}");
        }
    }
}

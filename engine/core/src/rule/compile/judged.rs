//! Which kinds a rule judges: those that it names, and what makes pods if it names them.

use std::borrow::Cow;
use std::sync::Arc;

use portal_crds::{GroupVersionKind, Operation};
use portal_expr::{Facts, Schema, Segment};

use super::{
    Compiler,
    spared::{spared, spared_subresource},
    unknown::{subresource, unknown_group, unknown_kind},
};
use crate::{
    context::{
        METADATA, OBJECT, REQUEST,
        pod::{BUILTIN, Template},
    },
    kinds::{Kind, Kinds},
    rule::{
        JudgedKind,
        diagnostic::{Level, Step},
    },
};

/// A rule that is longer is not written out.
const MAX_SHOWN: usize = 200;

impl Compiler<'_> {
    /// The kinds that `match` names. A kind that is not served is reported; the rule works for the others.
    pub(super) fn judged(&mut self) -> Vec<JudgedKind> {
        let mut judged: Vec<JudgedKind> = Vec::new();
        let mut missing = Vec::new();
        for (index, gvk) in self.spec.matching.gvk.iter().enumerate() {
            let gvk = &*with_group(self.kinds, gvk);
            if gvk.kind == "*" {
                missing
                    .extend(self.judge_group(index, gvk, &mut judged).map(|message| (field(index, "group"), message)));
                continue;
            }
            if let Some(reason) = spared(&gvk.group, &gvk.kind) {
                let message = format!("no rule may judge `{}`: {reason}", gvk.kind);
                self.add(&field(index, "kind"), Level::Error, message);
                continue;
            }
            if let Some(message) = subresource(self.kinds, gvk) {
                self.add(&field(index, "kind"), Level::Error, message);
                continue;
            }
            let Some(kind) = self.kinds.get(&gvk.group, &gvk.kind) else {
                missing.push((field(index, "kind"), unknown_kind(self.kinds, gvk)));
                continue;
            };
            if gvk.version != "*" && !kind.versions.contains(&gvk.version) {
                let message = format!(
                    "`{}` is not served in version `{}`: there is {}",
                    gvk.kind,
                    gvk.version,
                    kind.versions.join(", ")
                );
                missing.push((field(index, "version"), message));
                continue;
            }
            if self.source.id.namespace.is_some() && !kind.namespaced {
                let message = format!(
                    "a PortalRule sees its own namespace only, and `{}` is in none: use a PortalClusterRule",
                    gvk.kind
                );
                self.add(&field(index, "kind"), Level::Error, message);
                continue;
            }
            match template(gvk) {
                Ok(template) => add(&mut judged, kind, &gvk.version, template),
                Err(message) => self.add(&field(index, "podTemplate"), Level::Error, message),
            }
        }
        self.check_subresources(&judged);
        let level = if judged.is_empty() { Level::Error } else { Level::Warning };
        for (field, message) in missing {
            self.missing(&field, level, message);
        }
        judged
    }

    /// Adds every kind of a group that is served. What is missing of the group comes back.
    fn judge_group(&mut self, index: usize, gvk: &GroupVersionKind, judged: &mut Vec<JudgedKind>) -> Option<String> {
        let GroupVersionKind { group, version, .. } = gvk;
        if group.is_empty() {
            let message = "`*` stands for the kinds of a group that is named: name those of the core group one by one";
            self.add(&field(index, "kind"), Level::Error, message.to_owned());
            return None;
        }
        if gvk.pod_template.is_some() {
            let message = "kinds differ in where their pods are: name the kind";
            self.add(&field(index, "podTemplate"), Level::Error, message.to_owned());
            return None;
        }
        let kinds = self.kinds;
        let served = || kinds.of_group(group).filter(|kind| version == "*" || kind.versions.contains(version));
        if served().next().is_none() {
            return Some(unknown_group(kinds, gvk));
        }
        let is_spared = |kind: &&Arc<Kind>| spared(group, &kind.kind).is_some();
        let names: Vec<&str> = served().filter(is_spared).map(|kind| kind.kind.as_str()).collect();
        if !names.is_empty() {
            let message = format!("`*` leaves out what no rule may judge: {}", names.join(", "));
            let level = if names.len() == served().count() { Level::Error } else { Level::Warning };
            self.add(&field(index, "kind"), level, message);
        }
        // A rule of a namespace sees nothing that is in none.
        let is_seen = |kind: &&Arc<Kind>| kind.namespaced || self.source.id.namespace.is_none();
        for kind in served().filter(|kind| !is_spared(kind)).filter(is_seen) {
            add(judged, kind, version, Template::of(group, &kind.kind));
        }
        None
    }

    /// Says which of the subresources that `match` names no rule may judge.
    fn check_subresources(&mut self, judged: &[JudgedKind]) {
        for subresource in &self.spec.matching.subresources {
            for JudgedKind { kind, .. } in judged {
                if let Some(reason) = spared_subresource(&kind.group, &kind.kind, subresource) {
                    let message = format!("no rule may judge `{}/{subresource}`: {reason}", kind.plural);
                    self.error(&["match", "subresources"], message);
                }
            }
        }
    }

    /// A rule for pods that reads nothing but what every pod has judges what makes pods too.
    pub(super) fn expand(&mut self, judged: &mut Vec<JudgedKind>) {
        if !names_pods(judged) || !self.spec.matching.pod_controllers {
            return;
        }
        judged.reserve_exact(BUILTIN.len() - 1);
        for builtin in BUILTIN.iter().filter(|builtin| !builtin.template.is_pod()) {
            let Some(kind) = self.kinds.get(builtin.group, builtin.kind) else { continue };
            if !judged.iter().any(|judged| Arc::ptr_eq(&judged.kind, kind) || judged.kind == *kind) {
                let (kind, template) = (Arc::clone(kind), Some(builtin.template.clone()));
                judged.push(JudgedKind { kind, versions: Vec::new(), expanded: true, template });
            }
        }
    }

    /// Says that a rule for pods passes over what makes them, because it reads the pod itself.
    pub(super) fn warn_of_controllers(&mut self, facts: &Facts, schema: &Schema, judged: &[JudgedKind]) {
        let matching = &self.spec.matching;
        let names_makers = judged.iter().any(JudgedKind::makes_pods);
        // What is connected to or goes is a pod that is there, and what a subresource gets need not be a pod.
        let is_made = matching.subresources.is_empty()
            && matching.operations.iter().any(|operation| matches!(operation, Operation::Create | Operation::Update));
        if matching.pod_controllers && is_made && names_pods(judged) && !names_makers {
            if let Some(field) = own_metadata(facts).filter(|_| !facts.reads_root(OBJECT) && !facts.reads_root(REQUEST))
            {
                let message = format!(
                    "only a Pod that is there has `metadata.{field}`, so that this judges Pods and not what makes them, such as a Deployment: \
                     set `podControllers: false`, which says so"
                );
                return self.warning(&["rule"], message);
            }
            let advice = match self.without_object(facts, schema) {
                Some(written) => format!("write `{written}`, or set `podControllers: false` to let Deployments pass"),
                None if reads_pods_own(facts) => {
                    "set `podControllers: false`, because only a Pod has what this reads".to_owned()
                }
                None => "write it with `metadata`, `spec`, `securityContext` and `container`, or set `podControllers: false` \
                         to let Deployments pass"
                    .to_owned(),
            };
            let message = format!(
                "a rule that reads `object` or `request` judges Pods and not what makes them, such as a Deployment: {advice}"
            );
            self.warning(&["rule"], message);
        }
    }

    /// The rule with `metadata` and `spec` in the place of the object's, if that means the same of a Pod and something of a template.
    fn without_object(&self, facts: &Facts, schema: &Schema) -> Option<String> {
        let is_of_both = |field: Option<(&str, Option<&str>)>| match field {
            Some(("metadata", Some(name))) => OF_TEMPLATE.contains(&name),
            Some(("spec", Some(_))) => true,
            _ => false,
        };
        if facts.reads_root(REQUEST) || !object_fields(facts).all(is_of_both) {
            return None;
        }
        let written = portal_expr::written(&self.spec.rule).ok()?;
        let rule = written.replace("object.metadata.", "metadata.").replace("object.spec.", "spec.");
        let compiled = self.engine.compile(&rule, schema).ok().filter(|_| rule.chars().count() <= MAX_SHOWN)?;
        (!compiled.facts().reads_root(OBJECT)).then_some(rule)
    }
}

/// The names below `metadata` of a Pod that its template has as well, and means the same by.
const OF_TEMPLATE: [&str; 3] = ["labels", "annotations", "namespace"];

/// Fields of the pod that is there, which no template has.
const OF_POD_ALONE: [&str; 7] = [
    "ownerReferences",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "resourceVersion",
    "managedFields",
    "generateName",
];

/// The fields of the object that are read, where nothing is read as a whole.
fn object_fields(facts: &Facts) -> impl Iterator<Item = Option<(&str, Option<&str>)>> {
    fn name(segment: &Segment) -> Option<&str> {
        match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Each => None,
        }
    }
    facts.reads.iter().filter(|read| read.root == OBJECT).map(|read| {
        let first = read.path.first().and_then(name)?;
        Some((first, read.path.get(1).and_then(name)))
    })
}

/// Whether a rule reads of the pod what what makes pods does not say.
pub(super) fn reads_pods_own(facts: &Facts) -> bool {
    own_metadata(facts).is_some()
        || object_fields(facts)
            .flatten()
            .any(|(first, second)| first == "status" || second.is_some_and(|second| OF_POD_ALONE.contains(&second)))
}

/// What a rule reads of the pod's metadata that no template has.
fn own_metadata(facts: &Facts) -> Option<&'static str> {
    facts.reads.iter().filter(|read| read.root == METADATA).find_map(|read| match read.path.first() {
        Some(Segment::Field(name)) => OF_POD_ALONE.into_iter().find(|own| own == name),
        _ => None,
    })
}

/// Adds a kind in a version, unless it is there.
fn add(judged: &mut Vec<JudgedKind>, kind: &Arc<Kind>, version: &str, template: Option<Template>) {
    let versions = if version == "*" { Vec::new() } else { vec![version.to_owned()] };
    // A kind may have several pod templates, each of which is judged.
    match judged.iter_mut().find(|judged| judged.kind == *kind && judged.template == template) {
        Some(known) if versions.is_empty() || known.versions.is_empty() => known.versions.clear(),
        Some(known) if known.versions.iter().any(|known| known == version) => {}
        Some(known) => known.versions.extend(versions),
        None => judged.push(JudgedKind { kind: Arc::clone(kind), versions, expanded: false, template }),
    }
}

/// What `match` names, with its group. Who leaves the group out of a kind that Kubernetes itself has means that one: none of its groups but the
/// core group has a kind of the same name. Kinds that others define are named with their group, because anybody may define one.
fn with_group<'g>(kinds: &Kinds, gvk: &'g GroupVersionKind) -> Cow<'g, GroupVersionKind> {
    if gvk.group.is_empty() && kinds.get("", &gvk.kind).is_none() {
        let mut own = Kinds::builtin().iter().filter(|kind| kind.kind == gvk.kind);
        if let (Some(own), None) = (own.next(), own.next()) {
            return Cow::Owned(GroupVersionKind { group: own.group.clone(), ..gvk.clone() });
        }
    }
    Cow::Borrowed(gvk)
}

fn names_pods(judged: &[JudgedKind]) -> bool {
    judged.iter().any(|judged| judged.template.as_ref().is_some_and(Template::is_pod))
}

/// Where objects of a kind have their pods, if they have any.
fn template(gvk: &GroupVersionKind) -> Result<Option<Template>, String> {
    let GroupVersionKind { group, kind, .. } = gvk;
    let known = Template::of(group, kind);
    let Some(path) = &gvk.pod_template else { return Ok(known) };
    match known {
        Some(known) if known.is_pod() => Err("a Pod is made from no template: remove this".to_owned()),
        Some(known) => Err(format!("it is known that `{kind}` has its pods at `{known}`: remove this")),
        None if Kinds::builtin().get(group, kind).is_some() => Err(format!("`{kind}` has no pods: remove this")),
        None => {
            let template = Template::parse(path);
            template.map(Some).ok_or_else(|| {
                format!("`{path}` is no way to a field: write the names of fields with dots between, such as `spec.template`")
            })
        }
    }
}

fn field(index: usize, name: &str) -> [Step; 4] {
    [Step::Field("match".to_owned()), Step::Field("gvk".to_owned()), Step::Index(index), Step::Field(name.to_owned())]
}

#[cfg(test)]
mod tests {
    use crate::{
        kinds::{Kind, Kinds},
        language::ExprEngine,
        layers::Layers,
        requirements::{Requirements, WebhookResource},
        testing::rules_with,
    };

    fn kind(group: &str, kind: &str) -> Kind {
        Kind {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            versions: vec!["v1".to_owned()],
            namespaced: true,
            subresources: Vec::new(),
        }
    }

    #[test]
    fn a_whole_group_is_asked_for_kind_by_kind_without_what_no_rule_may_judge() {
        let kinds =
            Kinds::builtin().with([kind("coordination.k8s.io", "Agreement"), kind("coordination.k8s.io", "Truce")]);
        let rule = "name: r\nmatch: {gvk: [{group: coordination.k8s.io, kind: '*'}]}\nrule: object.spec.broken\n";
        let (rules, problems) = rules_with(rule, &kinds, &ExprEngine);
        assert_eq!(problems, ["Warning: rule r: match.gvk[0].kind: `*` leaves out what no rule may judge: Lease"]);
        let requirements = Requirements::of(&rules, Layers::ALL);
        let asked: Vec<String> = requirements.webhook.keys().map(WebhookResource::resource).collect();
        assert_eq!(asked, ["agreements", "truces"]);
        let watched: Vec<&str> = requirements.watches.keys().map(|kind| kind.plural.as_str()).collect();
        assert_eq!(watched, ["agreements", "truces"]);
    }

    #[test]
    fn kinds_of_kubernetes_need_no_group_and_those_of_others_do() {
        let judged = |kinds: &Kinds, name: &str| {
            let rule = format!("name: r\nmatch: {{gvk: [{{kind: {name}}}]}}\nrule: metadata.name == 'x'\n");
            let (rules, problems) = rules_with(&rule, kinds, &ExprEngine);
            let kinds = rules.rules().iter().flat_map(|rule| &rule.judged).map(|judged| judged.kind.qualified_plural());
            (kinds.collect::<Vec<_>>(), problems)
        };
        let builtin = Kinds::builtin();
        for (name, plural) in [
            ("Deployment", "deployments.apps"),
            ("Ingress", "ingresses.networking.k8s.io"),
            ("CronJob", "cronjobs.batch"),
            ("Service", "services.core"),
        ] {
            assert_eq!(judged(builtin, name), (vec![plural.to_owned()], Vec::new()));
        }
        // Whoever may define kinds must not be able to change which one a rule is about.
        let others = builtin.with([kind("example.com", "Deployment"), kind("example.com", "Widget")]);
        assert_eq!(judged(&others, "Deployment").0, ["deployments.apps"]);
        let (kinds, problems) = judged(&others, "Widget");
        assert!(kinds.is_empty() && problems[0].contains("write `group: \"example.com\"`"), "{problems:?}");
        assert!(judged(builtin, "Lease").1[0].contains("no rule may judge `Lease`"));
    }

    #[test]
    fn a_rule_that_reads_the_pod_itself_is_told_what_it_passes_over() {
        let warns = |matching: &str, rule: &str| {
            let rule = format!("name: r\nmatch: {{{matching}}}\nrule: {rule}\n");
            let (_, problems) = rules_with(&rule, Kinds::builtin(), &ExprEngine);
            problems.iter().any(|problem| problem.contains("judges Pods and not what makes them"))
        };
        let (of_object, of_request) = ("object.spec.hostPID", "request.object.spec.hostPID");
        assert!(warns("gvk: [{kind: Pod}]", of_object) && warns("gvk: [{kind: Pod}]", of_request));
        assert!(warns("gvk: [{kind: Pod}, {kind: Service}]", of_object));
        for (matching, rule) in [
            ("gvk: [{kind: Pod}]", "spec.hostPID"),
            ("gvk: [{kind: Pod}]", "request.operation == 'CREATE'"),
            ("gvk: [{kind: Pod}], podControllers: false", of_object),
            ("gvk: [{kind: Pod}, {group: apps, kind: Deployment}]", of_object),
            ("gvk: [{kind: Pod}], operations: [DELETE]", of_object),
            ("gvk: [{kind: Pod}], operations: [CONNECT], subresources: [exec]", of_request),
            ("gvk: [{kind: Service}]", of_object),
        ] {
            assert!(!warns(matching, rule), "{matching} {rule}");
        }
    }

    #[test]
    fn what_no_template_has_is_asked_of_pods_alone() {
        for (matching, rule, is_told) in [
            ("gvk: [{kind: Pod}]", "metadata.ownerReferences == nil", true),
            ("gvk: [{kind: Pod}]", "spec.hostPID && metadata.uid != ''", true),
            ("gvk: [{kind: Pod}], podControllers: false", "metadata.ownerReferences == nil", false),
            ("gvk: [{kind: Pod}], operations: [DELETE]", "metadata.ownerReferences == nil", false),
            ("gvk: [{kind: ConfigMap}]", "metadata.ownerReferences == nil", false),
        ] {
            let rule = format!("name: r\nmatch: {{{matching}}}\nrule: {rule}\n");
            let (rules, problems) = rules_with(&rule, Kinds::builtin(), &ExprEngine);
            let told = problems.iter().any(|problem| problem.contains("only a Pod that is there has `metadata."));
            assert_eq!((told, problems.len()), (is_told, usize::from(is_told)), "{rule} {problems:?}");
            assert_eq!(rules.rules()[0].judged.len(), 1, "{rule}");
        }
    }

    #[test]
    fn a_whole_kind_may_be_forbidden_by_a_rule_that_says_so() {
        let problems = |more: &str| {
            let rule = format!("name: r\nmatch: {{gvk: [{{kind: Endpoints}}]}}\nrule: 'true'\n{more}");
            rules_with(&rule, Kinds::builtin(), &ExprEngine).1.len()
        };
        assert_eq!((problems(""), problems("message: use EndpointSlice\n")), (1, 0));
    }
}

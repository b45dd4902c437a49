//! The places in a rule that ask for other objects: which kind, and whether the rule may.

use std::sync::Arc;

use portal_expr::{ArgumentShape, CallSite, Read, Segment, Unfound, map_meant};

use super::Compiler;
use crate::{
    context::{
        BY_NAME, CONSISTENT, CONSISTENT_CLUSTER, CONTAINER, LIST, METADATA, OBJECT, REQUEST, SECURITY_CONTEXT, SPEC,
    },
    kinds::{Kind, PluralError},
    language::Expression,
    names::is_name,
    rule::{LookupSite, diagnostic::Level},
};

impl Compiler<'_> {
    /// What each call of the host asks for, by the number of its site. Nothing for calls that ask for no object.
    pub(super) fn lookups(&mut self, expression: &dyn Expression) -> Vec<Vec<LookupSite>> {
        let facts = expression.facts();
        let sites = expression.calls().iter().zip(&facts.calls).zip(&facts.doubtful);
        let asked = sites.map(|((site, arguments), doubtful)| match &site.among[..] {
            [] => self.lookup(site, arguments, doubtful).into_iter().collect(),
            among => self.reference(site, among, arguments, doubtful),
        });
        let asked: Vec<Vec<LookupSite>> = asked.collect();
        for unfound in &facts.unfound {
            if let (Some(site), Some(lookups)) = (expression.calls().get(unfound.site), asked.get(unfound.site)) {
                self.warn_of_unset(site, lookups, unfound);
            }
        }
        asked
    }

    /// Warns of `byName(ns, x) == nil` where `x` may be missing: nothing is called so, and whoever leaves it out is refused.
    fn warn_of_unset(&mut self, site: &CallSite, lookups: &[LookupSite], unfound: &Unfound) {
        // A namespace that may be missing is refused.
        let is_namespace = unfound.argument == 0 && lookups.iter().any(|lookup| lookup.kind.namespaced);
        if lookups.is_empty() || is_namespace {
            return;
        }
        let found = match site.function {
            BY_NAME => "nothing is called so",
            LIST => "nothing is selected",
            _ => "it leads nowhere",
        };
        let Unfound { subject, condition, line, column, .. } = unfound;
        let message = format!(
            "`{subject}` may be missing, and {found} then, so that this is true: write `{subject} != nil && {condition}` \
             to leave out what has none"
        );
        self.add_at(Level::Warning, (*line, *column), message);
    }

    fn lookup(&mut self, site: &CallSite, arguments: &[ArgumentShape], doubtful: &[usize]) -> Option<LookupSite> {
        let (plural, words) = site.names.split_last()?;
        let is_consistent = self.is_consistent(site, words)?;
        let kind =
            self.kind_of(plural, |compiler| compiler.place_of(site, plural), |name| format!("cluster[{name:?}]"))?;
        self.check_arguments(site, &kind, arguments);
        self.check_order(site, &kind, arguments);
        self.check_selector(site, &kind, arguments);
        if kind.namespaced && doubtful.contains(&0) {
            self.refuse_doubtful(site, &kind);
        }
        let namespace = match arguments.first() {
            Some(ArgumentShape::Text(namespace)) if kind.namespaced => Some(namespace.clone()),
            _ => None,
        };
        self.check_own_namespace(site, &kind, namespace.as_deref());
        let has_selector = is_given(arguments, 1) || (!kind.namespaced && is_given(arguments, 0));
        Some(LookupSite { kind, namespace, consistent: is_consistent, has_selector })
    }

    /// Whether the words before a kind ask for fresh answers. None if they are no way to one.
    pub(super) fn is_consistent(&mut self, site: &CallSite, words: &[String]) -> Option<bool> {
        match words {
            [] => Some(site.root? == CONSISTENT_CLUSTER),
            [word] if word == CONSISTENT => Some(true),
            [word, ..] => {
                let message = format!(
                    "`cluster.{word}` is no way to a kind: write cluster.<plural> or cluster.consistent.<plural>"
                );
                self.site_error(site, message);
                None
            }
        }
    }

    /// The kind that a plural names. What is wrong with it is told at its place, with how a plural with its group is written there.
    pub(super) fn kind_of(
        &mut self,
        plural: &str,
        place: impl Fn(&Self) -> (u32, u32),
        write: impl Fn(&str) -> String,
    ) -> Option<Arc<Kind>> {
        let error = match self.kinds.by_plural(plural) {
            Ok(kind) => return Some(Arc::clone(kind)),
            Err(error) => error,
        };
        let awaits = matches!(error, PluralError::Unknown(_));
        self.add_at(Level::Error, place(self), describe(plural, error, write));
        if let Some(diagnostic) = self.diagnostics.last_mut() {
            diagnostic.awaits_kind = awaits;
        }
        None
    }

    /// Refuses a namespace that may be missing.
    pub(super) fn refuse_doubtful(&mut self, site: &CallSite, kind: &Kind) {
        let message = format!(
            "the namespace of `{}` may be missing here: give it a value by `?? …`, or ask first by `… != nil && …`",
            kind.plural
        );
        self.site_error(site, message);
    }

    fn check_arguments(&mut self, site: &CallSite, kind: &Kind, arguments: &[ArgumentShape]) {
        let given = |index: usize| is_given(arguments, index);
        let is_everywhere = matches!(arguments.first(), Some(ArgumentShape::Text(namespace)) if namespace == "*");
        let plural = &kind.plural;
        let message = match (site.function, kind.namespaced) {
            (_, true) if matches!(arguments.first(), Some(ArgumentShape::Text(namespace)) if namespace.is_empty()) => {
                "no namespace is called \"\": write \"*\" for all namespaces".to_owned()
            }
            (_, true) if matches!(arguments.first(), Some(ArgumentShape::Text(name)) if name != "*" && !is_name(name)) => {
                "no namespace can be called so: names have up to 63 of a-z, 0-9 and -, not at an end".to_owned()
            }
            (BY_NAME, true) if !given(1) => format!("`{plural}` are in namespaces: write byName(ns, name)"),
            (BY_NAME, true) if is_everywhere => {
                "a name is one of a namespace: write byName(ns, name), or list(\"*\")".to_owned()
            }
            (BY_NAME, false) if given(1) => format!("`{plural}` are in no namespace: write byName(name)"),
            (LIST, true) if !given(0) => {
                format!(
                    "`{plural}` are in namespaces: write list(ns) or list(ns, selector), with \"*\" for all namespaces"
                )
            }
            (LIST, true) if matches!(arguments.first(), Some(ArgumentShape::Constant | ArgumentShape::Map)) => {
                format!("the namespace of `{plural}` is text: write list(ns) or list(ns, selector), with \"*\" for all")
            }
            (LIST, false)
                if let Some(text @ (ArgumentShape::Constant | ArgumentShape::Text(_))) = arguments.first() =>
            {
                let (call, map) = (call_of(site), selector_meant(text));
                format!(
                    "`{plural}` are in no namespace, and a selector is a map of labels: write `{call}()` for all of them, or `{call}({map})`"
                )
            }
            (LIST, false) if given(0) && given(1) => {
                format!("`{plural}` are in no namespace: write list() or list(selector)")
            }
            _ => return,
        };
        self.site_error(site, message);
    }

    /// Warns of `byName("web", metadata.namespace)`: it is seldom that an object is called like a namespace.
    fn check_order(&mut self, site: &CallSite, kind: &Kind, arguments: &[ArgumentShape]) {
        let (BY_NAME, true, [first, ArgumentShape::Path(path)]) = (site.function, kind.namespaced, arguments) else {
            return;
        };
        let namespace = written(path);
        if !matches!(&*namespace, "metadata.namespace" | "request.namespace" | "object.metadata.namespace") {
            return;
        }
        let name = match first {
            ArgumentShape::Text(name) => format!("{name:?}"),
            ArgumentShape::Path(path) if written(path).ends_with(".namespace") => return,
            ArgumentShape::Path(path) => written(path),
            _ => "name".to_owned(),
        };
        let kind = &kind.plural;
        let message = format!(
            "the namespace comes first: write `cluster.{kind}.byName({namespace}, {name})`, unless an object is meant that is called like the namespace"
        );
        self.add_at(Level::Warning, (site.line, site.column), message);
    }

    /// Refuses a text, and a part of a selector: where it is left out nothing would be asked of the labels, and everything be found.
    fn check_selector(&mut self, site: &CallSite, kind: &Kind, arguments: &[ArgumentShape]) {
        if let (LIST, true, [namespace, text @ ArgumentShape::Text(_)]) = (site.function, kind.namespaced, arguments) {
            let namespace = match namespace {
                _ if self.source.id.namespace.is_some() => "metadata.namespace".to_owned(),
                ArgumentShape::Text(name) if is_name(name) => format!("{name:?}"),
                ArgumentShape::Path(path) => written(path),
                _ => "\"*\"".to_owned(),
            };
            let (call, map) = (call_of(site), selector_meant(text));
            let message = format!(
                "a selector is a map of labels, and this is text: write `{call}({namespace}, {map})`, or `{call}({namespace})` for all of them"
            );
            self.site_error(site, message);
        }
        if self.check_selected(site, kind, arguments) {
            return;
        }
        let parts = arguments.iter().filter_map(|argument| match argument {
            ArgumentShape::Path(path) => written(path).strip_suffix(".matchLabels").map(str::to_owned),
            _ => None,
        });
        let whole: Vec<String> = parts.collect();
        for whole in whole.iter().filter(|_| site.function == LIST) {
            let message = format!(
                "a selector without `matchLabels` would find everything, whatever its `matchExpressions` say: write `{whole}`, which is the \
                 whole selector"
            );
            self.site_error(site, message);
        }
    }

    /// Refuses to look for what selects pods by the labels of these: objects are found by their own labels. Returns whether it did.
    fn check_selected(&mut self, site: &CallSite, kind: &Kind, arguments: &[ArgumentShape]) -> bool {
        let (LIST, [namespace, ArgumentShape::Path(path)]) = (site.function, arguments) else { return false };
        let Some((_, selector)) = SELECTING.into_iter().find(|(plural, _)| *plural == kind.plural) else {
            return false;
        };
        let selected = written(path);
        let whole = selected.strip_suffix(".matchLabels").unwrap_or(&selected);
        let labels = match whole {
            "object.spec.selector" | "request.object.spec.selector" => {
                whole.replace("selector", "template.metadata.labels")
            }
            "spec.selector" => "metadata.labels".to_owned(),
            _ => return false,
        };
        let namespace = match namespace {
            ArgumentShape::Text(name) => format!("{name:?}"),
            ArgumentShape::Path(path) => written(path),
            _ => "…".to_owned(),
        };
        let message = format!(
            "`{plural}` are found by their own labels, and not by the pods that they select: write \
             `filter({call}({namespace}), selects({selector}, {labels}))`",
            plural = kind.plural,
            call = call_of(site),
        );
        self.site_error(site, message);
        true
    }

    /// A rule of a namespace never leaves it.
    fn check_own_namespace(&mut self, site: &CallSite, kind: &Kind, namespace: Option<&str>) {
        let Some(own) = &self.source.id.namespace else { return };
        let message = match namespace {
            _ if !kind.namespaced => {
                format!("a PortalRule sees its own namespace only, and `{}` are in none", kind.plural)
            }
            Some(namespace) if namespace != own => {
                format!("a PortalRule sees its own namespace only: write \"{own}\" or metadata.namespace")
            }
            _ => return,
        };
        self.site_error(site, message);
    }

    /// Where a plural is written: the last time before the call. The call itself, if it is written in another way.
    fn place_of(&self, site: &CallSite, plural: &str) -> (u32, u32) {
        let rule = self.spec.rule.as_str();
        let (line, column) = (site.line as usize, site.column as usize);
        let start: usize = rule.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let call = rule[start..].char_indices().nth(column - 1).map_or(rule.len(), |(offset, _)| start + offset);
        rule[..call].rfind(plural).map_or((site.line, site.column), |offset| self.place(offset))
    }

    pub(super) fn site_error(&mut self, site: &CallSite, message: String) {
        self.add_at(Level::Error, (site.line, site.column), message);
    }
}

/// What selects pods, and where it says which.
const SELECTING: [(&str, &str); 3] = [
    ("poddisruptionbudgets", ".spec.selector"),
    ("networkpolicies", ".spec.podSelector"),
    ("services", ".spec.selector"),
];

/// A lookup up to what it is given, as rules write it.
fn call_of(site: &CallSite) -> String {
    let root = if site.root == Some(CONSISTENT_CLUSTER) { "consistentCluster" } else { "cluster" };
    let is_word = |name: &str| name.chars().all(char::is_alphanumeric);
    let path = site.names.iter().fold(root.to_owned(), |path, name| match is_word(name) {
        true => format!("{path}.{name}"),
        false => format!("{path}[{name:?}]"),
    });
    format!("{path}.{}", site.name)
}

/// The selector that a text stands for, or one that shows how they are written.
fn selector_meant(argument: &ArgumentShape) -> String {
    let meant = match argument {
        ArgumentShape::Text(text) => map_meant(text),
        _ => None,
    };
    meant.unwrap_or_else(|| "{app: \"x\"}".to_owned())
}

/// A part of a root, as rules write it.
fn written(read: &Read) -> String {
    let root = match read.root {
        OBJECT => "object",
        METADATA => "metadata",
        REQUEST => "request",
        SPEC => "spec",
        CONTAINER => "container",
        SECURITY_CONTEXT => "securityContext",
        _ => "",
    };
    read.path.iter().fold(root.to_owned(), |path, segment| match segment {
        Segment::Field(name) => format!("{path}.{name}"),
        Segment::Each => String::new(),
    })
}

pub(super) fn is_given(arguments: &[ArgumentShape], index: usize) -> bool {
    arguments.get(index).is_some_and(|argument| *argument != ArgumentShape::Missing)
}

fn describe(plural: &str, error: PluralError, write: impl Fn(&str) -> String) -> String {
    match error {
        PluralError::Unknown(Some(nearest)) => format!("no kind is served as `{plural}`, did you mean `{nearest}`?"),
        PluralError::Unknown(None) => format!("no kind is served as `{plural}`"),
        PluralError::Ambiguous(names) => {
            let names: Vec<String> = names.iter().map(|name| write(name)).collect();
            format!("several groups serve `{plural}`: write {}", names.join(" or "))
        }
    }
}

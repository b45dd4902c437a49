//! Which objects a rule is for.

use std::sync::Arc;

use portal_crds::{Exception, Globs, Match};
use portal_expr::{Moment, glob};

use crate::{
    event::{Event, Operation},
    kinds::Kind,
    object::Visible,
    rule::JudgedKind,
    selector::Selector,
};

/// What of `match` does not depend on the kind, and the exceptions.
#[derive(Debug)]
pub(crate) struct Matching {
    pub(crate) operations: Vec<Operation>,
    pub(crate) subresources: Vec<String>,
    /// The namespace of a `PortalRule`, which sees nothing else.
    own_namespace: Option<String>,
    namespaces: Globs,
    pub(crate) namespace_selector: Option<NamespaceSelector>,
    label_selector: Option<Selector>,
    names: Vec<String>,
    exceptions: Vec<Excepted>,
}

/// The labels of namespaces, and the kind that has them.
#[derive(Debug)]
pub(crate) struct NamespaceSelector {
    /// The kind Namespace, from the kinds that the rule was compiled against.
    pub(crate) kind: Arc<Kind>,
    pub(crate) selector: Selector,
}

#[derive(Debug)]
struct Excepted {
    namespaces: Vec<String>,
    names: Vec<String>,
    until: Option<Moment>,
}

/// Whether a rule is for an object, as far as that can be told without asking anybody.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Matches,
    Differs,
    /// It is, if the labels of the namespace fit.
    AskNamespace,
}

impl Matching {
    /// `namespace` is the kind Namespace. Without it `namespaceSelector` is left out, and the caller reports that.
    pub(crate) fn new(
        matching: &Match,
        exceptions: &[Exception],
        own_namespace: Option<String>,
        namespace: Option<&Arc<Kind>>,
    ) -> Result<Matching, String> {
        let namespace_selector = matching.namespace_selector.as_ref().map(Selector::of).transpose()?;
        let namespace_selector = namespace_selector
            .zip(namespace)
            .map(|(selector, kind)| NamespaceSelector { kind: Arc::clone(kind), selector });
        let excepted = |exception: &Exception| {
            let until = exception.until.as_deref().map(parse_until).transpose()?;
            Ok::<_, String>(Excepted {
                namespaces: exception.namespaces.clone(),
                names: exception.names.clone(),
                until,
            })
        };
        Ok(Matching {
            operations: matching.operations.iter().map(|operation| Operation::from(*operation)).collect(),
            subresources: matching.subresources.clone(),
            own_namespace,
            namespaces: matching.namespaces.clone().unwrap_or_default(),
            namespace_selector,
            label_selector: matching.label_selector.as_ref().map(Selector::of).transpose()?,
            names: matching.names.clone(),
            exceptions: exceptions.iter().map(excepted).collect::<Result<_, _>>()?,
        })
    }

    /// Whether labels of the object decide.
    pub(crate) fn reads_labels(&self) -> bool {
        self.label_selector.is_some()
    }

    pub(crate) fn verdict(&self, event: &Event<'_>, judged: &JudgedKind) -> Verdict {
        let fits = self.fits_request(event) && self.fits_namespace(event) && self.fits_object(event, judged);
        if !fits || self.exceptions.iter().any(|exception| exception.covers(event)) {
            return Verdict::Differs;
        }
        match &self.namespace_selector {
            None => Verdict::Matches,
            // An object that is in no namespace has no labels of a namespace that could fit.
            Some(_) => event.namespace.map_or(Verdict::Differs, |_| Verdict::AskNamespace),
        }
    }

    /// When its exceptions end: nothing for one that has no end.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Option<Moment>> + '_ {
        self.exceptions.iter().map(|exception| exception.until)
    }

    fn fits_request(&self, event: &Event<'_>) -> bool {
        let is_named = |name: &str| self.subresources.iter().any(|subresource| subresource == name);
        // The subresources that change a running pod count as the whole pod.
        let is_asked_for = event.is_of_whole() || event.subresource.is_some_and(is_named);
        is_asked_for && self.operations.contains(&event.operation)
    }

    fn fits_namespace(&self, event: &Event<'_>) -> bool {
        let any = |globs: &[String], namespace: &str| globs.iter().any(|pattern| glob(pattern, namespace));
        let Globs { include, exclude } = &self.namespaces;
        match event.namespace {
            Some(namespace) => {
                self.own_namespace.as_deref().is_none_or(|own| own == namespace)
                    && (include.is_empty() || any(include, namespace))
                    && !any(exclude, namespace)
            }
            None => self.own_namespace.is_none() && include.is_empty(),
        }
    }

    /// As for webhooks of Kubernetes, it is enough if the object fits as it was or as it will be: whoever takes the label
    /// off is still judged.
    fn fits_object(&self, event: &Event<'_>, judged: &JudgedKind) -> bool {
        let objects = || event.object.into_iter().chain(event.old_object).map(Visible::root);
        (self.names.is_empty() || self.names.iter().any(|pattern| glob(pattern, event.name)))
            && self.label_selector.as_ref().is_none_or(|selector| {
                // Whether a missing object fits cannot be told. The rule counts as matching, and its evaluation fails.
                event.judged().is_none() || objects().any(|object| selector.matches(judged.labels(object)))
            })
    }
}

impl Excepted {
    fn covers(&self, event: &Event<'_>) -> bool {
        let any = |globs: &[String], text: &str| globs.iter().any(|pattern| glob(pattern, text));
        self.until.is_none_or(|until| event.now < until)
            && (self.namespaces.is_empty() || event.namespace.is_some_and(|namespace| any(&self.namespaces, namespace)))
            && (self.names.is_empty() || any(&self.names, event.name))
    }
}

impl From<portal_crds::Operation> for Operation {
    fn from(operation: portal_crds::Operation) -> Operation {
        match operation {
            portal_crds::Operation::Create => Operation::Create,
            portal_crds::Operation::Update => Operation::Update,
            portal_crds::Operation::Delete => Operation::Delete,
            portal_crds::Operation::Connect => Operation::Connect,
        }
    }
}

/// The first moment that is not excepted any more: the end of a day, or a moment.
pub(crate) fn parse_until(text: &str) -> Result<Moment, String> {
    let day = text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == "2027-01-31".len());
    let end = match day {
        Some(day) => {
            day.tomorrow().ok().and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok()).map(|end| end.timestamp())
        }
        None => text.parse::<jiff::Timestamp>().ok(),
    };
    end.map(|end| Moment::new(end.as_second(), end.subsec_nanosecond().unsigned_abs())).ok_or_else(|| {
        format!(
            "`{text}` is no date: write a day that exists, such as 2027-01-31, or a moment such as 2027-01-31T12:00:00Z"
        )
    })
}

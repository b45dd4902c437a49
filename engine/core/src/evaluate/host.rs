//! Answers for what an expression names while a rule is evaluated: roots, sugar, lookups.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use portal_document::Node;
use portal_expr::{CallSite, ComputedId, Failure, Host, Machine, Slot, Value};
use typed_arena::Arena as Kept;

use crate::{
    context::{
        BY_NAME, BY_REF, CONTAINER, CONTAINER_TYPE, METADATA, OBJECT, ROOTS, SECCOMP_PROFILE_TYPE, SECURITY_CONTEXT,
        SPEC, functions, pod::Pod,
    },
    event::{Event, Operation},
    lookup::{Answer, Filter, Lookup, Query},
    object::{Object, Visible, metadata_text},
    rule::{JudgedKind, LookupSite, Rule, message::show},
    selector::Selector,
};

/// One rule, one object, one container.
pub(crate) struct RuleHost<'a> {
    rule: &'a Rule,
    event: &'a Event<'a>,
    lookup: &'a dyn Lookup,
    pod: Option<Pod<'a>>,
    roots: [Value<'a>; ROOTS],
    names: Names<'a>,
    /// What lookups found, for as long as the evaluation works with it. Made by the first one: most rules look nothing up.
    found: OnceCell<Kept<Arc<Object<'static>>>>,
    /// What was asked. Written by calls.
    reads: RefCell<Vec<Query>>,
    /// What could not be answered without asking the API server. Written by calls.
    needs: RefCell<Vec<Query>>,
}

/// What the roots are called in what people are told: by where they are in the object, because that is what people have before them. It
/// is worked out for violations only.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a>(pub(super) &'a JudgedKind);

/// The same for an expression of the rule's message. It begins with what the rule declares, so that its first calls are the rule's.
pub(crate) struct MessageHost<'h, 'a> {
    pub(crate) rule: &'h RuleHost<'a>,
    pub(crate) calls: &'h [CallSite],
}

impl Names<'_> {
    /// What has the pod's `metadata` and `spec`, with a dot behind it. Empty for a pod itself.
    fn template(self) -> String {
        let template = self.0.template.as_ref().filter(|template| !template.is_pod());
        template.map(|template| format!("{template}.")).unwrap_or_default()
    }

    fn root(self, slot: Slot) -> Option<String> {
        match slot {
            OBJECT | CONTAINER => Some(String::new()),
            SPEC => Some(format!("{}spec", self.template())),
            SECURITY_CONTEXT => Some(format!("{}spec.securityContext", self.template())),
            // That of the template is judged.
            METADATA if self.0.expanded => Some(format!("{}metadata", self.template())),
            _ => None,
        }
    }

    /// Where a field is in the object. Pods have their owner's name and namespace, whatever the template says.
    pub(super) fn field(self, path: &str) -> &str {
        match path.strip_prefix(&*self.template()) {
            Some(own @ ("metadata.name" | "metadata.namespace")) if self.0.expanded => own,
            _ => path,
        }
    }
}

impl<'a> RuleHost<'a> {
    pub(super) fn new(
        rule: &'a Rule,
        event: &'a Event<'a>,
        lookup: &'a dyn Lookup,
        pod: Option<Pod<'a>>,
        roots: [Value<'a>; ROOTS],
        names: Names<'a>,
    ) -> RuleHost<'a> {
        let (reads, needs) = (RefCell::default(), RefCell::default());
        RuleHost { rule, event, lookup, pod, roots, names, found: OnceCell::new(), reads, needs }
    }

    pub(super) fn names(&self) -> Names<'a> {
        self.names
    }

    /// What was asked, and what of it could not be answered yet.
    pub(super) fn asked(&self) -> (Vec<Query>, Vec<Query>) {
        (self.reads.take(), self.needs.take())
    }

    /// The objects that were looked up and that nobody has, as they are called, with what people are told of them.
    pub(super) fn assumed(&self) -> Vec<(String, &'static str)> {
        let reads = self.reads.borrow();
        let told = reads.iter().filter_map(|query| match &query.filter {
            Filter::Name(name) => Some((format!("{}[{name:?}]", query.kind.plural), self.lookup.assumed(query)?)),
            Filter::Labels(_) => None,
        });
        told.collect()
    }

    pub(super) fn look_up<'h>(
        &'h self,
        site: &LookupSite,
        function: portal_expr::FunctionId,
        arguments: &[Value<'h>],
    ) -> Result<Vec<Node<'h>>, Failure> {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or(Value::Nil);
        let (namespace, subject) = if site.kind.namespaced {
            (self.namespace(site, argument(0))?, argument(1))
        } else if argument(0).is_nil() {
            (None, argument(1))
        } else {
            (None, argument(0))
        };
        let filter = if function == BY_NAME {
            if site.kind.namespaced && namespace.is_none() {
                let plural = &site.kind.plural;
                return Err(Failure::new(format!(
                    "byName asks for {plural} of one namespace, and \"*\" stands for all"
                )));
            }
            match subject {
                Value::Text(name) => Filter::Name(name.to_owned()),
                // Nothing is called so.
                Value::Nil => return Ok(Vec::new()),
                other => {
                    return Err(Failure::new(format!("the name of {} is text, not {}", site.kind.plural, show(other))));
                }
            }
        } else {
            match subject {
                // A selector that is not there selects nothing, as everywhere in Kubernetes.
                Value::Nil if site.has_selector => return Ok(Vec::new()),
                Value::Nil => Filter::Labels(Selector::default()),
                selector => Filter::Labels(Selector::from_value(selector).map_err(Failure::new)?),
            }
        };
        let query = Query { kind: Arc::clone(&site.kind), namespace, filter, consistent: site.consistent };
        self.ask(query)
    }

    /// The namespace that is meant, none for all. A field that is missing must not become all of them.
    pub(super) fn namespace(&self, site: &LookupSite, argument: Value<'_>) -> Result<Option<String>, Failure> {
        let Value::Text(namespace) = argument else {
            return Err(Failure::new(format!(
                "the namespace of {} is text, not {}: write \"*\" for all namespaces",
                site.kind.plural,
                show(argument)
            )));
        };
        match &self.rule.id.namespace {
            Some(own) if own != namespace => Err(Failure::new(format!(
                "a PortalRule sees its own namespace only, and this one asks for {} in `{namespace}`",
                site.kind.plural
            ))),
            _ => Ok((namespace != "*").then(|| namespace.to_owned())),
        }
    }

    /// Answers a query, with the incoming object laid over what is there.
    fn ask(&self, query: Query) -> Result<Vec<Node<'_>>, Failure> {
        let answer = self.lookup.answer(&query);
        self.reads.borrow_mut().push(query.clone());
        let found = match answer {
            Answer::Found(found) => found,
            Answer::Needs => {
                self.needs.borrow_mut().push(query);
                return Err(Failure::new("a consistent read is not at hand"));
            }
            other => return Err(Failure::new(unanswered(&other, &query.kind.plural))),
        };
        let event = self.event;
        let is_same_kind = (&event.kind.group, &event.kind.kind) == (&query.kind.group, &query.kind.kind);
        let is_overlaid = is_same_kind && event.is_of_whole();
        // A Namespace is in itself, and does not say so.
        let namespace = event.namespace.filter(|_| event.kind.namespaced);
        let is_namesake = |object: Node<'_>| {
            metadata_text(object, "name") == Some(event.name) && metadata_text(object, "namespace") == namespace
        };
        let mut nodes: Vec<Node<'_>> = found
            .into_iter()
            .map(|object| self.found.get_or_init(Kept::new).alloc(object).root())
            .filter(|object| !is_overlaid || !is_namesake(*object))
            .collect();
        if let Some(incoming) =
            event.object.map(Visible::root).filter(|_| is_overlaid && event.operation != Operation::Delete)
            && query.selects(event.kind, incoming, event.name, event.namespace)
        {
            nodes.push(incoming);
        }
        Ok(nodes)
    }
}

impl Host for RuleHost<'_> {
    fn root(&self, slot: Slot) -> Value<'_> {
        self.roots.get(usize::from(slot.0)).copied().unwrap_or(Value::Nil)
    }

    fn root_name(&self, slot: Slot) -> Option<Cow<'_, str>> {
        self.names.root(slot).map(Cow::Owned)
    }

    fn computed<'a>(&'a self, field: ComputedId, base: Value<'a>, machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        let text = |text: Option<&'a str>| text.map_or(Value::Nil, Value::Text);
        Ok(match (field, base) {
            (CONTAINER_TYPE, Value::Node(container)) => {
                let kind = self.pod.and_then(|pod| pod.container_type(container));
                text(kind.map(|kind| kind.name()))
            }
            (SECCOMP_PROFILE_TYPE, Value::Node(context)) => {
                let profile = context.get_str("seccompProfile").and_then(|profile| profile.get_str("type"));
                text(profile.and_then(Node::as_str))
            }
            (part, Value::Text(reference)) => functions::image_part(part, reference, machine)?,
            // The base has a type that Kubernetes would refuse, so that nothing can be computed: the field counts as missing.
            _ => Value::Nil,
        })
    }

    fn call<'a>(&'a self, site: usize, arguments: &[Value<'a>], machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        self.answer(self.rule.expression.calls(), site, arguments, machine)
    }

    fn call_name(&self, site: usize, arguments: &[Value<'_>]) -> Option<String> {
        self.name_of_reference(self.rule.lookups.get(site)?, arguments)
    }
}

impl Host for MessageHost<'_, '_> {
    fn root(&self, slot: Slot) -> Value<'_> {
        self.rule.root(slot)
    }

    fn computed<'a>(&'a self, field: ComputedId, base: Value<'a>, machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        self.rule.computed(field, base, machine)
    }

    fn call<'a>(&'a self, site: usize, arguments: &[Value<'a>], machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        self.rule.answer(self.calls, site, arguments, machine)
    }
}

impl RuleHost<'_> {
    /// Answers a call of one of these sites.
    fn answer<'a>(
        &'a self,
        calls: &[CallSite],
        site: usize,
        arguments: &[Value<'a>],
        machine: &Machine<'a>,
    ) -> Result<Value<'a>, Failure> {
        let Some(call) = calls.get(site) else {
            return Err(Failure::new("the rule calls what it did not declare"));
        };
        let function = call.function;
        if call.root.is_none() {
            return functions::call(function, arguments, machine);
        }
        let lookups = self.rule.lookups.get(site).map(Vec::as_slice).unwrap_or_default();
        let Some(lookup) = lookups.first() else {
            return Err(Failure::new("the rule looks up what it did not declare"));
        };
        if function == BY_REF {
            return self.follow(lookups, arguments);
        }
        let nodes = self.look_up(lookup, function, arguments)?;
        if function == BY_NAME {
            return Ok(nodes.first().map_or(Value::Nil, |node| Value::from_node(*node)));
        }
        machine.step(nodes.len() as u64)?;
        let values: Vec<Value<'a>> = nodes.into_iter().map(Value::from_node).collect();
        machine.list(&values)
    }
}

/// Why there is no answer. It is never treated as an empty answer: a rule that cannot see must not pass.
pub(super) fn unanswered(answer: &Answer, what: &str) -> String {
    match answer {
        Answer::NotSynced => format!("{what} could not be read: the cache is not filled yet"),
        Answer::Failed(reason) => format!("{what} could not be read: {reason}"),
        Answer::Needs | Answer::Found(_) => format!("{what} are not at hand"),
    }
}

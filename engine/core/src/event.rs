//! What happened to one object: what rules are asked about.

pub use portal_crds::Front;
use portal_document::Node;
use portal_expr::Moment;

use crate::{kinds::Kind, object::Visible};

/// One object and what happened to it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The loop that asks. None outside of a cluster: then every rule is asked, whichever loops it is for.
    pub front: Option<Front>,
    /// The entry of the webhook configuration that the request came by. None where none is: then every rule is asked.
    pub entry: Option<Entry>,
    /// What is done to the object.
    pub operation: Operation,
    /// The kind of the resource. With a subresource the object itself may be of another kind.
    pub kind: &'a Kind,
    /// The version that the object is written in.
    pub version: &'a str,
    /// The part of the resource that is written, if it is not the whole.
    pub subresource: Option<&'a str>,
    /// The namespace, for kinds that have one.
    pub namespace: Option<&'a str>,
    /// The name. If the API server has yet to make one up, what it will begin with.
    pub name: &'a str,
    /// The object as it will be. Nothing on DELETE.
    pub object: Option<Visible<'a>>,
    /// The object as it was. Nothing on CREATE.
    pub old_object: Option<Visible<'a>>,
    /// The request, in the form that an AdmissionReview has it. Nothing where there is none.
    pub request: Option<Visible<'a>>,
    /// When.
    pub now: Moment,
}

/// The subresources by which a running pod gets containers or other resources. A request for one has the whole pod.
pub(crate) const POD_SUBRESOURCES: [&str; 2] = ["ephemeralcontainers", "resize"];

/// An entry of the webhook configuration. A request may come by several, and each rule is asked by one of them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Entry {
    /// For rules that take any version: the object is as it was sent.
    AnyVersion,
    /// For rules that pin the version which the object is in, converted if it was sent in another.
    PinnedVersion,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is removed.
    Delete,
    /// It is connected to, as by `kubectl exec`.
    Connect,
}

impl<'a> Event<'a> {
    /// Whether the object is the resource itself, and not something that only a subresource has.
    pub(crate) fn is_of_whole(&self) -> bool {
        let is_pod = self.kind.group.is_empty() && self.kind.kind == "Pod";
        self.subresource.is_none_or(|name| is_pod && POD_SUBRESOURCES.contains(&name))
    }

    /// The field of a request that has the object which a rule sees.
    pub(crate) fn judged_field(&self) -> &'static str {
        if self.operation == Operation::Delete { "oldObject" } else { "object" }
    }

    /// The object that a rule sees: on DELETE the one that goes.
    pub fn judged(&self) -> Option<Node<'a>> {
        let judged = match self.operation {
            Operation::Delete => self.old_object,
            _ => self.object,
        };
        judged.map(Visible::root)
    }
}

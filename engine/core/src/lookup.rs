//! What a rule asks of the cluster, and who answers.

use std::sync::Arc;

use portal_document::Node;

use crate::{context::pod::Template, kinds::Kind, object::Object, selector::Selector};

/// A question about objects other than the one that is judged.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Query {
    /// The kind that is asked for.
    pub kind: Arc<Kind>,
    /// The namespace; none for all of them, and for kinds without.
    pub namespace: Option<String>,
    /// Which objects.
    pub filter: Filter,
    /// Whether the answer must be as fresh as the API server's.
    pub consistent: bool,
}

/// Which objects of a kind are asked for.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Filter {
    /// The one of this name.
    Name(String),
    /// Those with these labels.
    Labels(Selector),
}

/// What is known.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These objects, and no others.
    Found(Vec<Arc<Object<'static>>>),
    /// The cache is not filled yet. Never taken for an empty answer.
    NotSynced,
    /// It could not be read, for this reason.
    Failed(String),
    /// A consistent read that is not at hand: fetch it and evaluate again.
    Needs,
}

/// Answers questions from what is at hand. Does not block.
pub trait Lookup {
    /// What is known.
    fn answer(&self, query: &Query) -> Answer;

    /// What people are told of an object that was answered although nobody has it: `is in no file`. None of what somebody has.
    fn assumed(&self, _query: &Query) -> Option<&'static str> {
        None
    }
}

impl Query {
    /// Whether it is for pods, by their labels, and an object in this namespace makes some that are asked for.
    pub fn selects_pods_of(&self, kind: &Kind, owner: Node<'_>, namespace: Option<&str>) -> bool {
        let Filter::Labels(selector) = &self.filter else { return false };
        let is_of_pods = self.kind.group.is_empty() && self.kind.kind == "Pod";
        let is_there = self.namespace.is_none() || self.namespace.as_deref() == namespace;
        let Some(template) = Template::of(&kind.group, &kind.kind).filter(|_| is_of_pods && is_there) else {
            return false;
        };
        // Nobody makes pods of a PodTemplate.
        let makes_pods = !template.is_pod() && kind.kind != "PodTemplate";
        let metadata = template.pod(owner).metadata;
        makes_pods && metadata.is_some() && selector.matches(metadata.and_then(|metadata| metadata.get_str("labels")))
    }

    /// Whether an object of this name is one that is asked for. When an object changes, it also tells whose questions that affects.
    pub fn selects(&self, kind: &Kind, object: Node<'_>, name: &str, namespace: Option<&str>) -> bool {
        let is_there = (&self.kind.group, &self.kind.kind) == (&kind.group, &kind.kind)
            && (self.namespace.is_none() || self.namespace.as_deref() == namespace);
        is_there
            && match &self.filter {
                Filter::Name(wanted) => wanted == name,
                Filter::Labels(selector) => {
                    selector.matches(object.get_str("metadata").and_then(|metadata| metadata.get_str("labels")))
                }
            }
    }
}

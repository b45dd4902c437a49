//! What changes in the caches, for whoever has to act on it.

use std::sync::Arc;

use portal_core::{kinds::Kind, object::Object};

use super::moment::Moment;

/// What a feed is about: a kind in the version that it prefers, everywhere or in a namespace.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// The namespace, if it is one alone.
    pub namespace: Option<&'a str>,
}

/// An object that was made, changed or removed.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its namespace and name, as [a moment](super::moment::split) writes them.
    pub name: Arc<str>,
    /// As it was, if it was known.
    pub before: Option<Arc<Object<'static>>>,
    /// As it is. Nothing if it is gone, or cannot be read.
    pub after: Option<Arc<Object<'static>>>,
}

/// Is told of every change, by the task of the feed, after those who read the cache can see it. It must not take long: the task follows the
/// API server meanwhile.
pub trait Changes: Send + Sync {
    /// One object has changed.
    fn changed(&self, place: Place<'_>, change: &Change);

    /// All objects were listed. `before` is what was known until then.
    fn listed(&self, place: Place<'_>, before: Option<&Moment>, after: &Moment);

    /// The API server tells of these objects again, after it had refused to.
    fn recovered(&self, place: Place<'_>);

    /// Nobody follows these objects any more. They may still be there.
    fn ended(&self, place: Place<'_>);

    /// Whether all that the rules of a snapshot need is known or refused, after everything was loaded with which the process begins. If so,
    /// the number of the snapshot.
    fn settled(&self, snapshot: Option<u64>);
}

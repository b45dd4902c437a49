//! Which of the objects that rules look up are at hand. Whoever watches them tells; the index asks before it puts a rule in force.

use std::collections::HashMap;

use portal_core::{kinds::Kind, rule::Rule};

/// What is known of the objects that are watched for rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Feeds(HashMap<FeedId, FeedState>);

/// What is watched: a kind in a version, everywhere or in a namespace.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FeedId {
    /// The group.
    pub group: String,
    /// The plural.
    pub plural: String,
    /// The version in which objects are read.
    pub version: String,
    /// The namespace; none for all of them, and for kinds without.
    pub namespace: Option<String>,
}

/// What is known of the objects of a feed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FeedState {
    /// They are being listed.
    Syncing,
    /// They were all listed once.
    Synced,
    /// They were never listed, because the API server refuses it, for this reason.
    Refused(String),
}

/// What keeps a rule from being asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lack {
    /// What is not at hand, such as `pods` and `services`.
    pub plurals: Vec<String>,
    /// Why the API server does not tell, if that is the reason.
    pub refusal: Option<String>,
}

impl FeedId {
    /// What is watched of a kind: in the version that it prefers.
    pub fn of(kind: &Kind, namespace: Option<&str>) -> FeedId {
        FeedId {
            group: kind.group.clone(),
            plural: kind.plural.clone(),
            version: kind.versions.first().cloned().unwrap_or_default(),
            namespace: namespace.map(str::to_owned),
        }
    }
}

impl Feeds {
    /// What is known of these feeds, and of no others.
    pub fn new(states: impl IntoIterator<Item = (FeedId, FeedState)>) -> Feeds {
        Feeds(states.into_iter().collect())
    }

    /// What a rule looks up and is not at hand. Nothing if it can be asked.
    pub fn lack(&self, rule: &Rule) -> Option<Lack> {
        let mut lack = Lack { plurals: Vec::new(), refusal: None };
        for (kind, namespace) in rule.looked_up() {
            match self.state(kind, namespace) {
                FeedState::Synced => continue,
                FeedState::Syncing => {}
                FeedState::Refused(reason) => lack.refusal = Some(reason),
            }
            if !lack.plurals.contains(&kind.plural) {
                lack.plurals.push(kind.plural.clone());
            }
        }
        (!lack.plurals.is_empty()).then_some(lack)
    }

    /// What is known of the objects of a kind, everywhere or in a namespace. Who knows them all knows those of a namespace.
    fn state(&self, kind: &Kind, namespace: Option<&str>) -> FeedState {
        let all = self.0.get(&FeedId::of(kind, None));
        let own = namespace.and_then(|namespace| self.0.get(&FeedId::of(kind, Some(namespace))));
        let is_synced = [all, own].contains(&Some(&FeedState::Synced));
        match own.or(all) {
            _ if is_synced => FeedState::Synced,
            Some(state) => state.clone(),
            None => FeedState::Syncing,
        }
    }
}

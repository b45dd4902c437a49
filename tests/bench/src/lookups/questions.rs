//! What rules ask of the pods of a large cluster, and how long an answer takes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use fastrand::Rng;
use portal_cluster::rules::feeds::FeedId;
use portal_core::{
    lookup::{Answer, Filter, Lookup as _, Query},
    selector::{Requirement, Selector, Test},
};
use portal_document::Node;
use portal_engine::cache::{
    answers::Answers,
    keeper::Caches,
    moment::Moment,
    store::{Seen, Shown},
};

use super::{pods, print};
use crate::measure::{nanoseconds, repeats};

/// Pods that are asked for.
pub(super) struct Chosen(pub(super) Vec<ChosenPod>);

pub(super) struct ChosenPod {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The label that ten pods have.
    pub(super) app: String,
}

/// The label of an app.
pub(super) const APP: &str = "app.kubernetes.io/name";

/// How many different pods are asked for. More than what processors keep at hand of them.
const CHOSEN: usize = 10_000;

const ROUNDS: usize = 21;

impl Chosen {
    /// Chooses at random, and the same in every run.
    pub(super) fn among(moment: &Moment) -> Chosen {
        let mut all: Vec<_> = moment.iter().collect();
        Rng::with_seed(2).shuffle(&mut all);
        let text = |object: Option<Node<'_>>, key: &str| {
            object.and_then(|object| object.get_str(key)).and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        let pod = |object: Node<'_>| {
            let metadata = object.get_str("metadata");
            let labels = metadata.and_then(|metadata| metadata.get_str("labels"));
            ChosenPod { namespace: text(metadata, "namespace"), name: text(metadata, "name"), app: text(labels, APP) }
        };
        Chosen(all.into_iter().take(CHOSEN).map(|object| pod(object.root())).collect())
    }
}

/// Prints how long the answers take: to whoever has the moment, and to the rules of a request, for which a moment is taken first.
pub(super) fn measure(shown: &Shown, chosen: &Chosen) -> Result<(), Box<dyn Error>> {
    let Seen::Moment(moment) = shown.now() else { return Err("the pods were listed".into()) };
    let caches: Caches = [(FeedId::of(pods(), None), shown.clone())].into_iter().collect();
    let kind = Arc::new(pods().clone());
    let query = |namespace: Option<&str>, filter| Query {
        kind: Arc::clone(&kind),
        namespace: namespace.map(str::to_owned),
        filter,
        consistent: false,
    };
    let by_name = chosen.0.iter().map(|pod| query(Some(&pod.namespace), Filter::Name(pod.name.clone()))).collect();
    let by_label = chosen.0.iter().map(|pod| query(Some(&pod.namespace), labels(&pod.app))).collect();
    let everywhere = chosen.0.iter().map(|pod| query(None, labels(&pod.app))).collect();
    let questions: [(&str, Vec<Query>, usize, f64); 3] = [
        ("look up one of 100,000 pods by name", by_name, 1, 1.0),
        ("list 10 of 100,000 pods by label", by_label, 10, 5.0),
        ("list 10 of 100,000 pods by label, in all namespaces", everywhere, 10, 5.0),
    ];
    for (what, queries, found, must) in questions {
        let in_moment = |query: &Query| match moment.find(query.namespace.as_deref(), &query.filter) {
            Ok(objects) => assert_eq!(objects.len(), found, "{query:?}"),
            Err(reason) => panic!("{query:?}: {reason}"),
        };
        let in_answers = |query: &Query| match Answers::new(&caches, None).answer(query) {
            Answer::Found(objects) => assert_eq!(objects.len(), found, "{query:?}"),
            answer => panic!("{query:?}: {answer:?}"),
        };
        print(what, "in the rules of a request", times(&queries, in_answers), must, None);
        print(what, "in a moment", times(&queries, in_moment), must, None);
    }
    Ok(())
}

fn labels(app: &str) -> Filter {
    let test = Test::In(BTreeSet::from([app.to_owned()]));
    Filter::Labels(Selector::new([Requirement { key: APP.to_owned(), test }]))
}

/// Microseconds for each of many, one after the other, in rounds.
pub(super) fn times<T>(many: &[T], work: impl Fn(&T)) -> Vec<f64> {
    let place = Cell::new(0);
    let next = || {
        place.set((place.get() + 1) % many.len());
        work(black_box(&many[place.get()]));
    };
    let repeats = repeats(next);
    (0..ROUNDS).map(|_| nanoseconds(repeats, next) / 1000.0).collect()
}

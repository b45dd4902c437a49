//! What lookups add to a request: the pod of a review judged by the rules of the library, and by one more that asks three times for
//! other objects.

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;

use portal_cluster::rules::feeds::FeedId;
use portal_core::{evaluate::evaluate_until, kinds::Kinds, object::Object, review::Review, rule::RuleSet};
use portal_document::{Document, Interning, Options, from_yaml};
use portal_engine::cache::{
    answers::Answers,
    keeper::Caches,
    store::{Shown, Store},
};
use portal_expr::{Limits, Moment};
use serde_json::json;

use super::questions::{APP, Chosen};
use super::{builtin, pods};
use crate::library;
use crate::measure::{Samples, nanoseconds, repeats};
use crate::reviews::review;
use crate::row::{self, Goal, Row};

/// By name, by label, and by the name of another kind. All are found, and nothing is violated.
const RULE: &str = r#"
name: neighbours
match: {gvk: [{kind: Pod}]}
rule: >-
  metadata.annotations.peer != nil && cluster.pods.byName(metadata.namespace, metadata.annotations.peer) == nil
  || len(cluster.pods.list(metadata.namespace, {"app.kubernetes.io/name": metadata.labels["app.kubernetes.io/name"]})) < 10
  || spec.serviceAccountName != nil && cluster.serviceaccounts.byName(metadata.namespace, spec.serviceAccountName) == nil
"#;

const ROUNDS: usize = 41;

/// How many reviews take turns, each about a pod of another workload.
const REVIEWS: usize = 500;

/// Prints how much longer a request takes.
pub(super) fn measure(shown: &Shown, chosen: &Chosen) -> Result<(), Box<dyn Error>> {
    let accounts = accounts(chosen);
    let feeds = [(pods(), shown.clone()), (builtin("ServiceAccount"), accounts.shown())];
    let caches: Caches = feeds.into_iter().map(|(kind, shown)| (FeedId::of(kind, None), shown)).collect();
    let mut documents = library::documents(library::files().len());
    let without = library::rule_set(&documents);
    documents.push(from_yaml(RULE, &Options::default())?.remove(0).document);
    let with = library::rule_set(&documents);
    let options = Options { drop: Review::unseen(), interning: Interning::LookUpOnly, ..Options::default() };
    let bodies = bodies(chosen);
    let reviews: Vec<Document> =
        bodies.iter().map(|body| Document::parse(body.as_bytes(), &options)).collect::<Result<_, _>>()?;
    let reviews: Vec<Review<'_>> =
        reviews.iter().map(|review| Review::of(review.root(), Kinds::builtin())).collect::<Result<_, _>>()?;
    let place = Cell::new(0);
    let judge = |rules: &RuleSet| {
        place.set((place.get() + 1) % reviews.len());
        let (event, limits) = (reviews[place.get()].event(Moment::default()), Limits::default());
        let answers = Answers::new(&caches, None);
        let evaluation = black_box(evaluate_until(rules, &answers, &event, &limits, &|| false));
        let is_good = evaluation.violations.is_empty() && evaluation.failures.is_empty();
        assert!(is_good, "{:?} {:?}", evaluation.violations, evaluation.failures);
        evaluation.reads.len()
    };
    assert_eq!((judge(&without), judge(&with)), (0, 3), "one rule looks three objects up");
    let [plain, asking] = [&without, &with].map(|rules| {
        move || {
            judge(rules);
        }
    });
    let repeats = repeats(&plain);
    let (mut more, mut same, mut plains) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = nanoseconds(repeats, &plain) / 1000.0;
        let with = nanoseconds(repeats, &asking) / 1000.0;
        let after = nanoseconds(repeats, &plain) / 1000.0;
        more.push(with - (before + after) / 2.0);
        same.push(after - before);
        plains.push(before);
    }
    let (more, (least, most)) = (Samples::new(more), Samples::new(same).spread());
    row::print(&Row {
        what: "a rule with three lookups in a request".to_owned(),
        against: "the same request without".to_owned(),
        value: more.median(),
        unit: "µs more",
        worst: format!("than {:.1}; with itself {least:.1}–{most:.1}", Samples::new(plains).median()),
        spread: Some(more.spread()),
        must: Some(Goal::AtMost(10.0)),
        aim: Some(Goal::AtMost(5.0)),
        ..Row::default()
    });
    Ok(())
}

/// The account that every namespace has.
fn accounts(chosen: &Chosen) -> Store {
    let (kind, mut store) = (builtin("ServiceAccount"), Store::default());
    store.begin_list();
    for pod in &chosen.0 {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": pod.namespace},
        });
        let account = Object::parse(account.to_string().as_bytes(), kind, &Options::default());
        store.list(Some(&pod.namespace), "default", account.map_err(|error| error.to_string()));
    }
    store.end_list();
    store
}

/// Reviews of pods that are about to join workloads.
fn bodies(chosen: &Chosen) -> Vec<String> {
    let review = review();
    let bodies = chosen.0.iter().take(REVIEWS).map(|pod| {
        let mut review = review.clone();
        let request = &mut review["request"];
        request["namespace"] = json!(pod.namespace);
        let metadata = &mut request["object"]["metadata"];
        metadata["namespace"] = json!(pod.namespace);
        metadata["labels"][APP] = json!(pod.app);
        metadata["annotations"]["peer"] = json!(pod.name);
        review.to_string()
    });
    bodies.collect()
}

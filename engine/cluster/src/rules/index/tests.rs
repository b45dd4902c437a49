use portal_core::{
    kinds::Kind,
    rule::{load::load, source::Origin},
};
use portal_document::{Options, from_yaml};

use super::*;
use crate::rules::feeds::{FeedId, FeedState};

fn source(name: &str, kind: &str, rule: &str, origin: Origin) -> RuleSource {
    let group = if kind == "Widget" { "acme.io" } else { "" };
    source_for(name, &format!("{{group: \"{group}\", kind: {kind}}}"), rule, origin)
}

/// A rule for kinds that are written as in YAML.
fn source_for(name: &str, kinds: &str, rule: &str, origin: Origin) -> RuleSource {
    let rule = serde_json::Value::from(rule);
    let yaml = format!("name: {name}\nmatch: {{gvk: [{kinds}]}}\nrule: {rule}\n");
    let documents = from_yaml(&yaml, &Options::default()).unwrap();
    load(documents[0].document.root(), origin, Vec::new()).unwrap()
}

fn id(name: &str) -> RuleId {
    RuleId { namespace: None, name: name.to_owned() }
}

fn object(name: &str, kind: &str, rule: &str) -> Update {
    let uid = format!("uid of {name}");
    let source = source(name, kind, rule, Origin::Cluster { uid: uid.clone() });
    object_of(source, uid)
}

fn object_of(source: RuleSource, uid: String) -> Update {
    Update::Object(
        source.id.clone(),
        Some(Box::new(Object { uid, created: String::new(), generation: 1, source: Ok(source) })),
    )
}

fn file(path: &str, rules: &[(&str, &str)]) -> Update {
    let origin = Origin::File { path: path.to_owned(), line: 1 };
    let sources = rules.iter().map(|(name, rule)| source(name, "Pod", rule, origin.clone()));
    Update::Files(vec![(path.into(), Some(Ok(sources.collect())))])
}

fn gone(path: &str) -> Update {
    Update::Files(vec![(path.into(), None)])
}

fn widget() -> Kind {
    Kind {
        group: "acme.io".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        versions: vec!["v1".to_owned()],
        namespaced: true,
        subresources: Vec::new(),
    }
}

fn kinds() -> Update {
    Update::Kinds(Arc::new(Kinds::builtin().clone()))
}

/// An index that was told these things, one after the other.
fn index(updates: impl IntoIterator<Item = Update>) -> Index {
    let mut index = Index::new(Layers::ALL, 3);
    for update in std::iter::once(kinds()).chain(updates) {
        index.apply([update]);
    }
    index
}

/// The names of the set, each with its expression's answer on nothing: enough to tell versions apart.
#[track_caller]
fn check_set(index: &Index, expected: &[&str]) {
    let names: Vec<String> = index.rules.keys().map(RuleId::to_string).collect();
    assert_eq!(names, expected);
}

#[track_caller]
fn check_outcome(index: &Index, name: &str, expected: &str) {
    let outcome = match index.report(&id(name)).unwrap().outcome {
        Outcome::Active => "active".to_owned(),
        Outcome::Disabled => "disabled".to_owned(),
        Outcome::Refused(found) => format!("refused: {}", found[0].message),
        Outcome::Waiting(found) => format!("waiting: {}", found[0].message),
        Outcome::Shadowed(path) => format!("shadowed by {}", path.display()),
        Outcome::Syncing(Lack { plurals, refusal: None }) => format!("awaits {}", plurals.join(", ")),
        Outcome::Syncing(Lack { plurals, refusal: Some(why) }) => format!("awaits {}: {why}", plurals.join(", ")),
        Outcome::OverQuota(most) => format!("one more than {most}"),
    };
    assert_eq!(outcome, expected);
}

const GOOD: &str = "spec.hostNetwork == true";
const OTHER: &str = "spec.hostPID == true";
const BAD: &str = "spec.hostNetwrk == true";

#[test]
fn a_bad_rule_leaves_the_good_ones_alone() {
    let index = index([object("a", "Pod", GOOD), object("b", "Pod", BAD), object("c", "Pod", OTHER)]);
    check_set(&index, &["a", "c"]);
    check_outcome(&index, "b", "refused: PodSpec has no field `hostNetwrk`, did you mean `hostNetwork`?");
    assert_eq!(index.totals(), Totals { active: 2, refused: 1, ..Totals::default() });
}

#[test]
fn a_namespace_has_so_many_rules_and_the_oldest_stay() {
    let own = |name: &str, second: u32| {
        let mut source = source(name, "Pod", GOOD, Origin::Cluster { uid: name.to_owned() });
        source.id.namespace = Some("shop".to_owned());
        let created = format!("2026-01-01T00:00:{second:02}Z");
        let object = Object { uid: name.to_owned(), created, generation: 1, source: Ok(source.clone()) };
        Update::Object(source.id, Some(Box::new(object)))
    };
    let in_shop = |name: &str| RuleId { namespace: Some("shop".to_owned()), name: name.to_owned() };
    let mut index = index([own("d", 4), own("c", 3), own("b", 2), object("everywhere", "Pod", GOOD)]);
    check_set(&index, &["everywhere", "shop/b", "shop/c", "shop/d"]);
    // An older one comes, by a list in another order, and the youngest goes.
    let outcomes = index.apply([own("a", 1)]);
    check_set(&index, &["everywhere", "shop/a", "shop/b", "shop/c"]);
    assert!(outcomes.reports.iter().any(|(id, report)| {
        *id == in_shop("d") && report.as_ref().is_some_and(|report| report.outcome == Outcome::OverQuota(3))
    }));
    assert_eq!(index.totals(), Totals { active: 4, over_quota: 1, ..Totals::default() });
    assert_eq!(index.population()["shop"], 4);
    index.apply([Update::Object(in_shop("b"), None)]);
    check_set(&index, &["everywhere", "shop/a", "shop/c", "shop/d"]);
}

#[test]
fn a_change_makes_a_set_only_if_a_rule_changes() {
    let mut index = index([object("a", "Pod", GOOD)]);
    assert!(index.apply([object("a", "Pod", OTHER)]).snapshot.is_some());
    assert!(index.apply([object("b", "Pod", BAD)]).snapshot.is_none());
    assert!(index.apply([Update::Object(id("b"), None)]).snapshot.is_none());
    let outcomes = index.apply([Update::Object(id("a"), None)]);
    assert_eq!(outcomes.snapshot.unwrap().rules.rules().len(), 0);
    assert_eq!(outcomes.reports, [(id("a"), None)]);
}

#[test]
fn rules_are_in_force_with_the_kinds_that_they_were_compiled_against() {
    let mut index = index([]);
    // New kinds are in force even without any rule: they tell which kind a review is about.
    let kinds = Arc::new(Kinds::builtin().with([widget()]));
    let snapshot = index.apply([Update::Kinds(Arc::clone(&kinds))]).snapshot.unwrap();
    assert!(snapshot.rules.rules().is_empty() && Arc::ptr_eq(&snapshot.kinds, &kinds));
    let snapshot = index.apply([object("a", "Widget", "object.spec.size > 3")]).snapshot.unwrap();
    let judged = &snapshot.rules.rules()[0].judged[0].kind;
    assert!(Arc::ptr_eq(judged, snapshot.kinds.of_resource("acme.io", "widgets").unwrap()));
    assert!(snapshot.requirements().watches.contains_key(judged));
}

#[test]
fn an_engine_without_audit_needs_no_watch_for_it() {
    let needs = |layers| {
        let mut index = Index::new(layers, 3);
        let snapshot = index.apply([kinds(), object("a", "Pod", GOOD)]).snapshot.unwrap();
        (snapshot.requirements().watches.is_empty(), snapshot.requirements().webhook.is_empty())
    };
    assert_eq!(needs(Layers { admission: true, ..Layers::default() }), (true, false));
    assert_eq!(needs(Layers { audit: true, ..Layers::default() }), (false, true));
}

/// What is known of services everywhere and of pods in the namespace `shop`.
fn feeds(services: FeedState, pods: FeedState) -> Update {
    let id = |kind, namespace| FeedId::of(Kinds::builtin().get("", kind).unwrap(), namespace);
    Update::Feeds(Arc::new(Feeds::new([(id("Service", None), services), (id("Pod", Some("shop")), pods)])))
}

const SERVICES: &str = "len(cluster.services.list(metadata.namespace)) == 0";
const PODS_OF_SHOP: &str = "len(cluster.pods.list('shop')) == 0";
const PODS: &str = "len(cluster.pods.list(metadata.namespace)) == 0";

#[test]
fn a_rule_is_in_force_when_the_objects_are_at_hand_that_it_looks_up() {
    use FeedState::{Refused, Synced, Syncing};
    let mut index = index([object("a", "Pod", SERVICES), object("b", "Pod", PODS_OF_SHOP), object("c", "Pod", PODS)]);
    check_set(&index, &[]);
    assert_eq!((index.totals().syncing, index.totals().active), (3, 0));
    check_outcome(&index, "a", "awaits services");
    let outcomes = index.apply([feeds(Syncing, Synced)]);
    assert_eq!(outcomes.snapshot.unwrap().starved().len(), 2);
    check_set(&index, &["b"]);
    let outcomes = index.apply([feeds(Refused("not allowed".to_owned()), Synced)]);
    assert!(outcomes.snapshot.is_none());
    assert_eq!(outcomes.reports.len(), 2);
    check_outcome(&index, "a", "awaits services: not allowed");
    index.apply([feeds(Synced, Synced)]);
    // Nobody knows the pods of other namespaces.
    check_set(&index, &["a", "b"]);
    check_outcome(&index, "c", "awaits pods");
    check_outcome(&index, "a", "active");
    assert_eq!(index.totals().syncing, 1);
    assert!(index.apply([Update::Object(id("c"), None)]).snapshot.unwrap().starved().is_empty());
}

#[test]
fn an_edited_rule_keeps_its_old_version_until_the_objects_are_at_hand() {
    let mut index = index([object("a", "Pod", GOOD)]);
    let before = Arc::clone(&index.rules[&id("a")]);
    let snapshot = index.apply([object("a", "Pod", SERVICES)]).snapshot.unwrap();
    assert!(Arc::ptr_eq(&snapshot.rules.rules()[0], &before));
    assert!(snapshot.watched().keys().any(|kind| kind.plural == "services"));
    check_outcome(&index, "a", "awaits services");
    index.apply([feeds(FeedState::Synced, FeedState::Syncing)]);
    assert!(!Arc::ptr_eq(&index.rules[&id("a")], &before));
    check_outcome(&index, "a", "active");
    // What is deleted or cannot be used is gone, whatever it waits for.
    index.apply([object("a", "Pod", PODS)]);
    check_set(&index, &["a"]);
    index.apply([object("a", "Pod", BAD)]);
    check_set(&index, &[]);
    assert!(index.starved.is_empty());
}

#[test]
fn a_rule_waits_again_when_its_kind_prefers_another_version() {
    let of = |versions: &[&str]| {
        let versions = versions.iter().map(ToString::to_string).collect();
        Kind { versions, ..widget() }
    };
    let kinds = |versions: &[&str]| Update::Kinds(Arc::new(Kinds::builtin().with([of(versions)])));
    let feeds = |kinds: &[Kind]| {
        let states = kinds.iter().map(|kind| (FeedId::of(kind, None), FeedState::Synced));
        Update::Feeds(Arc::new(Feeds::new(states)))
    };
    let mut index = index([kinds(&["v1"]), object("a", "Pod", "len(cluster.widgets.list('*')) == 0")]);
    index.apply([feeds(&[of(&["v1"])])]);
    let before = Arc::clone(&index.rules[&id("a")]);
    let snapshot = index.apply([kinds(&["v2", "v1"])]).snapshot.unwrap();
    assert!(Arc::ptr_eq(&snapshot.rules.rules()[0], &before));
    // The version before goes on until the other one is there.
    let watched = |snapshot: &Snapshot| -> Vec<String> {
        let watched = snapshot.watched().into_keys().filter(|kind| kind.plural == "widgets");
        watched.map(|kind| kind.versions[0].clone()).collect()
    };
    assert_eq!(watched(&snapshot), ["v1", "v2"]);
    let snapshot = index.apply([feeds(&[of(&["v1"]), of(&["v2"])])]).snapshot.unwrap();
    assert_eq!(watched(&snapshot), ["v2"]);
}

#[test]
fn an_engine_that_asks_no_rule_anything_waits_for_nothing() {
    let mut index = Index::new(Layers::default(), 3);
    index.apply([kinds(), object("a", "Pod", SERVICES)]);
    check_outcome(&index, "a", "active");
}

#[test]
fn nothing_is_told_before_the_kinds_are_known() {
    let mut index = Index::new(Layers::ALL, 3);
    let outcomes = index.apply([object("a", "Pod", GOOD), object("b", "Widget", GOOD)]);
    assert!(outcomes.snapshot.is_none() && outcomes.reports.is_empty());
    let outcomes = index.apply([kinds()]);
    assert_eq!(outcomes.snapshot.unwrap().rules.rules().len(), 1);
    assert_eq!(outcomes.reports.len(), 2);
}

#[test]
fn a_rule_wakes_when_its_kind_comes_and_says_so_when_it_goes() {
    let mut index = index([object("a", "Widget", "object.spec.size > 3")]);
    check_set(&index, &[]);
    assert_eq!(index.totals().waiting, 1);
    index.apply([Update::Kinds(Arc::new(Kinds::builtin().with([widget()])))]);
    check_set(&index, &["a"]);
    assert_eq!(index.report(&id("a")).unwrap().active_on, ["acme.io/v1/Widget"]);
    index.apply([kinds()]);
    check_set(&index, &[]);
    assert!(matches!(index.report(&id("a")).unwrap().outcome, Outcome::Waiting(_)));
}

#[test]
fn a_rule_for_a_whole_group_follows_what_is_served() {
    let origin = Origin::Cluster { uid: "uid".to_owned() };
    let source = source_for("a", "{group: acme.io, kind: '*'}", "object.spec.size == 3", origin);
    let mut index = index([object_of(source, "uid".to_owned())]);
    check_outcome(&index, "a", "waiting: no kind is served in group `acme.io`");
    let gadget = Kind { kind: "Gadget".to_owned(), plural: "gadgets".to_owned(), ..widget() };
    for (kinds, expected) in [
        (vec![widget()], vec!["acme.io/v1/Widget"]),
        (vec![widget(), gadget.clone()], vec!["acme.io/v1/Gadget", "acme.io/v1/Widget"]),
        (vec![gadget], vec!["acme.io/v1/Gadget"]),
    ] {
        index.apply([Update::Kinds(Arc::new(Kinds::builtin().with(kinds)))]);
        assert_eq!(index.report(&id("a")).unwrap().active_on, expected);
    }
}

/// The API server refuses a status that names a kind twice in `activeOn`.
#[test]
fn a_kind_that_a_rule_names_twice_is_told_once() {
    let templates = "{group: acme.io, kind: Widget, podTemplate: a}, {group: acme.io, kind: Widget, podTemplate: b}";
    let origin = Origin::Cluster { uid: "uid".to_owned() };
    let twice = object_of(source_for("a", templates, "spec.hostPID", origin), "uid".to_owned());
    let twice = index([Update::Kinds(Arc::new(Kinds::builtin().with([widget()]))), twice]);
    assert_eq!(twice.report(&id("a")).unwrap().active_on, ["acme.io/v1/Widget"]);

    let origin = Origin::Cluster { uid: "uid".to_owned() };
    let kinds = "{kind: ConfigMap}, {version: v1, kind: Secret}, {kind: ConfigMap}, {version: v1, kind: Secret}";
    let index = index([object_of(source_for("a", kinds, "object.data == nil", origin), "uid".to_owned())]);
    assert_eq!(index.report(&id("a")).unwrap().active_on, ["v1/ConfigMap", "v1/Secret"]);
}

#[test]
fn a_file_comes_before_an_object_of_the_same_name() {
    let mut index = index([object("a", "Pod", GOOD), file("rules/a.yaml", &[("a", OTHER)])]);
    check_set(&index, &["a"]);
    check_outcome(&index, "a", "shadowed by rules/a.yaml");
    index.apply([gone("rules/a.yaml")]);
    check_set(&index, &["a"]);
    check_outcome(&index, "a", "active");
}

#[test]
fn of_two_files_with_a_name_the_first_path_counts() {
    let mut index = index([file("b.yaml", &[("a", GOOD)]), file("a.yaml", &[("a", BAD)])]);
    check_set(&index, &[]);
    index.apply([file("a.yaml", &[("a", OTHER)])]);
    check_set(&index, &["a"]);
    let problems = index.problems();
    assert_eq!(problems[Path::new("b.yaml")][0].message, "`a` is in a.yaml too, which comes first: rename one");
    index.apply([gone("a.yaml")]);
    check_set(&index, &["a"]);
    assert!(index.problems().is_empty());
}

#[test]
fn a_rule_that_moves_to_another_file_is_never_missing() {
    let mut index = index([file("a.yaml", &[("a", GOOD)])]);
    let moved = [gone("a.yaml"), file("b.yaml", &[("a", GOOD)])].into_iter().flat_map(|update| match update {
        Update::Files(files) => files,
        _ => Vec::new(),
    });
    let outcomes = index.apply([Update::Files(moved.collect())]);
    assert_eq!(outcomes.snapshot.unwrap().rules.rules().len(), 1);
}

#[test]
fn a_file_that_turns_bad_keeps_its_last_good_version() {
    let mut index = index([file("a.yaml", &[("a", GOOD), ("b", GOOD)])]);
    index.apply([file("a.yaml", &[("a", BAD), ("c", GOOD)])]);
    check_set(&index, &["a", "b"]);
    assert_eq!(index.problems().len(), 1);
    index.apply([kinds()]);
    assert_eq!(index.problems().len(), 1, "what is wrong with the newer version is still known");
    let unreadable = Problem::of_file("a.yaml", "damaged");
    index.apply([Update::Files(vec![("a.yaml".into(), Some(Err(vec![unreadable])))])]);
    check_set(&index, &["a", "b"]);
    index.apply([file("a.yaml", &[("c", GOOD)])]);
    check_set(&index, &["c"]);
    assert_eq!(index.problems().len(), 0);
}

#[test]
fn a_file_that_was_never_good_is_taken_in_its_newest_version() {
    let mut index = index([file("a.yaml", &[("a", GOOD), ("b", BAD), ("c", GOOD)])]);
    check_set(&index, &["a", "c"]);
    let outcomes = index.apply([file("a.yaml", &[("a", OTHER), ("b", BAD), ("d", GOOD)])]);
    assert!(outcomes.snapshot.is_some());
    check_set(&index, &["a", "d"]);
    assert_eq!(index.problems().len(), 1);
    index.apply([kinds()]);
    check_set(&index, &["a", "d"]);
    index.apply([file("a.yaml", &[("a", GOOD)])]);
    index.apply([file("a.yaml", &[("a", BAD), ("b", GOOD)])]);
    check_set(&index, &["a"]);
}

#[test]
fn any_order_of_news_leads_to_the_same_index() {
    let news = || {
        [
            object("a", "Pod", GOOD),
            object("b", "Pod", BAD),
            object("c", "Widget", GOOD),
            file("x.yaml", &[("a", OTHER), ("d", GOOD)]),
            file("y.yaml", &[("d", GOOD), ("e", GOOD)]),
        ]
    };
    let state = |index: &Index| {
        let reports: Vec<_> = index.objects.keys().map(|id| index.report(id)).collect();
        (index.rules.keys().cloned().collect::<Vec<_>>(), reports, index.totals())
    };
    let expected = state(&index(news()));
    for first in 0..5 {
        for second in 0..5 {
            let mut shuffled: Vec<_> = news().into_iter().collect();
            shuffled.swap(0, first);
            shuffled.swap(1, second);
            let mut index = Index::new(Layers::ALL, 3);
            index.apply(shuffled);
            index.apply([kinds()]);
            assert_eq!(state(&index), expected);
        }
    }
}

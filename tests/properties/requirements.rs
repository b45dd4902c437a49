//! What rules need, as it is known before they run, holds all that they do when they run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use portal_core::evaluate::{Evaluation, evaluate};
use portal_core::event::{Event, Front};
use portal_core::kinds::Kinds;
use portal_core::layers::Layers;
use portal_core::lookup::{Answer, Lookup, Query};
use portal_core::object::Object;
use portal_core::requirements::{Permission, Reach, Reason, Requirements};
use portal_core::review::Review;
use portal_core::rule::source::RuleId;
use portal_core::rule::{Rule, RuleSet};
use portal_expr::Limits;
use serde_json::{Value, json};

use super::cases::{self, NAMESPACES, request};
use super::matching::{Verdict, event, verdict};
use super::{document, hold, rules};
use crate::chance::Random;

/// Where lookups begin.
const ROOTS: [&str; 5] = ["cluster", "cluster", "cluster", "consistentCluster", "cluster.consistent"];

/// Plurals of kinds that are in namespaces.
const NAMESPACED: [&str; 5] =
    [".pods", ".services", ".configmaps", ".deployments", r#"["networkpolicies.networking.k8s.io"]"#];

/// Plurals of kinds that are not.
const GLOBAL: [&str; 3] = [".namespaces", ".nodes", ".storageclasses"];

/// A cluster that remembers what it was asked.
struct Recorder {
    objects: Vec<(&'static str, Value, Arc<Object<'static>>)>,
    /// Whether consistent reads are at hand.
    is_fresh: bool,
    asked: RefCell<BTreeSet<Query>>,
}

impl Recorder {
    fn new(is_fresh: bool) -> Recorder {
        let mut objects = Vec::new();
        for kind in ["Pod", "Service", "ConfigMap", "Namespace", "Node"] {
            for name in ["api", "prod", "dev"] {
                let metadata = json!({"name": name, "namespace": "prod", "labels": {"app": name}});
                let object = json!({"metadata": metadata, "spec": {"target": "dev"}});
                let object = Object::kept(document(&object).root(), Kinds::builtin().get("", kind).unwrap());
                objects.push((kind, metadata, Arc::new(object)));
            }
        }
        Recorder { objects, is_fresh, asked: RefCell::default() }
    }
}

impl Lookup for Recorder {
    fn answer(&self, query: &Query) -> Answer {
        self.asked.borrow_mut().insert(query.clone());
        if query.consistent && !self.is_fresh {
            return Answer::Needs;
        }
        let found = self.objects.iter().filter(|(kind, metadata, object)| {
            let kind = Kinds::builtin().get("", kind).unwrap();
            let namespace = metadata["namespace"].as_str().filter(|_| kind.namespaced);
            query.selects(kind, object.root(), metadata["name"].as_str().unwrap(), namespace)
        });
        Answer::Found(found.map(|(_, _, object)| Arc::clone(object)).collect())
    }
}

#[test]
fn requirements_hold_all_that_evaluation_touches() {
    let (lookups, matches, consistent) = (Cell::new(0), Cell::new(0), Cell::new(0));
    hold(2_000, case, |case| {
        let Ok(rules) = rules(&case["rules"]) else { return Ok(()) };
        let review = document(
            &json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": case["request"]}),
        );
        let Ok(review) = Review::of(review.root(), Kinds::builtin()) else { return Ok(()) };
        let Some(event) = event(case, &review) else { return Ok(()) };
        let layers = layers_of(case);
        let requirements = Requirements::of(&rules, layers);
        let runs_in = |rule: &Rule, front| layers.run(front) && rule.fronts.contains(&front);
        for rule in rules.rules() {
            let runs = match event.front {
                Some(front) => runs_in(rule, front),
                None => rule.fronts.iter().any(|front| runs_in(rule, *front)),
            };
            if !runs {
                continue;
            }
            let recorder = Recorder::new(case["fresh"] == json!(true));
            let evaluation = evaluate(&RuleSet::new(vec![Arc::clone(rule)]), &recorder, &event, &Limits::default());
            let asked = recorder.asked.into_inner();
            check_reads(&requirements, rule, &evaluation, &asked)?;
            lookups.set(lookups.get() + asked.len());
            consistent.set(consistent.get() + evaluation.needs.len());
            let source = case["rules"].as_array().into_iter().flatten().find(|source| {
                source["metadata"]["name"] == rule.id.name
                    && source["metadata"]["namespace"].as_str() == rule.id.namespace.as_deref()
            });
            let Some((Verdict::Matches, _)) = source.and_then(|source| verdict(source, case)) else { continue };
            if event.front == Some(Front::Audit) {
                check_watched(&requirements, rule, &event)?;
            } else if runs_in(rule, Front::Admission) {
                check_webhook(&requirements, rule, &event)?;
            }
            matches.set(matches.get() + 1);
        }
        Ok(())
    });
    let counts = [lookups.get(), matches.get(), consistent.get()];
    assert!(counts.iter().all(|count| *count > 100), "lookups, matches, consistent: {counts:?}");
}

/// Everything that was asked is in the answer, and the rule may ask it.
fn check_reads(
    requirements: &Requirements,
    rule: &Rule,
    evaluation: &Evaluation,
    asked: &BTreeSet<Query>,
) -> Result<(), String> {
    let reads: BTreeSet<Query> = evaluation.reads.iter().cloned().collect();
    if reads != *asked {
        return Err(format!("{reads:?} are told, {asked:?} were asked"));
    }
    if evaluation.needs.iter().any(|need| !need.consistent || !asked.contains(need)) {
        return Err(format!("{:?} are needed, {asked:?} were asked", evaluation.needs));
    }
    for Query { kind, namespace, consistent, .. } in asked {
        let is_within = |reach: Option<&Reach>| reach.is_some_and(|reach| covers(reach, rule, namespace.as_deref()));
        let permission = |verb| Permission { group: kind.group.clone(), resource: kind.plural.clone(), verb };
        let reasons = requirements.watches.get(kind);
        let is_known = match consistent {
            true => ["get", "list"].into_iter().all(|verb| is_within(requirements.permissions.get(&permission(verb)))),
            false => [Reason::Lookup, Reason::NamespaceSelector]
                .into_iter()
                .any(|reason| is_within(reasons.and_then(|reasons| reasons.get(&reason)))),
        };
        if !is_known {
            return Err(format!("{} asks for {} in {namespace:?}, known are {requirements:?}", rule.id, kind.plural));
        }
    }
    Ok(())
}

/// What the rule is for is watched.
fn check_watched(requirements: &Requirements, rule: &Rule, event: &Event<'_>) -> Result<(), String> {
    let reach = requirements.watches.get(event.kind).and_then(|reasons| reasons.get(&Reason::Match));
    let namespace = event.namespace.filter(|_| event.kind.namespaced);
    let is_within = reach.is_some_and(|reach| covers(reach, rule, namespace));
    if is_within { Ok(()) } else { Err(format!("{} is not watched for {}", event.kind.kind, rule.id)) }
}

/// The request that the rule is for reaches the webhook, in the version that it comes in.
fn check_webhook(requirements: &Requirements, rule: &Rule, event: &Event<'_>) -> Result<(), String> {
    let Event { kind, version, operation, subresource, .. } = *event;
    let namespace = event.namespace.filter(|_| kind.namespaced);
    let is_within = requirements.webhook.iter().any(|(resource, operations)| {
        *resource.kind == *kind
            && resource.subresource.as_deref() == subresource
            // The API server converts to the version that an entry pins.
            && (resource.pinned.is_some() || resource.versions().iter().any(|known| known == version))
            && operations.get(&operation).is_some_and(|route| covers(&route.judging, rule, namespace))
    });
    let webhook = &requirements.webhook;
    if is_within { Ok(()) } else { Err(format!("{operation:?} of {kind:?} in {version} is not in {webhook:?}")) }
}

/// Whether the rule itself causes what reaches that far.
fn covers(reach: &Reach, rule: &Rule, namespace: Option<&str>) -> bool {
    let in_namespace = namespace.and_then(|namespace| reach.namespaces.get(namespace));
    let names = |rules: &[Arc<RuleId>]| rules.iter().any(|id| **id == rule.id);
    names(&reach.cluster) || in_namespace.is_some_and(|rules| names(rules))
}

fn layers_of(case: &Value) -> Layers {
    let is_on = |layer: &str| case["layers"][layer] == json!(true);
    Layers {
        admission: is_on("admission"),
        audit: is_on("audit"),
        network: is_on("network"),
        actions: is_on("actions"),
    }
}

/// Up to three rules that look things up, and one request.
fn case(random: &mut Random) -> Value {
    let request = request(random);
    let rules: Vec<Value> = (0..1 + random.below(3)).map(|number| rule(random, number, &request)).collect();
    json!({
        "rules": rules,
        "namespaces": {},
        "fresh": random.percent(50),
        "layers": {
            "admission": random.percent(80),
            "audit": random.percent(80),
            "network": random.percent(50),
            "actions": random.percent(50),
        },
        "front": random.pick(&["admission", "admission", "audit", "nobody"]),
        "now": 1_800_000_000,
        "request": request,
    })
}

/// A rule that looks things up.
fn rule(random: &mut Random, number: usize, request: &Value) -> Value {
    let mut rule = cases::rule(random, request);
    rule["metadata"]["name"] = format!("r{number}").into();
    let own = rule["metadata"]["namespace"].as_str().map(str::to_owned);
    // Whatever narrows `match` makes fewer lookups.
    for field in ["names", "labelSelector", "namespaces"] {
        rule["spec"]["match"].as_object_mut().unwrap().remove(field);
    }
    if random.percent(70) {
        rule["spec"].as_object_mut().unwrap().remove("exceptions");
    }
    rule["spec"]["rule"] = condition(random, own.as_deref(), 2).into();
    if random.percent(30) {
        rule["spec"]["message"] = "{{ metadata.name }} in {{ metadata.namespace }}".into();
    }
    if random.percent(30) {
        let actions = [
            json!({"type": "label", "key": "a", "value": "b"}),
            json!({"type": "evict"}),
            json!({"type": "patch-networkpolicy"}),
            json!({"type": "revoke-sa-token"}),
        ];
        rule["spec"]["actions"] = json!([random.pick(&actions)]);
    }
    rule
}

fn condition(random: &mut Random, own: Option<&str>, depth: usize) -> String {
    let below = |random: &mut Random| condition(random, own, depth.saturating_sub(1));
    match random.below(if depth == 0 { 5 } else { 10 }) {
        0 => format!("len({}) > 0", list(random, own, None)),
        1 => format!("{} == nil", by_name(random, own)),
        2 => format!("{}.metadata.labels.target != nil", by_name(random, own)),
        3 => format!("any({}, .metadata.name == metadata.name)", list(random, own, None)),
        4 => format!("{} == nil", by_ref(random, own)),
        5 => format!("({}) && ({})", below(random), below(random)),
        6 => format!("({}) || ({})", below(random), below(random)),
        7 => format!("not ({})", below(random)),
        8 => format!("(metadata.name == 'api' ? ({}) : ({}))", below(random), below(random)),
        _ => {
            let inner = list(random, own, Some(".metadata.name"));
            format!("any({}, len({inner}) > 0)", list(random, own, None))
        }
    }
}

fn list(random: &mut Random, own: Option<&str>, inner: Option<&str>) -> String {
    let root = *random.pick(&ROOTS);
    let selector = *random.pick(&["{app: 'api'}", "{matchLabels: {app: 'api'}}", "metadata.labels"]);
    if own.is_none() && inner.is_none() && random.percent(30) {
        let plural = random.pick(&GLOBAL);
        let arguments = *random.pick(&["", selector]);
        return format!("{root}{plural}.list({arguments})");
    }
    let (plural, namespace) = (random.pick(&NAMESPACED), namespace(random, own, inner));
    match random.below(3) {
        0 => format!("{root}{plural}.list({namespace})"),
        1 => format!("{root}{plural}.list({namespace}, {selector})"),
        _ => format!("{root}{plural}.list(selector={selector}, ns={namespace})"),
    }
}

fn by_name(random: &mut Random, own: Option<&str>) -> String {
    let root = *random.pick(&ROOTS);
    let name = *random.pick(&["'api'", "metadata.name", "object.metadata.annotations.target"]);
    if own.is_none() && random.percent(30) {
        return format!("{root}{}.byName({name})", random.pick(&GLOBAL));
    }
    let namespace = namespace(random, own, None).replace('*', "dev");
    format!("{root}{}.byName({namespace}, {name})", random.pick(&NAMESPACED))
}

/// A reference to one of several kinds, some of which may be in no namespace.
fn by_ref(random: &mut Random, own: Option<&str>) -> String {
    let root = *random.pick(&ROOTS);
    let mut kinds = vec!["'pods'", "'services'", "'configmaps'", "'deployments.apps'", "'nodes'", "'namespaces'"];
    kinds.truncate(if own.is_some() { 4 } else { kinds.len() });
    for _ in 0..random.below(kinds.len()) {
        kinds.remove(random.below(kinds.len()));
    }
    let reference = *random.pick(&[
        "{kind: 'Pod', name: 'api'}",
        "{apiVersion: 'v1', kind: 'Service', name: metadata.name}",
        "{group: '', kind: 'ConfigMap', name: 'api', namespace: object.metadata.annotations.target}",
        "{apiVersion: 'apps/v1', kind: 'Deployment', name: 'api', uid: 'u'}",
        "{apiVersion: object.apiVersion, kind: object.kind, name: metadata.name}",
        "{kind: 'Node', name: 'prod'}",
        "object.metadata.ownerReferences[0]",
        "nil",
    ]);
    let is_global = kinds.iter().all(|kind| matches!(*kind, "'nodes'" | "'namespaces'"));
    let namespace = namespace(random, own, None).replace('*', "dev");
    let arguments = if is_global { reference.to_owned() } else { format!("{namespace}, {reference}") };
    format!("{root}.any({}).byRef({arguments})", kinds.join(", "))
}

/// A namespace as rules write it: as it is, as a field, or as what only an evaluation knows.
fn namespace(random: &mut Random, own: Option<&str>, inner: Option<&str>) -> String {
    let written = own.unwrap_or(*random.pick(&NAMESPACES)).to_owned();
    match random.below(7) {
        0 | 1 => format!("{written:?}"),
        2 if own.is_none() => "\"*\"".to_owned(),
        3 => format!("(metadata.name == 'api' ? {written:?} : 'dev')"),
        4 => "(object.metadata.annotations.target ?? 'dev')".to_owned(),
        5 => format!("(object.metadata.annotations.nothing ?? {written:?})"),
        _ => format!("({} ?? 'dev')", inner.unwrap_or("metadata.namespace")),
    }
}

//! What admission let in is told of once its object is there, and as long as it is so.

use portal_core::rule::source::RuleId;

use super::*;
use crate::outcomes::{Found, Order, Outcome, RuleOutcome};

const REGISTRY: &str = "
name: registry
mode: [admission]
enforcementAction: warn
match: {gvk: [{kind: Pod}]}
rule: request.userInfo.username == 'eve'
message: eve did it
";

impl Scene {
    /// A replica says what came of a request, by the version of the rule that is in force.
    fn hear(&mut self, uid: &str, changed: u64, message: Option<&str>) {
        let rule = RuleId::parse("registry");
        let version = self.ledger.snapshot.rule(&rule).map_or("none", |rule| &rule.version).to_owned();
        let findings = message.map(|message| Found { message: message.to_owned(), ..Found::default() });
        let said = RuleOutcome { rule: rule.to_string(), version, findings: findings.into_iter().collect() };
        let order = Order { changed, time: 1000 };
        self.ledger.hear(&Outcome { uid: uid.to_owned(), order, rules: vec![said] }, self.now);
    }
}

const TOLD: &str = "registry Pod shop/web: eve did it\n";

fn scene() -> Scene {
    let mut scene = Scene::new(generous(), Selector::default());
    scene.list("Pod", &[]);
    scene.rules(REGISTRY);
    scene
}

#[tokio::test]
async fn it_is_told_whether_the_object_or_the_outcome_comes_first() {
    let mut scene = scene();
    scene.hear("pod-shop-web", 0, Some("eve did it"));
    scene.quiet();
    assert_eq!(scene.shown(), "");
    scene.apply(pod("shop", "web", None, false));
    scene.quiet();
    assert_eq!(scene.shown(), TOLD);
    scene.apply(pod("shop", "api", None, false));
    scene.hear("pod-shop-api", 0, Some("eve did it"));
    // Whatever is heard twice is told once, and times stay.
    scene.hear("pod-shop-api", 0, Some("eve did it"));
    scene.quiet();
    assert_eq!(scene.shown(), ["registry Pod shop/api: eve did it\n", TOLD].concat());
    let offenders = scene.board.offenders();
    assert!(offenders.iter().all(|(_, offender)| offender.findings[0].since.as_millisecond() == 1000));
    // No change of the object is a reason to forget: nobody but admission can tell.
    scene.apply(pod("shop", "web", None, true));
    scene.ledger.resync();
    scene.quiet();
    assert_eq!(scene.shown().lines().count(), 2);
    scene.delete("Pod", Some("shop"), "web");
    scene.delete("Pod", Some("shop"), "api");
    scene.quiet();
    assert_eq!(scene.shown(), "");
}

#[tokio::test]
async fn the_last_review_decides_in_whatever_order_they_are_heard() {
    let mut scene = scene();
    scene.apply(pod("shop", "web", None, false));
    scene.hear("pod-shop-web", 7, None);
    scene.hear("pod-shop-web", 0, Some("eve did it"));
    assert_eq!(scene.shown(), "");
    scene.hear("pod-shop-web", 9, Some("eve did it"));
    assert_eq!(scene.shown(), TOLD);
    scene.hear("pod-shop-web", 8, None);
    assert_eq!(scene.shown(), TOLD);
    scene.hear("pod-shop-web", 12, None);
    assert_eq!(scene.shown(), "");
}

#[tokio::test]
async fn what_another_version_of_the_rule_said_is_over() {
    let mut scene = scene();
    scene.apply(pod("shop", "web", None, false));
    scene.hear("pod-shop-web", 0, Some("eve did it"));
    assert_eq!(scene.shown(), TOLD);
    // The same again, as when kinds change.
    scene.rules(REGISTRY);
    assert_eq!(scene.shown(), TOLD);
    let other = REGISTRY.replace("'eve'", "'bob'");
    scene.rules(&other);
    assert_eq!(scene.shown(), "");
    scene.hear("pod-shop-web", 3, Some("bob did it"));
    assert_eq!(scene.shown(), "registry Pod shop/web: bob did it\n");
    // Once audit asks it, audit decides.
    scene.rules(
        &REGISTRY
            .replace("mode: [admission]\n", "")
            .replace("request.userInfo.username == 'eve'", "spec.hostPID == true"),
    );
    scene.quiet();
    assert_eq!(scene.shown(), "");
    scene.rules(PRIVILEGED);
    scene.quiet();
    assert_eq!(scene.shown(), "");
}

#[tokio::test]
async fn an_outcome_of_a_version_that_comes_later_waits_for_it() {
    let mut scene = scene();
    scene.apply(pod("shop", "web", None, false));
    let mut ahead = Scene::new(generous(), Selector::default());
    let other = REGISTRY.replace("'eve'", "'bob'");
    ahead.rules(&other);
    let version = ahead.ledger.snapshot.rule(&RuleId::parse("registry")).unwrap().version.clone();
    let findings = vec![Found { message: "bob did it".to_owned(), ..Found::default() }];
    let said = RuleOutcome { rule: "registry".to_owned(), version, findings };
    let outcome = Outcome { uid: "pod-shop-web".to_owned(), order: Order::default(), rules: vec![said] };
    scene.ledger.hear(&outcome, scene.now);
    assert_eq!(scene.shown(), "");
    scene.rules(&other);
    assert_eq!(scene.shown(), "registry Pod shop/web: bob did it\n");
}

#[tokio::test]
async fn whoever_hears_no_more_of_them_tells_of_none() {
    let mut scene = scene();
    scene.rules(&[REGISTRY, "---", PRIVILEGED].concat());
    scene.apply(pod("shop", "web", None, true));
    scene.hear("pod-shop-web", 5, Some("eve did it"));
    scene.quiet();
    let privileged = "no-privileged Pod shop/web/app: container app is privileged\n";
    assert_eq!(scene.shown(), [privileged, TOLD].concat());
    scene.ledger.forget_outcomes();
    assert_eq!(scene.shown(), privileged);
    // It hears all of it again when it holds the Lease again.
    scene.hear("pod-shop-web", 5, Some("eve did it"));
    assert_eq!(scene.shown(), [privileged, TOLD].concat());
}

#[tokio::test]
async fn what_nobody_ever_sees_is_forgotten() {
    let mut scene = scene();
    scene.quiet();
    scene.hear("pod-shop-web", 0, Some("eve did it"));
    scene.now += Duration::from_secs(61);
    scene.hear("another", 0, None);
    // Some other object that has the same name, and by chance the same uid: nothing is known of it.
    scene.apply(pod("shop", "other", None, false));
    scene.apply(pod("shop", "web", None, false));
    scene.quiet();
    assert_eq!(scene.shown(), "");
}

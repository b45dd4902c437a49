//! The fault proxy of the kit does what each fault says, in front of a real API server.

mod storms;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use portal_test_kit::fault_proxy::{Answer, Fault, ProxyClient, Requests, Verb};
use portal_test_kit::{Cluster, FaultProxy, Namespace, Size};
use tokio::time::{Instant, sleep, timeout};

use super::config_map;

/// A namespace, a proxy, and a client of it named `jane` that may do everything.
struct Fixture {
    namespace: Namespace<'static>,
    proxy: FaultProxy,
    jane: ProxyClient,
    /// Through the proxy.
    through: Api<ConfigMap>,
    /// Past the proxy.
    direct: Api<ConfigMap>,
}

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to look whether something happens that must not.
const A_WHILE: Duration = Duration::from_millis(300);

async fn fixture(test: &str, seed: u64) -> Fixture {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace(test).await;
    let proxy = FaultProxy::start(cluster, seed).await.unwrap();
    let jane = proxy.client("jane", "jane", &["system:masters"]).unwrap();
    let through = namespace.api(jane.client());
    let direct = namespace.api(cluster.client().await);
    Fixture { namespace, proxy, jane, through, direct }
}

impl Fixture {
    /// Another client of the proxy.
    fn other(&self, name: &str) -> Api<ConfigMap> {
        self.namespace.api(self.proxy.client(name, name, &["system:masters"]).unwrap().client())
    }

    /// How many requests with this verb came.
    fn count(&self, verb: Verb) -> usize {
        self.proxy.log().iter().filter(|entry| entry.verb == verb && entry.event.is_none()).count()
    }
}

fn config_maps() -> Requests {
    Requests::of("configmaps")
}

async fn create(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &config_map(name)).await
}

async fn names(api: &Api<ConfigMap>, params: &ListParams) -> BTreeSet<String> {
    let list = api.list(params).await.unwrap();
    list.items.into_iter().filter_map(|item| item.metadata.name).collect()
}

/// The status that the API server's answer has.
#[track_caller]
fn status<T: Debug>(result: kube::Result<T>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("an answer was expected, but there is {other:?}"),
    }
}

#[track_caller]
fn assert_cut<T: Debug>(result: kube::Result<T>) {
    assert!(
        matches!(result, Err(kube::Error::HyperError(_) | kube::Error::Service(_))),
        "{result:?} is no cut connection"
    );
}

async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// A watch from here on, as `event name`. For kube's client a cut stream is one that ended.
async fn watch(api: &Api<ConfigMap>) -> BoxStream<'static, String> {
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let events = api.watch(&WatchParams::default(), &version).await.unwrap();
    let name = |object: ConfigMap| object.metadata.name.unwrap();
    events
        .map(move |event| match event {
            Ok(WatchEvent::Added(object)) => format!("added {}", name(object)),
            Ok(WatchEvent::Modified(object)) => format!("modified {}", name(object)),
            Ok(WatchEvent::Deleted(object)) => format!("deleted {}", name(object)),
            Ok(WatchEvent::Bookmark(_)) => "bookmark".to_owned(),
            Ok(WatchEvent::Error(status)) => format!("error {}", status.code),
            Err(error) => error.to_string(),
        })
        .boxed()
}

/// The next of a watch.
async fn next(watch: &mut BoxStream<'static, String>) -> Option<String> {
    timeout(PATIENCE, watch.next()).await.expect("the watch says something")
}

#[tokio::test]
async fn the_api_server_sees_who_is_behind_the_proxy() {
    let cluster = Cluster::shared(Size::Core);
    let fixture = fixture("identity", 1).await;
    // Two replicas of one program have the same user.
    for replica in ["one", "two"] {
        let client = fixture.proxy.client(replica, "robot", &["robots", "machines"]).unwrap().client();
        let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
        let user = review.status.unwrap().user_info.unwrap();
        assert_eq!(user.username.unwrap(), "robot");
        assert_eq!(user.groups.unwrap(), ["robots", "machines", "system:authenticated"]);
        assert_eq!(status(fixture.namespace.api::<ConfigMap>(client).list(&ListParams::default()).await), 403);
    }
    let events = cluster.audit_events().await.unwrap();
    let refused: Vec<_> = events
        .iter()
        .filter(|event| event.object_ref.namespace == fixture.namespace.name && event.code() == 403)
        .map(|event| (event.user(), event.client().unwrap()))
        .collect();
    assert_eq!(refused, [("robot", "one"), ("robot", "two")]);
}

#[tokio::test]
async fn another_program_goes_through_the_proxy_by_its_kubeconfig() {
    let fixture = fixture("program", 1).await;
    let _fault = fixture.proxy.inject(Fault::Answer(Answer::INTERNAL_ERROR).on(config_maps().verbs(&[Verb::Create])));
    let kubectl = |arguments: &[&str]| {
        let mut command = Cluster::shared(Size::Core).kubectl_command();
        command.env("KUBECONFIG", fixture.jane.kubeconfig()).args(["--namespace", &fixture.namespace.name]);
        let output = command.args(arguments).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(kubectl(&["auth", "whoami"]).contains("jane"));
    let said = kubectl(&["create", "configmap", "one"]);
    assert!(said.contains("InternalError by the fault proxy"), "{said}");
}

#[tokio::test]
async fn the_proxy_answers_in_the_server_s_place_as_often_as_it_is_told() {
    let fixture = fixture("answers", 1).await;
    let stored = create(&fixture.through, "one").await.unwrap();
    let update = async |api: &Api<ConfigMap>| api.replace("one", &PostParams::default(), &stored).await;
    let conflict = Fault::Answer(Answer::CONFLICT).on(config_maps().verbs(&[Verb::Update]).name("one").from("jane"));
    let conflict = fixture.proxy.inject(conflict.next(2));
    assert!(update(&fixture.other("john")).await.is_ok(), "the fault is for jane");
    assert!(fixture.through.get("one").await.is_ok(), "the fault is for updates");
    assert_eq!(status(update(&fixture.through).await), 409);
    assert_eq!(status(update(&fixture.through).await), 409);
    assert!(update(&fixture.through).await.is_ok());
    assert_eq!(conflict.hits(), 2);

    let broken = fixture.proxy.inject(Fault::Answer(Answer::INTERNAL_ERROR).on(config_maps()).after(1));
    assert!(fixture.through.get("one").await.is_ok());
    assert_eq!(status(fixture.through.get("one").await), 500);
    drop(broken);
    assert!(fixture.through.get("one").await.is_ok());

    // kube's client tries again after these by itself.
    let busy = Answer { retry_after: None, ..Answer::TOO_MANY_REQUESTS };
    let busy = fixture.proxy.inject(Fault::Answer(busy).on(config_maps()).next(2));
    assert!(fixture.through.get("one").await.is_ok());
    assert_eq!(busy.hits(), 2);
}

#[tokio::test]
async fn a_write_is_lost_before_it_is_done_or_its_answer_after() {
    let fixture = fixture("lost", 1).await;
    let creates = || config_maps().verbs(&[Verb::Create]);
    let exists = async |name: &str| fixture.direct.get_opt(name).await.unwrap().is_some();

    let fault = fixture.proxy.inject(Fault::CutBefore.on(creates()));
    assert_cut(create(&fixture.through, "before").await);
    assert!(!exists("before").await);
    drop(fault);

    let fault = fixture.proxy.inject(Fault::CutAfter.on(creates()));
    assert_cut(create(&fixture.through, "after").await);
    assert!(exists("after").await);
    drop(fault);

    let fault = fixture.proxy.inject(Fault::AnswerAfter(Answer::INTERNAL_ERROR).on(creates()));
    assert_eq!(status(create(&fixture.through, "answered").await), 500);
    assert!(exists("answered").await);
    drop(fault);

    let fault = fixture.proxy.inject(Fault::Late(A_WHILE).on(creates()));
    assert_cut(create(&fixture.through, "late").await);
    assert!(!exists("late").await);
    until("a late request arrives", async || exists("late").await).await;
    drop(fault);

    let fault = fixture.proxy.inject(Fault::Delay(A_WHILE).on(creates()));
    let begun = Instant::now();
    create(&fixture.through, "delayed").await.unwrap();
    assert!(begun.elapsed() >= A_WHILE);
    // A client that does not wait so long has never asked.
    assert!(timeout(A_WHILE / 2, create(&fixture.through, "given-up")).await.is_err());
    fault.hit(2).await;
    sleep(A_WHILE).await;
    assert!(!exists("given-up").await);
}

#[tokio::test]
async fn a_stale_read_is_a_true_state_of_the_past() {
    let fixture = fixture("stale", 1).await;
    let old = create(&fixture.direct, "kept").await.unwrap();
    create(&fixture.direct, "gone").await.unwrap();
    let revision = fixture.proxy.revision().await.unwrap();
    let mut changed = old.clone();
    changed.data = Some(BTreeMap::from([("key".to_owned(), "newer".to_owned())]));
    fixture.direct.replace("kept", &PostParams::default(), &changed).await.unwrap();
    fixture.direct.delete("gone", &DeleteParams::default()).await.unwrap();
    create(&fixture.direct, "new").await.unwrap();

    let stale = fixture.proxy.inject(Fault::Stale(revision).on(config_maps()));
    let list = fixture.through.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version.as_ref().unwrap(), &revision.to_string());
    let states: Vec<_> = list.items.iter().map(|item| (item.metadata.name.as_deref().unwrap(), &item.data)).collect();
    assert_eq!(states, [("gone", &config_map("gone").data), ("kept", &old.data)]);
    assert_eq!(fixture.through.get("kept").await.unwrap(), old);
    assert_eq!(fixture.through.get_opt("new").await.unwrap(), None);

    // A read that may not be older than what the client has seen is not.
    let newest = fixture.proxy.revision().await.unwrap();
    let fresh = names(&fixture.through, &ListParams::default().at(&newest.to_string())).await;
    assert_eq!(fresh, BTreeSet::from(["kept".to_owned(), "new".to_owned()]));
    // Who may not read does not read the past either.
    let stranger: Api<ConfigMap> = fixture.namespace.api(fixture.proxy.client("eve", "eve", &[]).unwrap().client());
    assert_eq!(status(stranger.get("kept").await), 403);
    assert_eq!(status(stranger.list(&ListParams::default()).await), 403);
    drop(stale);

    // A watch from the past brings all that came since.
    let events = fixture.through.watch(&WatchParams::default(), &revision.to_string()).await.unwrap();
    let events: Vec<_> = timeout(PATIENCE, events.take(3).collect()).await.unwrap();
    assert!(
        matches!(events[..], [Ok(WatchEvent::Modified(_)), Ok(WatchEvent::Deleted(_)), Ok(WatchEvent::Added(_))]),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_partition_that_refuses_ends_streams_and_requests_until_it_heals() {
    let fixture = fixture("refused", 1).await;
    let mut stream = watch(&fixture.through).await;
    let john = fixture.other("john");
    let partition = fixture.proxy.inject(Fault::Refuse.on(Requests::all().from("jane")));
    assert_eq!(next(&mut stream).await, None);
    assert_cut(create(&fixture.through, "one").await);
    assert_cut(fixture.jane.client().apiserver_version().await);
    assert!(create(&john, "two").await.is_ok(), "the partition is around jane");
    assert_eq!(partition.hits(), 2);
    drop(partition);
    assert_eq!(names(&fixture.through, &ListParams::default()).await, BTreeSet::from(["two".to_owned()]));
}

#[tokio::test]
async fn a_partition_that_is_silent_holds_everything_until_it_heals() {
    let fixture = fixture("silent", 1).await;
    let mut stream = watch(&fixture.through).await;
    let partition = fixture.proxy.inject(Fault::Silence.on(Requests::all().from("jane")));
    create(&fixture.direct, "seen-late").await.unwrap();
    assert!(timeout(A_WHILE, stream.next()).await.is_err(), "no event passes");
    let mut waiting = pin!(create(&fixture.through, "done-late"));
    assert!(timeout(A_WHILE, &mut waiting).await.is_err(), "no request passes");
    assert!(fixture.direct.get_opt("done-late").await.unwrap().is_none());
    // One that gives up has never asked.
    assert!(timeout(A_WHILE, create(&fixture.through, "given-up")).await.is_err());
    drop(partition);
    assert_eq!(next(&mut stream).await.unwrap(), "added seen-late");
    waiting.await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap(), "added done-late");
    assert!(fixture.direct.get_opt("given-up").await.unwrap().is_none());
}

#[tokio::test]
async fn a_request_that_is_held_is_done_and_a_create_is_found_by_what_it_sends() {
    let fixture = fixture("held", 1).await;
    let about = Requests::all().verbs(&[Verb::Create]).about("one");
    let others = fixture.proxy.inject(Fault::CutBefore.on(about.clone().but(&["configmaps"])));
    let held = fixture.proxy.inject(Fault::Hold.on(about).next(1));
    // Of another name, and with the word as a part of a text.
    create(&fixture.through, "two").await.unwrap();
    create(&fixture.through, "one-more").await.unwrap();
    assert_eq!((held.hits(), fixture.proxy.held()), (0, 0));
    let waits = timeout(A_WHILE, create(&fixture.through, "one")).await;
    assert!(waits.is_err(), "{waits:?} is an answer");
    until("the request is done", async || fixture.proxy.held() == 1).await;
    assert!(fixture.direct.get_opt("one").await.unwrap().is_some());
    assert_eq!((held.hits(), others.hits()), (1, 0));
}

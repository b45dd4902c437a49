//! One holder of a Lease on a real API server: who it is, and how it changes.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use portal_cluster::holder::{ADDRESS, ActError, Candidacy, Holder, Timing};
use portal_test_kit::{Cluster, Namespace, Size};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A replica of the engine, as far as the Lease knows it.
struct Replica {
    holder: Holder,
    task: JoinHandle<()>,
    /// Tells it to stop when it is dropped.
    shutdown: DropGuard,
}

/// Shorter than by default, so that tests do not wait long.
fn short() -> Timing {
    Timing::new(Duration::from_secs(3), Duration::from_secs(2), Duration::from_millis(500)).unwrap()
}

fn start(client: Client, namespace: &str, identity: &str, timing: Timing) -> Replica {
    let shutdown = CancellationToken::new();
    let candidacy = Candidacy {
        namespace: namespace.to_owned(),
        name: "portal".to_owned(),
        identity: identity.to_owned(),
        address: Some(format!("{identity}.example:8443")),
        owner: None,
        timing,
    };
    let (holder, task) = Holder::start(client, &candidacy, shutdown.clone());
    Replica { holder, task, shutdown: shutdown.drop_guard() }
}

impl Replica {
    /// Waits until it holds, and says how long that took.
    #[track_caller]
    fn holds_within(&mut self, limit: Duration) -> impl Future<Output = Duration> {
        let start = Instant::now();
        let caller = std::panic::Location::caller();
        async move {
            while !self.holder.is_held() {
                let left = limit.saturating_sub(start.elapsed());
                let changed = tokio::time::timeout(left, self.holder.changed()).await;
                assert!(changed.is_ok(), "{caller}: it does not hold after {limit:?}");
            }
            start.elapsed()
        }
    }

    async fn stops_within(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.holder.is_held() {
            assert!(Instant::now() < deadline, "it still holds after {limit:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until it sees another holder, whose name begins so.
    async fn sees(&mut self, identity: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.holder.observed().is_some_and(|seen| seen.identity.starts_with(identity)) {
            assert!(Instant::now() < deadline, "it sees {:?} instead of {identity}", self.holder.observed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What has to be done, once something has.
    async fn problem(&self) -> String {
        let mut problem = self.holder.problem();
        let told = tokio::time::timeout(Duration::from_secs(10), problem.wait_for(Option::is_some)).await;
        told.expect("a problem is told").unwrap().clone().unwrap()
    }
}

async fn two(namespace: &Namespace<'_>, cluster: &Cluster) -> (Replica, Replica, Api<Lease>) {
    let client = cluster.client().await;
    let mut one = start(client.clone(), &namespace.name, "one", short());
    one.holds_within(Duration::from_secs(5)).await;
    let mut two = start(client.clone(), &namespace.name, "two", short());
    two.sees("one").await;
    (one, two, namespace.api(client))
}

async fn merge(leases: &Api<Lease>, patch: Value) {
    leases.patch("portal", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test]
async fn one_holds_and_the_other_knows_where_it_is() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease").await;
    let (one, two, leases) = two(&namespace, cluster).await;
    merge(&leases, json!({ "metadata": { "annotations": { "somebody": "else" } } })).await;
    // Two renewals later.
    let before = leases.get("portal").await.unwrap().spec.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!((one.holder.term(), two.holder.term()), (Some(0), None));
    let seen = two.holder.observed().unwrap();
    assert_eq!(seen, one.holder.observed().unwrap());
    assert_eq!(seen.address.as_deref(), Some("one.example:8443"));

    let lease = leases.get("portal").await.unwrap();
    assert_eq!(lease.annotations()["somebody"], "else");
    assert_eq!(lease.annotations()[ADDRESS], "one.example:8443");
    let spec = lease.spec.unwrap();
    assert_eq!(spec.holder_identity.as_ref(), Some(&seen.identity));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(3), Some(0)));
    assert_eq!(spec.acquire_time, before.acquire_time);
    assert!(spec.renew_time > before.renew_time);
    assert_eq!(one.holder.act(Duration::from_secs(1), async |term| term).await, Ok(0));
    assert_eq!(two.holder.act(Duration::from_secs(1), async |term| term).await, Err(ActError::NotHeld));
    // Longer than a term is left.
    assert_eq!(one.holder.act(Duration::from_secs(2), async |term| term).await, Err(ActError::NotHeld));
}

#[tokio::test]
async fn who_is_told_to_stop_finishes_its_writes_and_hands_over_at_once() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-handed-over").await;
    let (one, mut two, leases) = two(&namespace, cluster).await;
    let holder = one.holder.clone();
    let (begun, mut has_begun) = watch::channel(false);
    let write = tokio::spawn(async move {
        let work = async |_| {
            begun.send_replace(true);
            tokio::time::sleep(Duration::from_millis(700)).await;
            Instant::now()
        };
        holder.act(Duration::from_secs(1), work).await
    });
    has_begun.wait_for(|begun| *begun).await.unwrap();
    drop(one.shutdown);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!one.holder.is_held(), "it stops before it lets go");
    assert_eq!(one.holder.act(Duration::from_millis(1), async |_| ()).await, Err(ActError::NotHeld));
    // The others look every 0.6 s at most; without a release they would wait for 3 s.
    two.holds_within(Duration::from_millis(2_500)).await;
    assert!(write.await.unwrap().unwrap() < Instant::now());
    assert_eq!(two.holder.term(), Some(1));
    assert_eq!(leases.get("portal").await.unwrap().annotations()[ADDRESS], "two.example:8443");
    one.task.await.unwrap();
}

#[tokio::test]
async fn who_is_alone_leaves_a_lease_that_nobody_holds() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-left").await;
    let client = cluster.client().await;
    let mut one = start(client.clone(), &namespace.name, "one", short());
    one.holds_within(Duration::from_secs(5)).await;
    drop(one.shutdown);
    one.task.await.unwrap();
    let lease = namespace.api::<Lease>(client.clone()).get("portal").await.unwrap();
    assert!(!lease.annotations().contains_key(ADDRESS));
    let spec = lease.spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some(""), Some(1)));

    let mut two = start(client, &namespace.name, "two", short());
    two.holds_within(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_holder_that_dies_is_replaced_within_20_seconds() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-killed").await;
    let client = cluster.client().await;
    let mut one = start(client.clone(), &namespace.name, "one", Timing::default());
    one.holds_within(Duration::from_secs(8)).await;
    let mut two = start(client, &namespace.name, "two", Timing::default());
    two.sees("one").await;
    one.task.abort();
    two.holds_within(Duration::from_secs(20)).await;
    assert!(!one.holder.is_held(), "its term is over, whether its task runs or not");
}

#[tokio::test]
async fn a_deleted_lease_is_written_again_by_its_holder() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-deleted").await;
    let (one, two, leases) = two(&namespace, cluster).await;
    for _ in 0..2 {
        leases.delete("portal", &DeleteParams::default()).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while leases.get_opt("portal").await.unwrap().is_none() {
            assert!(Instant::now() < deadline, "nobody writes the Lease again");
            assert!(one.holder.is_held() && !two.holder.is_held());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((one.holder.term(), two.holder.term()), (Some(0), None));
}

#[tokio::test]
async fn a_lease_that_vanished_with_its_holder_is_waited_out() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-vanished").await;
    let (one, mut two, leases) = two(&namespace, cluster).await;
    one.task.abort();
    leases.delete("portal", &DeleteParams::default()).await.unwrap();
    assert!(two.holds_within(Duration::from_secs(6)).await >= Duration::from_millis(2_900));
    assert_eq!(two.holder.term(), Some(1), "terms go on");
}

#[tokio::test]
async fn a_lease_edited_to_name_another_stops_its_holder_and_is_waited_out_by_all() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-edited").await;
    for (edit, comment) in [
        (json!({ "spec": { "holderIdentity": "somebody" } }), "another"),
        (json!({ "spec": { "holderIdentity": "" } }), "nobody"),
        (json!({ "spec": null }), "nothing"),
    ] {
        let (mut one, mut two, leases) = two(&namespace, cluster).await;
        merge(&leases, edit).await;
        let edited = Instant::now();
        one.stops_within(Duration::from_secs(2)).await;
        let next = async {
            tokio::select! {
                _ = one.holds_within(Duration::from_secs(6)) => {}
                _ = two.holds_within(Duration::from_secs(6)) => {}
            }
            edited.elapsed()
        };
        assert!(next.await >= Duration::from_millis(2_900), "{comment}");
        assert!(one.holder.is_held() != two.holder.is_held(), "{comment}");
        for replica in [one, two] {
            drop(replica.shutdown);
            replica.task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_put_to_a_lease_that_was_deleted_makes_no_new_one() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-put").await;
    let leases: Api<Lease> = namespace.api(cluster.client().await);
    let lease = serde_json::from_value(json!({ "metadata": { "name": "portal" }, "spec": {} })).unwrap();
    let mut lease = leases.create(&PostParams::default(), &lease).await.unwrap();
    leases.delete("portal", &DeleteParams::default()).await.unwrap();
    match leases.replace("portal", &PostParams::default(), &lease).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 409, "{}", status.message),
        other => panic!("the Lease is gone, but got {other:?}"),
    }
    // Its version alone would not have kept the API server from making it anew.
    lease.metadata.uid = None;
    leases.replace("portal", &PostParams::default(), &lease).await.unwrap();
}

#[tokio::test]
async fn a_missing_permission_is_told_by_its_verb_and_granted_it_works() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-forbidden").await;
    let mut replica = start(cluster.client_as("jane", &[]).await, &namespace.name, "one", short());
    namespace.kubectl(&["create", "rolebinding", "leases", "--role=leases", "--user=jane"]).unwrap();
    for (verb, granted) in [("get", "get"), ("create", "get,create"), ("update", "get,create,update")] {
        let mut problem = replica.holder.problem();
        let text = format!(
            "may not {verb} the Lease portal: the verb {verb} on leases of coordination.k8s.io is missing in the namespace {}",
            namespace.name
        );
        let told = problem.wait_for(|problem| problem.as_ref() == Some(&text));
        let told = tokio::time::timeout(Duration::from_secs(10), told).await.map(|told| told.is_ok());
        assert_eq!(told, Ok(true), "instead of {text}: {}", replica.problem().await);
        let _ = namespace.kubectl(&["delete", "role", "leases"]);
        namespace
            .kubectl(&[
                "create",
                "role",
                "leases",
                &format!("--verb={granted}"),
                "--resource=leases.coordination.k8s.io",
            ])
            .unwrap();
    }
    let mut problem = replica.holder.problem();
    let solved = tokio::time::timeout(Duration::from_secs(10), problem.wait_for(Option::is_none)).await;
    assert!(solved.is_ok(), "what was granted is allowed");
    replica.holds_within(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_or_goes_is_told() {
    let cluster = Cluster::shared(Size::Core);
    let namespace = cluster.namespace("lease-ending").await;
    cluster.kubectl(&["delete", "namespace", &namespace.name, "--wait=false"]).unwrap();
    let replica = start(cluster.client().await, &namespace.name, "one", short());
    let expected = format!("the namespace {} of the Lease portal is being deleted", namespace.name);
    assert_eq!(replica.problem().await, expected);

    let replica = start(cluster.client().await, "nowhere", "one", short());
    assert_eq!(replica.problem().await, "the namespace nowhere of the Lease portal does not exist");
}

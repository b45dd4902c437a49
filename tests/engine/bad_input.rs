//! What is wrong around an engine is told in a clear line, and does not end it.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::process::Engine;
use super::{GOOD, apply, cluster, install, rule, wait_for};
use crate::core::eventually;

use portal_test_kit::fault_proxy::{Answer, Fault, FaultProxy, Requests, Verb};
use portal_test_kit::{Cluster, Size};

/// Flags and files that are wrong from the start end the program with one line.
#[track_caller]
fn check(arguments: &[&str], config: Option<&str>, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_portal"));
    command.env_clear().arg("engine").args(arguments);
    if let Some(config) = config {
        std::fs::write(&path, config).unwrap();
        command.arg("--config").arg(&path);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let text = text.replace(folder.path().to_str().unwrap(), "DIR");
    assert!(!output.status.success());
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn settings_that_are_wrong_are_told_with_their_place() {
    check(&[], None, "error: there are no rules to load: give --rules-from-cluster, --rules-folder DIR, or both\n");
    check(
        &["--rules-from-cluster", "--network"],
        None,
        "error: the layer `network` is not there yet: this engine judges requests and what is in the cluster; leave out --network\n",
    );
    let audit = |flag| ["--rules-from-cluster", "--audit", flag];
    for (flag, expected) in [
        (
            "--alertmanager-urls=alertmanager:9093",
            "error: --alertmanager-urls: `alertmanager:9093` is no address: write one such as `http://alertmanager.monitoring:9093`\n",
        ),
        (
            "--alertmanager-urls=http://jane:secret@alertmanager:9093",
            "error: --alertmanager-urls: an address of Alertmanager has credentials in it: put them into the Secret of the credentials\n",
        ),
        (
            "--alertmanager-credentials=/etc/portal/alertmanager",
            "error: --alertmanager-credentials is for nobody: give --alertmanager-urls too, or leave it out\n",
        ),
        ("--audit-workers=0", "error: invalid value '0' for '--audit-workers <NUMBER>': 0 is not in 1..=64\n"),
    ] {
        check(&audit(flag), None, expected);
    }
    check(
        &["--rules-from-cluster", "--admission"],
        None,
        "error: --admission needs a certificate: give --tls-cert FILE and --tls-key FILE\n",
    );
    let admission = ["--rules-from-cluster", "--admission", "--tls-cert=a", "--tls-key=b"];
    check(
        &[&admission[..], &["--exclude-namespaces=kube-*"]].concat(),
        None,
        "error: --exclude-namespaces: `kube-*` is no name of a namespace, and patterns are for `match.namespaces` of a rule\n",
    );
    check(
        &[&admission[..], &["--namespace-selector=team in ("]].concat(),
        None,
        "error: --namespace-selector `team in (` cannot be read: ",
    );
    check(
        &["--rules-from-cluster", "--instance=No Name"],
        None,
        "error: --instance `No Name` is no name of an object: up to 63 of a-z, 0-9 and -, not at an end\n",
    );
    check(
        &["--rules-from-cluster", "--address=::"],
        None,
        "error: --address :: is every address and leads nowhere: give the one by which others reach this replica\n",
    );
    check(&["--rules-from-cluster", "--log=loud=very"], None, "error: `loud=very` says no levels: write error, warn,");
    check(&["--rules-from-cluster", "--lease-duration=5"], None, "error: the times of the Lease do not fit: ");
    check(
        &[],
        Some("rulesFromCluser: true\n"),
        "error: DIR/engine.yaml: `rulesFromCluser` is no setting: did you mean `rulesFromCluster`?\n",
    );
    check(
        &[],
        Some("listen: nowhere\n"),
        "error: DIR/engine.yaml: `listen`: invalid value 'nowhere' for '--listen <ADDRESS>'",
    );
    check(&[], Some("rulesFromCluster: 1\n"), "error: DIR/engine.yaml: `rulesFromCluster` is true or false\n");
    check(&[], Some("- a\n"), "error: DIR/engine.yaml is one YAML map of settings, such as `rulesFromCluster: true`\n");
    check(&[], Some("a: [\n"), "error: DIR/engine.yaml:");
    check(&["--config", "/nowhere/engine.yaml"], None, "error: /nowhere/engine.yaml cannot be read: No such file");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(
        &["--rules-from-cluster", "--log=off", "--listen", &address],
        None,
        &format!("error: could not listen on {address}: Address already in use"),
    );
}

#[tokio::test]
async fn an_engine_waits_for_the_definitions_and_says_how_to_install_them() {
    let cluster = Cluster::start(Size::Core).unwrap();
    let engine = Engine::start(&cluster.kubeconfig(), &["--rules-from-cluster"]);
    let way_out = "install the definitions with `portal generate crds | kubectl apply --server-side -f -`";
    eventually("it says how", || engine.part("cluster-rules").contains(way_out));
    assert_eq!(engine.get("/healthz").unwrap(), (200, "ok\n".to_owned()));
    assert_eq!(engine.get("/readyz").unwrap().0, 503);
    install(&cluster);
    eventually("it is ready", || engine.get("/readyz").unwrap().0 == 200);
    eventually("the namespace is missing", || engine.part("lease").contains("the namespace portal-system"));
    cluster.kubectl(&["create", "namespace", "portal-system"]).unwrap();
    apply(&cluster, &rule("privileged", GOOD));
    wait_for(&cluster, "privileged", "True");
}

#[tokio::test]
async fn a_kubeconfig_that_does_not_work_is_told_and_tried_again() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let flags = ["--rules-from-cluster", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let engine = Engine::start(&cluster.kubeconfig(), &flags);
    eventually("it says why", || engine.part("api-server").contains("no way to reach the API server"));
    std::fs::write(&kubeconfig, "clusters: {").unwrap();
    eventually("it says why", || engine.part("api-server").starts_with("[-]"));
    let write = |server: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: main\n\
             contexts: [{{name: main, context: {{cluster: main, user: main}}}}]\n\
             clusters: [{{name: main, cluster: {{server: \"{server}\", insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: main, user: {{token: wrong}}}}]\n"
        );
        std::fs::write(&kubeconfig, text).unwrap();
    };
    write("https://127.0.0.1:1");
    eventually("nobody is there", || engine.part("api-server").contains("could not get /version"));
    write(&cluster.kubectl(&["config", "view", "--output=jsonpath={.clusters[0].cluster.server}"]).unwrap());
    eventually("nobody knows the token", || {
        engine.part("api-server").ends_with("the credentials are wrong or too old")
    });
    std::fs::copy(cluster.kubeconfig(), &kubeconfig).unwrap();
    eventually("it is ready", || engine.get("/readyz").is_some_and(|(code, _)| code == 200));
}

#[tokio::test]
async fn a_verb_that_is_missing_is_named() {
    const RULES: i64 = 50;
    let cluster = cluster();
    // May see everything, and write nothing.
    let watch = "get,list,watch";
    cluster.kubectl(&["create", "clusterrole", "see", &format!("--verb={watch}"), "--resource=*.*"]).unwrap();
    cluster.kubectl(&["create", "clusterrolebinding", "see", "--clusterrole=see", "--user=viewer"]).unwrap();
    cluster
        .kubectl(&[
            "create",
            "clusterrole",
            "lease",
            "--verb=get,create,update",
            "--resource=leases.coordination.k8s.io",
        ])
        .unwrap();
    cluster.kubectl(&["create", "clusterrolebinding", "lease", "--clusterrole=lease", "--user=viewer"]).unwrap();

    let stranger =
        Engine::start(&cluster.kubeconfig_as("stranger", &[]), &["--rules-from-cluster", "--instance=stranger"]);
    eventually("it may not list", || {
        stranger
            .part("cluster-rules")
            .contains("not allowed to list portalclusterrules.portal.io: grant the verb `list`")
    });
    eventually("it may not watch definitions", || {
        stranger.part("definitions").contains("not allowed to list customresourcedefinitions")
    });
    eventually("it may not read the Lease", || stranger.part("lease").contains("leases"));
    assert_eq!(stranger.get("/readyz").unwrap().0, 503);

    let viewer = Engine::ready(&cluster.kubeconfig_as("viewer", &[]), &["--rules-from-cluster", "--instance=viewer"]);
    for number in 0..RULES {
        apply(&cluster, &rule(&format!("privileged-{number}"), GOOD));
    }
    eventually("it may not write status", || {
        viewer
            .part("status")
            .contains("not allowed to patch portalclusterrules/status.portal.io: grant the verb `patch`")
    });
    assert_eq!(viewer.get("/readyz").unwrap().0, 200, "rules are in force without a status");
    eventually("all are in force", || viewer.metric(r#"portal_rules{state="active"}"#) == RULES);
    // One of them tries for all, with pauses that grow.
    let failed = || viewer.metric(r#"portal_status_writes_total{result="failed"}"#);
    let before = failed();
    std::thread::sleep(Duration::from_secs(10));
    assert!((1..=6).contains(&(failed() - before)), "{before}, then {}", failed());
    cluster
        .kubectl(&["create", "clusterrole", "status", "--verb=patch", "--resource=portalclusterrules.portal.io/status"])
        .unwrap();
    cluster.kubectl(&["create", "clusterrolebinding", "status", "--clusterrole=status", "--user=viewer"]).unwrap();
    let deadline = Instant::now() + Duration::from_secs(90);
    while viewer.metric(r#"portal_status_writes_total{result="written"}"#) < RULES {
        assert!(Instant::now() < deadline, "{}", viewer.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eventually("all is well", || viewer.part("status").starts_with("[+]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_goes_away_is_told_and_waited_for() {
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, 3).await.unwrap();
    let client = proxy.client("engine", "engine", &["system:masters"]).unwrap();
    let engine = Engine::ready(client.kubeconfig(), &["--rules-from-cluster"]);
    apply(&cluster, &rule("before", GOOD));
    wait_for(&cluster, "before", "True");
    let away = proxy.inject(Fault::Refuse.on(Requests::all()));
    eventually("it says so", || engine.part("cluster-rules").starts_with("[!]"));
    eventually("it says so", || engine.part("lease").starts_with("[!]lease could not update the Lease"));
    apply(&cluster, &rule("meanwhile", GOOD));
    assert_eq!(engine.get("/readyz").unwrap().0, 200, "what it knows is in force");
    assert_eq!(engine.metric(r#"portal_rules{state="active"}"#), 1);
    drop(away);
    wait_for(&cluster, "meanwhile", "True");
    eventually("all is well again", || !engine.get("/readyz?verbose").unwrap().1.contains("[!]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_falls_silent_has_not_recovered() {
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, 7).await.unwrap();
    let client = proxy.client("engine", "engine", &["system:masters"]).unwrap();
    let engine = Engine::ready(client.kubeconfig(), &["--rules-from-cluster"]);
    let away = proxy.inject(Fault::Refuse.on(Requests::all()));
    eventually("it says so", || engine.part("cluster-rules").starts_with("[!]"));
    // The next tries fail no more: they wait.
    let silent = proxy.inject(Fault::Silence.on(Requests::all()));
    drop(away);
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert!(engine.part("cluster-rules").starts_with("[!]"), "{}", engine.log());
    drop(silent);
    eventually("all is well again", || !engine.get("/readyz?verbose").unwrap().1.contains("[!]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_again_and_again_is_not_asked_in_a_row() {
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, 6).await.unwrap();
    let client = proxy.client("engine", "engine", &["system:masters"]).unwrap();
    let watches = Requests::of("portalclusterrules").verbs(&[Verb::Watch]);
    let expired = proxy.inject(Fault::Answer(Answer::EXPIRED).on(watches));
    let engine = Engine::ready(client.kubeconfig(), &["--rules-from-cluster"]);
    expired.hit(3).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Pauses double from 200 ms on.
    let asked = engine.metric(r#"portal_watch_errors_total{watch="cluster-rules"}"#);
    assert!(asked < 20, "{asked}");
    drop(expired);
    apply(&cluster, &rule("privileged", GOOD));
    wait_for(&cluster, "privileged", "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, 4).await.unwrap();
    let client = proxy.client("engine", "engine", &["system:masters"]).unwrap();
    let never = Duration::from_secs(3600);
    // One list, and one watch that begins and falls silent: as when a machine on the way forgot the connection.
    let lists = Requests::of("portalclusterrules").verbs(&[Verb::List]);
    let watches = Requests::of("portalrules").verbs(&[Verb::Watch]);
    let list = proxy.inject(Fault::Delay(never).on(lists).next(1));
    let watch = proxy.inject(Fault::DelayEvent(never).on(watches).next(1));
    let engine = Engine::start(client.kubeconfig(), &["--rules-from-cluster"]);
    list.hit(1).await;
    eventually("the watch is ready", || engine.part("rules").starts_with("[+]"));
    let mut namespaced = rule("silent", GOOD);
    namespaced["kind"] = "PortalRule".into();
    namespaced["metadata"]["namespace"] = "default".into();
    apply(&cluster, &namespaced);
    apply(&cluster, &rule("unlisted", GOOD));
    watch.hit(1).await;
    let deadline = Instant::now() + Duration::from_secs(150);
    while engine.metric(r#"portal_rules{state="active"}"#) < 2 {
        assert!(Instant::now() < deadline, "{}", engine.log());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    eventually("all is well again", || !engine.get("/readyz?verbose").unwrap().1.contains("[!]"));
    wait_for(&cluster, "unlisted", "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discovery_that_hangs_does_not_keep_an_engine() {
    let cluster = cluster();
    let proxy = FaultProxy::start(&cluster, 5).await.unwrap();
    let client = proxy.client("engine", "engine", &["system:masters"]).unwrap();
    // What is about no resource is discovery, after the first request.
    let discovery = Requests::of("").verbs(&[Verb::Get]);
    let hangs = proxy.inject(Fault::Delay(Duration::from_secs(3600)).on(discovery).after(1));
    let engine = Engine::start(client.kubeconfig(), &["--rules-from-cluster"]);
    hangs.hit(1).await;
    let (status, log) = engine.stop();
    assert!(status.success(), "{log}");
}

#[tokio::test]
async fn a_request_that_never_becomes_whole_does_not_keep_an_engine() {
    let cluster = cluster();
    let engine = Engine::ready(&cluster.kubeconfig(), &["--rules-from-cluster"]);
    let mut stream = TcpStream::connect(engine.address()).unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: ").unwrap();
    let (status, log) = engine.stop();
    assert!(status.success(), "{log}");
}

#[tokio::test]
async fn a_rules_folder_that_is_a_file_is_told() {
    let cluster = cluster();
    let file = tempfile::NamedTempFile::new().unwrap();
    let engine = Engine::start(&cluster.kubeconfig(), &["--rules-folder", file.path().to_str().unwrap()]);
    eventually("it says so", || engine.part("folder").ends_with("is a file: give the folder that it is in"));
    assert_eq!(engine.get("/readyz").unwrap().0, 503);
}

#[tokio::test]
async fn what_is_logged_follows_the_file_of_settings() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("engine.yaml");
    std::fs::write(&config, "rulesFromCluster: true\nlog: error\n").unwrap();
    let engine = Engine::ready(&cluster.kubeconfig(), &["--config", config.to_str().unwrap()]);
    assert_eq!(engine.log(), "", "nothing is wrong");
    std::fs::write(&config, "rulesFromCluster: true\nlog: portal_engine::run=info,portal=info\n").unwrap();
    eventually("the level has changed", || engine.log().contains("What is logged has changed"));
    apply(&cluster, &rule("privileged", GOOD));
    eventually("the set is told", || engine.log().contains("Another set of rules is in force"));
    std::fs::write(&config, "rulesFromCluster: true\n").unwrap();
    eventually("the usual levels are back", || engine.log().matches("What is logged has changed").count() == 2);
    for line in engine.log().lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn what_a_flag_or_the_environment_says_is_logged_whatever_the_file_says() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("engine.yaml");
    std::fs::write(&config, "rulesFromCluster: true\nlog: error\n").unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let by_flag = Engine::ready(&cluster.kubeconfig(), &[&flags[..], &["--log=portal=info"]].concat());
    let kubeconfig = cluster.kubeconfig();
    let by_environment = Engine::start_with(&[("PORTAL_LOG", "portal=info")], &kubeconfig, &flags);
    eventually("the engine is ready", || by_environment.get("/readyz").is_some_and(|(code, _)| code == 200));
    let by_file = Engine::ready(&kubeconfig, &flags);
    std::fs::write(&config, "rulesFromCluster: true\nlog: portal=debug\n").unwrap();
    eventually("who has nothing else follows the file", || by_file.log().contains("What is logged has changed"));
    // The others look as often.
    std::thread::sleep(Duration::from_secs(4));
    for engine in [by_flag, by_environment] {
        assert!(!engine.log().contains("What is logged has changed"), "{}", engine.log());
    }
}

//! What is asked of the API server for a rule, how much of it, and what its answers mean.

use std::collections::BTreeSet;

use portal_cluster::metrics::Registry;
use portal_core::kinds::Kinds;
use serde_json::json;

use super::*;
use crate::testing::api::ApiServer;

fn query(kind: (&str, &str), namespace: Option<&str>, filter: Filter) -> Query {
    let kind = Arc::clone(Kinds::builtin().get(kind.0, kind.1).unwrap());
    Query { kind, namespace: namespace.map(str::to_owned), filter, consistent: true }
}

fn named(name: &str) -> Filter {
    Filter::Name(name.to_owned())
}

fn labelled(requirements: &[(&str, Test)]) -> Filter {
    let requirements =
        requirements.iter().map(|(key, test)| Requirement { key: (*key).to_owned(), test: test.clone() });
    Filter::Labels(Selector::new(requirements))
}

fn one_of(values: &[&str]) -> Test {
    Test::In(values.iter().map(ToString::to_string).collect::<BTreeSet<_>>())
}

fn fresh(api: &ApiServer) -> Fresh {
    Fresh::new(api.client(), EngineMetrics::register(&Registry::new()))
}

/// What comes of a query, and the paths that were asked for.
async fn read(api: &ApiServer, query: Query) -> (Result<Vec<String>, String>, Vec<String>) {
    let deadline = Instant::now() + Duration::from_secs(3);
    let mut answers = fresh(api).read([query], deadline).await;
    let found = answers.pop().unwrap().1;
    (found.map(|found| found.iter().map(|object| object.root().to_json()).collect()), api.asked())
}

#[tokio::test]
async fn an_object_is_asked_for_by_its_name() {
    let api = ApiServer::saying(200, r#"{"metadata":{"name":"web","namespace":"shop","managedFields":[{}]}}"#);
    let (found, asked) = read(&api, query(("apps", "Deployment"), Some("shop"), named("web"))).await;
    let object = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}"#;
    assert_eq!(found, Ok(vec![object.to_owned()]));
    assert_eq!(asked, ["/apis/apps/v1/namespaces/shop/deployments/web"]);
}

#[tokio::test]
async fn what_nothing_can_be_called_is_not_asked_for() {
    let api = ApiServer::saying(200, "{}");
    for name in ["", ".", "..", "../secrets/s", "a/b", "a%2fb", &"a".repeat(254)] {
        assert_eq!(read(&api, query(("", "ConfigMap"), Some("shop"), named(name))).await, (Ok(Vec::new()), Vec::new()));
    }
    for namespace in ["", "..", "Shop", "shop/x", "shop?a=b"] {
        let asked = read(&api, query(("", "ConfigMap"), Some(namespace), named("a"))).await;
        assert_eq!(asked, (Ok(Vec::new()), Vec::new()));
    }
    let (_, asked) = read(&api, query(("", "ConfigMap"), Some("shop"), named("system:a?b#c d"))).await;
    assert_eq!(asked, ["/api/v1/namespaces/shop/configmaps/system%3Aa%3Fb%23c%20d"]);
}

#[tokio::test]
async fn only_the_api_servers_word_that_an_object_is_not_there_is_believed() {
    let status = |code: u16, name: &str| {
        let details = json!({"name": name, "kind": "configmaps"});
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no", "details": details})
            .to_string()
    };
    let of = |code, body: String| async move {
        let api = ApiServer::saying(code, &body);
        read(&api, query(("", "ConfigMap"), Some("shop"), named("a"))).await.0
    };
    assert_eq!(of(404, status(404, "a")).await, Ok(Vec::new()));
    // The kind is gone, or somebody else answers.
    for (code, body) in
        [(404, status(404, "")), (404, "page not found".to_owned()), (403, status(403, "a")), (500, String::new())]
    {
        assert!(of(code, body.clone()).await.is_err(), "{code} {body}");
    }
    assert!(of(200, "no JSON".to_owned()).await.is_err());
    let refused = of(403, status(403, "a")).await.unwrap_err();
    assert_eq!(refused, "not allowed to get configmaps: grant the verb `get` to this ServiceAccount");
}

#[tokio::test]
async fn what_the_api_server_cannot_be_asked_of_labels_is_compared_here() {
    let item = |name: &str, value: &str| json!({"metadata": {"name": name, "labels": {"app": value}}});
    let list = json!({"metadata": {}, "items": [item("a", "x"), item("b", "y,tier=z")]}).to_string();
    let api = ApiServer::saying(200, &list);
    // A value that would be another selector.
    let filter = labelled(&[("app", one_of(&["y,tier=z"])), ("b", Test::DoesNotExist)]);
    let (found, asked) = read(&api, query(("", "ConfigMap"), None, filter)).await;
    assert_eq!(found.unwrap().len(), 1);
    assert_eq!(asked, ["/api/v1/configmaps?limit=500&labelSelector=%21b&continue="]);
    let api = ApiServer::saying(200, &list);
    let filter = labelled(&[
        ("app", one_of(&["x", "w"])),
        ("tier", Test::NotIn(["q".to_owned()].into())),
        ("a/b", Test::Exists),
    ]);
    let (_, asked) = read(&api, query(("", "ConfigMap"), Some("shop"), filter)).await;
    let selector = "a%2Fb%2Capp%20in%20%28w%2Cx%29%2Ctier%20notin%20%28q%29";
    assert_eq!(asked, [format!("/api/v1/namespaces/shop/configmaps?limit=500&labelSelector={selector}&continue=")]);
}

#[tokio::test]
async fn a_list_is_read_to_its_end_up_to_a_bound() {
    let page =
        |next: &str| json!({"metadata": {"continue": next}, "items": [{"metadata": {"name": next}}]}).to_string();
    let (first, last) = (page("more"), page(""));
    let api = ApiServer::new(move |path| (200, if path.ends_with("continue=") { first.clone() } else { last.clone() }));
    let (found, asked) = read(&api, query(("", "ConfigMap"), None, labelled(&[]))).await;
    assert_eq!((found.unwrap().len(), asked.len()), (2, 2));
    let api = ApiServer::saying(200, &page("more"));
    let (found, asked) = read(&api, query(("", "ConfigMap"), None, labelled(&[]))).await;
    assert_eq!(asked.len(), PAGES);
    assert!(found.unwrap_err().contains("more than 10000 configmaps"));
    let large = format!(r#"{{"items":[{{"data":{{"a":"{}"}}}}]}}"#, "x".repeat(MAX_ANSWER));
    let (found, _) = read(&ApiServer::saying(200, &large), query(("", "ConfigMap"), None, labelled(&[]))).await;
    assert!(found.is_err());
}

#[tokio::test(start_paused = true)]
async fn reads_are_bounded_in_number_and_in_time() {
    let api = ApiServer::saying(404, "").silent();
    let reader = fresh(&api);
    let query = |number: usize| query(("", "ConfigMap"), Some("shop"), named(&format!("a{number}")));
    let (begin, deadline) = (Instant::now(), Instant::now() + Duration::from_secs(3));
    let answers = reader.read((0..100).map(query), deadline).await;
    assert!(answers.len() == 100 && begin.elapsed() <= Duration::from_secs(3));
    assert_eq!(api.most_at_once(), READS);
    assert!(answers.iter().all(|(_, answer)| answer.as_ref().is_err_and(|reason| reason.contains("in time"))));
    // After a burst, what cannot begin before the deadline is refused at once.
    let rate = |count: u32| {
        let mut rate = Rate { next: Instant::now() };
        let now = Instant::now() + Duration::from_secs(60);
        (0..count).map(|_| rate.begin(now)).filter(|begin| *begin > now).count()
    };
    assert_eq!((rate(BURST), rate(BURST + PER_SECOND)), (0, PER_SECOND as usize));
}

#[tokio::test]
async fn a_secret_has_no_values_and_a_namespace_has_its_name() {
    let api = ApiServer::saying(200, r#"{"items":[{"metadata":{"name":"s"},"data":{"a":"aHVudGVyMg=="}}]}"#);
    let (found, _) = read(&api, query(("", "Secret"), None, labelled(&[]))).await;
    assert!(found.unwrap()[0].contains(r#""data":{"a":"***"}"#));
    let api = ApiServer::saying(200, r#"{"metadata":{"name":"shop"}}"#);
    let (found, _) = read(&api, query(("", "Namespace"), None, named("shop"))).await;
    assert!(found.unwrap()[0].contains(r#""kubernetes.io/metadata.name":"shop""#));
}

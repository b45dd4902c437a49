//! Reads that are answered with what was stored earlier.
//!
//! The API server itself is asked for the old state, by `resourceVersionMatch=Exact`: the answer is a true state of the
//! past with its own resourceVersion, and a watch that starts there brings everything since. A read of one object is
//! made from a list of that object, because Kubernetes gives only lists of the past.

use http::{Request, Response, Uri};
use kube::client::Body;
use serde_json::{Value, json};

use super::request::{Subject, Verb, parameter};
use super::serve::{Outgoing, json_response, send};
use super::shared::Shared;

/// The answer as of this revision. Nothing, if the read asks for something newer or for one certain version, or if the API
/// server does not have the past any more.
pub(super) async fn read(
    shared: &Shared,
    subject: &Subject,
    outgoing: &Outgoing,
    revision: u64,
) -> Option<Response<Body>> {
    let query = outgoing.parts.uri.query().unwrap_or_default();
    let is_pinned = parameter(query, "continue").is_some() || parameter(query, "resourceVersionMatch") == Some("Exact");
    if is_pinned || subject.resource_version > Some(revision) || subject.object.resource.is_empty() {
        return None;
    }
    match subject.verb {
        Verb::List => list(shared, outgoing, revision).await,
        Verb::Get if subject.object.subresource.is_empty() => get(shared, subject, outgoing, revision).await,
        _ => None,
    }
}

async fn list(shared: &Shared, outgoing: &Outgoing, revision: u64) -> Option<Response<Body>> {
    let uri = &outgoing.parts.uri;
    let mut pairs: Vec<&str> = uri.query().unwrap_or_default().split('&').collect();
    // Both parameters of the version.
    pairs.retain(|pair| !pair.is_empty() && !pair.starts_with("resourceVersion"));
    let exact = exact(revision);
    pairs.push(&exact);
    let uri = format!("{}?{}", uri.path(), pairs.join("&")).parse().ok()?;
    let response = send(shared, outgoing.to(uri)).await.ok()?;
    response.status().is_success().then_some(response)
}

async fn get(shared: &Shared, subject: &Subject, outgoing: &Outgoing, revision: u64) -> Option<Response<Body>> {
    let accept = outgoing.parts.headers.get(http::header::ACCEPT).map_or(&b""[..], |accept| accept.as_bytes());
    // A table or metadata alone cannot be made from the object.
    if accept.windows(3).any(|window| window == b"as=") {
        return None;
    }
    // The client may have the right to get and not to list, so its own request decides whether it gets an answer.
    let response = send(shared, outgoing.clone()).await.ok()?;
    if !matches!(response.status().as_u16(), 200 | 404) {
        return Some(response);
    }
    let name = &subject.object.name;
    let collection = outgoing.parts.uri.path().strip_suffix(name.as_str())?;
    let uri: Uri = format!("{collection}?fieldSelector=metadata.name%3D{name}&{}", exact(revision)).parse().ok()?;
    let request = Request::get(uri).body(Vec::new()).ok()?;
    let mut list: Value = shared.admin.request(request).await.ok()?;
    let kind = list["kind"].as_str()?.strip_suffix("List")?.to_owned();
    let api_version = list["apiVersion"].take();
    Some(match list["items"].get_mut(0).map(Value::take) {
        Some(mut object) => {
            object["kind"] = json!(kind);
            object["apiVersion"] = api_version;
            json_response(200, object)
        }
        None => {
            let (resource, group) = (&subject.object.resource, &subject.object.api_group);
            let message = format!("{resource} {name:?} not found");
            json_response(
                404,
                json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                    "reason": "NotFound", "details": {"name": name, "group": group, "kind": resource}, "code": 404,
                }),
            )
        }
    })
}

fn exact(revision: u64) -> String {
    format!("resourceVersion={revision}&resourceVersionMatch=Exact")
}

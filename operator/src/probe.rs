//! Asks the API server whether it reaches the engine: a Lease is created without being stored, the API server sends it to the probe's entry,
//! and the engine brings back a number that nobody else could know.

use std::time::Duration;

use http::{HeaderMap, Request};
use kube::{Client, client::Body};
use portal_cluster::watch::{chain, explain};
use portal_core::webhook::{NONCE_ANNOTATION, PROBE_LABEL, probe_answer};
use serde_json::json;

/// How long an answer may take: longer than the API server waits for the engine, so that it tells what is wrong there.
const TIMEOUT: Duration = Duration::from_secs(35);

/// The version that an engine says it is, or what was in the way of its answer, for people.
pub type Answer = Result<String, String>;

/// The longest version that is believed to be one.
const MAX_VERSION: usize = 63;

/// Asks once.
pub async fn ask(client: &Client, namespace: &str, instance: &str) -> Answer {
    let nonce = format!("{:016x}", fastrand::u64(..));
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": format!("portal-probe-{instance}"),
            "namespace": namespace,
            "labels": { PROBE_LABEL: instance },
            "annotations": { NONCE_ANNOTATION: nonce },
        },
    });
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?dryRun=All");
    let request =
        Request::post(path).header("content-type", "application/json").body(Body::from(lease.to_string().into_bytes()));
    let request = request.map_err(|error| error.to_string())?;
    let response = match tokio::time::timeout(TIMEOUT, client.send(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(explain("create", "a Lease without storing it", &error)),
        Err(_) => return Err(format!("the API server did not answer within {TIMEOUT:?}")),
    };
    let (status, warnings) = (response.status(), warnings(response.headers()));
    let body = response.into_body().collect_bytes().await.map_err(|error| chain(&error))?;
    if !status.is_success() {
        let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        return Err(said["message"].as_str().map_or_else(|| status.to_string(), str::to_owned));
    }
    let expected = probe_answer(instance, &nonce);
    match warnings.iter().find_map(|warning| version(warning.split_once(&expected)?.1)) {
        Some(version) => Ok(version),
        None if warnings.is_empty() => {
            Err("the API server got no answer from the engine, and told nothing about it".to_owned())
        }
        None => Err(warnings.join("; ")),
    }
}

/// The version at the beginning of a text: what the engine says goes into a status.
fn version(text: &str) -> Option<String> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    let end = text.bytes().position(|byte| !is_inner(byte)).unwrap_or(text.len());
    (1..=MAX_VERSION).contains(&end).then(|| text[..end].to_owned())
}

/// What the API server warns of.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let found = headers.get_all("warning").iter().filter_map(|value| value.to_str().ok());
    // 299 - "the text"
    found.map(|value| value.splitn(3, ' ').last().unwrap_or_default().trim_matches('"').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_short_and_plain() {
        assert_eq!(version("0.1.0-rc.1+build\" more").as_deref(), Some("0.1.0-rc.1+build"));
        for text in ["", " 0.1.0", &"1".repeat(MAX_VERSION + 1)] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}

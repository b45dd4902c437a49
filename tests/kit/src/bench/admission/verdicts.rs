//! The webhook and the policy in CEL must find the same before any time is taken: the same rules violated, of each of some hundred pods
//! that the API server takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, bail};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::creates::{COMPARED, NOTHING, WEBHOOK};
use super::stage::Stage;

/// The names of rules.
type Violated = BTreeSet<String>;

/// How many pods have to be compared, at least.
const ENOUGH: usize = 500;

/// Fails if the two differ about a pod, or if a rule was never violated.
pub(super) fn compare(stage: &Stage) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pods: Vec<Value> = serde_json::from_slice(&fs::read(stage.path("samples.json"))?)?;
    let (mut compared, mut seen) = (0, BTreeMap::<String, usize>::new());
    runtime.block_on(async {
        let client = stage.cluster.client().await;
        for pod in &pods {
            // What the API server itself does not take is judged by neither.
            if create(&client, NOTHING, pod).await?.status() != StatusCode::CREATED {
                continue;
            }
            let ours = refusals(create(&client, WEBHOOK, pod).await?).await?;
            let theirs = warnings(&create(&client, COMPARED, pod).await?);
            if ours != theirs {
                bail!("the engine finds {ours:?}, the policy {theirs:?}: {pod}");
            }
            compared += 1;
            for rule in ours {
                *seen.entry(rule).or_default() += 1;
            }
        }
        anyhow::Ok(())
    })?;
    if stage.details {
        eprintln!("{compared} of {} pods are judged alike, which violate {seen:?}", pods.len());
    }
    let rules = fs::read_dir(Stage::rules())?.count();
    if compared < ENOUGH || seen.len() < rules {
        bail!("{compared} pods were judged, which violate {} of {rules} rules", seen.len());
    }
    Ok(())
}

async fn create(client: &Client, namespace: &str, pod: &Value) -> anyhow::Result<Response<Body>> {
    let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"))
        .header("content-type", "application/json")
        .body(Body::from(pod.to_string().into_bytes()))?;
    Ok(client.send(request).await?)
}

/// The rules by which the webhook refuses.
async fn refusals(response: Response<Body>) -> anyhow::Result<Violated> {
    if response.status() == StatusCode::CREATED {
        return Ok(Violated::new());
    }
    let status: Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    let causes = status["details"]["causes"].as_array().with_context(|| format!("no rule has refused: {status}"))?;
    let name = |cause: &Value| cause["message"].as_str().and_then(|text| text.split(':').next()).map(str::to_owned);
    causes.iter().map(name).collect::<Option<_>>().context("a cause begins with its rule")
}

/// The checks of which the policy warns.
fn warnings(response: &Response<Body>) -> Violated {
    let warnings = response.headers().get_all("warning").iter().filter_map(|warning| warning.to_str().ok());
    let policy = warnings.filter(|warning| warning.contains("ValidatingAdmissionPolicy"));
    policy.filter_map(|warning| warning.trim_end_matches('"').rsplit(' ').next()).map(str::to_owned).collect()
}

//! Writes what webhooks and API servers are sent into a folder: `reviews FOLDER`.
//!
//! - `review.json`: the AdmissionReview of a pod that the strictest rules of the library let in, and `pod.json`, the pod.
//! - `hostile/`: AdmissionReviews that somebody made to hurt.
//! - `samples.json`: pods that violate some of those rules, or none.

#[path = "../../../chance.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod chance;
#[path = "../../../conformance/pod_security/pods.rs"]
#[allow(clippy::unwrap_used, reason = "it is a part of a test")]
mod pods;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use portal_bench::reviews::{created_pod, hostile, review};
use portal_document::{Options, from_yaml};
use serde_json::{Value, json};

use chance::Random;
use pods::Pods;

/// How many pods are made up.
const MADE: usize = 1500;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: reviews FOLDER")?);
    fs::create_dir_all(folder.join("hostile"))?;
    fs::write(folder.join("review.json"), review().to_string())?;
    fs::write(folder.join("pod.json"), created_pod().to_string())?;
    for hostile in hostile() {
        fs::write(folder.join("hostile").join(format!("{}.json", hostile.name)), hostile.body)?;
    }
    let (generator, mut random) = (Pods::new(), Random::new(0));
    let mut samples = cases()?;
    samples.extend(rare());
    samples.extend((0..MADE).map(|_| generator.pod(&mut random)));
    samples.iter_mut().for_each(fit);
    fs::write(folder.join("samples.json"), Value::from(samples).to_string())?;
    Ok(())
}

/// The pods of the library's cases.
fn cases() -> Result<Vec<Value>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/library/pod-security/cases");
    let mut pods = Vec::new();
    for level in ["baseline", "restricted"] {
        for control in fs::read_dir(folder.join(level))? {
            let control = control?.path();
            for file in ["pass.yaml", "fail.yaml"] {
                for object in from_yaml(&fs::read_to_string(control.join(file))?, &Options::default())? {
                    let object: Value = serde_json::from_str(&object.document.to_json())?;
                    pods.extend((object["kind"] == "Pod").then_some(object));
                }
            }
        }
    }
    Ok(pods)
}

/// Pods that violate what hardly any other one does that the API server takes.
fn rare() -> [Value; 2] {
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec});
    let privileged = json!({"privileged": true});
    let on_windows = json!({"windowsOptions": {"hostProcess": true}});
    [
        pod(json!({"containers": [{"name": "app", "image": "app:1", "securityContext": privileged}]})),
        pod(json!({
            "os": {"name": "windows"}, "hostNetwork": true, "securityContext": on_windows,
            "containers": [{"name": "app", "image": "app:1"}],
        })),
    ]
}

/// Makes a pod one that can be created: with a name, with names of containers in lower case, and with no container that is added later.
fn fit(pod: &mut Value) {
    pod["metadata"]["name"] = json!("sample");
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    spec.remove("ephemeralContainers");
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container["name"] = json!(container["name"].as_str().unwrap_or_default().to_lowercase());
        }
    }
}

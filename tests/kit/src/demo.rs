//! `make demo`: Portal at work on a cluster, step by step, with every command shown.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portal_test_kit::cache::Cache;
use portal_test_kit::held::Held;
use portal_test_kit::image::{self, PORTAL_IMAGE};
use portal_test_kit::state::State;
use portal_test_kit::{Cluster, Size, prepare};
use serde_json::json;

/// Where the demo runs.
struct Stage {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    /// The image that the cluster's nodes have or can pull.
    image: String,
    /// The demo's own cluster, which lives as long as the demo.
    cluster: Option<Cluster>,
}

pub(crate) fn run(cache: &Cache) -> anyhow::Result<()> {
    let stage = match std::env::var("DEMO_EXISTING").unwrap_or_default().as_str() {
        "" | "0" => own_cluster(cache)?,
        "1" => existing_cluster(cache)?,
        other => bail!("DEMO_EXISTING is {other:?}: set it to 1 to use the cluster of KUBECONFIG, or leave it out"),
    };
    if let Err(error) = stage.show() {
        if let Some(cluster) = &stage.cluster {
            cluster.show_logs();
        }
        return Err(error);
    }
    drop(stage);
    println!(
        "\nThat was the image that users get, on a real Kubernetes. Nothing of it is left running.\n\
         To go on:\n\
         \x20 make cluster SIZE=full    a cluster that stays, for your own hands\n\
         \x20 make test                 every test\n\
         \x20 make help                 everything else; README.md tells what works today"
    );
    Ok(())
}

fn own_cluster(cache: &Cache) -> anyhow::Result<Stage> {
    step("Building the image that users get");
    let archive = prepare::portal_image(cache)?;
    step("Starting a real Kubernetes: etcd, API server, controllers, scheduler and a node");
    let cluster = Cluster::start(Size::Full)?;
    cluster.import_image(&archive)?;
    Ok(Stage {
        kubectl: cluster.programs().join("kubectl"),
        kubeconfig: cluster.kubeconfig(),
        image: PORTAL_IMAGE.to_owned(),
        cluster: Some(cluster),
    })
}

fn existing_cluster(cache: &Cache) -> anyhow::Result<Stage> {
    let kubeconfig = std::env::var_os("KUBECONFIG")
        .map(PathBuf::from)
        .context("DEMO_EXISTING=1 needs KUBECONFIG to name the cluster to use")?;
    if !kubeconfig.exists() {
        bail!("KUBECONFIG is {}, which is not a file: name the one file of the cluster to use", kubeconfig.display());
    }
    let ours = State::alive(cache)?.into_iter().find(|(state, _)| state.kubeconfig("admin") == kubeconfig);
    let image = match (std::env::var("IMAGE"), &ours) {
        (Ok(image), _) if !image.is_empty() => image,
        (_, Some((state, description))) if description.size == Size::Full => {
            step("Building the image that users get, and bringing it to the node");
            image::import(&state.containerd_socket(), &prepare::portal_image(cache)?)?;
            PORTAL_IMAGE.to_owned()
        }
        (_, Some((_, description))) => {
            bail!(
                "the cluster of KUBECONFIG is of size {}, which runs no pods: `make cluster SIZE=full` does",
                description.size
            )
        }
        _ => bail!(
            "the nodes of this cluster cannot get an image from here: push what `make image` builds to a registry that \
             they reach, and name it with IMAGE=…"
        ),
    };
    let kubectl =
        ours.map_or_else(|| PathBuf::from("kubectl"), |(_, description)| description.programs.join("kubectl"));
    Ok(Stage { kubectl, kubeconfig, image, cluster: None })
}

impl Stage {
    fn show(&self) -> anyhow::Result<()> {
        step("What is there");
        self.kubectl(&["get", "nodes"])?;
        step("Running Portal's image as a pod without any rights");
        // A name that nobody else has: on somebody's own cluster nothing of theirs may be touched.
        let namespace = format!("portal-demo-{:x}", std::process::id());
        self.kubectl(&["create", "namespace", &namespace])?;
        let _removed_at_the_end = self.guard(&namespace)?;
        self.apply(&pod(&namespace, &self.image))?;
        let finished = "--for=jsonpath={.status.phase}=Succeeded";
        self.kubectl(&["--namespace", &namespace, "wait", finished, "pod/portal", "--timeout=120s"])?;
        self.kubectl(&["--namespace", &namespace, "get", "pods"])?;
        self.kubectl(&["--namespace", &namespace, "logs", "portal"])
    }

    /// A process that removes the namespace when the demo ends, however it ends.
    fn guard(&self, namespace: &str) -> anyhow::Result<Held> {
        let mut command = self.command("sh");
        command.args(["-c", "cat >/dev/null; exec \"$@\" >/dev/null", "sh"]).arg(&self.kubectl);
        command.args(["delete", "namespace", namespace, "--timeout=60s"]);
        Held::start(&mut command)
    }

    /// Shows a command, runs it, and lets it print.
    fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<()> {
        println!("$ kubectl {}", arguments.join(" "));
        let status =
            self.command(&self.kubectl).args(arguments).status().context("could not run kubectl: is it installed?")?;
        if !status.success() {
            bail!("`kubectl {}` failed", arguments.join(" "));
        }
        Ok(())
    }

    fn apply(&self, object: &serde_json::Value) -> anyhow::Result<()> {
        println!("$ kubectl apply --filename - <<< '{object}'");
        let mut child = self.command(&self.kubectl).args(["apply", "--filename", "-"]).stdin(Stdio::piped()).spawn()?;
        child.stdin.take().expect("it was asked to be piped").write_all(object.to_string().as_bytes())?;
        if !child.wait()?.success() {
            bail!("the demo's pod could not be created");
        }
        Ok(())
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.cluster {
            Some(cluster) => cluster.command(program),
            None => {
                let mut command = Command::new(program);
                command.env("KUBECONFIG", &self.kubeconfig);
                command
            }
        }
    }
}

fn pod(namespace: &str, image: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "portal", "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "portal", "image": image, "imagePullPolicy": "IfNotPresent", "args": ["version"],
                "securityContext": {
                    "runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                },
            }],
        },
    })
}

fn step(text: &str) {
    println!("\n== {text}");
}

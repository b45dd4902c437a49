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
use portal_test_kit::{Cluster, Size, prepare, repository};
use serde_json::{Value, json};

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

        step("Installing Portal's definitions, and an engine that may read rules and write their status");
        // A name that nobody else has: on somebody's own cluster nothing of theirs may be touched.
        let demo = format!("portal-demo-{:x}", std::process::id());
        let had_definitions = self.quietly(&["get", "crd", "portalclusterrules.portal.io"]);
        let definitions = repository().join("crds/yaml");
        self.kubectl(&["create", "namespace", &demo])?;
        let _removed_at_the_end = self.guard(&demo, !had_definitions)?;
        self.kubectl(&["apply", "--server-side", "--filename", &definitions.display().to_string()])?;
        for object in engine(&demo, &self.image) {
            self.apply_silently(&object)?;
        }
        self.kubectl(&["--namespace", &demo, "rollout", "status", "deployment/engine", "--timeout=120s"])?;
        self.kubectl(&["--namespace", &demo, "get", "pods"])?;

        step("A rule: no privileged containers");
        self.apply(&rule(&demo, "Pod", "", "container.securityContext.privileged == true"))?;
        self.wait_for_rule(&demo, "True")?;
        self.kubectl(&["get", "pcr", &demo])?;

        step("Of the two replicas one has written that, and the others know where it is");
        let columns = r"--output=custom-columns=HOLDER:.spec.holderIdentity,ADDRESS:.metadata.annotations.portal\.io/holder-address";
        self.kubectl(&["--namespace", &demo, "get", "lease", "portal-engine-demo", columns])?;

        step("A mistake in it is told at once, with its place");
        self.apply(&rule(&demo, "Pod", "", "container.securityContxt.privileged == true"))?;
        self.wait_for_rule(&demo, "False")?;
        self.kubectl(&["get", "pcr", &demo, "--output", "yaml"])?;

        step("The fix");
        self.apply(&rule(&demo, "Pod", "", "container.securityContext.privileged == true"))?;
        self.wait_for_rule(&demo, "True")?;
        self.kubectl(&["get", "pcr", &demo])?;

        step("A rule for a kind that does not exist yet wakes up when it is installed");
        let widgets = format!("{demo}-widgets");
        self.apply(&rule(&widgets, "Widget", &format!("{demo}.example"), "object.spec.size > 3"))?;
        self.wait_for_rule(&widgets, "False")?;
        self.kubectl(&["get", "pcr", &widgets])?;
        self.apply(&widget_definition(&demo))?;
        self.wait_for_rule(&widgets, "True")?;
        self.kubectl(&["get", "pcr", &widgets])?;

        step("The same rule judges files, without a cluster");
        self.check(&demo)
    }

    /// Waits until the status of a rule is about its newest version, and says this.
    fn wait_for_rule(&self, name: &str, ready: &str) -> anyhow::Result<()> {
        let is_ready = format!("--for=condition=Ready={ready}");
        self.kubectl(&["wait", &is_ready, &format!("pcr/{name}"), "--timeout=60s"])
    }

    /// Runs `portal check` as users do. An exit code of 1 is what it is shown for.
    fn check(&self, demo: &str) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(
            folder.path().join("rule.yaml"),
            format!("{:#}", rule(demo, "Pod", "", "container.securityContext.privileged == true")),
        )?;
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"template": {"spec": {"containers": [
                {"name": "app", "image": "ghcr.io/acme/web:1.4", "securityContext": {"privileged": true}},
            ]}}},
        });
        std::fs::write(folder.path().join("web.yaml"), format!("{deployment:#}"))?;
        let program = prepare::static_program()?;
        println!("$ portal check -r rule.yaml web.yaml");
        let status =
            Command::new(program).args(["check", "-r", "rule.yaml", "web.yaml"]).current_dir(folder.path()).status()?;
        if status.code() != Some(1) {
            bail!("the Deployment violates the rule, but `portal check` ended with {status}");
        }
        Ok(())
    }

    /// Whether a command succeeds. Nothing is shown.
    fn quietly(&self, arguments: &[&str]) -> bool {
        self.command(&self.kubectl).args(arguments).output().is_ok_and(|output| output.status.success())
    }

    /// A process that removes what the demo makes when the demo ends, however it ends. The definitions go too, if the demo
    /// has brought them.
    fn guard(&self, demo: &str, with_definitions: bool) -> anyhow::Result<Held> {
        let mut kinds = vec!["clusterrolebinding", "clusterrole", "crd"];
        if !with_definitions {
            kinds.push("pcr");
        }
        let label = format!("{LABEL}={demo}");
        let script = "cat >/dev/null; for kind in $KINDS; do \"$@\" delete \"$kind\" --selector \"$LABEL\" --timeout=60s; done >/dev/null 2>&1; \
                      [ -z \"$CRDS\" ] || \"$@\" delete crd $CRDS --timeout=60s >/dev/null; \
                      exec \"$@\" delete namespace \"$NAMESPACE\" --timeout=60s >/dev/null";
        let definitions = "portalclusterrules.portal.io portalrules.portal.io";
        let mut command = self.command("sh");
        command.args(["-c", script, "sh"]).arg(&self.kubectl);
        command.env("KINDS", kinds.join(" ")).env("LABEL", label).env("NAMESPACE", demo);
        command.env("CRDS", if with_definitions { definitions } else { "" });
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

    fn apply(&self, object: &Value) -> anyhow::Result<()> {
        println!("$ kubectl apply --filename - <<< '{object}'");
        self.apply_silently(object)
    }

    fn apply_silently(&self, object: &Value) -> anyhow::Result<()> {
        let mut child = self.command(&self.kubectl).args(["apply", "--filename", "-"]).stdin(Stdio::piped()).spawn()?;
        child.stdin.take().expect("it was asked to be piped").write_all(object.to_string().as_bytes())?;
        if !child.wait()?.success() {
            bail!("an object of the demo could not be created");
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

/// The label of everything that is in no namespace.
const LABEL: &str = "portal-demo";

/// A rule, named after the demo.
fn rule(name: &str, kind: &str, group: &str, expression: &str) -> Value {
    let demo = name.trim_end_matches("-widgets");
    json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
        "metadata": {"name": name, "labels": {LABEL: demo}},
        "spec": {"match": {"gvk": [{"group": group, "kind": kind}]}, "rule": expression},
    })
}

fn widget_definition(demo: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{demo}.example"), "labels": {LABEL: demo}},
        "spec": {
            "group": format!("{demo}.example"), "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// An engine with the rights that it needs and no others.
fn engine(demo: &str, image: &str) -> Vec<Value> {
    let watch = ["get", "list", "watch"];
    let role = |kind: &str, metadata: Value, rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules});
    let binding = |kind: &str, role: &str, metadata: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": demo},
            "subjects": [{"kind": "ServiceAccount", "name": "engine", "namespace": demo}],
        })
    };
    let anywhere = || json!({"name": demo, "labels": {LABEL: demo}});
    let here = |name: &str| json!({"name": name, "namespace": demo});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here("engine")}),
        role(
            "ClusterRole",
            anywhere(),
            json!([
                {"apiGroups": ["portal.io"], "resources": ["portalclusterrules", "portalrules"], "verbs": watch},
                {"apiGroups": ["portal.io"], "resources": ["portalclusterrules/status", "portalrules/status"], "verbs": ["patch"]},
                {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": watch},
                {"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "verbs": watch},
            ]),
        ),
        binding("ClusterRoleBinding", "ClusterRole", anywhere()),
        role(
            "Role",
            here(demo),
            json!([
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
            ]),
        ),
        binding("RoleBinding", "Role", here(demo)),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": here("engine"),
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "engine"}},
                "template": {
                    "metadata": {"labels": {"app": "engine"}},
                    "spec": {
                        "serviceAccountName": "engine",
                        "containers": [{
                            "name": "engine", "image": image, "imagePullPolicy": "IfNotPresent",
                            "args": ["engine", "--rules-from-cluster", "--instance=demo", &format!("--namespace={demo}"),
                                     &format!("--rule-selector={LABEL}={demo}")],
                            "env": [{"name": "PORTAL_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
                            "securityContext": {
                                "runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                            },
                        }],
                    },
                },
            },
        }),
    ]
}

fn step(text: &str) {
    println!("\n== {text}");
}

//! `make demo`: Portal at work on a cluster, step by step, with every command shown.

mod engine;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portal_test_kit::cache::Cache;
use portal_test_kit::certificates::Authority;
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

        step("Installing Portal's definitions, and an engine that may do what every engine must and nothing else");
        // A name that nobody else has: on somebody's own cluster nothing of theirs may be touched.
        let instance = format!("demo-{:x}", std::process::id());
        let demo = format!("portal-{instance}");
        let had_definitions = self.quietly(&["get", "crd", "portalclusterrules.portal.io"]);
        let definitions = repository().join("crds/yaml");
        self.kubectl(&["create", "namespace", &demo])?;
        let _removed_at_the_end = self.guard(&instance, &demo, !had_definitions)?;
        self.kubectl(&["apply", "--server-side", "--filename", &definitions.display().to_string()])?;
        let authority = Authority::new("portal-demo")?;
        let names = [format!("{demo}.{demo}.svc")];
        let pair = authority.server("portal-demo", &names.each_ref().map(String::as_str))?;
        let roles = ["generate", "roles", "--instance", &instance, "--namespace", &demo, "--account=engine"];
        self.apply_text(&self.portal(&roles)?)?;
        for object in engine::objects(&instance, &demo, &self.image, &authority.pair(), &pair) {
            self.apply_silently(&object)?;
        }
        self.kubectl(&["--namespace", &demo, "rollout", "status", "deployment/engine", "--timeout=120s"])?;
        self.kubectl(&["--namespace", &demo, "get", "pods"])?;

        step("Two rules: no privileged containers, and a warning for images without a version");
        let rules = [
            no_privileged(&demo, "securityContext"),
            rule(&format!("{demo}-latest"), "Pod", "", "warn", "container.image.tag == 'latest'"),
        ];
        for rule in &rules {
            self.apply(rule)?;
        }

        step("What the API server sends to the engine is made from the rules, for one namespace of this demo alone");
        let shop = format!("{demo}-shop");
        self.apply_silently(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shop, "labels": {LABEL: demo}}}),
        )?;
        self.configure(&instance, &demo, &authority.pair().certificate, &rules, &[])?;
        for rule in &rules {
            self.wait_for_rule(rule["metadata"]["name"].as_str().unwrap_or_default(), "True")?;
        }
        self.kubectl(&["get", "pcr", "--selector", &format!("{LABEL}={demo}")])?;

        step("A privileged pod is refused, with the rule, its message and what it saw");
        let create = ["--namespace", &shop, "create", "--filename", "-"];
        self.refused(&create, &pod("bad", "acme.example/web:1.4", true))?;

        step("A good pod is let in, and one without a version is let in with a warning");
        self.feed(&create, &pod("good", "acme.example/web:1.4", false))?;
        self.feed(&create, &pod("latest", "acme.example/web", false))?;
        self.kubectl(&["--namespace", &shop, "get", "pods"])?;

        step("Whoever makes pods is told at once, not in an event of a ReplicaSet");
        self.refused(&create, &deployment(&shop))?;

        step("A mistake in a rule is answered when it is written, with its place");
        self.apply(&no_privileged(&demo, "securityContxt"))?;
        self.wait_for_rule(&demo, "False")?;
        self.kubectl(&["get", "pcr", &demo])?;

        step("The fix");
        self.apply(&rules[0])?;
        self.wait_for_rule(&demo, "True")?;

        step("Of the two replicas one writes what has become of rules, and has asked the other");
        let columns = r"--output=custom-columns=HOLDER:.spec.holderIdentity,ADDRESS:.metadata.annotations.portal\.io/holder-address";
        self.kubectl(&["--namespace", &demo, "get", "lease", &format!("portal-engine-{instance}"), columns])?;
        let counts = "--output=custom-columns=RULE:.metadata.name,EVALUATIONS:.status.instances[0].evalCount,ACTIVE ON:.status.instances[0].activeOn";
        self.kubectl(&["get", "pcr", &demo, counts])?;

        step("What the engines have counted");
        self.metrics(&demo)?;

        step("A rule for a kind that does not exist yet wakes up when it is installed");
        let widgets = format!("{demo}-widgets");
        let group = format!("{demo}.example");
        self.apply(&rule(&widgets, "Widget", &group, "deny", "object.spec.size > 3"))?;
        self.wait_for_rule(&widgets, "False")?;
        self.kubectl(&["get", "pcr", &widgets])?;
        self.apply(&widget_definition(&demo))?;
        step("It is in force, and what it judges is sent to it from the next configuration on");
        let rules = [&rules[..], &[rule(&widgets, "Widget", &group, "deny", "object.spec.size > 3")]].concat();
        self.configure(&instance, &demo, &authority.pair().certificate, &rules, &[widget_definition(&demo)])?;
        self.wait_for_rule(&widgets, "True")?;
        self.kubectl(&["get", "pcr", &widgets])?;

        step("The same rule judges files, without a cluster");
        self.check(&demo)
    }

    /// Applies the webhook configuration that these rules need.
    fn configure(
        &self,
        instance: &str,
        demo: &str,
        authority: &str,
        rules: &[Value],
        definitions: &[Value],
    ) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("ca.crt"), authority)?;
        for (name, objects) in [("rules.yaml", rules), ("definitions.yaml", definitions)] {
            let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
            std::fs::write(path(name), text.join("\n---\n"))?;
        }
        let (service, selector) = (format!("{demo}/{demo}"), format!("{LABEL}={demo}"));
        let (rules, authority) = (path("rules.yaml"), path("ca.crt"));
        let mut words = vec!["generate", "webhook", "-r", &rules, "--service", &service, "--ca", &authority];
        words.extend(["--instance", instance, "--namespace", demo]);
        words.extend(["--namespace-selector", &selector, "--rule-selector", &selector]);
        let definitions_path = path("definitions.yaml");
        if !definitions.is_empty() {
            words.extend(["--definitions", &definitions_path]);
        }
        let shown = words.join(" ").replace(&format!("{}/", folder.path().display()), "");
        println!("$ portal {shown} | kubectl apply -f -");
        self.apply_text(&self.portal(&words)?)
    }

    /// What `portal` prints.
    fn portal(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(prepare::static_program()?).args(arguments).output()?;
        if !output.status.success() {
            bail!("`portal {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Shows some of the metrics of each replica, through the API server.
    fn metrics(&self, demo: &str) -> anyhow::Result<()> {
        let names = [
            "--namespace",
            demo,
            "get",
            "pods",
            "--selector=app=engine",
            "--output=jsonpath={.items[*].metadata.name}",
        ];
        let output = self.command(&self.kubectl).args(names).output()?;
        for pod in String::from_utf8(output.stdout)?.split_whitespace() {
            let path = format!("/api/v1/namespaces/{demo}/pods/{pod}:8080/proxy/metrics");
            println!("$ kubectl get --raw {path} | grep -E '^portal_(admission_requests|rule_evaluations)_total'");
            let output = self.command(&self.kubectl).args(["get", "--raw", &path]).output()?;
            let text = String::from_utf8(output.stdout)?;
            let wanted = ["portal_admission_requests_total", "portal_rule_evaluations_total"];
            for line in
                text.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0"))
            {
                println!("{line}");
            }
        }
        Ok(())
    }

    /// Shows a command that must be refused.
    fn refused(&self, arguments: &[&str], object: &Value) -> anyhow::Result<()> {
        if self.feed(arguments, object).is_ok() {
            bail!("{object} violates a rule, and was let in");
        }
        Ok(())
    }

    /// Waits until the status of a rule is about its newest version, and says this.
    fn wait_for_rule(&self, name: &str, ready: &str) -> anyhow::Result<()> {
        let is_ready = format!("--for=condition=Ready={ready}");
        self.kubectl(&["wait", &is_ready, &format!("pcr/{name}"), "--timeout=60s"])
    }

    /// Runs `portal check` as users do. An exit code of 1 is what it is shown for.
    fn check(&self, demo: &str) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("rule.yaml"), format!("{:#}", no_privileged(demo, "securityContext")))?;
        std::fs::write(folder.path().join("web.yaml"), format!("{:#}", deployment("shop")))?;
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
    fn guard(&self, instance: &str, demo: &str, with_definitions: bool) -> anyhow::Result<Held> {
        let mut kinds = vec!["namespace", "crd"];
        if !with_definitions {
            kinds.push("pcr");
        }
        let label = format!("{LABEL}={demo}");
        // First of all the webhook configuration: nobody answers any more in a moment.
        let script = "cat >/dev/null; for kind in validatingwebhookconfiguration clusterrolebinding clusterrole; do \
                      \"$@\" delete \"$kind\" --selector \"portal.io/instance=$INSTANCE\" --timeout=60s; done >/dev/null 2>&1; \
                      for kind in $KINDS; do \"$@\" delete \"$kind\" --selector \"$LABEL\" --timeout=60s; done >/dev/null 2>&1; \
                      [ -z \"$CRDS\" ] || \"$@\" delete crd $CRDS --timeout=60s >/dev/null; \
                      exec \"$@\" delete namespace \"$NAMESPACE\" --timeout=60s >/dev/null";
        let definitions = "portalclusterrules.portal.io portalrules.portal.io";
        let mut command = self.command("sh");
        command.args(["-c", script, "sh"]).arg(&self.kubectl);
        command.env("KINDS", kinds.join(" ")).env("LABEL", label).env("NAMESPACE", demo).env("INSTANCE", instance);
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
        self.feed(&["apply", "--filename", "-"], object)
    }

    fn apply_silently(&self, object: &Value) -> anyhow::Result<()> {
        self.apply_text(&object.to_string())
    }

    fn apply_text(&self, text: &str) -> anyhow::Result<()> {
        self.run_with_input(&["apply", "--filename", "-"], text)
    }

    /// Shows a command that is given an object, runs it, and lets it print.
    fn feed(&self, arguments: &[&str], object: &Value) -> anyhow::Result<()> {
        println!("$ kubectl {} <<< '{object}'", arguments.join(" "));
        self.run_with_input(arguments, &object.to_string())
    }

    fn run_with_input(&self, arguments: &[&str], text: &str) -> anyhow::Result<()> {
        let mut child = self.command(&self.kubectl).args(arguments).stdin(Stdio::piped()).spawn()?;
        child.stdin.take().expect("it was asked to be piped").write_all(text.as_bytes())?;
        if !child.wait()?.success() {
            bail!("`kubectl {}` failed", arguments.join(" "));
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
fn rule(name: &str, kind: &str, group: &str, enforcement: &str, expression: &str) -> Value {
    let demo = name.trim_end_matches("-widgets").trim_end_matches("-latest");
    json!({
        "apiVersion": "portal.io/v1alpha1", "kind": "PortalClusterRule",
        "metadata": {"name": name, "labels": {LABEL: demo}},
        "spec": {"match": {"gvk": [{"group": group, "kind": kind}]}, "enforcementAction": enforcement, "rule": expression},
    })
}

/// No privileged containers. `field` is what the author calls the security context.
fn no_privileged(name: &str, field: &str) -> Value {
    let mut rule = rule(name, "Pod", "", "deny", &format!("container.{field}.privileged == true"));
    rule["spec"]["message"] = json!("container {{ container.name }} is privileged");
    rule
}

fn pod(name: &str, image: &str, privileged: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container(image, privileged)]},
    })
}

fn deployment(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("acme.example/web:1.4", true)]},
        }},
    })
}

fn container(image: &str, privileged: bool) -> Value {
    json!({"name": "app", "image": image, "securityContext": {"privileged": privileged}})
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

fn step(text: &str) {
    println!("\n== {text}");
}

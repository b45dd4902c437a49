//! `make demo`: a tour of Portal on a real cluster, from its installation to its end. Every command is shown as it is run.

mod requests;
mod shell;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use portal_test_kit::cache::Cache;
use portal_test_kit::image::{self, ALERTMANAGER_IMAGE, PORTAL_IMAGE};
use portal_test_kit::state::State;
use portal_test_kit::{Cluster, Size, prepare};

use self::requests::{Answers, Requests};
use self::shell::Shell;

/// Where the demo runs.
struct Stage {
    shell: Shell,
    /// The image that the cluster's nodes have or can pull.
    image: String,
    /// The demo's own cluster, which lives as long as the demo. Nothing of somebody else's can be in it.
    cluster: Option<Cluster>,
}

/// What there is to say of the tour when it is over.
struct Tour {
    installed: Duration,
    ready: Duration,
    killed: Answers,
    deleted: Answers,
}

/// The namespace that the demo works in, and its label.
const NAMESPACE: &str = "portal-demo";

/// Two rules, as they would be in a repository.
const RULES: &str = r#"cat > rules.yaml <<'YAML'
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: no-privileged}
spec:
  match: {gvk: [{kind: Pod}]}
  rule: container.securityContext.privileged == true
  message: "container {{ container.name }} is privileged"
  alert: privileged-container
---
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: no-latest}
spec:
  enforcementAction: warn
  match: {gvk: [{kind: Pod}]}
  rule: container.image.tag == "latest"
  message: "image {{ container.image }} has no version"
YAML"#;

const DEPLOYMENT: &str = r"cat > web.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: acme.example/web:1.4
        securityContext: {privileged: true}
YAML";

const INSTANCE: &str = r#"kubectl apply -f - <<'YAML'
apiVersion: portal.io/v1alpha1
kind: PortalInstance
metadata: {name: default}
spec:
  namespaceSelector: {matchLabels: {portal-demo: "true"}}
  audit: {enabled: true}
YAML"#;

/// The same, with somebody to send alerts to. Nobody answers for names in the demo's own cluster.
const INSTANCE_WITH_ALERTS: &str = r#"kubectl apply -f - <<'YAML'
apiVersion: portal.io/v1alpha1
kind: PortalInstance
metadata: {name: default}
spec:
  namespaceSelector: {matchLabels: {portal-demo: "true"}}
  audit: {enabled: true}
  sinks:
    alertmanager: {urls: ["http://10.96.0.93:9093"]}
YAML"#;

const ALERTMANAGER: &str = r#"cat > alertmanager.yaml <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: alertmanager, namespace: monitoring}
data: {config.yml: "{route: {receiver: people}, receivers: [{name: people}]}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: alertmanager, namespace: monitoring}
spec:
  selector: {matchLabels: {app: alertmanager}}
  template:
    metadata: {labels: {app: alertmanager}}
    spec:
      containers:
      - name: alertmanager
        image: IMAGE
        imagePullPolicy: Never
        args: ["--config.file=/config/config.yml", "--storage.path=/data", "--cluster.listen-address="]
        readinessProbe: {httpGet: {path: /-/ready, port: 9093}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /config}, {name: data, mountPath: /data}]
      volumes: [{name: config, configMap: {name: alertmanager}}, {name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: alertmanager, namespace: monitoring}
spec:
  clusterIP: 10.96.0.93
  selector: {app: alertmanager}
  ports: [{port: 9093}]
YAML"#;

/// The alerts of audit that fire, by their labels.
const ALERTS: &str = r#"kubectl get --raw '/api/v1/namespaces/monitoring/services/alertmanager:9093/proxy/api/v2/alerts?filter=mode="audit"' | grep -o '"labels":{[^}]*}' || echo none"#;

const LOOKUP_RULE: &str = r#"cat > budgets.yaml <<'YAML'
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: budget-per-deployment}
spec:
  enforcementAction: warn
  match: {gvk: [{group: apps, kind: Deployment}]}
  rule: len(cluster.poddisruptionbudgets.list(metadata.namespace)) == 0
  message: "no PodDisruptionBudget in namespace {{ metadata.namespace }}"
YAML"#;

const WIDGET_RULE: &str = r#"kubectl apply -f - <<'YAML'
apiVersion: portal.io/v1alpha1
kind: PortalClusterRule
metadata: {name: small-widgets}
spec:
  match: {gvk: [{group: portal-demo.example, kind: Widget}]}
  rule: object.spec.size > 3
  message: "size {{ object.spec.size }} is more than 3"
YAML"#;

const WIDGET_DEFINITION: &str = r"kubectl apply -f - <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.portal-demo.example}
spec:
  group: portal-demo.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML";

const WIDGET: &str = r"kubectl --namespace portal-demo create -f - <<'YAML'
apiVersion: portal-demo.example/v1
kind: Widget
metadata: {name: large}
spec: {size: 7}
YAML";

pub(crate) fn run(cache: &Cache) -> anyhow::Result<()> {
    let began = Instant::now();
    let image = std::env::var("IMAGE").ok().filter(|image| !image.is_empty());
    let stage = match std::env::var("DEMO_EXISTING").unwrap_or_default().as_str() {
        "" | "0" if image.is_some() => {
            bail!("IMAGE is for a cluster that is there: set DEMO_EXISTING=1 too, and KUBECONFIG, or leave it out")
        }
        "" | "0" => Stage::own_cluster(cache)?,
        "1" => Stage::existing_cluster(cache, image)?,
        other => bail!("DEMO_EXISTING is {other:?}: set it to 1 to use the cluster of KUBECONFIG, or leave it out"),
    };
    let tour = match stage.tour() {
        Ok(tour) => tour,
        Err(error) => {
            if let Some(cluster) = &stage.cluster {
                cluster.show_logs();
            }
            return Err(error);
        }
    };
    drop(stage);
    println!("\n== What you have seen\n{tour}  the whole tour in {:.0} s", began.elapsed().as_secs_f64());
    println!(
        "\nThat was the image that users get, on a real Kubernetes. Nothing of it is left running.\n\
         To go on:\n\
         \x20 make cluster SIZE=full    a cluster that stays, for your own hands: docs/getting-started/quickstart.md\n\
         \x20 make test                 every test\n\
         \x20 make help                 everything else; README.md tells what works today"
    );
    Ok(())
}

impl Stage {
    /// A cluster that is there for this tour alone.
    fn own_cluster(cache: &Cache) -> anyhow::Result<Stage> {
        step("Building the image that users get");
        let portal = prepare::static_program()?;
        let archive = prepare::portal_image_of(cache, &portal)?;
        step("Starting a real Kubernetes: etcd, API server, controllers, scheduler and a node");
        let cluster = Cluster::start(Size::Full)?;
        cluster.import_image(&archive)?;
        cluster.import_image(&image::find(cache, "alertmanager")?)?;
        let shell = Shell::new(&portal, &cluster.programs().join("kubectl"), &cluster.kubeconfig(), None)?;
        Ok(Stage { shell, image: PORTAL_IMAGE.to_owned(), cluster: Some(cluster) })
    }

    /// The cluster of KUBECONFIG. Nothing that is there may be touched.
    fn existing_cluster(cache: &Cache, image: Option<String>) -> anyhow::Result<Stage> {
        let kubeconfig = std::env::var_os("KUBECONFIG")
            .map(PathBuf::from)
            .context("DEMO_EXISTING=1 needs KUBECONFIG to name the cluster to use")?;
        if !kubeconfig.exists() {
            bail!(
                "KUBECONFIG is {}, which is not a file: name the one file of the cluster to use",
                kubeconfig.display()
            );
        }
        step("Building the program and the image that users get");
        let portal = prepare::static_program()?;
        let ours = State::alive(cache)?.into_iter().find(|(state, _)| state.kubeconfig("admin") == kubeconfig);
        let image = match (image, &ours) {
            (Some(image), _) => image,
            (None, Some((state, description))) if description.size == Size::Full => {
                image::import(&state.containerd_socket(), &prepare::portal_image_of(cache, &portal)?)?;
                PORTAL_IMAGE.to_owned()
            }
            (None, Some((_, description))) => bail!(
                "the cluster of KUBECONFIG is of size {}, which runs no pods: `make cluster SIZE=full` does",
                description.size
            ),
            (None, None) => bail!(
                "the nodes of this cluster cannot get an image from here: push what `make image` builds to a registry that \
                 they reach, and name it with IMAGE=…"
            ),
        };
        let kubectl =
            ours.map_or_else(|| PathBuf::from("kubectl"), |(_, description)| description.programs.join("kubectl"));
        // Whoever switches contexts meanwhile must not move the demo to another cluster.
        let context = Command::new(&kubectl)
            .args(["config", "current-context"])
            .env("KUBECONFIG", &kubeconfig)
            .output()
            .context("could not run kubectl: is it installed?")?;
        let context = String::from_utf8(context.stdout)?.trim().to_owned();
        if context.is_empty() {
            bail!("{} has no current context: `kubectl config use-context` sets one", kubeconfig.display());
        }
        let shell = Shell::new(&portal, &kubectl, &kubeconfig, Some(context))?;
        Ok(Stage { shell, image, cluster: None })
    }

    fn tour(&self) -> anyhow::Result<Tour> {
        let shell = &self.shell;
        self.refuse_to_touch_others()?;

        step("What is there");
        shell.run("kubectl get nodes")?;
        // The demo's own cluster goes as a whole.
        let _removed_at_the_end =
            if self.cluster.is_none() { Some(shell.clean_up_at_the_end(&self.image)?) } else { None };
        shell.run("kubectl create namespace portal-demo")?;
        shell.run("kubectl label namespace portal-demo portal-demo=true")?;
        say("Somebody has made a privileged pod before there were rules:");
        shell.run("kubectl --namespace portal-demo run old --image=acme.example/old:1.0 --privileged")?;
        if self.cluster.is_some() {
            say("There is an Alertmanager, as in many clusters:");
            shell.quietly(&ALERTMANAGER.replace("IMAGE", ALERTMANAGER_IMAGE))?;
            shell.run("kubectl apply -f alertmanager.yaml")?;
        }

        step("Install: first Portal's three kinds, then the operator and what it may do");
        let began = Instant::now();
        shell.run("portal generate crds | kubectl apply --server-side -f -")?;
        shell.run(&format!("portal generate install --image {} | kubectl apply --server-side -f -", self.image))?;
        if self.cluster.is_some() {
            // Other tools may have them too, on a cluster that is not the demo's own.
            shell.run("portal generate report-crds | kubectl apply --server-side -f -")?;
        }
        shell.run("kubectl --namespace portal-operator rollout status deployment/portal-operator --timeout=120s")?;
        let installed = began.elapsed();

        step(
            "One instance. The operator makes certificates, rights, two engine pods and the webhook configuration of it",
        );
        say(
            "It judges the namespaces with a label, so that this demo disturbs nobody. Without a spec it judges them all.",
        );
        let began = Instant::now();
        shell.run(if self.cluster.is_some() { INSTANCE_WITH_ALERTS } else { INSTANCE })?;
        shell.run("kubectl wait portal/default --for=condition=Ready --timeout=120s")?;
        let ready = began.elapsed();
        say(&format!(
            "Ready after {:.1} s: a request has come through the API server to an engine and back.",
            ready.as_secs_f64()
        ));
        shell.run("kubectl get portal")?;
        shell.run("kubectl --namespace portal-system get pods")?;

        step("Two rules, a line each: one refuses, one warns");
        shell.run(RULES)?;
        shell.run("kubectl apply -f rules.yaml")?;
        shell.run("kubectl wait pcr --all --for=condition=Ready --timeout=60s")?;
        shell.run("kubectl get pcr")?;

        step("A privileged pod is refused, with the rule and its message");
        let privileged = "kubectl --namespace portal-demo run shell --image=acme.example/shell:1.0 --privileged";
        shell.refused(privileged, "no-privileged: container shell is privileged")?;
        step("A good pod is let in. One without a version is let in with a warning");
        shell.run("kubectl --namespace portal-demo run good --image=acme.example/web:1.4")?;
        shell.shows("kubectl --namespace portal-demo run latest --image=acme.example/web", "Warning: ")?;
        step("Whoever makes pods is told at once, not by an event of a ReplicaSet");
        shell.run(DEPLOYMENT)?;
        let apply = "kubectl --namespace portal-demo apply -f web.yaml";
        shell.refused(apply, "no-privileged: container app is privileged")?;
        step("The same rules judge the same file without a cluster, such as in CI");
        shell.refused("portal check -r rules.yaml web.yaml", "container app is privileged")?;

        self.audit()?;
        self.typo()?;
        self.rights()?;
        self.widgets()?;
        let killed = self.kill()?;
        let deleted = self.delete()?;
        self.uninstall()?;
        Ok(Tour { installed, ready, killed, deleted })
    }

    /// Stops before anything is done if something is there that the demo would change, or delete at its end.
    fn refuse_to_touch_others(&self) -> anyhow::Result<()> {
        let script = format!(
            "portal generate crds | kubectl get --ignore-not-found -o name -f -\n\
             portal generate install --image {} | kubectl get --ignore-not-found -o name -f -\n\
             kubectl get --ignore-not-found -o name namespace/{NAMESPACE} crd/widgets.portal-demo.example \
             validatingadmissionpolicy/portal-bypass validatingwebhookconfiguration/portal-default",
            self.image
        );
        let found = self.shell.quietly(&script)?;
        let found: Vec<&str> = found.lines().collect();
        if found.is_empty() {
            return Ok(());
        }
        let more = if found.len() > 5 { format!(" and {} more", found.len() - 5) } else { String::new() };
        bail!(
            "this cluster has {}{more} already. The demo would change it, and take it away at the end, so it has done nothing. \
             `make demo` without DEMO_EXISTING starts a cluster of its own. To run it here, first remove Portal as \
             docs/getting-started/install.md tells under Uninstalling; what a demo has left that was cut off is removed alike, \
             with `kubectl delete namespace {NAMESPACE}` after it.",
            found[..found.len().min(5)].join(", ")
        );
    }

    /// What is in the cluster is found, told and forgotten when it is mended.
    fn audit(&self) -> anyhow::Result<()> {
        let shell = &self.shell;
        step("What is in the cluster already is judged too: the privileged pod, and the one that was only warned of");
        shell.run("kubectl wait pcr/no-privileged --for=jsonpath='{.status.violationCount}'=1 --timeout=60s")?;
        shell.run("kubectl wait pcr/no-latest --for=jsonpath='{.status.violationCount}'=1 --timeout=60s")?;
        if self.cluster.is_some() {
            say("A report of the namespace tells of both:");
            shell.run("kubectl --namespace portal-demo wait policyreport/portal-default --for=create --timeout=60s")?;
            let report = "kubectl --namespace portal-demo get polr";
            for outcome in ["fail", "warn"] {
                self.wait_until(&format!("{report} portal-default -o jsonpath='{{.summary.{outcome}}}'"), |count| {
                    count == "1"
                })?;
            }
            shell.run(report)?;
            shell.shows(
                r#"kubectl --namespace portal-demo get polr -o jsonpath='{range .items[*].results[*]}{.result} {.policy} {.resources[0].kind}/{.resources[0].name}: {.message}{"\n"}{end}' | sort"#,
                "fail no-privileged Pod/old: container old is privileged\nwarn no-latest Pod/latest: image acme.example/web has no version",
            )?;
            say("The rule of the first has an alert, and Alertmanager notifies people of it:");
            self.wait_until(ALERTS, |alerts| alerts.contains("privileged-container"))?;
            shell.shows(ALERTS, "privileged-container")?;
        }
        say("The pods go, and what was told of them goes too:");
        shell.run("kubectl --namespace portal-demo delete pod old latest --now")?;
        if self.cluster.is_some() {
            shell.run("kubectl --namespace portal-demo wait policyreport/portal-default --for=delete --timeout=60s")?;
            self.wait_until(ALERTS, |alerts| alerts == "none\n")?;
            shell.shows(ALERTS, "none")?;
        }
        shell.run("kubectl wait pcr/no-privileged --for=jsonpath='{.status.violationCount}'=0 --timeout=60s")?;
        shell.run("kubectl wait pcr/no-latest --for=jsonpath='{.status.violationCount}'=0 --timeout=60s")
    }

    fn typo(&self) -> anyhow::Result<()> {
        let shell = &self.shell;
        step("A typo in a rule is answered with its place and the nearest name");
        shell.run("sed 's/securityContext/securityContxt/' rules.yaml | kubectl apply -f -")?;
        shell.run("kubectl wait pcr/no-privileged --for=condition=Ready=False --timeout=60s")?;
        shell.shows(
            r#"kubectl get pcr no-privileged -o jsonpath='{range .status.instances[*].parseError}{.message}{"\n"}{.caret}{"\n"}{end}'"#,
            "^",
        )?;
        say("The fix:");
        shell.run("kubectl apply -f rules.yaml")?;
        shell.run("kubectl wait pcr/no-privileged --for=condition=Ready --timeout=60s")
    }

    fn rights(&self) -> anyhow::Result<()> {
        let shell = &self.shell;
        let because =
            r"kubectl get clusterrole portal-default -o jsonpath='{.metadata.annotations.portal\.io/because}'";
        let may = "kubectl auth can-i list poddisruptionbudgets.policy --all-namespaces --as=system:serviceaccount:portal-system:portal-default";
        step("Rights follow rules. An engine reads what its rules look up, and no rule has looked anything up yet");
        shell.refused(may, "no")?;
        say("What the next rule would bring is told before it is applied:");
        shell.run(LOOKUP_RULE)?;
        shell.shows(
            "portal explain permissions --live default --rules budgets.yaml",
            "+ get, list, watch   poddisruptionbudgets.policy              budget-per-deployment",
        )?;
        shell.run("kubectl apply -f budgets.yaml")?;
        shell.run("kubectl wait pcr/budget-per-deployment --for=condition=Ready --timeout=60s")?;
        say("The role has the right, and says because of which rule. Once the rule is gone, the right goes too:");
        shell.shows(because, "poddisruptionbudgets.policy: budget-per-deployment")?;
        shell.shows(may, "yes")?;
        let create =
            "kubectl --namespace portal-demo create deployment web --image=acme.example/web:1.4 --dry-run=server";
        shell.shows(create, "no PodDisruptionBudget in namespace portal-demo")?;
        step("What is found follows what rules look up: a Deployment violates the rule, until there is a budget");
        let counts = |count: u8| {
            format!(
                "kubectl wait pcr/budget-per-deployment --for=jsonpath='{{.status.violationCount}}'={count} --timeout=60s"
            )
        };
        shell.run("kubectl --namespace portal-demo create deployment web --image=acme.example/web:1.4 --replicas=0")?;
        shell.run(&counts(1))?;
        shell.run(
            "kubectl --namespace portal-demo create poddisruptionbudget web --selector=app=web --min-available=1",
        )?;
        shell.run(&counts(0))?;
        say("The budget goes, and the Deployment is found again, though nobody has touched it:");
        shell.run("kubectl --namespace portal-demo delete poddisruptionbudget web")?;
        shell.run(&counts(1))
    }

    fn widgets(&self) -> anyhow::Result<()> {
        let shell = &self.shell;
        step("A rule for a kind that does not exist yet waits for it");
        shell.run(WIDGET_RULE)?;
        shell.run("kubectl wait pcr/small-widgets --for=condition=Ready=False --timeout=60s")?;
        shell.run("kubectl get pcr small-widgets")?;
        step("Once the kind is there, the operator has it sent to the engine, and the rule is in force");
        shell.run(WIDGET_DEFINITION)?;
        shell.run("kubectl wait pcr/small-widgets --for=condition=Ready --timeout=60s")?;
        shell.refused(WIDGET, "small-widgets: size 7 is more than 3")
    }

    /// Engine pods are killed while requests go on.
    fn kill(&self) -> anyhow::Result<Answers> {
        let shell = &self.shell;
        step("Requests go on while engines die");
        say(
            "From here on a pod is sent 20 times a second, a good one and a privileged one in turn. None of them is stored.",
        );
        let requests = Requests::start(shell.configuration()?, NAMESPACE);
        std::thread::sleep(Duration::from_secs(1));
        say("One engine pod is killed. The other one answers:");
        let rollout = "kubectl --namespace portal-system rollout status deployment/portal-default --timeout=120s";
        shell.run("kubectl --namespace portal-system delete --now $(kubectl --namespace portal-system get pods -o name | head -1)")?;
        shell.run(rollout)?;
        let one = requests.so_far();
        println!("{one}");
        say(
            "All engine pods are killed at once. What no rule is about goes on meanwhile, and Kubernetes brings the engines back:",
        );
        shell.run("kubectl --namespace portal-system delete pods --all --force --grace-period=0")?;
        shell.run("kubectl --namespace portal-demo create configmap goes-on --from-literal=while=engines-are-dead")?;
        shell.run(rollout)?;
        std::thread::sleep(Duration::from_secs(1));
        let all = requests.end()?;
        println!("{all}");
        let answers = one.and(&all);
        if answers.slipped_in > 0 {
            bail!("{} privileged pods were let in while engines died", answers.slipped_in);
        }
        say("No privileged pod came in. Who wants the opposite says `failClosed: false`.");
        shell.run("kubectl wait portal/default --for=condition=Ready --timeout=120s")?;
        shell.run("kubectl get portal")?;
        Ok(answers)
    }

    /// The instance is deleted while requests go on.
    fn delete(&self) -> anyhow::Result<Answers> {
        let shell = &self.shell;
        step("The end. The webhook configuration goes first and the engines last, so that no request fails on the way");
        let requests = Requests::start(shell.configuration()?, NAMESPACE);
        shell.run("kubectl delete portal default")?;
        std::thread::sleep(Duration::from_secs(1));
        let answers = requests.end()?;
        println!("{answers}");
        if answers.unanswered > 0 {
            bail!("{} requests failed while the instance was deleted: {}", answers.unanswered, answers.example);
        }
        say("The cluster is free: what was refused is let in. Nothing of the instance is left, and the rules are:");
        shell.run("kubectl --namespace portal-demo run shell --image=acme.example/shell:1.0 --privileged")?;
        let left = "kubectl get validatingwebhookconfigurations,clusterroles,deployments,services,secrets,pods --all-namespaces --selector portal.io/instance=default";
        // Pods take a moment to end.
        self.wait_until(&format!("{left} --output name"), str::is_empty)?;
        shell.shows(left, "No resources found")?;
        shell.run("kubectl get pcr")?;
        Ok(answers)
    }

    fn uninstall(&self) -> anyhow::Result<()> {
        step("Uninstall: the operator, then the definitions with the rules");
        let shell = &self.shell;
        shell.run(&format!("portal generate install --image {} | kubectl delete -f -", self.image))?;
        shell.run("kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy portal-bypass")?;
        shell.run("portal generate crds | kubectl delete -f -")?;
        shell.run("kubectl delete crd widgets.portal-demo.example")?;
        shell.run("kubectl delete namespace portal-demo")
    }

    /// Waits until a command prints what it should.
    fn wait_until(&self, command: &str, is_so: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let printed = self.shell.quietly(command)?;
            if is_so(&printed) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("a minute later, `{command}` still prints {printed:?}");
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

impl std::fmt::Display for Tour {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = |duration: &Duration| format!("{:.1} s", duration.as_secs_f64());
        let Answers { sent, let_in, refused, unanswered, slipped_in, .. } = &self.killed;
        writeln!(
            formatter,
            "  installed in {}, an instance ready {} after it was applied",
            seconds(&self.installed),
            seconds(&self.ready)
        )?;
        writeln!(
            formatter,
            "  a pod refused, a pod warned of, a Deployment told at once, violations found, reported, alerted and cleared,\n  a Deployment that follows its budget, a typo shown with its place, a right that came with a rule, a rule that waited for its kind"
        )?;
        writeln!(
            formatter,
            "  engines killed under {sent} requests: {let_in} good pods let in, {refused} privileged ones refused by the rule,"
        )?;
        writeln!(
            formatter,
            "    {unanswered} refused because no engine was there, {slipped_in} privileged pods let in"
        )?;
        writeln!(
            formatter,
            "  the instance deleted under {} requests: {} failed",
            self.deleted.sent, self.deleted.unanswered
        )
    }
}

fn step(text: &str) {
    println!("\n== {text}");
}

fn say(text: &str) {
    println!("-- {text}");
}

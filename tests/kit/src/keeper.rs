//! The keeper: the process that owns a cluster. It starts the components, says when they are ready, and takes all of it
//! down when nobody needs it any more.
//!
//! *core* and *control* run as children of the keeper. *full* runs in namespaces of its own, behind a second process of
//! this program ([`inside`]); the keeper stays outside and passes connections to the API server in through a socket.

use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use crate::cache::Cache;
use crate::components::{self, NODE, Ports};
use crate::held::{dying_with_us, free_port};
use crate::state::{Description, Size, State};
use crate::{image, kubernetes, node};

/// What a keeper is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How much of a cluster.
    pub size: Size,
    /// The API server's port, when somebody wants a certain one.
    pub port: Option<u16>,
    /// Whether to stay when standard input closes, until a signal comes.
    pub detached: bool,
}

/// What a keeper answers: one line of JSON on standard output.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// The cluster is ready; its files are in this folder.
    Ready(PathBuf),
    /// The cluster could not be started, for the reason that this text gives.
    Failed(String),
}

/// A component that runs.
struct Component {
    name: &'static str,
    /// What it was started with, in order to start it again.
    arguments: Vec<String>,
    process: Child,
}

/// The one component that a test may ask to be started anew.
const API_SERVER: &str = "kube-apiserver";

/// How long each stage of the start may take. Generous: a machine may be busy compiling beside it.
const STAGE_TIMEOUT: Duration = Duration::from_secs(120);

/// How often other ports are tried when somebody else takes one between choosing and listening.
const PORT_ATTEMPTS: usize = 3;

/// Inside a network namespace nobody else is there to take a port.
const INSIDE_PORTS: Ports = Ports { api: 6443, etcd: 2379, etcd_peer: 2380 };

/// Runs a cluster until nobody needs it. What `portal-test-kit keep` does.
pub async fn keep(request: Request) -> anyhow::Result<()> {
    let cache = Cache::open()?;
    let (state, _lock) = match State::claim(&cache, request.size) {
        Ok(claimed) => claimed,
        Err(error) => return report(&Report::Failed(format!("{error:#}"))),
    };
    let mut components = Vec::new();
    // Taken before anything starts: a signal during the start must not leave anything behind.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut restart = signal(SignalKind::user_defined1())?;
    let over = async {
        let closed = async {
            if request.detached {
                std::future::pending::<()>().await;
            }
            let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
        };
        tokio::select! {
            () = closed => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let run = async {
        if let Err(error) = start(&cache, &state, request, &mut components).await {
            let mut reason = format!("{error:#}");
            if !components.is_empty() {
                let logs = state.keep_logs(&cache)?;
                let errors = state.last_errors();
                reason.push_str(&format!("\nthe logs are in {}; their last errors are:\n{errors}", logs.display()));
            }
            return report(&Report::Failed(reason));
        }
        report(&Report::Ready(state.root().to_owned()))?;
        let ended = loop {
            tokio::select! {
                ended = first_to_end(&mut components) => break ended,
                _ = restart.recv() => restart_api_server(&state, &mut components).await?,
            }
        };
        // Whoever uses the cluster sees its calls fail; the logs that say why are kept.
        eprintln!("{ended}");
        state.keep_logs(&cache)?;
        if !request.detached {
            std::future::pending::<()>().await;
        }
        Ok(())
    };
    let result = tokio::select! {
        () = over => Ok(()),
        result = run => result,
    };
    // Everything is thrown away, so nothing need close gently.
    for component in &mut components {
        component.process.kill().await.ok();
    }
    state.remove(&cache)?;
    result
}

/// Runs the components of a *full* cluster in the namespaces that this process was started in.
pub async fn inside(id: &str, state_folder: &Path, programs: &Path) -> anyhow::Result<()> {
    let programs = &node::enter(state_folder, programs)?;
    let state = State::at(node::INSIDE);
    let listener = UnixListener::bind(state.api_socket()).context("could not listen for the way in")?;
    tokio::spawn(pass_in(listener));
    let mut components = Vec::new();
    start_control_plane(&state, programs, INSIDE_PORTS, Size::Full, &mut components).await?;
    start_node(&state, id, programs, &mut components).await?;
    report(&Report::Ready(state_folder.to_owned()))?;
    bail!("{}", first_to_end(&mut components).await)
}

/// The client of the administrator.
pub async fn admin_client(state: &State) -> anyhow::Result<Client> {
    client_of(&state.kubeconfig("admin")).await
}

/// The client that a kubeconfig describes.
pub async fn client_of(kubeconfig: &Path) -> anyhow::Result<Client> {
    Ok(Client::try_from(config_of(kubeconfig).await?)?)
}

/// The configuration of a client that a kubeconfig describes.
pub async fn config_of(kubeconfig: &Path) -> anyhow::Result<kube::Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

async fn start(cache: &Cache, state: &State, request: Request, components: &mut Vec<Component>) -> anyhow::Result<()> {
    let version = kubernetes::Version::chosen()?;
    let program = kubernetes::program(cache, &crate::repository(), &version)?.find(cache)?;
    let programs = program.parent().context("a program lies in a folder")?.to_owned();
    state.describe(&Description {
        size: request.size,
        version: version.text().to_owned(),
        keeper: std::process::id(),
        detached: request.detached,
        port: request.port,
        run: std::env::var("PORTAL_TEST_RUN").ok(),
        programs: programs.clone(),
    })?;
    components::write_certificates(state)?;
    if request.size == Size::Full {
        return start_full(cache, state, request, &programs, components).await;
    }
    for attempt in 1.. {
        let ports = Ports { api: choose(request.port)?, etcd: free_port()?, etcd_peer: free_port()? };
        match start_control_plane(state, &programs, ports, request.size, components).await {
            Err(error) if attempt < PORT_ATTEMPTS => {
                for component in components.iter_mut() {
                    component.process.kill().await.ok();
                }
                // With our own components gone, a port that is still in use is somebody else's.
                let ports = [ports.api, ports.etcd, ports.etcd_peer];
                if ports.iter().all(|port| choose(Some(*port)).is_ok()) {
                    return Err(error);
                }
                eprintln!("trying other ports: {error:#}");
                components.clear();
            }
            result => return result,
        }
    }
    unreachable!("the last attempt returns")
}

/// Starts the second process in its namespaces, and passes connections to the API server in.
async fn start_full(
    cache: &Cache,
    state: &State,
    request: Request,
    programs: &Path,
    components: &mut Vec<Component>,
) -> anyhow::Result<()> {
    node::check_machine()?;
    let images = state.root().join("images");
    std::fs::create_dir_all(&images)?;
    let pause = image::find(cache, "pause")?;
    std::fs::copy(&pause, images.join("pause.tar")).with_context(|| format!("could not copy {}", pause.display()))?;
    // The listener is bound before its port is written down: nobody can take it in between.
    let wanted = request.port.unwrap_or(0);
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).await.map_err(|error| port_error(wanted, &error))?;
    let port = listener.local_addr()?.port();
    components::write_kubeconfig(state, "admin", "admin", port)?;
    // `unshare` as the first process would leave orphans of the container runtime unreaped; a shell reaps them.
    let mut command = Command::from(dying_with_us("unshare"));
    command
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"])
        .args(["sh", "-c", "\"$@\" & wait $!", "sh"])
        .arg(std::env::current_exe()?)
        .arg("inside")
        .arg(state.id())
        .arg(state.root())
        .arg(programs)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(state.log("inside"))?)
        .kill_on_drop(true);
    let mut process = command.spawn().context("could not start the namespaces of the cluster")?;
    let stdout = process.stdout.take().expect("it was asked to be piped");
    components.push(Component { name: "inside", arguments: Vec::new(), process });
    tokio::spawn(pass_through(listener, state.api_socket()));
    let mut line = String::new();
    // Four stages follow each other inside, each with its own deadline and its own message.
    let read = timeout(4 * STAGE_TIMEOUT, BufReader::new(stdout).read_line(&mut line)).await;
    match read.context("the cluster did not say whether it started")??.min(1) {
        0 => bail!("the cluster could not be started: {}", last_line(&state.log("inside"))),
        _ => match serde_json::from_str(&line)? {
            Report::Ready(_) => Ok(()),
            Report::Failed(reason) => bail!("{reason}"),
        },
    }
}

async fn start_control_plane(
    state: &State,
    programs: &Path,
    ports: Ports,
    size: Size,
    components: &mut Vec<Component>,
) -> anyhow::Result<()> {
    // In a network namespace of its own the API server has another port than the one that leads to it from outside.
    let own = if size == Size::Full { "admin-inside" } else { "admin" };
    let kubeconfig = components::write_kubeconfig(state, own, "admin", ports.api)?;
    components.push(launch(state, programs, "etcd", components::etcd(state, ports))?);
    components.push(launch(state, programs, API_SERVER, components::api_server(state, ports, size)?)?);
    let client = client_of(&kubeconfig).await?;
    until_api_server_is_ready(&client, components).await?;
    if size == Size::Core {
        return Ok(());
    }
    let arguments = components::controller_manager(state, ports)?;
    components.push(launch(state, programs, "kube-controller-manager", arguments)?);
    components.push(launch(state, programs, "kube-scheduler", components::scheduler(state, ports)?)?);
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
    until("the controllers work", components, async || accounts.get("default").await.is_ok()).await
}

async fn start_node(state: &State, id: &str, programs: &Path, components: &mut Vec<Component>) -> anyhow::Result<()> {
    components.push(launch(state, Path::new(""), "containerd", components::containerd(state)?)?);
    until("containerd answers", components, async || {
        Command::new("ctr")
            .arg("--address")
            .arg(state.containerd_socket())
            .arg("version")
            .output()
            .await
            .is_ok_and(|output| output.status.success())
    })
    .await?;
    image::import(&state.containerd_socket(), &state.root().join("images/pause.tar"))?;
    let cgroup = node::make_cgroups(id)?;
    components.push(launch(state, programs, "kubelet", components::kubelet(state, INSIDE_PORTS, &cgroup)?)?);
    components.push(launch(state, programs, "kube-proxy", components::proxy(state, INSIDE_PORTS)?)?);
    let nodes: Api<Node> = Api::all(client_of(&state.kubeconfig("admin-inside")).await?);
    until("the node is ready", components, async || {
        let conditions = nodes.get(NODE).await.ok().and_then(|node| node.status?.conditions).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await
}

/// Kills the API server and starts it again, with all that it has stored.
async fn restart_api_server(state: &State, components: &mut [Component]) -> anyhow::Result<()> {
    let programs = state.description()?.programs;
    let Some(component) = components.iter_mut().find(|component| component.name == API_SERVER) else {
        bail!("this keeper has no API server of its own");
    };
    component.process.kill().await?;
    *component = launch(state, &programs, API_SERVER, component.arguments.clone())?;
    let client = admin_client(state).await?;
    until_api_server_is_ready(&client, components).await?;
    state.count_restart()
}

async fn until_api_server_is_ready(client: &Client, components: &mut [Component]) -> anyhow::Result<()> {
    until("the API server is ready", components, async || {
        let request = http::Request::get("/readyz").body(Vec::new()).expect("a constant path is a valid one");
        client.request_text(request).await.is_ok()
    })
    .await
}

fn launch(state: &State, programs: &Path, name: &'static str, arguments: Vec<String>) -> anyhow::Result<Component> {
    let log = File::options().create(true).append(true).open(state.log(name));
    let log = log.with_context(|| format!("could not write the log of {name}"))?;
    let process = Command::from(dying_with_us(programs.join(name)))
        .args(&arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("could not start {name}"))?;
    Ok(Component { name, arguments, process })
}

/// Waits until a condition holds, or a component ends, or the time is up.
async fn until(what: &str, components: &mut [Component], condition: impl AsyncFn() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + STAGE_TIMEOUT;
    while !condition().await {
        for component in components.iter_mut() {
            if let Some(status) = component.process.try_wait()? {
                bail!("{} ended with {status} before {what}", component.name);
            }
        }
        if Instant::now() > deadline {
            bail!("{what}: not so after {} s", STAGE_TIMEOUT.as_secs());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Waits for the first component that ends, which none should.
async fn first_to_end(components: &mut [Component]) -> String {
    loop {
        for component in components.iter_mut() {
            if let Ok(Some(status)) = component.process.try_wait() {
                return format!("{} ended with {status}", component.name);
            }
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Outside: each connection to the port goes to the socket.
async fn pass_through(listener: TcpListener, socket: PathBuf) {
    while let Ok((mut outer, _)) = listener.accept().await {
        let socket = socket.clone();
        tokio::spawn(async move {
            if let Ok(mut inner) = UnixStream::connect(socket).await {
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            }
        });
    }
}

/// Inside: each connection to the socket goes to the API server.
async fn pass_in(listener: UnixListener) {
    while let Ok((mut outer, _)) = listener.accept().await {
        tokio::spawn(async move {
            if let Ok(mut inner) = TcpStream::connect((Ipv4Addr::LOCALHOST, INSIDE_PORTS.api)).await {
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            }
        });
    }
}

/// The port that was asked for, if it is free, or any that is.
fn choose(wanted: Option<u16>) -> anyhow::Result<u16> {
    let Some(port) = wanted else { return free_port() };
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| port_error(port, &error))?;
    Ok(port)
}

fn port_error(port: u16, error: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!("port {port} cannot be used ({error}): choose another with PORT=…, or leave it out")
}

fn report(report: &Report) -> anyhow::Result<()> {
    // Whoever asked may be gone, which must not keep the cluster from being taken down.
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(report)?)?)
}

fn last_line(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().last().unwrap_or("it wrote nothing").to_owned()
}

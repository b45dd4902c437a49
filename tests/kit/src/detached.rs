//! Clusters that stay until somebody takes them down: for a developer's own hands.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::cache::{Cache, Lock};
use crate::held::kit_binary;
use crate::image::{self, DOCUMENTED_IMAGE, PORTAL_IMAGE};
use crate::keeper::Report;
use crate::kubernetes::Version;
use crate::prepare;
use crate::state::{Description, Size, State};

/// How long a cluster may take to go.
const DOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a cluster that stays, or finds the one of this size that already does, and says how to reach it.
pub fn up(cache: &Cache, size: Size, port: Option<u16>) -> anyhow::Result<()> {
    let version = Version::chosen()?;
    let is_wanted = |description: &Description| {
        description.detached
            && description.size == size
            && description.version == version.text()
            && (port.is_none() || description.port == port)
    };
    let state = match State::alive(cache)?.into_iter().find(|(_, description)| is_wanted(description)) {
        Some((state, _)) => {
            println!("a {size} cluster is already running");
            state
        }
        None => start(size, port)?,
    };
    let mut folders = vec![state.description()?.programs];
    if size == Size::Full {
        folders.extend(bring_image(cache, &state)?.parent().map(Path::to_owned));
        println!(
            "# its node has the image that users get, as {DOCUMENTED_IMAGE}: docs/getting-started/quickstart.md goes on from here"
        );
    }
    let folders: Vec<String> = folders.iter().map(|folder| format!("'{}'", folder.display())).collect();
    println!("export KUBECONFIG='{}'", state.kubeconfig("admin").display());
    println!("export PATH={}:\"$PATH\"", folders.join(":"));
    println!("# the logs are in {}; `make cluster-down` stops it", state.logs().display());
    Ok(())
}

/// Gives the node the image that users get, by the name that the pages call it. Returns the program in it.
fn bring_image(cache: &Cache, state: &State) -> anyhow::Result<PathBuf> {
    let program = prepare::static_program()?;
    let socket = state.containerd_socket();
    image::import(&socket, &prepare::portal_image_of(cache, &program)?)?;
    image::tag(&socket, PORTAL_IMAGE, DOCUMENTED_IMAGE)?;
    Ok(program)
}

/// Stops every cluster that stays, and waits until nothing of it is left.
pub fn down(cache: &Cache) -> anyhow::Result<()> {
    let mut found = false;
    for (state, description) in State::alive(cache)?.into_iter().filter(|(_, description)| description.detached) {
        found = true;
        // The lock is held, so the process is the keeper and no other that got its number later.
        let status = Command::new("sh").args(["-c", &format!("kill -TERM {}", description.keeper)]).status()?;
        if !status.success() {
            bail!("the keeper of {} could not be told to end", state.id());
        }
        wait_until_gone(&state)?;
        println!("stopped the {} cluster {}", description.size, state.id());
    }
    if !found {
        println!("no cluster is running");
    }
    Ok(())
}

/// Waits until no cluster of a run of tests is left: their keepers end a moment after the tests that they were for.
pub fn wait_for_run(cache: &Cache, run: &str) -> anyhow::Result<()> {
    for (state, _) in
        State::alive(cache)?.into_iter().filter(|(_, description)| description.run.as_deref() == Some(run))
    {
        wait_until_gone(&state)?;
    }
    Ok(())
}

fn start(size: Size, port: Option<u16>) -> anyhow::Result<State> {
    println!("starting a {size} cluster");
    let mut child = Command::new(kit_binary()?)
        .arg("keep")
        .arg(size.to_string())
        .arg("--detached")
        .args(port.map(|port| format!("--port={port}")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("could not start the keeper")?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it was asked to be piped")).read_line(&mut line)?;
    match serde_json::from_str(&line).context("the keeper ended without a word")? {
        Report::Ready(root) => Ok(State::at(root)),
        Report::Failed(reason) => bail!("the {size} cluster could not be started: {reason}"),
    }
}

fn wait_until_gone(state: &State) -> anyhow::Result<()> {
    let deadline = Instant::now() + DOWN_TIMEOUT;
    while Lock::is_held(&state.lock()) {
        if Instant::now() > deadline {
            bail!("the cluster {} is not gone after {DOWN_TIMEOUT:?}", state.id());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

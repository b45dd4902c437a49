//! A process that lives no longer than whoever started it.
//!
//! The process is given a pipe and ends when it closes. The kernel closes the pipe with the process that holds its other
//! end, so that nothing is left behind however a test ends.

use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::cache::Cache;
use crate::program::Program;

/// A running process that ends when this value is dropped, or when this process ends.
#[derive(Debug)]
pub struct Held {
    child: Child,
}

/// A program of a Go module that serves on a port of its own on loopback.
#[derive(Debug)]
pub struct Server {
    /// Where it serves.
    pub address: SocketAddr,
    /// What it wrote.
    pub log: PathBuf,
    held: Held,
}

/// How long a server may take to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How often another port is tried when somebody else took the one that was free a moment ago.
const PORT_ATTEMPTS: usize = 3;

impl Held {
    /// Starts a command of the kit itself. Its standard input is the pipe that tells it when to end.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        // A group of its own: Ctrl-C is for the test, whose end then closes the pipe.
        let child = command.stdin(Stdio::piped()).process_group(0).spawn().context("could not start a process")?;
        Ok(Self { child })
    }

    /// The running process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Asks the process to end and waits until it has.
    pub fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        drop(self.child.stdin.take());
        Ok(self.child.wait()?)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // An error means that it is gone already, which is what was wanted.
        let _ = self.stop();
    }
}

impl Server {
    /// Starts a program on a free port and waits until it accepts connections. `arguments` is given the port.
    pub fn start(
        cache: &Cache,
        program: &Program,
        log: &Path,
        arguments: impl Fn(u16) -> Vec<String>,
    ) -> anyhow::Result<Self> {
        let path = program.find(cache)?;
        let mut result = Err(anyhow::anyhow!("no port was tried"));
        for _ in 0..PORT_ATTEMPTS {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
            let output = File::create(log).with_context(|| format!("could not write {}", log.display()))?;
            let mut command = Command::new(kit_binary()?);
            command.arg("hold").arg(&path).args(arguments(address.port())).stdout(output.try_clone()?).stderr(output);
            let mut held = Held::start(&mut command)?;
            result = match wait_for_port(&mut held, address) {
                Ok(()) => return Ok(Self { address, log: log.to_owned(), held }),
                Err(error) => Err(error.context(format!(
                    "{} did not start; it wrote: {}",
                    program.name,
                    std::fs::read_to_string(log).unwrap_or_default().trim()
                ))),
            };
        }
        result
    }

    /// Stops the server and waits until it is gone.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.held.stop().map(|_| ())
    }
}

/// Ports that are handed out: below those that the kernel takes for outgoing connections and for port 0.
const PORTS: Range<u16> = 11_000..30_000;

/// A port on loopback that nobody uses, and that nobody else is given while this process lives.
pub fn free_port() -> anyhow::Result<u16> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let all = PORTS.len() as u32;
    // Processes begin at different places, so that they seldom meet.
    let first = std::process::id().wrapping_mul(127);
    for _ in 0..all {
        let place = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % all;
        let port = PORTS.start + place as u16;
        // A name in the kernel, which is free again when this process ends.
        let name = UnixAddress::from_abstract_name(format!("portal-test-kit/port/{port}"))?;
        let Ok(claim) = UnixListener::bind_addr(&name) else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            std::mem::forget(claim);
            return Ok(port);
        }
    }
    bail!("loopback has no free port from {} to {}", PORTS.start, PORTS.end)
}

/// The kit's own program. `make` names it; under `cargo test` alone it is built first.
pub fn kit_binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("PORTAL_TEST_KIT") {
        return Ok(PathBuf::from(path));
    }
    let current = std::env::current_exe()?;
    let name = "portal-test-kit";
    if current.file_stem().is_some_and(|stem| stem == name) {
        return Ok(current);
    }
    let cargo = std::env::var_os("CARGO").context("the kit's program is not known: set PORTAL_TEST_KIT")?;
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", name])
        .current_dir(crate::repository())
        .status()
        .context("could not run cargo")?;
    if !status.success() {
        bail!("the kit's program could not be built");
    }
    // Test programs lie in a folder below the one of the other programs.
    let path = current.ancestors().nth(2).context("a test program lies in a folder")?.join(name);
    path.exists().then_some(path).context("the kit's program is not beside the tests: set PORTAL_TEST_KIT")
}

/// Runs a command until it ends by itself or standard input closes. What `portal-test-kit hold` does.
pub fn hold(command: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("hold needs a command to run")?;
    let mut child = dying_with_us(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("could not start {program}"))?;
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Nothing is ever written: reading ends when the pipe closes.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = sender.send(());
    });
    loop {
        if let Some(status) = child.try_wait()? {
            std::process::exit(status.code().unwrap_or(1));
        }
        if ended.recv_timeout(Duration::from_millis(100)).is_ok() {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
    }
}

/// A command whose process the kernel kills when this one dies, even by `kill -9`.
pub fn dying_with_us(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn wait_for_port(held: &mut Held, address: SocketAddr) -> anyhow::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(status) = held.child().try_wait()? {
            bail!("it ended with {status}");
        }
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("nothing accepts connections at {address} after {START_TIMEOUT:?}")
}

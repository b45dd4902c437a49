//! Programs that run beside the bench, and end with it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// A running program, which ends with the bench.
pub(super) struct Process {
    child: Child,
}

/// A running engine.
pub(super) struct Engine {
    pub(super) process: Process,
    /// Where it tells how it is.
    port: u16,
}

impl Process {
    /// Starts one. What it prints is for nobody.
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Process> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Process { child: child.with_context(|| format!("could not start {command:?}"))? })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        signal(self.id(), "TERM")?;
        self.child.wait()?;
        Ok(())
    }

    /// Seconds that it has had of all processors together.
    pub(super) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        cpu_seconds(self.id())
    }

    /// Memory that it has, in MB.
    pub(super) fn memory(&self) -> anyhow::Result<f64> {
        memory(self.id())
    }

    /// The most memory that it has had, in MB.
    pub(super) fn most_memory(&self) -> anyhow::Result<f64> {
        status(self.id(), "VmHWM")
    }
}

impl Engine {
    /// Starts one that tells at this port how it is.
    pub(super) fn start(command: &mut Command, port: u16) -> anyhow::Result<Engine> {
        Ok(Engine { process: Process::start(command.args(["--listen", &format!("127.0.0.1:{port}")]))?, port })
    }

    pub(super) fn wait_until(&self, limit: Duration, condition: impl Fn(&Engine) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        while !condition(self) {
            if Instant::now() > deadline {
                bail!("the engine did not come to what is measured within {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub(super) fn is_ready(&self) -> bool {
        self.get("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// The value of a metric, 0 until it is there.
    pub(super) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_default()
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Seconds that a process has had of all processors together.
pub(super) fn cpu_seconds(process: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit_once(')').context("a process has a name")?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("a process has times")?;
    Ok((user + system) / 100.0)
}

/// Memory that a process has, in MB.
pub(super) fn memory(process: u32) -> anyhow::Result<f64> {
    status(process, "VmRSS")
}

fn status(process: u32, name: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB"));
    let kilobytes: f64 = line.context("a process has memory")?.trim().parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

/// Sends a signal to a process.
pub(super) fn signal(process: u32, name: &str) -> anyhow::Result<()> {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status()?;
    if status.success() { Ok(()) } else { bail!("process {process} could not be sent {name}") }
}

//! What a program takes: from its start to its end, or while it runs.

use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What the kernel counts a program's time in.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a run took.
pub struct Run {
    /// Seconds from its start to its end.
    pub wall: f64,
    /// Seconds of all processors together.
    pub processor: f64,
    /// The most memory, in MB.
    pub resident: f64,
}

/// Runs a program to its end, and looks at it while it runs: its memory is gone when it is.
pub fn run(command: &mut Command) -> Result<Run, Box<dyn Error>> {
    let before = children_time()?;
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut resident = 0.0;
    let code = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let most = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        resident = most.unwrap_or(resident);
        if let Some(code) = child.try_wait()? {
            break code;
        }
        thread::sleep(Duration::from_millis(1));
    };
    // 1 is for violations.
    if !matches!(code.code(), Some(0 | 1)) {
        return Err(format!("{command:?} ended with {code}").into());
    }
    let (wall, processor) = (begin.elapsed().as_secs_f64(), children_time()? - before);
    Ok(Run { wall, processor, resident: resident / 1000.0 })
}

/// Seconds that the programs had that this one started and saw end.
fn children_time() -> Result<f64, Box<dyn Error>> {
    times("self", 13)
}

/// Seconds that a process has had of all processors together.
pub fn processor_seconds(process: u32) -> Result<f64, Box<dyn Error>> {
    times(&process.to_string(), 11)
}

/// The sum of two times of a process, by the place of the first behind its name.
fn times(process: &str, place: usize) -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name is in brackets, and may have spaces.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).ok_or("the kernel says no times")?;
    let ticks: Vec<f64> = fields.skip(place).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

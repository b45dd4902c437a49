//! Times that can be trusted on a machine with other work: the processor's time rather than the clock's, many short rounds,
//! one contestant after the other in each, and the middle of them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Several measurements of the same thing.
#[derive(Clone, Debug)]
pub struct Samples(Vec<f64>);

/// How long one measurement takes: long against the clock's own cost, short against a second's disturbance.
pub const MEASUREMENT: Duration = Duration::from_millis(2);

/// How often work has to be repeated to take as long as a measurement.
pub fn repeats(mut work: impl FnMut()) -> u32 {
    let mut repeats = 1;
    loop {
        // The least of some runs: one that is disturbed would leave too few repeats for the whole race.
        let least = (0..3).map(|_| nanoseconds(repeats, &mut work)).fold(f64::MAX, f64::min);
        if least * f64::from(repeats) >= MEASUREMENT.as_nanos() as f64 {
            return repeats;
        }
        repeats *= 2;
    }
}

/// Nanoseconds that each repetition takes.
pub fn nanoseconds(repeats: u32, mut work: impl FnMut()) -> f64 {
    let begin = thread_time();
    (0..repeats).for_each(|_| work());
    (thread_time() - begin).as_secs_f64() * 1e9 / f64::from(repeats)
}

/// How long this thread has had a processor.
fn thread_time() -> Duration {
    processor_time(ClockId::ThreadCPUTime)
}

/// How long all threads together have had processors.
pub fn process_time() -> Duration {
    processor_time(ClockId::ProcessCPUTime)
}

fn processor_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The mean of ratios.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value.ln(), count + 1.0));
    (sum / count).exp()
}

/// Bytes of this process that are in memory.
pub fn resident() -> std::io::Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<usize>();
    Ok(kilobytes.expect("Linux says how much memory a process has") * 1024)
}

impl Samples {
    /// Samples in any order. There is at least one.
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The one in the middle.
    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// The range without the outer tenths.
    pub fn spread(&self) -> (f64, f64) {
        let outer = self.0.len() / 10;
        (self.0[outer], self.0[self.0.len() - 1 - outer])
    }
}

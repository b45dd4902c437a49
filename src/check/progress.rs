//! How far a long run is, for whoever waits for it at a terminal.

use std::io::{IsTerminal as _, Stderr, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A run that is shorter than this shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line changes: often enough to be seen moving, and seldom enough to cost nothing.
const INTERVAL: Duration = Duration::from_millis(200);

/// Moves to the first column, and erases the line.
const ERASE: &str = "\r\u{1b}[K";

/// Counts what a run has done, and shows it. Workers call it at the same time.
pub(crate) struct Progress {
    started: Instant,
    files: usize,
    /// Objects that were judged. Workers add to it.
    objects: AtomicUsize,
    /// Nothing where standard error is no terminal: a file or a pipe has no line to erase.
    meter: Option<Mutex<Meter<Stderr>>>,
}

/// A line that is drawn over itself.
struct Meter<W> {
    out: W,
    /// When the line was drawn last, since the start.
    drawn: Option<Duration>,
}

impl Progress {
    pub(crate) fn new(files: usize) -> Progress {
        let error = std::io::stderr();
        let meter = error.is_terminal().then(|| Mutex::new(Meter { out: error, drawn: None }));
        Progress { started: Instant::now(), files, objects: AtomicUsize::new(0), meter }
    }

    /// Counts objects that were judged, in the file of this number, from 0.
    pub(crate) fn judged(&self, file: usize, objects: usize) {
        let Some(meter) = &self.meter else { return };
        let objects = self.objects.fetch_add(objects, Ordering::Relaxed) + objects;
        // If another worker is drawing the line, this one need not.
        if let Ok(mut meter) = meter.try_lock() {
            meter.draw(self.started.elapsed(), objects, file + 1, self.files);
        }
    }

    /// Removes the line, before the results are printed.
    pub(crate) fn end(&self) {
        if let Some(Ok(mut meter)) = self.meter.as_ref().map(Mutex::lock) {
            meter.end();
        }
    }
}

impl<W: Write> Meter<W> {
    fn draw(&mut self, elapsed: Duration, objects: usize, file: usize, files: usize) {
        let due = self.drawn.map_or(PATIENCE, |drawn| drawn + INTERVAL);
        if elapsed < due {
            return;
        }
        self.drawn = Some(elapsed);
        // A terminal that takes nothing more is no reason to stop.
        let _ = write!(self.out, "{ERASE}{objects} objects judged, file {file} of {files}");
        let _ = self.out.flush();
    }

    fn end(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(self.out, "{ERASE}");
            let _ = self.out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal is sent for judgements at these milliseconds.
    fn shown(moments: &[u64]) -> String {
        let mut meter = Meter { out: Vec::new(), drawn: None };
        for (number, moment) in moments.iter().enumerate() {
            meter.draw(Duration::from_millis(*moment), 10 * number, number, 100);
        }
        meter.end();
        String::from_utf8(meter.out).expect("a line is text").replace(ERASE, "<erase>")
    }

    #[test]
    fn a_short_run_shows_nothing() {
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[1, 500, 999]), "");
    }

    #[test]
    fn a_long_run_shows_a_line_now_and_then_and_erases_it() {
        let expected = "<erase>10 objects judged, file 1 of 100<erase>30 objects judged, file 3 of 100<erase>";
        assert_eq!(shown(&[999, 1000, 1199, 1200, 1300]), expected);
    }
}

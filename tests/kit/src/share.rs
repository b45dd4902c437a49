//! How much of a long test is tried: a share of it in `make test`, always the same, and all of it in `make test-faults`, each
//! time another.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// Set by `make test-faults`.
pub(crate) const FAULTS: &str = "PORTAL_FAULTS";

/// Seeds beside each other are alike in nothing, so any range is as good as another. This many ranges are told apart.
const RANGES: u64 = 1 << 32;

/// The seeds of a test that tries many: `share` of them in `make test`, `all` in `make test-faults`. `PORTAL_SEEDS` says how
/// many instead, and `PORTAL_SEED` which is the first, so that a failure can be seen again.
pub fn seeds(share: u64, all: u64) -> Range<u64> {
    let count = setting("PORTAL_SEEDS").unwrap_or(times(share, all));
    let first = setting("PORTAL_SEED").unwrap_or_else(|| if is_whole() { moment() % RANGES * 1_000 } else { 0 });
    if first > 0 {
        println!("{count} seeds, the first one is PORTAL_SEED={first}");
    }
    first..first + count
}

/// How often something is done that takes long: `share` in `make test`, `all` in `make test-faults`.
pub fn times(share: u64, all: u64) -> u64 {
    if is_whole() { all } else { share }
}

fn is_whole() -> bool {
    std::env::var_os(FAULTS).is_some()
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
}

fn moment() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

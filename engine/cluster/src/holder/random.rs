//! Random numbers for pauses. Nothing secret is made of them.

/// xorshift: the same seed is the same sequence, so that a test can repeat a history.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Seeds that are next to each other start far from each other.
    pub(super) fn new(seed: u64) -> Self {
        let mixed = (seed ^ (seed >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        // The generator stands still at 0.
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

//! Random numbers for tests that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// A generator of random numbers that tells its seed.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Seeded by `MILLSTREAM_SEED`, else by the clock; the seed is printed.
    pub fn from_environment() -> Self {
        let given = std::env::var("MILLSTREAM_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
        let seed: u64 = given.unwrap_or_else(clock);
        println!("MILLSTREAM_SEED={seed}");
        // Seeds that are close to one another, or small, start far apart.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

//! Random numbers for tests that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// `MILLSTREAM_SEED`.
pub fn given_seed() -> Option<u64> {
    std::env::var("MILLSTREAM_SEED").ok().map(|seed| seed.parse().expect("a number"))
}

/// One that differs from run to run.
pub fn seed_of_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64)
}

/// A generator of random numbers that tells its seed.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Seeded by `MILLSTREAM_SEED`, else by the clock; the seed is printed.
    pub fn from_environment() -> Self {
        Self::from_seed(given_seed().unwrap_or_else(seed_of_the_clock))
    }

    /// With this seed, which is printed.
    pub fn from_seed(seed: u64) -> Self {
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

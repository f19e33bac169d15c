//! A small generator of random numbers, for repeatable tests.

use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The seed that the variable names, or one from the clock.
    pub fn seed_from_environment(variable: &str) -> u64 {
        let given = std::env::var(variable).ok().and_then(|seed| seed.parse().ok());
        given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

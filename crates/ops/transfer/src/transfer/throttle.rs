//! A rate limit in bytes per second, shared by all threads.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Lets a number of bytes pass each second.
#[derive(Debug)]
pub(crate) struct Throttle {
    bytes_per_second: u64,
    /// When all that has been let through will have been paid for.
    paid_at: Mutex<Instant>,
}

/// What may be used at once after a pause.
const BURST: Duration = Duration::from_millis(100);

impl Throttle {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Throttle { bytes_per_second: bytes_per_second.max(1), paid_at: Mutex::new(Instant::now()) }
    }

    /// The largest piece that is worth asking for: a fifth of a second.
    pub(crate) fn piece(&self) -> u64 {
        (self.bytes_per_second / 5).clamp(1, 1 << 20)
    }

    /// Waits until `bytes` more may pass.
    pub(crate) fn pass(&self, bytes: u64) {
        let price = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let now = Instant::now();
        let paid_at = {
            let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
            let earliest = now.checked_sub(BURST).unwrap_or(now);
            *paid_at = (*paid_at).max(earliest) + price;
            *paid_at
        };
        thread::sleep(paid_at.saturating_duration_since(now));
        SLEPT.set(SLEPT.get() + now.elapsed());
    }
}

thread_local! {
    static SLEPT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How long the calling thread has waited for bytes to pass since it began.
pub(crate) fn slept() -> Duration {
    SLEPT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        let throttle = Throttle::new(1_000_000);
        let started = Instant::now();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| throttle.pass(10_000)));
            }
        });
        let seconds = started.elapsed().as_secs_f64();
        assert!(seconds > 0.29, "400,000 bytes at 1 MB/s took {seconds} s");
    }

    #[test]
    fn a_thread_knows_how_long_it_has_slept() {
        let throttle = Throttle::new(1_000_000);
        thread::scope(|scope| {
            scope.spawn(|| {
                throttle.pass(300_000);
                assert!(slept() > Duration::from_millis(150), "{:?}", slept());
            });
        });
        assert_eq!(slept(), Duration::ZERO, "another thread has");
    }
}

//! Progress of an operation: counters of the work done and of the total.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use millstream_walk::Census;

/// Counters of a running operation. Entries are counted as they are done if the operation is watched, otherwise once a
/// chunk.
#[derive(Debug)]
pub struct Activity {
    /// Entries visited.
    pub entries: AtomicU64,
    /// Directories read to their end.
    pub directories: AtomicU64,
    /// Bytes copied.
    pub bytes: AtomicU64,
    /// Bytes that need not be copied any more: holes, and the rest of files that failed. Modulo 2^64, as a file can
    /// also grow.
    pub spared_bytes: AtomicU64,
    /// Bytes of all files that are being copied, have been copied, or wait for a thread.
    pub begun_bytes: AtomicU64,
    /// Errors reported.
    pub errors: AtomicU64,
    /// Workers started.
    pub threads: AtomicU64,
    census: OnceLock<Arc<Census>>,
    started: Instant,
}

/// Counts the entries of a chunk: each as soon as it is done if the operation is watched, as a chunk can take minutes;
/// otherwise all of them at the end, as workers that share a counter wait for each other.
#[derive(Debug)]
pub struct Tally<'a> {
    activity: &'a Activity,
    is_watched: bool,
    waiting: u64,
}

impl Tally<'_> {
    /// An entry is done.
    pub fn add(&mut self) {
        match self.is_watched {
            true => self.activity.add_entries(1),
            false => self.waiting += 1,
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.activity.add_entries(self.waiting);
    }
}

/// An amount of work done, and the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The amount done.
    pub done: u64,
    /// The total, never less than the amount done.
    pub total: u64,
}

impl Share {
    fn new(done: u64, total: u64) -> Self {
        Share { done, total: total.max(done) }
    }

    /// Between 0 and 1.
    pub fn fraction(self) -> f64 {
        if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 }
    }
}

impl Default for Activity {
    fn default() -> Self {
        Activity {
            entries: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            spared_bytes: AtomicU64::new(0),
            begun_bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            threads: AtomicU64::new(0),
            census: OnceLock::new(),
            started: Instant::now(),
        }
    }
}

impl Activity {
    /// Makes the operation, which has not begun yet, count the entries that it finds, so that its total can be known.
    pub fn watch(&self) {
        self.census.get_or_init(Arc::default);
    }

    /// The counter of entries found by the traversals of a watched operation.
    pub fn census(&self) -> Option<Arc<Census>> {
        self.census.get().cloned()
    }

    /// Announces operands to the watcher, before the first of them is traversed.
    pub fn expect(&self, operands: usize) {
        if let Some(census) = self.census.get() {
            census.expect(operands);
        }
    }

    /// Entries done and found so far, of a watched operation that counts them.
    pub fn found(&self) -> Option<Share> {
        let found = self.census.get()?.found();
        (found > 0).then(|| Share::new(self.entries.load(Ordering::Relaxed), found))
    }

    /// Entries done, and their total if it is known.
    pub fn total(&self) -> Option<Share> {
        let total = self.census.get()?.total()?;
        (total > 0).then(|| Share::new(self.entries.load(Ordering::Relaxed), total))
    }

    /// Bytes done, and those of all files begun so far: the total once every entry has been visited.
    pub fn data(&self) -> Share {
        let [copied, spared, begun] =
            [&self.bytes, &self.spared_bytes, &self.begun_bytes].map(|bytes| bytes.load(Ordering::Relaxed));
        Share::new(copied.wrapping_add(spared), begun)
    }

    /// How long the operation has been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts `n` entries.
    pub fn add_entries(&self, n: u64) {
        self.entries.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts the entries of a chunk one after the other.
    pub fn tally(&self) -> Tally<'_> {
        Tally { activity: self, is_watched: self.census.get().is_some(), waiting: 0 }
    }

    /// Counts a directory.
    pub fn add_directory(&self) {
        self.directories.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an error.
    pub fn add_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a worker.
    pub fn add_thread(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_count_when_they_are_done_while_somebody_watches() {
        for is_watched in [false, true] {
            let activity = Activity::default();
            if is_watched {
                activity.watch();
            }
            let counted = || activity.entries.load(Ordering::Relaxed);
            let mut tally = activity.tally();
            for done in 1..=3 {
                tally.add();
                assert_eq!(counted(), if is_watched { done } else { 0 });
            }
            drop(tally);
            assert_eq!(counted(), 3);
        }
    }
}

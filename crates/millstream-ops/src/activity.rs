//! What an operation has done so far, for who wants to watch it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counters of an operation that runs. They are added to once a chunk, not once an entry.
#[derive(Debug)]
pub struct Activity {
    /// Entries visited.
    pub entries: AtomicU64,
    /// Directories read to their end.
    pub directories: AtomicU64,
    /// Bytes copied.
    pub bytes: AtomicU64,
    /// Errors reported.
    pub errors: AtomicU64,
    /// Workers started.
    pub threads: AtomicU64,
    started: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Activity {
            entries: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            threads: AtomicU64::new(0),
            started: Instant::now(),
        }
    }
}

impl Activity {
    /// How long the operation has been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts `n` entries.
    pub fn add_entries(&self, n: u64) {
        self.entries.fetch_add(n, Ordering::Relaxed);
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

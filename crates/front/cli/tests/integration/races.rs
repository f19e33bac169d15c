//! Threads that change things under a tool's hands.

use std::sync::atomic::{AtomicBool, Ordering};

/// Lets the other thread end also if this one panics.
pub struct StopWhenDone<'a>(pub &'a AtomicBool);

impl Drop for StopWhenDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

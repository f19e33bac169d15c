//! Bounds the memory of uploads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longest wait. Then memory is taken all the same: those who have it may themselves be waiting for more.
const PATIENCE: Duration = Duration::from_secs(30);

/// Memory that may be in use.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: Mutex<usize>,
    returned: Condvar,
    limit: usize,
}

/// Memory that is in use, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(MemoryBudget { used: Mutex::new(0), returned: Condvar::new(), limit })
    }

    /// Waits for so many bytes.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Reservation {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |used: &mut usize| *used > 0 && *used + bytes > self.limit;
        let waited = self.returned.wait_timeout_while(used, PATIENCE, is_full);
        let (mut used, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *used += bytes;
        Reservation { budget: Arc::clone(self), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.budget.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_more_than_the_limit_is_in_use() {
        let (budget, used, most) = (MemoryBudget::new(100), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _taken = budget.reserve(30);
                        most.fetch_max(used.fetch_add(30, Ordering::SeqCst) + 30, Ordering::SeqCst);
                        thread::yield_now();
                        used.fetch_sub(30, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((30..=100).contains(&most.into_inner()));
        let _more_than_there_is = budget.reserve(1000);
    }
}

//! Worker indices.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hands out worker indices: unique, and below the maximum number of workers. The calling thread has index 0.
#[derive(Debug)]
pub(crate) struct Indices {
    /// How many are in use; readable without the lock.
    in_use: AtomicUsize,
    /// Indices given back by workers that could not be started.
    returned: Mutex<Vec<usize>>,
}

impl Default for Indices {
    fn default() -> Self {
        Indices { in_use: AtomicUsize::new(1), returned: Mutex::default() }
    }
}

impl Indices {
    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// An index for one more worker, unless `most` are in use.
    pub(crate) fn take(&self, most: usize) -> Option<usize> {
        if self.in_use() >= most {
            return None;
        }
        let mut returned = self.lock();
        let in_use = self.in_use();
        if in_use >= most {
            return None;
        }
        self.in_use.store(in_use + 1, Ordering::Relaxed);
        Some(returned.pop().unwrap_or(in_use))
    }

    /// Returns the index of a worker that could not be started.
    pub(crate) fn give_back(&self, index: usize) {
        let mut returned = self.lock();
        returned.push(index);
        self.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_unique() {
        let indices = Indices::default();
        let [one, two] = [indices.take(4), indices.take(4)].map(|index| index.expect("room"));
        assert_eq!((one, two), (1, 2));
        // The next worker must not get the index of the other one, which is still running.
        indices.give_back(one);
        assert_eq!(indices.in_use(), 2);
        assert_eq!([indices.take(4), indices.take(4), indices.take(4)], [Some(1), Some(3), None]);
        assert_eq!(indices.in_use(), 4);
        // Indices may be returned in any order.
        indices.give_back(2);
        indices.give_back(3);
        let mut again = [indices.take(9), indices.take(9), indices.take(9)];
        again.sort();
        assert_eq!(again, [Some(2), Some(3), Some(4)]);
    }
}

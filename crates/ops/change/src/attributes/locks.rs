//! Locks that serialise changes to files that several workers may reach.

use std::sync::{Mutex, MutexGuard, PoisonError};

const LOCKS: usize = 64;

/// A lock for each inode; several inodes share a lock.
#[derive(Debug)]
pub(super) struct InodeLocks {
    locks: [Mutex<()>; LOCKS],
}

impl Default for InodeLocks {
    fn default() -> Self {
        InodeLocks { locks: std::array::from_fn(|_| Mutex::new(())) }
    }
}

impl InodeLocks {
    pub(super) fn lock(&self, (_, ino): (u64, u64)) -> MutexGuard<'_, ()> {
        self.locks[ino as usize % LOCKS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

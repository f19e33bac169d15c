//! Bounds the number of connections that are in use.

use std::sync::{Condvar, Mutex, PoisonError};

/// How many more connections may be used.
#[derive(Debug)]
pub(crate) struct Connections {
    left: Mutex<usize>,
    returned: Condvar,
}

/// The use of a connection, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection<'a>(&'a Connections);

impl Connections {
    /// Allows `most` connections, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Connections { left: Mutex::new(most.max(1)), returned: Condvar::new() }
    }

    /// Waits until a connection may be used.
    pub(crate) fn take(&self) -> Connection<'_> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left =
            self.returned.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        Connection(self)
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_more_than_allowed_are_in_use() {
        let (connections, used, most) = (Connections::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _connection = connections.take();
                        most.fetch_max(used.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        used.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
    }
}

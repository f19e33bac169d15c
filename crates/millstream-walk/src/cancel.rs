//! Ending a traversal from outside or from a visitor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag shared by all who may end a traversal. Workers look at it between calls of the volume; a call that hangs is
/// not interrupted, so whoever must not wait for it runs the traversal on a thread of its own.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    cancelled: Arc<AtomicBool>,
}

impl Cancellation {
    /// Asks the traversal to end.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether the traversal was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

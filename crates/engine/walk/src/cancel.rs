//! Cancellation of a traversal, from outside or by a visitor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shared flag that ends a traversal. Workers check it between calls to the volume. A call that hangs is not
/// interrupted; a caller that cannot wait for it should run the traversal on a separate thread.
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

//! The queue of blocks to the consumer: bounded, so that the traversal does not outrun a slow reader.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use millstream_walk::Cancellation;

/// Bytes of queued blocks at which the traversal pauses.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// Maximum bytes that one call of [`Enumeration::next`] delivers, unless a single block is larger.
const MAX_DELIVERY_BYTES: usize = 1 << 20;
/// How long a producer waits for room before it checks for cancellation.
const ROOM_POLL: Duration = Duration::from_millis(50);

/// The result of [`Enumeration::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One or more whole blocks.
    Blocks(Vec<u8>),
    /// Nothing arrived within the timeout.
    NotYet,
    /// Everything has been delivered.
    End,
}

/// The traversal panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the enumeration failed: {0}")]
pub struct Panicked(pub(super) String);

/// The queue of blocks.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    cancellation: Cancellation,
}

#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) blocks: VecDeque<Vec<u8>>,
    bytes: usize,
    pub(super) outcome: Option<Result<(), Panicked>>,
}

impl Queue {
    pub(super) fn new(cancellation: Cancellation) -> Self {
        Queue { state: Mutex::default(), changed: Condvar::new(), cancellation }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake_all(&self) {
        self.changed.notify_all();
    }

    /// Waits for room; returns early if the enumeration has ended.
    pub(super) fn put(&self, block: Vec<u8>) {
        let mut state = self.lock();
        while state.bytes > MAX_QUEUED_BYTES && !self.cancellation.is_cancelled() {
            state = self.changed.wait_timeout(state, ROOM_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.bytes += block.len();
        state.blocks.push_back(block);
        self.wake_all();
    }

    pub(super) fn end(&self, outcome: Result<(), Panicked>) {
        self.lock().outcome = Some(outcome);
        self.wake_all();
    }

    pub(super) fn take(&self, timeout: Duration) -> Result<Delivery, Panicked> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if !state.blocks.is_empty() {
                let delivery = state.deliver();
                self.wake_all();
                return Ok(Delivery::Blocks(delivery));
            }
            if let Some(outcome) = &state.outcome {
                return outcome.clone().map(|()| Delivery::End);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Delivery::NotYet);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl QueueState {
    fn deliver(&mut self) -> Vec<u8> {
        let mut delivery = self.blocks.pop_front().unwrap_or_default();
        while let Some(next) = self.blocks.front() {
            if delivery.len() + next.len() > MAX_DELIVERY_BYTES {
                break;
            }
            delivery.extend_from_slice(next);
            self.blocks.pop_front();
        }
        self.bytes -= delivery.len();
        delivery
    }
}

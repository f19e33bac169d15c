//! Options of a traversal.

use std::sync::Arc;

use millstream_system::concurrency::{Budget, Permit};

use crate::{Cancellation, Census, FollowPolicy};

/// The number of worker threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One per CPU at first, then more, up to `max`, while calls wait instead of computing.
    Adaptive {
        /// The maximum number of workers.
        max: usize,
    },
    /// This many, including the caller's thread, as far as work and address space suffice.
    Fixed(usize),
}

impl Threads {
    /// The default maximum of adaptive concurrency.
    pub const DEFAULT_MAX: usize = 256;

    /// Permission to start one more thread; [`None`] if the process has enough. A number set by the user is never
    /// refused.
    pub fn leave(self) -> Option<Permit<'static>> {
        let budget = Budget::of_process();
        match self {
            Threads::Adaptive { .. } => budget.take(),
            Threads::Fixed(_) => Some(budget.take_anyway()),
        }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Threads::Adaptive { max: Self::DEFAULT_MAX }
    }
}

/// The order in which blocks of output are emitted. Visits are parallel either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Directories are emitted as they are completed; a parent's block comes before those of its children.
    Completion,
    /// A directory, then each of its children in the order in which the visitor descended into them, recursively.
    DepthFirst {
        /// Bytes of finished output that may wait to be emitted before workers stop running ahead.
        max_waiting_bytes: usize,
    },
}

/// How long a directory's handle is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandleRetention {
    /// Until its last child directory has been opened.
    #[default]
    UntilChildrenOpen,
    /// Until its subtree has been left, so that [`crate::Visitor::leave`] can use the parent's open handle.
    UntilLeft,
}

/// How deep the visitor descends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Descent {
    /// Into any directory.
    #[default]
    Unlimited,
    /// Only into operands. Nothing is opened below them, so their identities are not needed.
    Operands,
}

/// Options of a traversal.
#[derive(Clone, Debug)]
pub struct WalkOptions {
    /// Number of workers.
    pub threads: Threads,
    /// Symbolic links to follow.
    pub follow: FollowPolicy,
    /// Order of the blocks of output.
    pub order: Order,
    /// How long directory handles are kept.
    pub retention: HandleRetention,
    /// How deep the visitor descends.
    pub descent: Descent,
    /// Number of the volume's handles reserved for the visitor.
    pub reserved_handles: usize,
    /// Ends the traversal early.
    pub cancellation: Cancellation,
    /// Counts the found entries. The operands have been counted before.
    pub census: Option<Arc<Census>>,
}

impl Default for WalkOptions {
    fn default() -> Self {
        WalkOptions {
            threads: Threads::default(),
            follow: FollowPolicy::default(),
            order: Order::Completion,
            retention: HandleRetention::default(),
            descent: Descent::default(),
            reserved_handles: 0,
            cancellation: Cancellation::default(),
            census: None,
        }
    }
}

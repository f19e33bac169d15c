//! How a traversal is to run.

use std::sync::Arc;

use millstream_vfs::SymlinkBehavior;

use crate::{Cancellation, Census};

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowPolicy {
    /// None (`-P`).
    #[default]
    Never,
    /// Those that are operands (`-H`).
    Operands,
    /// All (`-L`).
    Always,
}

impl FollowPolicy {
    /// The behaviour towards an entry at `depth`; operands are at depth 0.
    pub fn at_depth(self, depth: u32) -> SymlinkBehavior {
        match self {
            FollowPolicy::Always => SymlinkBehavior::Follow,
            FollowPolicy::Operands if depth == 0 => SymlinkBehavior::Follow,
            FollowPolicy::Operands | FollowPolicy::Never => SymlinkBehavior::NoFollow,
        }
    }
}

/// How many worker threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// As many as CPUs to begin with, and more, up to `max`, while calls wait instead of computing.
    Adaptive {
        /// The most workers.
        max: usize,
    },
    /// This many, the caller's thread among them, as far as there is work and address space for them.
    Fixed(usize),
}

impl Threads {
    /// The cap of adaptive concurrency unless the user sets one.
    pub const DEFAULT_MAX: usize = 256;
}

impl Default for Threads {
    fn default() -> Self {
        Threads::Adaptive { max: Self::DEFAULT_MAX }
    }
}

/// In which order blocks of output are emitted. Visits are parallel either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Directories are emitted as they are done; a parent's block comes before those of its children.
    Completion,
    /// A directory, then each of its children in the order in which the visitor descended into them, recursively.
    DepthFirst {
        /// Bytes of finished output that may wait for their turn before workers stop running ahead.
        max_waiting_bytes: usize,
    },
}

/// How long a directory's handle is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandleRetention {
    /// Until its last child directory has been opened.
    #[default]
    UntilChildrenOpen,
    /// Until its subtree has been left, so that [`crate::Visitor::leave`] may act on the children of an open parent.
    UntilLeft,
}

/// How a traversal is to run.
#[derive(Clone, Debug)]
pub struct WalkOptions {
    /// Number of workers.
    pub threads: Threads,
    /// Symbolic links to follow.
    pub follow: FollowPolicy,
    /// Order of the blocks of output.
    pub order: Order,
    /// Life time of directory handles.
    pub retention: HandleRetention,
    /// How many of the volume's handles are left to the visitor.
    pub reserved_handles: usize,
    /// Ends the traversal early.
    pub cancellation: Cancellation,
    /// Counts what is found. The operands have been counted before.
    pub census: Option<Arc<Census>>,
}

impl Default for WalkOptions {
    fn default() -> Self {
        WalkOptions {
            threads: Threads::default(),
            follow: FollowPolicy::default(),
            order: Order::Completion,
            retention: HandleRetention::default(),
            reserved_handles: 0,
            cancellation: Cancellation::default(),
            census: None,
        }
    }
}

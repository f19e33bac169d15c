#![forbid(unsafe_code)]
//! Parallel traversal of a volume.
//!
//! ```text
//!            tasks                    a worker                          the visitor
//!  open(dir) ─────┐      opens relative to the parent's handle,
//!  part(chunk) ───┼──►   reads a batch of names, visits it whole   ──►  visit(chunk)  ── descend ──► new tasks
//!  resume(dir) ───┘      or cuts it into chunks for other workers  ──►  end_of_directory, emit, leave
//! ```
//!
//! * **One pool, two frontiers.** Each worker has its own stack; when it is empty, the worker steals the oldest task of
//!   another. A stack, because depth first keeps the number of open handles and pending names small; the oldest,
//!   because it tends to be the largest subtree. When output must come in directory order ([`Order::DepthFirst`]), all
//!   workers share one stack, and workers too far ahead of the output wait.
//! * **A large directory is many tasks.** Its reader pushes the rest of the reading *below* the chunks just read. A
//!   busy pool therefore finishes the chunks before it continues reading, while an idle worker steals the reading.
//!   Memory is bounded either way.
//! * **Operands are a directory.** The paths that a user names are the entries of a virtual directory at the root of
//!   the traversal: they are examined in parallel, by the same code as every other entry.
//! * **Handles are bounded** ([`handles`]). A directory's handle is closed once its last child is open. Beyond the
//!   budget of handles it is closed earlier, and reopened from a nearby directory, with a check of its identity.
//! * **Concurrency adapts** ([`worker_target`]): one worker per CPU while calls use the CPU, up to 256 while they wait.
//!
//! The traversal knows no volume and prints nothing. Errors are reported to the visitor one by one and never end the
//! traversal.

mod cancel;
mod census;
mod directory;
mod follow;
mod frontier;
mod handles;
mod indices;
mod options;
mod pair;
mod pool;
mod sequence;
mod slot;
mod visitor;
mod worker_target;

pub use cancel::Cancellation;
pub use census::Census;
pub use directory::Directory;
pub use follow::FollowPolicy;
pub use options::{Descent, HandleRetention, Order, Threads, WalkOptions};
pub use pair::{Counterpart, Other, Pairing};
pub use pool::{WalkStats, walk, walk_from};
pub use visitor::{Chunk, Descend, Entry, FanOut, Fault, FaultSite, Visitor};

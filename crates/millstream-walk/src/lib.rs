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
//! * **One pool, two frontiers.** A worker keeps its tasks on a stack of its own and steals the oldest of another's when
//!   that is empty: a stack, because depth first keeps the number of open handles and pending names small; the oldest,
//!   because it tends to be the largest subtree. When output must come in directory order ([`Order::DepthFirst`]) all
//!   workers share one stack, and those who run too far ahead of the output wait.
//! * **A large directory is many tasks.** Its reader puts the rest of the reading *below* the chunks just read, so a busy
//!   pool finishes the chunks before it reads on, and an idle worker steals the reading: memory stays bounded either way.
//! * **Operands are a directory.** The paths a user names are the entries of a virtual directory at the root of the
//!   traversal, so they are examined in parallel too, and need no second way through the code.
//! * **Handles are bounded** ([`handles`]). A directory's handle is closed once its last child is open, and reopened from
//!   what is near, with a check of its identity, should the budget of handles have run out.
//! * **Concurrency adapts** ([`pace`]): one worker a CPU while calls cost CPU, up to 256 while they wait.
//!
//! The traversal knows no volume and prints nothing. Errors are reported to the visitor, entry by entry, and never end it.

mod cancel;
mod census;
mod directory;
mod frontier;
mod handles;
mod indices;
mod options;
mod pace;
mod pool;
mod sequence;
mod visitor;

pub use cancel::Cancellation;
pub use census::Census;
pub use directory::Directory;
pub use options::{FollowPolicy, HandleRetention, Order, Threads, WalkOptions};
pub use pool::{WalkStats, walk};
pub use visitor::{Chunk, Descend, Entry, FanOut, Fault, Place, Visitor};

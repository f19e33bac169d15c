//! One tree of a volume, for callers that get their paths elsewhere: Spark's tasks, each with some entries of a plan.
//!
//! ```text
//!  path ─► the directory that the entry is in ─► one operation on a name in it
//!          reached anew by each call; no link on the way is followed
//!
//!  copy: source, open ─► temporary file ─► data ─► source examined again      install: attributes, close, time, rename
//! ```
//!
//! **Paths** are bytes, relative to the root: names joined by slashes, without empty names, `.` and `..`. The root
//! itself is the empty path. It may be a symbolic link, and is opened once; below it, no link is followed.
//!
//! **No directory stays open between calls**, except for the root and those of unfinished listings and copies. A handle
//! that was kept could belong to a directory that has been moved out of the tree, or that another one has replaced, and
//! deletions would hit what nobody planned. Reaching a directory anew is a single system call on Linux, however deep it
//! is ([`millstream_vfs::Dir::open_below`]).
//!
//! **What is mounted in the tree** is listed and written to, but [`Tree::remove`] removes nothing of it, however far
//! below the mount point. Listings say what belongs to a mount, so that a plan can leave it out.
//!
//! Many threads may use a tree at once.

mod at;
mod attributes;
mod copier;
mod copy;
mod entry;
mod error;
mod filling;
mod listing;
mod removal;
mod root;
mod staged;
#[cfg(test)]
mod tests;

pub use attributes::Wanted;
pub use copy::Copied;
pub use entry::Entry;
pub use error::TreeError;
pub use filling::{Filled, Take, Unfilled};
pub use listing::Listing;
pub use removal::Removed;
pub use root::{Carried, Special, Tree};
pub use staged::Staged;

pub use crate::transfer::file::SourceChange;
pub use crate::transfer::options::{Sparse, Verification};

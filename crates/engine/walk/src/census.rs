//! Counts what a traversal has found, to show how much is left.
//!
//! An entry is found when its directory lists it, and done when it has been visited. A large directory is read ahead of
//! the visits, so that more has been found than done, and whether a batch was the last one is asked before its visits.
//! The count is final once every directory has been read to its end and no entry still to be visited may be a
//! directory. Counting costs a look at the type of each entry, and nothing where there is no census.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_vfs::{DirentBatch, FileKind};

use crate::FollowPolicy;

/// Entries that have been found, and whether there may be more.
#[derive(Debug, Default)]
pub struct Census {
    found: AtomicU64,
    /// Directories not read to their end, and entries not visited that may be directories.
    unread: AtomicU64,
}

impl Census {
    /// Counts operands. The traversals that visit them follow, in one or in several.
    pub fn expect(&self, operands: usize) {
        self.found.fetch_add(operands as u64, Ordering::Relaxed);
        self.unread.fetch_add(operands as u64, Ordering::AcqRel);
    }

    /// How many entries have been found so far.
    pub fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// How many entries there are, if all have been found.
    pub fn total(&self) -> Option<u64> {
        // Entries are counted before the directory that lists them counts as read.
        (self.unread.load(Ordering::Acquire) == 0).then(|| self.found())
    }

    /// A directory has listed these entries.
    pub(crate) fn list(&self, batch: &DirentBatch, follow: FollowPolicy) {
        self.unread.fetch_add(possible_directories(batch, 0..batch.len(), follow), Ordering::AcqRel);
        self.found.fetch_add(batch.iter().count() as u64, Ordering::Relaxed);
    }

    /// Entries of a range have been visited, and `descended` directories are to be read.
    pub(crate) fn visited(
        &self,
        batch: &DirentBatch,
        range: Range<usize>,
        follow: FollowPolicy,
        descended: usize,
    ) {
        self.descend(descended);
        self.unread.fetch_sub(possible_directories(batch, range, follow), Ordering::AcqRel);
    }

    /// Directories are to be read.
    pub(crate) fn descend(&self, directories: usize) {
        self.unread.fetch_add(directories as u64, Ordering::AcqRel);
    }

    /// A directory has been read to its end, or will not be.
    pub(crate) fn read_to_end(&self) {
        self.unread.fetch_sub(1, Ordering::AcqRel);
    }
}

fn possible_directories(batch: &DirentBatch, range: Range<usize>, follow: FollowPolicy) -> u64 {
    let may_be_one = |kind| match kind {
        FileKind::Directory | FileKind::Unknown => true,
        FileKind::Symlink => follow == FollowPolicy::Always,
        _ => false,
    };
    batch.range(range).filter(|entry| may_be_one(entry.kind)).count() as u64
}

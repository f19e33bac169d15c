//! What a synchronization reports.

use millstream_vfs::Errno;

pub use crate::transfer::report::{Problem, Trouble};

/// Something that a user should know and that is no failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The destination directory was made.
    Created(&'a [u8]),
    /// A directory is skipped because directories are not synchronized.
    SkippedDirectory(&'a [u8]),
    /// Something is skipped because its kind is not synchronized.
    SkippedKind(&'a [u8]),
    /// It is gone from the source since it was listed.
    Vanished(&'a [u8]),
    /// It changed while it was copied: the copy has what had been read of it, and the next run copies it again.
    Grown(&'a [u8]),
    /// It changed while it was copied, twice: the destination stays as it was.
    Changing(&'a [u8]),
    /// Nothing is deleted, because something failed before.
    NothingDeleted,
    /// Nothing is deleted, because this source is an empty directory.
    EmptySource(&'a [u8]),
    /// Nothing is deleted, because the first path is the destination of one source and the second, inside it, that of
    /// another.
    Nested(&'a [u8], &'a [u8]),
    /// A directory of the destination stays because a source is in it.
    HoldsSource(&'a [u8]),
    /// So many entries are not deleted, because there are more than may be.
    DeletionsEnded(u64),
    /// Not all that was to be deleted is, because the list of it could not be kept in the directory for temporary
    /// files.
    DeletionsLost(Errno),
    /// An entry that the destination should not have appeared in the source after that was listed; it stays.
    Appeared(&'a [u8]),
    /// A directory of the destination is not removed because another file system is mounted on it.
    Mounted(&'a [u8]),
    /// A directory of the destination cannot be removed because of what is kept in it.
    NotEmptied(&'a [u8]),
}

/// Receives reports. Calls may come from several threads at once.
pub trait Sink: Sync {
    /// Whole lines about changes.
    fn lines(&self, lines: &[u8]);

    /// Something failed.
    fn problem(&self, problem: &Problem<'_>);

    /// Something to know.
    fn notice(&self, notice: &Notice<'_>);
}

//! Why a scan fails.

use millstream_vfs::Error;

/// A file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct ScanError {
    /// Which of the ranges, counted from 0, in the order in which they were given.
    pub range: usize,
    /// Why.
    pub cause: Cause,
}

/// Why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] Error),
    /// The data is not that of the checksum kept beside the file.
    #[error("checksum error at byte {offset}")]
    Checksum {
        /// Where the chunk begins.
        offset: u64,
    },
}

//! Why a scan fails.

use millstream_vfs::Error;

/// A file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct ScanError {
    /// Which of the ranges, counted from 0, in the order in which they were given.
    pub range: usize,
    /// What failed, and why.
    pub cause: Error,
}

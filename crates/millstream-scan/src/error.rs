//! Why a scan fails.

use millstream_vfs::{Errno, Error, Operation};

/// A file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct ScanError {
    /// Which of the ranges, counted from 0, in the order in which they were given.
    pub range: usize,
    /// Why.
    pub cause: Cause,
}

impl ScanError {
    pub(crate) fn interrupted(range: usize) -> Self {
        ScanError { range, cause: Cause::Interrupted }
    }

    /// Whether the caller wanted the scan to end.
    pub fn is_interrupted(&self) -> bool {
        self.cause == Cause::Interrupted
    }
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
    /// The caller wanted the scan to end.
    #[error("interrupted")]
    Interrupted,
}

impl Cause {
    /// Whether there is no file at the path, or none that may be opened: Java does not tell one from the other, nor does Spark.
    pub fn is_missing(&self) -> bool {
        match self {
            Cause::Volume(Error { errno: Errno::ISDIR, .. }) => true,
            Cause::Volume(error) if error.operation == Operation::OpenFile => {
                error.is_vanished() || matches!(error.errno, Errno::ACCESS | Errno::NOTDIR)
            }
            _ => false,
        }
    }
}

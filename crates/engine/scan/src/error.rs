//! Errors of a scan.

use millstream_codec::DecodeError;
use millstream_vfs::{Errno, Error, Operation};

/// A file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct ScanError {
    /// Index of the range, in the caller's order, from 0.
    pub range: usize,
    /// The cause.
    pub cause: Cause,
}

impl ScanError {
    pub(crate) fn interrupted(range: usize) -> Self {
        ScanError { range, cause: Cause::Interrupted }
    }

    /// Whether the caller ended the scan.
    pub fn is_interrupted(&self) -> bool {
        self.cause == Cause::Interrupted
    }
}

/// The reason a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] Error),
    /// The data does not match the checksum stored beside the file.
    #[error("checksum error at byte {offset}")]
    Checksum {
        /// Offset of the first byte of the chunk.
        offset: u64,
    },
    /// The file is compressed and cannot be decoded.
    #[error(transparent)]
    Damaged(Box<DecodeError>),
    /// The file is shorter than when it was listed: rows are gone, and where it is cut a row may have become another
    /// one. A compressed file counts as shortened even if what is left of it is well-formed.
    #[error(
        "the file has become shorter since it was listed: it has {size} bytes, but the bytes up to {end} \
         are needed; if the change was intended, list it again (REFRESH TABLE, spark.catalog.refreshByPath, \
         or a new DataFrame)"
    )]
    Shortened {
        /// Its size now.
        size: u64,
        /// The end of the range.
        end: u64,
    },
    /// The caller ended the scan.
    #[error("interrupted")]
    Interrupted,
}

impl Cause {
    /// Whether the path has no file, or none that may be opened. Neither Java nor Spark tells these two apart.
    pub fn is_missing(&self) -> bool {
        match self {
            Cause::Volume(Error { errno: Errno::ISDIR, .. }) => true,
            Cause::Volume(error) if error.operation == Operation::OpenFile => {
                error.is_vanished() || matches!(error.errno, Errno::ACCESS | Errno::NOTDIR | Errno::LOOP)
            }
            _ => false,
        }
    }
}

/// The reason a file cannot be joined to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// Its signature is that of a format that cannot be joined line by line.
    #[error("starts with the signature of {0}, which cannot be joined line by line")]
    Format(&'static str),
    /// Its first bytes are not text.
    #[error("has a NUL byte near its beginning, so it is not a text file")]
    Binary,
    /// It has bytes that text has not.
    #[error(
        "has control characters near its beginning that text files do not have, so it is not a text file"
    )]
    Control,
    /// Its lines belong together.
    #[error("begins like {0}, which is not a file of independent lines")]
    Document(&'static str),
    /// Its first line is no JSON value.
    #[error("its first line is not a complete JSON value, so its lines are not records")]
    NotJson,
    /// Its header differs from that of the first file.
    #[error("its header line differs from the header of earlier files")]
    Header,
    /// The header does not end within the first piece.
    #[error("its first line is too long to be a header")]
    LongHeader,
}

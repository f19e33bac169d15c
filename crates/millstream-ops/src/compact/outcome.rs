//! What became of a compaction.

use std::ffi::CString;
use std::fmt;

use millstream_vfs::Error;

/// What has been done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Outputs that are in their places.
    pub outputs: u64,
    /// Files that they took the place of.
    pub replaced: u64,
    /// Outputs that are not in their places: their inputs are as they were.
    pub left: Vec<Left>,
}

/// Inputs that were left as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Path of their directory.
    pub directory: CString,
    /// How many.
    pub inputs: u64,
    /// Why.
    pub reason: Reason,
}

/// Why inputs were left as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One of them is not what it was when it was read.
    Changed(CString),
    /// One of them is a symbolic link.
    Link(CString),
    /// The place of the output is taken.
    Taken(CString),
    /// The directory cannot be changed, or is not there any more.
    Failed(Error),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Changed(name) => write!(f, "{} has changed since it was read", name.to_string_lossy()),
            Reason::Link(name) => write!(f, "{} is a symbolic link", name.to_string_lossy()),
            Reason::Taken(name) => write!(f, "there is a {} already", name.to_string_lossy()),
            Reason::Failed(error) => error.fmt(f),
        }
    }
}

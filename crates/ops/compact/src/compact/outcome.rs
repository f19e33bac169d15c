//! The result of a compaction.

use std::ffi::CString;
use std::fmt;

use millstream_vfs::Error;

/// The result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Number of outputs in their destination directories.
    pub outputs: u64,
    /// Number of files that they replaced.
    pub replaced: u64,
    /// Outputs that were discarded; their inputs are unchanged.
    pub left: Vec<Left>,
}

/// Inputs that were left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Path of their directory.
    pub directory: CString,
    /// Number of inputs.
    pub inputs: u64,
    /// The reason.
    pub reason: Reason,
}

/// Why inputs were left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One of them has changed since it was read.
    Changed(CString),
    /// One of them is a symbolic link.
    Link(CString),
    /// One of them is immutable or append-only.
    Immovable(CString),
    /// One of them is another user's, in a directory in which only owners remove files.
    Sticky(CString),
    /// The name of the output is taken.
    Taken(CString),
    /// The directory cannot be changed, or no longer exists.
    Failed(Error),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Changed(name) => write!(f, "{} has changed since it was read", name.to_string_lossy()),
            Reason::Link(name) => write!(f, "{} is a symbolic link", name.to_string_lossy()),
            Reason::Immovable(name) => {
                write!(f, "{} is immutable or append-only (chattr)", name.to_string_lossy())
            }
            Reason::Sticky(name) => write!(
                f,
                "{} belongs to another user, in a directory with the sticky bit, where only the file's \
                 owner, the directory's owner and root may replace it; run the command as one of them, or \
                 compact into a new tree",
                name.to_string_lossy()
            ),
            Reason::Taken(name) => write!(f, "{} already exists", name.to_string_lossy()),
            Reason::Failed(error) => error.fmt(f),
        }
    }
}

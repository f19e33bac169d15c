//! Errors of volumes: the operation and its cause. The traversal, which knows the path, adds it.

use std::fmt;

use rustix::io::Errno;

/// Result of a volume's operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening a directory.
    OpenDir,
    /// Reading a directory's entries.
    ReadDir,
    /// Reading attributes.
    Stat,
    /// Reading a symbolic link.
    ReadLink,
    /// Listing extended attributes.
    ListXattr,
    /// Reading an extended attribute.
    GetXattr,
    /// Removing a file or directory.
    Remove,
    /// Asking what the permissions allow.
    CheckAccess,
    /// Opening a file that exists.
    OpenFile,
    /// Creating a file.
    CreateFile,
    /// Creating a directory.
    CreateDir,
    /// Creating a symbolic link.
    CreateSymlink,
    /// Creating a pipe, socket or device.
    CreateNode,
    /// Creating a hard link.
    HardLink,
    /// Renaming.
    Rename,
    /// Reading data.
    Read,
    /// Writing data.
    Write,
    /// Sharing data with another file.
    Clone,
    /// Setting an extended attribute.
    SetXattr,
    /// Setting times.
    SetTimes,
    /// Setting permission bits.
    SetMode,
    /// Setting owner or group.
    SetOwner,
    /// Closing a file.
    Close,
    /// Making written data durable.
    Sync,
    /// Locking a file.
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::OpenDir => "open directory",
            Operation::ReadDir => "read directory",
            Operation::Stat => "stat",
            Operation::ReadLink => "read symbolic link",
            Operation::ListXattr => "list extended attributes",
            Operation::GetXattr => "read extended attribute",
            Operation::Remove => "remove",
            Operation::CheckAccess => "check access",
            Operation::OpenFile => "open",
            Operation::CreateFile => "create file",
            Operation::CreateDir => "create directory",
            Operation::CreateSymlink => "create symbolic link",
            Operation::CreateNode => "create special file",
            Operation::HardLink => "create hard link",
            Operation::Rename => "rename",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Clone => "clone",
            Operation::SetXattr => "set extended attribute",
            Operation::SetTimes => "set times",
            Operation::SetMode => "change mode",
            Operation::SetOwner => "change owner",
            Operation::Close => "close",
            Operation::Sync => "sync",
            Operation::Lock => "lock",
        })
    }
}

/// The text of an error number, as from `strerror(3)`.
pub fn errno_text(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    // Rust appends the number.
    text.rfind(" (os error ").map_or(text.clone(), |at| text[..at].to_owned())
}

/// A failed operation of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {}", errno_text(*.errno))]
pub struct Error {
    /// The operation that failed.
    pub operation: Operation,
    /// The cause, as the POSIX error number nearest to the volume's own error.
    pub errno: Errno,
}

impl Error {
    /// Pairs an operation with its cause.
    pub fn new(operation: Operation, errno: Errno) -> Self {
        Error { operation, errno }
    }

    /// Whether the entry has vanished since it was listed, which a traversal of a live tree must expect.
    pub fn is_vanished(&self) -> bool {
        matches!(self.errno, Errno::NOENT | Errno::STALE)
    }

    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self.errno, Errno::INTR | Errno::AGAIN | Errno::TIMEDOUT | Errno::NFILE | Errno::MFILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_what_and_why() {
        let error = Error::new(Operation::OpenDir, Errno::ACCESS);
        assert_eq!(error.to_string(), "open directory: Permission denied");
        assert_eq!(errno_text(Errno::IO), "Input/output error");
    }
}

//! Errors, with the path that they are about.

use std::fmt::Write;

use millstream_vfs::{Errno, Error};

/// Why something could not be done in a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The volume failed.
    #[error("{}: {error}", readable(path))]
    Volume {
        /// The path below the root.
        path: Vec<u8>,
        /// The operation and its cause.
        error: Error,
    },
    /// A directory is not removed, because a file system or a part of one is mounted on or below it.
    #[error("{}: not removed, because something is mounted there", readable(path))]
    Mounted {
        /// The path of the mount point.
        path: Vec<u8>,
    },
    /// A copy that was read again is not like its source.
    #[error("{}: the copy differs from its source", readable(path))]
    Differs {
        /// The path below the root.
        path: Vec<u8>,
    },
}

impl TreeError {
    /// The volume's error as one about `path`.
    pub(super) fn of(path: &[u8]) -> impl Fn(Error) -> Self {
        move |error| TreeError::Volume { path: path.to_owned(), error }
    }

    /// The error number, if a call has failed.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            TreeError::Volume { error, .. } => Some(error.errno),
            TreeError::Mounted { .. } | TreeError::Differs { .. } => None,
        }
    }
}

/// A path as text for people; bytes that are not UTF-8 become `\xff`.
fn readable(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Text takes any other.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use millstream_vfs::Operation;

    use super::*;

    #[test]
    fn names_that_are_not_utf8_can_be_read() {
        let error = TreeError::of(b"d\xff/\xc3\xbc\xc3")(Error::new(Operation::OpenFile, Errno::ACCESS));
        assert_eq!(error.to_string(), "d\\xff/\u{fc}\\xc3: open: Permission denied");
        assert_eq!(error.errno(), Some(Errno::ACCESS));
    }
}

//! A path, taken apart.

use std::ffi::CString;

use millstream_vfs::{Errno, Error, Operation};

use super::error::TreeError;

/// The directory that an entry is in, and its name there.
#[derive(Clone, Debug)]
pub(super) struct At {
    /// Path of the directory; empty for the root.
    pub(super) parent: CString,
    pub(super) name: CString,
}

impl At {
    /// The entry at a path that is not the root.
    ///
    /// # Errors
    /// `EINVAL` if a name of the path is empty, `.` or `..`, or has a NUL.
    pub(super) fn of(path: &[u8]) -> Result<Self, TreeError> {
        let invalid = || TreeError::of(path)(Error::new(Operation::Stat, Errno::INVAL));
        if path.split(|&b| b == b'/').any(|name| matches!(name, b"" | b"." | b"..")) {
            return Err(invalid());
        }
        let (parent, name) = match path.iter().rposition(|&b| b == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        let part = |bytes: &[u8]| CString::new(bytes).map_err(|_| invalid());
        Ok(At { parent: part(parent)?, name: part(name)? })
    }

    /// The whole path.
    pub(super) fn whole(&self) -> CString {
        let slash = if self.parent.is_empty() { &b""[..] } else { b"/" };
        let whole = [self.parent.to_bytes(), slash, self.name.to_bytes()].concat();
        // Neither part has a NUL.
        CString::new(whole).unwrap_or_default()
    }
}

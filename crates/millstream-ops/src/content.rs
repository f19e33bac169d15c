//! The content of open files as readers, and what a new file has in common with the one that it is made from.

use std::ffi::CStr;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_codec::DecodeError;
use millstream_vfs::{At, Errno, Error, File, Metadata, Operation, Result};

/// The attribute that is an access control list.
const ACCESS_LIST: &CStr = c"system.posix_acl_access";

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The work is done.
    Real,
    /// What would be done is reported.
    DryRun,
}

/// What failed where a decoder reads [`Content`]: the data, or else the volume.
pub(crate) fn damage(error: io::Error) -> std::result::Result<Box<DecodeError>, Error> {
    error.downcast().map(Box::new).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        Error::new(Operation::Read, errno)
    })
}

/// Counts bytes of a file that have been read.
#[derive(Debug, Default)]
pub(crate) struct Counted<'a> {
    /// Those of all files.
    pub(crate) all: Option<&'a AtomicU64>,
    pub(crate) own: AtomicU64,
}

/// Reads a file from an offset on.
#[derive(Debug)]
pub(crate) struct Content<'a, F> {
    pub(crate) file: &'a F,
    pub(crate) offset: u64,
    pub(crate) counted: &'a Counted<'a>,
}

impl<F: File> Read for Content<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer, At::Offset(self.offset));
        let count = read.map_err(|error| io::Error::from(error.errno))?;
        self.offset += count as u64;
        for bytes in self.counted.all.into_iter().chain([&self.counted.own]) {
            bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// Gives a new file, which is empty, the owner and the permissions of another one with this metadata, as far as it may. Nobody gets
/// permissions that he does not have on the other one.
///
/// # Errors
/// If permissions cannot be set.
pub(crate) fn take_after<F: File>(file: &F, other: &F, metadata: &Metadata) -> Result<()> {
    let has_group = file.set_owner(Some(metadata.uid), Some(metadata.gid)).is_ok()
        || file.set_owner(None, Some(metadata.gid)).is_ok();
    // The members of another group may not read the other file.
    let without_group = metadata.mode & 0o707;
    file.set_mode(if has_group { metadata.mode & 0o777 } else { without_group })?;
    // With a list, the permissions of the group are only a bound.
    match other.xattr(ACCESS_LIST) {
        Ok(list) if file.set_xattr(ACCESS_LIST, &list).is_err() => file.set_mode(without_group),
        _ => Ok(()),
    }
}

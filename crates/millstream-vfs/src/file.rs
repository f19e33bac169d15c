//! Open files: their data and their attributes.

use std::ffi::CStr;
use std::fmt::Debug;

use crate::{Fields, Metadata, Result, Timestamp};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading; opening a pipe does not wait for a writer.
    Read,
    /// Reading, waiting for the writer if it is a pipe.
    ReadStream,
    /// Writing over what is there; opening a pipe that nobody reads fails.
    Write,
    /// Writing, after cutting what is there to nothing; opening a pipe that nobody reads fails.
    Truncate,
    /// Writing, waiting for the reader if it is a pipe.
    WriteStream,
}

/// Where in a file to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At this byte.
    Offset(u64),
    /// Where the last call at this place ended: for pipes and devices, which know no offsets.
    Cursor,
}

/// An open file. Dropping it closes it. Calls that take an offset may run on many threads at once.
pub trait File: Debug + Send + Sync + Sized + 'static {
    /// Metadata of the file.
    fn metadata(&self, fields: Fields) -> Result<Metadata>;

    /// Reads into `buffer`; how many bytes, 0 at the end. Fewer than fit are no sign of the end.
    fn read(&self, buffer: &mut [u8], at: At) -> Result<usize>;

    /// Writes all of `bytes`.
    fn write_all(&self, bytes: &[u8], at: At) -> Result<()>;

    /// Has the volume copy up to `length` bytes at `offset` of `source` to the same place here; how many bytes it did,
    /// 0 at the end of `source`.
    ///
    /// # Errors
    /// `EXDEV`, `EOPNOTSUPP`, `EINVAL` and `ENOSYS` where the volume cannot.
    fn copy_range(&self, source: &Self, offset: u64, length: u64) -> Result<u64>;

    /// Makes this file share the data of `source`.
    ///
    /// # Errors
    /// `EXDEV`, `EOPNOTSUPP`, `EINVAL` and `ENOTTY` where the volume cannot.
    fn clone_from(&self, source: &Self) -> Result<()>;

    /// Where data begins at or after `offset`; `None` if there is none.
    fn next_data(&self, offset: u64) -> Result<Option<u64>>;

    /// Where the data at `offset` ends.
    fn next_hole(&self, offset: u64) -> Result<u64>;

    /// Cuts the file, or extends it by a hole.
    fn set_len(&self, length: u64) -> Result<()>;

    /// Takes space for `length` bytes without changing the file's length.
    fn allocate(&self, length: u64) -> Result<()>;

    /// Returns when the data, or the entries of a directory, will outlive a failure of the machine.
    fn sync(&self) -> Result<()>;

    /// The same for everything on the volume that holds the file.
    fn sync_volume(&self) -> Result<()>;

    /// Locks the file against others who do so, until it is closed.
    ///
    /// # Errors
    /// `EAGAIN` if it is locked.
    fn try_lock(&self) -> Result<()>;

    /// The names of the extended attributes, each ended by a NUL, appended to `names`.
    fn list_xattr(&self, names: &mut Vec<u8>) -> Result<()>;

    /// The value of an extended attribute.
    fn xattr(&self, name: &CStr) -> Result<Vec<u8>>;

    /// Sets an extended attribute.
    fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()>;

    /// Removes an extended attribute.
    fn remove_xattr(&self, name: &CStr) -> Result<()>;

    /// Sets the permission bits.
    fn set_mode(&self, mode: u32) -> Result<()>;

    /// Sets owner and group; `None` keeps one.
    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()>;

    /// Sets the times of the last access and the last change of the contents.
    fn set_times(&self, atime: Timestamp, mtime: Timestamp) -> Result<()>;
}

//! Open files: their data and their attributes.

use std::ffi::CStr;
use std::fmt::Debug;

use crate::{Fields, Metadata, Result, Timestamp};

/// The purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading. Opening a pipe does not wait for a writer.
    Read,
    /// Reading. Opening a pipe waits for a writer.
    ReadStream,
    /// Writing over the present contents. Opening a pipe without a reader fails.
    Write,
    /// Writing after truncation. Opening a pipe without a reader fails.
    Truncate,
    /// Writing. Opening a pipe waits for a reader.
    WriteStream,
}

/// The position at which to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At this byte.
    Offset(u64),
    /// Where the last such call ended: for pipes and devices, which have no offsets.
    Cursor,
}

/// An open file. Dropping it closes it. Calls that take an offset may run on many threads at once.
pub trait File: Debug + Send + Sync + Sized + 'static {
    /// Metadata of the file.
    fn metadata(&self, fields: Fields) -> Result<Metadata>;

    /// Reads into `buffer`. Returns the number of bytes, 0 at the end of the file; a short read does not mean the end.
    fn read(&self, buffer: &mut [u8], at: At) -> Result<usize>;

    /// Writes all of `bytes`.
    fn write_all(&self, bytes: &[u8], at: At) -> Result<()>;

    /// Has the volume copy up to `length` bytes at `offset` of `source` to the same offset of this file. Returns the
    /// number of bytes copied, 0 at the end of `source`.
    ///
    /// # Errors
    /// `EXDEV`, `EOPNOTSUPP`, `EINVAL` and `ENOSYS` if the volume does not support it.
    fn copy_range(&self, source: &Self, offset: u64, length: u64) -> Result<u64>;

    /// Makes this file share the data of `source`.
    ///
    /// # Errors
    /// `EXDEV`, `EOPNOTSUPP`, `EINVAL` and `ENOTTY` if the volume does not support it.
    fn clone_from(&self, source: &Self) -> Result<()>;

    /// Offset of the next data at or after `offset`; `None` if there is none.
    fn next_data(&self, offset: u64) -> Result<Option<u64>>;

    /// Offset of the end of the data at `offset`.
    fn next_hole(&self, offset: u64) -> Result<u64>;

    /// Truncates the file, or extends it by a hole.
    fn set_len(&self, length: u64) -> Result<()>;

    /// Reserves space for `length` bytes without changing the file's length.
    fn allocate(&self, length: u64) -> Result<()>;

    /// Hands what was written to the volume, as closing the file does, whose errors nobody sees. Only then some
    /// volumes, such as NFS and FUSE, tell that there is no room.
    fn flush(&self) -> Result<()>;

    /// Closes the file, and tells what [`File::flush`] would.
    fn close(self) -> Result<()>;

    /// Makes the data, or the entries of a directory, durable before it returns.
    fn sync(&self) -> Result<()>;

    /// Makes everything on the file's volume durable before it returns.
    fn sync_volume(&self) -> Result<()>;

    /// Takes an exclusive advisory lock on the file, until it is closed.
    ///
    /// # Errors
    /// `EAGAIN` if it is locked.
    fn try_lock(&self) -> Result<()>;

    /// Appends the names of the extended attributes to `names`, each terminated by NUL.
    fn list_xattr(&self, names: &mut Vec<u8>) -> Result<()>;

    /// The value of an extended attribute.
    fn xattr(&self, name: &CStr) -> Result<Vec<u8>>;

    /// Sets an extended attribute.
    fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()>;

    /// Removes an extended attribute.
    fn remove_xattr(&self, name: &CStr) -> Result<()>;

    /// Sets the permission bits.
    fn set_mode(&self, mode: u32) -> Result<()>;

    /// Sets owner and group; `None` keeps the present one.
    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()>;

    /// Sets the times of the last access and the last change of the contents.
    fn set_times(&self, atime: Timestamp, mtime: Timestamp) -> Result<()>;
}

//! What a file system looks like to the engine.
//!
//! A [`Volume`] hands out directory handles ([`Dir`]); every operation is relative to one and takes a single name.
//! Nothing below the operands is addressed by path, which is what makes a traversal safe against directories that are
//! swapped for symbolic links while it runs, and cheap on volumes whose own protocol is made of handles (NFS).
//!
//! ```text
//! Volume --base--> Dir --open_dir(name)--> Dir ...
//!                   |-- read_entries(cursor) --> DirentBatch: packed dirents, handed to other threads whole
//!                   |-- metadata(name, fields) --> Metadata: only the fields asked for
//! ```
//!
//! All calls block; concurrency is the caller's number of threads. Calls on one handle may run on many threads at once,
//! except that a cursor belongs to one reader at a time.
//!
//! `unsafe` occurs in [`posix`] only, for the system calls that `rustix` does not wrap.

#[cfg(feature = "contract")]
pub mod contract;
mod dirent;
mod error;
mod file;
mod metadata;
pub mod posix;

use std::ffi::CStr;
use std::fmt::Debug;

pub use dirent::{Dirent, DirentBatch, Iter as DirentIter, fuzz_records};
pub use error::{Error, Operation, Result, errno_text};
pub use file::{Access, At, File};
pub use metadata::{Fields, FileKind, Metadata, Timestamp};
pub use posix::{CpuTimes, PosixVolume, RunQueueDelay, ThreadUsage, process_cpu_time, thread_usage};
pub use rustix::io::Errno;

/// Whether an operation acts on a symbolic link or on what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymlinkBehavior {
    /// Resolve the last component.
    Follow,
    /// Act on the link itself; opening one as a directory fails.
    NoFollow,
}

/// What [`Dir::remove`] expects to find under the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveKind {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// The extended attribute that holds the security context.
pub const SECURITY_CONTEXT: &CStr = c"security.selinux";

/// A file that holds no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A named pipe.
    Fifo,
    /// A socket that nobody listens to.
    Socket,
    /// A character device of this number.
    CharDevice(u64),
    /// A block device of this number.
    BlockDevice(u64),
}

/// An owner and a group to be set; [`None`] leaves what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

/// Whether a directory has more entries after a call of [`Dir::read_entries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// The batch holds entries and there may be more.
    More,
    /// The batch is empty: every entry has been delivered.
    End,
}

/// A file system, or a way to reach one.
pub trait Volume: Debug + Send + Sync + 'static {
    /// An open directory.
    type Dir: Dir;

    /// The handle against which operands are resolved. Names given to it may be paths, absolute or relative; names
    /// given to every other handle are single components.
    fn base(&self) -> Self::Dir;

    /// How many directory handles may be open at once.
    fn max_open_dirs(&self) -> usize;
}

/// An open directory. Dropping it closes it.
pub trait Dir: Debug + Send + Sync + Sized + 'static {
    /// Position of a reader in the directory.
    type Cursor: Debug + Default + Send;
    /// An open file.
    type File: File;

    /// Opens the directory `name` in this one.
    ///
    /// # Errors
    /// `ENOTDIR` if it is no directory, `ELOOP` or `ENOTDIR` if it is a symbolic link that must not be followed.
    fn open_dir(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self>;

    /// Opens the directory `name` in this one for the names in it alone, which takes no permission to list them. Where
    /// that is missing, [`Dir::read_entries`] and [`Dir::as_file`] of the handle fail.
    ///
    /// # Errors
    /// Those of [`Dir::open_dir`], but for that permission.
    fn open_dir_for_names(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self>;

    /// Opens the directory that holds this one, wherever that is by now.
    fn open_parent(&self) -> Result<Self>;

    /// Metadata of `name`; at least `fields` are filled, [`Metadata::fields`] tells which.
    fn metadata(&self, name: &CStr, symlinks: SymlinkBehavior, fields: Fields) -> Result<Metadata>;

    /// Device and inode number of this directory, which never change while it is open: no server is asked for them.
    fn identity(&self) -> Result<(u64, u64)>;

    /// Metadata of this directory.
    fn own_metadata(&self, fields: Fields) -> Result<Metadata>;

    /// Replaces the contents of `batch` with the next entries, at most `batch.capacity()` bytes of them, without `.`
    /// and `..` unless the batch keeps them. The order is the volume's. One reader at a time.
    fn read_entries(&self, cursor: &mut Self::Cursor, batch: &mut DirentBatch) -> Result<ReadState>;

    /// The target of the symbolic link `name`, byte for byte.
    fn read_link(&self, name: &CStr) -> Result<Vec<u8>>;

    /// The names of the extended attributes of `name` (of the link itself, if it is one), each ended by a NUL, appended
    /// to `names`. An access control list shows as `system.posix_acl_access`.
    fn list_xattr(&self, name: &CStr, names: &mut Vec<u8>) -> Result<()>;

    /// The value of the extended attribute `attribute` of `name`.
    ///
    /// # Errors
    /// `ENODATA` if it has none of that name.
    fn get_xattr(&self, name: &CStr, attribute: &CStr, symlinks: SymlinkBehavior) -> Result<Vec<u8>>;

    /// Sets an extended attribute of `name`, never following it.
    fn set_xattr(&self, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()>;

    /// Removes an extended attribute of `name`, never following it.
    ///
    /// # Errors
    /// `ENODATA` if it has none of that name; of an access control list that is no error.
    fn remove_xattr(&self, name: &CStr, attribute: &CStr) -> Result<()>;

    /// Removes `name`, never following it.
    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()>;

    /// Opens `name`, which exists.
    ///
    /// # Errors
    /// `ELOOP` if it is a symbolic link that must not be followed.
    fn open_file(&self, name: &CStr, access: Access, symlinks: SymlinkBehavior) -> Result<Self::File>;

    /// Creates the file `name`, which does not exist, for reading and writing. The mode is that of `open(2)`: what the
    /// process masks, or the default of the directory's access control list, applies.
    fn create_file(&self, name: &CStr, mode: u32) -> Result<Self::File>;

    /// This directory as an open file, for its attributes.
    fn as_file(&self) -> Result<Self::File>;

    /// Creates the directory `name`; of the mode as for [`Dir::create_file`].
    fn create_dir(&self, name: &CStr, mode: u32) -> Result<()>;

    /// Creates the symbolic link `name` that leads to `target`.
    fn create_symlink(&self, name: &CStr, target: &CStr) -> Result<()>;

    /// Creates the node `name`; of the mode as for [`Dir::create_file`].
    fn create_node(&self, name: &CStr, kind: NodeKind, mode: u32) -> Result<()>;

    /// Creates `new_name` in `other` as another link of `name`, of its target if that is a symbolic link to follow.
    fn hard_link(&self, name: &CStr, symlinks: SymlinkBehavior, other: &Self, new_name: &CStr) -> Result<()>;

    /// Renames `name` to `new_name` in `other`, replacing what is there.
    fn rename(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()>;

    /// Gives `name` and `other_name` in `other`, which both exist, each other's names, at once.
    ///
    /// # Errors
    /// `EINVAL` or `ENOSYS` where the volume cannot, `EINVAL` also if one is below the other.
    fn exchange(&self, name: &CStr, other: &Self, other_name: &CStr) -> Result<()>;

    /// Sets the times of `name`, never following it.
    fn set_times(&self, name: &CStr, atime: Timestamp, mtime: Timestamp) -> Result<()>;

    /// Whether the effective user may write `name`, as its permissions say.
    ///
    /// # Errors
    /// If they do not tell; `EROFS` on a volume that nobody can write.
    fn is_writable(&self, name: &CStr) -> Result<bool>;

    /// Sets the permission bits of `name`, those of `0o7777`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it is a symbolic link that must not be followed.
    fn set_mode(&self, name: &CStr, mode: u32, symlinks: SymlinkBehavior) -> Result<()>;

    /// Sets owner and group of `name`, of the link itself if it is one that must not be followed. The system takes
    /// set-user-ID and set-group-ID bits and capabilities away from a file that it does this to, even if nothing changes.
    fn set_owner(&self, name: &CStr, owner: Ownership, symlinks: SymlinkBehavior) -> Result<()>;
}

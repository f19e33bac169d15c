#![forbid(unsafe_code)]
//! The engine's interface to file systems.
//!
//! A [`Volume`] hands out directory handles ([`Dir`]); every operation is relative to a handle and takes a single name.
//! Nothing below the operands is addressed by path. This keeps a traversal safe if a directory is swapped for a
//! symbolic link while it runs, and cheap on volumes whose own protocol uses handles (NFS).
//!
//! ```text
//! Volume --base--> Dir --open_dir(name)--> Dir ...
//!                   |-- read_entries(cursor) --> DirentBatch: packed dirents, passed to other threads as a whole
//!                   |-- metadata(name, fields) --> Metadata: only the fields asked for
//! ```
//!
//! All calls block; the caller chooses the concurrency by its number of threads. Many threads may use one handle at
//! once, but a cursor belongs to one reader at a time.
//!
//! The traits have no default methods: whoever implements or forwards them cannot forget one. Where volumes differ, a
//! traversal or an operation asks for [`Capabilities`], never for the kind of volume.

mod capabilities;
#[cfg(feature = "contract")]
pub mod contract;
mod dirent;
mod error;
mod file;
mod metadata;

use std::ffi::{CStr, CString};
use std::fmt::Debug;

pub use capabilities::Capabilities;
#[cfg(feature = "fuzzing")]
pub use dirent::fuzz_records;
pub use dirent::{Dirent, DirentBatch, Iter as DirentIter};
pub use error::{Error, Operation, Result, errno_text};
pub use file::{Access, At, File};
pub use metadata::{Fields, FileKind, Metadata, Timestamp};
pub use rustix::io::Errno;

/// Whether an operation acts on a symbolic link or on what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymlinkBehavior {
    /// Resolve the last component.
    Follow,
    /// Act on the link itself; opening one as a directory fails.
    NoFollow,
}

/// Whether a path may lead into what is mounted on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountBehavior {
    /// It may.
    Enter,
    /// It may not.
    Refuse,
}

/// The kind of file that [`Dir::remove`] expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveKind {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// The extended attribute that holds the security context.
pub const SECURITY_CONTEXT: &CStr = c"security.selinux";

/// The extended attribute that holds a program's file capabilities.
pub const CAPABILITIES: &CStr = c"security.capability";

/// A special file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A named pipe.
    Fifo,
    /// A socket without a listener.
    Socket,
    /// A character device of this number.
    CharDevice(u64),
    /// A block device of this number.
    BlockDevice(u64),
}

/// An owner and a group to set; [`None`] keeps the present one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

/// What a file will be that is written under another name first.
#[derive(Clone, Copy, Debug)]
pub struct Intended<'a> {
    /// The name that it will get.
    pub name: &'a CStr,
    /// About how many bytes it will have.
    pub size: u64,
    /// The time of its last change that it will be given; [`None`] if it gets none.
    pub mtime: Option<Timestamp>,
}

/// A kind of access that a file's permissions grant or deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Read the file, or list the directory.
    Read,
    /// Write the file, or change the directory's entries.
    Write,
    /// Execute the file, or search the directory.
    Execute,
}

/// One of the process's user IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The user whose rights the process has.
    Effective,
    /// The user who started the process.
    Real,
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

    /// The handle for resolving operands. It accepts paths, absolute or relative; every other handle accepts only
    /// single components.
    fn base(&self) -> Self::Dir;

    /// How many directory handles may be open at once.
    fn max_open_dirs(&self) -> usize;

    /// What can be done everywhere on it.
    fn capabilities(&self) -> Capabilities;
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
    /// `ENOTDIR` if it is not a directory, `ELOOP` or `ENOTDIR` if it is a symbolic link that must not be followed.
    fn open_dir(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self>;

    /// Opens the directory `name` in this one even without permission to list it, to reach names in it. Without that
    /// permission, [`Dir::read_entries`] and [`Dir::as_file`] of the handle fail.
    ///
    /// # Errors
    /// Those of [`Dir::open_dir`], except for a missing permission to list.
    fn open_dir_for_names(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self>;

    /// Opens the directory at `path`, a sequence of names with slashes between them, to reach names in it. No name of
    /// the path is followed if it is a symbolic link. [`Dir::read_entries`] and [`Dir::as_file`] of the handle may
    /// fail, as those of [`Dir::open_dir_for_names`].
    ///
    /// # Errors
    /// `ENOTDIR` or `ELOOP` if a name is a symbolic link or another file that is no directory, `EXDEV` if something is
    /// mounted on one and must not be entered.
    fn open_below(&self, path: &CStr, mounts: MountBehavior) -> Result<Self>;

    /// Opens the directory that holds this one now.
    fn open_parent(&self) -> Result<Self>;

    /// Metadata of `name` with at least `fields`; [`Metadata::fields`] lists the fields that are filled.
    fn metadata(&self, name: &CStr, symlinks: SymlinkBehavior, fields: Fields) -> Result<Metadata>;

    /// The device that the contents of the directory `name` are on. Unlike [`Dir::metadata`], this mounts what the
    /// kernel mounts when a directory is entered: submounts of NFSv4, automounts.
    fn device_within(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<u64>;

    /// Device and inode number of this directory. They cannot change while it is open, so no server is asked.
    fn identity(&self) -> Result<(u64, u64)>;

    /// Metadata of this directory.
    fn own_metadata(&self, fields: Fields) -> Result<Metadata>;

    /// Replaces the contents of `batch` with the next entries, at most `batch.capacity()` bytes of them, in the
    /// volume's order. `.` and `..` are omitted unless the batch keeps them. One reader at a time.
    fn read_entries(&self, cursor: &mut Self::Cursor, batch: &mut DirentBatch) -> Result<ReadState>;

    /// The target of the symbolic link `name`, byte for byte.
    fn read_link(&self, name: &CStr) -> Result<Vec<u8>>;

    /// Appends the names of the extended attributes of `name` to `names`, each terminated by NUL. Never follows a link.
    /// An access control list appears as `system.posix_acl_access`.
    fn list_xattr(&self, name: &CStr, names: &mut Vec<u8>) -> Result<()>;

    /// The value of the extended attribute `attribute` of `name`.
    ///
    /// # Errors
    /// `ENODATA` if there is no such attribute.
    fn get_xattr(&self, name: &CStr, attribute: &CStr, symlinks: SymlinkBehavior) -> Result<Vec<u8>>;

    /// Sets an extended attribute of `name`, never following it.
    fn set_xattr(&self, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()>;

    /// Removes an extended attribute of `name`, never following it.
    ///
    /// # Errors
    /// `ENODATA` if there is no such attribute, unless it is an access control list.
    fn remove_xattr(&self, name: &CStr, attribute: &CStr) -> Result<()>;

    /// Removes `name`, never following it.
    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()>;

    /// Opens `name`, which exists.
    ///
    /// # Errors
    /// `ELOOP` if it is a symbolic link that must not be followed.
    fn open_file(&self, name: &CStr, access: Access, symlinks: SymlinkBehavior) -> Result<Self::File>;

    /// Creates the file `name`, which must not exist, for reading and writing. As with `open(2)`, the process's mask or
    /// the directory's default access control list applies to the mode.
    fn create_file(&self, name: &CStr, mode: u32) -> Result<Self::File>;

    /// [`Dir::create_file`] for a file that gets another name in this directory by [`Dir::rename`] when it is complete.
    /// A volume that cannot rename writes it under that name then.
    fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<Self::File>;

    /// Says that everything is done in this directory, which the process has made. On a volume where a directory exists
    /// by what is in it, an empty one becomes visible then.
    fn complete(&self) -> Result<()>;

    /// What can be done where `path` leads to, whether something is there or not; `.` is this directory.
    fn capabilities(&self, path: &CStr) -> Capabilities;

    /// This directory again, for the removal of a directory: if a file has the same name, too, a name means the
    /// directory.
    fn beside_files(&self) -> Result<Self>;

    /// This directory as an open file, to access its attributes.
    fn as_file(&self) -> Result<Self::File>;

    /// Creates the directory `name`; the mode is as for [`Dir::create_file`].
    fn create_dir(&self, name: &CStr, mode: u32) -> Result<()>;

    /// Creates the symbolic link `name` that leads to `target`.
    fn create_symlink(&self, name: &CStr, target: &CStr) -> Result<()>;

    /// Creates the special file `name`; the mode is as for [`Dir::create_file`].
    fn create_node(&self, name: &CStr, kind: NodeKind, mode: u32) -> Result<()>;

    /// Creates `new_name` in `other` as another link of `name`, or of its target if it is a symbolic link to follow.
    fn hard_link(&self, name: &CStr, symlinks: SymlinkBehavior, other: &Self, new_name: &CStr) -> Result<()>;

    /// Renames `name` to `new_name` in `other`, unless there is something.
    ///
    /// # Errors
    /// `EEXIST` if there is; `EINVAL` or `ENOSYS` if the volume does not support it.
    fn rename_new(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()>;

    /// Renames `name` to `new_name` in `other`, replacing an existing file.
    fn rename(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()>;

    /// Exchanges `name` and `other_name` in `other` atomically. Both must exist.
    ///
    /// # Errors
    /// `EINVAL` or `ENOSYS` if the volume does not support it, `EINVAL` also if one is below the other.
    fn exchange(&self, name: &CStr, other: &Self, other_name: &CStr) -> Result<()>;

    /// Sets the times of `name`, never following it.
    fn set_times(&self, name: &CStr, atime: Timestamp, mtime: Timestamp) -> Result<()>;

    /// Whether the permissions of `name`, or of its target if it is a symbolic link, allow `user` this access.
    ///
    /// # Errors
    /// If that cannot be determined; `EROFS` on a read-only volume.
    fn permits(&self, name: &CStr, permission: Permission, user: User) -> Result<bool>;

    /// A path by which a child process reaches this directory while it is open, even after it has moved: commands can
    /// be started in it.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if other processes cannot reach the volume.
    fn path_for_children(&self) -> Result<CString>;

    /// Sets the permission bits (`0o7777`) of `name`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it is a symbolic link that must not be followed.
    fn set_mode(&self, name: &CStr, mode: u32, symlinks: SymlinkBehavior) -> Result<()>;

    /// Sets owner and group of `name`, or of the link itself if it is one that must not be followed. The system then
    /// clears set-user-ID and set-group-ID bits and capabilities of the file, even if nothing changes.
    fn set_owner(&self, name: &CStr, owner: Ownership, symlinks: SymlinkBehavior) -> Result<()>;
}

/// Whether the effective user may write `name` in `dir`: see [`Dir::permits`].
///
/// # Errors
/// Those of [`Dir::permits`].
pub fn is_writable(dir: &impl Dir, name: &CStr) -> Result<bool> {
    dir.permits(name, Permission::Write, User::Effective)
}

/// [`Dir::open_below`], one name after the other.
///
/// # Errors
/// Those of [`Dir::open_below`].
pub fn open_by_names<D: Dir>(from: &D, path: &CStr, mounts: MountBehavior) -> Result<D> {
    let failed = |errno| Error::new(Operation::OpenDir, errno);
    let mut reached = None;
    for name in path.to_bytes().split(|&b| b == b'/') {
        let name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
        let above = reached.as_ref().unwrap_or(from);
        let opened = above.open_dir_for_names(&name, SymlinkBehavior::NoFollow)?;
        if mounts == MountBehavior::Refuse && opened.own_metadata(Fields::KIND)?.is_mount_root {
            return Err(failed(Errno::XDEV));
        }
        reached = Some(opened);
    }
    reached.ok_or(failed(Errno::INVAL))
}

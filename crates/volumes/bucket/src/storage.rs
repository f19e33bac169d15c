//! The file systems of the machine and the buckets that paths name, as one volume.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::{Arc, Mutex};

use millstream_posix::PosixVolume;
use millstream_vfs::{
    Access, At, Capabilities, Dir, DirentBatch, Errno, Error, Fields, File, Intended, Metadata,
    MountBehavior, NodeKind, Operation, Ownership, Permission, ReadState, RemoveKind, Result,
    SymlinkBehavior, Timestamp, User, Volume,
};

use crate::aws;
use crate::bucket::{Bucket, Reads, Tell, lock};
use crate::directory::{BucketDir, CAPABILITIES};
use crate::file::ObjectFile;
use crate::listing;
use crate::location::split;
use crate::memory::MemoryBudget;

/// Memory for what is being written.
const UPLOADS: usize = 256 << 20;

type PosixDir = <PosixVolume as Volume>::Dir;
type PosixFile = <PosixDir as Dir>::File;

/// A volume whose paths may begin with `s3://BUCKET/`; all others are those of the system.
#[derive(Clone)]
pub struct Storage {
    buckets: Arc<Buckets>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage")
    }
}

/// The buckets that have been used.
pub struct Buckets {
    open: Mutex<HashMap<String, BucketDir>>,
    access: aws::Access,
    reads: Reads,
    memory: Arc<MemoryBudget>,
    tell: Tell,
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buckets")
    }
}

impl Buckets {
    /// The directory of all keys of a bucket.
    fn root(&self, name: &str) -> BucketDir {
        let mut open = lock(&self.open);
        if let Some(root) = open.get(name) {
            return root.without_listing();
        }
        let (memory, tell) = (Arc::clone(&self.memory), Arc::clone(&self.tell));
        let root = BucketDir::root(Bucket::new(name, self.access.client(name), self.reads, memory, tell));
        open.insert(name.to_owned(), root.clone());
        root
    }
}

impl Storage {
    /// Buckets are reached as `access` says. `tell` gets what servers say about failures, each once.
    pub fn new(access: aws::Access, reads: Reads, tell: Tell) -> Self {
        let (open, memory) = (Mutex::default(), MemoryBudget::new(UPLOADS));
        Storage { buckets: Arc::new(Buckets { open, access, reads, memory, tell }) }
    }
}

impl Volume for Storage {
    type Dir = StorageDir;

    fn base(&self) -> StorageDir {
        StorageDir::Base(PosixVolume.base(), Arc::clone(&self.buckets))
    }

    fn max_open_dirs(&self) -> usize {
        PosixVolume.max_open_dirs()
    }

    fn capabilities(&self) -> Capabilities {
        PosixVolume.capabilities() & CAPABILITIES
    }
}

/// A directory of either kind.
#[derive(Debug)]
pub enum StorageDir {
    /// Where paths begin.
    Base(PosixDir, Arc<Buckets>),
    /// One of the system.
    Posix(PosixDir),
    /// One of a bucket.
    Bucket(BucketDir),
}

/// An open file of either kind.
#[derive(Debug)]
pub enum StorageFile {
    /// One of the system.
    Posix(PosixFile),
    /// An object.
    Object(ObjectFile),
}

/// Position of a reader in a directory of a bucket; those of the system keep theirs in the handle.
#[derive(Debug, Default)]
pub struct StorageCursor(listing::Cursor);

/// A directory that a name is looked up in.
enum Held<'d> {
    Posix(&'d PosixDir),
    Bucket(Cow<'d, BucketDir>),
}

impl StorageDir {
    /// The base again, if this is it and the name is its own: paths in buckets stay such paths there.
    fn base(&self, name: &CStr) -> Option<Self> {
        match self {
            StorageDir::Base(_, buckets) if name == c"." => {
                Some(StorageDir::Base(PosixVolume.base(), Arc::clone(buckets)))
            }
            _ => None,
        }
    }

    /// The directory that a name is relative to, and the name there.
    fn held<'a>(&'a self, name: &'a CStr) -> (Held<'a>, Cow<'a, CStr>) {
        match self {
            StorageDir::Posix(dir) => (Held::Posix(dir), Cow::Borrowed(name)),
            StorageDir::Bucket(dir) => (Held::Bucket(Cow::Borrowed(dir)), Cow::Borrowed(name)),
            StorageDir::Base(dir, buckets) => match split(name.to_bytes()) {
                None => (Held::Posix(dir), Cow::Borrowed(name)),
                Some((bucket, path)) => {
                    let root = buckets.root(bucket);
                    let path = if path.is_empty() { b"/" } else { path };
                    // A part of a C string has no NUL.
                    (Held::Bucket(Cow::Owned(root)), Cow::Owned(CString::new(path).unwrap_or_default()))
                }
            },
        }
    }
}

fn apart<T>(operation: Operation) -> Result<T> {
    Err(Error::new(operation, Errno::XDEV))
}

/// Calls the same method of either kind of directory that a name leads to.
macro_rules! on_name {
    ($self:ident, $name:ident, $dir:ident => $call:expr) => {
        match $self.held($name) {
            (Held::Posix($dir), name) => {
                let $name: &CStr = &name;
                $call
            }
            (Held::Bucket($dir), name) => {
                let $name: &CStr = &name;
                $call
            }
        }
    };
    ($self:ident, $name:ident, $dir:ident => $call:expr, $wrap:ident) => {
        match $self.held($name) {
            (Held::Posix($dir), name) => {
                let $name: &CStr = &name;
                $call.map($wrap::Posix)
            }
            (Held::Bucket($dir), name) => {
                let $name: &CStr = &name;
                $call.map($wrap::from)
            }
        }
    };
}

/// Calls the same method of either kind of two directories that two names lead to.
macro_rules! on_names {
    ($operation:expr, ($self:ident, $name:ident), ($other:ident, $new:ident), $dir:ident => $call:expr) => {
        match ($self.held($name), $other.held($new)) {
            ((Held::Posix($dir), name), (Held::Posix(to), new)) => {
                let ($name, $other, $new): (&CStr, _, &CStr) = (&name, to, &new);
                $call
            }
            ((Held::Bucket($dir), name), (Held::Bucket(to), new)) => {
                let ($name, $other, $new): (&CStr, &BucketDir, &CStr) = (&name, &to, &new);
                $call
            }
            _ => apart($operation),
        }
    };
}

/// Calls the same method of either kind of this directory.
macro_rules! on_self {
    ($self:ident, $dir:ident => $call:expr) => {
        match $self {
            StorageDir::Base($dir, _) | StorageDir::Posix($dir) => $call,
            StorageDir::Bucket($dir) => $call,
        }
    };
}

impl From<BucketDir> for StorageDir {
    fn from(dir: BucketDir) -> Self {
        StorageDir::Bucket(dir)
    }
}

impl From<ObjectFile> for StorageFile {
    fn from(file: ObjectFile) -> Self {
        StorageFile::Object(file)
    }
}

impl Dir for StorageDir {
    type Cursor = StorageCursor;
    type File = StorageFile;

    fn open_dir(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        if let Some(base) = self.base(name) {
            return Ok(base);
        }
        on_name!(self, name, dir => dir.open_dir(name, symlinks), StorageDir)
    }

    fn open_dir_for_names(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        if let Some(base) = self.base(name) {
            return Ok(base);
        }
        on_name!(self, name, dir => dir.open_dir_for_names(name, symlinks), StorageDir)
    }

    fn open_below(&self, path: &CStr, mounts: MountBehavior) -> Result<Self> {
        on_name!(self, path, dir => dir.open_below(path, mounts), StorageDir)
    }

    fn open_parent(&self) -> Result<Self> {
        match self {
            StorageDir::Base(dir, _) | StorageDir::Posix(dir) => dir.open_parent().map(StorageDir::Posix),
            StorageDir::Bucket(dir) => dir.open_parent().map(StorageDir::Bucket),
        }
    }

    fn metadata(&self, name: &CStr, symlinks: SymlinkBehavior, fields: Fields) -> Result<Metadata> {
        on_name!(self, name, dir => dir.metadata(name, symlinks, fields))
    }

    fn device_within(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<u64> {
        on_name!(self, name, dir => dir.device_within(name, symlinks))
    }

    fn identity(&self) -> Result<(u64, u64)> {
        on_self!(self, dir => dir.identity())
    }

    fn own_metadata(&self, fields: Fields) -> Result<Metadata> {
        on_self!(self, dir => dir.own_metadata(fields))
    }

    fn read_entries(&self, cursor: &mut StorageCursor, batch: &mut DirentBatch) -> Result<ReadState> {
        match self {
            StorageDir::Base(dir, _) | StorageDir::Posix(dir) => dir.read_entries(&mut (), batch),
            StorageDir::Bucket(dir) => dir.read_entries(&mut cursor.0, batch),
        }
    }

    fn read_link(&self, name: &CStr) -> Result<Vec<u8>> {
        on_name!(self, name, dir => dir.read_link(name))
    }

    fn list_xattr(&self, name: &CStr, names: &mut Vec<u8>) -> Result<()> {
        on_name!(self, name, dir => dir.list_xattr(name, names))
    }

    fn get_xattr(&self, name: &CStr, attribute: &CStr, symlinks: SymlinkBehavior) -> Result<Vec<u8>> {
        on_name!(self, name, dir => dir.get_xattr(name, attribute, symlinks))
    }

    fn set_xattr(&self, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()> {
        on_name!(self, name, dir => dir.set_xattr(name, attribute, value))
    }

    fn remove_xattr(&self, name: &CStr, attribute: &CStr) -> Result<()> {
        on_name!(self, name, dir => dir.remove_xattr(name, attribute))
    }

    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()> {
        on_name!(self, name, dir => dir.remove(name, kind))
    }

    fn open_file(&self, name: &CStr, access: Access, symlinks: SymlinkBehavior) -> Result<StorageFile> {
        on_name!(self, name, dir => dir.open_file(name, access, symlinks), StorageFile)
    }

    fn create_file(&self, name: &CStr, mode: u32) -> Result<StorageFile> {
        on_name!(self, name, dir => dir.create_file(name, mode), StorageFile)
    }

    fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<StorageFile> {
        // Both names lead to the same directory.
        let (_, target) = self.held(intended.name);
        let intended = &Intended { name: &target, ..*intended };
        on_name!(self, name, dir => dir.create_staged(name, mode, intended), StorageFile)
    }

    fn complete(&self) -> Result<()> {
        on_self!(self, dir => dir.complete())
    }

    fn capabilities(&self, path: &CStr) -> Capabilities {
        on_name!(self, path, dir => dir.capabilities(path))
    }

    fn beside_files(&self) -> Result<Self> {
        match self {
            StorageDir::Bucket(dir) => dir.beside_files().map(StorageDir::Bucket),
            _ => self.open_dir_for_names(c".", SymlinkBehavior::NoFollow),
        }
    }

    fn as_file(&self) -> Result<StorageFile> {
        match self {
            StorageDir::Base(dir, _) | StorageDir::Posix(dir) => dir.as_file().map(StorageFile::Posix),
            StorageDir::Bucket(dir) => dir.as_file().map(StorageFile::Object),
        }
    }

    fn create_dir(&self, name: &CStr, mode: u32) -> Result<()> {
        on_name!(self, name, dir => dir.create_dir(name, mode))
    }

    fn create_symlink(&self, name: &CStr, target: &CStr) -> Result<()> {
        on_name!(self, name, dir => dir.create_symlink(name, target))
    }

    fn create_node(&self, name: &CStr, kind: NodeKind, mode: u32) -> Result<()> {
        on_name!(self, name, dir => dir.create_node(name, kind, mode))
    }

    fn hard_link(&self, name: &CStr, symlinks: SymlinkBehavior, other: &Self, new: &CStr) -> Result<()> {
        on_names!(Operation::HardLink, (self, name), (other, new),
            dir => dir.hard_link(name, symlinks, other, new))
    }

    fn rename_new(&self, name: &CStr, other: &Self, new: &CStr) -> Result<()> {
        on_names!(Operation::Rename, (self, name), (other, new), dir => dir.rename_new(name, other, new))
    }

    fn rename(&self, name: &CStr, other: &Self, new: &CStr) -> Result<()> {
        on_names!(Operation::Rename, (self, name), (other, new), dir => dir.rename(name, other, new))
    }

    fn exchange(&self, name: &CStr, other: &Self, new: &CStr) -> Result<()> {
        on_names!(Operation::Rename, (self, name), (other, new), dir => dir.exchange(name, other, new))
    }

    fn set_times(&self, name: &CStr, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        on_name!(self, name, dir => dir.set_times(name, atime, mtime))
    }

    fn permits(&self, name: &CStr, permission: Permission, user: User) -> Result<bool> {
        on_name!(self, name, dir => dir.permits(name, permission, user))
    }

    fn path_for_children(&self) -> Result<CString> {
        on_self!(self, dir => dir.path_for_children())
    }

    fn set_mode(&self, name: &CStr, mode: u32, symlinks: SymlinkBehavior) -> Result<()> {
        on_name!(self, name, dir => dir.set_mode(name, mode, symlinks))
    }

    fn set_owner(&self, name: &CStr, owner: Ownership, symlinks: SymlinkBehavior) -> Result<()> {
        on_name!(self, name, dir => dir.set_owner(name, owner, symlinks))
    }
}

/// Calls the same method of either kind of file.
macro_rules! on_file {
    ($self:ident, $file:ident => $call:expr) => {
        match $self {
            StorageFile::Posix($file) => $call,
            StorageFile::Object($file) => $call,
        }
    };
}

impl File for StorageFile {
    fn metadata(&self, fields: Fields) -> Result<Metadata> {
        on_file!(self, file => file.metadata(fields))
    }

    fn read(&self, buffer: &mut [u8], at: At) -> Result<usize> {
        on_file!(self, file => file.read(buffer, at))
    }

    fn write_all(&self, bytes: &[u8], at: At) -> Result<()> {
        on_file!(self, file => file.write_all(bytes, at))
    }

    fn copy_range(&self, source: &Self, offset: u64, length: u64) -> Result<u64> {
        match (self, source) {
            (StorageFile::Posix(file), StorageFile::Posix(source)) => file.copy_range(source, offset, length),
            (StorageFile::Object(file), StorageFile::Object(source)) => {
                file.copy_range(source, offset, length)
            }
            _ => apart(Operation::Write),
        }
    }

    fn clone_from(&self, source: &Self) -> Result<()> {
        match (self, source) {
            (StorageFile::Posix(file), StorageFile::Posix(source)) => file.clone_from(source),
            (StorageFile::Object(file), StorageFile::Object(source)) => file.clone_from(source),
            _ => apart(Operation::Clone),
        }
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        on_file!(self, file => file.next_data(offset))
    }

    fn next_hole(&self, offset: u64) -> Result<u64> {
        on_file!(self, file => file.next_hole(offset))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        on_file!(self, file => file.set_len(length))
    }

    fn allocate(&self, length: u64) -> Result<()> {
        on_file!(self, file => file.allocate(length))
    }

    fn flush(&self) -> Result<()> {
        on_file!(self, file => file.flush())
    }

    fn close(self) -> Result<()> {
        on_file!(self, file => file.close())
    }

    fn sync(&self) -> Result<()> {
        on_file!(self, file => file.sync())
    }

    fn sync_volume(&self) -> Result<()> {
        on_file!(self, file => file.sync_volume())
    }

    fn try_lock(&self) -> Result<()> {
        on_file!(self, file => file.try_lock())
    }

    fn list_xattr(&self, names: &mut Vec<u8>) -> Result<()> {
        on_file!(self, file => file.list_xattr(names))
    }

    fn xattr(&self, name: &CStr) -> Result<Vec<u8>> {
        on_file!(self, file => file.xattr(name))
    }

    fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()> {
        on_file!(self, file => file.set_xattr(name, value))
    }

    fn remove_xattr(&self, name: &CStr) -> Result<()> {
        on_file!(self, file => file.remove_xattr(name))
    }

    fn set_mode(&self, mode: u32) -> Result<()> {
        on_file!(self, file => file.set_mode(mode))
    }

    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        on_file!(self, file => file.set_owner(uid, gid))
    }

    fn set_times(&self, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        on_file!(self, file => file.set_times(atime, mtime))
    }
}

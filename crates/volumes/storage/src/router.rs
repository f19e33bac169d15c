//! All volumes as one.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::ops::Deref;
use std::sync::Arc;

use millstream_bucket::Buckets;
use millstream_posix::{PosixDir, PosixFile, PosixVolume};
use millstream_vfs::{
    Access, At, Capabilities, Dir, DirentBatch, Fields, File, Intended, Metadata, MountBehavior, NodeKind,
    Operation, Ownership, Permission, ReadState, RemoveKind, Result, SymlinkBehavior, Timestamp, User,
    Volume,
};

use crate::methods::{with_dir_methods, with_file_methods};
use crate::operands::Remotes;
use crate::remote::{RemoteCursor, RemoteDir, RemoteFile, apart};

/// A volume whose operands may be remote, such as `s3://BUCKET/KEY`; all others are those of the system.
#[derive(Clone, Debug)]
pub struct Storage {
    pub(crate) remotes: Arc<dyn Remotes>,
}

impl Storage {
    /// The file systems of the machine and these buckets.
    pub fn new(buckets: Buckets) -> Self {
        Storage { remotes: Arc::new(buckets) }
    }
}

impl Volume for Storage {
    type Dir = StorageDir;

    fn base(&self) -> StorageDir {
        StorageDir(Handle::Base(PosixVolume.base(), Arc::clone(&self.remotes)))
    }

    fn max_open_dirs(&self) -> usize {
        PosixVolume.max_open_dirs()
    }

    /// Any remote volume may lack any of them.
    fn capabilities(&self) -> Capabilities {
        Capabilities::empty()
    }
}

/// A directory of either kind of volume.
#[derive(Debug)]
pub struct StorageDir(Handle);

#[derive(Debug)]
enum Handle {
    /// Where operands begin.
    Base(PosixDir, Arc<dyn Remotes>),
    Posix(PosixDir),
    Remote(Box<dyn RemoteDir>),
}

/// An open file of either kind of volume.
#[derive(Debug)]
pub struct StorageFile(Opened);

#[derive(Debug)]
enum Opened {
    Posix(PosixFile),
    Remote(Box<dyn RemoteFile>),
}

/// Position of a reader in a remote directory; those of the system keep theirs in the handle.
#[derive(Debug, Default)]
pub struct StorageCursor(RemoteCursor);

/// A directory that a name is looked up in, and the name there.
enum Target<'a> {
    Posix(&'a PosixDir),
    Remote(Lent<'a>, Cow<'a, CStr>),
}

enum Lent<'a> {
    Held(&'a dyn RemoteDir),
    Found(Box<dyn RemoteDir>),
}

impl Deref for Lent<'_> {
    type Target = dyn RemoteDir;

    fn deref(&self) -> &Self::Target {
        match self {
            Lent::Held(dir) => *dir,
            Lent::Found(dir) => &**dir,
        }
    }
}

impl StorageDir {
    /// The base again, if this is it and the name is its own: operands stay operands there.
    fn base(&self, name: &CStr) -> Option<Self> {
        match &self.0 {
            Handle::Base(_, remotes) if name == c"." => {
                Some(StorageDir(Handle::Base(PosixVolume.base(), Arc::clone(remotes))))
            }
            _ => None,
        }
    }

    fn target<'a>(&'a self, name: &'a CStr) -> Target<'a> {
        match &self.0 {
            Handle::Posix(dir) => Target::Posix(dir),
            Handle::Remote(dir) => Target::Remote(Lent::Held(&**dir), Cow::Borrowed(name)),
            Handle::Base(dir, remotes) => match remotes.locate(name) {
                None => Target::Posix(dir),
                Some((dir, path)) => Target::Remote(Lent::Found(dir), Cow::Owned(path)),
            },
        }
    }
}

impl From<PosixDir> for StorageDir {
    fn from(dir: PosixDir) -> Self {
        StorageDir(Handle::Posix(dir))
    }
}

impl From<Box<dyn RemoteDir>> for StorageDir {
    fn from(dir: Box<dyn RemoteDir>) -> Self {
        StorageDir(Handle::Remote(dir))
    }
}

impl From<PosixFile> for StorageFile {
    fn from(file: PosixFile) -> Self {
        StorageFile(Opened::Posix(file))
    }
}

impl From<Box<dyn RemoteFile>> for StorageFile {
    fn from(file: Box<dyn RemoteFile>) -> Self {
        StorageFile(Opened::Remote(file))
    }
}

/// Calls a method on the volume that a name leads to.
macro_rules! on_name {
    ($self:ident, $name:ident, $method:ident($($argument:expr),*)) => {
        match $self.target($name) {
            Target::Posix(dir) => Dir::$method(dir, $name, $($argument),*),
            Target::Remote(dir, name) => dir.$method(&name, $($argument),*),
        }
    };
    ($self:ident, $name:ident, $method:ident($($argument:expr),*) to $wrap:ident) => {
        match $self.target($name) {
            Target::Posix(dir) => Dir::$method(dir, $name, $($argument),*).map($wrap::from),
            Target::Remote(dir, name) => dir.$method(&name, $($argument),*).map($wrap::from),
        }
    };
}

macro_rules! route_dir {
    (
        named to dir { $($nd:ident($($nda:ident: $ndt:ty),*);)* }
        named to file { $($nf:ident($($nfa:ident: $nft:ty),*);)* }
        named { $($n:ident($($na:ident: $nt:ty),*) -> $nr:ty;)* }
        own to dir { $($od:ident;)* }
        own to file { $($of:ident;)* }
        own { $($o:ident($($oa:ident: $ot:ty),*) -> $or:ty;)* }
        paired { $($p:ident($($pa:ident: $pt:ty),*): $operation:expr;)* }
    ) => {
        impl Dir for StorageDir {
            type Cursor = StorageCursor;
            type File = StorageFile;

            $(fn $nd(&self, name: &CStr, $($nda: $ndt),*) -> Result<Self> {
                if let Some(base) = self.base(name) {
                    return Ok(base);
                }
                on_name!(self, name, $nd($($nda),*) to StorageDir)
            })*
            $(fn $nf(&self, name: &CStr, $($nfa: $nft),*) -> Result<StorageFile> {
                on_name!(self, name, $nf($($nfa),*) to StorageFile)
            })*
            $(fn $n(&self, name: &CStr, $($na: $nt),*) -> Result<$nr> {
                on_name!(self, name, $n($($na),*))
            })*
            $(fn $od(&self) -> Result<Self> {
                match &self.0 {
                    Handle::Base(dir, _) | Handle::Posix(dir) => Dir::$od(dir).map(StorageDir::from),
                    Handle::Remote(dir) => (**dir).$od().map(StorageDir::from),
                }
            })*
            $(fn $of(&self) -> Result<StorageFile> {
                match &self.0 {
                    Handle::Base(dir, _) | Handle::Posix(dir) => Dir::$of(dir).map(StorageFile::from),
                    Handle::Remote(dir) => (**dir).$of().map(StorageFile::from),
                }
            })*
            $(fn $o(&self, $($oa: $ot),*) -> Result<$or> {
                match &self.0 {
                    Handle::Base(dir, _) | Handle::Posix(dir) => Dir::$o(dir, $($oa),*),
                    Handle::Remote(dir) => (**dir).$o($($oa),*),
                }
            })*
            $(fn $p(&self, name: &CStr, $($pa: $pt,)* other: &Self, new_name: &CStr) -> Result<()> {
                match (self.target(name), other.target(new_name)) {
                    (Target::Posix(dir), Target::Posix(other)) => Dir::$p(dir, name, $($pa,)* other, new_name),
                    (Target::Remote(dir, name), Target::Remote(other, new_name)) => {
                        dir.$p(&name, $($pa,)* &*other, &new_name)
                    }
                    _ => apart($operation),
                }
            })*

            fn read_entries(&self, cursor: &mut StorageCursor, batch: &mut DirentBatch) -> Result<ReadState> {
                match &self.0 {
                    Handle::Base(dir, _) | Handle::Posix(dir) => Dir::read_entries(dir, &mut (), batch),
                    Handle::Remote(dir) => (**dir).read_entries(&mut cursor.0, batch),
                }
            }

            fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<StorageFile> {
                // Both names lead to the same directory.
                let final_name = match self.target(intended.name) {
                    Target::Posix(_) => Cow::Borrowed(intended.name),
                    Target::Remote(_, name) => name,
                };
                let intended = &Intended { name: &final_name, ..*intended };
                on_name!(self, name, create_staged(mode, intended) to StorageFile)
            }

            fn capabilities(&self, path: &CStr) -> Capabilities {
                on_name!(self, path, capabilities())
            }

            fn beside_files(&self) -> Result<Self> {
                match &self.0 {
                    // Every name of it is an operand.
                    Handle::Base(..) => Dir::open_dir_for_names(self, c".", SymlinkBehavior::NoFollow),
                    Handle::Posix(dir) => Dir::beside_files(dir).map(StorageDir::from),
                    Handle::Remote(dir) => (**dir).beside_files().map(StorageDir::from),
                }
            }
        }
    };
}

macro_rules! route_file {
    (
        own { $($o:ident($($oa:ident: $ot:ty),*) -> $or:ty;)* }
        paired { $($p:ident($($pa:ident: $pt:ty),*) -> $pr:ty: $operation:expr;)* }
    ) => {
        impl File for StorageFile {
            $(fn $o(&self, $($oa: $ot),*) -> Result<$or> {
                match &self.0 {
                    Opened::Posix(file) => File::$o(file, $($oa),*),
                    Opened::Remote(file) => (**file).$o($($oa),*),
                }
            })*
            $(fn $p(&self, source: &Self, $($pa: $pt),*) -> Result<$pr> {
                match (&self.0, &source.0) {
                    (Opened::Posix(file), Opened::Posix(source)) => File::$p(file, source, $($pa),*),
                    (Opened::Remote(file), Opened::Remote(source)) => (**file).$p(&**source, $($pa),*),
                    _ => apart($operation),
                }
            })*

            fn close(self) -> Result<()> {
                match self.0 {
                    Opened::Posix(file) => File::close(file),
                    Opened::Remote(file) => file.close(),
                }
            }
        }
    };
}

with_dir_methods!(route_dir);
with_file_methods!(route_file);

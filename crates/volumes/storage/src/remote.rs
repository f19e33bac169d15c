//! Directories and files of any volume as objects.

use std::any::Any;
use std::ffi::{CStr, CString};
use std::fmt::Debug;

use millstream_vfs::{
    Access, At, Capabilities, Dir, DirentBatch, Errno, Error, Fields, File, Intended, Metadata,
    MountBehavior, NodeKind, Operation, Ownership, Permission, ReadState, RemoveKind, Result,
    SymlinkBehavior, Timestamp, User,
};

use crate::methods::{with_dir_methods, with_file_methods};

/// Position of a reader in a directory; [`None`] is the beginning.
pub(crate) type RemoteCursor = Option<Box<dyn Any + Send>>;

pub(crate) fn apart<T>(operation: Operation) -> Result<T> {
    Err(Error::new(operation, Errno::XDEV))
}

macro_rules! remote_dir {
    (
        named to dir { $($nd:ident($($nda:ident: $ndt:ty),*);)* }
        named to file { $($nf:ident($($nfa:ident: $nft:ty),*);)* }
        named { $($n:ident($($na:ident: $nt:ty),*) -> $nr:ty;)* }
        own to dir { $($od:ident;)* }
        own to file { $($of:ident;)* }
        own { $($o:ident($($oa:ident: $ot:ty),*) -> $or:ty;)* }
        paired { $($p:ident($($pa:ident: $pt:ty),*): $operation:expr;)* }
    ) => {
        /// [`Dir`] as an object.
        pub(crate) trait RemoteDir: Any + Debug + Send + Sync {
            $(fn $nd(&self, name: &CStr, $($nda: $ndt),*) -> Result<Box<dyn RemoteDir>>;)*
            $(fn $nf(&self, name: &CStr, $($nfa: $nft),*) -> Result<Box<dyn RemoteFile>>;)*
            $(fn $n(&self, name: &CStr, $($na: $nt),*) -> Result<$nr>;)*
            $(fn $od(&self) -> Result<Box<dyn RemoteDir>>;)*
            $(fn $of(&self) -> Result<Box<dyn RemoteFile>>;)*
            $(fn $o(&self, $($oa: $ot),*) -> Result<$or>;)*
            $(fn $p(&self, name: &CStr, $($pa: $pt,)* other: &dyn RemoteDir, new_name: &CStr) -> Result<()>;)*
            fn read_entries(&self, cursor: &mut RemoteCursor, batch: &mut DirentBatch) -> Result<ReadState>;
            fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<Box<dyn RemoteFile>>;
            fn capabilities(&self, path: &CStr) -> Capabilities;
            fn beside_files(&self) -> Result<Box<dyn RemoteDir>>;
        }

        impl<D: Dir> RemoteDir for D {
            $(fn $nd(&self, name: &CStr, $($nda: $ndt),*) -> Result<Box<dyn RemoteDir>> {
                Dir::$nd(self, name, $($nda),*).map(|dir| Box::new(dir) as _)
            })*
            $(fn $nf(&self, name: &CStr, $($nfa: $nft),*) -> Result<Box<dyn RemoteFile>> {
                Dir::$nf(self, name, $($nfa),*).map(|file| Box::new(file) as _)
            })*
            $(fn $n(&self, name: &CStr, $($na: $nt),*) -> Result<$nr> {
                Dir::$n(self, name, $($na),*)
            })*
            $(fn $od(&self) -> Result<Box<dyn RemoteDir>> {
                Dir::$od(self).map(|dir| Box::new(dir) as _)
            })*
            $(fn $of(&self) -> Result<Box<dyn RemoteFile>> {
                Dir::$of(self).map(|file| Box::new(file) as _)
            })*
            $(fn $o(&self, $($oa: $ot),*) -> Result<$or> {
                Dir::$o(self, $($oa),*)
            })*
            $(fn $p(&self, name: &CStr, $($pa: $pt,)* other: &dyn RemoteDir, new_name: &CStr) -> Result<()> {
                match (other as &dyn Any).downcast_ref::<D>() {
                    Some(other) => Dir::$p(self, name, $($pa,)* other, new_name),
                    None => apart($operation),
                }
            })*

            fn read_entries(&self, cursor: &mut RemoteCursor, batch: &mut DirentBatch) -> Result<ReadState> {
                let cursor = cursor.get_or_insert_with(|| Box::new(D::Cursor::default()));
                match cursor.downcast_mut() {
                    Some(cursor) => Dir::read_entries(self, cursor, batch),
                    // That of a reader of another volume.
                    None => Err(Error::new(Operation::ReadDir, Errno::INVAL)),
                }
            }

            fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<Box<dyn RemoteFile>> {
                Dir::create_staged(self, name, mode, intended).map(|file| Box::new(file) as _)
            }

            fn capabilities(&self, path: &CStr) -> Capabilities {
                Dir::capabilities(self, path)
            }

            fn beside_files(&self) -> Result<Box<dyn RemoteDir>> {
                Dir::beside_files(self).map(|dir| Box::new(dir) as _)
            }
        }
    };
}

macro_rules! remote_file {
    (
        own { $($o:ident($($oa:ident: $ot:ty),*) -> $or:ty;)* }
        paired { $($p:ident($($pa:ident: $pt:ty),*) -> $pr:ty: $operation:expr;)* }
    ) => {
        /// [`File`] as an object.
        pub(crate) trait RemoteFile: Any + Debug + Send + Sync {
            $(fn $o(&self, $($oa: $ot),*) -> Result<$or>;)*
            $(fn $p(&self, source: &dyn RemoteFile, $($pa: $pt),*) -> Result<$pr>;)*
            fn close(self: Box<Self>) -> Result<()>;
        }

        impl<F: File> RemoteFile for F {
            $(fn $o(&self, $($oa: $ot),*) -> Result<$or> {
                File::$o(self, $($oa),*)
            })*
            $(fn $p(&self, source: &dyn RemoteFile, $($pa: $pt),*) -> Result<$pr> {
                match (source as &dyn Any).downcast_ref::<F>() {
                    Some(source) => File::$p(self, source, $($pa),*),
                    None => apart($operation),
                }
            })*

            fn close(self: Box<Self>) -> Result<()> {
                File::close(*self)
            }
        }
    };
}

with_dir_methods!(remote_dir);
with_file_methods!(remote_file);

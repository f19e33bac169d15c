#![forbid(unsafe_code)]
//! The router: which volume an operand is on, and all volumes as one.
//!
//! ```text
//!  Storage ── path ──────────► Posix: PosixVolume, dispatched statically
//!     └── s3://BUCKET/KEY ───► Remote: any volume behind `dyn RemoteDir`, here a bucket
//! ```
//!
//! There are two arms and there will be no third. The kernel's file systems cost a branch more than without the router;
//! a call on a remote volume costs a request, so a table look-up does not show. A remote volume implements
//! [`millstream_vfs::Volume`] like any other; [`remote`] makes an object of it. A new one is added where operands are
//! recognised: [`operands`].
//!
//! **No method is forwarded by hand.** [`methods`] lists the methods of [`millstream_vfs::Dir`] and
//! [`millstream_vfs::File`] once; the object's trait, its implementation for every volume and the router are generated
//! from the list. A method that the list lacks does not compile, because the traits have no default methods.
//!
//! A call with names on two volumes (rename, link, copy of a range) is `EXDEV`, as between two mounts.

mod methods;
mod operands;
mod remote;
mod router;

#[cfg(test)]
mod tests;

pub use operands::{capabilities, is_bucket};
pub use router::{Storage, StorageCursor, StorageDir, StorageFile};

//! The POSIX volume: whatever the kernel has mounted.
//!
//! A handle is a directory file descriptor; operations are the `openat` family, `statx` with only the fields asked for,
//! and `getdents64` straight into the caller's batch, whose capacity decides the size of the request (on FUSE and NFS
//! also the size of the request on the wire). The only path-based calls are those on operands, through
//! [`millstream_vfs::Volume::base`].
//!
//! `unsafe` occurs in `syscalls` only, for the calls that `rustix` does not wrap.

mod file;
mod stat;
mod syscalls;
mod volume;

pub use file::PosixFile;
pub use volume::{PosixDir, PosixVolume};

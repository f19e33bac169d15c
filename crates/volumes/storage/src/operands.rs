//! Which volume an operand is on.

use std::ffi::{CStr, CString};
use std::fmt::Debug;

use millstream_bucket::{Buckets, split};
use millstream_posix::PosixVolume;
use millstream_vfs::{Capabilities, Volume};

use crate::remote::RemoteDir;

/// Whether an operand is in a bucket.
pub fn is_bucket(operand: &[u8]) -> bool {
    split(operand).is_some()
}

/// What can be done where an operand leads to. No server is asked.
pub fn capabilities(operand: &[u8]) -> Capabilities {
    if is_bucket(operand) { millstream_bucket::CAPABILITIES } else { PosixVolume.capabilities() }
}

/// Remote volumes of one kind, each with its own form of operands.
pub(crate) trait Remotes: Debug + Send + Sync {
    /// The volume that an operand of this kind is on, as the directory that paths there begin at, and the operand's
    /// path from there.
    fn locate(&self, operand: &CStr) -> Option<(Box<dyn RemoteDir>, CString)>;
}

impl Remotes for Buckets {
    fn locate(&self, operand: &CStr) -> Option<(Box<dyn RemoteDir>, CString)> {
        let (bucket, path) = split(operand.to_bytes())?;
        let path = if path.is_empty() { b"/" } else { path };
        // A part of a C string has no NUL.
        Some((Box::new(self.volume(bucket).base()), CString::new(path).unwrap_or_default()))
    }
}

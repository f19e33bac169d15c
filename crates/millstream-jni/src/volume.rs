//! The POSIX volume within a process that has other uses for file descriptors.

use millstream_vfs::{PosixVolume, Volume};

/// Directory handles are at most this share of the process's limit ...
const SHARE_OF_DESCRIPTORS: usize = 4;
/// ... and at most so many.
const MAX_OPEN_DIRS: usize = 4096;

/// The kernel's file systems, leaving most descriptors to Spark's shuffle files and sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedProcessVolume(PosixVolume);

impl Volume for SharedProcessVolume {
    type Dir = <PosixVolume as Volume>::Dir;

    fn base(&self) -> Self::Dir {
        self.0.base()
    }

    fn max_open_dirs(&self) -> usize {
        (self.0.max_open_dirs() / SHARE_OF_DESCRIPTORS).clamp(4, MAX_OPEN_DIRS)
    }
}

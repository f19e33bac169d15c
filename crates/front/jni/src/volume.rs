//! The POSIX volume in a process that needs file descriptors for other things too.

use millstream_posix::PosixVolume;
use millstream_vfs::{Capabilities, Volume};

/// Directory handles may take one in this many of the process's descriptors.
const SHARE_OF_DESCRIPTORS: usize = 4;
/// Most directory handles, whatever the limit.
const MAX_OPEN_DIRS: usize = 4096;

/// The kernel's file systems; leaves most descriptors to Spark's shuffle files and sockets.
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

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

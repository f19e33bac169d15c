//! What a synchronization has done.

use std::sync::atomic::{AtomicU64, Ordering};

use millstream_vfs::FileKind;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What a synchronization has done, or would have done.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)+
        }

        /// [`Stats`] of a synchronization that runs.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: AtomicU64,)+
        }

        impl Counters {
            /// What has been counted.
            pub(super) fn total(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counts!(
    /// Regular files of the source.
    files,
    /// Directories of the source.
    directories,
    /// Symbolic links of the source.
    links,
    /// Devices, named pipes and sockets of the source.
    specials,
    /// Bytes of the regular files of the source.
    bytes,
    /// Entries that the destination did not have.
    created,
    /// Entries of the destination that were deleted.
    deleted,
    /// Regular files whose data was copied.
    copied_files,
    /// Their bytes.
    copied_bytes,
    /// Entries whose attributes alone were set.
    amended,
    /// Entries that were gone, or that changed, while they were copied.
    moving,
    /// Failures.
    errors,
    /// Those of them after which something is not known, or not there: not those of setting attributes.
    obstacles,
    /// Entries that were not deleted because there were more than may be.
    undeleted,
    /// Destinations that could not be made, so that nothing was copied to them.
    unmade,
);

impl Counters {
    /// Whether everything that was to be deleted could be, as far as the bound on deletions goes.
    pub(super) fn is_within_bound(&self) -> bool {
        self.undeleted.load(Ordering::Relaxed) == 0
    }

    /// Counts an entry of the source.
    pub(super) fn meet(&self, kind: FileKind, bytes: u64) {
        let counter = match kind {
            FileKind::File => {
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                &self.files
            }
            FileKind::Directory => &self.directories,
            FileKind::Symlink => &self.links,
            _ => &self.specials,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

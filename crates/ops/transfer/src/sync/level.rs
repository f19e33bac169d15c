//! A directory that is being synchronized: the directory of the source is the traversal's, that of the destination is
//! here.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{Metadata, Result, SymlinkBehavior};
use millstream_walk::Other;

use crate::transfer::Identity;
use crate::transfer::attributes::XattrValues;
use crate::transfer::place::Place;

/// A pair of directories.
#[derive(Debug)]
pub(super) struct Level<'p, D> {
    pub(super) parent: Option<Arc<Level<'p, D>>>,
    /// The directory of the destination.
    pub(super) place: Arc<Place<D>>,
    /// That directory as it was found; [`None`] if this run made it.
    pub(super) found: Option<Metadata>,
    /// What differed then.
    pub(super) differs: Difference,
    /// What is in it and has not been met in the source, if it was found.
    pub(super) other: OnceLock<Result<Other<'p>>>,
    /// Its extended attributes as they were found.
    pub(super) found_xattrs: XattrValues,
    /// Whether only some entries of it take part, because a list names them.
    pub(super) is_partial: bool,
    /// Whether it gets no attributes.
    pub(super) is_left: bool,
    /// Whether a volume is mounted on it or above it, below the copy of the operand.
    pub(super) is_mounted: bool,
    /// Whether that has been told.
    is_mount_told: AtomicBool,
    /// Whether the source directory holds anything.
    holds_any: AtomicBool,
    /// Whether something was made, replaced or removed in it.
    changed: AtomicBool,
    /// Whether its owner has got more permissions until the end.
    widened: AtomicBool,
    /// Whether the source directory could not be listed to its end.
    unlisted: AtomicBool,
    /// Held while the permissions of the directory are changed.
    pub(super) gate: Mutex<()>,
}

impl<'p, D> Level<'p, D> {
    pub(super) fn new(
        parent: Option<Arc<Self>>,
        place: Arc<Place<D>>,
        found: Option<Metadata>,
        differs: Difference,
        found_xattrs: XattrValues,
    ) -> Self {
        let is_mount = found.is_some_and(|found| found.is_mount_root);
        let is_mounted =
            parent.as_ref().is_some_and(|above| above.is_mounted || is_mount && above.place.source.is_some());
        Level {
            parent,
            place,
            found,
            differs,
            other: OnceLock::new(),
            found_xattrs,
            is_partial: false,
            is_left: false,
            is_mounted,
            is_mount_told: AtomicBool::new(false),
            holds_any: AtomicBool::new(false),
            changed: AtomicBool::new(false),
            widened: AtomicBool::new(false),
            unlisted: AtomicBool::new(false),
            gate: Mutex::default(),
        }
    }

    /// This level and those above it.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.parent.as_deref())
    }

    /// The directory that a volume is mounted on, if that has not been told yet.
    pub(super) fn untold_mount(&self) -> Option<&Self> {
        let mounted = self.ancestors().take_while(|level| level.is_mounted).last()?;
        (!mounted.is_mount_told.swap(true, Ordering::Relaxed)).then_some(mounted)
    }

    pub(super) fn note_entry(&self) {
        self.holds_any.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.holds_any.load(Ordering::Relaxed)
    }

    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub(super) fn note_widened(&self) {
        self.widened.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_widened(&self) -> bool {
        self.widened.load(Ordering::Relaxed)
    }

    pub(super) fn note_unlisted(&self) {
        self.unlisted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_unlisted(&self) -> bool {
        self.unlisted.load(Ordering::Relaxed)
    }
}

impl<D> Drop for Level<'_, D> {
    /// Drops a chain of ancestors in a loop: recursion would overflow the stack on a very deep tree.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut level) = next.and_then(Arc::into_inner) {
            next = level.parent.take();
        }
    }
}

/// An operand and its destination.
#[derive(Debug)]
pub(super) struct Target<'p, D> {
    /// The operand as it was given.
    pub(super) source: CString,
    /// Path of its copy, for messages.
    pub(super) path: Vec<u8>,
    /// What the names of the transfer begin with: the name of the operand, or nothing where its contents are copied.
    pub(super) prefix: Vec<u8>,
    /// The directory that holds the copy.
    pub(super) level: Arc<Level<'p, D>>,
    /// Name of the copy in that directory; in the base directory, its path.
    pub(super) name: CString,
    /// The absolute paths of the roots of the transfer, source and destination, for rules of such paths.
    pub(super) roots: [Vec<u8>; 2],
    /// The operand's place among the others.
    pub(super) operand: usize,
    /// The directory that it was when it was traversed, if it was one.
    pub(super) identity: OnceLock<Identity>,
    /// Other operands that may have entries of the same names, in their order.
    pub(super) others: Vec<usize>,
    /// Whether the copy's name may be a symbolic link to a directory.
    pub(super) symlinks: SymlinkBehavior,
}

/// Joins a path and a name below it with one slash.
pub(super) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() || name.is_empty() {
        return [directory, name].concat();
    }
    let slash: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
    [directory, slash, name].concat()
}

impl<D> Target<'_, D> {
    /// Path of something in the source, by its path below the operand.
    pub(super) fn source_path(&self, below: &[u8]) -> Vec<u8> {
        joined(self.source.to_bytes(), below)
    }

    /// Path of its copy.
    pub(super) fn destination_path(&self, below: &[u8]) -> Vec<u8> {
        joined(&self.path, below)
    }

    /// Its name in the transfer, without a slash at its end: empty for an operand whose contents are copied.
    pub(super) fn transfer_name(&self, below: &[u8]) -> Vec<u8> {
        joined(&self.prefix, below)
    }

    /// Path below the operand of what has a name in the transfer, if it may have that.
    pub(super) fn below_of<'n>(&self, transfer_name: &'n [u8]) -> Option<&'n [u8]> {
        match transfer_name.strip_prefix(&self.prefix[..])? {
            below if self.prefix.is_empty() || below.is_empty() => Some(below),
            below => below.strip_prefix(b"/"),
        }
    }

    /// Whether the copy of an entry is looked for behind a symbolic link.
    pub(super) fn symlinks_of(&self, below: &[u8]) -> SymlinkBehavior {
        if below.is_empty() { self.symlinks } else { SymlinkBehavior::NoFollow }
    }
}

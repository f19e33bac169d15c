//! Destination directories.
//!
//! A [`Place`] is the copy of one source directory, linked to its parent like the traversal's own directories. Its
//! handle is opened when the first entry needs it and, while the budget of handles allows, kept until everything in it
//! is done, subdirectories included. Without a kept handle it is reopened from the nearest ancestor that has one, and
//! accepted only if device and inode number are unchanged.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use millstream_text::names::is_unsupported;
use millstream_vfs::{
    Dir, Errno, Error, Fields, Metadata, Operation, RemoveKind, Result, SymlinkBehavior, Volume,
};

use super::Identity;

/// Origin of a destination directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This run created it: it holds nothing else, and no link in it is ever followed.
    Made,
    /// It existed before.
    Found,
    /// A run that changes nothing would have created it.
    Imagined,
}

/// How many destination directories may keep their handle.
#[derive(Debug)]
pub(crate) struct Budget {
    kept: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Budget { kept: AtomicUsize::new(0), limit }
    }
}

/// How the handles of a volume are divided. The rest is for the two files and the destination directories that each
/// traversal worker has open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// For everything but the source directories.
    pub(crate) reserved: usize,
    /// Destination directories that keep their handle.
    pub(crate) places: usize,
    /// Queued large files, with two handles each.
    pub(crate) waiting_files: usize,
    /// Copy workers, with two files and one or two destination directories each.
    pub(crate) workers: usize,
}

impl Shares {
    pub(crate) fn of<V: Volume>(volume: &V) -> Self {
        let all = volume.max_open_dirs();
        Shares { reserved: all - all / 3, places: all / 6, waiting_files: all / 24, workers: all / 32 }
    }
}

/// A source directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original<'a> {
    pub(crate) metadata: &'a Metadata,
    /// Device of the operand.
    pub(crate) device: u64,
    /// The operand that the directory belongs to.
    pub(crate) operand: usize,
}

/// A destination directory.
#[derive(Debug)]
pub(crate) struct Place<D> {
    parent: Option<Arc<Place<D>>>,
    name: CString,
    symlinks: SymlinkBehavior,
    pub(crate) origin: Origin,
    /// Whether this run created it, even if others may add entries meanwhile.
    is_new: bool,
    /// The permission bits it was created with, if they locked out its owner.
    made_with: OnceLock<u32>,
    slot: Mutex<Option<Arc<D>>>,
    identity: OnceLock<Identity>,
    /// Metadata of the source directory; [`None`] for directories that only hold operands.
    pub(crate) source: Option<Metadata>,
    /// Device of the operand.
    pub(crate) device: u64,
    /// The operand that the directory belongs to.
    pub(crate) operand: usize,
    /// Extended attributes to set at the end.
    pub(crate) xattrs: OnceLock<Vec<(CString, Vec<u8>)>>,
    /// Whether files created in it get an access control list.
    pub(crate) default_acl: OnceLock<bool>,
    /// The initial metadata of the first file created in it, if every file gets exactly the mode that is asked for.
    pub(crate) new_file: OnceLock<Option<Metadata>>,
    /// Number of unfinished items: the traversal of the source directory or the operands, files still to be written,
    /// and subdirectories.
    pending: AtomicUsize,
}

impl<D: Dir> Place<D> {
    /// A directory with an open handle that is never reopened.
    pub(crate) fn holding(handle: D) -> Arc<Self> {
        let mut place = Self::unopened(None, c"".to_owned(), SymlinkBehavior::Follow, Origin::Found);
        // It is never finished.
        place.pending = AtomicUsize::new(1);
        place.slot = Mutex::new(Some(Arc::new(handle)));
        Arc::new(place)
    }

    fn unopened(parent: Option<Arc<Self>>, name: CString, symlinks: SymlinkBehavior, origin: Origin) -> Self {
        Place {
            parent,
            name,
            symlinks,
            origin,
            is_new: origin == Origin::Made,
            made_with: OnceLock::new(),
            slot: Mutex::default(),
            identity: OnceLock::new(),
            source: None,
            device: 0,
            operand: 0,
            xattrs: OnceLock::new(),
            default_acl: OnceLock::new(),
            new_file: OnceLock::new(),
            pending: AtomicUsize::new(0),
        }
    }

    /// The directory `name` in `parent`, the copy of an operand or of a directory below one.
    pub(crate) fn copy_of(
        original: Original<'_>,
        parent: &Arc<Self>,
        name: &CStr,
        symlinks: SymlinkBehavior,
        origin: Origin,
    ) -> Arc<Self> {
        let mut place = Self::unopened(Some(Arc::clone(parent)), name.to_owned(), symlinks, origin);
        place.source = Some(*original.metadata);
        place.device = original.device;
        place.operand = original.operand;
        Arc::new(place)
    }

    /// The directory `name` in `parent`, into which operands are copied.
    pub(crate) fn below(parent: &Arc<Self>, name: &CStr, origin: Origin) -> Arc<Self> {
        let symlinks = SymlinkBehavior::Follow;
        Arc::new(Self::unopened(Some(Arc::clone(parent)), name.to_owned(), symlinks, origin))
    }

    /// The directory `name` in `parent`, which leads to operands. Another operand may have added entries to it before
    /// it is used.
    pub(crate) fn leading(parent: &Arc<Self>, name: &CStr, origin: Origin) -> Arc<Self> {
        let found = if origin == Origin::Made { Origin::Found } else { origin };
        let mut place =
            Self::unopened(Some(Arc::clone(parent)), name.to_owned(), SymlinkBehavior::Follow, found);
        place.is_new = origin == Origin::Made;
        Arc::new(place)
    }

    /// The directory's handle.
    ///
    /// # Errors
    /// Those of opening it; `ESTALE` if another directory has replaced it, `ENOENT` if it exists only in a dry run.
    pub(crate) fn handle(&self, budget: &Budget) -> Result<Arc<D>> {
        if self.origin == Origin::Imagined {
            return Err(Error::new(Operation::OpenDir, Errno::NOENT));
        }
        let mut closed: Vec<&Self> = Vec::new();
        let mut found = None;
        for place in std::iter::successors(Some(self), |place| place.parent.as_deref()) {
            found = place.slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if found.is_some() {
                break;
            }
            closed.push(place);
        }
        let mut handle = found.ok_or(Error::new(Operation::OpenDir, Errno::STALE))?;
        for place in closed.into_iter().rev() {
            handle = place.open_in(&handle, budget)?;
        }
        Ok(handle)
    }

    fn open_in(&self, parent: &D, budget: &Budget) -> Result<Arc<D>> {
        let mut opened = parent.open_dir_for_names(&self.name, self.symlinks)?;
        if self.is_new && self.identity.get().is_none() && self.admit_owner(parent, &opened)? {
            opened = parent.open_dir_for_names(&self.name, self.symlinks)?;
        }
        let opened = Arc::new(opened);
        let identity = opened.identity()?;
        if *self.identity.get_or_init(|| identity) != identity {
            return Err(Error::new(Operation::OpenDir, Errno::STALE));
        }
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = slot.is_none() && self.pending.load(Ordering::Acquire) > 0;
        if is_kept && budget.kept.fetch_add(1, Ordering::AcqRel) < budget.limit {
            *slot = Some(Arc::clone(&opened));
        } else if is_kept {
            budget.kept.fetch_sub(1, Ordering::AcqRel);
        }
        Ok(opened)
    }

    /// Gives the owner access to a new directory if the umask or an access control list denies it; returns whether that
    /// was needed. The directory gets its final mode at the end.
    fn admit_owner(&self, parent: &D, opened: &D) -> Result<bool> {
        let mode = opened.own_metadata(Fields::MODE)?.mode & 0o7777;
        if mode & 0o700 == 0o700 {
            return Ok(false);
        }
        self.made_with.get_or_init(|| mode);
        // If that fails, creating files in the directory reports it.
        Ok(parent.set_mode(&self.name, mode | 0o700, SymlinkBehavior::NoFollow).is_ok())
    }

    /// The permission bits it was created with, if its owner has more until the end.
    pub(crate) fn made_with(&self) -> Option<u32> {
        self.made_with.get().copied()
    }

    /// Its parent directory.
    pub(crate) fn parent(&self) -> Option<&Self> {
        self.parent.as_deref()
    }

    /// Its name in its parent.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// Device and inode number, if the directory has been opened.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity.get().copied()
    }

    /// Device and inode number of an entry.
    ///
    /// # Errors
    /// Those of opening the directory and of examining the entry.
    pub(crate) fn identity_of(&self, name: &CStr, budget: &Budget) -> Result<Identity> {
        let entry = self.handle(budget)?.metadata(name, SymlinkBehavior::NoFollow, Fields::INO)?;
        Ok(entry.identity())
    }

    /// Removes a file that was made under a temporary name and will not get its own.
    pub(crate) fn discard(&self, temporary: &CStr, budget: &Budget) {
        // If it cannot be removed the first error told why.
        let _ = self.handle(budget).and_then(|directory| directory.remove(temporary, RemoveKind::File));
    }

    /// Adds an unfinished item. The directory itself is one item of its parent.
    pub(crate) fn begin(&self) {
        for place in self.ancestors() {
            if place.pending.fetch_add(1, Ordering::AcqRel) > 0 {
                break;
            }
        }
    }

    /// Finishes an item; returns whether it was the last.
    pub(crate) fn done(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Closes the kept handle at the end.
    pub(crate) fn close(&self, budget: &Budget) {
        if self.parent.is_some() && self.slot.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
        {
            budget.kept.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// This directory and its ancestors.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |place| place.parent.as_deref())
    }
}

/// Renames to a name under which nothing was found; what has come there since stays, where the volume can do that.
pub(crate) fn rename_new<D: Dir>(directory: &D, name: &CStr, new_name: &CStr) -> Result<()> {
    match directory.rename_new(name, directory, new_name) {
        Err(error) if is_unsupported(&error) => directory.rename(name, directory, new_name),
        renamed => renamed,
    }
}

impl<D> Drop for Place<D> {
    /// Drops a chain of ancestors in a loop: recursion would overflow the stack on a very deep tree.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut place) = next.and_then(Arc::into_inner) {
            next = place.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use millstream_posix::PosixVolume;
    use millstream_vfs::{Fields, Volume};

    use super::*;

    /// Handles are released at the end, children before parents, and no later use keeps one again.
    #[test]
    fn what_is_done_keeps_no_handle() {
        let scratch = tempfile::tempdir().expect("scratch");
        std::fs::create_dir_all(scratch.path().join("a/b")).expect("directories");
        let source = PosixVolume.base().own_metadata(Fields::STAT).expect("stat");
        let original = Original { metadata: &source, device: 0, operand: 0 };
        let budget = Budget::new(10);
        let path = CString::new(scratch.path().as_os_str().as_bytes()).expect("no NUL");
        let into = Place::below(&Place::holding(PosixVolume.base()), &path, Origin::Found);
        into.begin();
        let a = Place::copy_of(original, &into, c"a", SymlinkBehavior::NoFollow, Origin::Made);
        a.begin();
        let b = Place::copy_of(original, &a, c"b", SymlinkBehavior::NoFollow, Origin::Made);
        b.begin();
        let kept = || budget.kept.load(Ordering::Relaxed);
        b.handle(&budget).expect("opens");
        assert_eq!(kept(), 3);
        assert!(!a.done() && !into.done());
        for (place, left) in [(&b, 2), (&a, 1), (&into, 0)] {
            assert!(place.done());
            place.close(&budget);
            assert_eq!(kept(), left);
        }
        b.handle(&budget).expect("opens again");
        assert_eq!(kept(), 0);
    }
}

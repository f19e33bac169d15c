//! Directory handles of the traversal, and the budget that bounds them.
//!
//! ```text
//!            kept: within the budget, until no child waits for it
//!  slot ─────┤
//!            lent: shared with its current user ── a chunk, a reader, the last worker to use it
//! ```
//!
//! A directory keeps its handle while children wait to be opened from it, or to be left. Beyond the budget it keeps
//! none, but it can share the handle while any worker has it open. Every worker holds the handles of the directory that
//! it opened last and of that directory's parent, so the next directory of a chain is opened from the one above it,
//! whichever worker read that. An idle worker drops these handles: they would keep the cached ancestors of a removed
//! directory in memory, and Linux searches those at every removal further up.
//!
//! A handle that nobody holds is reopened by the shorter of two paths, which are searched in alternating steps: down
//! from the nearest ancestor with a handle, or from the worker's last directory, up through `..` and down again. Every
//! directory on the path must have the device and inode number that were recorded when it was read. A depth-first
//! worker climbs the path it descended, so reopening costs about one call per directory, whatever its depth.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_vfs::{Dir, Errno, Error, Operation, Result, Volume};

use crate::Directory;

/// Most handles that a worker holds as starting points.
pub(crate) const RECENT: usize = 2;

/// Limits the number of handles that directories keep.
#[derive(Debug)]
pub(crate) struct HandleBudget {
    kept: AtomicUsize,
    limit: usize,
}

impl HandleBudget {
    pub(crate) fn new(limit: usize) -> Self {
        HandleBudget { kept: AtomicUsize::new(0), limit }
    }

    /// Lets `directory` keep `handle` if the budget allows it; returns whether it did.
    pub(crate) fn keep<V: Volume, S>(&self, directory: &Directory<V, S>, handle: &Arc<V::Dir>) -> bool {
        let kept = self.kept.fetch_add(1, Ordering::AcqRel) < self.limit && directory.slot.keep(handle);
        if !kept {
            self.kept.fetch_sub(1, Ordering::AcqRel);
        }
        kept
    }

    /// Releases the handle that `directory` keeps.
    pub(crate) fn release<V: Volume, S>(&self, directory: &Directory<V, S>) {
        if directory.parent().is_some() && directory.slot.take().is_some() {
            self.kept.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

type Dirs<V, S> = Arc<Directory<V, S>>;

/// A directory and its handle.
#[derive(Debug)]
struct Held<V: Volume, S> {
    directory: Dirs<V, S>,
    handle: Arc<V::Dir>,
}

/// A worker's last directory beyond the budget, preceded by its parent if that is beyond the budget too.
#[derive(Debug)]
pub(crate) struct Recent<V: Volume, S> {
    held: Vec<Held<V, S>>,
    /// Number of handles opened to return to directories whose handle had been closed.
    pub(crate) reopened: u64,
}

impl<V: Volume, S> Default for Recent<V, S> {
    fn default() -> Self {
        Recent { held: Vec::with_capacity(RECENT), reopened: 0 }
    }
}

impl<V: Volume, S> Recent<V, S> {
    /// Holds the handle of a directory; of the handles held so far, only its parent's stays.
    pub(crate) fn hold(&mut self, directory: &Dirs<V, S>, handle: &Arc<V::Dir>) {
        directory.slot.lend(handle);
        self.held
            .retain(|held| directory.parent().is_some_and(|parent| Arc::ptr_eq(&held.directory, parent)));
        self.held.push(Held { directory: Arc::clone(directory), handle: Arc::clone(handle) });
    }

    /// Drops all handles.
    pub(crate) fn let_go(&mut self) {
        self.held.clear();
    }

    /// The handle of `directory`, reopened if it is open nowhere.
    ///
    /// # Errors
    /// As [`Directory::handle`].
    pub(crate) fn reach(&mut self, directory: &Dirs<V, S>) -> Result<Arc<V::Dir>> {
        if let Some(kept) = directory.slot.kept() {
            return Ok(kept);
        }
        let handle = match directory.slot.get() {
            Some(lent) => lent,
            None => reopen(directory, self.held.last(), &mut self.reopened)?,
        };
        self.hold(directory, &handle);
        Ok(handle)
    }
}

impl<V: Volume, S> Directory<V, S> {
    /// The directory's handle, reopened if it has been closed. With
    /// [`HandleRetention::UntilLeft`](crate::HandleRetention), a visitor that leaves a directory finds its parent's
    /// handle open.
    ///
    /// # Errors
    /// Those of opening the directory, and `ESTALE` if another directory has taken its place in the meantime.
    pub fn handle(&self) -> Result<Arc<V::Dir>> {
        self.slot.get().map_or_else(|| reopen(self, None, &mut 0), Ok)
    }
}

/// Reopens `directory` from `last`, the caller's last directory, or from an ancestor with a handle, whichever is
/// nearer.
fn reopen<V: Volume, S>(
    directory: &Directory<V, S>,
    last: Option<&Held<V, S>>,
    reopened: &mut u64,
) -> Result<Arc<V::Dir>> {
    let mut common = last.map(|last| CommonAncestor { one: &last.directory, other: directory });
    let mut above = directory;
    loop {
        above = above.parent().ok_or(Error::new(Operation::OpenDir, Errno::STALE))?;
        if let Some(handle) = above.slot.get() {
            return descend(directory, above, handle, reopened);
        }
        let Some(found) = common.as_mut().and_then(CommonAncestor::step) else { continue };
        common = None;
        if let Some(last) = last
            && found.parent().is_some()
            && let Ok(handle) = climb(last, found, reopened)
        {
            return descend(directory, found, handle, reopened);
        }
    }
}

/// Searches for the lowest common ancestor of two directories, one step at a time.
struct CommonAncestor<'a, V: Volume, S> {
    one: &'a Directory<V, S>,
    other: &'a Directory<V, S>,
}

impl<'a, V: Volume, S> CommonAncestor<'a, V, S> {
    /// Takes one step. Returns the ancestor, or [`None`] if it is further up.
    fn step(&mut self) -> Option<&'a Directory<V, S>> {
        if std::ptr::eq(self.one, self.other) {
            return Some(self.one);
        }
        if self.one.entry_depth() < self.other.entry_depth() {
            std::mem::swap(&mut self.one, &mut self.other);
        }
        self.one = self.one.parent()?;
        None
    }
}

/// Opens directories from `from` up to `to`.
fn climb<V: Volume, S>(from: &Held<V, S>, to: &Directory<V, S>, reopened: &mut u64) -> Result<Arc<V::Dir>> {
    let mut handle = Arc::clone(&from.handle);
    let below = from.directory.ancestors().take_while(|above| !std::ptr::eq(*above, to));
    for directory in below.filter_map(Directory::parent) {
        *reopened += 1;
        handle = checked(directory, handle.open_parent()?)?;
    }
    Ok(handle)
}

/// Opens directories from `above`, whose handle is given, down to `directory`.
fn descend<V: Volume, S>(
    directory: &Directory<V, S>,
    above: &Directory<V, S>,
    mut handle: Arc<V::Dir>,
    reopened: &mut u64,
) -> Result<Arc<V::Dir>> {
    let way: Vec<_> = directory.ancestors().take_while(|below| !std::ptr::eq(*below, above)).collect();
    for below in way.into_iter().rev() {
        *reopened += 1;
        handle = checked(below, handle.open_dir(below.name(), below.symlinks)?)?;
    }
    Ok(handle)
}

/// Checks that a newly opened handle is really that of `directory`.
fn checked<V: Volume, S>(directory: &Directory<V, S>, handle: V::Dir) -> Result<Arc<V::Dir>> {
    match directory.identity.get() {
        Some(known) if handle.identity()? == *known => Ok(Arc::new(handle)),
        _ => Err(Error::new(Operation::OpenDir, Errno::STALE)),
    }
}

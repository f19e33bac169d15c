//! Directory handles of the traversal, and the budget that bounds them.
//!
//! A directory keeps its handle while children wait to be opened from it. When the budget is used up a handle is closed
//! at once instead; whoever needs it reopens the directory from the nearest ancestor that still has one, and accepts it
//! only if device and inode number are those of the directory that was read before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millstream_vfs::{Dir, Errno, Error, Operation, Result, Volume};

use crate::Directory;

/// The handle that a directory keeps, if it keeps one.
#[derive(Debug)]
pub(crate) struct HandleSlot<V: Volume> {
    held: Mutex<Option<Arc<V::Dir>>>,
}

impl<V: Volume> Default for HandleSlot<V> {
    fn default() -> Self {
        HandleSlot { held: Mutex::new(None) }
    }
}

impl<V: Volume> HandleSlot<V> {
    pub(crate) fn holding(handle: V::Dir) -> Self {
        HandleSlot { held: Mutex::new(Some(Arc::new(handle))) }
    }

    pub(crate) fn get(&self) -> Option<Arc<V::Dir>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a handle in; whether the slot was empty.
    fn put(&self, handle: &Arc<V::Dir>) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = held.is_none();
        held.get_or_insert_with(|| Arc::clone(handle));
        empty
    }

    fn take(&self) -> Option<Arc<V::Dir>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// How many handles directories may keep.
#[derive(Debug)]
pub(crate) struct HandleBudget {
    kept: AtomicUsize,
    limit: usize,
}

impl HandleBudget {
    pub(crate) fn new(limit: usize) -> Self {
        HandleBudget { kept: AtomicUsize::new(0), limit }
    }

    /// Lets `directory` keep `handle` if there is room; whether there was.
    pub(crate) fn keep<V: Volume, S>(&self, directory: &Directory<V, S>, handle: &Arc<V::Dir>) -> bool {
        let kept = self.kept.fetch_add(1, Ordering::AcqRel) < self.limit && directory.slot.put(handle);
        if !kept {
            self.kept.fetch_sub(1, Ordering::AcqRel);
        }
        kept
    }

    /// Closes the handle that `directory` keeps, if any.
    pub(crate) fn release<V: Volume, S>(&self, directory: &Directory<V, S>) {
        if directory.parent().is_some() && directory.slot.take().is_some() {
            self.kept.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Moves the place in the budget of a directory that is being left to its parent, which is reached through the
    /// child's `..` and so needs no walk from the top. `last` is the child's handle if a worker has it at hand.
    pub(crate) fn hand_up<V: Volume, S>(&self, child: &Directory<V, S>, last: Option<Arc<V::Dir>>) {
        let Some(parent) = child.parent().filter(|p| p.parent().is_some() && p.slot.get().is_none()) else {
            return;
        };
        let Some(handle) = last.or_else(|| child.slot.get()) else { return };
        if let Ok(above) = handle.open_parent()
            && is_same::<V, S>(parent, &above)
            && parent.slot.put(&Arc::new(above))
        {
            self.kept.fetch_add(1, Ordering::AcqRel);
        }
    }
}

fn is_same<V: Volume, S>(directory: &Directory<V, S>, handle: &V::Dir) -> bool {
    let Some(known) = directory.identity.get() else { return false };
    handle.identity().is_ok_and(|identity| identity == *known)
}

impl<V: Volume, S> Directory<V, S> {
    /// The directory's handle, reopened if it has been closed.
    ///
    /// # Errors
    /// Those of opening the directory, and `ESTALE` if another directory has taken its place meanwhile.
    pub fn handle(&self) -> Result<Arc<V::Dir>> {
        if let Some(handle) = self.slot.get() {
            return Ok(handle);
        }
        let mut closed = Vec::new();
        let mut handle = None;
        for directory in std::iter::successors(Some(self), |d| d.parent().map(|p| &**p)) {
            handle = directory.slot.get();
            if handle.is_some() {
                break;
            }
            closed.push(directory);
        }
        let mut handle = handle.ok_or(Error::new(Operation::OpenDir, Errno::STALE))?;
        for directory in closed.into_iter().rev() {
            handle = Arc::new(handle.open_dir(directory.name(), directory.symlinks)?);
            if !is_same(directory, &handle) {
                return Err(Error::new(Operation::OpenDir, Errno::STALE));
            }
        }
        Ok(handle)
    }
}

//! Finds a directory's handle: kept by the directory, or shared with a worker that has it open.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use millstream_vfs::Volume;

/// A directory's reference to its handle.
#[derive(Debug)]
pub(crate) struct HandleSlot<V: Volume> {
    handle: Mutex<SlotState<V>>,
}

#[derive(Debug)]
struct SlotState<V: Volume> {
    kept: Option<Arc<V::Dir>>,
    lent: Weak<V::Dir>,
}

impl<V: Volume> Default for HandleSlot<V> {
    fn default() -> Self {
        HandleSlot { handle: Mutex::new(SlotState { kept: None, lent: Weak::new() }) }
    }
}

impl<V: Volume> HandleSlot<V> {
    pub(crate) fn holding(handle: V::Dir) -> Self {
        let slot = HandleSlot::default();
        slot.state().kept = Some(Arc::new(handle));
        slot
    }

    fn state(&self) -> MutexGuard<'_, SlotState<V>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle, if it is open anywhere.
    pub(crate) fn get(&self) -> Option<Arc<V::Dir>> {
        let state = self.state();
        state.kept.clone().or_else(|| state.lent.upgrade())
    }

    pub(crate) fn kept(&self) -> Option<Arc<V::Dir>> {
        self.state().kept.clone()
    }

    /// Lets others share the handle while it is open.
    pub(crate) fn lend(&self, handle: &Arc<V::Dir>) {
        self.state().lent = Arc::downgrade(handle);
    }

    /// Keeps a handle. Returns false if there is one already.
    pub(crate) fn keep(&self, handle: &Arc<V::Dir>) -> bool {
        let mut state = self.state();
        let empty = state.kept.is_none();
        state.kept.get_or_insert_with(|| Arc::clone(handle));
        empty
    }

    pub(crate) fn take(&self) -> Option<Arc<V::Dir>> {
        self.state().kept.take()
    }
}

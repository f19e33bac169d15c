//! Where a directory's handle is found: with the directory, or with whoever has it open.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use millstream_vfs::Volume;

/// Where a directory's handle is found.
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

    /// The handle, if anybody has it open.
    pub(crate) fn get(&self) -> Option<Arc<V::Dir>> {
        let state = self.state();
        state.kept.clone().or_else(|| state.lent.upgrade())
    }

    pub(crate) fn kept(&self) -> Option<Arc<V::Dir>> {
        self.state().kept.clone()
    }

    /// Lets others share the handle while somebody has it.
    pub(crate) fn lend(&self, handle: &Arc<V::Dir>) {
        self.state().lent = Arc::downgrade(handle);
    }

    /// Puts a handle in to stay; whether there was none.
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

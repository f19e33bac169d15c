//! A directory of the traversal: a node with its parent, its name and the amount of work left in it.
//!
//! Three counters control its life. `parts` counts its own reading and the chunks handed out: at zero, all entries have
//! been visited. `unopened` counts its own reading and the children not opened yet: at zero, no child needs its handle
//! any more. `pending` counts its own reading and the children not left yet: at zero, the directory is left.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use millstream_vfs::{FileKind, SymlinkBehavior, Volume};

use crate::FollowPolicy;
use crate::slot::HandleSlot;

/// A directory of the traversal, or the virtual one that holds the operands.
#[derive(Debug)]
pub struct Directory<V: Volume, S> {
    parent: Option<Arc<Self>>,
    name: Box<CStr>,
    operand: Option<u64>,
    entry_depth: u32,
    is_behind_link: bool,
    state: S,
    pub(crate) symlinks: SymlinkBehavior,
    pub(crate) slot: HandleSlot<V>,
    pub(crate) identity: OnceLock<(u64, u64)>,
    pub(crate) claimed: AtomicBool,
    parts: AtomicUsize,
    unopened: AtomicUsize,
    pending: AtomicUsize,
}

impl<V: Volume, S> Directory<V, S> {
    pub(crate) fn of_operands(base: V::Dir, state: S) -> Arc<Self> {
        Arc::new(Directory {
            parent: None,
            name: c"".into(),
            operand: None,
            entry_depth: 0,
            is_behind_link: false,
            state,
            symlinks: SymlinkBehavior::NoFollow,
            slot: HandleSlot::holding(base),
            identity: OnceLock::new(),
            claimed: AtomicBool::new(true),
            parts: AtomicUsize::new(1),
            unopened: AtomicUsize::new(1),
            pending: AtomicUsize::new(1),
        })
    }

    pub(crate) fn child(
        parent: &Arc<Self>,
        (name, listed): (&CStr, FileKind),
        operand: u64,
        follow: FollowPolicy,
        state: S,
    ) -> Arc<Self> {
        Arc::new(Directory {
            parent: Some(Arc::clone(parent)),
            name: name.into(),
            operand: Some(operand),
            entry_depth: parent.entry_depth + 1,
            is_behind_link: parent.is_behind_link || listed == FileKind::Symlink,
            state,
            symlinks: follow.at_depth(parent.entry_depth),
            slot: HandleSlot::default(),
            identity: OnceLock::new(),
            claimed: AtomicBool::new(false),
            parts: AtomicUsize::new(1),
            unopened: AtomicUsize::new(1),
            pending: AtomicUsize::new(1),
        })
    }

    /// The visitor's state for the directory.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The directory that holds this one; `None` for the virtual directory of the operands.
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// The name. For an operand, the path as the user gave it; empty for the virtual directory.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Depth below the operand, which is at 0; `None` for the virtual directory of the operands.
    pub fn depth(&self) -> Option<u32> {
        self.entry_depth.checked_sub(1)
    }

    /// Depth of the directory's entries.
    pub fn entry_depth(&self) -> u32 {
        self.entry_depth
    }

    /// Index of the operand that the directory is or is below; `None` for the virtual directory of the operands.
    pub fn operand(&self) -> Option<u64> {
        self.operand
    }

    /// This directory, its parent, and so on, ending with the operand.
    pub fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |d| d.parent.as_deref()).take_while(|d| d.parent.is_some())
    }

    /// Whether the way from the operand to this directory is known to lead through a symbolic link.
    pub(crate) fn is_behind_link(&self) -> bool {
        self.is_behind_link
    }

    /// The virtual directory that holds the operands.
    pub(crate) fn operands(&self) -> &Self {
        std::iter::successors(Some(self), |d| d.parent.as_deref()).last().unwrap_or(self)
    }

    /// The directory with this identity among this one and its ancestors. For traversals that do not follow links.
    ///
    /// Only the nearest ancestors are searched, so that a very deep chain does not cost quadratic time. That is enough:
    /// without links only a mount can lead a directory into itself, and never endlessly.
    pub fn enclosing(&self, identity: (u64, u64)) -> Option<&Self> {
        const NEAREST: usize = 256;
        self.ancestors().take(NEAREST).find(|above| above.identity.get() == Some(&identity))
    }

    /// Appends the path, starting with the operand as the user gave it.
    pub fn write_path(&self, path: &mut Vec<u8>) {
        self.write_prefix(path);
        if self.parent.is_some() && self.needs_slash() {
            path.pop();
        }
    }

    /// Appends the prefix of an entry's name: the path and a slash, or nothing for an operand.
    pub fn write_prefix(&self, path: &mut Vec<u8>) {
        // The space is filled with slashes, then names are written over it from the last to the first.
        let length: usize = self.ancestors().map(Self::prefix_len).sum();
        let mut end = path.len() + length;
        path.resize(end, b'/');
        for directory in self.ancestors() {
            end -= directory.prefix_len();
            let name = directory.name.to_bytes();
            path[end..end + name.len()].copy_from_slice(name);
        }
    }

    fn prefix_len(&self) -> usize {
        self.name.count_bytes() + usize::from(self.needs_slash())
    }

    fn needs_slash(&self) -> bool {
        !self.name.to_bytes().ends_with(b"/")
    }

    /// Counts parts, before they are handed out.
    pub(crate) fn add_parts(&self, n: usize) {
        self.parts.fetch_add(n, Ordering::AcqRel);
    }

    /// One part is done. Returns whether it was the last.
    pub(crate) fn part_done(&self) -> bool {
        self.parts.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Counts children, before other workers can see their tasks.
    pub(crate) fn add_children(&self, n: usize) {
        self.unopened.fetch_add(n, Ordering::AcqRel);
        self.pending.fetch_add(n, Ordering::AcqRel);
    }

    /// A child is open, or the directory's own entries are done. Returns whether no child is left to open.
    pub(crate) fn opened_one(&self) -> bool {
        self.unopened.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// A child has been left, or the directory's own entries are done. Returns whether the whole subtree is done.
    pub(crate) fn left_one(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Resets a directory that has been left: its parent counts it as an unopened child again.
    pub(crate) fn renew(&self) {
        for counter in [&self.parts, &self.unopened, &self.pending] {
            counter.store(1, Ordering::Release);
        }
        if let Some(parent) = &self.parent {
            parent.unopened.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Claims the right to open the directory; returns true only once.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }
}

impl<V: Volume, S> Drop for Directory<V, S> {
    /// Drops a chain of ancestors in a loop: recursion would overflow the stack on a very deep tree.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut directory) = next.and_then(Arc::into_inner) {
            next = directory.parent.take();
        }
    }
}

//! One entry to synchronize: its source and its destination.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use millstream_vfs::Volume;
use millstream_walk::Entry;

use super::level::{Level, Target};
use crate::transfer::Identity;
use crate::transfer::copy_workers::StartsWorkers;
use crate::transfer::place::Place;

/// The state of a traversal for a directory of the source.
pub(super) type State<'p, V> = Arc<Level<'p, <V as Volume>::Dir>>;

/// One entry of the source.
#[derive(Debug)]
pub(super) struct Item<'x, 'p, V: Volume> {
    pub(super) operand: usize,
    pub(super) target: &'x Target<'p, V::Dir>,
    /// Its path below the operand; empty for the operand itself.
    pub(super) below: &'x [u8],
    /// The directory of its copy.
    pub(super) level: &'x State<'p, V>,
    /// Name of its copy.
    pub(super) name: &'x CStr,
}

impl<V: Volume> Clone for Item<'_, '_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Volume> Copy for Item<'_, '_, V> {}

/// The visit of an entry.
pub(super) struct Visit<'x, 'p, V: Volume> {
    pub(super) item: Item<'x, 'p, V>,
    pub(super) entry: &'x Entry<'x, V, State<'p, V>>,
    /// Starts copy workers.
    pub(super) starter: &'x dyn StartsWorkers,
}

/// How an entry ranks among the entries of the same name in several operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// It is what the name becomes.
    First,
    /// A directory that an earlier operand has, too, which decides what it is like.
    Merged,
    /// Another one has the name.
    Beaten,
}

/// The first name of a file with several links.
#[derive(Debug)]
pub(super) struct Leader<D> {
    /// The directory that holds it.
    pub(super) place: Arc<Place<D>>,
    pub(super) name: Box<CStr>,
    /// Its name in the transfer.
    pub(super) transfer_name: Box<[u8]>,
    /// The inode of the copy; [`None`] if there is none because nothing is changed.
    pub(super) inode: Option<Identity>,
}

/// An item without its entry, which outlives the visit.
#[derive(Debug)]
pub(super) struct OwnedItem<'p, V: Volume> {
    operand: usize,
    below: Box<[u8]>,
    pub(super) level: State<'p, V>,
    name: CString,
}

impl<'p, V: Volume> OwnedItem<'p, V> {
    pub(super) fn new(item: &Item<'_, 'p, V>) -> Self {
        OwnedItem {
            operand: item.operand,
            below: item.below.into(),
            level: Arc::clone(item.level),
            name: item.name.to_owned(),
        }
    }

    pub(super) fn borrow<'x>(&'x self, targets: &'x [Target<'p, V::Dir>]) -> Item<'x, 'p, V> {
        Item {
            operand: self.operand,
            target: &targets[self.operand],
            below: &self.below,
            level: &self.level,
            name: &self.name,
        }
    }
}

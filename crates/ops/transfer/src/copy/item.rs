//! One entry to copy: its source and its destination.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use millstream_vfs::Volume;
use millstream_walk::{Directory, Entry};

use crate::transfer::Identity;
use crate::transfer::copy_workers::StartsWorkers;
use crate::transfer::place::Place;

/// The traversal's state for a source directory: its copy.
pub(super) type State<V> = Arc<Place<<V as Volume>::Dir>>;
/// A source directory.
pub(super) type SourceDirectory<V> = Arc<Directory<V, State<V>>>;

/// An operand and its destination.
#[derive(Debug)]
pub(super) struct Target<D> {
    /// The operand as it was given.
    pub(super) source: CString,
    /// Path of the copy, for messages.
    pub(super) path: Vec<u8>,
    /// The directory that holds the copy.
    pub(super) place: Arc<Place<D>>,
    /// Name of the copy in that directory; in the base directory, its path.
    pub(super) name: CString,
}

impl<D> Target<D> {
    /// Converts a source path of the traversal to the one shown in messages.
    pub(super) fn source_path(&self, path: &[u8]) -> Vec<u8> {
        joined(self.source.to_bytes(), self.below(path))
    }

    /// The part of a traversal path below the operand; empty for the operand itself.
    fn below<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        without_leading_slashes(path.strip_prefix(self.source.to_bytes()).unwrap_or_default())
    }
}

/// One entry to copy.
#[derive(Debug)]
pub(super) struct Item<'a, V: Volume> {
    pub(super) directory: &'a SourceDirectory<V>,
    pub(super) source_name: &'a CStr,
    pub(super) operand: usize,
    pub(super) place: &'a State<V>,
    pub(super) name: &'a CStr,
}

impl<V: Volume> Clone for Item<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Volume> Copy for Item<'_, V> {}

impl<V: Volume> Item<'_, V> {
    /// Whether this is the operand itself, not something below it.
    pub(super) fn is_operand(&self) -> bool {
        self.directory.parent().is_none()
    }

    pub(super) fn source_path(&self, targets: &[Target<V::Dir>]) -> Vec<u8> {
        targets[self.operand].source_path(&self.traversed_path())
    }

    pub(super) fn destination_path(&self, targets: &[Target<V::Dir>]) -> Vec<u8> {
        let target = &targets[self.operand];
        joined(&target.path, target.below(&self.traversed_path()))
    }

    fn traversed_path(&self) -> Vec<u8> {
        let mut path = Vec::new();
        self.directory.write_prefix(&mut path);
        path.extend_from_slice(self.source_name.to_bytes());
        path
    }

    pub(super) fn keep(self) -> OwnedItem<V> {
        OwnedItem {
            directory: Arc::clone(self.directory),
            source_name: self.source_name.to_owned(),
            operand: self.operand,
            place: Arc::clone(self.place),
            name: self.name.to_owned(),
        }
    }
}

/// The visit of an entry.
pub(super) struct Visit<'a, V: Volume> {
    pub(super) item: Item<'a, V>,
    pub(super) entry: &'a Entry<'a, V, State<V>>,
    /// Starts copy workers.
    pub(super) starter: &'a dyn StartsWorkers,
}

/// The name of a copy. There may be one for every file of the tree (`-L`).
#[derive(Debug)]
pub(super) struct Copied<D> {
    pub(super) place: Arc<Place<D>>,
    pub(super) name: Box<CStr>,
    pub(super) operand: usize,
    /// Inode of the copy.
    pub(super) inode: Identity,
}

/// Splits a path into the directory, with its final slash or empty, and the last component.
pub(super) fn split(path: &[u8]) -> (CString, &[u8]) {
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
    let start = path[..end].iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    (CString::new(&path[..start]).unwrap_or_default(), &path[start..end])
}

fn without_leading_slashes(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
    &path[start..]
}

/// Joins a path and a name below it with one slash.
pub(super) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = directory.to_vec();
    if !name.is_empty() {
        while path.ends_with(b"//") {
            path.pop();
        }
        if !path.ends_with(b"/") && !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
    }
    path
}

/// An [`Item`] that outlives the visit.
#[derive(Debug)]
pub(super) struct OwnedItem<V: Volume> {
    directory: SourceDirectory<V>,
    source_name: CString,
    operand: usize,
    pub(super) place: State<V>,
    name: CString,
}

impl<V: Volume> OwnedItem<V> {
    pub(super) fn borrow(&self) -> Item<'_, V> {
        Item {
            directory: &self.directory,
            source_name: &self.source_name,
            operand: self.operand,
            place: &self.place,
            name: &self.name,
        }
    }
}
